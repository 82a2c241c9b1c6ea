"""Conversion of a symbolic model to one with every state and transition written out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.graphs import choice_actions, graph_bytes, model_graph
from hybrid.base.errors import InterchangeError, OptionError
from hybrid.base.graph_drawing import GraphArrow, GraphNode, GraphPicture, dot_text
from hybrid.matrix.explicit.extract import explicit_matrix, renumbered
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Numbers,
    Places,
    StateVariable,
    Vector,
    require_normal,
    reward_name,
    unless_zero,
)
from mtbdd.base.errors import either
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units
from mtbdd.build.state_order import for_users, table_of_range
from mtbdd.language.syntax import ModelType

_PART = 1 << 17  # states whose values are decoded together


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
            f"needs {required} bytes, {available} are free; "
            + either(
                "write a symbolic file, --to FILE.dd, or give --force",
                "use the compressed matrix (hybrid.inject), a symbolic file, or force=True",
            )
        )
    rows = listed_choices(model, required if force else None)
    variables = tuple(StateVariable(v.name, v.low, v.high, v.is_bool) for v in model.source.variables)
    sets = {"deadlock": model.deadlocks}
    sets |= {label.name: model.states(label.expression) for label in model.source.labels}
    labels = {name: for_users(model, model.indicator(states)) for name, states in sets.items()}
    return ExplicitModel(
        model.type,
        model.n_states,
        rows.starts,
        rows.columns,
        rows.values,
        for_users(model, model.indicator(model.initial)),
        rows.choice_starts,
        rows.actions,
        rows.choice_actions,
        variables,
        _valuations(model),
        labels,
        tuple(listed_reward(model, k, rows) for k in range(len(model.source.rewards))),
        model.entry_units,
        model.source.file,
        Places(model.source.file),
    )


@dataclass(frozen=True, eq=False)
class ListedChoices:
    """The choices of all states, see `ExplicitModel`; `layers` and `owners` are their layers and states."""

    starts: Numbers
    columns: Numbers
    values: Vector
    owners: Numbers
    layers: NDArray[np.unsignedinteger]
    choice_starts: Numbers | None = None
    actions: tuple[str, ...] = ()
    choice_actions: Numbers | None = None


def listed_choices(model: SymbolicModel, budget: int | None = None) -> ListedChoices:
    """Return the choices of all states, those of a state in the order of the layers.

    `budget`: bytes that may be taken; default the free memory. Raises MemoryError: the arrays do not fit.
    """
    states = np.arange(model.n_states, dtype=np.int64)
    if not model.is_mdp:
        matrix = explicit_matrix(model.transitions, memory_budget=budget)
        if model.numbering is not None:
            matrix = renumbered(matrix, model.numbering)
        starts, columns = (a.astype(np.int64) for a in (matrix.row_starts, matrix.columns))
        return ListedChoices(starts, columns, matrix.values, states, np.zeros(model.n_states, dtype=np.uint8))
    graph = model_graph(model, probabilities=True, memory_budget=budget)
    assert graph.probabilities is not None
    names, numbers = choice_actions(model, graph)
    actions = tuple(name for name in names if name is not None)
    place = np.array([-1 if name is None else actions.index(name) for name in names], dtype=np.int64)
    return ListedChoices(
        graph.choice_offsets.astype(np.int64),
        graph.targets.astype(np.int64),
        graph.probabilities,
        np.repeat(states, np.diff(graph.choice_ptr)),
        graph.choice_layers,
        graph.choice_ptr.astype(np.int64),
        actions,
        place[numbers] if actions else None,
    )


def _valuations(model: SymbolicModel) -> dict[str, NDArray[Any]]:
    """Return every variable's value in every state, some states at a time."""
    found: dict[str, NDArray[Any]] = {
        v.name: np.empty(model.n_states, dtype=np.bool_ if v.is_bool else np.int64)
        for v in model.source.variables
    }
    variables = [model.encoding.by_name[name] for name in found]
    for begin in range(0, model.n_states, _PART):
        end = min(begin + _PART, model.n_states)
        table = table_of_range(model.index, variables, begin, end)
        for name, column in found.items():
            column[begin:end] = table[name]
    return {name: for_users(model, column) for name, column in found.items()}


def listed_reward(model: SymbolicModel, structure: int, rows: ListedChoices) -> ExplicitReward:
    """Return a reward structure by number of the state and of the choice."""
    index = model.index
    own, error = enclosed_rewards(model, structure, index, moves=False)
    units, name = relative_units(own, error), model.source.rewards[structure].name
    choices: Vector = np.zeros(len(rows.layers))
    for number in range(len(model.layers)):
        layer = number if model.is_mdp else None
        earned, error = enclosed_rewards(model, structure, index, layer, states=False)
        if not earned.any():
            continue
        # lemma: entry-units
        units = max(units, relative_units(earned, error))
        if model.type is ModelType.CTMC:
            with np.errstate(over="ignore"):
                jumps = earned / model.exit_rates(index)
            # lemma: underflow
            require_normal(earned, jumps, lambda _: reward_name(name, structure))
            earned = jumps
            # lemma: entry-units
            units += model.exit_units + 1.0
        held = rows.layers == number
        choices[held] = for_users(model, earned)[rows.owners[held]]
    # lemma: entry-units
    return ExplicitReward(
        name,
        unless_zero(for_users(model, own)),
        unless_zero(choices),
        units * (1 + 2.0**-40),
    )


