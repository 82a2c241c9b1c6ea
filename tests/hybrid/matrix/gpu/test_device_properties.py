"""Predictions for other cards than the one that the constants were measured on."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import use_device
from hybrid.matrix.gpu.cost import level_seconds
from hybrid.matrix.gpu.tuning import REFERENCE, Card, card_in_use, card_of
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from tests.builders.matrices import from_dense
from tests.gpu_kernels.host_device import HostDevice


def predicted(card: Card, rng: np.random.Generator) -> dict[int, float]:
    """Predicted seconds of every level of a matrix whose diagram shares nothing."""
    typed = TypedMatrix(from_dense(np.where(rng.random((64, 64)) < 0.3, rng.random((64, 64)), 0.0)))
    types = typed.plain
    found = {k: level_seconds(types, k, card) for k in range(len(types))}
    return {k: seconds for k, seconds in found.items() if seconds is not None}


def test_attributes_give_the_figures_of_a_card() -> None:
    # An H100 with 80 GB: 2.6 GHz memory clock on 5,120 bits, 132 multiprocessors, 50 MiB of cache.
    attributes = {
        "ClockRate": 1_980_000, "MemoryClockRate": 2_619_000, "GlobalMemoryBusWidth": 5120,
        "MultiProcessorCount": 132, "L2CacheSize": 50 << 20,
    }  # fmt: skip
    card = card_of(attributes, "H100")
    assert card.bandwidth == pytest.approx(3.35e12, rel=1e-3)
    assert card.cycles == pytest.approx(132 * 1.98e9)
    assert card.cache_bytes == 50 << 20


def test_a_driver_that_tells_nothing_gives_the_reference() -> None:
    assert card_of({}, "unknown")._replace(name=REFERENCE.name) == REFERENCE


def test_emulators_are_predicted_as_the_reference() -> None:
    with use_device(HostDevice()):
        assert card_in_use() is REFERENCE


@pytest.mark.parametrize("change", [{"bandwidth": 1e12}, {"cycles": 1e11}])
def test_a_slower_card_takes_longer_at_every_level(
    change: dict[str, float], rng: np.random.Generator
) -> None:
    state = rng.bit_generator.state
    fast = predicted(REFERENCE, rng)
    rng.bit_generator.state = state
    slow = predicted(REFERENCE._replace(**change), rng)
    assert fast.keys() == slow.keys()
    assert all(slow[k] > fast[k] for k in fast)


def test_what_the_cache_holds_is_read_again_for_less() -> None:
    small = REFERENCE._replace(cache_bytes=10 << 20)
    assert small.stream(5 << 20, REFERENCE) == 1.0
    assert small.stream(20 << 20, REFERENCE) == pytest.approx(2.0)
    assert small.stream(1 << 40, REFERENCE) == pytest.approx(1.0, abs=1e-4)
