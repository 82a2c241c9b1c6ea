"""The algebra of partitions: every function {0, 1/2, 1} of two bits, in all pairs, against tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition, canonical, from_table
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import node_set

VALUES = (0.0, 0.5, 1.0)
Table = tuple[float, ...]
TABLES: list[Table] = list(product(VALUES, repeat=4))


class Algebra:
    """All sets of two bits, so that an expected partition is a look-up."""

    def __init__(self, package: str) -> None:
        self.manager = Manager(1, package)
        self.names = (self.manager.rows[0], self.manager.columns[0])
        self.sets: dict[tuple[bool, ...], Node] = {
            mask: node_set(self.manager, self.names, [i for i in range(4) if mask[i]])
            for mask in product((False, True), repeat=4)
        }

    def pieces(self, table: Table, with_zero: bool = False) -> dict[float, Node]:
        return {
            value: self.sets[tuple(entry == value for entry in table)]
            for value in set(table)
            if with_zero or value != 0
        }

    def partition(self, table: Table, with_zero: bool = False) -> Partition:
        return Partition(self.manager, self.pieces(table, with_zero))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("zeros", [(False, False), (True, False), (False, True), (True, True)])
def test_partition_plus_and_times_equal_tables(package: str, zeros: tuple[bool, bool]) -> None:
    algebra = Algebra(package)
    stride = 1 if package == "cudd" else 7  # pure Python: a seventh of the pairs
    left = [algebra.partition(t, zeros[0]) for t in TABLES]
    right = [algebra.partition(t, zeros[1]) for t in TABLES]
    pairs = list(product(range(len(TABLES)), repeat=2))[::stride]
    for i, j in pairs:
        total = tuple(a + b for a, b in zip(TABLES[i], TABLES[j], strict=True))
        assert left[i].plus(right[j]).pieces == algebra.pieces(total)
        scaled = tuple(a * b for a, b in zip(TABLES[i], TABLES[j], strict=True))
        assert left[i].times(right[j]).nonzero().pieces == algebra.pieces(scaled)


FUNCTIONS: list[Callable[[float, float], float]] = [min, max, lambda a, b: a - b, lambda a, b: a >= b]


@pytest.mark.parametrize("function", FUNCTIONS, ids=["min", "max", "minus", "at least"])
def test_partition_combine_equals_tables(function: Callable[[float, float], float]) -> None:
    algebra = Algebra(FASTEST)
    full = [algebra.partition(t, True) for t in TABLES]
    for i, j in product(range(len(TABLES)), repeat=2):
        expected = tuple(function(a, b) for a, b in zip(TABLES[i], TABLES[j], strict=True))
        assert full[i].combine(full[j], function).pieces == algebra.pieces(expected, True)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_partition_single_operations_equal_tables(package: str) -> None:
    algebra = Algebra(package)
    for table in TABLES:
        partition = algebra.partition(table, True)
        assert partition.nonzero().pieces == algebra.pieces(table)
        assert partition.nonzero().support == algebra.sets[tuple(v != 0 for v in table)]
        assert len(partition) == len(set(table))
        folded = tuple(abs(v - 0.5) for v in table)
        assert partition.map(lambda v: abs(v - 0.5)).pieces == algebra.pieces(folded, True)
        for mask, states in algebra.sets.items():
            cut = tuple(v if keep else 0.0 for v, keep in zip(table, mask, strict=True))
            assert partition.only(states).nonzero().pieces == algebra.pieces(cut)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_partition_from_table_equals_tables(package: str) -> None:
    algebra = Algebra(package)
    everything = np.ones(4, dtype=np.bool_)
    for table in TABLES:
        made = from_table(algebra.manager, algebra.names, np.array(table), everything)
        assert made.pieces == algebra.pieces(table, True)
        for mask in algebra.sets:
            made = from_table(algebra.manager, algebra.names, np.array(table), np.array(mask))
            expected = {
                v: algebra.sets[tuple(e == v and m for e, m in zip(table, mask, strict=True))] for v in table
            }
            assert made.pieces == {v: s for v, s in expected.items() if s != algebra.manager.false}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_partition_matrix_is_canonical(package: str) -> None:
    """Equal functions give the same node, whatever order their pieces come in; different ones never."""
    algebra = Algebra(package)
    seen: dict[tuple[Node, Table], Table] = {}
    for table in TABLES:
        pieces = algebra.pieces(table)
        forward = SymbolicMatrix.from_partition(Partition(algebra.manager, pieces))
        backward = SymbolicMatrix.from_partition(
            Partition(algebra.manager, dict(reversed(list(pieces.items()))))
        )
        assert forward.node == backward.node
        assert forward.terminals.tolist() == backward.terminals.tolist() == sorted(pieces)
        key = (forward.node, tuple(forward.terminals.tolist()))
        assert seen.setdefault(key, table) == table


def test_from_table_wide_equals_cubes(rng: np.random.Generator) -> None:
    manager = Manager(4, FASTEST)
    names = (*manager.rows[:3], *manager.columns[2:4], manager.rows[3])
    names = tuple(sorted(names, key=lambda n: int(n[1:])))
    table = rng.choice([-1.5, 0.0, 2.0, 7.0], size=1 << len(names))
    mask = rng.random(table.size) < 0.8
    made = from_table(manager, names, table, mask)
    for value in (-1.5, 0.0, 2.0, 7.0):
        assert made.pieces[value] == node_set(
            manager, names, np.flatnonzero((table == value) & mask).tolist()
        )


def test_from_table_unites_not_a_number_and_keeps_infinity() -> None:
    manager = Manager(1, FASTEST)
    names = (manager.rows[0], manager.columns[0])
    table = np.array([np.nan, np.inf, np.nan, 1.0])
    made = from_table(manager, names, table, np.ones(4, dtype=np.bool_))
    assert len(made) == 3
    missing = next(s for v, s in made if v != v)
    assert missing == node_set(manager, names, [0, 2])
    assert made.pieces[float("inf")] == node_set(manager, names, [1])


def test_from_table_without_names_is_a_constant() -> None:
    manager = Manager(1, FASTEST)
    made = from_table(manager, (), np.array([3]), np.ones(1, dtype=np.bool_))
    assert made.pieces == {3: manager.true}
    assert from_table(manager, (), np.array([3]), np.zeros(1, dtype=np.bool_)).pieces == {}


def test_from_table_gives_python_scalars() -> None:
    manager = Manager(1, FASTEST)
    for table, kind in (
        (np.array([True, False]), bool),
        (np.array([1, 2]), int),
        (np.array([1.0, 2.5]), float),
    ):
        made = from_table(manager, (manager.rows[0],), table, np.ones(2, dtype=np.bool_))
        assert {type(v) for v in made.pieces} == {kind}


def test_canonical_has_one_zero_and_refuses_not_a_number() -> None:
    assert str(canonical(-0.0)) == "0.0"
    assert canonical(3) == 3.0 and isinstance(canonical(3), float)
    assert canonical(0.1) == 0.1
    with pytest.raises(ValueError, match="NaN"):
        canonical(float("nan"))
