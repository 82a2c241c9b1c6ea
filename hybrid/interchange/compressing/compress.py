"""From a model written out to decision diagrams."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.engine_choice import saves_little
from hybrid.core.lists import concatenated_ranges
from hybrid.errors import InterchangeError
from hybrid.interchange.compressing.choice_classes import choice_layers
from hybrid.interchange.compressing.choose_order import candidate_orders
from hybrid.interchange.compressing.encoded_states import EncodedStates, encode_states
from hybrid.interchange.compressing.listed_matrix import ListedEntries, listed_matrix
from hybrid.interchange.compressing.loops import with_loops
from hybrid.interchange.compressing.moves import Moves, ValueSets, find_moves, value_sets
from hybrid.interchange.compressing.state_columns import StateColumns, state_columns
from hybrid.interchange.compressing.terminals import terminals_of
from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers
from hybrid.interchange.validate import validate
from mtbdd.choices import ChoiceLayer, ChoicePart
from mtbdd.given import GivenReward, TakenCommands
from mtbdd.given_model import given_model
from mtbdd.language.syntax import ModelType
from mtbdd.matrix import SymbolicMatrix
from mtbdd.model import SymbolicModel
from mtbdd.order import Order
from mtbdd.relation import Relation
from mtbdd.wording import option

_SMALLER = (
    0.9  # another variable order than the source's is kept if its matrix has at most this share of nodes
)

_LARGE = 10_000  # transitions from which it is told that diagrams save little


def compressed(
    model: ExplicitModel, *, fix_deadlocks: bool = True, package: str = "auto", order: Order = "auto"
) -> SymbolicModel:
    """Return the decision diagrams of a model that is written out.

    Parameters
    ----------
    model : ExplicitModel
    fix_deadlocks : bool
        Give states without choices a self-loop; otherwise they are an error.
    package : {"auto", "cudd", "autoref"}
        Back end of `dd`.
    order : {"auto", "model", "reversed", "force"}, or tuple of str
        Variable order, see `candidate_orders`.

    Returns
    -------
    SymbolicModel
        All of the source's states count as reachable. `model.given.numbering` holds their order where the
        valuations do not ascend.

    Raises
    ------
    InterchangeError
        The arrays are no model, see `hybrid.interchange.validate`.
    BuildError
        Deadlocks that must not be.

    Notes
    -----
    Rows of probabilities are divided by their sums; values within 4 units in the last place are united.
    Time: O(entries x variables) in NumPy where the transitions are few moves (see `moves`), else
    O(entries x bits).
    """
    started = time.perf_counter()
    model, loops = with_loops(validate(model))
    columns = state_columns(model)
    small = np.int32 if model.n_states < 1 << 31 else np.int64
    sources = np.repeat(model.state_of_choice.astype(small), np.diff(model.row_starts))
    entries = ListedEntries(sources, model.columns, *terminals_of(model))
    moves = find_moves(columns, entries.sources, entries.targets, entries.numbers)
    values = [] if moves is None else value_sets(columns, moves, entries.sources)
    best: _Built | None = None
    for places in candidate_orders(columns, moves, values, order):
        own = _build(model, columns, encode_states(columns, places, package), entries, moves, values)
        if best is None or own.size < _SMALLER * best.size:
            best = own
    assert best is not None
    states = best.states
    built = given_model(
        states.encoding,
        states.variables,
        model.type,
        best.layers,
        states.set_of(model.initial),
        states.node,
        exits=_exits(model, states),
        labels={name: states.set_of(mask) for name, mask in model.labels.items()},
        rewards=[_reward(model, states, reward, best.held) for reward in model.rewards],
        relations=best.relations,
        deadlocks=states.set_of(loops),
        fix_deadlocks=fix_deadlocks,
        numbering=states.rank,
        warnings=_warnings(model, best.size),
        source=model.source,
        started=started,
    )
    if built.given is not None and model.choice_commands is not None:
        built.given = replace(built.given, taken=_taken(model, model.choice_commands, best.held))
    return built


def _taken(model: ExplicitModel, commands: NDArray[np.int32], held: Sequence[Numbers]) -> TakenCommands:
    """Return the commands of every layer's choices."""
    owners, layers = model.state_of_choice, []
    for choices in held:
        layer = np.full(model.n_states, -1, dtype=np.int32)
        layer[owners[choices]] = commands[choices]
        layers.append(layer)
    return TakenCommands(model.commands, tuple(layers))


def _warnings(model: ExplicitModel, nodes: int) -> list[str]:
    """Tell what the reader passed over, and of a large model that its diagram saves little over its list."""
    if model.n_entries < _LARGE or not saves_little(nodes, model.n_entries):
        return [*model.warnings]
    why = "" if model.variables else ": it has no valuations, and only numbers tell states apart"
    size = f"{nodes} nodes for {model.n_entries} transitions"
    little = f"{model.source}: {size}{why}; {option('engine', 'auto')} writes such a matrix out"
    return [*model.warnings, little]


