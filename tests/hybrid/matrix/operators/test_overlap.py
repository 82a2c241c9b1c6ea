"""Products of parts while elements of others are under way have the bits of those that wait first."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hybrid
import hybrid.base.halo as halo
import hybrid.matrix.cpu.staged_product as stages
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import injected
from hybrid.base.communicators.threads import ThreadCommunicator
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.operators.hybrid_matrix import DividedMatrix
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.base.communicator import Exchange
from mtbdd.build.model import SymbolicModel
from tests.builders.part_questions import dealt
from tests.builders.processes import needs_mpi, run_processes
from tests.source_tree import ROOT

SPOILT = 1e6  # what is read before it has come makes a result that is wrong, and a number
MODELS: dict[str, dict[str, Any]] = {
    "kanban": {"t": 2},
    "fms": {"n": 2},
    "tandem": {"c": 63},
    "brp": {"N": 16, "MAX": 2},
}
CASES = [*((name, "row-types") for name in sorted(MODELS)), ("tandem", "tasks")]


class Watched(Exchange):
    """An exchange whose elements come at its end, and how often it was given time."""

    moved = 0

    def advance(self) -> None:
        Watched.moved += 1


@pytest.fixture
def overlapping(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Let parts in threads multiply as processes do, or wait first; what has not come is spoilt."""

    def start(
        self: ThreadCommunicator, outgoing: Sequence[NDArray[Any]], incoming: Sequence[NDArray[Any]]
    ) -> Exchange:
        for place in incoming:
            place.fill(SPOILT)
        return Watched(lambda: self.exchange(outgoing, incoming))

    def room(*shape: int) -> NDArray[np.float64]:
        return np.full(shape, SPOILT)

    def switch(is_on: bool) -> None:
        Watched.moved = 0
        monkeypatch.setattr(ThreadCommunicator, "carries", is_on)

    monkeypatch.setattr(ThreadCommunicator, "start", start)
    monkeypatch.setattr(halo, "aligned_empty", room)
    monkeypatch.setattr(stages, "_LEAST_TERMS", 1)
    monkeypatch.setattr(stages, "_STAGE_TERMS", 100)
    return switch


def small_groups(own: SymbolicModel, representation: Any = "row-types") -> CheckOptions:
    """Return options for groups of a few rows, some of which need nothing of other parts in a small model."""
    matrix = own.submatrix(own.index, own.index, layer=0 if own.is_mdp else None)
    return CheckOptions(backend="cpu", representation=representation, level=max(matrix.n_levels - 6, 0))


@pytest.mark.parametrize(("name", "representation"), CASES)
def test_products_and_steps_have_the_bits_of_those_that_wait_first(
    name: str, representation: Any, overlapping: Callable[[bool], None], rng: np.random.Generator
) -> None:
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=MODELS[name])

    def results(own: SymbolicModel) -> list[list[float]]:
        matrix = injected(own.submatrix(own.index, own.index), small_groups(own, representation))
        assert isinstance(matrix, DividedMatrix)
        x, out = np.random.default_rng(own.index.size).random(own.index.size), np.empty(own.index.size)
        found = [matrix.row_sums().tolist(), matrix.multiply(x).tolist()]
        for b in (None, x):
            found.append(list(matrix.jacobi_step(x, out, b, 1.0 + x, 0.9)))
            found.append(out.tolist())
            x = out.copy()
        return found

    for parts in [(1, 2, 3, 4, 7)[CASES.index((name, representation)) % 5]]:
        owners = dealt(model, parts, rng)
        overlapping(False)
        wanted = in_parts(model, parts, results, owners)
        assert Watched.moved == 0
        overlapping(True)
        assert in_parts(model, parts, results, owners) == wanted
        assert parts == 1 or Watched.moved > 0


