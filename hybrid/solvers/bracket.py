"""Bounds of all values as vectors of a workspace, and in the record of a solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.matrix.space.base import Clock, Status
from hybrid.matrix.space.bellman import BellmanOperator, Outcome
from hybrid.matrix.space.record import Kept, Numbers
from hybrid.matrix.space.workspace import Array, Pair


@dataclass(frozen=True, eq=False)
class Bracket:
    """Bounds in the workspace.

    Attributes
    ----------
    outcome : Outcome
    lower : array, shape (n,)
    upper : array, shape (n,), or None
        None if no bound was verified.
    spare : tuple of two arrays, shape (n,)
        Free for other uses.
    """

    outcome: Outcome
    lower: Array
    upper: Array | None
    spare: Pair


def keep_bounds(clock: Clock, found: Bracket) -> None:
    """Have bounds kept that are the solution, for runs to come."""
    if found.upper is None or found.outcome.status is not Status.CONVERGED:
        return
    lower, upper, outcome = found.lower, found.upper, found.outcome

    def state() -> tuple[Mapping[str, Array], Numbers]:
        numbers = {"iterations": outcome.iterations, "difference": outcome.difference}
        return {"lower": lower, "upper": upper}, numbers

    clock.keep(state, is_finished=True)


def told_again(operator: BellmanOperator, kept: Kept) -> Bracket:
    """Return the bounds that an earlier run has left."""
    numbers = kept.numbers
    outcome = Outcome(Status.CONVERGED, int(numbers["iterations"]), numbers["difference"])
    spare = operator.zeros(), operator.zeros()
    return Bracket(outcome, kept.vectors["lower"], kept.vectors["upper"], spare)
