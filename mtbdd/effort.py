"""The work of translating a model, held against the limits."""

from __future__ import annotations

from mtbdd.budget import check_budget
from mtbdd.faults import BuildError
from mtbdd.language.errors import Fault
from mtbdd.language.limits import Limits, current
from mtbdd.language.syntax import Position


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
                "give the variable a smaller range, compare it with constants only, or raise the limit "
                "'values'"
            )
            raise BuildError([Fault(position, message)])

    @staticmethod
    def _refuse(position: Position, count: int, name: str, what: str) -> None:
        message = (
            f"expected a model whose commands are worked out in fewer steps, got {count} {what} up to here; "
            f"give variables smaller ranges, split wide expressions, or raise the limit '{name}'"
        )
        raise BuildError([Fault(position, message)])
