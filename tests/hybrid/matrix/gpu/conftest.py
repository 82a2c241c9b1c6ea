"""Tests of the GPU backend run on every device."""

import pytest


@pytest.fixture(autouse=True)
def everything_is_built_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of tests are few items, which the host would lay out; what the device does stays tested."""
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", -1)
