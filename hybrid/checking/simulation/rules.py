"""Transition rules of a state: events with their rates, and the updates of each part of an event.

An event is an unlabelled command, or an action with a component for every module that takes part
(`mtbdd.build.events`). In a chain the rates of a component's enabled commands and updates add up, and those
of components multiply. So an event is drawn by its whole rate. Then each component draws one of its updates
by the update's own rate, independently of the others. No product of commands is ever written out. In a
decision process a component counts its enabled commands instead, each of which is as likely as any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from hybrid.checking.simulation.functions import (
    MISSING,
    TABLE,
    TRUE,
    Array,
    Columns,
    Combined,
    Doubles,
    Function,
    Ints,
    NewValue,
    Number,
    ProductOfRates,
    Sum,
    Variables,
    Where,
    condition,
)
from mtbdd.build.events import PERHAPS_NEAR, SURELY_NEAR, adds_up, synchronisations, total_weight
from mtbdd.build.expressions import NO_VALUE
from mtbdd.language.errors import BuildError, EvaluationError, Fault
from mtbdd.language.evaluate import evaluate
from mtbdd.language.syntax import (
    Command,
    Expression,
    Literal,
    ModelType,
    Position,
    ResolvedModel,
    RewardItem,
    RewardStructure,
    Update,
)


@dataclass(frozen=True)
class Alternative:
    """One update of a command.

    `weight` is its share of the component's rate, zero where the command is not enabled; `assignments` has
    rows and their new values.
    """

    command: Command
    update: Update
    weight: Function
    assignments: tuple[tuple[int, Function], ...]


@dataclass(frozen=True)
class Component:
    """Alternatives of one module for an event."""

    commands: tuple[Command, ...]
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class SimulatedEvent:
    """An unlabelled command, or an action with its participating modules.

    `rate` is float64: the event's rate, in a decision process the number of its choices; NaN where the text
    gives none.
    """

    action: str | None
    components: tuple[Component, ...]
    rate: Function


class Rules:
    """The events of a model, compiled.

    Up to `entries` combinations of values a function is worked out for all of them at once. `actions` has the
    names of actions in order of appearance, the empty name of unlabelled commands first, and `action_of`,
    int32, the place of each event's, the last one that of the loop of a deadlock. A step takes at most
    `draws` random numbers: one for the event, one for each component with a choice. Raises BuildError where a
    range is too wide, see `Variables`, and OverflowError where an action can be taken in too many ways. Time:
    O(commands), with a table of some thousand entries for most expressions.
    """

    def __init__(self, model: ResolvedModel, entries: int = TABLE) -> None:
        self.model, self.type, self._entries = model, model.type, entries
        self.variables = Variables(model)
        together = synchronisations(model)
        known: dict[int, tuple[Component, Function]] = {}
        events = []
        for s in together:
            for commands in s.parts:
                if id(commands) not in known:
                    known[id(commands)] = self._component(commands)
            own = [known[id(commands)] for commands in s.parts]
            rate = ProductOfRates(self.variables, [total for _, total in own]).compiled(entries)
            events.append(SimulatedEvent(s.action, tuple(c for c, _ in own), rate))
        self.events = tuple(events)
        self.actions = tuple(dict.fromkeys(["", *(e.action or "" for e in events)]))
        place = {name: i for i, name in enumerate(self.actions)}
        self.action_of = np.array([*(place[e.action or ""] for e in events), 0], dtype=np.int32)
        choices = [sum(len(c.alternatives) > 1 for c in e.components) for e in events]
        self.draws = 1 + max(choices, default=0)

    def absorbing(self, columns: Columns) -> Array:
        """Return which states of a chain are never left: no enabled update changes a variable.

        Bool, shape (columns.count,). Time: O(updates) operations on arrays.
        """
        stays = np.ones(columns.count, dtype=np.bool_)
        for event in self.events:
            happens = event.rate(columns) > 0
            if not happens.any():
                continue
            for component in event.components:
                for alternative in component.alternatives:
                    changes = np.zeros(columns.count, dtype=np.bool_)
                    for row, value in alternative.assignments:
                        changes |= value(columns) != columns[row]
                    if changes.any():
                        stays &= ~(happens & changes & (alternative.weight(columns) > 0))
        return stays

    def _component(self, commands: tuple[Command, ...]) -> tuple[Component, Function]:
        """Compile a component, and its rate apart: it is needed within that of the event only."""
        v, is_chain = self.variables, self.type is not ModelType.MDP
        totals: list[Function] = []
        alternatives = []
        for command in commands:
            guard = condition(v, command.guard)
            one = Number(v, Literal(command.position, 1))
            weights = [one if u.weight is None else Number(v, u.weight) for u in command.updates]
            near = None
            if self.type is not ModelType.CTMC:
                near = condition(v, adds_up(total_weight(command)))
            total = _Total(v, weights, near, is_chain)
            totals.append(Where(v, [guard, total]))
            for number, update in enumerate(command.updates):
                share = _Share(v, weights, number, is_chain)
                weight = Where(v, [guard, share]).compiled(self._entries)
                assigned = tuple(
                    (
                        v.place[a.variable],
                        NewValue(v, v.place[a.variable], a.expression).compiled(self._entries),
                    )
                    for a in update.assignments
                )
                alternatives.append(Alternative(command, update, weight, assigned))
        return Component(commands, tuple(alternatives)), Sum(v, totals)


class _Total(Combined):
    """The rate of an enabled command: the sum of its weights, in a decision process 1; NaN if wrong.

    Where doubles do not show whether probabilities are near enough to 1, the condition `near` decides.
    """

    def __init__(
        self, variables: Variables, parts: Sequence[Function], near: Function | None, is_chain: bool
    ) -> None:
        super().__init__(variables, parts)
        self._near, self._is_chain = near, is_chain

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the rates."""
        return self._sound(super().over(values, shape), lambda near: near.over(values, shape))

    def __call__(self, columns: Columns) -> Array:
        """Return the rates in some states."""
        return self._sound(super().__call__(columns), lambda near: near(columns))

    def _sound(self, total: Array, decided: Callable[[Function], Array]) -> Array:
        """Return totals as rates, without those of probabilities that do not add up to 1."""
        sound = ~np.isnan(total)
        if self._near is not None:
            off = np.abs(total - 1)
            sound = off <= SURELY_NEAR
            if (~sound & (off <= PERHAPS_NEAR)).any():
                sound |= (off <= PERHAPS_NEAR) & (decided(self._near) == TRUE)
        return np.where(sound, total if self._is_chain else 1.0, math.nan)

    def combine(self, found: list[Array]) -> Array:
        """Return the sums; NaN where a weight is none."""
        total = np.zeros(np.broadcast_shapes(*(weight.shape for weight in found)))
        sound = np.ones(total.shape, dtype=np.bool_)
        with np.errstate(over="ignore"):
            for weight in found:
                sound &= weight >= 0  # False for NaN
                total = total + weight
        return np.where(sound, total, math.nan)


