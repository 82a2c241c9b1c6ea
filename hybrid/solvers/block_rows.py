"""Block rows of rows, written out: their components in order, and the equations of these between bounds.

A block row is a set of rows that refer to themselves and to rows of block rows before it
(:mod:`hybrid.solvers.topological`).
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.cpu.csr import Components, CsrMatrix, csr_of, find_components
from hybrid.matrix.space.base import Clock, Criterion, Numbers, Status, Vector
from hybrid.matrix.space.bellman import BellmanOperator
from hybrid.matrix.space.bounded_solution import TINY, middle_of, width_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from hybrid.matrix.space.directed_system import DirectedSystem
from hybrid.solvers.optimistic import Optimistic
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Int64Array = NDArray[np.int64]

# Rows in the order of their solution.

_ENTRY_BYTES = 44  # of a transition, while components are found


class BlockRows(Protocol):
    """Rows of a square matrix without diagonal, or states with their choices, in the order of their solution.

    Attributes
    ----------
    entries : int
        Of the matrix, of all choices.
    nbytes : int
        Of the largest block row, written out, with what it takes to solve it, besides the method's vectors.
    """

    entries: int
    nbytes: int

    def __len__(self) -> int:
        """Return how many block rows there are, at least one."""

    def rows(self, number: int) -> Int64Array:
        """Return the rows of a block row, ascending."""

    def written(self, number: int) -> CsrMatrix | ChoiceRows:
        """Return what they hold, in their order, over all columns."""


class SingleBlockRow:
    """A matrix, or choices, written out: one block row; see `BlockRows`.

    Parameters
    ----------
    matrix : MatrixOperator or ChoiceRows
        On the host.

    Raises
    ------
    TypeError
        The matrix is not in compressed sparse rows.
    """

    def __init__(self, matrix: object) -> None:
        written = matrix if isinstance(matrix, ChoiceRows) else csr_of(matrix)
        if written is None:
            raise TypeError(
                f"matrix: expected compressed sparse rows (CsrMatrix), got {type(matrix).__name__}; "
                "use Optimistic or Interval for it"
            )
        self._written = written
        if isinstance(written, ChoiceRows):
            self._size, self.entries = written.size, len(written.columns)
            self.nbytes = _ENTRY_BYTES * self.entries
        else:
            self._size, self.entries, self.nbytes = written.shape[0], int(written.csr.nnz), 0

    def __len__(self) -> int:
        return 1

    def rows(self, number: int) -> Int64Array:
        """See `BlockRows.rows`."""
        return np.arange(self._size)

    def written(self, number: int) -> CsrMatrix | ChoiceRows:
        """See `BlockRows.written`."""
        return self._written


# Progress of a solution: its bounds, the work done, and the checkpoint.

_RECORD = "topological strips"


class BlockRowProgress:
    """The bounds of all rows while block rows are solved one after another.

    Parameters
    ----------
    size : int
        Rows of all block rows.
    block_rows : BlockRows

    Attributes
    ----------
    lower, upper : ndarray, shape (size,), float64
        Zero where nothing is solved yet.
    number, level : int
        The block row that is solved next, and which of its levels.
    iterations : int
        Of all larger components, and one for all rows that are alone.
    work : float
        Entries that were multiplied, each as often as it was.
    entries : float
        Those of the larger components of this block row.
    """

    def __init__(self, size: int, block_rows: BlockRows) -> None:
        self._block_rows = block_rows
        self.lower, self.upper = np.zeros(size), np.zeros(size)
        self.number = self.level = 0
        self.iterations, self.work, self.entries = 1, 0.0, 0.0

    @cached_property
    def _order(self) -> int:
        """A digest of which rows are in which block row: another level makes other block rows."""
        digest = 0
        for number in range(len(self._block_rows)):
            rows = self._block_rows.rows(number)
            digest = zlib.crc32(rows.astype(np.int64).tobytes(), zlib.crc32(b"%d" % rows.size, digest))
        return digest

    def resume(self, clock: Clock) -> None:
        """Go on from what an earlier run with the same block rows has left."""
        kept = clock.resumed(np, _RECORD, self.lower.size)
        if kept is None or int(kept.numbers["order"]) != self._order:
            return
        self.lower[...], self.upper[...] = kept.vectors["lower"], kept.vectors["upper"]
        self.number, self.level = int(kept.numbers["strip"]), int(kept.numbers.get("level", 0))
        self.iterations, self.work = int(kept.numbers["iterations"]), kept.numbers["work"]
        self.entries = kept.numbers.get("entries", 0.0)
        begin = self.number + (self.level > 0)
        self._let(begin, self.lower, 0.0)
        self._let(begin, self.upper, 0.0)

    def state(self) -> tuple[Mapping[str, Vector], Numbers]:
        """Return what a run to come needs; see `hybrid.matrix.space.base.State`."""
        numbers = {
            "strip": self.number, "level": self.level, "iterations": self.iterations, "work": self.work,
            "entries": self.entries, "order": self._order,
        }  # fmt: skip
        return {"lower": self.lower, "upper": self.upper}, numbers

    def done(self, work: float) -> None:
        """Go on to the next block row."""
        self.number, self.level = self.number + 1, 0
        self.work, self.entries = self.work + work, 0.0

    def end(self, status: Status, ceiling: float) -> Vector:
        """Leave nothing that is no bound, and return the values; `ceiling` bounds all of them."""
        if status is Status.INTERRUPTED:
            # Nothing but zero is known below the values of the block rows to come.
            self._let(self.number, self.upper, ceiling)
        elif status is not Status.CONVERGED:
            self.upper[:] = np.inf
        return middle_of(self.lower, self.upper) if status is Status.CONVERGED else self.lower

    def width(self, criterion: Criterion) -> float:
        """Return how far the bounds are apart; see `width_of`."""
        with np.errstate(invalid="ignore"):
            return float(width_of(criterion, self.upper - self.lower, self.lower))

    def _let(self, begin: int, bound: Vector, value: float) -> None:
        """Set a bound of the rows of all block rows from one on."""
        for later in range(begin, len(self._block_rows)):
            bound[self._block_rows.rows(later)] = value


# A block row that is written out: its components, rows that are alone, and the equations of larger
# components.


class BeyondDoublesError(Exception):
    """The right-hand side of a component is no finite number."""


class ComponentSystem(Record, eq=False):
    """Equations of larger components that do not lead to each other.

    Attributes
    ----------
    below, above : ndarray, float64
        What flows in: bounds on their right-hand sides, or on their gains.
    entries : int
    operator : callable
        Returns the equations for a right-hand side.
    """

    below: Vector
    above: Vector
    entries: int
    operator: Callable[[Vector], BellmanOperator]


class BlockRow(ABC):
    """A block row; numbers of rows are those within it.

    Attributes
    ----------
    lower, upper : ndarray, float64
        Bounds of what is solved, zero of what is not.
    is_lenient : bool
        Whether a share of all of epsilon, and not of the block row's, may be taken off a relative bound.
    """

    lower: Vector
    upper: Vector
    is_lenient: ClassVar[bool]

    @property
    @abstractmethod
    def components(self) -> Components:
        """Its components in order."""

    @abstractmethod
    def places(self, chosen: Int64Array) -> Int64Array:
        """Return where `lower` and `upper` have some rows."""

    @abstractmethod
    def substitute(self, alone: Int64Array, ceiling: float) -> None:
        """Write the bounds of rows whose successors are solved, in an order of solution."""

    @abstractmethod
    def component(self, chosen: Int64Array) -> ComponentSystem | None:
        """Return the equations of some rows, ascending; None where all of them are zero.

        Raises
        ------
        BeyondDoublesError
        """

    @abstractmethod
    def work(self, entries: float) -> float:
        """Return the entries multiplied, with so many of larger components."""

    def let(self, level: int, bound: Vector, value: float) -> None:
        """Set a bound of the rows of all levels from one on."""
        found = self.components
        for rows, ptr in ((found.single, found.single_ptr), (found.joined, found.joined_ptr)):
            bound[self.places(rows[ptr[level] :])] = value

    def keep(self, course: BlockRowProgress, rows: Int64Array) -> None:
        """Write the bounds where those of all rows are."""
        if self.lower is not course.lower:
            course.lower[rows], course.upper[rows] = self.lower, self.upper


class LinearBlockRow(BlockRow):
    """Rows of a chain.

    Parameters
    ----------
    written : CsrMatrix
        The rows, over all columns.
    rows : ndarray, shape (k,), int64, or None
        Which they are; None of all rows.
    operator : DirectedSystem
    course : BlockRowProgress
    """

    is_lenient = False

    def __init__(
        self, written: CsrMatrix, rows: Int64Array | None, operator: DirectedSystem, course: BlockRowProgress
    ) -> None:
        self._slack, self._underflow = operator.slack, operator.underflow
        self._diagonal, self._least, self._most = operator.diagonal, operator.b, operator.b
        self._csr, self._outside = written.csr, 0.0
        self.lower, self.upper = course.lower, course.upper
        if rows is not None:
            self._diagonal, b = operator.diagonal[rows], operator.b[rows]
            # Rows that are not solved yet, these among them, are still zero.
            self._least, self._most, _ = self._flow(written.csr, self._diagonal, b, b)
            self._csr = written.csr[:, rows]
            self._outside = 2.0 * written.csr.nnz + self._csr.nnz
            self.lower, self.upper = np.zeros(len(rows)), np.zeros(len(rows))
        # lemma: topological, directed-steps
        self._low, self._high = self._diagonal * (1.0 + self._slack), self._diagonal * (1.0 - self._slack)

    @cached_property
    def components(self) -> Components:
        """See `BlockRow.components`."""
        return find_components(CsrMatrix(self._csr))

    def places(self, chosen: Int64Array) -> Int64Array:
        """See `BlockRow.places`."""
        return chosen

    def substitute(self, alone: Int64Array, ceiling: float) -> None:
        """See `BlockRow.substitute`."""
        from hybrid.matrix.cpu.choice_kernels import substitute_csr

        csr = self._csr
        substitute_csr(
            alone, csr.indptr, csr.indices, csr.data, self._least, self._most, self._low, self._high,
            self._underflow, TINY, ceiling, self.lower, self.upper,
        )  # fmt: skip

    def component(self, chosen: Int64Array) -> ComponentSystem | None:
        """See `BlockRow.component`."""
        block_row, diagonal = self._csr[chosen], self._diagonal[chosen]
        below, above, is_reached = self._flow(block_row, diagonal, self._least[chosen], self._most[chosen])
        if not is_reached:
            return None
        part = CsrMatrix(block_row[:, chosen])

        def operator(b: Vector) -> DirectedSystem:
            return DirectedSystem(part, diagonal, b, self._slack, Optimistic.vectors)

        return ComponentSystem(below, above, int(part.csr.nnz), operator)

    def work(self, entries: float) -> float:
        """See `BlockRow.work`."""
        count = int(self._csr.nnz)
        return self._outside + (1 + math.ceil(entries / max(count, 1))) * count

    def _flow(
        self, block_row: csr_array, diagonal: Vector, least: Vector, most: Vector
    ) -> tuple[Vector, Vector, bool]:
        """Return bounds on what flows into rows, that to be added included, and whether anything does.

        Products may have vanished: what is reached is asked of the signs.

        Lemma: topological (docs/bounds.md).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            reached = (most > 0.0) | ((block_row != 0.0) @ (self.upper > 0.0))
            lost = np.where(reached, self._underflow * diagonal, 0.0)  # lemma: topological, underflow
            below = np.maximum(least + block_row @ self.lower - lost, 0.0)  # lemma: topological, underflow
            above = most + block_row @ self.upper + lost  # lemma: topological, underflow
        if not bool(np.isfinite(above).all()):
            raise BeyondDoublesError
        return below, above, bool(reached.any())


