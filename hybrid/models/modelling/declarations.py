"""Decision diagrams of a model from the declarations of its builder."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.base.errors import ModellingError
from hybrid.models.model import Model
from hybrid.models.modelling.quantities import ModelVariable, Quantity
from hybrid.models.modelling.translator import PythonExpression, TableTranslator
from mtbdd.build.build import assemble, initial_states, refuse, row_divisors, suspects_of
from mtbdd.build.choices import ChoiceLayer, ChoicePart, choice_relations, pack_choices, translate_choices
from mtbdd.build.diagram_parts import DiagramReward
from mtbdd.build.events import Event, Suspect, translate_events
from mtbdd.build.model_from_diagrams import model_from_diagrams, variable_of_range
from mtbdd.build.reachable import reachable_states
from mtbdd.diagrams.arithmetic import add, scaled
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.errors import BuildError, format_state, listed, suggestion
from mtbdd.language.limits import current, raised
from mtbdd.language.syntax import (
    Assignment,
    Command,
    ModelType,
    Module,
    Position,
    ResolvedModel,
    ResolvedVariable,
    Update,
)
from mtbdd.language.tokens import RESERVED
from mtbdd.offset.states import index_states

_ROOM = __name__.rpartition(".")[0]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 200


@dataclass(frozen=True)
class DeclaredUpdate:
    """One branch of a command: its weight, None for 1, and what it assigns."""

    weight: Quantity | None
    assigned: tuple[tuple[ModelVariable, Quantity], ...]


@dataclass(frozen=True)
class DeclaredCommand:
    """One command."""

    action: str | None
    guard: Quantity
    updates: tuple[DeclaredUpdate, ...]
    position: Position


@dataclass(frozen=True)
class DeclaredLabel:
    """A set of states with a name."""

    condition: Quantity
    position: Position


@dataclass(frozen=True)
class DeclaredReward:
    """One item of a reward structure: earned in states, or by the transitions (choices) of an action."""

    guard: Quantity
    value: Quantity
    of_transitions: bool
    action: str | None
    position: Position


def caller_location() -> Position:
    """Return the file and the line outside of this room that called into it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_ROOM):
        frame = frame.f_back
    return Position(Path(frame.f_code.co_filename).name, frame.f_lineno, 1)


