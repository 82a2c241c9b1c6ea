"""Drawings of small models in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid.drawing.graphs import quoted
from hybrid.interchange.explicit_model import ExplicitModel
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.source import write_text
from mtbdd.wording import either

_MOST = 5000


def write_dot(model: ExplicitModel, path: str | Path, *, force: bool = False) -> Path:
    """Write a model as a graph that Graphviz draws.

    Parameters
    ----------
    model : ExplicitModel
        States show their number, the values of variables and the labels; initial states have a double line.
        Choices of an MDP are points, with the name of their action.
    path : str or Path
        Compressed if it ends with ``.gz`` or ``.xz``.
    force : bool
        Write models with more than 5000 states and transitions, too, which no program draws well.

    Returns
    -------
    Path

    Raises
    ------
    InterchangeError
        A large model, or a file that cannot be written.

    Notes
    -----
    Time: some microseconds a transition.
    """
    size = model.n_states + model.n_entries
    if size > _MOST and not force:
        raise InterchangeError(
            f"{path}: a model of at most {_MOST} states and transitions expected, got {size}; write another "
            f"format, or give {either('--force', 'force=True')}"
        )
    write_text(path, _blocks(model))
    return Path(path)


def _blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the nodes, then the arrows."""
    yield f"digraph {model.type.value} {{\n  node [shape=ellipse];\n".encode()
    for state in range(model.n_states):
        lines = [str(state)]
        if model.variables:
            values = [model.valuations[variable.name][state] for variable in model.variables]
            pairs = zip(model.variables, values, strict=True)
            lines.append(
                ", ".join(
                    f"{variable.name}={str(bool(value)).lower() if variable.is_bool else int(value)}"
                    for variable, value in pairs
                )
            )
        own = [name for name, mask in model.labels.items() if mask[state]]
        if own:
            lines.append("{" + ", ".join(own) + "}")
        border = ", peripheries=2" if model.initial[state] else ""
        yield f"  s{state} [label={quoted(lines)}{border}];\n".encode()
    owners = model.state_of_choice.tolist()
    starts = model.row_starts.tolist()
    for choice, state in enumerate(owners):
        source = f"s{state}"
        if model.is_mdp:
            source = f"c{choice}"
            number = -1 if model.choice_actions is None else int(model.choice_actions[choice])
            label = f", label={quoted([model.actions[number]])}" if number >= 0 else ""
            yield f"  c{choice} [shape=point];\n  s{state} -> c{choice} [dir=none{label}];\n".encode()
        for entry in range(starts[choice], starts[choice + 1]):
            value = quoted([repr(float(model.values[entry])).removesuffix(".0")])
            yield f"  {source} -> s{int(model.columns[entry])} [label={value}];\n".encode()
    yield b"}\n"
