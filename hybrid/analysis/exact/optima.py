"""A decision process in rational numbers, and the exact optima of its operators.

The graph shows where the answer is known beforehand, and in which end components a scheduler could stay
without reward. It is searched as for bounds (`hybrid.analysis.until`, `hybrid.analysis.rewards`). Such
components become one state each, with the choices that leave them; policy iteration solves the rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.exact.averages import greatest_averages, greatest_ratio
from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.exact.systems import OperationBudget, solve_systems
from hybrid.analysis.rewards import greatest_totals, refuse_free_components, reward_system, zero_reward_mecs
from hybrid.analysis.until import until_system
from hybrid.base.blas_threads import one_blas_thread
from hybrid.base.errors import NotExactError
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents, model_end_components

# Backward induction in rational numbers: ``x = opt over choices of (gain + P x)``, a number of times.
#
# A chain has one choice a state.  Where the number of steps is fixed, the best scheduler takes the best
# choice at every step, so that induction is exact for decision processes too (M. Puterman, Markov decision
# processes, 1994, section 4.3).

WORK = 1_000_000
"""Operations that exact answers of one model may take where the user has not requested exact answers."""

_MOST_OPERATIONS = 10**9
"""Operations that steps may take where the budget has no limit; more would not end."""

Exact = Fraction | float
"""A rational number, or infinity."""

Gains = Sequence[Sequence[Fraction]]
"""Reward of every choice of every state."""


class BackwardInduction:
    """Values of the coming steps, from every state.

    A state has one choice at least, each a map from successors to probabilities.
    """

    continuous = False

    def __init__(
        self,
        model: SymbolicModel,
        choices: Sequence[Sequence[Mapping[int, Fraction]]],
        maximise: bool,
        budget: OperationBudget,
    ) -> None:
        self.model = model
        self.choices = choices
        self.maximise = maximise
        self._budget = budget

    def step(self, values: Sequence[Exact]) -> list[Exact]:
        """Return the expected value one step later, from every state."""
        return list(self._step([finite(v) for v in values], range(len(self.choices))).values())

    def later(self, values: Sequence[Exact], steps: int) -> list[Exact]:
        """Return the expected value a number of steps later, from every state."""
        return self._repeat(values, range(len(self.choices)), steps)

    def cumulative_rewards(self, structure: int, steps: int) -> list[Exact]:
        """Return the optimal expected reward of the first steps, from every state."""
        return self._repeat(self._nothing(), range(len(self.choices)), steps, self._gains(structure))

    def _gains(self, structure: int) -> Gains:
        """Return what every choice of every state earns."""
        raise NotImplementedError

    def window(
        self, safe: Node, target: Node, lower: int, upper: int | None, later: list[Exact] | None
    ) -> list[Exact]:
        """Return the probability of ``safe U target`` in a window of steps, from every state.

        Without end `upper` is None, and `later` then holds the probabilities without a window.
        """
        if upper is not None and upper < lower:
            return self._nothing()
        if upper is not None:
            later = self._repeat(self._indicator(target), self._members(safe & ~target), upper - lower)
        if later is None:
            raise ValueError("a window without end needs the probabilities without a window")
        if lower == 0:
            return later
        safe_states, values = self._members(safe), self._nothing()
        for state, value in self._step([finite(v) for v in later], safe_states).items():
            values[state] = value
        return self._repeat(values, safe_states, lower - 1)

    # ------------------------------------------------------------------ parts

    def _repeat(
        self, values: Sequence[Exact], states: Sequence[int], steps: int, gains: Gains | None = None
    ) -> list[Exact]:
        """Return values after steps of ``x = opt (gains + P x)`` in some states, the others' values fixed."""
        x = [finite(value) for value in values]
        each = sum(1 + len(row) for i in states for row in self.choices[i])
        for made in range(steps):
            # Values that become constant at all do so within as many steps as there are states.
            left = _MOST_OPERATIONS if self._budget.left is None else self._budget.left
            if made > len(self.choices) and (steps - made) * each > left:
                raise NotExactError(f"{steps} steps, each of which changes something, are too many")
            new = self._step(x, states, gains)
            if all(x[i] == value for i, value in new.items()):
                break
            for i, value in new.items():
                x[i] = value
        return list(x)

    def _step(
        self, x: Sequence[Fraction], states: Iterable[int], gains: Gains | None = None
    ) -> dict[int, Fraction]:
        """Return ``opt (gains + P x)`` in some states."""
        choose = max if self.maximise else min
        new = {}
        for i in states:
            worth = []
            for k, row in enumerate(self.choices[i]):
                total = Fraction(0) if gains is None else gains[i][k]
                for j, p in row.items():
                    total += p * x[j]
                self._budget.spend(1 + len(row), total)
                worth.append(total)
            new[i] = choose(worth)
        return new

    def _nothing(self) -> list[Exact]:
        """Return zeros."""
        return [Fraction(0)] * len(self.choices)

    def _indicator(self, states: Node) -> list[Exact]:
        """Return 1 in a set and 0 elsewhere."""
        return [Fraction(int(inside)) for inside in self.model.indicator(states).tolist()]

    def _members(self, states: Node) -> list[int]:
        """Return the numbers of a set's states."""
        found: list[int] = np.flatnonzero(self.model.indicator(states)).tolist()
        return found


