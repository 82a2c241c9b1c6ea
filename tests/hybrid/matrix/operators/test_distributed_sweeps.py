"""Sweeps of Gauss-Seidel over parts: one system for all of them, newest own values, fewer products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.operands import ArrivingVector
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.space.distributed import DistributedHostSpace, DistributedSweeps, EmptySweeps
from hybrid.matrix.space.host import HostSystem, space_of
from hybrid.matrix.space.swept import SweptSystem
from mtbdd.build.model import SymbolicModel
from tests.builders.part_questions import dealt
from tests.source_tree import ROOT

MODELS: dict[str, dict[str, Any]] = {"kanban": {"t": 2}, "fms": {"n": 2}, "tandem": {"c": 31}}


def swept_part(own: SymbolicModel) -> tuple[Any, DistributedHostSpace, np.ndarray]:
    """The own part of the rates, its vector space, and a diagonal that is greater than its rows."""
    rates = own.submatrix(own.index, own.index)
    matrix: Any = build_operator(rates, CheckOptions(backend="cpu"))
    space = space_of(matrix)
    assert isinstance(space, DistributedHostSpace) and isinstance(space.sweeps, DistributedSweeps)
    return matrix, space, 1.2 * matrix.row_sums() + 0.1


@pytest.mark.parametrize("name", MODELS)
def test_sweeps_of_all_parts_lead_to_the_solution(name: str, rng: np.random.Generator) -> None:
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=MODELS[name])

    def followed(own: SymbolicModel) -> list[float]:
        matrix, space, diagonal = swept_part(own)
        assert space.sweeps is not None
        # So near one another that b is positive: from zero, sweeps stay ahead of steps (Stein and Rosenberg).
        x = np.random.default_rng(own.index.size).uniform(0.9, 1.0, own.index.size)
        b = diagonal * x - matrix.multiply(x) + 0.25
        found, off = np.empty_like(x), []
        # A solution stays, but for rounding; what is less comes off the right-hand side.
        for descending in (False, True):
            space.sweeps.sweep(x, b, diagonal, found, 0.25, descending=descending)
            np.testing.assert_allclose(found, x, rtol=1e-12)
            space.sweeps.sweep(x, b, diagonal, found, 0.25, 0.5, descending=descending)
            np.testing.assert_allclose(found, x, rtol=1e-12)
        y, z = np.zeros_like(x), np.empty_like(x)
        for _ in range(6):
            space.sweeps.sweep(y, b, diagonal, z, 0.25)
            y, z = z, y
            off.append(space.communicator.greatest(float(np.abs(y - x).max(initial=0.0))))
        steps = np.zeros_like(x)
        for _ in range(6):
            matrix.jacobi_step(steps, z, b - 0.25, diagonal, 1.0)
            steps, z = z, steps
        return [*off, space.communicator.greatest(float(np.abs(steps - x).max(initial=0.0)))]

    for parts in ((1, 3), (2, 4), (3, 7))[list(MODELS).index(name) % 3]:
        *off, by_steps = in_parts(model, parts, followed, dealt(model, parts, rng))
        assert all(after < before for before, after in zip(off, off[1:], strict=False))
        # Some values are newer than those of a step.
        assert off[-1] < by_steps


def test_a_part_without_entries_sweeps_along() -> None:
    """Its rows are their right-hand sides, divided; others wait for its values."""

    class Nothing:
        def exchange(self, x: np.ndarray) -> ArrivingVector:
            return ArrivingVector(x, x)

    sweeps = DistributedSweeps(EmptySweeps(), Nothing())  # type: ignore[arg-type]
    x, b, diagonal, out = np.arange(4.0), np.ones(4), np.full(4, 2.0), np.empty(4)
    sweeps.sweep(x, b, diagonal, out, 0.5)
    assert out.tolist() == [0.25] * 4
    sweeps.sweep(x, None, diagonal, out, 0.5, 0.5)
    assert out.tolist() == (0.5 * x - 0.125).tolist()


@pytest.mark.parametrize(
    ("name", "question"), [("kanban", 'R{"throughput"}=? [ S ]'), ("tandem", 'R{"customers"}=? [ S ]')]
)
def test_averages_in_parts_take_fewer_products(
    name: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=MODELS[name])
    orders = set()
    own = SweptSystem.__init__

    def noted(self: SweptSystem, *arguments: Any) -> None:
        own(self, *arguments)
        orders.add((self.descending, self.jumps))

    monkeypatch.setattr(SweptSystem, "__init__", noted)
    swept = hybrid.check(model, question, ranks=3)
    # All parts have chosen alike.
    assert len(orders) == 1
    monkeypatch.setattr(HostSystem, "preconditioner", lambda *_: None)
    plain, alone = hybrid.check(model, question, ranks=3), hybrid.check(model, question)
    assert swept.kind == plain.kind == "certified"
    assert swept.statistics.products < plain.statistics.products
    for other in (plain, alone):
        assert swept.lower <= other.upper and other.lower <= swept.upper
