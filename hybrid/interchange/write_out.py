"""From a symbolic model to one with every state and transition written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.core.lists import concatenated_ranges
from hybrid.graphs.arrays import choice_actions, graph_bytes, model_graph
from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers, StateVariable, Vector
from hybrid.interchange.faults import ArrayPlaces
from mtbdd.language.syntax import ModelType
from mtbdd.memory import free_memory_bytes
from mtbdd.model import SymbolicModel
from mtbdd.rewards import (
    action_reward_error,
    action_rewards,
    relative_units,
    state_reward_error,
    state_rewards,
)


def written_out_bytes(model: SymbolicModel) -> int:
    """Return the bytes that a written-out model takes while it is made, estimated.

    Time: O(nodes of the diagrams); nothing is expanded.
    """
    choices = model.n_choices or model.n_states
    vectors = len(model.encoding.variables) + 2 * len(model.source.rewards) + 4
    labels = len(model.source.labels) + 2
    entries = 16 * model.n_transitions  # columns as int64 beside those of the graph
    return graph_bytes(model, True) + entries + 24 * choices + model.n_states * (8 * vectors + labels)


def written_out(model: SymbolicModel, *, force: bool = False) -> ExplicitModel:
    """Return a model with its states, transitions, labels and rewards as arrays.

    Parameters
    ----------
    model : SymbolicModel
    force : bool
        Make the arrays even if they seem not to fit in memory.

    Returns
    -------
    ExplicitModel
        States in the source's order, by default that of the variables in the text, lexicographically. Choices
        of a state are in the order of the model's layers. Numbers of the text that are no doubles are rounded
        to such.

    Raises
    ------
    MemoryError
        The arrays do not fit; with their size in bytes.

    Notes
    -----
    Time: O(transitions + states x (layers + variables + labels + rewards)).
    """
    required, available = written_out_bytes(model), free_memory_bytes()
    if required > available and not force:
        raise MemoryError(
            f"written out, the model has {model.n_states} states and {model.n_transitions} transitions and "
            f"needs {required} bytes, {available} are free; use the compressed matrix (hybrid.inject), a "
            "symbolic file, or force it"
        )
    graph = model_graph(model, probabilities=True, memory_budget=None if not force else required)
    assert graph.probabilities is not None
    choice_starts = graph.choice_ptr.astype(np.int64) if model.is_mdp else None
    actions: tuple[str, ...] = ()
    numbers: Numbers | None = None
    if model.is_mdp:
        names, numbers = choice_actions(model, graph)
        actions = tuple(name for name in names if name is not None)
        place = np.array([-1 if name is None else actions.index(name) for name in names], dtype=np.int64)
        numbers = place[numbers] if actions else None
    owners = np.repeat(np.arange(model.n_states, dtype=np.int64), np.diff(graph.choice_ptr))
    variables = tuple(StateVariable(v.name, v.low, v.high, v.is_bool) for v in model.source.variables)
    labels = {"deadlock": model.indicator(model.deadlocks)}
    labels |= {label.name: model.indicator(model.states(label.expression)) for label in model.source.labels}
    written = ExplicitModel(
        model.type,
        model.n_states,
        graph.choice_offsets.astype(np.int64),
        graph.targets.astype(np.int64),
        graph.probabilities,
        model.indicator(model.initial),
        choice_starts,
        actions,
        numbers,
        variables,
        {v.name: _valuation(model, v.name) for v in model.source.variables},
        labels,
        tuple(_reward(model, k, graph.choice_layers, owners) for k in range(len(model.source.rewards))),
        model.entry_units,
        model.source.file,
        ArrayPlaces(model.source.file),
    )
    return written if model.numbering is None else renumbered(written, model.numbering)


def renumbered(model: ExplicitModel, order: Numbers) -> ExplicitModel:
    """Return a model whose k-th state is the given one's ``order[k]``.  Time: O(states + entries)."""
    rank = np.empty(model.n_states, dtype=np.int64)
    rank[order] = np.arange(model.n_states, dtype=np.int64)
    choices, choice_starts = order, None
    if model.choice_starts is not None:
        counts = np.diff(model.choice_starts)[order]
        choices = concatenated_ranges(model.choice_starts[order], counts)
        choice_starts = _starts(counts)
    lengths = np.diff(model.row_starts)[choices]
    entries = concatenated_ranges(model.row_starts[choices], lengths)
    actions = model.choice_actions
    rewards = [
        replace(
            reward,
            states=None if reward.states is None else reward.states[order],
            choices=None if reward.choices is None else reward.choices[choices],
        )
        for reward in model.rewards
    ]
    return replace(
        model,
        row_starts=_starts(lengths),
        columns=rank[model.columns[entries]],
        values=model.values[entries],
        initial=model.initial[order],
        choice_starts=choice_starts,
        choice_actions=None if actions is None else actions[choices],
        valuations={name: column[order] for name, column in model.valuations.items()},
        labels={name: mask[order] for name, mask in model.labels.items()},
        rewards=tuple(rewards),
    )


def _starts(lengths: Numbers) -> Numbers:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _valuation(model: SymbolicModel, name: str) -> NDArray[Any]:
    """Return a variable's value in every state, in index order."""
    variable = model.encoding.by_name[name]
    stored = np.zeros(model.n_states, dtype=np.int64)
    for bit in model.encoding.row_names(variable):
        stored *= 2
        stored += model.indicator(model.manager.bdd.var(bit))
    if variable.is_bool:
        return stored.astype(np.bool_)
    stored += variable.low
    return stored


def _reward(
    model: SymbolicModel, structure: int, layers: NDArray[np.unsignedinteger], owners: Numbers
) -> ExplicitReward:
    """Return a reward structure, in index order; `layers` and `owners` are the choices' layers and states."""
    index = model.index
    own = state_rewards(model, structure, index)
    units = relative_units(own, state_reward_error(model, structure, index))
    choices: Vector = np.zeros(len(layers))
    for number in range(len(model.layers)):
        layer = number if model.is_mdp else None
        earned = action_rewards(model, structure, index, layer)
        if not earned.any():
            continue
        units = max(units, relative_units(earned, action_reward_error(model, structure, index, layer)))
        if model.type is ModelType.CTMC:
            earned = earned / model.exit_rates(index)
            units += model.exit_units + 1.0
        held = layers == number
        choices[held] = earned[owners[held]]
    return ExplicitReward(
        model.source.rewards[structure].name,
        own if own.any() else None,
        choices if choices.any() else None,
        units * (1 + 2.0**-40),
    )
