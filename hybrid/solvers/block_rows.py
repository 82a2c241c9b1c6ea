"""Block rows of rows, written out: their components in order, and the equations of these between bounds.

A block row is a set of rows that refer to themselves and to rows of block rows before it
(:mod:`hybrid.solvers.topological`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.base.arrays import concatenated_ranges
from hybrid.matrix.cpu.csr import Components, CsrMatrix, csr_of, find_components
from hybrid.matrix.space.base import Clock, Criterion, Numbers, Status, Vector
from hybrid.matrix.space.bellman import BellmanOperator, DirectedSystem
from hybrid.matrix.space.bounded_solution import TINY, middle_of, width_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
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
    matrix : LinearOperator or ChoiceRows
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


_LONGEST_STAY = 0.999
"""Probability of a choice's staying in its state beyond which the state is iterated: dividing by what is
left would cost digits."""


class BlockRow:
    """States with their choices, or rows of a chain, which have one each; their numbers are those within it.

    Parameters
    ----------
    written : CsrMatrix or ChoiceRows
        Of the rows, in their order; columns are all rows.
    rows : ndarray, shape (k,), int64, or None
        Which they are, ascending; None of all rows.
    operator : DirectedSystem or ChoiceOperator
    course : BlockRowProgress

    Attributes
    ----------
    lower, upper : ndarray, float64
        Bounds of what is solved, zero of what is not.
    is_lenient : bool
        Whether a share of all of epsilon, and not of the block row's, may be taken off a relative bound.
    """

    def __init__(
        self,
        written: CsrMatrix | ChoiceRows,
        rows: Int64Array | None,
        operator: BellmanOperator,
        course: BlockRowProgress,
    ) -> None:
        from scipy.sparse import csr_array

        self._operator, self._rows, self._slack = operator, rows, operator.slack
        self._size = operator.size if rows is None else len(rows)
        self._choices = written if isinstance(written, ChoiceRows) else None
        if isinstance(written, ChoiceRows):
            self._ptr, gains, diagonal = written.choice_ptr, written.gains, np.ones(self._size)
            shape = len(gains), operator.size
            csr = csr_array((written.values, written.columns, written.offsets), shape=shape)
        else:
            assert isinstance(operator, DirectedSystem)
            chosen = slice(None) if rows is None else rows
            csr, gains, diagonal = written.csr, operator.b[chosen], operator.diagonal[chosen]
            self._ptr = np.arange(self._size + 1)
        with np.errstate(over="ignore"):  # of infinite errors no bound comes
            # lemma: topological, topological-choices, underflow
            self._lost = operator.underflow * np.repeat(diagonal, np.diff(self._ptr))
        self.is_lenient = self._choices is not None
        self.lower, self.upper = course.lower, course.upper
        self._diagonal, self._least, self._most, self._outside = diagonal, gains, gains, 0.0
        if rows is not None:
            # Rows that are not solved yet, these among them, are still zero.
            self._least, self._most, _ = self._flow(csr, self._lost, gains, gains)
            whole, csr = csr, csr[:, rows]
            self._outside = 2.0 * whole.nnz + csr.nnz
            self.lower, self.upper = np.zeros(len(rows)), np.zeros(len(rows))
        self._csr = csr
        # lemma: topological, topological-choices, directed-steps
        self._low, self._high = diagonal / (1.0 - self._slack), diagonal * (1.0 - self._slack)

    @cached_property
    def components(self) -> Components:
        """Its components in order; members of a group lead to each other."""
        from scipy.sparse import csr_array

        csr, size = self._csr, self._size
        graph = csr_array((csr.data, csr.indices, csr.indptr[self._ptr]), shape=(size, size))
        if self._choices is None:
            return find_components(CsrMatrix(graph))
        # On entries that come twice SciPy's search for components does not end.
        graph = graph.copy()
        graph.sum_duplicates()
        owner = np.repeat(np.arange(size), np.diff(self._ptr))
        choice = np.repeat(np.arange(len(owner)), np.diff(csr.indptr))
        is_stay = csr.indices == owner[choice]
        stays = np.bincount(choice[is_stay], csr.data[is_stay], minlength=len(owner))
        iterated = np.zeros(size, np.bool_)
        iterated[owner[stays > _LONGEST_STAY]] = True
        groups = self._within(None)
        if groups is not None:
            # A ring through the members of every group.
            members, following = groups.members, np.roll(groups.members, -1)
            following[np.append(groups.starts[1:], len(members)) - 1] = members[groups.starts]
            graph = graph + csr_array((np.ones(len(members)), (members, following)), shape=(size, size))
            # The value of a state without a choice comes from elsewhere.
            iterated[members] = True
        return find_components(CsrMatrix(graph), iterated)

    def substitute(self, alone: Int64Array, ceiling: float) -> None:
        """Write the bounds of rows whose successors are solved, in an order of solution."""
        from hybrid.matrix.cpu.choice_kernels import substitute_rows

        csr, own = self._csr, self._operator
        maximise = not isinstance(own, ChoiceOperator) or own.maximise
        substitute_rows(
            alone, self._ptr, csr.indptr, csr.indices, csr.data, self._least, self._most, self._low,
            self._high, maximise, self._slack, own.underflow, TINY, ceiling, self.lower, self.upper,
        )  # fmt: skip

    def component(self, chosen: Int64Array) -> ComponentSystem | None:
        """Return the equations of some rows, ascending; None where all of them are zero.

        Raises
        ------
        BeyondDoublesError

        Lemma: topological, topological-choices (docs/bounds.md).
        """
        counts = np.diff(self._ptr)[chosen].astype(np.int64)
        choices = concatenated_ranges(self._ptr[chosen], counts)
        block_row = self._csr[choices]
        below, above, is_reached = self._flow(
            block_row, self._lost[choices], self._least[choices], self._most[choices]
        )
        if not is_reached:
            return None
        part, rows, own, slack = block_row[:, chosen], self._choices, self._operator, self._slack
        if rows is None:
            diagonal, matrix = self._diagonal[chosen], CsrMatrix(part)

            def equations(b: Vector) -> BellmanOperator:
                return DirectedSystem(matrix, diagonal, b, slack, Optimistic.vectors)

        else:
            assert isinstance(own, ChoiceOperator)
            problem = ChoiceProblem(len(chosen), own.maximise, self._within(chosen), slack)
            layers, ptr = rows.layers[choices], np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))

            def equations(b: Vector) -> BellmanOperator:
                # Here: chains start quicker without.
                from hybrid.matrix.operators.explicit_choices import ExplicitChoices

                found = ChoiceRows(
                    ptr.astype(rows.choice_ptr.dtype), part.indptr.astype(rows.offsets.dtype),
                    part.indices.astype(rows.columns.dtype), part.data, b, layers,
                )  # fmt: skip
                return ExplicitChoices(found, problem)

        return ComponentSystem(below, above, int(part.nnz), equations)

    def work(self, entries: float) -> float:
        """Return the entries multiplied, with so many of larger components."""
        return self._outside + float(self._csr.nnz) + entries

    def let(self, level: int, bound: Vector, value: float) -> None:
        """Set a bound of the rows of all levels from one on."""
        found = self.components
        for rows, ptr in ((found.single, found.single_ptr), (found.joined, found.joined_ptr)):
            bound[rows[ptr[level] :]] = value

    def keep(self, course: BlockRowProgress, rows: Int64Array) -> None:
        """Write the bounds where those of all rows are."""
        if self.lower is not course.lower:
            course.lower[rows], course.upper[rows] = self.lower, self.upper

    def _flow(
        self, block_row: csr_array, lost: Vector, least: Vector, most: Vector
    ) -> tuple[Vector, Vector, bool]:
        """Return bounds on what flows into choices, that to be added included, and whether anything does.

        Products may have vanished: what is reached is asked of the signs.

        Lemma: topological, topological-choices (docs/bounds.md).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            reached = (most > 0.0) | ((block_row != 0.0) @ (self.upper > 0.0))
            lost = np.where(reached, lost, 0.0)  # lemma: topological, topological-choices, underflow
            # lemma: topological, topological-choices, underflow
            below = np.maximum(least + block_row @ self.lower - lost, 0.0)
            # lemma: topological, topological-choices, underflow
            above = most + block_row @ self.upper + lost
        if not bool(np.isfinite(above).all()):
            raise BeyondDoublesError
        return below, above, bool(reached.any())

    def _within(self, chosen: Int64Array | None) -> Quotient | None:
        """Return the groups among some rows, or all, as numbers of these."""
        groups = self._operator.groups if isinstance(self._operator, ChoiceOperator) else None
        if groups is None or not len(groups.starts):
            return None
        own = np.arange(self._operator.size) if self._rows is None else self._rows
        own = own if chosen is None else own[chosen]
        local = np.full(self._operator.size, -1, np.int64)
        local[own] = np.arange(len(own))
        place = local[groups.members]
        has = place[groups.starts] >= 0
        if not has.any():
            return None
        kept = groups.sizes[has]
        return Quotient(place[np.repeat(has, groups.sizes)], np.cumsum(kept) - kept, np.full(len(kept), -1))
