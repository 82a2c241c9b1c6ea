"""Symbolic models made of diagrams alone, without commands, and of a scheduler's choices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.build import deadlock_warnings, refuse_infinite
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.diagram_parts import DiagramParts, DiagramReward, TakenCommands
from mtbdd.build.events import Event
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import reward_rates, state_rewards
from mtbdd.build.state_order import for_users
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.names import BUILT_IN_LABELS
from mtbdd.language.syntax import (
    Label,
    LabelReference,
    ModelType,
    Position,
    ResolvedModel,
    ResolvedVariable,
    RewardStructure,
)

# The chain that a memoryless scheduler leaves of a decision process, as a model over the same states.


def induced_chain(model: SymbolicModel, chosen: Sequence[Node]) -> SymbolicModel:
    """Return a decision process with one choice kept in every state, a DTMC.

    `model`: an MDP. `chosen`: for every layer the states that take its choice, among those enabled in it;
    disjoint, together all. Returns SymbolicModel: over the same states with the same numbers, those included
    that the scheduler never reaches. A choice counts as taken once, so that transition rewards are earned as
    in the decision process. Raises ValueError: the model is a chain, or the sets are not as they should be.

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
    chain.is_reached = False
    if "numbering" in model.__dict__:
        chain.numbering = model.numbering
    return chain


def _given_parts(
    model: SymbolicModel,
    given: DiagramParts,
    chosen: Sequence[Node],
    relations: Sequence[Relation],
    exits: Sequence[Partition],
) -> DiagramParts:
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
        rewards.append(DiagramReward(reward.name, reward.states, (choices,), reward.is_sure))
    taken = None if given.taken is None else _taken(model, given.taken, chosen)
    return DiagramParts(tuple(exits), tuple(rewards), tuple(relations), given.numbering, given.text, taken)


def _taken(model: SymbolicModel, taken: TakenCommands, chosen: Sequence[Node]) -> TakenCommands:
    """Return the commands of the choices kept, in one layer."""
    kept = np.full(model.n_states, -1, np.int32)
    for ways, states in zip(taken.layers, chosen, strict=True):
        inside = for_users(model, model.indicator(states))
        kept[inside] = ways[inside]
    return TakenCommands(taken.commands, (kept,))


# Labels and rewards of a model by name, as vectors in the order of the states' numbers.


class Labels(Mapping[str, NDArray[np.bool_]]):
    """The states where each label holds: ``labels["full"]``, bool, shape (n,).

    The labels of the text, and `init` and `deadlock`.  A vector is made when it is requested.  Time: O(n).
    """

    def __init__(self, model: SymbolicModel) -> None:
        self._model = model
        self._labels = {label.name: label.expression for label in model.source.labels}

    def __getitem__(self, name: str) -> NDArray[np.bool_]:
        model = self._model
        if name in self._labels:
            states = model.states(self._labels[name])
        elif name in model.translator.labels:
            states = model.translator.labels[name]
        else:
            raise KeyError(f"{name!r}: expected one of the labels {', '.join(self)}")
        return for_users(model, model.indicator(states))

    def __iter__(self) -> Iterator[str]:
        yield from self._labels
        yield from (name for name in self._model.translator.labels if name not in self._labels)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._labels or name in self._model.translator.labels

    def __repr__(self) -> str:
        return f"<labels {', '.join(self)}>"


class Rewards(Mapping[str | int, NDArray[np.float64]]):
    """State rewards by structure: ``rewards["cost"]``, float64, shape (n,).

    A structure without a name goes by its place among all, counted from 0; so may every other.  Rewards of
    transitions are not part of it: see `rates`.  A vector is made when it is requested.  Time: O(n).
    """

    def __init__(self, model: SymbolicModel) -> None:
        self._model = model

    def __getitem__(self, name: str | int) -> NDArray[np.float64]:
        return for_users(self._model, state_rewards(self._model, self._place(name), self._model.index))

    def rates(self, name: str | int) -> NDArray[np.float64]:
        """Return what a state of a chain earns a step or a unit of time, shape (n,), transitions included.

        Raises KeyError: there is no such structure. Raises ValueError: the model is an MDP, where transition
        rewards depend on the choice.
        """
        return for_users(self._model, reward_rates(self._model, self._place(name), self._model.index))

    def __iter__(self) -> Iterator[str | int]:
        for place, structure in enumerate(self._model.source.rewards):
            yield place if structure.name is None else structure.name

    def __len__(self) -> int:
        return len(self._model.source.rewards)

    def __repr__(self) -> str:
        return f"<rewards {', '.join(map(str, self))}>"

    def _place(self, name: str | int) -> int:
        structures = self._model.source.rewards
        for place, structure in enumerate(structures):
            if name == structure.name or (type(name) is int and name == place):
                return place
        known = ", ".join(map(repr, self)) or "none"
        raise KeyError(f"{name!r}: expected one of the reward structures {known}")


