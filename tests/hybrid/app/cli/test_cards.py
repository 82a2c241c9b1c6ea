"""`hybrid cards`, with made-up cards."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.__main__ import main
from hybrid.app.cli import cards
from tests.builders.processes import needs_mpi

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a CuPy with three cards, of which the first two reach each other, with NCCL or without."""

    def installed(with_nccl: bool) -> None:
        def event() -> Any:
            return SimpleNamespace(record=lambda: None, synchronize=lambda: None)

        def properties(number: int) -> dict[str, bytes]:
            return {"name": b"Card", "uuid": bytes(16)}

        runtime = SimpleNamespace(
            getDeviceCount=lambda: 3,
            getDeviceProperties=properties,
            deviceGetPCIBusId=lambda number: f"0000:0{number}:00.0",
            deviceCanAccessPeer=lambda a, b: int({a, b} == {0, 1}),
            memGetInfo=lambda: (79 * 10**9, 80 * 10**9),
            memcpyPeerAsync=lambda *where: None,
        )
        cuda = SimpleNamespace(
            runtime=runtime, Device=lambda number: nullcontext(), Event=event,
            get_current_stream=lambda: SimpleNamespace(ptr=0),
            get_elapsed_time=lambda begin, end: 2.0**28 / 4e8,
        )  # fmt: skip
        array = SimpleNamespace(data=SimpleNamespace(ptr=0))
        if with_nccl:
            cuda.nccl = SimpleNamespace(get_version=lambda: 22809)
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(
            cuda=cuda, empty=lambda *shape: array, zeros=lambda *shape: array
        ))  # fmt: skip
        monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
        monkeypatch.setattr("gpu_kernels.device_problem", lambda: None)
        monkeypatch.setattr(cards, "_mpi", lambda: "made up")

    return installed


def test_who_reaches_whom(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(with_nccl=True)
    monkeypatch.setenv("HYBRID_CARRIER", "nccl")
    assert main(["cards", "--measure"]) == 0
    text = capsys.readouterr().out.splitlines()
    assert text[0] == "card 0  Card, 79 GB of 80 GB free"
    assert text[1] == f"        0000:00:00.0, UUID {'0' * 32}; writes to cards: 1"
    assert text[2:4] == ["        to card 1: 400 GB/s", "        to card 2: 400 GB/s"]
    assert text[9].endswith("0000:02:00.0, UUID " + "0" * 32 + "; writes to cards: none")
    assert text[-3:] == ["NCCL    22809", "MPI     made up", "HYBRID_CARRIER is nccl"]


def test_the_record(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(with_nccl=False)
    assert main(["cards", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [card["reaches"] for card in found["cards"]] == [[1], [0], []]
    assert found["nccl"].startswith("none: ") and found["problem"] is None
    assert "bytes_per_second" not in found["cards"][0]


@needs_mpi
def test_without_a_card(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("gpu_kernels.device_problem", lambda: "there is none")
    assert main(["cards"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("no card: there is none\nNCCL    not used without a card\nMPI     mpi4py ")
    monkeypatch.setattr(cards, "_ASK_MPI", "import no_such_module")
    assert "No module named" in cards._mpi()
