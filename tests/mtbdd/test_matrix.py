"""Matrices as diagrams: round trip, node counts against another count, values a rounding error apart."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix, merge_close
from mtbdd.diagrams.nodes import FALSE, TRUE, NodeTable, read_nodes
from mtbdd.diagrams.partition import Partition, from_table
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST, needs_cudd
from tests.builders.models import node_set
from tests.oracles.models import mtbdd_size


def interleaved(dense: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entries in lexicographic order of x1 y1 x2 y2 ..."""
    n = dense.shape[0].bit_length() - 1
    axes = [axis for bit in range(n) for axis in (bit, n + bit)]
    return dense.reshape((2,) * (2 * n)).transpose(axes).reshape(-1)


def symbolic(manager: Manager, dense: NDArray[np.float64]) -> SymbolicMatrix:
    names = [n for pair in zip(manager.rows, manager.columns, strict=True) for n in pair]
    table = interleaved(dense)
    partition = from_table(manager, names, table, np.ones(table.size, dtype=np.bool_))
    return SymbolicMatrix.from_partition(partition)


def entries(matrix: SymbolicMatrix) -> NDArray[np.float64]:
    """Return the dense array, by following every assignment through the node table."""
    manager, table = matrix.manager, matrix.table()
    size = 1 << manager.n_bits
    dense = np.zeros((size, size))
    for row, column in product(range(size), repeat=2):
        ref = np.array([table.root])
        for bit in range(manager.n_bits):
            shift = manager.n_bits - 1 - bit
            ref = table.cofactors(ref, manager.row_level(bit))[row >> shift & 1]
            ref = table.cofactors(ref, manager.column_level(bit))[column >> shift & 1]
        if ref[0] != FALSE:
            dense[row, column] = matrix.terminals[matrix.terminal_numbers(table, ref)[0]]
    return dense


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_matrix_every_function_of_two_bits(package: str) -> None:
    manager = Manager(1, package)
    for values in product((0.0, 0.5, 1.0), repeat=4):
        dense = np.array(values).reshape(2, 2)
        matrix = symbolic(manager, dense)
        assert np.array_equal(entries(matrix), dense)
        assert matrix.mtbdd_nodes() == mtbdd_size(dense)
        assert matrix.terminals.tolist() == sorted(set(values) - {0.0})
        assert np.array_equal(entries(SymbolicMatrix(manager, matrix.support(), np.ones(1))), dense != 0)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("n_values", [1, 2, 3, 5, 17])
def test_matrix_round_trip_and_nodes_random(package: str, n_values: int, rng: np.random.Generator) -> None:
    manager = Manager(3, package)
    palette = rng.permutation(np.arange(1, n_values + 1) / 7.0)
    for density in (0.1, 0.5, 1.0):
        dense = np.where(rng.random((8, 8)) < density, rng.choice(palette, (8, 8)), 0.0)
        matrix = symbolic(manager, dense)
        assert np.array_equal(entries(matrix), dense)
        assert matrix.mtbdd_nodes() == mtbdd_size(dense)


def test_matrix_complement_edges_are_two_nodes() -> None:
    """A submatrix and its complement share one BDD node, yet are two MTBDD nodes."""
    manager = Manager(2, FASTEST)
    block = np.array([[1.0, 0.0], [0.0, 1.0]])
    dense = np.block([[block, 1.0 - block], [1.0 - block, block]])
    matrix = symbolic(manager, dense)
    assert matrix.mtbdd_nodes() == mtbdd_size(dense) == (9, 2)
    assert manager.size(matrix.node) == 5


def test_matrix_kronecker_product_shares_blocks(rng: np.random.Generator) -> None:
    left = rng.choice([0.0, 0.5, 2.0], (2, 2))
    right = rng.choice([0.0, 0.5, 2.0], (4, 4))
    dense = np.kron(left, right)
    matrix = symbolic(Manager(3, FASTEST), dense)
    assert np.array_equal(entries(matrix), dense)
    assert matrix.mtbdd_nodes() == mtbdd_size(dense)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_matrix_zero_has_one_terminal(package: str) -> None:
    manager = Manager(2, package)
    zero = SymbolicMatrix.from_partition(Partition(manager, {0.0: manager.true}))
    assert zero.node == manager.false
    assert zero.terminals.size == 0 and zero.index_bits == ()
    assert zero.mtbdd_nodes() == mtbdd_size(np.zeros((4, 4))) == (1, 1)
    assert zero.support() == manager.false


def test_matrix_only_cuts_entries(rng: np.random.Generator) -> None:
    manager = Manager(2, FASTEST)
    dense = rng.choice([0.0, 0.25, 3.0], (4, 4))
    matrix = symbolic(manager, dense)
    cut = matrix.only(node_set(manager, manager.rows, [0, 3]) & node_set(manager, manager.columns, [1, 2, 3]))
    expected = np.zeros((4, 4))
    expected[np.ix_([0, 3], [1, 2, 3])] = dense[np.ix_([0, 3], [1, 2, 3])]
    assert np.array_equal(entries(cut), expected)


