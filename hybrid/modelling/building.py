"""From what a builder was told to the diagrams of a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hybrid.errors import ModellingError
from hybrid.model import Model
from hybrid.modelling.declared import WrittenCommand, WrittenLabel, WrittenReward
from hybrid.modelling.discounting import ENDED, check_discount, discounted_layers, end_state
from hybrid.modelling.earning import check_actions_of_rewards, given_rewards
from hybrid.modelling.quantities import ModelVariable
from hybrid.modelling.translator import PythonExpression, TableTranslator
from mtbdd.assemble import assemble, row_divisors
from mtbdd.choices import ChoiceLayer, ChoicePart, choice_relations, pack_choices, translate_choices
from mtbdd.encoding import Encoding
from mtbdd.events import Event, Suspect, translate_events
from mtbdd.faults import BuildError
from mtbdd.given_model import given_model, given_variable
from mtbdd.language.limits import current, raised
from mtbdd.language.model_syntax import Assignment, Command, Module, ResolvedModel, ResolvedVariable, Update
from mtbdd.language.syntax import ModelType, Position
from mtbdd.manager import Node
from mtbdd.partition import Partition
from mtbdd.reachable import reachable_states
from mtbdd.refusals import initial_states, refuse, suspects_of
from mtbdd.relation import Relation
from mtbdd.states import index_states


@dataclass(frozen=True)
class Written:
    """All that a builder was told.

    Attributes
    ----------
    name : str
    kind : ModelType
    variables : tuple of ModelVariable
    modules : mapping of str to tuple of WrittenCommand
    labels : mapping of str to WrittenLabel
    rewards : mapping of str to tuple of WrittenReward
    initial : WrittenLabel or None
        None: the variables' initial values.
    """

    name: str
    kind: ModelType
    variables: tuple[ModelVariable, ...]
    modules: Mapping[str, tuple[WrittenCommand, ...]]
    labels: Mapping[str, WrittenLabel]
    rewards: Mapping[str, tuple[WrittenReward, ...]]
    initial: WrittenLabel | None


def built(
    written: Written,
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
    written: Written, discount: float | None, fix_deadlocks: bool, package: str, say: Callable[[str], None]
) -> Model:
    """Build the model, stage by stage, as `mtbdd.build` does from a text."""
    started = time.perf_counter()
    say("translating commands")
    variables = _variables(written, discount is not None)
    encoding = Encoding(variables, package)
    manager = encoding.manager
    translator = TableTranslator(encoding)
    source = _source(written, variables)
    is_mdp = written.kind is ModelType.MDP
    events = translate_choices(source, translator) if is_mdp else translate_events(source, translator)
    relations = [Relation.of(encoding, e.touched, e.rates.support) for e in events]
    start = initial_states(source, encoding, translator)
    if discount is not None:
        start = start & ~manager.bdd.var(encoding.row_names(encoding.by_name[ENDED])[0])
    say("reachable states")
    found = reachable_states(encoding, start, [t for t in relations if t.node != manager.false], say)
    index_states(manager, found)  # more states than can be numbered are told before matrices are made
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
    model = given_model(
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
    """Return a part without its event, and its commands where no function has to tell them apart."""
    alone = all(len(own) == 1 for own in part.commands)
    return ChoicePart(part.action, part.states, None, origin=part.commands if alone else ())


def _variables(written: Written, ends: bool) -> list[ResolvedVariable]:
    """Return the declarations in the order of the bits; what tells the end comes first."""
    found = [
        replace(given_variable(v.name, v.low, v.high, v.is_bool, written.name), initial=v.start)
        for v in written.variables
    ]
    if ends:
        found.insert(0, given_variable(ENDED, 0, 1, True, written.name))
    bits = sum((v.high - v.low).bit_length() for v in found)
    if bits > current().bits:
        raise ModellingError(
            f"{written.name}: expected variables of at most {current().bits} bits together, got {bits}; give "
            f"them smaller ranges, or {raised('bits', bits)}"
        )
    return found


def _source(written: Written, variables: Sequence[ResolvedVariable]) -> ResolvedModel:
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


def _command(command: WrittenCommand) -> Command:
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


def _check_shared_variables(written: Written) -> None:
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
