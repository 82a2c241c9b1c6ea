"""The devices that kernels are tested on: the emulator on the host, and the real one with the marker gpu."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpu_kernels import CudaDevice, Device, use_device
from tests.gpu_kernels.host_device import COMPILER, HostDevice

DEVICES = ("host", pytest.param("cuda", marks=pytest.mark.gpu))


@contextmanager
def device_of(kind: str) -> Iterator[Device]:
    """Make a device of a kind the current one: the emulator for "host", a card for "cuda"."""
    if kind == "host":
        if COMPILER is None:
            pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
        with use_device(HostDevice()) as host:
            yield host
    else:
        with use_device(CudaDevice()) as cuda:
            yield cuda


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device, made the current one."""
    with device_of(request.param) as found:
        yield found


def to_numpy(array: object) -> object:
    """Return a device array as a NumPy array."""
    return array.get() if hasattr(array, "get") else array