_LONGEST_STAY = 0.999
"""Probability of a choice's staying in its state beyond which the state is iterated: dividing by what is
left would cost digits."""


class ChoiceBlockRow(BlockRow):
    """States with their choices.

    Parameters
    ----------
    rows : ChoiceRows
        Of the states, in their order; columns are all unknown states.
    states : ndarray, shape (k,), int64
    operator : ChoiceOperator
    course : BlockRowProgress
    """

    is_lenient = True

    def __init__(
        self, rows: ChoiceRows, states: Int64Array, operator: ChoiceOperator, course: BlockRowProgress
    ) -> None:
        self._states, self._rows = states, rows
        # Scratch: -1 but for what a method sets for itself.
        self._local = np.full(operator.size, -1, np.int64)
        self._maximise, self._groups = operator.maximise, operator.groups
        self._slack, self._underflow = operator.slack, operator.underflow
        self.lower, self.upper = course.lower, course.upper

    @cached_property
    def components(self) -> Components:
        """See `BlockRow.components`; members of a group lead to each other."""
        from scipy.sparse import csr_array

        rows, count = self._rows, len(self._states)
        self._local[self._states] = np.arange(count)
        target = self._local[rows.columns]
        source = np.repeat(np.arange(count), np.diff(rows.offsets[rows.choice_ptr]))
        is_inside = target >= 0
        is_stay = source == target
        iterated = np.zeros(count, np.bool_)
        if bool(is_stay.any()):
            choice = np.repeat(np.arange(len(rows.gains)), np.diff(rows.offsets))[is_stay]
            stays = np.bincount(choice, rows.values[is_stay], minlength=len(rows.gains))
            owner = np.repeat(np.arange(count), np.diff(rows.choice_ptr))
            iterated[owner[stays > _LONGEST_STAY]] = True
        is_inside &= ~is_stay
        source, target = source[is_inside], target[is_inside]
        if self._groups is not None:
            # A ring through the members of every group.
            members, starts = self._groups.members, self._groups.starts
            following = np.roll(members, -1)
            following[np.append(starts[1:], len(members)) - 1] = members[starts]
            own = self._local[members] >= 0
            source = np.concatenate((source, self._local[members[own]]))
            target = np.concatenate((target, self._local[following[own]]))
            # The value of a state without a choice comes from elsewhere.
            iterated[self._local[members[own]]] = True
        self._local[self._states] = -1
        graph = csr_array((np.ones(len(source), np.bool_), (source, target)), shape=(count, count))
        return find_components(CsrMatrix(graph), iterated)

    def places(self, chosen: Int64Array) -> Int64Array:
        """See `BlockRow.places`."""
        return self._states[chosen]

    def substitute(self, alone: Int64Array, ceiling: float) -> None:
        """See `BlockRow.substitute`."""
        from hybrid.matrix.cpu.choice_kernels import substitute_choices

        rows = self._rows
        substitute_choices(
            alone, self._states, rows.choice_ptr, rows.offsets, rows.columns, rows.values, rows.gains,
            self._maximise, self._slack, self._underflow, TINY, ceiling, self.lower, self.upper,
        )  # fmt: skip

    def component(self, chosen: Int64Array) -> ComponentSystem | None:
        """See `BlockRow.component`.

        Lemma: topological-choices (docs/bounds.md).
        """
        rows, states = self._rows, self._states[chosen]
        self._local[states] = np.arange(len(states))
        try:
            counts = np.diff(rows.choice_ptr)[chosen].astype(np.int64)
            choices = concatenated_ranges(rows.choice_ptr[chosen], counts)
            lengths = np.diff(rows.offsets)[choices].astype(np.int64)
            entries = concatenated_ranges(rows.offsets[choices], lengths)
            columns, values = rows.columns[entries], rows.values[entries]
            target = self._local[columns]
            groups = self._within()
        finally:
            self._local[states] = -1
        owner = np.repeat(np.arange(len(choices)), lengths)
        is_outside = target < 0
        outside, weight, at = columns[is_outside], values[is_outside], owner[is_outside]
        gains = rows.gains[choices]
        with np.errstate(over="ignore", invalid="ignore"):
            reached = np.bincount(at, self.upper[outside] > 0.0, minlength=len(choices)) > 0.0
            reached |= gains > 0.0
            lost = np.where(reached, self._underflow, 0.0)
            below = gains + np.bincount(at, weight * self.lower[outside], minlength=len(choices))
            below = np.maximum(below - lost, 0.0)  # lemma: topological-choices, underflow
            # lemma: topological-choices, underflow
            above = gains + np.bincount(at, weight * self.upper[outside], minlength=len(choices)) + lost
        if not bool(np.isfinite(above).all()):
            raise BeyondDoublesError
        if not reached.any():
            return None
        is_inside = ~is_outside
        inner = np.bincount(owner[is_inside], minlength=len(choices))
        problem = ChoiceProblem(len(states), self._maximise, groups, self._slack)
        ptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(rows.choice_ptr.dtype)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(inner))).astype(rows.offsets.dtype)
        targets, weights = target[is_inside].astype(rows.columns.dtype), values[is_inside]

        def operator(own: Vector) -> ChoiceOperator:
            # Here: chains start quicker without.
            from hybrid.matrix.operators.explicit_choices import ExplicitChoices

            layers = rows.layers[choices]
            return ExplicitChoices(ChoiceRows(ptr, offsets, targets, weights, own, layers), problem)

        return ComponentSystem(below, above, len(weights), operator)

    def work(self, entries: float) -> float:
        """See `BlockRow.work`."""
        return 2.0 * len(self._rows.columns) + entries

    def _within(self) -> Quotient | None:
        """Return the groups among the states that `local` numbers, in their order."""
        if self._groups is None:
            return None
        place = self._local[self._groups.members]
        has = place[self._groups.starts] >= 0 if len(self._groups.starts) else np.zeros(0, np.bool_)
        if not has.any():
            return None
        sizes = self._groups.sizes
        kept = sizes[has]
        return Quotient(place[np.repeat(has, sizes)], np.cumsum(kept) - kept, np.full(len(kept), -1))