ASKED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "kanban": ({"t": 1}, ['R{"throughput"}=? [ S ]', "P=? [ F<=2 w1=1 ]"]),
    "coin": ({"K": 1}, ['Pmin=? [ F "decided" & "all_heads" ]', 'Pmax=? [ F<=20 "decided" ]']),
}


@pytest.mark.parametrize("name", sorted(ASKED))
def test_answers_have_the_bits_of_those_that_wait_first(
    name: str, overlapping: Callable[[bool], None], rng: np.random.Generator
) -> None:
    constants, questions = ASKED[name]
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=constants)
    properties = resolve_properties(parse_properties(";\n".join(questions)), model.source).properties

    def answers(own: SymbolicModel) -> list[Answer]:
        return [Checker(own, small_groups(own)).answer(prop) for prop in properties]

    for parts in [(2, 3, 4, 7)[sorted(ASKED).index(name) % 4]]:
        owners, found = dealt(model, parts, rng), []
        for is_on in (False, True):
            overlapping(is_on)
            told = in_parts(model, parts, answers, owners)
            found.append([(a.value, a.lower, a.upper, a.error, a.statistics.iterations) for a in told])
        assert found[0] == found[1]
        assert Watched.moved > 0


_TWO = """
import numpy as np
import hybrid, hybrid.matrix.cpu.staged_product as stages
from hybrid.analysis.systems import injected
from hybrid.checking.in_parts import in_parts
from hybrid.base.communicators.mpi import mpi_communicator
from hybrid.analysis.run.options import CheckOptions
stages._LEAST_TERMS = stages._STAGE_TERMS = 1000
alike = mpi_communicator()
assert alike.carries
n = 1 << 17
step = f"0.5 : (s'=mod(2*s, {n})) + 0.5 : (s'=mod(2*s + 1, {n}))"
model = hybrid.parse(f"dtmc module m s : [0..{n - 1}]; [] true -> {step}; endmodule")
def results(own):
    found = []
    for carries in (True, False):
        alike.carries = carries
        matrix = injected(own.submatrix(own.index, own.index), CheckOptions(backend="cpu"))
        assert bool(matrix.matrix.product._stages.early) == carries and matrix.halo.size * 8 > 65536
        x = np.random.default_rng(alike.rank).random(own.index.size)
        for _ in range(6):
            x = matrix.multiply(x)
            matrix.jacobi_step(x, y := np.empty_like(x), None, 1.0 + x, 0.9)
            x = y / alike.greatest(y.max())
        found.append(x)
    assert (found[0] == found[1]).all()
    return found
in_parts(model, alike, results)
print(f"alike {alike.rank}")
"""

_FAILING = """
import hybrid, hybrid.matrix.cpu.staged_product as stages
from mpi4py import MPI
from hybrid.base.communicators.mpi import _Requests
stages._LEAST_TERMS = stages._STAGE_TERMS = 1000
model = hybrid.load("examples/kanban.prism", constants={"t": 2})
advance, calls = _Requests.advance, []
def fails(self):
    calls.append(1)
    if MPI.COMM_WORLD.Get_rank() == 1 and len(calls) > 100:
        raise KeyboardInterrupt("of one process")
    advance(self)
_Requests.advance = fails
hybrid.check(model, "P=? [ true U<=1e6 w1=1 & w2=1 & w3=1 & w4=1 ]", ranks=MPI.COMM_WORLD)
"""


@needs_mpi
def test_two_processes_have_the_bits_of_those_that_wait_first() -> None:
    found = run_processes(2, sys.executable, "-c", _TWO)
    assert found.returncode == 0, found.stderr
    assert sorted(re.findall(r"alike \d", found.stdout)) == ["alike 0", "alike 1"]


@needs_mpi
def test_an_error_while_messages_are_under_way_ends_the_job() -> None:
    found = run_processes(2, sys.executable, "-c", _FAILING)
    assert found.returncode != 0
    assert "process 1 of 2: KeyboardInterrupt: of one process" in found.stderr
