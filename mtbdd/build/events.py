"""Commands of the model as events: partitions by rate over the bits that they touch.

An event is one unlabelled command, or one action over the modules that take part in it (rates multiply), see
`mtbdd.build.events`. Its relation is over all row bits and the column bits of the variables that the event
may change. All other variables keep their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import product

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.build.expressions import NO_VALUE, ExpressionTranslator
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.partition import Partition, canonical
from mtbdd.language.errors import EvaluationError
from mtbdd.language.limits import current, raised
from mtbdd.language.reals import from_text
from mtbdd.language.scalars import apply_binary
from mtbdd.language.syntax import (
    ActionRenaming,
    Assignment,
    Binary,
    Command,
    Composition,
    Expression,
    Hiding,
    Literal,
    Module,
    ModuleReference,
    Parallel,
    Position,
    ResolvedModel,
    Update,
)

# Synchronisation: the events of a model's modules, composed as its system block says.
#
# A composition is worked out from its modules upwards.  What it offers are commands that act alone and, for
# each action of its alphabet, the ways in which its modules take that action together; an action without any
# way is blocked but still belongs to the alphabet.  The operators are those of Hoare's CSP as PRISM has them:
# the process algebra section of PRISM's manual.

Parts = tuple[tuple[Command, ...], ...]


class Synchronisation(Record):
    """An action (None: unlabelled or hidden) and, for every module that takes part, its commands."""

    action: str | None
    parts: Parts


class _Offer(Record, frozen=False):
    """The commands of a composition: those without an action, and the ways to take each action."""

    alone: list[Parts] = field(default_factory=list)
    together: dict[str, list[Parts]] = field(default_factory=dict)


def synchronisations(model: ResolvedModel) -> list[Synchronisation]:
    """Return the synchronisations of a model.

    `model`: its `system` says how the modules are composed; None: all take shared actions together. Returns
    list of Synchronisation: without an action first, in order of the text, then the actions in order of
    appearance. One action has several synchronisations if modules take it independently of one another.
    Raises OverflowError: an action can be taken in more ways than the limits allow.

    Time: O(modules × actions + synchronisations).
    """
    modules = {module.name: module for module in model.modules}
    if model.system is None:
        offer = _alphabetised([_of_module(module) for module in model.modules])
    else:
        offer = _of(model.system, modules)
    result = [Synchronisation(None, parts) for parts in offer.alone]
    result += [Synchronisation(action, parts) for action, ways in offer.together.items() for parts in ways]
    return result


def _of(node: Composition, modules: dict[str, Module]) -> _Offer:
    """Return the commands of a composition."""
    if isinstance(node, ModuleReference):
        return _of_module(modules[node.module])
    if isinstance(node, Hiding):
        offer = _of(node.operand, modules)
        for action in node.actions:
            offer.alone += offer.together.pop(action, [])
        return offer
    if isinstance(node, ActionRenaming):
        return _renamed(_of(node.operand, modules), dict(node.pairs))
    if isinstance(node, Parallel):
        offers = [_of(operand, modules) for operand in node.operands]
        if node.operator == "||":
            return _alphabetised(offers)
        return _synchronised(offers, frozenset(node.actions))
    raise TypeError(f"expected a composition of modules, got {type(node).__name__}")


def _of_module(module: Module) -> _Offer:
    """Return the commands of a module: unlabelled ones one by one, the others by action."""
    own: dict[str, list[Command]] = {}
    offer = _Offer()
    for command in module.commands:
        if command.action is None:
            offer.alone.append(((command,),))
        else:
            own.setdefault(command.action, []).append(command)
    offer.together = {action: [(tuple(commands),)] for action, commands in own.items()}
    return offer


def _renamed(offer: _Offer, names: dict[str, str]) -> _Offer:
    """Give actions new names, all at once; two actions that get one name are not joined."""
    together: dict[str, list[Parts]] = {}
    for action, ways in offer.together.items():
        together.setdefault(names.get(action, action), []).extend(ways)
    return _Offer(offer.alone, together)


def _alphabetised(offers: list[_Offer]) -> _Offer:
    """Compose so that actions of both sides are taken together, from left to right."""
    total = _Offer()
    for offer in offers:
        total.alone += offer.alone
        for action, ways in offer.together.items():
            mine = total.together.get(action)
            total.together[action] = ways if mine is None else _joined(action, mine, ways)
    return total


def _synchronised(offers: list[_Offer], actions: frozenset[str]) -> _Offer:
    """Compose so that the given actions are taken together, and no others."""
    total, *others = offers
    for offer in others:
        total.alone += offer.alone
        for action in [*offer.together, *(a for a in total.together if a not in offer.together)]:
            mine, theirs = total.together.get(action, []), offer.together.get(action, [])
            total.together[action] = _joined(action, mine, theirs) if action in actions else mine + theirs
    return total


def _joined(action: str, mine: list[Parts], theirs: list[Parts]) -> list[Parts]:
    """Return every way of one side with every way of the other."""
    most, count = current().combinations, len(mine) * len(theirs)
    if count > most:
        raise OverflowError(
            f"the system block lets action '{action}' be taken in more than {most} ways; "
            f"synchronise modules before interleaving them, or {raised('combinations', count)}"
        )
    return [a + b for a, b in product(mine, theirs)]


_RATE_STEPS = 8  # steps of `Effort.pairs` that a product of two rates takes, with their relations
_MANY = 256  # unlabelled commands of the same variables from which they are put together


class Suspect(Record):
    """States (not yet known to be reachable) in which a command would be at fault.

    `moves`: the fault lies in where the command leads, which matters only where it leads anywhere.
    """

    position: Position
    states: Node
    message: str
    moves: bool = False


class Event(Record, frozen=False):
    """One unlabelled command or one synchronised action.

    Attributes
    ----------
    action : str or None
        The action's name.
    touched : tuple of str
        Variables whose column bits occur in `rates`, in model order.
    rates : Partition
        Rate or probability over row bits and the touched column bits.
    choices : Partition
        Number of command combinations enabled in a state (row bits).
    exits : Partition
        Sum of the event's rates over all successors of a state (row bits).
    potential_errors : list of Suspect
        What must not be reachable.
    commands : tuple of tuple of Command
        The commands of every module that takes part.
    """

    action: str | None
    touched: tuple[str, ...]
    rates: Partition
    choices: Partition
    exits: Partition
    potential_errors: list[Suspect] = field(default_factory=list)
    commands: tuple[tuple[Command, ...], ...] = ()


def translate_events(model: ResolvedModel, translator: ExpressionTranslator) -> Iterator[Event]:
    """Yield the events of a model, one a synchronisation."""
    # A module's commands may take part in several synchronisations of an interleaved composition.
    known: dict[int, Event] = {}

    def offered(commands: tuple[Command, ...]) -> Event:
        if id(commands) not in known:
            known[id(commands)] = component(commands, translator)
        return known[id(commands)]

    together = merge_unlabelled(synchronisations(model))  # kept, so that identities stay their own
    for s in together:
        yield synchronise(s.action, [offered(c) for c in s.parts], translator)


def merge_unlabelled(together: Sequence[Synchronisation]) -> list[Synchronisation]:
    """Return synchronisations with unlabelled commands merged where there are many of them.

    Those that assign the same variables become one; they add up, or are split into choices, as the commands
    of a module that share an action are.
    """
    alone: dict[frozenset[str], list[Synchronisation]] = {}
    for s in together:
        if s.action is None and len(s.parts) == 1:
            touched = frozenset(a.variable for c in s.parts[0] for u in c.updates for a in u.assignments)
            alone.setdefault(touched, []).append(s)
    many = [group for group in alone.values() if len(group) > _MANY]
    if not many:
        return list(together)
    inside = {id(s) for group in many for s in group}
    rest = [s for s in together if id(s) not in inside]
    merged = [Synchronisation(None, (tuple(c for s in group for c in s.parts[0]),)) for group in many]
    return merged + rest


def synchronise(action: str | None, components: Sequence[Event], translator: ExpressionTranslator) -> Event:
    """Multiply the components of all modules that take part in an event."""
    encoding = translator.encoding
    manager = encoding.manager
    assigned = frozenset[str]().union(*(c.touched for c in components))
    rates = Partition(manager, {1: manager.true})
    choices = exits = Partition(manager, {1: manager.true})
    for c in components:
        if len(rates) > 1 and len(c.rates) > 1:
            pairs = _RATE_STEPS * len(rates) * len(c.rates)
            translator.effort.pairs(pairs, c.commands[0][0].position)
        rates = rates.times(c.rates)
        choices = choices.times(c.choices)
        exits = exits.times(c.exits)
    potential_errors = []
    if any(c.potential_errors for c in components):
        enabled = [c.choices.support for c in components]
        # If another module's rates are zero no transition is wrong, but a weight may be.
        live = [c.exits.nonzero().support for c in components]
        for i, c in enumerate(components):
            others = [_all_but(sets, i, manager.true) for sets in (enabled, live)]
            potential_errors += [replace(s, states=s.states & others[s.moves]) for s in c.potential_errors]
    touched = tuple(v.name for v in encoding.variables if v.name in assigned)
    commands = tuple(own for c in components for own in c.commands)
    return Event(action, touched, rates.nonzero(), choices, exits.nonzero(), potential_errors, commands)


def _all_but(sets: Sequence[Node], left_out: int, everything: Node) -> Node:
    """Return the conjunction of all sets but one."""
    for i, states in enumerate(sets):
        if i != left_out:
            everything = everything & states
    return everything


def component(commands: Sequence[Command], translator: ExpressionTranslator) -> Event:
    """Sum the commands that one module offers for one event."""
    encoding = translator.encoding
    manager = encoding.manager
    assigned = {a.variable for c in commands for u in c.updates for a in u.assignments}
    touched = tuple(v.name for v in encoding.variables if v.name in assigned)
    rates: list[Partition] = []
    choices: list[Partition] = []
    exits: list[Partition] = []
    potential_errors: list[Suspect] = []
    for command in commands:
        check_budget()
        translator.effort.updates(len(command.updates))
        missing = translator.undefined(command.guard) & encoding.valid
        if missing != manager.false:
            message = f"the guard of a command has no value ({NO_VALUE})"
            potential_errors.append(Suspect(command.guard.position, missing, message))
        guard = translator.states(command.guard) & encoding.valid
        if guard == manager.false:
            continue
        choices.append(Partition(manager, {1: guard}))
        for update in command.updates:
            rates.append(_update(command, update, guard, touched, translator, potential_errors))
        exits.append(translator.partition(total_weight(command), guard).nonzero())
    return Event(
        None,
        touched,
        Partition.total(manager, rates),
        Partition.total(manager, choices),
        Partition.total(manager, exits),
        potential_errors,
        (tuple(commands),),
    )


def _update(
    command: Command,
    update: Update,
    guard: Node,
    touched: Sequence[str],
    translator: ExpressionTranslator,
    potential_errors: list[Suspect],
) -> Partition:
    """Return the partition of one update: its weight over guard, assignments and kept variables."""
    manager = translator.encoding.manager
    weight: Expression = update.weight or Literal(update.position, 1)
    weights: dict[float, Node] = {}
    active = manager.false
    missing = translator.undefined(weight) & guard
    if missing != manager.false:
        message = f"the weight of an update has no value ({NO_VALUE})"
        potential_errors.append(Suspect(weight.position, missing, message))
        guard = guard & ~missing
    found = translator.partition(weight, guard)
    for value, piece in found:
        if not _is_weight(value):
            potential_errors.append(Suspect(update.position, piece, f"the weight of an update is {value}"))
        elif value > 0:
            weights[canonical(value)] = piece
            active = active | piece
    relation = _relation(command, update, active, touched, translator, potential_errors)
    return Partition(manager, {v: piece & relation for v, piece in weights.items()}, found.units)


def _is_weight(value: float) -> bool:
    """Return whether a number may be a rate or a probability."""
    return 0 <= value < float("inf")


def _relation(
    command: Command,
    update: Update,
    active: Node,
    touched: Sequence[str],
    translator: ExpressionTranslator,
    potential_errors: list[Suspect],
) -> Node:
    """Return the relation "assigned variables take their new value, the other touched ones keep theirs"."""
    encoding = translator.encoding
    assigned = {a.variable for a in update.assignments}
    relation = encoding.manager.equal_bits(encoding.bits_of(n for n in touched if n not in assigned))
    for assignment in update.assignments:
        missing = translator.undefined(assignment.expression) & active
        if missing != encoding.manager.false:
            message = f"the value assigned to {assignment.variable} does not exist ({NO_VALUE})"
            potential_errors.append(Suspect(assignment.expression.position, missing, message, moves=True))
            active = active & ~missing
        moves, strays = translator.assignment(encoding.by_name[assignment.variable], assignment.expression)
        if strays & active != encoding.manager.false:
            potential_errors.extend(_strays(assignment, active, translator))
        relation = relation & moves
    return relation


def _strays(assignment: Assignment, active: Node, translator: ExpressionTranslator) -> Iterator[Suspect]:
    """Yield where an assignment leaves its variable's range, value by value."""
    variable = translator.encoding.by_name[assignment.variable]
    for value, piece in translator.partition(assignment.expression, active):
        if not variable.low <= value <= variable.high:
            text = f"sets {variable.name} to {value}, outside its range [{variable.low}..{variable.high}]"
            yield Suspect(assignment.position, piece, f"the update {text}", moves=True)


