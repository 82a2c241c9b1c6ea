"""Topological solution over choices: strips of states written out once, their components one after another.

The graph of a decision process has an edge from a state to every state that one of its choices may lead to.
Its strongly connected components are solved in an order in which each comes after those that it leads to,
as those of a chain are (:mod:`hybrid.solvers.topological`): a state alone by comparing its choices, a larger
component by optimistic value iteration, with what flows into states that are solved already among its gains.

Bounds.  Values grow with the gains, so lower bounds come from the lower bounds of what is solved, and upper
ones from the upper.  If every choice's lower gain is at least ``1 - delta`` times its upper one, the same is
true of the values: with u the solution for the upper gains, ``(1 - delta) u`` is no more than a step from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.cpu.csr import Components, CsrMatrix, find_components
from hybrid.matrix.space.base import Clock, Criterion, Progress, Status, Vector
from hybrid.matrix.space.bounded_solution import TINY, UNIT, BoundedSolution
from hybrid.matrix.space.choice_operator import BOUND_VECTORS, ChoiceOperator, ChoiceProblem, Quotient
from hybrid.solvers.optimistic import Optimistic
from hybrid.solvers.strip_leap import StripCourse
from hybrid.solvers.topological import Topological

Int64Array = NDArray[np.int64]

_RECORD = "topological choices"

_LONGEST_STAY = 0.999
"""Probability of a choice's staying in its state beyond which the state is iterated: dividing by what is
left would cost digits."""

_DEEPEST = 200  # levels of larger components in a strip: each takes a share of epsilon


class StripsOfChoices(Protocol):
    """Unknown states in the order of their solution.

    Attributes
    ----------
    entries : int
        Transitions of all choices.
    nbytes : int
        Of the largest strip, written out, with what it takes to solve it.
    """

    entries: int
    nbytes: int

    def __len__(self) -> int:
        """Return how many strips there are, at least one."""

    def states(self, number: int) -> Int64Array:
        """Return the states of a strip, ascending."""

    def written(self, number: int) -> ChoiceRows:
        """Return their choices, in their order; columns are unknown states."""

    def operator(self, rows: ChoiceRows, problem: ChoiceProblem) -> ChoiceOperator:
        """Return steps over choices that lead to each other's states."""


