"""CUDA started early: what is asked of the driver, and that nothing is told where it is not there."""

from __future__ import annotations

import ctypes
import importlib.util
from typing import Any

import pytest

from gpu_kernels import begin_start
from gpu_kernels.runtime import availability as early_start
from hybrid.__main__ import main
from hybrid.base.errors import OptionError


class Driver:
    """Notes the calls, and answers each with a status."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[str] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: object) -> int:
            self.calls.append(name)
            return 100 if name in self._failing else 0

        return call


def start(monkeypatch: pytest.MonkeyPatch, driver: Driver | OSError, card: int) -> None:
    def load(name: str) -> Driver:
        if isinstance(driver, OSError):
            raise driver
        return driver

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(ctypes, "CDLL", load)
    thread = begin_start(card)
    assert thread is not None
    assert not thread.daemon  # the process waits for it
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("card", "failing", "calls"),
    [
        (0, (), ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain"]),
        (0, ("cuInit",), ["cuInit"]),
        (7, ("cuDeviceGet",), ["cuInit", "cuDeviceGetCount", "cuDeviceGet"]),
    ],
)
def test_what_the_driver_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, card: int, failing: tuple[str, ...], calls: list[str]
) -> None:
    driver = Driver(*failing)
    start(monkeypatch, driver, card)
    assert driver.calls == calls


def test_cards_are_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Four(Driver):
        def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802 - the driver's name
            count._obj.value = 4
            return 0

        def cuDeviceGet(self, device: Any, card: int) -> int:  # noqa: N802 - the driver's name
            asked.append(card)
            return 0

    for card in (0, 3, 6):
        start(monkeypatch, Four(), card)
    assert asked == [0, 3, 2]


def test_no_driver_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    # An exception in a thread would be a warning, and warnings are errors.
    start(monkeypatch, OSError("libcuda.so.1: cannot open shared object file"), 0)


def test_nothing_is_started_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert begin_start(0) is None


def no_mpi() -> None:
    raise OptionError("no MPI in this process")


def test_processes_without_a_number_start_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    monkeypatch.setattr("gpu_kernels.begin_start", lambda card: found.append(card))
    monkeypatch.setattr("hybrid.base.communicators.mpi_communicator", no_mpi)
    for name in ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"):
        monkeypatch.delenv(name, raising=False)
    main(["check", "no such file.prism", "F", "--backend", "gpu", "--distributed", "--quiet"])
    assert found == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--backend", "cpu"], []),
        (["--backend", "reference"], []),
        (["--backend", "gpu"], [0]),
        (["--backend", "auto"], [0]),
        (["--backend", "auto", "--distributed"], []),
        (["--backend", "gpu", "--distributed"], [2]),
        (["--list"], []),
    ],
)
def test_commands_begin_where_a_device_may_be_used(
    monkeypatch: pytest.MonkeyPatch, more: list[str], expected: list[int]
) -> None:
    found: list[int] = []
    monkeypatch.setattr("gpu_kernels.begin_start", lambda card: found.append(card))
    monkeypatch.setattr("hybrid.base.communicators.mpi_communicator", no_mpi)
    monkeypatch.setenv("MPI_LOCALRANKID", "2")
    main(["check", "no such file.prism", "F", *more, "--quiet"])
    assert found == expected


@pytest.mark.gpu
def test_a_card_works_after_it() -> None:
    thread = begin_start(0)
    assert thread is not None
    thread.join()
    import cupy

    assert int(cupy.arange(4).sum()) == 6
    assert early_start._DRIVER == "libcuda.so.1"
