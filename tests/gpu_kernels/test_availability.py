from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator

import pytest

import gpu_kernels


@pytest.fixture(autouse=True)
def fresh_answer() -> Iterator[None]:
    gpu_kernels.unavailable_reason.cache_clear()
    yield
    gpu_kernels.unavailable_reason.cache_clear()


def fake_cupy(monkeypatch: pytest.MonkeyPatch, count: Callable[[], int]) -> None:
    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=count))
    monkeypatch.setitem(sys.modules, "cupy", module)


def test_availability_without_cupy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert not gpu_kernels.is_available()
    assert "pip install '.[gpu]'" in str(gpu_kernels.unavailable_reason())


def test_availability_without_driver_gives_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver")

    fake_cupy(monkeypatch, no_driver)
    assert not gpu_kernels.is_available()
    assert "cudaErrorInsufficientDriver" in str(gpu_kernels.unavailable_reason())


def test_availability_without_devices_is_false(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, lambda: 0)
    assert not gpu_kernels.is_available()
    assert "CUDA_VISIBLE_DEVICES" in str(gpu_kernels.unavailable_reason())


def test_availability_with_a_device_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy(monkeypatch, lambda: 2)
    assert gpu_kernels.is_available()
    assert gpu_kernels.unavailable_reason() is None


@pytest.mark.gpu
def test_availability_on_a_device_agrees_with_cupy() -> None:
    import cupy

    assert gpu_kernels.is_available()
    assert int(cupy.arange(300).sum()) == 44850


@pytest.mark.parametrize(("cards", "taken"), [(1, []), (2, [0, 1, 0, 1, 1]), (4, [0, 1, 2, 3, 3])])
def test_processes_take_cards_in_turn_and_the_same_ones_again(
    monkeypatch: pytest.MonkeyPatch, cards: int, taken: list[int]
) -> None:
    used: list[int] = []

    class Card:
        def __init__(self, number: int) -> None:
            self.number = number

        def use(self) -> None:
            used.append(self.number)

    fake_cupy(monkeypatch, lambda: cards)
    monkeypatch.setattr(sys.modules["cupy"].cuda, "Device", Card, raising=False)
    for number in (0, 1, 2, 3, 3):
        gpu_kernels.take_card(number)
    assert used == taken
