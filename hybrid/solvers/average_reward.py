"""The long-run average of a reward in one closed class, between bounds, without a transposed matrix.

Let M be the rates of a chain (no diagonal), d its exit rates, r its reward rates, and h any vector. With
``rho = r + M h - d * h`` the average g satisfies ``min rho <= g <= max rho``, because the stationary mean of
rho is g. (Puterman, Markov Decision Processes, section 8.5, the bounds of value iteration for averages.) The
bounds meet when h solves Poisson's equation.

A good h comes from relaxed steps of the jump chain, which stiff rates do not slow down as they slow
uniformisation. The jump chain averages over visits and not over time, so two vectors are iterated. These are
h for r, and w for the constant reward 1, whose increments are the mean duration of a visit. For any number g,
h - g w belongs to r - g. Once w's increments are nearly constant w is kept as it is, and h - g w goes on
alone. The error of g is taken out of h with w now and then.

Where the matrix has a preconditioner that is worth it (:mod:`hybrid.matrix.space.vector_space`), IDR(s)
begins with that. Else, where the widths of the bounds promise a gain, IDR(s) goes on from h
(:mod:`hybrid.solvers.average_krylov`). BiCGStab does where there is no room for its vectors. Where it fails,
h goes on as before. IDR(s) has vectors of single precision at first, where few digits get lost and the
vector space has products with them. They move half as much memory, and the bounds are those of the iterate.
Where there is no room for h and w either, BiCGStab begins (:mod:`hybrid.solvers.average_krylov`). Last come
damped steps of the uniformised chain, which have the fewest vectors.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from hybrid.base.arrays import extremes
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import (
    Clock,
    Criterion,
    LinearOperator,
    Numbers,
    Progress,
    RecordedState,
    Status,
    Vector,
)
from hybrid.matrix.space.bounded_solution import underflow_of
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.idr import IDR_VECTORS, SINGLE_VECTORS
from hybrid.matrix.space.vector_space import Array, Preconditioner, Recurrence, Steps, VectorSpace
from hybrid.solvers.forecast import (
    AGAIN,
    AVERAGE_STEPS,
    BICGSTAB_PRODUCT,
    IDR_PRODUCT,
    Forecast,
    relative_width,
    steps_to_check,
    traffic_ratio,
)
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from hybrid.solvers.average_krylov import GainResult, LowMemoryAverage

# The iterates behind the bounds on a long-run average: bias, visits, average so far.

_OPERANDS = 2
_LET_GO = 5  # vectors that the steps need and IDR(s) does not
_KEPT = 2  # of them that are kept where there is room: w and its increments
_UNLIKE = 0.125  # of the distance of the bounds: where a front is on its way some error changes by more


class BiasIteration:
    """The two iterations; all vectors and numbers stay in the vector space.

    Attributes
    ----------
    products, probes : int
        Made by the iterations and what takes over from them, and besides.
    """

    nbytes = None
    _spare: Array
    _moved: Array
    _right: Array
    _before: Array | None
    _pacing: Steps | None
    _moving: Steps | None

    def __init__(self, space: VectorSpace, diagonal: Vector, rewards: Vector, omega: float) -> None:
        self.space, self._omega = space, omega
        self.diagonal, self._rewards = space.plain(diagonal), space.plain(rewards)
        self._system = space.system(diagonal, space.ones(len(rewards)))
        self._h = space.xp.zeros(len(rewards))
        self._offset = space.xp.zeros(())
        self.products = self.more_vectors = self.probes = 0
        self._w: Array | None = None
        self._paces: tuple[Array, Array] | None = None
        self.settled = False
        self._let_go()

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return the bias and the average so far, for records."""
        (offset,) = self.space.read(self._offset)
        return {"h": self._h}, {"offset": offset, "products": self.products}

    def take(self, kept: RecordedState) -> None:
        """Go on from what an earlier run has left."""
        self._h, self.products = kept.vectors["h"], int(kept.numbers["products"])
        self._offset = self._offset + kept.numbers["offset"]

    def begin(self) -> None:
        """Make what the iterations need besides h and the average so far; a w that was freed restarts."""
        xp, size, omega = self.space.xp, self._h.size, self._omega
        if self._w is None:
            self._w, self._paced = xp.zeros(size), xp.ones(size)
            self._paces, self.settled = None, False
        self._spare, self._moved = xp.empty(size), xp.empty(size)
        self._right = self.space.vector(self._rewards)
        self._right -= self._offset
        self._pacing = self._system.relaxation(omega)
        self._moving = self._system.sharing(self._right).relaxation(omega)
        self._noted = self.products

    def anchored(
        self,
        anchor: int,
        directions: int = DIRECTIONS,
        is_single: bool = False,
        preconditioner: Preconditioner | None = None,
    ) -> Recurrence:
        """Return the recurrence for h with h[anchor] the average, from where h is.

        All but h is let go; w is kept where there is room for it, as it would have to settle again.

        With four directions it is of single precision on request, or preconditioned where there
        is room for that. It has one, which is BiCGStab, where there is no room for the vectors of four.
        """
        self._let_go()
        (element,) = self.space.read(self.space.element(self._h, anchor))
        self._h += self.space.xp.subtract(self._offset, element)
        system = self._system.sharing(self._rewards)
        # It ends by its bounds, and not by a norm.
        vectors = SINGLE_VECTORS if is_single else IDR_VECTORS
        if directions == 1 or not self.space.has_room(vectors + _OPERANDS, self._h.size):
            return self.space.communicator.with_room(lambda: system.idr(self._h, 0.0, anchor, directions=1))
        more = vectors - _LET_GO + (0 if self._w is None else _KEPT)
        if preconditioner is not None and self.space.has_room(
            IDR_VECTORS + preconditioner.more_vectors + _OPERANDS, self._h.size
        ):
            # Free memory may be fragmented.
            with contextlib.suppress(MemoryError):
                recurrence = preconditioner.idr(self._rewards, self._h, 0.0, anchor)
                self.more_vectors = max(self.more_vectors, more + preconditioner.more_vectors)
                return recurrence
        self.more_vectors = max(self.more_vectors, more)
        return self.space.communicator.with_room(
            lambda: system.idr(self._h, 0.0, anchor, is_single=is_single)
        )

    def preconditioner(self) -> Preconditioner | None:
        """Return the matrix's own."""
        return self._system.preconditioner()

    def _let_go(self) -> None:
        """Let go of what the steps need, but for h, and for w where there is room for it."""
        self._spare = self._moved = self._right = self._before = None
        self._pacing = self._moving = None
        if self._paces is None or not self.keeps_visits:
            self._w = self._paced = None

    @property
    def keeps_visits(self) -> bool:
        """Whether there is room for the vectors of IDR(s) beside w."""
        return self.space.has_room(IDR_VECTORS + _OPERANDS, self._h.size)

    def take_bias(self, recurrence: Recurrence, closer: bool) -> None:
        """Take over the iterate as h if its bounds are closer, and vectors for measuring them."""
        self._moved, self._spare = recurrence.r, recurrence.spare
        if self._moved.dtype != self._h.dtype:
            self._moved = self.space.xp.empty_like(self._h)
        if closer:
            self._h = recurrence.x
        self._centre(self._h)

    def advance(self, count: int) -> None:
        """Make an even number of steps of h, and of w unless it has settled; note the last increments."""
        assert self._moving is not None and self._pacing is not None  # it has begun
        space, subtract = self.space, self.space.xp.subtract

        def increment(new: Array, old: Array, out: Array) -> None:
            subtract(new, old, out=out)

        self._moving.sweep((self._h, self._spare), 0, count)
        space.each(increment, self._h, self._spare, self._moved)
        self.products += count
        if self.settled:
            return
        self._pacing.sweep((self._w, self._spare), 0, count)
        space.each(increment, self._w, self._spare, self._paced)
        self.products += count
        quickest, slowest = space.extremes(self._paced)
        self._paces = slowest, quickest
        self._centre(self._w)

    def correct(self) -> tuple[Array, ...]:
        """Take what is missing in the average out of h, and measure what is left.

        Returns
        -------
        tuple of arrays, shape ()
            Greatest and least increment of w, average so far, its extreme errors, least and greatest h.
        """
        if self._paces is None:
            raise RuntimeError("increments are corrected after the first steps")
        space, subtract, omega = self.space, self.space.xp.subtract, self._omega
        slowest, quickest = self._paces
        least, most = space.extremes(self._moved)
        missing = (least + most) / (slowest + quickest)
        offset = self._offset = self._offset + missing

        def offer(rewards: Array, right: Array) -> None:
            subtract(rewards, offset, out=right)

        def weigh(moved: Array, diagonal: Array) -> None:
            moved *= diagonal
            moved /= omega

        space.add_scaled(-1.0, self._w, self._h, missing)
        space.each(offer, self._rewards, self._right)
        space.add_scaled(-1.0, self._paced, self._moved, missing)
        space.each(weigh, self._moved, self.diagonal)
        least, most = self._centre(self._h)
        return slowest, quickest, offset, *space.extremes(self._moved), least, most

    def is_steady(self, width: float) -> bool:
        """Whether the errors of no state have changed in the last fifth of the products, but for a constant.

        Their extremes stand still as well while a front passes row after row, and a Krylov method has to wait
        for it as the steps have to; two parts that meet rarely stand still in every row.  Asked after
        `correct`, again and again.

        Parameters
        ----------
        width : float
            Distance of the extreme errors.

        Notes
        -----
        A vector now and then, if there is room.  Some passes over vectors whenever the products have doubled.
        """
        made, space = self.products, self.space
        if self._before is None:
            if made >= 2 * self._noted and space.has_room(1 + _OPERANDS, self._h.size):
                self._before, self._noted = space.vector(self._moved), made
                self.more_vectors = max(self.more_vectors, 1)
            return False
        if 4 * made < 5 * self._noted:
            return False
        before, self._before, self._noted = self._before, None, made

        def change(moved: Array, before: Array) -> None:
            space.xp.subtract(moved, before, out=before)

        space.each(change, self._moved, before)
        least, most = space.read(*space.extremes(before))
        return most - least <= _UNLIKE * width

    def _centre(self, x: Array) -> tuple[Array, Array]:
        """Take the middle of a vector's extremes out of it, and return them."""
        least, most = self.space.extremes(x)
        middle = self.space.xp.multiply(0.5, least + most)

        def lower(x: Array) -> None:
            x -= middle

        self.space.each(lower, x)
        return least, most

    def bounds(self, slack: float) -> tuple[Array, Array]:
        """Return the least and greatest rho, widened by the rounding errors of computing them."""
        from hybrid.solvers.average_krylov import average_bounds

        if self._spare is None:
            self.begin()
        operands = self._rewards, self.diagonal
        return average_bounds(self.space, self._h, *operands, self._moved, self._spare, slack)