def finite(value: Exact) -> Fraction:
    """Return a finite value; refuse an infinite one."""
    if not isinstance(value, Fraction):
        raise NotExactError("infinite values have no rational expectation")
    return value


# Exact solution of ``x = opt over options (gain + A x)`` by policy iteration in rational numbers.
#
# A policy takes one option of every state.  It is proper if the system is left almost surely under it.
# Every policy has to be proper, or an improper one to be worth infinitely much to a minimum; then each policy
# found is better than the one before and proper, and the last one is optimal (D. Bertsekas and J. Tsitsiklis,
# An analysis of stochastic shortest path problems, Mathematics of Operations Research, 1991, section 3).
# The first policy is found in doubles, so that rational numbers have little or nothing to improve.

MAX_UNKNOWN = 1000
"""States whose optimal values may have to be solved for where operations are counted."""

_DENSE = 500  # states up to which the system of a policy is a dense matrix
_TRIES = 100  # policies tried in doubles: a poor first policy costs time, never the answer
_GAIN = 1e-9  # relative; less is rounding


@dataclass(frozen=True)
class Option:
    """A choice of an unknown state: its reward, and its unknown successors.

    What is missing to 1 in the row leaves the system.
    """

    gain: Fraction
    row: Mapping[int, Fraction]


Policy = list[int]


def solve_optima(
    options: Sequence[Sequence[Option]], maximise: bool, budget: OperationBudget
) -> list[Fraction]:
    """Return the optimal values, at least one option being there for every state.

    Refused are too many states or operations, and states from which no policy leaves the system. A policy
    costs one elimination, see `hybrid.analysis.exact.systems`, and one evaluation of every option.
    """
    if not options:
        return []
    if budget.left is not None and len(options) > MAX_UNKNOWN:
        raise NotExactError(f"{len(options)} unknown states are too many for exact solution")
    policy = _approximate(options, _leaving(options), maximise)
    while True:
        own = [of[k] for of, k in zip(options, policy, strict=True)]
        solved = solve_systems([o.row for o in own], [[o.gain] for o in own], budget)
        values = [x[0] for x in solved]
        changed = False
        for i, of in enumerate(options):
            best = values[i]
            for k, option in enumerate(of):
                worth = option.gain + sum((p * values[j] for j, p in option.row.items()), Fraction(0))
                budget.spend(1 + len(option.row), worth)
                if worth > best if maximise else worth < best:
                    best, policy[i], changed = worth, k, True
        if not changed:
            return values


def _leaving(options: Sequence[Sequence[Option]]) -> Policy:
    """Return a proper policy: in every state an option that may come closer to the way out."""
    before: list[list[tuple[int, int]]] = [[] for _ in options]
    policy = [-1] * len(options)
    reached = []
    for i, of in enumerate(options):
        for k, option in enumerate(of):
            for j in option.row:
                before[j].append((i, k))
            if policy[i] < 0 and sum(option.row.values()) < 1:
                policy[i] = k
                reached.append(i)
    for j in reached:  # grows meanwhile
        for i, k in before[j]:
            if policy[i] < 0:
                policy[i] = k
                reached.append(i)
    if len(reached) < len(options):
        raise NotExactError("some states cannot leave the system that is solved")
    return policy