class _Share(Combined):
    """The rate of one update of an enabled command; in a decision process its probability."""

    def __init__(self, variables: Variables, parts: Sequence[Function], number: int, is_chain: bool) -> None:
        super().__init__(variables, [parts[number]] if is_chain else parts)
        self._number, self._is_chain = 0 if is_chain else number, is_chain

    def combine(self, found: list[Array]) -> Array:
        """Return the rates."""
        own = found[self._number]
        if self._is_chain:
            return own
        total = np.zeros(np.broadcast_shapes(*(weight.shape for weight in found)))
        for weight in found:
            total = total + weight
        with np.errstate(divide="ignore", invalid="ignore"):
            shared: Array = np.asarray(own / total)
        return shared


# Rewards of paths: of states and of transitions, as functions of a state.


class RewardStructureRules:
    """One reward structure of the rules' model."""

    def __init__(self, rules: Rules, structure: RewardStructure) -> None:
        self._rules, self._structure = rules, structure
        self._of_states = self._sum([item for item in structure.items if not item.is_transition])
        self._of_actions = {
            place: found
            for place, action in enumerate(rules.actions)
            if (
                found := self._sum(
                    [i for i in structure.items if i.is_transition and (i.action or "") == action]
                )
            )
            is not None
        }

    def _sum(self, items: list[RewardItem]) -> Function | None:
        """Return the sum of some items; None if there is none."""
        v = self._rules.variables
        parts = [Where(v, [condition(v, item.guard), Number(v, item.value)]) for item in items]
        return Sum(v, parts).compiled() if parts else None

    def of_states(self, states: Ints) -> Doubles:
        """Return the reward of each state, a step or a time unit, shape (paths,).

        Raises BuildError where a reward is not a finite number.
        """
        if self._of_states is None:
            return np.zeros(states.shape[1])
        found = self._of_states(Columns(states))
        self._check(found, states)
        return found

    def of_events(self, states: Ints, events: Array) -> Doubles:
        """Return the reward of each path for its event; 0 for the loop of a deadlock.

        `states`, int64, shape (variables, paths), are those before the `events`, shape (paths,).
        """
        earned = np.zeros(states.shape[1])
        if not self._of_actions:
            return earned
        actions = self._rules.action_of[events]
        actions = np.where(events == len(self._rules.events), -1, actions)
        for action, function in self._of_actions.items():
            where = np.flatnonzero(actions == action)
            if where.size:
                earned[where] = function(Columns(states, where))
        self._check(earned, states)
        return earned

    def _check(self, found: Array, states: Ints) -> None:
        if not np.isfinite(found).all():
            self._refuse(states[:, np.flatnonzero(~np.isfinite(found))[0]])

    def _refuse(self, state: Ints) -> NoReturn:
        """Raise for a state in which a reward is not a finite number."""
        v, columns = self._rules.variables, Columns(state.reshape(-1, 1))
        position = self._structure.position
        for item in self._structure.items:
            if not np.isfinite(Where(v, [condition(v, item.guard), Number(v, item.value)])(columns)[0]):
                position = item.position
                break
        message = f"expected a reward that is a finite number, got none in state {v.text(state)}"
        raise BuildError([Fault(position, message)])


