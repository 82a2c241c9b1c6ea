"""The best over all choices as one operator: ``x -> opt over i of (A_i x + b_i)``, and its choices.

A method sees `ChoiceOperator` alone: whether the matrices are compressed or written out, and where vectors
live, is the business of its subclasses.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.matrix.space.base import Numbers, Vector
from hybrid.matrix.space.bellman import BellmanOperator
from hybrid.matrix.space.bounded_solution import least_closure, underflow_of
from hybrid.matrix.space.direct import FEW, FactoredSystem, SlenderSystem, factored_system
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.sweep_direction import SweepDirection
from hybrid.matrix.space.vector_space import Array, Pair, Steps, VectorSpace
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from gpu_kernels import ChoiceRows

# Problem over choices: the states, the optimum, the states that share a value.


class Quotient(Record, eq=False):
    """States that share one value, the best of any of them: end components made one state by vectors.

    Attributes
    ----------
    members : ndarray, shape (m,), int64
        Places among the unknown states, group by group.
    starts : ndarray, shape (groups,), int64
        Where each group begins in `members`.
    shared : ndarray, shape (groups,), int64
        The number of every group among those that have members in several processes; -1 for the others.
    n_shared : int
        How many such groups there are, those without own members among them.
    """

    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    shared: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    n_shared: int = 0

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each group."""
        return np.diff(np.append(self.starts, len(self.members)))


class ChoiceProblem(Record, eq=False):
    """The best over all choices of some unknown states.

    Attributes
    ----------
    size : int
        Unknown states.
    maximise : bool
        Whether the best is the greatest.
    quotient : Quotient or None
        States that share one value.
    slack : float
        Bound on the relative error of one step, operands included.
    communicator : Communicator
        Who decides together where processes share the states.
    """

    size: int
    maximise: bool
    quotient: Quotient | None = None
    slack: float = 0.0
    communicator: Communicator = ALONE


BOUND_VECTORS = 8
"""Of methods with bounds: two iterates of each, the guess with its iterates, a policy, a layer's product."""

NO_CHOICE = 65_535
"""In a policy: the state's value is that of another member of its group."""

Policy = NDArray[np.uint16]


class Improvement(Record, eq=False):
    """Options of a step over choices; see `ChoiceOperator.improve`."""

    factor: float = 1.0
    shape: Array | None = None
    policy: Array | None = None
    descending: bool | None = None


class ChoiceSteps(Steps):
    """Steps of a choice operator with one rounding; see :class:`hybrid.matrix.space.vector_space.Steps`.

    Parameters
    ----------
    operator : ChoiceOperator
    factor : float
        See `ChoiceOperator.improve`.
    least : array, shape (size,), float64, optional
        Iterates are raised to it.
    """

    def __init__(self, operator: ChoiceOperator, factor: float, least: Array | None = None) -> None:
        self._operator, self._factor, self._least = operator, factor, least
        self._changes: Array = operator.changes

    @property
    def changes(self) -> Array:
        """See `Steps.changes`."""
        return self._changes

    def sweep(self, pair: Pair, done: int, count: int, total: Array | None = None) -> None:
        """See `Steps.sweep`; iterates are not added up."""
        assert total is None
        operator = self._operator
        if self._least is None:
            operator.repeat(pair, done, count, self._factor)
            self._changes = operator.changes
            return
        for k in range(done, done + count):
            operator.repeat(pair, k, 1, self._factor)
            x, y = pair[1 - k % 2], pair[k % 2]
            operator.space.xp.maximum(x, self._least, out=x)
            self._changes = operator.space.distance(x, y)


