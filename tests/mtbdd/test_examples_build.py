"""The example models at small parameters: sizes and node counts as PRISM gives them, and explicit models."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtbdd.build.build import build_model
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.language import load_model, parse_model, resolve
from mtbdd.language.syntax import ResolvedModel
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.oracles.comparing import assert_same_mdp, assert_same_model
from tests.oracles.mdps import explore_mdp
from tests.oracles.models import explore

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


# name, size of generated ones, constants, states, choices, transitions, layers.  The coin's are those of the
# published case study; the jobs': the start of a job 5 times on each machine, 8 ticks, of which 2 with both
# machines busy, and the rest at the end.
KNOWN_MDPS = [
    ("coin", 2, {"K": 2}, 272, 400, 492, 2),
    ("coin", 4, {"K": 4}, 43136, 115840, 144352, 4),
    pytest.param("coin", 6, {"K": 2}, 1258240, 5008128, 6236736, 6, marks=pytest.mark.nightly),
    ("jobs", None, {"N": 3}, 12, 10 + 8 + 1, 10 + 6 * 2 + 2 * 4 + 1, 3),
]


@pytest.mark.parametrize(
    ("name", "size", "constants", "states", "choices", "transitions", "layers"),
    KNOWN_MDPS,
)
def test_example_mdps_have_known_sizes(
    name: str,
    size: int | None,
    constants: dict[str, Any],
    states: int,
    choices: int,
    transitions: int,
    layers: int,
) -> None:
    model = build_model(source_of(name, size, constants))
    found = model.statistics
    assert (found.states, found.choices, found.transitions) == (states, choices, transitions)
    assert len(model.layers) == layers


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize(
    ("name", "constants"), [("coin", {"K": 1}), ("jobs", {"N": 4}), ("relay", {"H": 3, "M": 2})]
)
def test_example_mdps_equal_explicit(name: str, constants: dict[str, Any], package: str) -> None:
    source = source_of(name, None, constants)
    assert_same_mdp(build_model(source, package=package), explore_mdp(source))


SMALL: list[tuple[str, int | None, dict[str, Any], str]] = [
    ("kanban", None, {"t": 1}, FASTEST),
    ("tandem", None, {"c": 7}, FASTEST),
    ("tandem", None, {"c": 3}, "autoref"),
    ("fms", None, {"n": 1}, FASTEST),
    ("cluster", None, {"N": 2}, FASTEST),
    ("polling", 3, {}, FASTEST),
    ("polling", 3, {}, "autoref"),
    ("herman", 5, {}, FASTEST),
    ("herman", 3, {}, "autoref"),
    ("brp", None, {"N": 4, "MAX": 2}, FASTEST),
]


@pytest.mark.parametrize(
    ("name", "size", "constants", "package"), SMALL, ids=[f"{row[0]}-{row[3]}" for row in SMALL]
)
def test_examples_equal_explicit(
    name: str, size: int | None, constants: dict[str, Any], package: str
) -> None:
    source = source_of(name, size, constants)
    assert_same_model(build_model(source, package=package), explore(source))


def test_a_counter_is_leapt_over_forward_and_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of files are sent one after another: neither search has a round for each."""
    rounds: list[str] = []
    n_files = 4000
    model = build_model(source_of("brp", None, {"N": n_files, "MAX": 3}), progress=rounds.append)
    assert len(rounds) < 400
    steps = 0
    before = Relation.preimage

    def counted(relation: Relation, states: Node) -> Node:
        nonlocal steps
        steps += 1
        return before(relation, states)

    encoding = model.encoding
    failed = encoding.manager.cube(encoding.row_names(encoding.by_name["s"]), 5)
    monkeypatch.setattr(Relation, "preimage", counted)
    zero = prob0(model, model.reachable, model.reachable & failed)
    sure = prob1(model, model.reachable, model.reachable & failed, zero)
    assert steps < 2000
    counts = [int(encoding.manager.bdd.count(node, encoding.n_bits)) for node in (zero, sure)]
    assert counts == [4 * n_files + 12, 7 * n_files]
