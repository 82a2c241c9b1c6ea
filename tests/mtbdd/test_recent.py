"""The last few results of a function."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from mtbdd.base.memoised import Recent
from mtbdd.diagrams import nodes
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.nodes import read_nodes


def test_the_oldest_results_go_first() -> None:
    recent: Recent[str] = Recent(10)
    for key, size in (("a", 4), ("b", 4)):
        recent.keep(key, key.upper(), size)
    assert recent.get("a") == "A"  # asked for: now it is younger than b
    recent.keep("c", "C", 3)
    assert [recent.get(key) for key in "abc"] == ["A", None, "C"]


def test_a_large_result_leaves_the_others() -> None:
    recent: Recent[str] = Recent(10)
    recent.keep("a", "A", 10)
    recent.keep("b", "B", 11)
    assert (recent.get("a"), recent.get("b")) == ("A", None)


def test_a_result_is_kept_once() -> None:
    recent: Recent[str] = Recent(10)
    for _ in range(5):
        recent.keep("a", "A", 4)
    recent.keep("b", "B", 6)
    assert (recent.get("a"), recent.get("b")) == ("A", "B")


@pytest.mark.parametrize("package", ["cudd", "autoref"])
def test_a_diagram_is_read_once(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if package == "cudd":
        pytest.importorskip("dd.cudd")
    manager = Manager(3, package)
    own, made = nodes._read, []

    def read(manager: Manager, u: object) -> nodes.NodeTable:
        made.append(u)
        return own(manager, u)

    monkeypatch.setattr(nodes, "_read", read)
    u = manager.bdd.var("b0") & manager.bdd.var("b3")
    first = read_nodes(manager, u)
    for table in (first, read_nodes(manager, manager.true)):
        for column in (table.level, table.low, table.high):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 0
    # Made again, and the name of a diagram that is gone used for another: the package numbers nodes anew.
    assert read_nodes(manager, manager.bdd.var("b3") & manager.bdd.var("b0")) is first
    assert len(made) == 1
    other = manager.bdd.var("b0") | manager.bdd.var("b3")
    assert read_nodes(manager, other) is not first
    assert len(made) == 2


def test_diagrams_that_are_kept_are_not_replaced_by_others() -> None:
    """A table goes by its node: as long as it is kept, no other node takes that one's place."""
    pytest.importorskip("dd.cudd")
    manager, rng = Manager(8, "cudd"), np.random.default_rng(4)
    for _ in range(200):
        numbers = sorted(rng.choice(256, 20, replace=False).tolist())
        u = manager.disjunction(manager.cube(manager.rows, number) for number in numbers)
        table = read_nodes(manager, u)
        del u
        gc.collect(0)
        assert _members(table, 8) == numbers


def _members(table: nodes.NodeTable, n_bits: int) -> list[int]:
    refs = np.full(1 << n_bits, table.root, dtype=np.int64)
    numbers = np.arange(1 << n_bits)
    for bit in range(n_bits):
        low, high = table.cofactors(refs, Manager.row_level(bit))
        refs = np.where(numbers >> (n_bits - 1 - bit) & 1, high, low)
    return np.flatnonzero(refs == nodes.TRUE).tolist()
