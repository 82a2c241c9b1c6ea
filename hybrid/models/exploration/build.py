"""From a text to its model by way of the list of its states, with their labels and rewards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.checking.simulation.functions import Ints, Variables
from hybrid.models.exploration.explore import Explored
from hybrid.models.interchange.compressing import compressed
from hybrid.models.interchange.explicit_model import (
    LEAST_NORMAL,
    ExplicitModel,
    ExplicitReward,
    StateVariable,
    unless_zero,
)
from mtbdd.build.model import SymbolicModel
from mtbdd.build.order import Order
from mtbdd.build.rewards import relative_units
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.syntax import Command, Expression, ModelType, ResolvedModel, RewardItem, RewardStructure

if TYPE_CHECKING:
    from hybrid.models.exploration.search import CompiledSearch

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
_TINIEST = 2.0**-1074


@dataclass(frozen=True)
class Numbers:
    """Numbers of states, and a bound on the absolute error of each."""

    # values and error: float64, shape (n,)
    values: Vector
    error: Vector

    @classmethod
    def zeros(cls, n: int) -> Numbers:
        """Return n zeros."""
        return cls(np.zeros(n), np.zeros(n))

    def plus(self, other: Numbers) -> Numbers:
        """Return the sum; adding to zero costs nothing."""
        values = self.values + other.values
        rounding = np.where((self.values == 0) | (other.values == 0), 0.0, np.abs(values) * _UNIT)
        return Numbers(values, (self.error + other.error + rounding) * _UP)

    def times(self, factor: Vector, units: float) -> Numbers:
        """Return the product with factors that are not negative, off by some units."""
        values = self.values * factor
        exact = (self.values == 0) | (factor == 0) | (factor == 1) | (self.values == 1)
        size = np.abs(values)
        # lemma: underflow
        rounding = np.where(exact, 0.0, size * _UNIT + _TINIEST)
        error = self.error * factor + size * (units * _UNIT) + rounding
        return Numbers(values, error * (1 + units * _UNIT) * _UP)


class ListedStates:
    """Expressions over states that are listed.

    `states`: ndarray of int64, shape (variables, n). `initial`, `deadlocks` (ndarray of bool, shape (n,)):
    what the labels "init" and "deadlock" mean.
    """

    def __init__(self, variables: Variables, states: Ints, initial: Mask, deadlocks: Mask) -> None:
        self._variables, self._states = variables, states
        self.n = states.shape[1]
        self._environment: Mapping[str, Any] = {
            **{name: variables.typed(row, states[row]) for row, name in enumerate(variables.names)},
            '"init"': initial,
            '"deadlock"': deadlocks,
        }

    def where(self, expression: Expression, what: str) -> Mask:
        """Return where a condition holds.

        Raises BuildError: it has no value in some state.
        """
        self._require(expression, np.ones(self.n, dtype=np.bool_), what)
        found: Mask = enclose(expression, self._environment, (self.n,)).values.astype(np.bool_)
        return found

    def earned(self, items: Sequence[RewardItem], among: Mask | None = None) -> Numbers:
        """Return the sum of some reward items, in the states that count."""
        total = Numbers.zeros(self.n)
        for item in items:
            where = self.where(item.guard, "the guard of a reward")
            if among is not None:
                where = where & among
            if not where.any():
                continue
            self._require(item.value, where, "a reward")
            found = enclose(item.value, self._environment, (self.n,), where)
            values = np.where(where, found.values.astype(np.float64), 0.0)
            self.refuse(item, np.isfinite(values), "expected a reward that is a finite number, got none")
            error = np.zeros(self.n) if found.error is None else np.where(where, found.error, 0.0)
            wide = np.abs(values) >= 2.0**53  # integers that doubles may not hold
            total = total.plus(Numbers(values, np.where(wide, error + np.abs(values) * _UNIT, error)))
        return total

    def units(self, structure: RewardStructure, found: Numbers) -> float:
        """Return a bound on the relative error of rewards, in units.

        Raises BuildError: they cancel so far that it is not known whether anything is left, or leave the
        normal doubles.
        """
        least = np.maximum(found.error, LEAST_NORMAL)  # lemma: underflow
        sure = np.isfinite(found.values) & ((found.error == 0) | (np.abs(found.values) > least))
        message = "expected rewards that add up to 0 or to a normal double of known sign, got none"
        self.refuse(structure, sure, message, "; write them as one item")
        return relative_units(found.values, found.error)

    def _require(self, expression: Expression, where: Mask, what: str) -> None:
        """Refuse an expression that has no value in a state that counts."""
        needed = self._variables.definedness(expression)
        defined = enclose(needed, self._environment, (self.n,)).values.astype(np.bool_)
        if not (defined | ~where).all():
            state = self._variables.text(self._states[:, int(np.argmin(defined | ~where))])
            raise BuildError([Fault(expression.position, f"{what} has no value in state {state}")])

    def refuse(self, item: RewardItem | RewardStructure, sound: Mask, message: str, advice: str = "") -> None:
        """Refuse what is not sound in some state.

        Raises BuildError: with the place in the text, and the first such state.
        """
        if not sound.all():
            state = self._variables.text(self._states[:, int(np.argmin(sound))])
            raise BuildError([Fault(item.position, f"{message} in state {state}{advice}")])


def build_explicitly(
    source: ResolvedModel,
    *,
    fix_deadlocks: bool = True,
    package: str = "auto",
    order: Order = "auto",
    progress: Callable[[str], None] | None = None,
    search: CompiledSearch | None = None,
) -> SymbolicModel:
    """List the reachable states of a model, then compress what was listed.

    Parameters
    ----------
    source : ResolvedModel
    fix_deadlocks, package, order, progress
        As for `mtbdd.build.build.build_model`.
    search : CompiledSearch, optional
        One that has begun.

    Returns
    -------
    SymbolicModel
        The same model, its states numbered alike; without events, as one that was read from a file.

    Raises
    ------
    BuildError
        The text gives a reachable state no rate or no reward, an update leads out of a range, or deadlocks
        that must not be.
    BudgetError, MemoryError

    Notes
    -----
    Time: that of `CompiledSearch.run`, then O(transitions log transitions) array operations.  Memory: some
    100 bytes a transition.
    """
    say = progress or (lambda text: None)
    started = time.perf_counter()
    listed = model_of(source, _explored(source, say, search))
    say(f"decision diagrams of {listed.n_states:,} states and {listed.n_entries:,} transitions")
    found = compressed(listed, fix_deadlocks=fix_deadlocks, package=package, order=order)
    # Properties may speak of the text's constants and formulas.
    found.source = replace(
        found.source, constants=source.constants, formulas=source.formulas, settled=source.settled
    )
    if found.given is not None:
        found.given = replace(found.given, text=source)
        found.is_reached = True
    found.build_seconds = time.perf_counter() - started
    return found


def _explored(source: ResolvedModel, say: Callable[[str], None], search: CompiledSearch | None) -> Explored:
    """Return the reachable states, found state by state."""
    from hybrid.models.exploration.search import CompiledSearch  # Numba is loaded where it is needed

    search = search or CompiledSearch(source, takes_all=True)
    search.run(progress=say)
    return search.result()


def model_of(source: ResolvedModel, found: Explored) -> ExplicitModel:
    """Return a model written out, from its states and transitions."""
    n = found.states.shape[1]
    initial = np.zeros(n, dtype=np.bool_)
    initial[found.initial] = True
    leaves = np.bincount(found.sources, minlength=n)
    states = ListedStates(found.variables, found.states, initial, leaves == 0)
    is_mdp = source.type is ModelType.MDP
    order = _order(found, n, is_mdp)
    sources, events = found.sources[order], found.events[order]
    actions, action_of = _actions(found)
    choice_starts = choice_actions = taken = choice_commands = None
    commands: tuple[tuple[Command, ...], ...] = ()
    if is_mdp:
        choices = found.choices[order]
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = (np.diff(sources) != 0) | (np.diff(events) != 0) | (np.diff(choices) != 0)
        first = np.flatnonzero(new)
        row_starts = np.append(first, order.size).astype(np.int64)
        choice_starts = pointers(np, np.bincount(sources[first], minlength=n))
        choice_actions = action_of[events[first]] - 1
        taken = _Taken(sources[first], choice_actions)
        commands, choice_commands = _commands(found, events[first], choices[first])
    else:
        row_starts = pointers(np, leaves)
    variables = found.variables
    values, units = found.weights[order], found.units
    if source.type is ModelType.DTMC:
        values, units = _shared(values, sources, n, units)
    return ExplicitModel(
        type=source.type,
        n_states=n,
        row_starts=row_starts,
        columns=found.targets[order],
        values=values,
        initial=initial,
        choice_starts=choice_starts,
        actions=actions[1:],
        choice_actions=choice_actions,
        commands=commands,
        choice_commands=choice_commands,
        variables=tuple(
            StateVariable(v.name, 0, 1, True) if v.is_bool else StateVariable(v.name, v.low, v.high)
            for v in source.variables
        ),
        valuations={
            name: variables.typed(row, found.states[row]) for row, name in enumerate(variables.names)
        },
        labels={
            label.name: states.where(label.expression, f'the label "{label.name}"') for label in source.labels
        },
        rewards=tuple(
            _reward(structure, states, found, taken, source.type is ModelType.CTMC)
            for structure in source.rewards
        ),
        value_units=units,
        source=source.file,
    )


def _order(found: Explored, n: int, is_mdp: bool) -> Ints:
    """Return the places of the transitions by source, and by target or by choice."""
    if is_mdp:
        return np.lexsort((found.choices, found.events, found.sources))
    if n < 1 << 31:
        return np.argsort(found.sources * n + found.targets, kind="stable")
    return np.lexsort((found.targets, found.sources))


def _actions(found: Explored) -> tuple[tuple[str, ...], Ints]:
    """Return the names of actions in order of appearance, the empty one first, and that of every event."""
    names = tuple(dict.fromkeys(["", *(name or "" for name in found.actions)]))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[name or ""] for name in found.actions], dtype=np.int64)


def _commands(
    found: Explored, events: NDArray[np.int32], choices: NDArray[np.int32]
) -> tuple[tuple[tuple[Command, ...], ...], NDArray[np.int32]]:
    """Return the commands of choices, one a module, each way once, and the place of every choice's."""
    most = int(choices.max(initial=0)) + 1
    if most * len(found.commands) < 1 << 62:
        ways, places = np.unique(events.astype(np.int64) * most + choices, return_inverse=True)
        pairs = [divmod(way, most) for way in ways.tolist()]
    else:
        table, places = np.unique(np.stack((events, choices)), axis=1, return_inverse=True)
        pairs = list(zip(*table.tolist(), strict=True))
    return tuple(_way(found.commands[e], way) for e, way in pairs), places.reshape(-1).astype(np.int32)


