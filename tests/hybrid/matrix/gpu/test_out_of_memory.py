"""A device without room at any moment: the message for it, never a wrong number, and the next check works."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device, use_device
from hybrid.__main__ import main
from hybrid.analysis.graphs import (
    decompose,
    mec_decomposition,
    model_graph,
)
from hybrid.analysis.graphs.components import (
    DeviceGraph,
)
from hybrid.checking.answer import Answer
from mtbdd.build.model import SymbolicModel
from tests.builders.chain_texts import GAMBLER, QUEUE
from tests.builders.mdp_texts import SLOW_WAY
from tests.builders.models import build
from tests.gpu_kernels.devices import DEVICES
from tests.gpu_kernels.failing import Failure, failing_device
from tests.gpu_kernels.host_device import COMPILER, HostDevice

Work = Callable[[], tuple[float, ...]]


def checking(text: str, prop: str, exact: float, **options: object) -> Callable[[], Work]:
    """A check whose answer is one number; bounds must hold the exact value."""

    def prepare() -> Work:
        model = build(text)

        def work() -> tuple[float, ...]:
            answer: Answer = hybrid.check(model, prop, backend="gpu", epsilon=1e-3, **options, throw=False)
            # What concerns the property becomes its error; running out of memory must not.
            assert answer.error is None, answer.error
            if answer.lower is not None:
                assert answer.lower <= exact * (1 + 1e-12)
                assert answer.upper >= exact * (1 - 1e-12)
            return (float(answer.value),)

        return work

    return prepare


def decomposing(text: str) -> Callable[[], Work]:
    """Both decompositions of a graph, as on the host."""

    def prepare() -> Work:
        model: SymbolicModel = build(text)
        graph = model_graph(model)
        expected = decompose(graph).labels.tolist(), mec_decomposition(graph).labels.tolist()

        def work() -> tuple[float, ...]:
            there = DeviceGraph.of(graph)
            assert there.decompose()[0].labels.tolist() == expected[0]
            assert there.mec_decomposition()[0].labels.tolist() == expected[1]
            return ()

        return work

    return prepare


EVERY = 16  # failures on a card after which the work is done again

EXPLICIT = {"engine": "explicit"}
CASES = {
    "chain": checking(GAMBLER, "P=? [ F x=goal ]", 76 / 211),
    "chain, estimate": checking(GAMBLER, "P=? [ F x=goal ]", 76 / 211, method="bicgstab"),
    "chain, steps": checking(GAMBLER, "P=? [ F<=2 x=goal ]", 0.16),
    "steady": checking(QUEUE, "S=? [ n=0 ]", 81 / 211),
    "decision process": checking(SLOW_WAY, "Pmax=? [ F x=2 ]", 0.6),
    "decision process, rewards": checking(SLOW_WAY, 'R{"tries"}max=? [ F x>=2 ]', 2.0),
    "explicit": checking(GAMBLER, "P=? [ F x=goal ]", 76 / 211, **EXPLICIT),
    "explicit decision process": checking(SLOW_WAY, "Pmin=? [ F x=2 ]", 0.25, **EXPLICIT),
    **{
        f"explicit, {storage}": checking(GAMBLER, "P=? [ F x=goal ]", 76 / 211, **EXPLICIT, storage=storage)
        for storage in ("msr", "cmsr-scan", "msr-stream", "csell")
    },
    "graph": decomposing(SLOW_WAY),
}


def numbers(kind: str, free: Failure) -> Iterable[int]:
    """Which allocations fail: the first and the last of every line; on the emulator, which is slow, some."""
    if kind == "host":
        return [*range(1, free.count, 1 + free.count // 4), free.count]
    first = {site: number for number, site in reversed([*enumerate(free.sites, 1)])}
    last = {site: number for number, site in enumerate(free.sites, 1)}
    return sorted({*first.values(), *last.values()})


@pytest.fixture(params=DEVICES)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "host" and COMPILER is None:
        pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
    return str(request.param)


ON_THE_EMULATOR = ("chain", "decision process", "explicit", "explicit decision process", "graph")


@pytest.mark.parametrize("name", CASES)
def test_memory_that_ends_at_an_allocation_is_told_and_nothing_else(kind: str, name: str) -> None:
    if kind == "host" and name not in ON_THE_EMULATOR:
        pytest.skip("one case of every kind is enough on the emulator")
    work = CASES[name]()
    with failing_device(kind, 0):
        expected = work()  # what is kept between checks is there now
    with failing_device(kind, 0) as (device, free):
        _assert_equal(work(), expected)
    assert free.count > 0
    failed = 0
    for place, number in enumerate(numbers(kind, free)):
        told = _told(kind, number, work, expected)
        failed += bool(told)
        if place % EVERY == 0 or kind == "host":
            with use_device(device):
                _assert_equal(work(), expected)
    with use_device(device):
        _assert_equal(work(), expected)
    # Some failures are made up for by another level or place; not all of them.
    assert failed > 0


def _told(kind: str, number: int, work: Work, expected: tuple[float, ...]) -> bool | None:
    """Return whether a failure ended the work with its message; None if no allocation has the number."""
    with failing_device(kind, number) as (device, failure):
        try:
            found = work()
        except MemoryError as error:
            assert failure.where is not None, "refused without a failure"
            assert "llocat" in str(error) or "free" in str(error), error
            return True
        except Exception as error:
            raise AssertionError(f"allocation {number} failed at {failure.where}") from error
        finally:
            device.synchronise()
    # Something else was tried, or nothing failed.
    _assert_equal(found, expected)
    return None if failure.where is None else False


def _assert_equal(found: tuple[float, ...], expected: tuple[float, ...]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-2)


@pytest.mark.parametrize("number", [1, 4])
def test_the_command_line_says_out_of_memory(
    kind: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gambler.prism"
    path.write_text(GAMBLER)
    arguments = ["check", str(path), "P=? [ F x=goal ]", "--backend", "gpu"]
    with failing_device(kind, number):
        assert main(arguments) == 1
    shown = capsys.readouterr()
    assert "not answered: out of memory: " in shown.out
    assert "Traceback" not in shown.err + shown.out


def test_a_failure_is_the_one_with_the_number() -> None:
    with failing_device("host", 2) as (device, failure):
        device.xp.zeros(3)
        device.xp.zeros(0)
        with pytest.raises(MemoryError, match="Unable to allocate 24 bytes"):
            device.xp.ones(3)
        device.xp.ones(3)
    assert failure.count == 3
    assert failure.where is not None


def test_the_emulator_itself_is_left_as_it_was() -> None:
    with failing_device("host", 1):
        pass
    device: Device = HostDevice()
    assert device.xp is np
