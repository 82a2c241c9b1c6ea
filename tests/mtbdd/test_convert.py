"""Offset labelling against dense arrays: square and rectangular, empty rows, one state, nothing at all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition, from_table
from mtbdd.offset.convert import offset_label
from mtbdd.offset.states import StateIndex, index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.matrices import from_dense, to_dense
from tests.builders.models import node_set


class Case:
    """A random matrix over all assignments of the bits."""

    def __init__(self, rng: np.random.Generator, n_bits: int, package: str, density: float) -> None:
        self.manager = Manager(n_bits, package)
        size = 1 << n_bits
        dense = np.where(rng.random((size, size)) < density, rng.integers(1, 5, (size, size)) / 3.0, 0.0)
        dense[rng.random(size) < 0.2] = 0.0
        dense[:, rng.random(size) < 0.2] = 0.0
        self.dense: NDArray[np.float64] = dense
        axes = [axis for bit in range(n_bits) for axis in (bit, n_bits + bit)]
        table = dense.reshape((2,) * (2 * n_bits)).transpose(axes).reshape(-1)
        names = [n for pair in zip(self.manager.rows, self.manager.columns, strict=True) for n in pair]
        partition = from_table(self.manager, names, table, np.ones(table.size, dtype=np.bool_))
        self.matrix = SymbolicMatrix.from_partition(partition)

    def index(self, codes: list[int]) -> StateIndex:
        return index_states(self.manager, node_set(self.manager, self.manager.rows, codes))

    def cut(self, rows: list[int], columns: list[int]) -> SymbolicMatrix:
        manager = self.manager
        inside = node_set(manager, manager.rows, rows) & node_set(manager, manager.columns, columns)
        return self.matrix.only(inside)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("n_bits", [1, 3, 4])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
def test_offset_label_equals_dense(
    package: str, n_bits: int, density: float, rng: np.random.Generator
) -> None:
    case = Case(rng, n_bits, package, density)
    size = 1 << n_bits
    for shares in ((1.0, 1.0), (0.6, 0.6), (0.8, 0.3), (0.2, 0.9)):
        rows, columns = (np.flatnonzero(rng.random(size) < share).tolist() for share in shares)
        labelled = offset_label(case.cut(rows, columns), case.index(rows), case.index(columns))
        labelled.validate()
        expected = case.dense[np.ix_(rows, columns)]
        assert labelled.shape == expected.shape
        assert labelled.n_levels == 2 * n_bits
        assert np.array_equal(to_dense(labelled), expected)
        assert labelled.n_entries == np.count_nonzero(expected)


def test_offset_label_of_all_codes_is_canonical(rng: np.random.Generator) -> None:
    """As many nodes on every level as distinct non-zero submatrices: what building bottom-up gives."""
    case = Case(rng, 4, FASTEST, 0.3)
    codes = np.arange(16)
    labelled = offset_label(case.matrix, case.index(codes.tolist()), case.index(codes.tolist()))
    expected = from_dense(case.dense, codes, codes, 4)
    assert labelled.nodes == expected.nodes
    for mine, theirs in zip(labelled.levels, expected.levels, strict=True):
        assert sorted(mine.offset.tolist()) == sorted(theirs.offset.tolist())


@pytest.mark.parametrize("seed", [3, 13, None])
def test_equal_nodes_of_offset_label_differ_in_states_without_entries(
    rng: np.random.Generator, seed: int | None
) -> None:
    """United bottom-up, its nodes are the distinct submatrices; with some seeds there were a few more."""
    rng = rng if seed is None else np.random.default_rng(seed)
    case = Case(rng, 4, FASTEST, 0.3)
    codes = np.flatnonzero(rng.random(16) < 0.7)
    labelled = offset_label(case.cut(codes.tolist(), codes.tolist()), *[case.index(codes.tolist())] * 2)
    expected = from_dense(case.dense[np.ix_(codes, codes)], codes, codes, 4)
    assert seed is None or labelled.nodes != expected.nodes
    united = np.arange(labelled.terminals.size)
    for k in reversed(range(labelled.n_levels)):
        level = labelled.levels[k]
        low, high = (np.where(child >= 0, united[child], -1) for child in (level.low, level.high))
        nodes = np.stack([low, high, level.offset, labelled.rows[k], labelled.columns[k]])
        distinct, united = np.unique(nodes, axis=1, return_inverse=True)
        assert distinct.shape[1] == expected.nodes[k]
        assert sorted(distinct[2].tolist()) == sorted(expected.levels[k].offset.tolist())


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_offset_label_of_one_state(package: str) -> None:
    manager = Manager(3, package)
    entry = manager.cube(manager.rows, 5) & manager.cube(manager.columns, 5)
    index = index_states(manager, manager.cube(manager.rows, 5))
    labelled = offset_label(SymbolicMatrix.from_partition(Partition(manager, {2.5: entry})), index, index)
    labelled.validate()
    assert to_dense(labelled).tolist() == [[2.5]]
    assert labelled.nodes == (1,) * 7
    zero = offset_label(SymbolicMatrix.from_partition(Partition(manager)), index, index)
    zero.validate()
    assert zero.nodes == (0,) * 7 and zero.shape == (1, 1)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_offset_label_without_bits(package: str) -> None:
    manager = Manager(0, package)
    index = index_states(manager, manager.true)
    for value, expected in ((1.5, [[1.5]]), (0.0, [[0.0]])):
        matrix = SymbolicMatrix.from_partition(Partition(manager, {value: manager.true}))
        labelled = offset_label(matrix, index, index)
        labelled.validate()
        assert to_dense(labelled).tolist() == expected


@pytest.mark.parametrize("side", ["rows", "columns", "neither"])
def test_offset_label_refuses_entries_outside(side: str, rng: np.random.Generator) -> None:
    case = Case(rng, 3, FASTEST, 1.0)
    everything = list(range(8))
    row, column = (int(place[0]) for place in np.nonzero(case.dense))
    keep_rows = [c for c in everything if c != row] if side == "rows" else everything
    keep_columns = [c for c in everything if c != column] if side == "columns" else everything
    if side == "neither":
        keep_rows = []
    with pytest.raises(ValueError, match="outside the given row and column states"):
        offset_label(case.matrix, case.index(keep_rows), case.index(keep_columns))


def test_offset_label_rows_without_entries_keep_their_numbers() -> None:
    """Empty rows first, in the middle and last still count."""
    manager = Manager(3, FASTEST)
    entries = (manager.cube(manager.rows, 2) & manager.cube(manager.columns, 7)) | (
        manager.cube(manager.rows, 5) & manager.cube(manager.columns, 0)
    )
    index = index_states(manager, manager.true)
    labelled = offset_label(SymbolicMatrix.from_partition(Partition(manager, {4.0: entries})), index, index)
    expected = np.zeros((8, 8))
    expected[2, 7] = expected[5, 0] = 4.0
    assert np.array_equal(to_dense(labelled), expected)


def test_the_number_of_entries_is_exact_beyond_floats_and_refuses_overflow() -> None:
    def ones(n_bits: int, entries: str) -> int:
        manager = Manager(n_bits, FASTEST)
        node = manager.equal_bits(range(n_bits)) if entries == "diagonal" else manager.true
        index = index_states(manager, manager.true)
        found = offset_label(SymbolicMatrix.from_partition(Partition(manager, {1.0: node})), index, index)
        return found.n_entries

    assert ones(60, "diagonal") == 2**60
    assert ones(30, "all") == 2**60
    with pytest.raises(OverflowError, match="2\\^62"):
        ones(33, "all")