def _way(parts: Sequence[Sequence[Command]], way: int) -> tuple[Command, ...]:
    """Return the commands that the number of a choice stands for: its digits are their places."""
    taken: list[Command] = []
    for commands in reversed(parts):
        way, place = divmod(way, len(commands))
        taken.append(commands[place])
    return tuple(taken[::-1])


def _shared(values: Vector, sources: Ints, n: int, units: float) -> tuple[Vector, float]:
    """Return the probabilities of a DTMC, in which enabled commands are equally likely, and their error.

    Each command's add up to 1 but for the text's rounding, so that the sum shows how many there are.
    """
    counts = np.maximum(np.rint(np.bincount(sources, values, minlength=n)), 1.0)
    if (counts == 1).all():
        return values, units
    exact = (np.frexp(counts)[0] == 0.5).all()
    return values / counts[sources], units if exact else (units + 1.0) * (1 + 2.0**-40)


@dataclass(frozen=True)
class _Taken:
    """The choices of a decision process: whose each is, and the number of its action, -1 for none."""

    owners: Ints
    actions: Ints


def _reward(
    structure: RewardStructure, states: ListedStates, found: Explored, taken: _Taken | None, is_timed: bool
) -> ExplicitReward:
    """Return a reward structure: what states earn, and what their choices do."""
    own = states.earned([item for item in structure.items if not item.is_transition])
    units = states.units(structure, own)
    by_action: dict[str, list[RewardItem]] = {}
    for item in structure.items:
        if item.is_transition:
            by_action.setdefault(item.action or "", []).append(item)
    earned = None
    if by_action and taken is not None:
        earned = np.zeros(taken.owners.size)
        for number, action in enumerate(_actions(found)[0], start=-1):
            held = taken.actions == number
            among = np.zeros(states.n, dtype=np.bool_)
            among[taken.owners[held]] = True
            gained = states.earned(by_action.get(action, []), among)
            units = max(units, states.units(structure, gained))
            earned[held] = gained.values[taken.owners[held]]
    elif by_action:
        gained = _by_jumps(by_action, states, found)
        if is_timed:
            with np.errstate(over="ignore"):
                rates = gained.values * np.bincount(found.sources, found.weights, minlength=states.n)
            message = "expected rewards that add up to less than 1.79e308 in a unit of time, got more"
            states.refuse(structure, np.isfinite(rates), message)
            message = "expected rewards of 0 or at least 2.23e-308 in a unit of time, got less"
            # lemma: underflow
            is_held = (gained.values == 0) | (np.abs(rates) >= LEAST_NORMAL)
            states.refuse(structure, is_held, message, "; scale them")
        units = max(units, states.units(structure, gained))
        earned = gained.values
    is_sure = taken is not None  # in the language rewards of a process go by state and action
    return ExplicitReward(structure.name, unless_zero(own.values), unless_zero(earned), units, is_sure)


def _by_jumps(by_action: dict[str, list[RewardItem]], states: ListedStates, found: Explored) -> Numbers:
    """Return what a state of a chain earns when it is left, on average over its events."""
    n = states.n
    whole = np.bincount(found.sources, found.weights, minlength=n)
    most = float(np.bincount(found.sources, minlength=n).max(initial=1))
    actions, action_of = _actions(found)
    place = action_of[found.events]
    total = Numbers.zeros(n)
    for number, action in enumerate(actions):
        if action not in by_action:
            continue
        held = place == number
        rate = np.bincount(found.sources[held], found.weights[held], minlength=n)
        share = np.divide(rate, whole, out=np.zeros(n), where=whole > 0)
        gained = states.earned(by_action[action], rate > 0)
        product = gained.times(share, 2.0 * (found.units + most) + 1.0)
        # Of a share below the normal doubles nothing is known.
        lost = (gained.values != 0) & (rate > 0) & (share < LEAST_NORMAL)
        # lemma: underflow
        total = total.plus(replace(product, error=np.where(lost, np.inf, product.error)))
    return total
