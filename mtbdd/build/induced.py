"""The chain that a memoryless scheduler leaves of a decision process, as a model over the same states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.events import Event
from mtbdd.build.given import GivenParts, GivenReward, TakenCommands
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import ModelType


def induced_chain(model: SymbolicModel, chosen: Sequence[Node]) -> SymbolicModel:
    """Return a decision process with one choice kept in every state, a DTMC.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    chosen : sequence of Node
        For every layer the states that take its choice, among those enabled in it; disjoint, together all.

    Returns
    -------
    SymbolicModel
        Over the same states with the same numbers, those included that the scheduler never reaches.  A choice
        counts as taken once, so that transition rewards are earned as in the decision process.

    Raises
    ------
    ValueError
        The model is a chain, or the sets are not as they should be.

    Notes
    -----
    Time: one conjunction for every value of every layer, and for every part.
    """
    manager = model.manager
    if not model.is_mdp:
        raise ValueError("model: expected an MDP, whose choices a scheduler makes, got a chain")
    if len(chosen) != len(model.layers):
        raise ValueError(f"chosen: expected a set for each of {len(model.layers)} layers, got {len(chosen)}")
    covered = manager.false
    for number, (layer, states) in enumerate(zip(model.layers, chosen, strict=True)):
        if states & ~layer.enabled != manager.false:
            raise ValueError(f"chosen: expected states with a choice in layer {number}, got others as well")
        if covered & states != manager.false:
            raise ValueError("chosen: expected one choice for every state, got several for some")
        covered = covered | states
    if covered != model.reachable:
        raise ValueError("chosen: expected a choice for every state, got none for some")
    pieces: list[tuple[Partition, Node]] = []
    parts: list[ChoicePart] = []
    events: list[Event] = []
    exits: list[Partition] = []
    names = tuple(v.name for v in model.encoding.variables)
    for layer, states in zip(model.layers, chosen, strict=True):
        if states == manager.false:
            continue
        own = layer.matrix.only(states).partition()
        pieces.append((own, manager.true))
        for part in layer.parts:
            inside = part.states & states
            if inside == manager.false:
                continue
            once = Partition(manager, {1: inside})
            # Probabilities may add up to 1 only roughly: rows are divided by what they do add up to.
            exits.append(once if part.sums is None else part.sums.only(inside))
            if part.event is None and inside & ~model.deadlocks == manager.false:
                parts.append(ChoicePart(None, inside, None))
                continue
            commands = part.event.commands if part.event is not None else ()
            event = Event(part.action, names, own.only(inside), once, exits[-1], [], commands)
            events.append(event)
            parts.append(ChoicePart(part.action, inside, event))
    matrix = SymbolicMatrix.from_disjoint(manager, pieces, unite=False)
    relations = [Relation.whole(manager, matrix.support())]
    chain = SymbolicModel(
        replace(model.source, type=ModelType.DTMC),
        model.encoding,
        model.translator,
        events if model.given is None else (),
        relations,
        model.initial,
        model.reachable,
        model.deadlocks,
        None,
        [ChoiceLayer(matrix, model.reachable, tuple(parts))],
        model.warnings,
        None if model.given is None else _given_parts(model, model.given, chosen, relations, exits),
    )
    if "numbering" in model.__dict__:
        chain.numbering = model.numbering
    return chain


def _given_parts(
    model: SymbolicModel,
    given: GivenParts,
    chosen: Sequence[Node],
    relations: Sequence[Relation],
    exits: Sequence[Partition],
) -> GivenParts:
    """Return what a chain of a model without events has in their place: rewards of the choices kept."""
    manager = model.manager
    rewards = []
    for reward in given.rewards:
        kept = [
            (vector.only(states).partition(), manager.true)
            for vector, states in zip(reward.choices, chosen, strict=True)
            if vector is not None and states != manager.false
        ]
        choices = SymbolicMatrix.from_disjoint(manager, kept, unite=False) if kept else None
        rewards.append(GivenReward(reward.name, reward.states, (choices,)))
    taken = None if given.taken is None else _taken(model, given.taken, chosen)
    return GivenParts(tuple(exits), tuple(rewards), tuple(relations), given.numbering, given.text, taken)


def _taken(model: SymbolicModel, taken: TakenCommands, chosen: Sequence[Node]) -> TakenCommands:
    """Return the commands of the choices kept, in one layer."""
    kept = np.full(model.n_states, -1, np.int32)
    for ways, states in zip(taken.layers, chosen, strict=True):
        inside = for_users(model, model.indicator(states))
        kept[inside] = ways[inside]
    return TakenCommands(taken.commands, (kept,))