@dataclass(frozen=True, eq=False)
class TopologicalChoices:
    """Optimistic value iteration, component by component, strip by strip.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    strips : StripsOfChoices
        Of the operator that `bounds` is given.
    """

    criterion: Criterion
    strips: StripsOfChoices
    name: ClassVar[str] = Topological.name

    def bounds(
        self, operator: ChoiceOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution | None:
        """Solve strip by strip; return None where components promise no gain.  Parameters as in `Optimistic`.

        Notes
        -----
        Iterations are those of all larger components, and one for all states that are alone.  Memory: the
        vectors, and one strip with what it takes to solve it.
        """
        space, strips, size = operator.space, self.strips, operator.size
        more_vectors = -(-strips.nbytes // (8 * max(size, 1)))
        space.reserve(BOUND_VECTORS + more_vectors, size)
        clock = Clock(progress, self.criterion.epsilon)
        ceiling = np.inf if upper_bound is None else upper_bound
        parts = len(strips)
        course = StripCourse(size, parts, strips.states)
        course.resume(clock, space, _RECORD)
        share = replace(self.criterion, epsilon=self.criterion.epsilon / parts)
        local = np.full(size, -1, np.int64)
        status = Status.CONVERGED
        with clock.gently():
            for number in range(course.number, parts):
                course.number = number
                states = strips.states(number)
                part = _Part(states, strips.written(number), operator, local)
                found = part.components()
                if found.depth > _DEEPEST or (parts == 1 and not found.pay):
                    return None
                # Not before: a state of another method may be kept, which takes over where this one does not.
                clock.offer(course.state)
                solver = _Levels(
                    part, found, share, self.criterion.epsilon, strips.operator, ceiling, upper_bound,
                    course.lower, course.upper,
                )  # fmt: skip
                status = solver.run(clock.unrecorded)
                course.iterations += solver.iterations
                course.work += 2.0 * len(part.rows.columns) + solver.entries
                if status is not Status.CONVERGED:
                    break
                if clock.tick(course.iterations, math.inf) and number + 1 < parts:
                    status = Status.INTERRUPTED
                    break
            else:
                course.number = parts
                clock.keep(course.state, is_finished=True)
        seconds = clock.seconds
        if status is Status.CONVERGED and not bool(np.isfinite(course.upper).all()):
            status = Status.DIVERGED
        values = course.end(status, ceiling)
        residual = operator.residual(values, np.empty(size))
        products = 1 + math.ceil(course.work / max(strips.entries, 1))
        return BoundedSolution(
            values, status, course.iterations, seconds, course.width(self.criterion), residual, course.lower,
            course.upper, products=products, more_vectors=more_vectors,
        )  # fmt: skip


class _Part:
    """A strip: its states, their choices, and the numbers of the states within it."""

    def __init__(
        self, states: Int64Array, rows: ChoiceRows, operator: ChoiceOperator, local: Int64Array
    ) -> None:
        self.states, self.rows = states, rows
        self.maximise, self.slack, self.underflow = operator.maximise, operator.slack, operator.underflow
        self.groups = operator.groups
        self.local = local  # scratch: -1 but for what a method sets for itself

    def components(self) -> Components:
        """Return the components of the graph of its states; members of a group lead to each other."""
        from scipy.sparse import csr_array

        rows, count = self.rows, len(self.states)
        self.local[self.states] = np.arange(count)
        target = self.local[rows.columns]
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
        if self.groups is not None:
            # A ring through the members of every group.
            members, starts = self.groups.members, self.groups.starts
            following = np.roll(members, -1)
            following[np.append(starts[1:], len(members)) - 1] = members[starts]
            own = self.local[members] >= 0
            source = np.concatenate((source, self.local[members[own]]))
            target = np.concatenate((target, self.local[following[own]]))
            # What a state without a choice is worth is not its own business.
            iterated[self.local[members[own]]] = True
        self.local[self.states] = -1
        graph = csr_array((np.ones(len(source), np.bool_), (source, target)), shape=(count, count))
        return find_components(CsrMatrix(graph), iterated)

    def within(self, members: Int64Array) -> Quotient | None:
        """Return the groups among some states, numbered in their order; `local` has the numbers."""
        if self.groups is None:
            return None
        place = self.local[self.groups.members]
        has = place[self.groups.starts] >= 0 if len(self.groups.starts) else np.zeros(0, np.bool_)
        if not has.any():
            return None
        sizes = self.groups.sizes
        kept = sizes[has]
        return Quotient(place[np.repeat(has, sizes)], np.cumsum(kept) - kept, np.full(len(kept), -1))


class _Levels:
    """The solution of a strip, level by level."""

    def __init__(
        self,
        part: _Part,
        components: Components,
        criterion: Criterion,
        epsilon: float,
        operator_of: Callable[[ChoiceRows, ChoiceProblem], ChoiceOperator],
        ceiling: float,
        upper_bound: float | None,
        lower: Vector,
        upper: Vector,
    ) -> None:
        self._part, self._found, self._operator_of = part, components, operator_of
        self._ceiling, self._upper_bound = ceiling, upper_bound
        self._lower, self._upper, self._epsilon = lower, upper, epsilon
        # A level may take two solutions, each with an error of its own.
        share = 0.45 / max(components.depth, 1)
        self._inner = Optimistic(replace(criterion, epsilon=share * criterion.epsilon))
        self.iterations = 0
        self.entries = 0.0

    def run(self, progress: Progress | None) -> Status:
        """Solve all levels; where that is interrupted, states not solved yet have no upper bound."""
        from hybrid.matrix.cpu.choice_kernels import substitute_choices

        part, found, rows = self._part, self._found, self._part.rows
        for level in range(len(found.single_ptr) - 1):
            alone = found.single[found.single_ptr[level] : found.single_ptr[level + 1]]
            substitute_choices(
                alone, part.states, rows.choice_ptr, rows.offsets, rows.columns, rows.values, rows.gains,
                part.maximise, part.slack, part.underflow, TINY, self._ceiling, self._lower, self._upper,
            )  # fmt: skip
            joined = found.joined[found.joined_ptr[level] : found.joined_ptr[level + 1]]
            if not joined.size:
                continue
            status = self._solve(np.sort(joined), progress)
            if status is Status.INTERRUPTED:
                for later, ptr in ((found.single, found.single_ptr), (found.joined, found.joined_ptr)):
                    self._upper[part.states[later[ptr[level + 1] :]]] = self._ceiling
            if status is not Status.CONVERGED:
                return status
        return Status.CONVERGED

    def _solve(self, chosen: Int64Array, progress: Progress | None) -> Status:
        """Solve larger components that do not lead to each other."""
        part, rows = self._part, self._part.rows
        states = part.states[chosen]
        part.local[states] = np.arange(len(states))
        try:
            counts = np.diff(rows.choice_ptr)[chosen].astype(np.int64)
            choices = concatenated_ranges(rows.choice_ptr[chosen], counts)
            lengths = np.diff(rows.offsets)[choices].astype(np.int64)
            entries = concatenated_ranges(rows.offsets[choices], lengths)
            columns, values = rows.columns[entries], rows.values[entries]
            target = part.local[columns]
            groups = part.within(states)
        finally:
            part.local[states] = -1
        owner = np.repeat(np.arange(len(choices)), lengths)
        is_outside = target < 0
        outside, weight, at = columns[is_outside], values[is_outside], owner[is_outside]
        gains = rows.gains[choices]
        with np.errstate(over="ignore", invalid="ignore"):
            reached = np.bincount(at, self._upper[outside] > 0.0, minlength=len(choices)) > 0.0
            reached |= gains > 0.0
            lost = np.where(reached, part.underflow, 0.0)
            below = gains + np.bincount(at, weight * self._lower[outside], minlength=len(choices))
            below = np.maximum(below - lost, 0.0)  # lemma: topological-choices, underflow
            # lemma: topological-choices, underflow
            above = gains + np.bincount(at, weight * self._upper[outside], minlength=len(choices)) + lost
        if not bool(np.isfinite(above).all()):
            return Status.DIVERGED
        if not reached.any():
            return Status.CONVERGED
        is_inside = ~is_outside
        inner = np.bincount(owner[is_inside], minlength=len(choices))
        problem = ChoiceProblem(len(states), part.maximise, groups, part.slack)
        delta = float((1.0 - np.divide(below, above, out=np.ones_like(above), where=above > 0.0)).max())
        ptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(inner)))
        targets, weights = target[is_inside].astype(rows.columns.dtype), values[is_inside]
        layers = rows.layers[choices]

        def solved(own: Vector) -> BoundedSolution:
            held = ChoiceRows(
                ptr.astype(rows.choice_ptr.dtype), offsets.astype(rows.offsets.dtype), targets, weights, own,
                layers,
            )  # fmt: skip
            answer = self._inner.bounds(self._operator_of(held, problem), self._upper_bound, progress)
            self.iterations += answer.iterations
            self.entries += float(answer.products) * len(weights)
            return answer

        first = solved(above)
        self._upper[states] = np.minimum(first.upper, self._ceiling)
        if delta <= 0.0:
            self._lower[states] = first.lower
        elif first.status is Status.INTERRUPTED or self._covers(delta, first.upper):
            # lemma: topological-choices
            self._lower[states] = first.lower * max(1.0 - (delta + 8.0 * UNIT), 0.0)
        elif first.status is Status.CONVERGED:
            second = solved(below)
            self._lower[states] = second.lower
            return second.status
        return first.status

    def _covers(self, delta: float, upper: Vector) -> bool:
        """Whether taking a share `delta` off a solution costs no more than solving once more would."""
        if self._inner.criterion.absolute:
            return delta * float(upper.max()) <= self._inner.criterion.epsilon
        # The share is the relative width of what is solved, which the second solution would have, too.
        return delta <= self._epsilon
