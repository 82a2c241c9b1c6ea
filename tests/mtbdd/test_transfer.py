"""Functions moved between managers of both back ends, in random orders, against their values."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import dd.autoref
import numpy as np
import pytest

from mtbdd.diagrams import matrix as transfer
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import is_manager, is_node, read_diagram, to_dd, transferred
from tests.builders.dense import dense_matrix, symbolic_matrix, symbolic_vector
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST, MANAGERS, needs_cudd

NAMES = ["a", "b c", "it's", "x.0", "e"]


def manager_of(kind: str, names: list[str], rng: np.random.Generator) -> Any:
    bdd = MANAGERS[kind]()
    bdd.configure(reordering=False)
    bdd.declare(*rng.permutation(np.array([*names, "unused"], dtype=object)).tolist())
    return bdd


def function(bdd: Any, names: list[str], truth: np.ndarray) -> Any:
    node = bdd.false
    for number in np.flatnonzero(truth).tolist():
        node |= bdd.cube({name: bool(number >> i & 1) for i, name in enumerate(names)})
    return node


def truth_of(bdd: Any, names: list[str], node: Any) -> list[bool]:
    found = []
    for number in range(1 << len(names)):
        values = {name: bool(number >> i & 1) for i, name in enumerate(names)}
        found.append(bdd.let(values, node) == bdd.true)
    return found


@pytest.mark.parametrize(("source", "target"), list(product(MANAGERS, MANAGERS)))
def test_functions_keep_their_values(source: str, target: str, rng: np.random.Generator) -> None:
    for share in (0.0, 0.05, 0.3, 0.5, 0.9, 1.0) * 3:
        bdd, other = manager_of(source, NAMES, rng), manager_of(target, list("PQRST"), rng)
        truth = rng.random(32) < share
        moved = transferred(bdd, function(bdd, NAMES, truth), other, dict(zip(NAMES, "PQRST", strict=True)))
        assert truth_of(other, list("PQRST"), moved) == truth.tolist()


@needs_cudd
@pytest.mark.parametrize("torn", ["name", "cut"])
def test_functions_are_walked_where_the_dump_is_no_use(
    torn: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a", "b\n.end\n" if torn == "name" else "b", "c"]
    if torn == "cut":
        monkeypatch.setattr(transfer, "dump_nodes", lambda bdd, node: b"")
    for _ in range(10):
        bdd, other = manager_of("cudd", names, rng), manager_of("cudd", list("PQR"), rng)
        truth = rng.random(8) < 0.5
        moved = transferred(bdd, function(bdd, names, truth), other, dict(zip(names, "PQR", strict=True)))
        assert truth_of(other, list("PQR"), moved) == truth.tolist()


@needs_cudd
def test_dumps_are_read_as_the_diagram_is_walked(rng: np.random.Generator) -> None:
    """Both ways give the same levels, whatever the names and the order after reordering."""
    bdd = manager_of("cudd", NAMES, rng)
    node = function(bdd, NAMES, rng.random(32) < 0.4)
    import_module("dd.cudd").reorder(bdd, {name: i for i, name in enumerate(["unused", *reversed(NAMES)])})
    dumped, walked = read_diagram(bdd, node), transfer.walk_nodes(bdd, node)
    assert sorted(dumped.level.tolist()) == sorted(walked.level.tolist())
    other = manager_of("cudd", list("PQRST"), rng)
    moved = transferred(bdd, node, other, dict(zip(NAMES, "PQRST", strict=True)))
    assert truth_of(other, list("PQRST"), moved) == truth_of(bdd, NAMES, node)


@pytest.mark.parametrize("kind", MANAGERS)
@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_matrices_become_sets_of_a_caller(kind: str, package: str, rng: np.random.Generator) -> None:
    manager = Manager(2, package)
    rows, columns = ["r 1", "r 0"], ["c1", "c0"]
    for palette in ([0.0, 0.25], [0.0, 0.5, 2.0, -3.0, 7.0], [0.0], [4.0]):
        dense = rng.choice(palette, (4, 4))
        bdd = manager_of(kind, rows + columns, rng)
        parts = to_dd(symbolic_matrix(manager, dense), bdd, rows, columns)
        assert [value for value, _ in parts] == sorted(set(dense.reshape(-1).tolist()) - {0.0})
        found = np.zeros((4, 4))
        names = rows[::-1] + columns[::-1]  # the lowest bit first, as `truth_of` counts
        for value, node in parts:
            found += value * np.array(truth_of(bdd, names, node)).reshape(4, 4).T
        assert np.array_equal(found, dense)


def test_vectors_need_no_columns(rng: np.random.Generator) -> None:
    manager = Manager(2, FASTEST)
    bdd = manager_of("autoref", ["p", "q"], rng)
    parts = to_dd(symbolic_vector(manager, np.array([0.0, 1.0, 1.0, 5.0])), bdd, ["p", "q"], [])
    assert [value for value, _ in parts] == [1.0, 5.0]
    assert parts[1][1] == bdd.var("p") & bdd.var("q")
    with pytest.raises(ValueError, match="column variables"):
        to_dd(symbolic_matrix(manager, np.eye(4)), bdd, ["p", "q"], [])


def test_faults_of_callers() -> None:
    manager = Manager(1, FASTEST)
    matrix = symbolic_matrix(manager, np.eye(2))
    bdd = MANAGERS[FASTEST]()
    bdd.declare("x", "y", "z")
    with pytest.raises(ValueError, match="expected a manager of"):
        to_dd(matrix, object(), ["x"], ["y"])
    with pytest.raises(ValueError, match="1 row and 1 column"):
        to_dd(matrix, bdd, ["x", "z"], ["y"])
    with pytest.raises(ValueError, match="distinct"):
        to_dd(matrix, bdd, ["x"], ["x"])
    with pytest.raises(ValueError, match="no variable 'w'"):
        to_dd(matrix, bdd, ["x"], ["w"])
    with pytest.raises(ValueError, match="depends on 'z'"):
        transferred(bdd, bdd.var("z"), manager.bdd, {"x": "b0"})
    other = MANAGERS[FASTEST]()
    other.declare("x")
    assert is_manager(bdd) and not is_manager(manager)
    assert is_node(bdd, bdd.true)
    assert not any(is_node(bdd, thing) for thing in (other.var("x"), 3, None, "x"))
    assert not is_node(dd.autoref.BDD(), bdd.true)


def test_round_trip_of_a_matrix(rng: np.random.Generator) -> None:
    """Ours, a caller's of the other back end and another order, ours again: the same diagram."""
    manager = Manager(3, FASTEST)
    matrix = symbolic_matrix(manager, rng.choice([0.0, 1.0, 2.0], (8, 8)))
    rows, columns = ["r0", "r1", "r2"], ["c0", "c1", "c2"]
    bdd = manager_of("autoref", rows + columns, rng)
    back = transfer.manager_names(manager, rows, columns)
    parts = to_dd(matrix, bdd, rows, columns)
    nodes = [transferred(bdd, node, manager.bdd, back) for _, node in parts]
    total = sum(
        value * (dense_matrix(type(matrix)(manager, node, np.ones(1))))
        for (value, _), node in zip(parts, nodes, strict=True)
    )
    assert np.array_equal(total, dense_matrix(matrix))
