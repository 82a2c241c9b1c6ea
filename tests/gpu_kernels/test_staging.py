"""Arrays made on the host and copied to a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpu_kernels import Device, Host, Place, compress, copied_to, made_for
from tests.gpu_kernels.devices import to_numpy


@dataclass(frozen=True, eq=False)
class Record:
    words: Any
    inner: Any
    missing: Any
    number: int


def test_arrays_are_copied_within_records_too(device: Device, rng: np.random.Generator) -> None:
    vector = rng.choice([0.25, 0.5], 100)
    record = Record(np.arange(7, dtype=np.int32), compress(Host(), vector), None, 3)
    found = copied_to(device, record)
    assert isinstance(found.words, device.xp.ndarray)
    assert isinstance(found.inner.elements, device.xp.ndarray)
    np.testing.assert_array_equal(to_numpy(found.words), np.arange(7))
    np.testing.assert_array_equal(to_numpy(found.inner.expand(device)), vector)
    assert found.words.dtype == np.int32
    assert (found.missing, found.number, found.inner.bits) == (None, 3, 8)


def test_little_work_is_done_on_the_host(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", 100)
    places: list[Place] = []

    def make(place: Place) -> Record:
        places.append(place)
        return Record(place.xp.arange(3), None, None, 0)

    monkeypatch.setattr("gpu_kernels.runtime.warm_up.is_compiled", lambda work: work == "layouts")
    few, many = made_for(device, 100, make), made_for(device, 101, make)
    assert isinstance(places[0], Host)
    assert places[1] is device
    assert isinstance(few.words, device.xp.ndarray)
    np.testing.assert_array_equal(to_numpy(few.words), to_numpy(many.words))


def test_more_is_done_on_the_host_while_nothing_is_compiled(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", 100)
    monkeypatch.setattr("gpu_kernels.runtime.warm_up.is_compiled", lambda work: False)
    monkeypatch.setattr("gpu_kernels.runtime.warm_up.begin_warm_up", lambda work: False)
    places: list[Place] = []

    def make(place: Place) -> None:
        places.append(place)

    for items in (400, 401):
        made_for(device, items, make)
    assert isinstance(places[0], Host)
    assert places[1] is device


def test_what_cannot_be_made_is_not_copied(device: Device) -> None:
    assert made_for(device, 1, lambda place: None) is None