def test_matrix_from_disjoint_adds_parts(rng: np.random.Generator) -> None:
    manager = Manager(2, FASTEST)
    dense = rng.choice([0.0, 0.25, 3.0, -1.0], (4, 4))
    half = symbolic(manager, np.where(np.arange(4)[:, None] < 2, dense, 0.0))
    names = [n for pair in zip(manager.rows, manager.columns, strict=True) for n in pair]
    whole = from_table(manager, names, interleaved(dense), np.ones(16, dtype=np.bool_))
    upper = node_set(manager, manager.rows, [0, 1])
    joined = SymbolicMatrix.from_disjoint(manager, [(whole, upper), (whole, ~upper)])
    assert joined.node == SymbolicMatrix.from_partition(whole).node
    assert np.array_equal(entries(joined), dense)
    cut = SymbolicMatrix.from_disjoint(manager, [(whole, upper)])
    assert np.array_equal(entries(cut), entries(half))


def test_matrix_refuses_not_a_number() -> None:
    manager = Manager(1, FASTEST)
    with pytest.raises(ValueError, match="NaN"):
        SymbolicMatrix.from_partition(Partition(manager, {float("nan"): manager.true}))


def test_matrix_unites_values_a_rounding_error_apart() -> None:
    manager = Manager(1, FASTEST)
    pieces = {0.1 + 0.2: manager.bdd.var(manager.rows[0]), 0.3: ~manager.bdd.var(manager.rows[0])}
    matrix = SymbolicMatrix.from_partition(Partition(manager, pieces))
    assert matrix.terminals.tolist() == [0.3]
    assert matrix.node == manager.true


# ------------------------------------------------------------------ merge_close


def steps(value: float, count: int) -> float:
    """Return the double `count` steps above."""
    for _ in range(count):
        value = math.nextafter(value, math.inf)
    return value


def test_merge_close_unites_four_steps_and_no_more() -> None:
    for start in (1.0, 0.1, 1e-300, 1e300, 7.25):
        near, far = steps(start, 4), steps(start, 5)
        assert merge_close([far, near, start]) == {start: start, near: start, far: far}


def test_merge_close_does_not_chain() -> None:
    values = [steps(1.0, k) for k in range(0, 40, 2)]
    representative = merge_close(values)
    assert all(value - representative[value] <= 4 * math.ulp(1.0) for value in values)
    assert len(set(representative.values())) == 7  # 0 2 4 | 6 8 10 | ...


def test_merge_close_keeps_zero_signs_and_small_values_apart() -> None:
    smallest = math.ulp(0.0)
    values = [-1.0, 0.0, smallest, 1.0, math.inf]
    assert merge_close(values) == {v: v for v in values}


def test_merge_close_handles_negative_values_alike() -> None:
    assert merge_close([-0.3, -(0.1 + 0.2)]) == {-(0.1 + 0.2): -(0.1 + 0.2), -0.3: -(0.1 + 0.2)}


def test_merge_close_is_independent_of_order(rng: np.random.Generator) -> None:
    base = rng.uniform(0.5, 1.0, 20)
    values = [steps(float(v), k) for v in base for k in (0, 1, 3)]
    expected = merge_close(values)
    assert merge_close(rng.permutation(values).tolist()) == expected
    assert all(expected[r] == r for r in expected.values())


# ------------------------------------------------------------------ nodes


def shape(table: NodeTable) -> object:
    """Return a diagram's structure, independent of how its nodes are numbered and its edges negated."""
    known: dict[int, int] = {TRUE: -1, FALSE: -2}
    unique: dict[tuple[int, int, int], int] = {}

    def number(ref: int) -> int:
        if ref not in known:
            row, sign = ref >> 1, ref & 1
            low, high = number(int(table.low[row]) ^ sign), number(int(table.high[row]) ^ sign)
            known[ref] = unique.setdefault((int(table.level[row]), low, high), len(unique))
        return known[ref]

    return number(table.root), tuple(unique)


@needs_cudd
@pytest.mark.parametrize("n_values", [1, 3, 9])
def test_nodes_cudd_dump_equals_autoref_walk(n_values: int, rng: np.random.Generator) -> None:
    dense = rng.integers(0, n_values + 1, (8, 8)) / 4.0
    read = [symbolic(Manager(3, package), dense).table() for package in DIAGRAM_PACKAGES]
    assert shape(read[0]) == shape(read[1])


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_nodes_constants_and_single_bits(package: str) -> None:
    manager = Manager(2, package)
    assert read_nodes(manager, manager.true).root == TRUE
    assert read_nodes(manager, manager.false).root == FALSE
    bit = manager.bdd.var(manager.columns[1])
    for node, children in ((bit, (FALSE, TRUE)), (~bit, (TRUE, FALSE))):
        table = read_nodes(manager, node)
        low, high = table.cofactors(np.array([table.root]), manager.column_level(1))
        assert (low[0], high[0]) == children
        for level in (manager.row_level(1), manager.column_level(0)):
            low, high = table.cofactors(np.array([table.root]), level)
            assert low[0] == high[0] == table.root


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_nodes_cofactors_decide_membership(package: str, rng: np.random.Generator) -> None:
    manager = Manager(4, package)
    inside = rng.choice(16, size=7, replace=False).tolist()
    for node, expected in (
        (node_set(manager, manager.rows, inside), set(inside)),
        (~node_set(manager, manager.rows, inside), set(range(16)) - set(inside)),
    ):
        table = read_nodes(manager, node)
        found = set()
        for number in range(16):
            refs = np.array([table.root])
            for bit in range(4):
                refs = table.cofactors(refs, manager.row_level(bit))[number >> (3 - bit) & 1]
            if refs[0] == TRUE:
                found.add(number)
            else:
                assert refs[0] == FALSE
        assert found == expected
