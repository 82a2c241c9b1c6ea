"""The work of translating a model, held against the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mtbdd.base.budget import check_budget
from mtbdd.language.faults import BuildError
from mtbdd.language.errors import Fault
from mtbdd.language.limits import Limits, current, raised
from mtbdd.language.syntax import Position

_ENTRY, _PAIR, _VALUE, _UPDATE = 0.01, 16.0, 50.0, 400.0
"""Microseconds, as a rule, that an entry of a table takes, a pair, a value told apart, an update."""

_watch: ContextVar[Callable[[float], None] | None] = ContextVar("watch", default=None)


class EffortError(BuildError):
    """The limits do not suffice for a model's commands as diagrams."""


@contextmanager
def watched(watch: Callable[[float], None]) -> Iterator[None]:
    """Tell `watch`, in a block, what work is about to be done: microseconds by counts, not by a clock.

    What it raises ends the work.
    """
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def _tell(microseconds: float) -> None:
    """Tell whoever watches."""
    watch = _watch.get()
    if watch is not None:
        watch(microseconds)


class Effort:
    """Counts the steps of a translation and refuses more than the limits allow.

    Counts, not times, decide: every machine refuses the same texts.

    Parameters
    ----------
    limits : Limits, optional
        By default those that hold where it is made.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or current()
        self._tables = 0
        self._pairs = 0

    def table(self, steps: int, position: Position) -> None:
        """Count the entries of a table, once an operator.

        Raises
        ------
        BuildError
            There are more than the limits allow, all tables together.
        """
        check_budget()
        self._tables += steps
        if self._tables > self.limits.table_steps:
            self._refuse(position, self._tables, "table_steps", "entries of tables")
        _tell(_ENTRY * steps)

    def pairs(self, count: int, position: Position) -> None:
        """Count pairs of values or of sets that are put together.

        Raises
        ------
        BuildError
            There are more than the limits allow, all of them together.
        """
        self._pairs += count
        if self._pairs > self.limits.pair_steps:
            self._refuse(position, self._pairs, "pair_steps", "pairs of values")
        _tell(_PAIR * count)

    def updates(self, count: int) -> None:
        """Count the updates of a command."""
        _tell(_UPDATE * count)

    def values(self, count: int, position: Position) -> None:
        """Refuse an expression or a variable that takes too many values.

        Raises
        ------
        BuildError
            There are more than the limits allow.
        """
        if count > self.limits.values:
            message = (
                f"expected at most {self.limits.values} values where they must be told apart, got {count}; "
                "give the variable a smaller range, compare it with constants only, or "
                f"{raised('values', count)}"
            )
            raise EffortError([Fault(position, message)])
        _tell(_VALUE * count)

    @staticmethod
    def _refuse(position: Position, count: int, name: str, what: str) -> None:
        message = (
            f"expected a model whose commands are worked out in fewer steps, got {count} {what} up to here; "
            f"give variables smaller ranges, split wide expressions, or {raised(name, 2 * count)}"
        )
        raise EffortError([Fault(position, message)])
