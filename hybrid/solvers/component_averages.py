"""Long-run averages in end components: value iteration and policies, with bounds from one step.

All components of a decision process are solved at once, as blocks of one operator whose choices stay inside.
Let ``f(h) = opt over i of (r_i + A_i h)``.  The best average of a component lies between the least and the
greatest element of ``f(h) - h``, for any h (M. Puterman, Markov Decision Processes, 1994, section 8.5).

So h may come from anywhere.  Damped value iteration settles in components with a period, too.  Policy
iteration (R. Howard, Dynamic Programming and Markov Processes, 1960) factorises equations.  Few are
factorised at once, others as soon as steps have taken as long as factors will.

A policy is changed so far that all states of a component come back to one of them, the anchor.  A class that
it does not leave is kept, and other states are led there.  Its average is what one round trip earns, over
the steps of the trip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.blas_threads import one_blas_thread
from hybrid.matrix.space.base import Clock, Criterion, Progress, Status, Vector
from hybrid.matrix.space.bounded_solution import WIDEST
from hybrid.matrix.space.choice_operator import ChoiceOperator, Policy
from hybrid.matrix.space.direct import CHEAP_ROWS, FEW, FactoredSystem, factored_system, nanoseconds_to_write
from hybrid.matrix.space.vector_space import Array

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

_DAMPING = 0.9  # share of a step that is made, below 1 so that components with a period settle
_CHECK_EVERY = 10  # steps between measurements of the bounds
_STALE = 8  # measurements without narrower bounds, after which rounding is all that is left
_FLOOR = 8.0  # slacks: distance of bounds that rounding alone may make
_POLICIES = 60  # in a row, at most
_STEP = 5e4  # nanoseconds of a step, whatever its size; one more for every entry, eight for every state
_TIED = 4.0  # slacks by which choices may differ that count as equal
_FAR = 1e4  # times the states: steps until an anchor from which another one may be visited more often
_AGAIN = 8.0  # times the steps before policies were tried, until they are tried again


@dataclass(frozen=True)
class ComponentAverages:
    """Averages between bounds.

    Attributes
    ----------
    lower, upper : ndarray of float64, shape (components,)
    bias : ndarray of float64, shape (n,)
        Not negative; in each component the choices that are best at it have an average no worse than the
        bound on the safe side, the lower one of a maximum.
    status : Status
    iterations : int
        Steps, those of policies among them.
    seconds : float
        Wall time of the iterations.
    difference : float
        The greatest distance of bounds, relative to the value unless the criterion is absolute.
    """

    lower: Vector
    upper: Vector
    bias: Vector
    status: Status
    iterations: int
    seconds: float
    difference: float


class AverageIteration:
    """Finds the best averages of end components.

    Parameters
    ----------
    operator : ChoiceOperator
        Over the states of all components, with the choices that stay inside; rewards not negative.
    component : ndarray, shape (n,), int64
        Each state's component, a number from 0.
    least, most : ndarray of float64, shape (components,)
        What a choice of each component earns at least, and at most.
    criterion : Criterion
        `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    common : int
        Where processes share the states: how many components, the first ones, have the same number in all of
        them. The others have states of one process.
    raised : ndarray of float64, shape (components,), optional
        What was added to the rewards of each component; `epsilon` is relative to averages without it.

    Notes
    -----
    Seven vectors besides the operator's, where it has its space, and one more with `raised`: bounds have an
    element a state, the same in a component. Time: one sweep over all choices a step. Policies are evaluated
    on the host.
    """

    name = "gain"
    vectors = 7

    def __init__(
        self,
        operator: ChoiceOperator,
        component: Places,
        least: Vector,
        most: Vector,
        criterion: Criterion,
        common: int = 0,
        raised: Vector | None = None,
    ) -> None:
        self._operator, self._component, self._criterion = operator, component, criterion
        self._common, self._alike = common, operator.problem.communicator
        order: Places = np.argsort(component, kind="stable")
        sizes = np.bincount(component, minlength=len(least))
        self._has_states = sizes > 0  # here, and not in other processes alone
        self._first: Places = order[(np.cumsum(sizes) - sizes)[self._has_states]]  # a state of each of these
        self._space = space = operator.space
        if raised is not None:
            self.vectors += 1
        operator.reserve(self.vectors)
        self._raised = None if raised is None else space.vector(raised[component])
        self._range = most - least
        self._to_least, self._to_greatest = (self._joining(order, sizes, up) for up in (False, True))
        self._lower, self._upper = space.vector(least[component]), space.vector(most[component])
        self._low, self._high = operator.zeros(), operator.zeros()  # of the last step, and scratch
        self._bias = operator.zeros()
        self._gained = operator.zeros()  # f(h) - h of the last step
        self._made = 0

    def solve(self, progress: Progress | None = None) -> ComponentAverages:
        """Return the averages with their bounds.

        Where rounding keeps the bounds further apart than epsilon, they are returned as close as they come:
        if they tell some digits, or are as near as epsilon times how far apart rewards of the component are.
        """
        clock = Clock(progress, self._criterion.epsilon)
        with clock.cancellable(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            status = self._iterated(clock)
        lower, upper = self._of_components(self._lower, True), self._of_components(self._upper, False)
        bias = self._space.to_host(self._bias)
        return ComponentAverages(lower, upper, bias, status, self._made, clock.seconds, self._difference())

    # ------------------------------------------------------------------ components

    def _joining(self, order: Places, sizes: Places, maximise: bool) -> Callable[[Array], None]:
        """Return what gives all states of a component the best value of any of them, in place."""
        own = self._space.joining(order, sizes[sizes > 0], maximise)
        if self._alike.size == 1:
            return own

        def join(values: Array) -> None:
            if values.size:
                own(values)
            best = self._of_components(values, maximise)
            self._space.xp.copyto(values, self._space.xp.asarray(best[self._component]))

        return join

    def _of_components(self, values: Array, maximise: bool) -> Vector:
        """Return a number a component, on the host: its first state's, the best of those of all processes."""
        found = np.full(len(self._has_states), -math.inf if maximise else math.inf)
        found[self._has_states] = self._space.to_host(values)[self._first]
        if self._alike.size > 1:
            reduce = np.maximum if maximise else np.minimum
            # lemma: end-component-averages
            found[: self._common] = reduce.reduce(self._alike.gather(found[: self._common]))
        return found

    def _iterated(self, clock: Clock) -> Status:
        """Make steps and try policies until the bounds are close, or as close as rounding lets them come."""
        space, steps = self._space, max(_CHECK_EVERY, self._space.stride)
        x, due, stale, narrowest = self._bias.copy(), self._first_try(), 0, math.inf
        while self._made < self._criterion.max_iterations:
            if self._made >= due:
                due, x = self._by_policies(x, clock)
                if self._difference() <= self._criterion.epsilon:
                    return Status.CONVERGED
            for _ in range(steps - 1):
                self._step(x)
                space.add_scaled(_DAMPING, self._gained, x)
            width, size = self._measure(x)
            space.add_scaled(_DAMPING, self._gained, x)
            if not math.isfinite(size):
                return Status.DIVERGED
            difference = self._difference()
            if difference <= self._criterion.epsilon:
                return Status.CONVERGED
            stale = 0 if width < 0.9 * narrowest else stale + 1
            narrowest = min(narrowest, width)
            if stale >= _STALE and width <= _FLOOR * self._operator.slack * size:
                return Status.CONVERGED if self._is_close() else Status.NO_BOUND
            if clock.tick(self._made, difference):
                return Status.INTERRUPTED
        return Status.MAX_ITERATIONS

    def _step(self, x: Array) -> None:
        """Write ``f(x) - x`` to `_gained`."""
        self._operator.improve(x, self._gained)
        self._gained -= x
        self._count()

    def _count(self) -> None:
        self._operator.products += 1
        self._made += 1

    def _is_close(self) -> bool:
        """Whether bounds that rounding keeps apart tell some digits, or are near beside the rewards."""
        if self._difference(absolute=False) <= max(WIDEST, self._criterion.epsilon):
            return True
        lower, upper = self._of_components(self._lower, True), self._of_components(self._upper, False)
        near = (upper - lower)[self._has_states] <= self._criterion.epsilon * self._range[self._has_states]
        return self._alike.all(bool(near.all()))

    def _difference(self, absolute: bool | None = None) -> float:
        """Return the greatest distance of bounds, by default as the criterion counts it."""
        space, xp, width, middle = self._space, self._space.xp, self._high, self._low
        xp.subtract(self._upper, self._lower, out=width)
        if not (self._criterion.absolute if absolute is None else absolute):
            xp.multiply(self._lower, 0.5, out=middle)
            space.add_scaled(0.5, self._upper, middle)
            if self._raised is not None:
                xp.subtract(middle, self._raised, out=middle)
                xp.absolute(middle, out=middle)
            xp.copyto(middle, 1.0, where=xp.less_equal(width, 0.0))
            with np.errstate(divide="ignore"):  # an average may be zero
                width /= middle
        return max(space.read(space.greatest(width))[0], 0.0)

    # ------------------------------------------------------------------ bounds

    def _measure(self, x: Array) -> tuple[float, float]:
        """Narrow the bounds by one step from x, of which each component's least element becomes zero.

        Returns the greatest distance of bounds that the step gives, and the greatest element.

        Lemma: end-component-averages (docs/averages.md).
        """
        operator, space, xp, low, high = self._operator, self._space, self._space.xp, self._low, self._high
        xp.copyto(low, x)
        self._to_least(low)
        xp.subtract(x, low, out=x)  # lemma: end-component-averages
        y = self._gained
        operator.improve(x, y)
        self._count()
        xp.multiply(y, 1.0 - operator.slack, out=low)  # lemma: end-component-averages, directed-steps
        xp.divide(y, 1.0 - operator.slack, out=high)  # lemma: end-component-averages, directed-steps
        largest, lost = space.greatest(y), xp.logical_not(xp.isfinite(y))
        for bound, towards, join in ((low, -np.inf, self._to_least), (high, np.inf, self._to_greatest)):
            bound -= x
            xp.copyto(bound, towards, where=lost)  # lemma: end-component-averages
            join(bound)
            for error in (0.0, operator.underflow):
                # lemma: end-component-averages, underflow
                xp.add(bound, math.copysign(error, towards), out=bound)
                xp.nextafter(bound, towards, out=bound)  # lemma: end-component-averages
        safe = xp.greater(low, self._lower) if operator.maximise else xp.less(high, self._upper)
        xp.copyto(self._bias, x, where=safe)
        xp.maximum(self._lower, low, out=self._lower)
        xp.minimum(self._upper, high, out=self._upper)
        y -= x
        high -= low
        width, size = space.read(space.greatest(high), largest)
        return max(width, 0.0), size

    # ------------------------------------------------------------------ policies

    @cached_property
    def _rows(self) -> ChoiceRows | None:
        """All choices written out; None without room."""
        assert self._operator.write is not None
        try:
            return self._operator.write()
        except MemoryError:
            return None

    def _first_try(self) -> float:
        """Return after how many steps policies are tried."""
        size, entries = self._operator.size, self._operator.writable
        if entries is None:
            return math.inf
        return 0 if size <= CHEAP_ROWS else nanoseconds_to_write(size, entries) / self._time

    @property
    def _time(self) -> float:
        """About the nanoseconds that a step takes."""
        operator = self._operator
        return _STEP + (operator.writable or 0) + 8.0 * operator.size

    def _by_policies(self, start: Array, clock: Clock) -> tuple[float, Array]:
        """Improve policies, the first one being best at x; return when to try again, and where to go on.

        That is where the bounds were the closest.
        """
        operator, x, policy, seen = self._operator, start, None, set[bytes]()
        closest, best = self._measure(x)[0], start
        for _ in range(_POLICIES):
            if self._rows is None:
                return math.inf, best
            policy, kept, anchors = self._anchored(self._improved(x, policy), x)
            if policy.tobytes() in seen:
                break
            seen.add(policy.tobytes())
            equations = self._equations(policy, anchors)
            if equations.nanoseconds > self._made * self._time and operator.size > FEW:
                return equations.nanoseconds / self._time, best
            bias = self._evaluated(equations, policy, kept, anchors)
            if bias is None or self._made >= self._criterion.max_iterations:
                break
            x = self._space.vector(bias)
            width, _ = self._measure(x)
            if width < closest:
                closest, best = width, x.copy()
            if self._difference() <= self._criterion.epsilon or clock.tick(self._made, width):
                break
        return _AGAIN * max(self._made, _CHECK_EVERY), best

    def _improved(self, x: Array, policy: Policy | None) -> Policy:
        """Return the choices that are best at x, those of a policy where they are worth as much."""
        operator, to_host = self._operator, self._space.to_host
        best: Policy = to_host(operator.choose(x))
        self._count()
        if policy is None:
            return best
        worth = self._worth(x, policy)
        gained = to_host(self._gained) + to_host(x) - worth
        if not operator.maximise:
            gained = -gained
        chosen: Policy = np.where(gained > _TIED * operator.slack * worth, best, policy)
        return chosen

    def _worth(self, x: Array, policy: Policy) -> Vector:
        """Return what a step of a policy makes of x, on the host."""
        values = self._operator.zeros()
        self._operator.improve(x, values, policy=self._space.xp.asarray(policy))
        self._count()
        found: Vector = self._space.to_host(values)
        return found

    def _anchored(self, policy: Policy, x: Array) -> tuple[Policy, Mask, Places]:
        """Return a policy under which each component comes back to its anchor, the kept states, the anchors.

        A recurrent class of the policy is kept in each component, the one with the state where a step gains
        most. Its state that is the best at x is the anchor: policies mostly lead there. States that do not
        reach it take choices that do.

        Time: O(transitions) for the classes, and a search backwards from them.
        """
        rows = self._rows
        assert rows is not None
        states, targets, _ = rows.of_policy(policy)
        sign = 1.0 if self._operator.maximise else -1.0
        classes = _classes(states, targets, len(policy))
        worth = sign * self._space.to_host(self._gained)
        most = self._first_best(np.where(classes >= 0, worth, -np.inf))
        is_kept = classes == classes[most][self._component]
        anchors = self._first_best(np.where(is_kept, sign * self._space.to_host(x), -np.inf))
        return self._led(policy, is_kept, states, targets), is_kept, anchors

    def _first_best(self, worth: Vector) -> Places:
        """Return the first state of each component that has the greatest worth."""
        best = np.full(len(self._first), -np.inf)
        np.maximum.at(best, self._component, worth)
        attained = np.flatnonzero(worth == best[self._component])
        _, first = np.unique(self._component[attained], return_index=True)
        found: Places = attained[first]
        return found

    def _led(self, policy: Policy, kept: Mask, states: Places, targets: Places) -> Policy:
        """Let states that do not reach those kept take choices that may come nearer to them."""
        rows, policy = self._rows, policy.copy()
        assert rows is not None
        reached = kept.copy()
        for _ in _backwards(reached, targets, states):
            pass
        owner = np.repeat(np.arange(rows.size), np.diff(rows.choice_ptr))
        choice = np.repeat(np.arange(len(owner)), np.diff(rows.offsets))
        for near in () if reached.all() else _backwards(reached, rows.columns, owner[choice]):
            policy[owner[choice[near]]] = rows.layers[choice[near]]
        return policy

    def _equations(self, policy: Policy, anchors: Places) -> FactoredSystem:
        """Return the equations of what is earned until an anchor is entered."""
        operator, rows = self._operator, self._rows
        assert rows is not None
        states, targets, values = rows.of_policy(policy)
        is_anchor = np.zeros(operator.size, np.bool_)
        is_anchor[anchors] = True
        kept = ~is_anchor[targets]
        states, targets, values = states[kept], targets[kept], values[kept]
        starts = np.searchsorted(states, np.arange(operator.size + 1))
        gains = self._worth(operator.zeros(), policy)
        matrix = CsrArrays((operator.size, operator.size), starts, targets, values)
        return factored_system(matrix, np.ones(operator.size), gains)

    def _evaluated(
        self, equations: FactoredSystem, policy: Policy, kept: Mask, anchors: Places
    ) -> Vector | None:
        """Return the bias of a policy; None where it cannot be had.

        Times until a state that is hardly visited have no digits: another one is the anchor then, the one of
        those kept that is visited the most.
        """
        size = len(policy)
        taken = equations.solve(equations.diagonal)
        if taken is not None and not taken.max() <= _FAR * size:
            often = equations.visits(np.ones(size))
            if often is not None and np.isfinite(often).all():
                anchors = self._first_best(np.where(kept, often, -np.inf))
                equations = self._equations(policy, anchors)
                taken = equations.solve(equations.diagonal)
        earned = equations.solve(equations.b)
        if earned is None or taken is None:
            return None
        bias: Vector = earned - (earned[anchors] / taken[anchors])[self._component] * taken
        return bias if bool(np.isfinite(bias).all()) else None


def _classes(sources: Places, targets: Places, size: int) -> Places:
    """Return a number of each state's recurrent class in a chain; -1 of states that are in none."""
    if size <= FEW:
        ways = np.eye(size, dtype=np.float32)
        ways[sources, targets] = 1.0
        known = 0
        with one_blas_thread():
            while known < (known := int(np.count_nonzero(ways))):
                ways = np.minimum(ways @ ways, 1.0)
        leads = ways > 0.0
        is_recurrent = np.all(leads <= leads.T, axis=1)  # all that they lead to leads back
        return np.where(is_recurrent, leads.argmax(axis=1), -1)
    from scipy.sparse import csr_array  # which small answers do not load
    from scipy.sparse.csgraph import connected_components

    # Of two transitions to one state one is left: the search would not end.
    graph = csr_array((np.ones(len(sources)), (sources, targets)), shape=(size, size))
    count, label = connected_components(graph, directed=True, connection="strong")
    is_closed = np.ones(count, np.bool_)
    is_closed[label[sources[label[sources] != label[targets]]]] = False
    return np.where(is_closed[label], label, -1)


def _backwards(reached: Mask, targets: Places, sources: Places) -> Iterator[Places]:
    """Mark the sources of transitions to marked states, again and again; yield, each time, those transitions.

    Time: O(m log m) for m transitions, and a few calls a step of the longest way.
    """
    order = np.argsort(targets, kind="stable")
    starts = np.searchsorted(targets[order], np.arange(len(reached) + 1))
    new = np.flatnonzero(reached)
    while new.size:
        near = order[concatenated_ranges(starts[new], starts[new + 1] - starts[new])]
        near = near[~reached[sources[near]]]
        yield near
        new = np.unique(sources[near])
        reached[new] = True
