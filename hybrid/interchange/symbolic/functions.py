"""Functions of a symbolic file: gathered into a forest for writing, made from one on reading."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hybrid.interchange.explicit_model import MOST_UNITS
from hybrid.interchange.symbolic.header import FunctionEntry
from mtbdd.faults import BuildError
from mtbdd.forest import Forest
from mtbdd.language.errors import Fault
from mtbdd.language.syntax import Position
from mtbdd.manager import Manager, Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.value_diagrams import ValueDiagrams


def _bits(manager: Manager) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the levels of all row and column bits, from the top of the order."""
    pairs = [(manager.row_level(i), manager.column_level(i)) for i in range(manager.n_bits)]
    return np.array(pairs, dtype=np.int64).reshape(-1)


class FunctionWriter:
    """Gathers functions of one manager; equal ones are written once.

    Parameters
    ----------
    manager : Manager
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._work = ValueDiagrams(manager.index_level)
        self._roots: dict[int, int] = {}

    def states(self, states: Node) -> int:
        """Return the number of a set."""
        return self._add(SymbolicMatrix(self._manager, states, np.ones(1)))

    def function(self, function: SymbolicMatrix) -> FunctionEntry:
        """Return the number of a function, with its units.

        Raises
        ------
        BuildError
            Nothing is known of the error of its values, or more than a file may declare.
        """
        if not math.isfinite(function.units):
            message = "expected numbers with a known error, got sums of both signs that may cancel"
            raise BuildError([Fault(Position("model", 1, 1), message)])
        if function.units > MOST_UNITS:
            message = (
                f"expected numbers that are known to eight digits, got errors of {function.units:g} units"
            )
            raise BuildError([Fault(Position("model", 1, 1), message)])
        return FunctionEntry(self._add(function), function.units)

    def _add(self, function: SymbolicMatrix) -> int:
        return self._roots.setdefault(self._work.load(function), len(self._roots))

    def forest(self) -> Forest:
        """Return all functions."""
        return Forest.of(self._work, np.array(list(self._roots), dtype=np.int64), _bits(self._manager))


class FunctionReader:
    """Makes the functions of a forest in a manager.

    Parameters
    ----------
    manager : Manager
    forest : Forest
        Checked.

    Raises
    ------
    ValueError
        The forest has other bits than the manager.
    """

    def __init__(self, manager: Manager, forest: Forest) -> None:
        if forest.levels.size != 2 * manager.n_bits:
            raise ValueError(
                f"expected {2 * manager.n_bits} bits, as the variables have, got {forest.levels.size}"
            )
        self._manager = manager
        self._work = ValueDiagrams(manager.index_level)
        self._ids = forest.into(self._work, _bits(manager))

    def sets(self, numbers: Sequence[int]) -> dict[int, Node]:
        """Return functions as sets of states.

        Raises
        ------
        ValueError
            One depends on column bits or has other values than 0 and 1.
        """
        distinct = sorted(set(numbers))
        ids = self._ids[distinct]
        self._check_rows(ids, "a set of states")
        if not np.isin(self._work.values(ids), (0.0, 1.0)).all():
            raise ValueError("expected a set of states, got a function with other values than 0 and 1")
        return dict(zip(distinct, self._work.store_sets(self._manager, ids), strict=True))

    def matrix(self, entry: FunctionEntry) -> SymbolicMatrix:
        """Return a function of row and column bits."""
        return self._work.store(self._manager, int(self._ids[entry.root]), entry.units)

    def vector(self, entry: FunctionEntry, states: Node) -> SymbolicMatrix:
        """Return a function of row bits.

        Raises
        ------
        ValueError
            It depends on column bits, or is not 0 outside the given states.
        """
        self._check_rows(self._ids[[entry.root]], "a reward")
        found = self.matrix(entry)
        if found.support() & ~states != self._manager.false:
            raise ValueError("expected rewards of the states alone, got one elsewhere")
        return found

    def _check_rows(self, ids: np.ndarray[tuple[int], np.dtype[np.int64]], what: str) -> None:
        levels = [level for level, _ in self._work.below(ids) if level < self._work.bottom]
        if any(level % 3 for level in levels):
            raise ValueError(f"expected {what}, got a function of columns")
