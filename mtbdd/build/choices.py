"""Choices of a Markov decision process: events that offer one each, packed into layers.

A choice is a distribution over successors. It belongs to one unlabelled command, or to one combination of
commands of an action, one from every module that takes part. A layer holds at most one choice of every state,
so that it is a matrix like a chain's. There are at least as many layers as the greatest number of choices of
a state. Choices are packed so that there are few more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.build.events import (
    Event,
    Synchronisation,
    component,
    merge_unlabelled,
    synchronisations,
    synchronise,
)
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.limits import raised
from mtbdd.language.syntax import Command, ResolvedModel

_SHOWN = 4  # parts and commands that are reported of many


class ChoicePart(Record):
    """The choices of a layer that come from one event.

    Attributes
    ----------
    action : str or None
        None for unlabelled commands and for the self-loops given to deadlocks.
    states : Node
        The reachable states whose choice in this layer it is.
    event : Event or None
        None for the self-loops given to deadlocks, and in models that are not made from a text.
    totals : Partition or None
        Sum of the probabilities, also in some more states than these; None is 1 but for rounding. Those of
        an event are its exits.
    origin : tuple of tuple of Command
        `commands` of a part that has no event.
    """

    action: str | None
    states: Node
    event: Event | None
    totals: Partition | None = None
    origin: tuple[tuple[Command, ...], ...] = ()

    @property
    def sums(self) -> Partition | None:
        """Sum of the probabilities, also in some more states than these; None is 1 but for rounding."""
        return self.totals if self.event is None else self.event.exits

    @property
    def commands(self) -> tuple[tuple[Command, ...], ...]:
        """The commands of every module that takes part, of which one is enabled in a state; () if unknown."""
        return self.origin if self.event is None else self.event.commands

    def __repr__(self) -> str:
        name = "without an action" if self.action is None else f"of the action '{self.action}'"
        places = [f"{c.position.line}:{c.position.column}" for own in self.commands for c in own]
        more = ", ..." if len(places) > _SHOWN else ""
        told = f"commands at {', '.join(places[:_SHOWN])}{more}" if places else "of no known command"
        return f"<ChoicePart {name}, {told}>"


class ChoiceLayer(Record):
    """A layer of a model: at most one choice of every state.

    Attributes
    ----------
    matrix : SymbolicMatrix
        Probabilities (rates in a CTMC) between reachable states; rows of states without a
        choice here are zero.
    enabled : Node
        The reachable states with a choice here, over row bits.
    parts : tuple of ChoicePart
        Where the choices come from.  In an MDP their states are disjoint; in a chain the events
        of a state all add to its one choice.
    """

    matrix: SymbolicMatrix
    enabled: Node
    parts: tuple[ChoicePart, ...]

    def __repr__(self) -> str:
        more = ", ..." if len(self.parts) > _SHOWN else ""
        return f"<ChoiceLayer of {len(self.parts)} parts: {', '.join(map(repr, self.parts[:_SHOWN]))}{more}>"


def split_commands(
    commands: Sequence[Command], translator: ExpressionTranslator
) -> list[tuple[Command, ...]]:
    """Return commands in classes whose guards are pairwise disjoint.

    Commands that are never enabled are left out.  Time: one conjunction for every command and
    class.
    """
    false, meet = translator.encoding.manager.false, translator.encoding.manager.meet
    classes: list[tuple[Node, list[Command]]] = []
    for command in commands:
        translator.effort.pairs(len(classes), command.position)
        guard = translator.states(command.guard) & translator.encoding.valid
        if guard == false:
            continue
        for i, (covered, members) in enumerate(classes):
            if not meet(covered, guard):
                classes[i] = (covered | guard, [*members, command])
                break
        else:
            classes.append((guard, [command]))
    return [tuple(members) for _, members in classes]


def translate_choices(model: ResolvedModel, translator: ExpressionTranslator) -> Iterator[Event]:
    """Yield events that offer at most one choice in every state and, together, all choices.

    Yields Event: in the order of `mtbdd.build.events.synchronisations`; `choices` of each is 1 where it is
    enabled. The commands of a module that share an action and never meet in a state form one class; an event
    is a combination of classes, one a module. Time: one product of partitions for every combination.
    """
    false = translator.encoding.manager.false
    for s in merge_unlabelled(synchronisations(model)):
        classes = [split_commands(commands, translator) for commands in s.parts]
        _check_combinations(s, classes, translator)
        offers = [[component(members, translator) for members in own] for own in classes]
        for combination in product(*offers):
            event = synchronise(s.action, combination, translator)
            if event.choices.support != false or event.potential_errors:
                yield event


def _check_combinations(
    s: Synchronisation, classes: Sequence[Sequence[Sequence[Command]]], translator: ExpressionTranslator
) -> None:
    """Refuse an action that too many combinations of commands take."""
    count, most = math.prod(map(len, classes)), translator.effort.limits.combinations
    if count > most:
        message = (
            f"expected at most {most} combinations of commands that may take the action '{s.action}' in one "
            f"state, got {count}; give commands guards that exclude one another, or "
            f"{raised('combinations', count)}"
        )
        raise BuildError([Fault(s.parts[0][0].position, message)])


def pack_choices(
    encoding: Encoding, events: Sequence[Event], reachable: Node, deadlocks: Node
) -> list[ChoiceLayer]:
    """Return the choices of all events in layers, deadlocks with a self-loop.

    `events`: from `translate_choices`. `reachable`: the reachable states. `deadlocks`: those among them in
    which no event is enabled. Returns list of ChoiceLayer: at least one.

    An event goes to the layer, among those where no state has a choice yet that has one in the event, whose
    relation grows by the fewest nodes; a layer is opened only if there is none. Time: one conjunction and one
    disjunction for every event and layer.
    """
    manager = encoding.manager
    bins: list[_Bin] = []
    for event in events:
        states = event.choices.support & reachable
        if states != manager.false:
            part = ChoicePart(event.action, states, event)
            _put(bins, _Bin(states, event.rates.support & _frame(encoding, part), [part]), encoding)
    if deadlocks != manager.false or not bins:
        part = ChoicePart(None, deadlocks, None)
        _put(bins, _Bin(deadlocks, deadlocks & _frame(encoding, part), [part]), encoding)
    return [ChoiceLayer(_matrix(encoding, b.parts, reachable), b.enabled, tuple(b.parts)) for b in bins]


class _Bin(Record, frozen=False):
    """A layer while it is filled."""

    enabled: Node
    relation: Node
    parts: list[ChoicePart]


def _put(bins: list[_Bin], new: _Bin, encoding: Encoding) -> None:
    """Add a part to the layer that it suits best, or open one."""
    check_budget()
    manager = encoding.manager
    best: tuple[int, _Bin, Node] | None = None
    for b in bins:
        if b.enabled & new.enabled == manager.false:
            united = b.relation | new.relation
            growth = manager.size(united) - manager.size(b.relation)
            if best is None or growth < best[0]:
                best = growth, b, united
    if best is None:
        bins.append(new)
    else:
        _, b, b.relation = best
        b.enabled = b.enabled | new.enabled
        b.parts += new.parts


def _touched(encoding: Encoding, part: ChoicePart) -> tuple[int, ...]:
    """Return the bits that a part may change."""
    return tuple(encoding.bits_of(part.event.touched)) if part.event is not None else ()


def _frame(encoding: Encoding, part: ChoicePart) -> Node:
    """Return the relation that keeps all bits which a part does not touch."""
    return encoding.manager.equal_but(_touched(encoding, part))


def _matrix(encoding: Encoding, parts: Sequence[ChoicePart], reachable: Node) -> SymbolicMatrix:
    """Return the matrix of parts whose states are disjoint."""
    manager = encoding.manager
    pieces = []
    for part in parts:
        rates = part.event.rates if part.event is not None else Partition(manager, {1.0: part.states})
        pieces.append((rates, _frame(encoding, part)))
    # Parts may meet in states that are not reachable: the cut takes those entries away.
    return SymbolicMatrix.from_disjoint(manager, pieces).only(reachable)


def choice_relations(encoding: Encoding, layers: Sequence[ChoiceLayer]) -> list[Relation]:
    """Return the choices of an MDP as relations over the bits that they touch, for work on sets.

    Parts of one layer that touch the same bits are united.  Time: one disjunction a part.
    """
    manager = encoding.manager
    found = []
    for number, layer in enumerate(layers):
        groups: dict[tuple[int, ...], list[ChoicePart]] = {}
        for part in layer.parts:
            groups.setdefault(_touched(encoding, part), []).append(part)
        for bits, parts in groups.items():
            relation = manager.disjunction(
                p.states if p.event is None else p.event.rates.support & p.states for p in parts
            )
            found.append(Relation(manager, relation, bits, number))
    return found
