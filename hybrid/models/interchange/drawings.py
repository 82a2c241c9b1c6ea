"""Small models as pictures, and as texts in Graphviz's language."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from hybrid.base.drawing.graphs import GraphArrow, GraphNode, GraphPicture, quoted
from hybrid.base.errors import InterchangeError, OptionError
from hybrid.models.interchange.explicit_model import ExplicitModel
from mtbdd.base.errors import either

MOST_STATES = 200
"""States of a model that a picture can show."""


def graph_picture(model: ExplicitModel, title: str = "") -> GraphPicture:
    """Return the picture of a model's graph.

    Returns GraphPicture: states have the values of their variables, or their number, and their labels, with a
    double line if they are initial. Choices of an MDP are points, with the name of their action at the line
    to them. Raises OptionError: the model has more than 200 states. Time: O(states + transitions).
    """
    check_size(model.n_states)
    layers = _distances(model)
    nodes = [_state(model, state, 2 * layers[state]) for state in range(model.n_states)]
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
            arrows.append(GraphArrow(source, columns[entry], f"{values[entry]:.4g}"))
    return GraphPicture(nodes, arrows, title=title)


def check_size(n_states: int) -> None:
    """Refuse models that no picture can show."""
    if n_states > MOST_STATES:
        write = either("hybrid export --to FILE.dot", "hybrid.export(model, 'FILE.dot')")
        raise OptionError(
            f"a picture of a graph shows at most {MOST_STATES} states, got {n_states}; choose smaller "
            f"constants, or write the text of a larger drawing with {write}"
        )


def _state(model: ExplicitModel, state: int, layer: int) -> GraphNode:
    """Return the node of a state."""
    values, labels = _values(model, state) or [str(state)], _labels(model, state)
    shown = [", ".join(values[k : k + 3]) for k in range(0, len(values), 3)]
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
    """Yield a model as a graph that Graphviz draws: the nodes, then the arrows.

    States show their number, the values of variables and the labels; initial states have a double line.
    Choices of an MDP are points, with the name of their action. `force`: also models with more than 5000
    states and transitions, which no program draws well. Raises InterchangeError: a large model.
    """
    size = model.n_states + model.n_entries
    if size > _MOST_DOT and not force:
        raise InterchangeError(
            f"a model of at most {_MOST_DOT} states and transitions expected, got {size}; write another "
            f"format, or give {either('--force', 'force=True')}"
        )
    yield f"digraph {model.type.value} {{\n  node [shape=ellipse];\n".encode()
    for state in range(model.n_states):
        lines = [str(state)]
        if model.variables:
            lines.append(", ".join(_values(model, state)))
        lines += _labels(model, state)
        border = ", peripheries=2" if model.initial[state] else ""
        yield f"  s{state} [label={quoted(lines)}{border}];\n".encode()
    owners = model.state_of_choice.tolist()
    starts = model.row_starts.tolist()
    for choice, state in enumerate(owners):
        source = f"s{state}"
        if model.is_mdp:
            source = f"c{choice}"
            action = _action(model, choice)
            label = f", label={quoted([action])}" if action else ""
            yield f"  c{choice} [shape=point];\n  s{state} -> c{choice} [dir=none{label}];\n".encode()
        for entry in range(starts[choice], starts[choice + 1]):
            value = quoted([repr(float(model.values[entry])).removesuffix(".0")])
            yield f"  {source} -> s{int(model.columns[entry])} [label={value}];\n".encode()
    yield b"}\n"