_log = logging.getLogger(__name__)

Floor = Callable[[float, float], float]
"""Of an average and the spread of a bias: the distance of bounds that rounding alone may make."""

_SINGLE = 1 << 12
"""Iterations left, as they tell themselves, up to which IDR(s) has single precision at first."""

_SMALLEST = 1e-30
"""Distance of bounds beside the greatest rate above which errors are numbers of single precision."""

_SETTLED = 1e-3  # relative spread of w's increments at which w is good enough


class AverageReward(Record):
    """Value iteration for averages.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    omega : float
        Relaxation in (0, 1); below 1 so that chains with a period settle, too.
    krylov : {"auto", "always", "never"}
        When IDR(s) takes over: where it is expected to be faster, at once, or not at all.
    recurrence : {"idr", "bicgstab"}
        Which method that is.
    """

    criterion: Criterion = Criterion()
    omega: float = 0.9
    krylov: Literal["auto", "always", "never"] = "auto"
    recurrence: Literal["idr", "bicgstab"] = "idr"
    name = "gain"
    vectors: ClassVar[int] = 9  # six, diagonal and rewards, and the diagonal of the steps

    def solve(
        self,
        matrix: LinearOperator,
        diagonal: Vector,
        rewards: Vector,
        slack: float,
        progress: Progress | None = None,
    ) -> GainResult:
        """Return the average of `rewards` per unit of time.

        Parameters
        ----------
        matrix : LinearOperator
            Rates between the states of one closed class, shape (n, n), n > 1, without diagonal.
        diagonal : ndarray of float64, shape (n,)
            Its row sums.
        rewards : ndarray of float64, shape (n,)
            Finite, of any sign.  Both operands may be `gpu_kernels.CodedVector` where the matrix lies on a
            device.
        slack : float
            Bound on the relative error of evaluating ``rewards + M h - diagonal * h`` term by term.

        Notes
        -----
        Seven vectors besides the operands, where the matrix has its space, one more now and then while
        nothing is known of the pace, if there is room, and up to eight while IDR(s) is at work; a look in ten
        products or more.
        If rounding keeps the bounds further apart than epsilon, they are returned as close as they come.
        """
        clock = Clock(progress, self.criterion.epsilon)
        with clock.cancellable():
            return self._solved(matrix, diagonal, rewards, slack, clock)

    def has_room(self, matrix: LinearOperator) -> bool:
        """Whether there is room for all the vectors, in every process that has a part of the matrix."""
        return space_of(matrix).has_room(self.vectors, matrix.shape[0])

    def _lean(
        self, space: VectorSpace, diagonal: Vector, rewards: Vector, by_steps: bool = False
    ) -> LowMemoryAverage:
        """Return an iteration with fewer vectors, and tell that it takes the place of another one.

        `by_steps` says that a Krylov method has no room.

        Raises
        ------
        MemoryError
            There is no room for the fewest vectors; in all processes.
        """
        from hybrid.solvers.average_krylov import DampedAverage, LowMemoryAverage

        _log.info("no room for all vectors of an average: fewer are taken, which may need more time")
        if not by_steps and self.krylov != "never":
            with space.communicator.if_room():
                return LowMemoryAverage(space, diagonal, rewards)
        return DampedAverage(space, diagonal, rewards)

    def _solved(
        self, matrix: LinearOperator, diagonal: Vector, rewards: Vector, slack: float, clock: Clock
    ) -> GainResult:
        """Iterate, and return the bounds that h gives in the end, wherever that is."""
        from hybrid.matrix.space.distributed import place_of_greatest
        from hybrid.solvers.average_krylov import GainResult, LowMemoryAverage

        space = space_of(matrix)
        alike = space.communicator
        course: BiasIteration | LowMemoryAverage | None = None
        if self.has_room(matrix):
            # Free memory may be fragmented.
            with alike.if_room():
                course = alike.with_room(lambda: BiasIteration(space, diagonal, rewards, self.omega))
        if course is None:
            course = self._lean(space, diagonal, rewards)
        anchor, fastest = place_of_greatest(alike, course.diagonal)

        def floor(average: float, spread: float) -> float:
            return 4.0 * slack * (abs(average) + fastest * spread)

        kept = clock.resumed(space.xp, self.name, len(rewards))
        if kept is not None:
            course.take(kept)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            status = Status.CONVERGED if kept is not None and kept.is_finished else None
            if status is None and isinstance(course, BiasIteration):
                moved = IDR_PRODUCT if self.recurrence == "idr" else BICGSTAB_PRODUCT
                cost = traffic_ratio(matrix, alike, moved, AVERAGE_STEPS)
                with alike.if_room():
                    status = self._iterate(course, anchor, fastest, floor, clock, kept, cost)
                if status is None:
                    course = None  # its vectors make room
                    course = self._lean(space, diagonal, rewards)
            if status is None:
                assert isinstance(course, LowMemoryAverage)
                with alike.if_room():
                    status = course.run(anchor, self.criterion, floor, clock)
                if status is None:
                    course = self._lean(space, diagonal, rewards, by_steps=True)
                    status = course.run(anchor, self.criterion, floor, clock)
        if status in (Status.CONVERGED, Status.MAX_ITERATIONS, Status.INTERRUPTED):
            clock.keep(course.state, status is Status.CONVERGED)
        seconds, looks = clock.seconds, space.synchronisations
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = space.read(*course.bounds(slack))
        lost = underflow_of(np.array([max(1.0, fastest)]), slack)
        lower, upper = lower - lost, upper + lost  # lemma: underflow
        least, most = extremes(rewards)
        lower, upper = max(lower, alike.least(least)), min(upper, alike.greatest(most))
        width, middle = upper - lower, 0.5 * (lower + upper)
        difference, made = self._distance(width, middle), course.products
        return GainResult(
            middle, lower, upper, status, made, seconds, difference, looks, made + course.probes + 2,
            course.more_vectors,
            course.nbytes,
        )  # fmt: skip

    def _iterate(
        self,
        course: BiasIteration,
        anchor: int,
        fastest: float,
        floor: Floor,
        clock: Clock,
        kept: RecordedState | None,
        cost: float,
    ) -> Status:
        """Find a bias whose bounds are close, or as close as rounding lets them come.

        `fastest` is the greatest rate, and `cost` the time of a product of the Krylov method in products of
        the iteration.
        """
        criterion = self.criterion
        limits = criterion.epsilon, cost, criterion.max_iterations
        best, stale, hopes, not_before = math.inf, 0, self.krylov != "never", 0
        most = math.inf if self.krylov == "always" else None if kept is None else kept.numbers.get("most")
        preconditioner = None
        if kept is None or kept.numbers.get("swept", 0.0) > 0.0:
            preconditioner = self._preconditioner(course)
        if most is not None or preconditioner is not None:
            is_single = kept is not None and kept.numbers.get("single", 0.0) > 0.0
            most = math.inf if most is None else most
            status = self._solve_by_krylov(
                course, anchor, floor, math.inf, most, is_single, clock, preconditioner
            )
            if status is not None:
                return status
            hopes = preconditioner is not None and self.krylov == "auto"
        course.space.communicator.with_room(course.begin)
        bounds, visits = (Forecast(*limits, course.products) for _ in range(2))
        # A try may let w go; after one in vain w would have to settle again.
        begun, again = course.products, 0
        while course.products < criterion.max_iterations:
            course.advance(steps_to_check(course.products, criterion.max_iterations))
            slowest, quickest, offset, low, high, least, most = course.space.read(*course.correct())
            if not all(map(math.isfinite, (slowest, quickest, offset, low, high, least, most))):
                return Status.DIVERGED
            pace = visits
            if not course.settled:
                # Durations that are all lost to underflow tell no pace.
                left = visits.left(course.products, (slowest - quickest) / slowest if slowest > 0.0 else 0.0)
                course.settled = slowest - quickest <= _SETTLED * slowest
                again = course.products - begun if course.settled and not course.keeps_visits else 0
            lowest, highest = offset + low, offset + high
            width, middle = highest - lowest, 0.5 * (lowest + highest)
            difference = self._distance(width, middle)
            # A width that no longer shrinks is made of rounding errors.
            stale = 0 if width < 0.9 * best else stale + 1
            best = min(best, width)
            exhausted = width <= floor(offset, most - least)
            if difference <= criterion.epsilon or (exhausted and stale >= 5):
                return Status.CONVERGED
            clock.offer(course.state)
            if clock.tick(course.products, difference):
                return Status.INTERRUPTED
            if course.settled:
                pace, left = bounds, bounds.left(course.products, difference)
            if not hopes or exhausted or course.products < not_before or left < again:
                continue
            most = pace.budget(left)
            if most == 0.0 and pace.is_long(left) and course.is_steady(width):
                most = left
            if most > 0.0:
                begun = course.products
                wanted = criterion.epsilon * (1.0 if criterion.absolute else abs(middle))
                is_single = left <= _SINGLE and wanted >= _SMALLEST * fastest
                status = self._solve_by_krylov(course, anchor, floor, difference, most, is_single, clock)
                if status is not None:
                    return status
                course.space.communicator.with_room(course.begin)
                # The durations of visits may have to be recomputed: that is risked for a late attempt alone.
                hopes, not_before, again = most < left, AGAIN * begun, 0
                begun = course.products
                bounds, visits = (Forecast(*limits, course.products) for _ in range(2))
        return Status.MAX_ITERATIONS

    def _preconditioner(self, course: BiasIteration) -> Preconditioner | None:
        """Return the matrix's own, where IDR(s) has room and it is worth it."""
        if self.krylov == "never" or self.recurrence != "idr" or not course.keeps_visits:
            return None
        found = course.preconditioner()
        if found is None:
            return None
        course.probes = found.probes
        return found if found.is_worth_it else None

    def _solve_by_krylov(
        self,
        course: BiasIteration,
        anchor: int,
        floor: Floor,
        difference: float,
        most: float,
        is_single: bool,
        clock: Clock,
        preconditioner: Preconditioner | None = None,
    ) -> Status | None:
        """Go on with a Krylov method; None if it fails, and then h is as it was, or closer.

        Parameters
        ----------
        difference : float
            Distance of the bounds so far.
        most : float
            Products after which it gives up.
        is_single : bool
            Whether to begin with single precision, where the vector space takes it.
        preconditioner : Preconditioner, optional
        """
        from hybrid.solvers.average_krylov import AnchoredSolution

        is_single = preconditioner is None and is_single and course.space.takes_single(len(course.diagonal))
        while most > 0.0:
            directions = 1 if self.recurrence == "bicgstab" else DIRECTIONS
            recurrence = course.anchored(anchor, directions, is_single, preconditioner)
            was_single = recurrence.r.dtype != np.float64
            solution = AnchoredSolution(
                course.space, recurrence, course.diagonal, anchor, self.criterion, floor
            )
            reached = solution.run(course.products, most, clock)
            course.products += reached.products
            most -= reached.products
            # The start is known to be no worse than the iterate of the failure.
            assert solution.first is not None
            difference = min(difference, solution.first)
            course.take_bias(recurrence, closer=reached.difference < difference)
            difference = min(difference, reached.difference)
            # Its vectors are let go before others are made.
            del solution, recurrence
            if reached.status in (Status.CONVERGED, Status.MAX_ITERATIONS, Status.INTERRUPTED):
                return reached.status
            if not was_single:
                break
            is_single = False
        return None

    def _distance(self, width: float, middle: float) -> float:
        """Return the distance of bounds as the criterion counts it."""
        return width if self.criterion.absolute else relative_width(width, middle)