def check_name(name: Any, what: str, taken: Iterable[str], place: Position) -> str:
    """Return a name that properties can say, and that is not taken.

    Raises ModellingError: it is another thing, a word of the language of properties, or taken.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ModellingError(
            f"{place}: expected a name of a {what} of letters, digits and underscores, got {name!r}"
        )
    if name in RESERVED:
        raise ModellingError(f"{place}: '{name}' is a word of the language of properties; rename the {what}")
    if name in set(taken):
        raise ModellingError(f"{place}: {what} '{name}' is declared a second time; rename one of them")
    return name


def check_integer(number: Any, what: str, place: Position) -> int:
    """Return an integer that is far from the ends of 64 bits."""
    try:
        if isinstance(number, bool):
            raise TypeError
        found = number.__index__()
    except (TypeError, AttributeError):
        raise ModellingError(f"{place}: {what}: expected an integer, got {number!r}") from None
    if not abs(found) < 1 << 53:
        raise ModellingError(f"{place}: {what}: expected an integer of less than 2^53, got {found}")
    return int(found)


ENDED = "ended"
"""The variable that says whether a discounted model has ended."""


def check_discount(discount: Any, kind: ModelType, names: Sequence[str]) -> float:
    """Return a discount as a double between 0 and 1."""
    try:
        found = float(discount)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not 0 < found < 1:
        raise ModellingError(f"discount: expected a number between 0 and 1, both excluded, got {discount!r}")
    if kind is ModelType.CTMC:
        raise ModellingError("discount: expected a dtmc or an mdp, got a ctmc, whose time has no steps")
    if ENDED in names:
        raise ModellingError(f"discount: adds a variable '{ENDED}'; rename the one that is declared")
    return found


def end_state(encoding: Encoding) -> Node:
    """Return the state that is ended, all other variables at their least values."""
    return encoding.state({v.name: v.high if v.name == ENDED else v.low for v in encoding.variables})


def discounted_layers(
    encoding: Encoding, layers: Sequence[ChoiceLayer], discount: float
) -> list[ChoiceLayer]:
    """Return layers in which every choice ends with probability ``1 - discount``.

    `encoding`: with the variable `ENDED`, which holds nowhere in the layers. `layers`: rows of probabilities.
    Returns list of ChoiceLayer: the first one has the loop of the state that is ended. Time: that of sums of
    diagrams.
    """
    manager = encoding.manager
    end = end_state(encoding)
    there = manager.to_columns(end)
    rest = 1.0 - discount
    units = 0.0 if Fraction(rest) == 1 - Fraction(discount) else 1.0
    found = []
    for number, layer in enumerate(layers):
        moves = SymbolicMatrix(manager, layer.enabled & there, np.array([rest]), units)
        matrix = add(scaled(layer.matrix, discount), moves)
        enabled, parts = layer.enabled, layer.parts
        if number == 0:
            matrix = add(matrix, SymbolicMatrix(manager, end & there, np.ones(1)))
            enabled, parts = enabled | end, (*parts, ChoicePart(None, end, None))
        found.append(ChoiceLayer(matrix, enabled, parts))
    return found


def given_rewards(
    written: Mapping[str, Sequence[DeclaredReward]],
    translator: TableTranslator,
    layers: Sequence[ChoiceLayer],
    found: Node,
    is_mdp: bool,
    divisors: Partition | None,
) -> list[DiagramReward]:
    """Return the reward structures.

    Raises ModellingError: the reward of a reachable state is not finite; rewards of both signs are added with
    rounding. `layers`: with their events. `found`: the reachable states. `is_mdp`: in an MDP a choice earns
    its reward once; in a chain a transition earns it as often as its rate says. `divisors`: what rows of a
    DTMC are divided by.
    """
    return [
        _structure(name, items, translator, layers, found, is_mdp, divisors)
        for name, items in written.items()
    ]


def _structure(
    name: str,
    items: Sequence[DeclaredReward],
    translator: TableTranslator,
    layers: Sequence[ChoiceLayer],
    found: Node,
    is_mdp: bool,
    divisors: Partition | None,
) -> DiagramReward:
    own = [_earned(name, item, translator, found) for item in items if not item.of_transitions]
    states = _function(name, translator, own) if own else None
    choices: list[SymbolicMatrix | None] = []
    for layer in layers:
        earned = []
        for item in items:
            parts = [p for p in layer.parts if p.event is not None and p.action == item.action]
            if not item.of_transitions or not parts:
                continue
            often = [_often(part, found, is_mdp, divisors) for part in parts]
            where = translator.encoding.manager.disjunction(o.support for o in often)
            value = _earned(name, item, translator, where)
            earned += [value.times(o) for o in often]
        choices.append(_function(name, translator, earned) if earned else None)
    return DiagramReward(name, states, tuple(choices))


def check_actions_of_rewards(written: Mapping[str, Sequence[DeclaredReward]], actions: Sequence[str]) -> None:
    """Refuse a reward of an action that no command has."""
    for name, items in written.items():
        for item in items:
            if item.action is not None and item.action not in actions:
                raise ModellingError(
                    f"{item.position}: reward '{name}': expected an action of some command "
                    f"({listed(list(actions)) or 'there is none'}), got '{item.action}'"
                    f"{suggestion(item.action, actions)}"
                )


def _earned(name: str, item: DeclaredReward, translator: TableTranslator, among: Node) -> Partition:
    """Return what an item earns in some states, checked."""
    where = (
        translator.states(PythonExpression.of(item.guard, f"reward '{name}': guard", item.position)) & among
    )
    found = translator.partition(PythonExpression.of(item.value, f"reward '{name}'", item.position), where)
    for value, piece in found:
        if not math.isfinite(value):
            state = format_state(translator.encoding.pick(piece))
            raise ModellingError(
                f"{item.position}: reward '{name}' is {value} in reachable state {state}, expected a finite "
                "number"
            )
    return found.map(float).nonzero()


def _often(part: ChoicePart, found: Node, is_mdp: bool, divisors: Partition | None) -> Partition:
    """Return how often a choice of a part is taken, in a step or, in a CTMC, in a unit of time."""
    assert part.event is not None
    if is_mdp:
        return Partition(part.event.rates.manager, {1.0: part.states})
    exits = part.event.exits.only(found)
    if divisors is None:
        return exits
    if all(divisor == 1 for divisor, _ in divisors):
        return Partition(exits.manager, exits.pieces, exits.units + divisors.units)
    return exits.divided(divisors)


def _function(name: str, translator: TableTranslator, parts: Sequence[Partition]) -> SymbolicMatrix:
    """Return the sum of partitions as a function of the states."""
    total = Partition.total(translator.encoding.manager, parts)
    if total.units == math.inf:
        raise ModellingError(
            f"reward '{name}': expected items of one sign where they add up, got both, which may cancel; "
            "write them as one item"
        )
    return SymbolicMatrix.from_partition(total, unite=False)


@dataclass(frozen=True)
class Declarations:
    """All declarations of a builder."""

    name: str
    kind: ModelType
    variables: tuple[ModelVariable, ...]
    modules: Mapping[str, tuple[DeclaredCommand, ...]]
    labels: Mapping[str, DeclaredLabel]
    rewards: Mapping[str, tuple[DeclaredReward, ...]]
    initial: DeclaredLabel | None  # None: the variables' initial values


def build_declared(
    written: Declarations,
    discount: float | None,
    fix_deadlocks: bool,
    package: str,
    say: Callable[[str], None],
) -> Model:
    """Return the model, see `hybrid.ModelBuilder.build`."""
    names = [v.name for v in written.variables]
    if not names:
        raise ModellingError("expected at least one variable, got none; declare it with `variable`")
    factor = None if discount is None else check_discount(discount, written.kind, names)
    _check_shared_variables(written)
    actions = [c.action for commands in written.modules.values() for c in commands if c.action is not None]
    check_actions_of_rewards(written.rewards, list(dict.fromkeys(actions)))
    try:
        return _built(written, factor, fix_deadlocks, package, say)
    except BuildError as error:
        raise ModellingError(str(error)) from None
    except OverflowError as error:
        raise ModellingError(f"{written.name}: {error}") from None
    except RecursionError:
        raise ModellingError(
            f"{written.name}: expected expressions nested less deeply; write a function in their place"
        ) from None


def _built(
    written: Declarations,
    discount: float | None,
    fix_deadlocks: bool,
    package: str,
    say: Callable[[str], None],
) -> Model:
    """Build the model, stage by stage, as `mtbdd.build.build` does from a text."""
    started = time.perf_counter()
    say("translating commands")
    variables = _variables(written, discount is not None)
    encoding = Encoding(variables, package)
    manager = encoding.manager
    translator = TableTranslator(encoding)
    source = _source(written, variables)
    is_mdp = written.kind is ModelType.MDP
    events = list(translate_choices(source, translator) if is_mdp else translate_events(source, translator))
    relations = [Relation.of(encoding, e.touched, e.rates.support) for e in events]
    start = initial_states(source, encoding, translator)
    if discount is not None:
        start = start & ~manager.bdd.var(encoding.row_names(encoding.by_name[ENDED])[0])
    say("reachable states")
    found = reachable_states(encoding, start, [t for t in relations if t.node != manager.false], say)
    index_states(manager, found)  # more states than can be numbered are reported before matrices are made
    suspects = [*suspects_of(source, translator, events), *_fractions(source, translator)]
    refuse(encoding, found, suspects)
    deadlocks = found & ~manager.disjunction(e.exits.support for e in events)
    say("transition matrix")
    divisors: Partition | None = None
    if is_mdp:
        events = [_scaled(event, found) for event in events]
        layers = pack_choices(encoding, events, found, deadlocks)
    else:
        if written.kind is ModelType.DTMC and events:
            divisors = row_divisors(events, found)
        layers = [_chain(encoding, events, found, deadlocks, divisors)]
    say("labels and rewards")
    labels = {}
    for name, label in written.labels.items():
        condition = PythonExpression.of(label.condition, f"label '{name}'", label.position)
        labels[name] = translator.states(condition) & found
    rewards = given_rewards(written.rewards, translator, layers, found, is_mdp, divisors)
    graph = choice_relations(encoding, layers) if is_mdp and discount is None else None
    layers = [ChoiceLayer(x.matrix, x.enabled, tuple(_part(p) for p in x.parts)) for x in layers]
    exits = None
    if written.kind is ModelType.CTMC:
        exits = [*(e.exits.only(found) for e in events), Partition(manager, {1.0: deadlocks})]
    if discount is not None:
        layers = discounted_layers(encoding, layers, discount)
        found = found | end_state(encoding)
    model = model_from_diagrams(
        encoding,
        variables,
        written.kind,
        layers,
        start,
        found,
        exits=exits,
        labels=labels,
        rewards=rewards,
        relations=graph,
        deadlocks=deadlocks,
        fix_deadlocks=fix_deadlocks,
        source=written.name,
        started=started,
    )
    return Model.of(model)


def _part(part: ChoicePart) -> ChoicePart:
    """Return a part without its event, and its commands where no function has to distinguish them."""
    alone = all(len(own) == 1 for own in part.commands)
    return ChoicePart(part.action, part.states, None, origin=part.commands if alone else ())


def _variables(written: Declarations, ends: bool) -> list[ResolvedVariable]:
    """Return the declarations in the order of the bits; the variable of the end comes first."""
    found = [
        replace(variable_of_range(v.name, v.low, v.high, v.is_bool, written.name), initial=v.start)
        for v in written.variables
    ]
    if ends:
        found.insert(0, variable_of_range(ENDED, 0, 1, True, written.name))
    bits = sum((v.high - v.low).bit_length() for v in found)
    if bits > current().bits:
        raise ModellingError(
            f"{written.name}: expected variables of at most {current().bits} bits together, got {bits}; give "
            f"them smaller ranges, or {raised('bits', bits)}"
        )
    return found


def _source(written: Declarations, variables: Sequence[ResolvedVariable]) -> ResolvedModel:
    """Return the commands as those of a text, with expressions of Python in them."""
    place = Position(written.name, 1, 1)
    first = written.initial
    start = None if first is None else PythonExpression.of(first.condition, "initial", first.position)
    return ResolvedModel(
        file=written.name,
        type=written.kind,
        constants={},
        variables=tuple(variables),
        modules=tuple(
            Module(name, (), tuple(_command(c) for c in commands), place)
            for name, commands in written.modules.items()
        ),
        labels=(),
        rewards=(),
        formulas=(),
        initial=start,
    )


def _command(command: DeclaredCommand) -> Command:
    place = command.position
    updates = []
    for update in command.updates:
        weight = None if update.weight is None else PythonExpression.of(update.weight, "the weight", place)
        assigned = tuple(
            Assignment(v.name, PythonExpression.of(value, f"the new value of {v.name}", place), place)
            for v, value in update.assigned
        )
        updates.append(Update(weight, assigned, place))
    guard = PythonExpression.of(command.guard, "the guard", place)
    return Command(command.action, guard, tuple(updates), place)


def _check_shared_variables(written: Declarations) -> None:
    """Refuse commands of two modules that share an action and both change a variable."""
    writers: dict[tuple[str, str], tuple[str, Position]] = {}
    for module, commands in written.modules.items():
        for command in commands:
            if command.action is None:
                continue
            for name in (v.name for update in command.updates for v, _ in update.assigned):
                first, place = writers.setdefault((command.action, name), (module, command.position))
                if first != module:
                    raise ModellingError(
                        f"{command.position}: action '{command.action}' changes '{name}', which module "
                        f"'{first}' changes with it at {place}; change it in one of them"
                    )


def _fractions(source: ResolvedModel, translator: TableTranslator) -> Iterator[Suspect]:
    """Yield where an update gives a variable a number that is no integer."""
    for module in source.modules:
        for command in module.commands:
            for update in command.updates:
                for assignment in update.assignments:
                    wrong = translator.fractions(assignment.variable, assignment.expression)
                    if wrong is None:
                        continue
                    active = translator.states(command.guard)
                    if update.weight is not None:
                        active = active & translator.partition(update.weight).nonzero().support
                    for value, piece in wrong:
                        yield Suspect(
                            assignment.position,
                            piece & active,
                            f"the update sets {assignment.variable} to {value}, expected an integer",
                        )


def _scaled(event: Event, found: Node) -> Event:
    """Return a choice of every state with probabilities that add up to 1."""
    divisors = row_divisors([event], found)
    if all(divisor == 1 for divisor, _ in divisors):
        rates = Partition(event.rates.manager, event.rates.pieces, event.rates.units + divisors.units)
        return replace(event, rates=rates)
    return replace(event, rates=event.rates.divided(divisors))


def _chain(
    encoding: Encoding, events: Sequence[Event], found: Node, deadlocks: Node, divisors: Partition | None
) -> ChoiceLayer:
    """Return the only layer of a chain."""
    matrix = assemble(encoding, events, found, deadlocks, divisors)
    if divisors is not None and all(divisor == 1 for divisor, _ in divisors):
        matrix = replace(matrix, units=matrix.units + divisors.units)
    parts = [ChoicePart(e.action, e.exits.support & found, e) for e in events]
    parts.append(ChoicePart(None, deadlocks, None))
    return ChoiceLayer(matrix, found, tuple(p for p in parts if p.states != encoding.manager.false))