SURELY_NEAR, PERHAPS_NEAR = 0.9999e-5, 1.0001e-5
"""Distances from 1 of doubles whose numbers are within 1e-5 for certain, and perhaps."""


def total_weight(command: Command) -> Expression:
    """Return the sum of the weights of a command's updates as an expression, a balanced tree of sums."""
    weights: list[Expression] = [u.weight or Literal(u.position, 1) for u in command.updates]
    while len(weights) > 1:
        paired: list[Expression] = [
            _sum(command.position, a, b) for a, b in zip(weights[::2], weights[1::2], strict=False)
        ]
        weights = paired + weights[2 * len(paired) :]
    return weights[0]


def _sum(position: Position, a: Expression, b: Expression) -> Expression:
    """Return the sum of two weights; constants are added exactly."""
    if isinstance(a, Literal) and isinstance(b, Literal):
        try:
            return Literal(position, apply_binary("+", a.value, b.value, position))
        except EvaluationError:
            pass  # too large: infinite, and refused as such
    return Binary(position, "+", a, b)


def adds_up(total: Expression) -> Expression:
    """Return the condition that probabilities add up to 1, give or take 1e-5.

    The tolerance is PRISM's, for probabilities are often rounded. A condition of the language is decided on
    the numbers that the text means: 0.99999 and 1.00001 are both within it, though not as doubles.
    """
    place = total.position
    least, most = (Literal(place, from_text(text)) for text in ("0.99999", "1.00001"))
    return Binary(place, "&", Binary(place, ">=", total, least), Binary(place, "<=", total, most))


def probability_suspects(model: ResolvedModel, translator: ExpressionTranslator) -> list[Suspect]:
    """Return where the probabilities of a command do not add up to 1 (DTMCs and MDPs), see `adds_up`."""
    found = []
    for module in model.modules:
        for command in module.commands:
            guard = translator.states(command.guard) & translator.encoding.valid
            total = total_weight(command)
            for value, piece in translator.partition(total, guard):
                off = abs(value - 1)
                if not off <= SURELY_NEAR:
                    if off <= PERHAPS_NEAR:
                        piece = piece & ~translator.states(adds_up(total))
                    message = f"the probabilities of a command add up to {value}, expected 1"
                    if value > 1:
                        message += " (if these are rates, let the text begin with ctmc)"
                    found.append(Suspect(command.position, piece, message))
    return found
