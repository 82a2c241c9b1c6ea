"""From a model written out to decision diagrams."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.errors import OptionError
from hybrid.checking.checker import saves_little
from hybrid.models.interchange.compressing.moves import (
    EncodedStates,
    ListedEntries,
    Moves,
    StateColumns,
    ValueSets,
    encode_states,
    find_moves,
    listed_matrix,
    state_columns,
    terminals_of,
    value_sets,
)
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    Vector,
    require_normal,
    validate,
)
from mtbdd.base.errors import option
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.diagram_parts import DiagramReward, TakenCommands
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import model_from_diagrams
from mtbdd.build.order import ORDERS, Order, force_order, total_span
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import ModelType

__all__ = ["compressed"]


def with_loops(model: ExplicitModel) -> tuple[ExplicitModel, Mask]:
    """Return a model whose deadlocks have a choice that leads back with weight 1, and the deadlocks.

    Time: O(states); where there are deadlocks, O(entries) for copies of the arrays.
    """
    counts = np.diff(model.row_starts if model.choice_starts is None else model.choice_starts)
    deadlocks: Mask = counts == 0
    where = np.flatnonzero(deadlocks)
    if not where.size:
        return model, deadlocks
    first = where if model.choice_starts is None else model.choice_starts[where]
    places = model.row_starts[first]
    lengths = np.diff(model.row_starts)
    if model.choice_starts is None:
        lengths = lengths + deadlocks
        return replace(
            model,
            row_starts=pointers(np, lengths),
            columns=np.insert(model.columns, places, where),
            values=np.insert(model.values, places, 1.0),
        ), deadlocks
    actions, commands = model.choice_actions, model.choice_commands
    return replace(
        model,
        row_starts=pointers(np, np.insert(lengths, first, 1)),
        choice_starts=pointers(np, counts + deadlocks),
        columns=np.insert(model.columns, places, where),
        values=np.insert(model.values, places, 1.0),
        choice_actions=None if actions is None else np.insert(actions, first, -1),
        choice_commands=None if commands is None else np.insert(commands, first, -1),
        rewards=tuple(_with_zeros(reward, first) for reward in model.rewards),
    ), deadlocks


def _with_zeros(reward: ExplicitReward, places: Numbers) -> ExplicitReward:
    """Return a reward structure in which new choices earn nothing."""
    choices: Vector | None = reward.choices
    return reward if choices is None else replace(reward, choices=np.insert(choices, places, 0.0))


_MOST_CLASSES = 1024
_MIX = np.uint64(0x9E3779B97F4A7C15)


def choice_layers(model: ExplicitModel, moves: NDArray[np.integer] | None) -> list[Numbers]:
    """Return the choices of all states in layers, in each by ascending numbers: no state has two.

    `model`: an MDP. `moves` (ndarray of integers, shape (n_entries,), or None): every entry's move, see
    `hybrid.models.interchange.compressing.moves`. Choices with the same action and moves are of one class, as
    the choices that a command offers are. A class goes to the first layer in which none of its states has a
    choice. Without moves, or with very many classes, the k-th choice of a state goes to layer k. Time:
    O(entries) and O(choices) for every layer.
    """
    states = model.state_of_choice
    starts = model.choice_starts
    assert starts is not None
    rank = np.arange(model.n_choices, dtype=np.int64) - starts[:-1][states]
    classes = rank
    if moves is not None:
        own = _classes(model, moves)
        own = _apart(states, own)
        if int(own.max(initial=0)) < _MOST_CLASSES:
            classes = own
    order = np.argsort(classes, kind="stable")
    ends = np.cumsum(np.bincount(classes))
    taken: list[Mask] = []
    held: list[list[Numbers]] = []
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        chosen = order[begin:end]
        if not len(chosen):
            continue
        here = states[chosen]
        for mask, members in zip(taken, held, strict=True):
            if not bool(mask[here].any()):
                mask[here] = True
                members.append(chosen)
                break
        else:
            mask = np.zeros(model.n_states, dtype=np.bool_)
            mask[here] = True
            taken.append(mask)
            held.append([chosen])
    return [np.sort(np.concatenate(members)) for members in held]


def _classes(model: ExplicitModel, moves: NDArray[np.integer]) -> Numbers:
    """Return a number for every choice, equal for those with the same action and moves (up to hashing)."""
    mixed = (moves.astype(np.uint64) + np.uint64(1)) * _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    sums = np.add.reduceat(mixed, model.row_starts[:-1])  # no choice is empty
    if model.choice_actions is not None:
        sums += (model.choice_actions + 2).astype(np.uint64) * np.uint64(0x94D049BB133111EB)
    _, first, classes = np.unique(sums, return_index=True, return_inverse=True)
    # Classes in the order of their first choice: layers then follow the source.
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    found: Numbers = place[classes.reshape(-1)]
    return found


def _apart(states: Numbers, classes: Numbers) -> Numbers:
    """Return classes of which no state has two choices: the second ones have classes of their own."""
    order = np.lexsort((classes, states))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (states[order][1:] == states[order][:-1]) & (classes[order][1:] == classes[order][:-1])
    if not bool(same.any()):
        return classes
    begin = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    repeats = np.empty(len(order), dtype=np.int64)
    repeats[order] = np.arange(len(order)) - begin
    count = int(classes.max()) + 1
    _, apart = np.unique(repeats * count + classes, return_inverse=True)
    found: Numbers = apart.reshape(-1).astype(np.int64)
    return found


_GAIN = 0.8  # another order is tried if its span is at most this share of the source's


def candidate_orders(
    columns: StateColumns, moves: Moves | None, values: Sequence[ValueSets], order: Order
) -> list[list[int]]:
    """Return orders of the variables, by their places in the source; the smallest matrix is to be kept.

    Raises OptionError: another name. Some tools write all booleans first, far from the variables that they go
    with. Time: that of `mtbdd.build.order.force_order`.

    `values`: see `hybrid.models.interchange.compressing.moves.value_sets`; empty without moves. `order`
    ({"auto", "model", "reversed", "force"}, or tuple of str): "model" is the source's. "force" is the
    heuristic's: every move ties the variables that it changes and those that it depends on. "auto" tries it
    if it draws them together by a fifth. A tuple has the names of all variables as they follow each other.
    """
    names = [v.name for v in columns.variables]
    given = list(range(len(names)))
    if isinstance(order, tuple):
        return [[names.index(name) for name in order]]
    if order not in ("auto", *ORDERS):
        raise OptionError(f"order: expected auto, {', '.join(ORDERS)}; got {order!r}")
    if order == "reversed":
        return [given[::-1]]
    if order == "model" or moves is None or len(names) < 3:
        return [given]
    edges = _edges(names, moves, values)
    best = force_order(names, edges)
    span, own = total_span(names, edges), total_span(best, edges)
    place = {name: k for k, name in enumerate(names)}
    other = [place[name] for name in best]
    if order == "force":
        return [other if own < span else given]
    return [given, other] if own <= _GAIN * span else [given]


def _edges(names: Sequence[str], moves: Moves, values: Sequence[ValueSets]) -> list[frozenset[str]]:
    """Return the variables that belong together: those that a move changes, or whose values it depends on."""
    tied = moves.changes != 0
    for number, keys in enumerate(values):
        own = np.array(keys, dtype=np.uint64).reshape(-1, 2)
        # The values of all sources together: sets of values, or least and greatest ones.
        whole = [np.bitwise_or.reduce(own[:, 0]), 0]
        if bool(own[:, 1].any()):
            whole = [own[:, 0].min(), own[:, 1].max()]
        tied[:, number] |= (own != np.array(whole, dtype=np.uint64)).any(axis=1)
    edges = [frozenset(names[k] for k in np.flatnonzero(row).tolist()) for row in tied]
    return [edge for edge in edges if len(edge) > 1]


_SMALLER = (
    0.9  # another variable order than the source's is kept if its matrix has at most this share of nodes
)

_LARGE = 10_000  # transitions from which it is reported that diagrams save little


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
        The arrays are no model, see `hybrid.models.interchange.explicit_model`.
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
    built = model_from_diagrams(
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
    """Report parts that the reader ignored, and a large model whose diagram saves little over its list."""
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
    owners = model.state_of_choice
    for number, choices in enumerate(choice_layers(model, None if moves is None else moves.numbers)):
        starts = model.row_starts[choices]
        own = entries.at(concatenated_ranges(starts, model.row_starts[choices + 1] - starts))
        own_moves, values = None, []
        if moves is not None:
            own_moves = find_moves(columns, own.sources, own.targets, own.numbers)
        if own_moves is not None:
            values = value_sets(columns, own_moves, own.sources)
        matrix, _ = listed_matrix(states, own, own_moves, values)
        enabled = np.zeros(model.n_states, dtype=np.bool_)
        enabled[owners[choices]] = True
        parts = _action_parts(model, states, choices, owners[choices])
        layers.append(ChoiceLayer(matrix, states.set_of(enabled), parts))
        relations.append(Relation.whole(manager, matrix.support(), number))
        held.append(choices)
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
    model: ExplicitModel, states: EncodedStates, reward: ExplicitReward, held: Sequence[Numbers]
) -> DiagramReward:
    """Return a reward structure as functions of the states."""
    own = None if reward.states is None else states.function_of(reward.states, reward.units)
    if reward.choices is None:
        return DiagramReward(reward.name, own, (None,) * len(held))
    by_choice, units = reward.choices, reward.units
    if model.type is ModelType.CTMC:
        # Earned by a jump: in a unit of time, as often as the state is left.
        with np.errstate(over="ignore"):
            by_choice = by_choice * model.row_sums
        # lemma: underflow
        require_normal(reward.choices, by_choice, model.places.choice)
        # lemma: entry-units
        units += model.value_units + float(np.diff(model.row_starts).max(initial=1)) + 1.0
    layers: list[SymbolicMatrix | None] = []
    owners = model.state_of_choice
    for choices in held:
        vector = np.zeros(model.n_states)
        vector[owners[choices]] = by_choice[choices]
        layers.append(states.function_of(vector, units))
    return DiagramReward(reward.name, own, tuple(layers), reward.is_sure)