def _solution(
    size: int,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    weight: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Solve the system of one policy in doubles; None if they see none that is unique."""
    if size > _DENSE:
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import MatrixRankWarning, spsolve

        system = eye_array(size, format="csc") - csc_array((weight, (row, column)), shape=(size, size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            found: NDArray[np.float64] = np.asarray(spsolve(system, gains), np.float64)
        return found if bool(np.isfinite(found).all()) else None
    dense = np.eye(size)
    np.subtract.at(dense, (row, column), weight)
    with suppress(np.linalg.LinAlgError), one_blas_thread():
        solved: NDArray[np.float64] = np.linalg.solve(dense, gains).astype(np.float64)
        return solved
    return None


def _approximate(options: Sequence[Sequence[Option]], policy: Policy, maximise: bool) -> Policy:
    """Return a proper policy that policy iteration in doubles comes to from a proper one."""
    size = len(options)
    sign = 1.0 if maximise else -1.0
    owner = np.repeat(np.arange(size), [len(of) for of in options])
    first = np.searchsorted(owner, np.arange(size))
    every = [option for of in options for option in of]
    gains = np.array([float(option.gain) for option in every])
    lengths = np.array([len(option.row) for option in every])
    number = np.repeat(np.arange(len(every)), lengths)
    column = np.array([j for option in every for j in option.row], dtype=np.int64)
    weight = np.array([float(p) for option in every for p in option.row.values()])
    current = np.array(policy) + first
    for _ in range(_TRIES):
        where = np.full(len(every), -1)
        where[current] = np.arange(size)
        mine = where[number] >= 0
        x = _solution(size, where[number[mine]], column[mine], weight[mine], gains[current])
        if x is None:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            worth = sign * (gains + np.bincount(number, weight * x[column], len(every)))
        if not bool(np.isfinite(worth).all()):
            break
        best = np.maximum.reduceat(worth, first)
        better = best > worth[current] + _GAIN * np.abs(worth[current])
        if not bool(better.any()):
            break
        # The first option of every state that is as good as its best one.
        top = np.flatnonzero(worth == best[owner])
        tops, at = np.unique(owner[top], return_index=True)
        chosen = current.copy()
        chosen[tops] = top[at]
        current = np.where(better, chosen, current)
    found: Policy = (current - first).tolist()
    only = [[of[k]] for of, k in zip(options, found, strict=True)]
    try:
        _leaving(only)
    except NotExactError:
        return policy  # rounding led astray
    return found


class ExactOptima(BackwardInduction):
    """The least or greatest values over all schedulers; all questions about a model share the budget."""

    def __init__(self, numbers: ExactModel, maximise: bool, budget: OperationBudget) -> None:
        super().__init__(numbers.model, numbers.choices, maximise, budget)
        self._numbers = numbers

    def _gains(self, structure: int) -> list[list[Fraction]]:
        """Return what every choice earns, that of the state included; refuse negative rewards."""
        gains = self._numbers.gains(structure)
        if any(gain < 0 for own in gains for gain in own):
            raise NotExactError("rewards below zero are not solved exactly in decision processes")
        return gains

    def until(self, safe: Node, target: Node) -> list[Exact]:
        """Return the optimal probability of ``safe U target`` from every state."""
        system = until_system(self.model, safe, target, self.maximise)
        allowed = [layer.enabled for layer in self.model.layers]
        known = self._indicator(system.one)
        return self._solve(system.unknown.states, known, allowed, system.components, None)

    def reachability_rewards(self, structure: int, target: Node) -> list[Exact]:
        """Return the optimal expected reward before a set is reached; infinite where it may be missed."""
        gains = self._gains(structure)
        system = reward_system(self.model, structure, target, self.maximise)
        known = self._outside(~system.finite & self.model.reachable)
        return self._solve(system.unknown.states, known, system.allowed, system.components, gains)

    def total_rewards(self, structure: int) -> list[Exact]:
        """Return the optimal expected reward in all time, from every state."""
        model, gains = self.model, self._gains(structure)
        if not self.maximise:
            return self.reachability_rewards(structure, zero_reward_mecs(model, structure).states)
        infinite, unknown = greatest_totals(model, structure)
        ends = model_end_components(model, unknown)
        allowed = [layer.enabled for layer in model.layers]
        return self._solve(unknown, self._outside(infinite), allowed, ends, gains, stop=True)

    def discounted_rewards(self, structure: int, discount: Fraction) -> list[Exact]:
        """Return the optimal reward in all time, that of the k-th step times a power of the discount."""
        gains = self._gains(structure)
        if self._budget.left is not None and len(self.choices) > MAX_UNKNOWN:
            raise NotExactError(f"{len(self.choices)} unknown states are too many for exact solution")
        options = [
            [
                Option(gain, {j: discount * p for j, p in row.items()})
                for gain, row in zip(own, rows, strict=True)
            ]
            for own, rows in zip(gains, self.choices, strict=True)
        ]
        return list(solve_optima(options, self.maximise, self._budget))

    def long_run_rewards(self, structure: int) -> list[Exact]:
        """Return the optimal long-run average of a reward structure, from every state."""
        return self._averages(self._numbers.gains(structure))

    def long_run_probabilities(self, states: Node) -> list[Exact]:
        """Return the optimal long-run probability of a set, from every state."""
        inside = self.model.indicator(states).tolist()
        return self._averages(
            [[Fraction(int(i))] * len(own) for i, own in zip(inside, self.choices, strict=True)]
        )

    def long_run_ratios(self, structure: int, divisor: int) -> list[Exact]:
        """Return the optimal long-run ratio of two reward structures, from every state.

        Every choice that stays in its end component earns the best ratio there.
        """
        refuse_free_components(self.model, divisor)
        above, below = self._gains(structure), self._gains(divisor)
        sign = 1 if self.maximise else -1
        earned = [[Fraction(0)] * len(own) for own in self.choices]
        for members, may in self._end_components():
            place = {s: i for i, s in enumerate(members)}
            kept = [
                (s, [k for k, layer in enumerate(self._numbers.layers[s]) if may[layer][s]]) for s in members
            ]
            rows = [[{place[j]: p for j, p in self.choices[s][k].items()} for k in own] for s, own in kept]
            top = [[sign * above[s][k] for k in own] for s, own in kept]
            bottom = [[below[s][k] for k in own] for s, own in kept]
            best = sign * greatest_ratio(rows, top, bottom, self._budget)
            for s, own in kept:
                for k in own:
                    earned[s][k] = best
        return self._averages(earned)

    def _averages(self, gains: Gains) -> list[Exact]:
        """Return the optimal long-run average of what choices earn, from every state."""
        if self._budget.left is not None and len(self.choices) > MAX_UNKNOWN:
            raise NotExactError(f"{len(self.choices)} unknown states are too many for exact solution")
        if self.maximise:
            return list(greatest_averages(self.choices, gains, self._budget))
        losses = [[-gain for gain in own] for own in gains]
        return [-average for average in greatest_averages(self.choices, losses, self._budget)]

    # ------------------------------------------------------------------ parts

    def _end_components(self) -> Iterator[tuple[list[int], list[NDArray[np.bool_]]]]:
        """Yield the states of every maximal end component, and where choices of each layer stay inside."""
        ends = model_end_components(self.model)
        for component in (ends.single, *ends.components):
            members = self._members(component.states)
            may = [self.model.indicator(states) for states in component.choices]
            for own in [[s] for s in members] if component is ends.single else [members]:
                yield own, may

    def _outside(self, infinite: Node) -> list[Exact]:
        """Return infinity in a set and 0 elsewhere."""
        inside = self.model.indicator(infinite).tolist()
        return [float("inf") if i else Fraction(0) for i in inside]

    def _solve(
        self,
        unknown: Node,
        known: list[Exact],
        allowed: Sequence[Node],
        components: EndComponents | None,
        gains: list[list[Fraction]] | None,
        stop: bool = False,
    ) -> list[Exact]:
        """Return the optimal values with those outside of the unknown states known.

        `allowed` has for every layer the states whose choice may be taken. The components become one state
        each, without the choices that stay inside; with `stop` a scheduler may stay there, which is worth
        nothing more.
        """
        members = self._members(unknown)
        kept = list(allowed)
        place: dict[int, int] = {}
        ends: list[int] = []
        if components is not None:
            every = (components.single, *components.components)
            kept = [
                states & ~self.model.manager.disjunction(c.choices[layer] for c in every)
                for layer, states in enumerate(allowed)
            ]
            for number, component in enumerate(components.components):
                place |= dict.fromkeys(self._members(component.states & unknown), number)
            ends = self._members(components.states & unknown)
        count = len(set(place.values()))
        for state in members:
            if state not in place:
                place[state] = count
                count += 1
        if self._budget.left is not None and count > MAX_UNKNOWN:
            raise NotExactError(f"{count} unknown states are too many for exact solution")
        options: list[list[Option]] = [[] for _ in range(count)]
        may = [self.model.indicator(states) for states in kept]
        for state in members:
            for k, layer in enumerate(self._numbers.layers[state]):
                if may[layer][state]:
                    gain = Fraction(0) if gains is None else gains[state][k]
                    options[place[state]].append(self._option(state, k, gain, known, place))
        if stop:
            for unit in {place[state] for state in ends}:
                options[unit].append(Option(Fraction(0), {}))
        solved = solve_optima(options, self.maximise, self._budget)
        values = list(known)
        for state in members:
            values[state] = solved[place[state]]
        return values

    def _option(
        self, state: int, number: int, gain: Fraction, known: Sequence[Exact], place: dict[int, int]
    ) -> Option:
        """Return a choice of an unknown state, its known successors counted as gain."""
        row: dict[int, Fraction] = {}
        for j, p in self.choices[state][number].items():
            if j in place:
                row[place[j]] = row.get(place[j], Fraction(0)) + p
            elif known[j] != 0:
                gain += p * finite(known[j])
        return Option(gain, row)