def variable_of_range(name: str, low: int, high: int, is_bool: bool, source: str) -> ResolvedVariable:
    """Return the declaration of a variable of a model without a text."""
    return ResolvedVariable(name, low, high, low, is_bool, None, Position(source, 1, 1))


def model_from_diagrams(
    encoding: Encoding,
    variables: Sequence[ResolvedVariable],
    type: ModelType,
    layers: Sequence[ChoiceLayer],
    initial: Node,
    states: Node,
    *,
    exits: SymbolicMatrix | Sequence[Partition] | None = None,
    labels: Mapping[str, Node] | None = None,
    rewards: Sequence[DiagramReward] = (),
    relations: Sequence[Relation] | None = None,
    deadlocks: Node | None = None,
    fix_deadlocks: bool = True,
    numbering: NDArray[np.int64] | None = None,
    warnings: Sequence[str] = (),
    source: str = "arrays",
    started: float | None = None,
) -> SymbolicModel:
    """Return the model of some diagrams.

    Parameters
    ----------
    encoding : Encoding
    variables : sequence of ResolvedVariable
        In the order of the source, see `variable_of_range`.
    type : ModelType
    layers : sequence of ChoiceLayer
        Matrices between the states, each with at most one choice of every state, whose parts have no events.
        Rows of probabilities are divided by their sums already, and deadlocks have their loops. A chain has
        one layer.
    initial, states : Node
        Sets over row bits; all states count as reachable.
    exits : SymbolicMatrix or sequence of Partition, optional
        What a row of a chain adds up to, over row bits, or parts of it that add up, where the sum takes too
        many values for a diagram; needed for CTMCs, otherwise 1.
    labels : mapping of str to Node, optional
        Sets over row bits; ``init`` is passed over, ``deadlock`` adds to the deadlocks.
    rewards : sequence of DiagramReward
    relations : sequence of Relation, optional
        The graph in parts, each with at most one choice of every state, of one layer; default one a layer.
    deadlocks : Node, optional
        The states whose loop was added.
    fix_deadlocks : bool
        Warn of deadlocks; otherwise they are an error.
    numbering : ndarray of int64, shape (n_states,), optional
        The index of the source's k-th state, where the source has an order of its own.
    warnings : sequence of str
        What the user should know about the source.
    source : str
        File name, or what the model was made from.
    started : float, optional
        When building began, by `time.perf_counter`.

    Returns
    -------
    SymbolicModel

    Raises
    ------
    BuildError
        Entries beyond normal doubles, or deadlocks that must not be.

    Notes
    -----
    Time: that of offset-labelling every layer.
    """
    began = time.perf_counter() if started is None else started
    manager, place = encoding.manager, Position(source, 1, 1)
    names = dict(labels or {})
    resolved = ResolvedModel(
        file=source,
        type=type,
        constants={},
        variables=tuple(variables),
        modules=(),
        labels=tuple(
            Label(name, LabelReference(place, name), place) for name in names if name not in BUILT_IN_LABELS
        ),
        rewards=tuple(RewardStructure(reward.name, (), place) for reward in rewards),
        formulas=(),
        initial=None,
    )
    loops = manager.false if deadlocks is None else deadlocks
    told = [*warnings, *deadlock_warnings(resolved, encoding, loops, fix_deadlocks)]
    for layer in layers:
        refuse_infinite(resolved, encoding, layer.matrix)
    translator = ExpressionTranslator(encoding)
    translator.labels.update({name: node for name, node in names.items() if name not in BUILT_IN_LABELS})
    if exits is None:
        exits = SymbolicMatrix(manager, states, np.ones(1))
    if relations is None:
        relations = [
            Relation.whole(manager, layer.matrix.support(), number) for number, layer in enumerate(layers)
        ]
    model = SymbolicModel(
        resolved,
        encoding,
        translator,
        (),
        relations,
        initial,
        states,
        loops | names.get("deadlock", manager.false),
        None,
        layers,
        told,
        DiagramParts(
            exits if isinstance(exits, SymbolicMatrix) else tuple(exits),
            tuple(rewards),
            tuple(relations),
            numbering,
        ),
    )
    for number in range(len(layers)):
        model.layer_transitions(number)
    model.build_seconds = time.perf_counter() - began
    return model
