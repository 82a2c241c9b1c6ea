"""The example models at small parameters: sizes and node counts as PRISM gives them, and explicit models."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtbdd.language import load_model, parse_model, resolve
from mtbdd.language.syntax import ResolvedModel
from mtbdd.model import build_model
from tests.model_checks import assert_same_model
from tests.oracles import explore

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def source_of(name: str, size: int | None, constants: dict[str, Any]) -> ResolvedModel:
    """Return an example, generated for models whose number of modules is their parameter."""
    if size is not None:
        text = runpy.run_path(str(EXAMPLES / "generate.py"))[name](size)
        return resolve(parse_model(text), constants)
    return resolve(load_model(str(EXAMPLES / f"{name}.prism")), constants)


# name, size of generated ones, constants, states, transitions, MTBDD nodes, terminals
KNOWN = [
    ("kanban", None, {"t": 3}, 58400, 446400, 2474, 14),
    ("tandem", None, {"c": 255}, 130816, 455939, 243, 6),
    ("fms", None, {"n": 4}, 35910, 237120, 28470, 30),
    ("cluster", None, {"N": 64}, 151060, 733216, 8225, 71),
    ("polling", 9, {}, 6912, 36864, 765, 4),
    ("herman", 9, {}, 512, 19684, 273, 6),
    ("brp", None, {"N": 512, "MAX": 5}, 41480, 55299, 2680, 6),
]


@pytest.mark.parametrize(
    ("name", "size", "constants", "states", "transitions", "nodes", "terminals"),
    KNOWN,
    ids=[row[0] for row in KNOWN],
)
def test_examples_have_known_sizes(
    name: str,
    size: int | None,
    constants: dict[str, Any],
    states: int,
    transitions: int,
    nodes: int,
    terminals: int,
) -> None:
    model = build_model(source_of(name, size, constants))
    found = model.statistics
    assert (found.states, found.transitions) == (states, transitions)
    assert (found.mtbdd_nodes, found.terminals) == (nodes, terminals)
    model.transitions.validate()
    if model.source.type.value == "dtmc":
        np.testing.assert_allclose(model.exit_rates(model.index), 1.0, rtol=1e-12)


SMALL: list[tuple[str, int | None, dict[str, Any], str]] = [
    ("kanban", None, {"t": 1}, "cudd"),
    ("tandem", None, {"c": 7}, "cudd"),
    ("tandem", None, {"c": 3}, "autoref"),
    ("fms", None, {"n": 1}, "cudd"),
    ("cluster", None, {"N": 2}, "cudd"),
    ("polling", 3, {}, "cudd"),
    ("polling", 3, {}, "autoref"),
    ("herman", 5, {}, "cudd"),
    ("herman", 3, {}, "autoref"),
    ("brp", None, {"N": 4, "MAX": 2}, "cudd"),
]


@pytest.mark.parametrize(
    ("name", "size", "constants", "package"), SMALL, ids=[f"{row[0]}-{row[3]}" for row in SMALL]
)
def test_examples_equal_explicit(
    name: str, size: int | None, constants: dict[str, Any], package: str
) -> None:
    source = source_of(name, size, constants)
    assert_same_model(build_model(source, package=package), explore(source))
