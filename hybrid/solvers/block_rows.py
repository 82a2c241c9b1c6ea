"""Block rows of rows, written out: their components in order, and the equations of these between bounds.

A block row is a set of rows that refer to themselves and to rows of block rows before it
(:mod:`hybrid.solvers.topological`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.cpu.csr import Components, CsrMatrix, csr_of, find_components
from hybrid.matrix.space.base import Clock, Criterion, Numbers, RecordedState, Status, Vector
from hybrid.matrix.space.bellman import BellmanOperator, BoundAccelerator, LowerIterationState
from hybrid.matrix.space.bounded_solution import TINY, WIDEST, middle_of, width_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from hybrid.matrix.space.directed_system import DirectedSystem
from hybrid.matrix.space.vector_space import Array, Pair, Steps
from hybrid.solvers.optimistic import Optimistic
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows


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


# Bounds block row by block row, where rows refer to themselves and to rows of block rows before them alone.
#
# A protocol that counts what it has sent goes on for thousands of steps, and an iteration over all rows takes
# a product for each. Block row by block row only those rows are iterated whose values are about to be known,
# until a step changes nothing in them.
#
# Above, f rounded up leaves ``y = f(y)`` so in all rows, which one step over all rows then verifies. Below,
# from a lower bound x, f rounded down leaves ``x = f(x)``, so that ``x <= f(x) <= f(f(x)) <= ...`` rise to
# the solution. Rows without cycles stand still after as many steps as their longest path has; where others do
# not within some time, the iteration over all rows goes on.

_BEGIN = 1024  # steps over all rows before block rows are looked for
_PASSING = 0.3  # relative change times steps: 1 where sums grow, less from where they settle geometrically
_AGAIN = 4  # times the steps before an attempt, until the next one
_WORTH = 2.0  # times the steps made: products that the block rows may take for each bound
_LEAST_SHARE = 1 / 16  # of these at least: the cost of an attempt that fails
_OF_ZEROS = 2  # vectors that their proof takes
_LOOKS = 4  # in as many steps as have been made, in the first block row
_MORE_LOOKS = 16  # the same in later ones, with the number of steps of the one before


class BlockRowBounds(BoundAccelerator):
    """Computes both bounds block row by block row; see :class:`hybrid.matrix.space.bellman.BoundAccelerator`.

    Parameters
    ----------
    operator : BellmanOperator
    criterion : Criterion
    find : callable
        Returns the block rows, or None; called when many steps have been made.
    otherwise : BoundAccelerator, optional
        What may take over besides.
    """

    def __init__(
        self,
        operator: BellmanOperator,
        criterion: Criterion,
        find: Callable[[], DeviceBlockRows | None],
        otherwise: BoundAccelerator | None,
    ) -> None:
        super().__init__(otherwise)
        self._operator, self._criterion, self._find = operator, criterion, find
        self._block_rows: DeviceBlockRows | None = None
        self._not_before: float = _BEGIN

    def budget(self, iterate: LowerIterationState, difference: float) -> float:
        """See `BoundAccelerator.budget`."""
        if iterate.made >= self._not_before:
            self._not_before = _AGAIN * iterate.made
            if self._passes(iterate.made):
                self._block_rows = self._block_rows or self._find()
                if self._block_rows is not None:
                    self._is_due = True
                    return _WORTH * iterate.made
                self._not_before = math.inf
        return super().budget(iterate, difference)

    def _passes(self, made: int) -> bool:
        """Whether values go on to be reached or to grow, and do not settle all together."""
        (_, relative) = self._operator.space.read(self._operator.down.changes)
        return not relative * made < _PASSING

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Attempt to find bounds; return the products made, those with parts of the matrix as shares.

        Notes
        -----
        It has succeeded if `width` is finite.  One vector more, and three where zeros are to be proved.
        """
        block_rows = self._block_rows if self._is_due and kept is None else None
        if block_rows is None:
            return super().solve(iterate, most, limit, clock, kept)
        operator, self.width, self._is_due = self._operator, math.inf, False
        before = operator.products
        if not operator.space.has_room(1, operator.size):
            return 0
        self.more_vectors = 1
        with np.errstate(over="ignore", invalid="ignore"):
            width = self._enclosed(iterate, block_rows, min(most, limit), clock)
        made = operator.products - before
        if width is not None and made <= limit:
            self.width = width
        return min(made, limit)

    def _enclosed(
        self, iterate: LowerIterationState, block_rows: DeviceBlockRows, most: float, clock: Clock
    ) -> float | None:
        """Leave the lower bound in x and the upper one in y, and return their distance.

        None if there are none; then x is as it was.
        """
        operator, xp = self._operator, self._operator.space.xp
        x, y, spare = iterate.x, iterate.y, iterate.spare
        y[...], spare[...] = x, x
        if not self._stands(block_rows.steps(operator.up), block_rows, (y, spare), most, clock):
            return None
        # lemma: park
        if not operator.verifies(y, x, spare, None):
            return None
        y[...], spare[...] = spare, x
        low = x.copy()
        if not self._stands(block_rows.steps(operator.down), block_rows, (low, spare), most, clock):
            return None
        if not self._is_far_from_underflow(low, y, spare):
            return None
        xp.subtract(y, low, out=spare)
        width, least = operator.space.read(
            width_of(self._criterion, spare, y, operator.space), operator.space.least(spare)
        )
        # Double precision brings fixed points no closer.
        if not least >= 0.0 or not width <= max(WIDEST, self._criterion.epsilon):
            return None
        x[...] = low
        return width

    def _is_far_from_underflow(self, low: Array, y: Array, spare: Array) -> bool:
        """Whether all values but proven zeros are; `spare` is overwritten."""
        operator, space, xp = self._operator, self._operator.space, self._operator.space.xp
        if not operator.is_near_underflow(low):
            return True
        if not space.has_room(_OF_ZEROS, operator.size):
            return False
        self.more_vectors = 1 + _OF_ZEROS
        spare[...] = xp.greater(y, 0.0)
        if not operator.are_zeros(spare):
            return False
        least = space.least(xp.where(xp.greater(y, 0.0), low, np.inf))
        return bool(space.read(least)[0] > operator.negligible)

    def _stands(
        self, steps: Sequence[Steps], block_rows: DeviceBlockRows, pair: Pair, most: float, clock: Clock
    ) -> bool:
        """Iterate block row by block row until a step changes nothing; False where that takes too long.

        Parameters
        ----------
        pair : pair of arrays, shape (n,)
            Equal; equal afterwards where everything stands still.
        most : float
            Products that it may take.
        """
        operator, space = self._operator, self._operator.space
        stride = space.stride + space.stride % 2
        done, spent, first, change = 0.0, 0.0, stride, math.nan
        for block_row, share in zip(steps, block_rows.shares, strict=True):
            made, count = 0, first
            while True:
                block_row.sweep(pair, made, count)
                made += count
                (change, _) = space.read(block_row.changes)
                is_long = spent + made * share > most * max(done + share, _LEAST_SHARE)
                if not 0.0 < change < math.inf or is_long or clock.tick(operator.products, math.inf):
                    break
                count = max(made // (_LOOKS if done == 0.0 else _MORE_LOOKS) // stride, 1) * stride
            done, spent = done + share, spent + made * share
            if change != 0.0:
                break
            first = max((made - made // _MORE_LOOKS) // stride, 1) * stride
        operator.products += math.ceil(spent)
        return change == 0.0