# Faults of the model in a state of a path, with the messages of the engine.


def refuse_state(rules: Rules, state: Ints) -> NoReturn:
    """Raise BuildError for a state, shape (variables,), in which the rates of events are no finite numbers.

    It has the first fault of every event.
    """
    columns = Columns(state.reshape(-1, 1))
    where = f"in reachable state {rules.variables.text(state)}"
    faults = []
    for event in rules.events:
        if np.isfinite(event.rate(columns)[0]):
            continue
        own = [
            f for c in event.components for command in c.commands for f in _faults(rules, command, columns)
        ]
        faults += own[:1]
    if not faults:
        message = (
            "expected rates that multiply and add up to less than 1.79e308, the largest double, got more"
        )
        faults.append(Fault(Position(rules.model.file, 1, 1), message))
    raise BuildError(Fault(f.position, f"{f.message}, {where}") for f in faults)


def _faults(rules: Rules, command: Command, columns: Columns) -> Iterator[Fault]:
    """Yield the faults of a command's guard and weights in a state."""
    variables = rules.variables
    code = condition(variables, command.guard)(columns)[0]
    if code == MISSING:
        yield Fault(command.guard.position, f"the guard of a command has no value ({NO_VALUE})")
    if code != TRUE:
        return
    total = 0.0
    for update in command.updates:
        weight = Literal(update.position, 1) if update.weight is None else update.weight
        value = float(Number(variables, weight)(columns)[0])
        if np.isnan(value):
            yield Fault(weight.position, f"the weight of an update has no finite value ({NO_VALUE})")
        elif value < 0:
            yield Fault(update.position, f"the weight of an update is {value}")
        total += value
    if rules.type is not ModelType.CTMC:
        yield Fault(command.position, f"the probabilities of a command add up to {total}, expected 1")


def refuse_update(rules: Rules, event: SimulatedEvent, row: int, state: Ints) -> NoReturn:
    """Raise for an event whose update gives the variable of a row a value that it cannot have."""
    variables, columns = rules.variables, Columns(state.reshape(-1, 1))
    name, low, high = variables.names[row], variables.low[row], variables.high[row]
    faults = []
    for component in event.components:
        for alternative in component.alternatives:
            if not alternative.weight(columns)[0] > 0:
                continue
            for assignment in alternative.update.assignments:
                value = _value(rules, assignment.expression, columns)
                text = f"the update sets {name} to {value}, outside its range [{low}..{high}]"
                if value is None:
                    text = f"the value assigned to {name} does not exist ({NO_VALUE})"
                if assignment.variable == name and (value is None or not low <= value <= high):
                    where = f"in reachable state {variables.text(state)}"
                    faults.append(Fault(assignment.position, f"{text}, {where}"))
    raise BuildError(faults)


def _value(rules: Rules, expression: Expression, columns: Columns) -> int | None:
    """Return the value of an assigned expression in one state, None if it has none."""
    variables = rules.variables
    environment = columns.environment(variables, range(len(variables.names)))
    try:
        return int(evaluate(expression, {name: values[0] for name, values in environment.items()}))
    except EvaluationError:
        return None