class GaussSeidelSteps(Steps):
    """Steps of a choice operator that rise; see :class:`hybrid.matrix.space.vector_space.Steps`.

    Parameters
    ----------
    operator : ChoiceOperator
        With Gauss-Seidel steps.
    factor, shape, policy
        As for `ChoiceOperator.improve`.
    descending : bool, optional
        The direction to begin with, where it is known; else it is tried at once.

    Attributes
    ----------
    direction : SweepDirection

    Notes
    -----
    `changes` are those of a whole step, and no bound on what a step of all states at once would change.
    """

    def __init__(
        self,
        operator: ChoiceOperator,
        factor: float,
        shape: Array | None = None,
        policy: Array | None = None,
        descending: bool | None = None,
    ) -> None:
        self._operator, self._factor = operator, factor
        self._shape, self._policy = shape, policy
        self.direction = SweepDirection(descending)

    @property
    def changes(self) -> Array:
        """See `Steps.changes`."""
        return self._operator.changes

    def sweep(self, pair: Pair, done: int, count: int, total: Array | None = None) -> None:
        """See `Steps.sweep`; iterates are not added up."""
        assert total is None
        end, direction = done + count, self.direction
        while done < end:
            if direction.may_turn(done):
                with np.errstate(over="ignore"):  # an infinite sum shows no direction
                    (reached,) = self._operator.space.read(pair[done % 2].sum())
                direction.turn(done, reached)
            until = min(end, direction.next_turn(done))
            how = Improvement(self._factor, self._shape, self._policy, direction.descending)
            self._operator.improve_repeatedly(pair, done, until - done, how)
            done = until

    def told(self) -> Numbers:
        """See `Steps.told`."""
        return self.direction.told()

    def take(self, numbers: Numbers) -> None:
        """See `Steps.take`."""
        self.direction.take(numbers)