# Small models as pictures, and as texts in Graphviz's language.

MOST_STATES = 200
"""States of a model that a picture can show."""


def graph_picture(model: ExplicitModel, title: str = "", *, whole: bool = False) -> GraphPicture:
    """Return the picture of a model's graph.

    Returns GraphPicture: states have the values of their variables, or their number, and their labels, with a
    double line if they are initial. Choices of an MDP are points, with the name of their action at the line
    to them. `whole`: with the number of every state, and all digits. Time: O(states + transitions).
    """
    layers = _distances(model)
    nodes = [_state(model, state, 2 * layers[state], whole) for state in range(model.n_states)]
    arrows: list[GraphArrow] = []
    starts, columns = model.row_starts.tolist(), model.columns.tolist()
    values = model.values.tolist()
    for choice, state in enumerate(model.state_of_choice.tolist()):
        source = state
        if model.is_mdp:
            source = len(nodes)
            nodes.append(GraphNode((), 2 * layers[state] + 1, "choice"))
            arrows.append(GraphArrow(state, source, _action(model, choice), head=False))
        for entry in range(starts[choice], starts[choice + 1]):
            shown = repr(values[entry]).removesuffix(".0") if whole else f"{values[entry]:.4g}"
            arrows.append(GraphArrow(source, columns[entry], shown))
    return GraphPicture(nodes, arrows, title=title)


def check_size(n_states: int) -> None:
    """Refuse models that no picture can show."""
    if n_states > MOST_STATES:
        write = either("hybrid export --to FILE.dot", "hybrid.export(model, 'FILE.dot')")
        raise OptionError(
            f"a picture of a graph shows at most {MOST_STATES} states, got {n_states}; choose smaller "
            f"constants, or write the text of a larger drawing with {write}"
        )


def _state(model: ExplicitModel, state: int, layer: int, numbered: bool) -> GraphNode:
    """Return the node of a state."""
    values, labels = _values(model, state), _labels(model, state)
    shown = [str(state)] if numbered or not values else []
    shown += [", ".join(values[k : k + 3]) for k in range(0, len(values), 3)]
    return GraphNode((*shown, *labels), layer, "state", bool(model.initial[state]), bool(labels))


def _values(model: ExplicitModel, state: int) -> list[str]:
    """Return the values of variables in a state, such as ``x=1``."""
    pairs = [(variable, model.valuations[variable.name][state]) for variable in model.variables]
    return [f"{v.name}={str(bool(value)).lower() if v.is_bool else int(value)}" for v, value in pairs]


def _labels(model: ExplicitModel, state: int) -> list[str]:
    """Return the line of a state's labels, none if it has no label."""
    own = [name for name, mask in model.labels.items() if mask[state]]
    return ["{" + ", ".join(own) + "}"] if own else []


def _action(model: ExplicitModel, choice: int) -> str:
    """Return the name of a choice's action, empty if it has none."""
    number = -1 if model.choice_actions is None else int(model.choice_actions[choice])
    return model.actions[number] if number >= 0 else ""


def _distances(model: ExplicitModel) -> list[int]:
    """Return how many steps every state is away from an initial one; unreached ones are below all others."""
    found = [-1] * model.n_states
    queue = deque(model.initial.nonzero()[0].tolist())
    for state in queue:
        found[state] = 0
    owners, starts = model.state_of_choice.tolist(), model.row_starts.tolist()
    successors: list[list[int]] = [[] for _ in found]
    for choice, state in enumerate(owners):
        successors[state] += model.columns[starts[choice] : starts[choice + 1]].tolist()
    while queue:
        state = queue.popleft()
        for other in successors[state]:
            if found[other] < 0:
                found[other] = found[state] + 1
                queue.append(other)
    last = max(found, default=0) + 1
    return [last if distance < 0 else distance for distance in found]


_MOST_DOT = 5000


def dot_blocks(model: ExplicitModel, *, force: bool = False) -> Iterator[bytes]:
    """Yield a model as a graph that Graphviz draws, see `graph_picture`.

    `force`: also models with more than 5000 states and transitions, which no program draws well. Raises
    InterchangeError: a large model.
    """
    size = model.n_states + model.n_entries
    if size > _MOST_DOT and not force:
        raise InterchangeError(
            f"a model of at most {_MOST_DOT} states and transitions expected, got {size}; write another "
            f"format, or give {either('--force', 'force=True')}"
        )
    yield dot_text(graph_picture(model, whole=True)).encode()