@dataclass(frozen=True)
class _Built:
    """Layers in some variable order, their graph in parts, and which choices each layer holds."""

    states: EncodedStates
    layers: list[ChoiceLayer]
    relations: list[Relation]
    held: list[Numbers]

    @property
    def size(self) -> int:
        """Nodes of all layers."""
        return sum(self.states.encoding.manager.size(layer.matrix.node) for layer in self.layers)


def _build(
    model: ExplicitModel,
    columns: StateColumns,
    states: EncodedStates,
    entries: ListedEntries,
    moves: Moves | None,
    values: Sequence[ValueSets],
) -> _Built:
    """Return a model's layers in the order of the states' variables."""
    if model.is_mdp:
        return _Built(states, *_choice_layers(model, columns, states, entries, moves))
    matrix, relations = listed_matrix(states, entries, moves, values)
    layers = [ChoiceLayer(matrix, states.node, (ChoicePart(None, states.node, None),))]
    return _Built(states, layers, relations, [np.arange(model.n_states, dtype=np.int64)])


def _choice_layers(
    model: ExplicitModel,
    columns: StateColumns,
    states: EncodedStates,
    entries: ListedEntries,
    moves: Moves | None,
) -> tuple[list[ChoiceLayer], list[Relation], list[Numbers]]:
    """Return the layers of an MDP, their graphs, and which choices each holds."""
    layers: list[ChoiceLayer] = []
    relations: list[Relation] = []
    held: list[Numbers] = []
    manager = states.encoding.manager
    for number, layer in enumerate(choice_layers(model, None if moves is None else moves.numbers)):
        starts = model.row_starts[layer.choices]
        own = entries.at(concatenated_ranges(starts, model.row_starts[layer.choices + 1] - starts))
        own_moves, values = None, []
        if moves is not None:
            own_moves = find_moves(columns, own.sources, own.targets, own.numbers)
        if own_moves is not None:
            values = value_sets(columns, own_moves, own.sources)
        matrix, _ = listed_matrix(states, own, own_moves, values)
        enabled = np.zeros(model.n_states, dtype=np.bool_)
        enabled[layer.states] = True
        parts = _action_parts(model, states, layer.choices, layer.states)
        layers.append(ChoiceLayer(matrix, states.set_of(enabled), parts))
        relations.append(Relation.whole(manager, matrix.support(), number))
        held.append(layer.choices)
    return layers, relations, held


def _exits(model: ExplicitModel, states: EncodedStates) -> SymbolicMatrix | None:
    """Return a CTMC's exit rates as a function of the states; None for probabilities, which add up to 1."""
    if model.type is not ModelType.CTMC:
        return None
    most = float(np.diff(model.row_starts).max(initial=1))
    # lemma: entry-units
    return states.function_of(model.row_sums, model.value_units + most)


def _action_parts(
    model: ExplicitModel, states: EncodedStates, choices: Numbers, owners: Numbers
) -> tuple[ChoicePart, ...]:
    """Return a layer's choices by action."""
    if model.choice_actions is None:
        numbers = np.full(len(choices), -1, dtype=np.int64)
    else:
        numbers = model.choice_actions[choices]
    found = []
    for number in np.unique(numbers).tolist():
        mask = np.zeros(model.n_states, dtype=np.bool_)
        mask[owners[numbers == number]] = True
        action = model.actions[number] if number >= 0 else None
        found.append(ChoicePart(action, states.set_of(mask), None))
    return tuple(found)


def _reward(
    model: ExplicitModel,
    states: EncodedStates,
    reward: ExplicitReward,
    held: Sequence[Numbers],
) -> GivenReward:
    """Return a reward structure as functions of the states."""
    own = None if reward.states is None else states.function_of(reward.states, reward.units)
    if reward.choices is None:
        return GivenReward(reward.name, own, (None,) * len(held))
    by_choice, units = reward.choices, reward.units
    if model.type is ModelType.CTMC:
        # Earned by a jump: in a unit of time, as often as the state is left.
        with np.errstate(over="ignore"):
            by_choice = by_choice * model.row_sums
        wrong = np.flatnonzero(~np.isfinite(by_choice))
        if wrong.size:
            raise InterchangeError(
                f"{model.places.choice(int(wrong[0]))}: expected rewards that add up to less than 1.79e308 "
                "in a unit of time, got more"
            )
        # lemma: entry-units
        units += model.value_units + float(np.diff(model.row_starts).max(initial=1)) + 1.0
    layers: list[SymbolicMatrix | None] = []
    owners = model.state_of_choice
    for choices in held:
        vector = np.zeros(model.n_states)
        vector[owners[choices]] = by_choice[choices]
        layers.append(states.function_of(vector, units))
    return GivenReward(reward.name, own, tuple(layers))