class ChoiceOperator(BellmanOperator):
    """``x -> opt over i of (A_i x + b_i)`` over a set of unknown states.

    Parameters
    ----------
    problem : ChoiceProblem
    space : VectorSpace
        Where vectors live.

    Attributes
    ----------
    maximise : bool
    groups : Quotient or None
    backend : str
    backend_reason : str
        Why it is that one, in words.
    level : int or None
        Injection level, the same in all layers.
    storage : str or None
        How the choices are written out; where they are compressed, "tasks", or None for row types.
    nbytes, operand_bytes : int
        Matrices, and gains and places, of all layers together.
    least_entry : float
        No positive entry of a matrix or of the gains is less.
    write : callable or None
        Writes the choices out on the host, where one process has all states.
    writable : int or None
        Entries that `write` writes, as long as they are few enough.
    is_slender : bool or None
        Whether equations of policies are those of `SlenderSystem`; None until one has been written.
    loses_digits : bool
        Whether entries are so small that they would lose digits where a discount is multiplied into them.
    """

    backend: str
    backend_reason: str = "asked for"
    level: int | None
    storage: str | None = None
    nbytes: int
    operand_bytes: int
    least_entry: float = 0.0
    loses_digits: bool = False
    write: Callable[[], ChoiceRows] | None = None
    writable: int | None = None
    is_slender: bool | None = None

    def __init__(self, problem: ChoiceProblem, space: VectorSpace) -> None:
        slack = problem.slack
        super().__init__(space, problem.size, slack, underflow_of(np.ones(1), slack))
        self.problem = problem
        self.maximise, self.groups = problem.maximise, problem.quotient
        self._agreed: Array | None = None
        self.changes = np.full(2, np.inf)

    @property
    def changes(self) -> Array:
        """Greatest absolute and relative change of the last step, over all processes; see `Steps.changes`."""
        if self._agreed is None:
            self._agreed = self.space.agreed(self._changes)
        return self._agreed

    @changes.setter
    def changes(self, own: Array) -> None:
        self._changes, self._agreed = own, None

    @property
    def worst(self) -> float:
        """The value of having no choice."""
        return -np.inf if self.maximise else np.inf

    # ------------------------------------------------------------------ for methods with bounds

    @property
    def down(self) -> ChoiceSteps:
        """See `BellmanOperator.down`."""
        # lemma: directed-steps
        return ChoiceSteps(self, 1.0 - self.slack)

    @cached_property
    def rising(self) -> GaussSeidelSteps | None:
        """See `BellmanOperator.rising`."""
        # lemma: directed-steps, from-below
        return GaussSeidelSteps(self, 1.0 - self.slack) if self.has_gauss_seidel else None

    def added_up(self, shape: Array, policy: Array | None = None) -> GaussSeidelSteps | None:
        """Return steps ``w -> shape + opt A_i w`` whose values rise; None where `improve` is all there is."""
        known = self.rising
        return (
            None if known is None else GaussSeidelSteps(self, 1.0, shape, policy, known.direction.descending)
        )

    @property
    def depth(self) -> int:
        """See `BellmanOperator.depth`."""
        return max(self.size, 1) if self.has_gauss_seidel else 1

    @property
    def up(self) -> ChoiceSteps:
        """See `BellmanOperator.up`."""
        return ChoiceSteps(self, 1.0 / (1.0 - self.slack))  # lemma: directed-steps

    def positive(self, is_over: Callable[[], bool] | None = None) -> Array:
        """See `BellmanOperator.positive`."""
        found, steps = least_closure(self.space, self.zeros(), self.improve, is_over)
        self.products += steps
        return found

    def raised(self, positive: Array) -> ChoiceSteps:
        """See `BellmanOperator.raised`: iterates are raised above the floor where they are positive."""
        return ChoiceSteps(self, 1.0 - self.slack, 4.0 * self.floor * positive)

    def residual(self, x: Array, scratch: Array) -> float:
        """See `BellmanOperator.residual`: the greatest ``|f(x) - x|``."""
        if self.space.is_empty(self.size):
            return 0.0
        self.improve(x, scratch)
        return float(self.space.read(self.changes)[0])

    @property
    def entries(self) -> int | None:
        """See `BellmanOperator.entries`."""
        is_here = isinstance(self.space, HostSpace) and self.problem.communicator.size == 1
        return self.writable if is_here else None

    def written(self, policy: Array | None = None) -> FactoredSystem:
        """See `BellmanOperator.written`: members of a group have the value of the one that has a choice."""
        assert policy is not None
        rows, n = self._rows_written, self.size
        states, targets, values = rows.of_policy(policy)
        is_free = policy == NO_CHOICE
        if self.groups is not None:
            members = self.groups.members
            leaders = np.repeat(members[~is_free[members]], self.groups.sizes)
            follows = is_free[members]
            states = np.concatenate((states, members[follows]))
            targets = np.concatenate((targets, leaders[follows]))
            values = np.concatenate((values, np.ones(int(follows.sum()))))
            order = np.argsort(states, kind="stable")
            states, targets, values = states[order], targets[order], values[order]
        starts = np.searchsorted(states, np.arange(n + 1))
        gains = self.zeros()
        self.improve(self.zeros(), gains, policy=policy)
        gains[is_free] = 0.0
        found = CsrArrays((n, n), starts, targets, values)
        if self.is_slender is None:
            self.is_slender = n > FEW and SlenderSystem.suits(found)
        return factored_system(found, np.ones(n), gains, self.is_slender)

    @cached_property
    def _rows_written(self) -> ChoiceRows:
        assert self.write is not None
        return self.write()

    def reserve(self, vectors: int) -> None:
        """See `BellmanOperator.reserve`: whatever the method, its vectors and those of its guesses."""
        self.space.reserve(BOUND_VECTORS, self.size)

    # ------------------------------------------------------------------ steps

    def improve(
        self,
        x: Array,
        out: Array,
        factor: float = 1.0,
        *,
        shape: Array | None = None,
        policy: Array | None = None,
        descending: bool | None = None,
    ) -> None:
        """Queue ``out = factor * opt (A_i x + b_i)``, or ``out = factor * opt (A_i x) + shape``.

        Parameters
        ----------
        x, out : array, shape (size,), float64
        factor : float
            1 - slack rounds down for certain, 1 / (1 - slack) rounds up.
        shape : array, shape (size,), float64, optional
            Takes the place of the gains, and is not scaled.
        policy : array, shape (size,), uint16, optional
            From `choose`: the choices to take, in place of the best ones.
        descending : bool, optional
            Gauss-Seidel, where there is any: each state from the newest values of those before it, the last
            state first or last.  Parts of the states are improved at the same time, each from the values of
            the others in x.

        Notes
        -----
        Afterwards `changes` has the greatest absolute and relative difference between `out` and x.
        """
        self._improve(x, out, Improvement(factor, shape, policy, descending))

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        if how.descending is not None:
            raise NotImplementedError("states are improved all at once")
        self._best_joined(x, out, how.shape is not None, how.policy)
        self._finish(x, out, how.factor, how.shape)

    def follow(self, x: Array, out: Array, policy: Array) -> None:
        """Queue ``out = A x`` with the rows that a policy chooses; `changes` are left as they are."""
        self._best_joined(x, out, True, policy)

    def _best_joined(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        """Do as `_best` does, and give all members of a group its best value."""
        self._best(x, out, plain, policy)
        self.join(out)

    @property
    def has_policies(self) -> bool:
        """Whether `of_policy` is there: on the host, and on a device that has all states."""
        return isinstance(self.space, HostSpace)

    def of_policy(self, policy: Array) -> VectorSpace:
        """Return the vector space beside the matrix of the rows that a policy chooses.

        Parameters
        ----------
        policy : array, shape (size,), uint16
            From `choose`.

        Notes
        -----
        On a device a product allocates nothing, so that recurrences can be recorded.
        """
        assert isinstance(self.space, HostSpace)
        return self.space.over(FixedPolicy(self, policy))

    @property
    def has_gauss_seidel(self) -> bool:
        """Whether `improve` has Gauss-Seidel steps: on the host, where no states share a value."""
        return False

    def repeat(self, pair: Pair, done: int, count: int, factor: float = 1.0) -> None:
        """Queue steps ``done + 1 .. done + count``; the iterate after k steps lies in ``pair[k % 2]``."""
        self.improve_repeatedly(pair, done, count, Improvement(factor, None, None, None))

    def improve_repeatedly(self, pair: Pair, done: int, count: int, how: Improvement) -> None:
        """Do as `repeat` does with all options of `improve`."""
        for k in range(done, done + count):
            self._improve(pair[k % 2], pair[1 - k % 2], how)

    def choose(self, x: Array) -> Array:
        """Return the layer whose choice is best at x in every state, shape (size,), uint16.

        Of equal ones the first.  Of a group of states one only has a choice, a best one, the others
        `NO_CHOICE`.
        """
        best, policy = self._choices(x)
        if self.groups is None:
            return policy
        members, starts, sizes = self.groups.members, self.groups.starts, self.groups.sizes
        own = self.space.to_host(best[self.space.xp.asarray(members)])
        attained = own == np.repeat(self._best_of_all(self._best_of_own(own)), sizes)
        # The first of each group: attained, and none attained before it in the group.
        before = np.cumsum(attained) - attained
        first = attained & (before == np.repeat(before[starts], sizes))
        if self.groups.n_shared:
            has_best = np.logical_or.reduceat(attained, starts) if own.size else attained
            first &= np.repeat(self._is_first_process(has_best), sizes)
        policy[self.space.xp.asarray(members[~first])] = NO_CHOICE
        return policy

    # ------------------------------------------------------------------ what the matrices' form decides

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        """Queue the best over the choices, without gains if `plain`, of a policy if there is one."""
        raise NotImplementedError("steps are made as a whole")

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        """Queue the scaling, the addition and the measurement of `improve`."""
        if factor != 1.0:
            out *= factor
        if shape is not None:
            out += shape
        self.changes = np.zeros(2) if self.space.is_empty(self.size) else self.space.distance(out, x)

    @abstractmethod
    def _choices(self, x: Array) -> tuple[Array, Array]:
        """Return the best values and the layers that have them."""

    def join(self, out: Array) -> None:
        """Give the members of each group of states that share a value the best of theirs, in place."""
        groups, space = self.groups, self.space
        if groups is None:
            return
        if groups.n_shared:
            # Processes tell each other by way of the host.
            members = space.xp.asarray(groups.members)
            best = self._best_of_all(self._best_of_own(space.to_host(out[members])))
            out[members] = space.xp.asarray(np.repeat(best, groups.sizes))
        elif len(groups.members):
            self._joining(out)

    @cached_property
    def _joining(self) -> Callable[[Array], None]:
        assert self.groups is not None
        return self.space.joining(self.groups.members, self.groups.sizes, self.maximise)

    def _best_of_own(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best value of every group's own members, given member by member."""
        assert self.groups is not None
        reduce = np.maximum if self.maximise else np.minimum
        best: NDArray[np.float64] = reduce.reduceat(own, self.groups.starts) if own.size else own
        return best

    def _best_of_all(self, best: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best values of groups, those of members in other processes among them."""
        groups = self.groups
        if groups is None or not groups.n_shared:
            return best
        found = np.full(groups.n_shared, self.worst)
        is_shared = groups.shared >= 0
        found[groups.shared[is_shared]] = best[is_shared]
        reduce = np.maximum if self.maximise else np.minimum
        best[is_shared] = reduce.reduce(self.problem.communicator.gather(found))[groups.shared[is_shared]]
        return best

    def _is_first_process(self, attained: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for every group whether no process before this one has a best member."""
        groups, alike = self.groups, self.problem.communicator
        assert groups is not None
        found = np.full(groups.n_shared, np.inf)
        is_shared = groups.shared >= 0
        found[groups.shared[is_shared & attained]] = alike.rank
        first = np.full(len(groups.shared), True)
        first[is_shared] = np.min(alike.gather(found), axis=0)[groups.shared[is_shared]] >= alike.rank
        return first


# A fixed policy: the matrix of the rows that it chooses, and the operator of what it earns.


class FixedPolicy(ChoiceOperator):
    """``x -> A x + r`` with the rows A of a policy, on the matrices of another operator; a `LinearOperator`.

    Parameters
    ----------
    choices : ChoiceOperator
        Its gains do not count.
    policy : array, shape (size,), uint16
        The layer that each state takes.
    rewards : ndarray, shape (size,), float64, optional
        r, not negative; zero by default.

    Notes
    -----
    Several of them share one operator's matrices, one after the other: `changes` are those of its last step.
    """

    def __init__(self, choices: ChoiceOperator, policy: Policy, rewards: Vector | None = None) -> None:
        alike = choices.problem.communicator
        super().__init__(ChoiceProblem(choices.size, True, None, choices.slack, alike), choices.space)
        self.shape = (choices.size, choices.size)
        self._choices_of = choices
        self.backend, self.backend_reason = choices.backend, choices.backend_reason
        self.level, self.storage = choices.level, choices.storage
        self.nbytes, self.operand_bytes = choices.nbytes, choices.operand_bytes
        self.least_entry = choices.least_entry
        self._policy = choices.space.xp.asarray(policy)
        self._rewards = self.zeros() if rewards is None else choices.space.vector(rewards)
        self._scaled: dict[float, Array] = {1.0: self._rewards}

    @property
    def has_policies(self) -> bool:
        """See `ChoiceOperator.has_policies`: there is nothing to choose."""
        return False

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``A x``; on the host."""
        result = np.empty(len(x)) if out is None else out
        self._choices_of.follow(x, result, self._policy)
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``A x + b``: a step with omega 1, where the diagonal is 1."""
        choices = self._choices_of
        choices.improve(x, out, shape=self.zeros() if b is None else b, policy=self._policy)
        absolute, relative = self.space.read(choices.changes)
        return absolute, relative

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        """See `ChoiceOperator.improve`; the policy given is ignored."""
        shape = how.shape
        if shape is None:
            if how.factor not in self._scaled:
                self._scaled[how.factor] = how.factor * self._rewards
            shape = self._scaled[how.factor]
        self._choices_of.improve(x, out, how.factor, shape=shape, policy=self._policy)
        self.changes = self._choices_of.changes

    def _choices(self, x: Array) -> tuple[Array, Array]:
        raise NotImplementedError("there is nothing to choose")
