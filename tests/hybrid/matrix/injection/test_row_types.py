"""Row types and groups against a direct grouping of instances, and classes of equal blocks."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_kernels.runtime.coded import pointers
from hybrid.base import arrays as lists
from hybrid.base.arrays import concatenated_ranges, distinct_lists, positions_in_lists
from hybrid.matrix.injection.injected import enumerate_paths
from hybrid.matrix.injection.row_types import RowTypes, enumerate_groups
from hybrid.matrix.injection.submatrices import class_submatrices, expand_nodes, find_block_classes
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense, random_codes, random_sparse


def random_matrix(seed: int, size: int) -> OffsetMTBDD:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, size, size, 0.2)
    # Rows that are multiples of others give blocks that are equal up to a scale.
    dense[size // 2 :] = dense[: size - size // 2] * rng.choice((1.0, 0.5, 1 / 3), (size - size // 2, 1))
    return from_dense(dense, random_codes(rng, 6, size), random_codes(rng, 6, size), 6)


@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans())
def test_groups_are_the_instances_by_row_prefix(seed: int, size: int, scaled: bool) -> None:
    matrix = random_matrix(seed, size)
    classes = find_block_classes(matrix, scaled)
    types = RowTypes(classes)
    assert len(types) == matrix.n_levels + 1
    for k in range(len(types)):
        row, column, node = enumerate_paths(matrix, k)
        groups, level = enumerate_groups(np, types, k), types[k]
        lengths = np.diff(groups.ptr)
        # Paths of one row prefix share their first row, and prefixes without entries have no group.
        np.testing.assert_array_equal(np.repeat(groups.row, lengths), row)
        np.testing.assert_array_equal(groups.base, column)
        np.testing.assert_array_equal(groups.node, node)
        items = concatenated_ranges(level.ptr[groups.type], level.lengths[groups.type])
        np.testing.assert_array_equal(level.blocks[items], classes.classes[k][node])
        np.testing.assert_array_equal(np.bincount(groups.type, minlength=level.n_types), level.groups)
        assert (level.n_groups, level.group_slots) == (len(groups), len(node))


def test_types_of_a_level_are_distinct() -> None:
    types = RowTypes(find_block_classes(random_matrix(71, 60), scaled=False))
    for level in map(types.__getitem__, range(len(types))):
        lists = {tuple(level.blocks[a:b]) for a, b in zip(level.ptr[:-1], level.ptr[1:], strict=True)}
        assert len(lists) == level.n_types


def test_sweep_stops_at_the_slot_limit() -> None:
    classes = find_block_classes(random_matrix(72, 60), scaled=False)
    types = RowTypes(classes, slot_limit=10)
    assert len(types) < 13
    assert all(len(types[k].blocks) <= 10 for k in range(len(types)))
    with pytest.raises(ValueError, match="row types are known for the levels"):
        enumerate_groups(np, types, len(types))


def test_blocks_equal_up_to_a_scale_form_one_class() -> None:
    block = np.array([[1.0, 3.0], [0.0, 7.0]])
    dense = np.kron(np.diag([1.0, 0.1, 1 / 3, 0.7]), block)
    matrix = from_dense(dense)
    assert matrix.nodes[4] == 4
    assert len(find_block_classes(matrix, scaled=False).representative[4]) == 4
    scaled = find_block_classes(matrix, scaled=True)
    assert len(scaled.representative[4]) == 1
    contents = class_submatrices(np, scaled, 4)
    assert contents is not None
    np.testing.assert_allclose(contents.value, [1.0, 3.0, 7.0], rtol=1e-15)


def test_blocks_that_are_almost_proportional_stay_apart() -> None:
    dense = np.kron(np.eye(2), np.array([[1.0, 3.0], [0.0, 7.0]]))
    dense[3, 3] *= 1 + 1e-12
    classes = find_block_classes(from_dense(dense), scaled=True)
    assert len(classes.representative[2]) == 2


def test_sharing_that_would_cost_accuracy_is_refused() -> None:
    # Within the rounding of ratios, yet 8 units in the last place away from proportional.
    dense = np.kron(np.diag([1.0, 1.5]), np.array([[1.0, 3.0], [0.0, 7.0]]))
    dense[3, 3] += 8 * np.spacing(dense[3, 3])
    classes = find_block_classes(from_dense(dense), scaled=True)
    assert len(classes.representative[2]) == 1
    assert class_submatrices(np, classes, 2) is None


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_values_are_compared_under_every_pair_of_scales(order: tuple[int, ...]) -> None:
    """Two rows share their second value; one has it by its scale exactly, the other 32 units beside it."""
    rows = np.array([[1.0, 3.0], [2.0, 6.0], [2.0 * (1 + 2.0**-48), 6.0], [0.0, 7.0]])
    classes = find_block_classes(from_dense(rows[list(order)], n_bits=2), scaled=True)
    level = classes.matrix.n_levels - 1
    assert class_submatrices(np, classes, level) is None


def test_lists_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes, asked = lists._hash_lists, []

    def colliding(ptr, lengths, positions, columns, seed):  # type: ignore[no-untyped-def]
        asked.append(seed)
        if len(asked) == 1:
            return np.zeros(len(lengths), np.uint64)
        return hashes(ptr, lengths, positions, columns, seed)

    monkeypatch.setattr(lists, "_FEW_ITEMS", 0)
    monkeypatch.setattr(lists, "_hash_lists", colliding)
    first, inverse = distinct_lists(np.array([0, 1, 2, 3]), (np.array([5, 6, 5]),))
    assert (first.tolist(), inverse.tolist()) == ([0, 1], [0, 1, 0])
    assert len(asked) == 2
    asked.clear()
    first, inverse = distinct_lists(np.array([0, 2, 3]), (np.array([5, 6, 5]),))
    assert (first.tolist(), inverse.tolist(), len(asked)) == ([0, 1], [0, 1], 2)
    monkeypatch.setattr(lists, "_hash_lists", lambda ptr, lengths, *_: np.zeros(len(lengths), np.uint64))
    with pytest.raises(RuntimeError, match="collided"):
        distinct_lists(np.array([0, 1, 2]), (np.array([5, 6]),))


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_shared_values_are_within_four_units_in_the_last_place(seed: int, size: int) -> None:
    matrix = random_matrix(seed, size)
    classes = find_block_classes(matrix, scaled=True)
    for k in range(matrix.n_levels + 1):
        contents = class_submatrices(np, classes, k)
        if contents is None:
            continue
        exact = expand_nodes(np, matrix, k, np.arange(matrix.nodes[k]))
        for node, kind in enumerate(classes.classes[k]):
            shared = contents.value[contents.ptr[kind] : contents.ptr[kind + 1]] * classes.leading[k][node]
            own = exact.value[exact.ptr[node] : exact.ptr[node + 1]]
            assert np.all(np.abs(shared - own) <= 4 * np.spacing(np.abs(own)))


@pytest.mark.parametrize("few", [0, 10**6], ids=["hashed", "few"])
@given(parts=st.lists(st.lists(st.integers(-2, 2), max_size=4), max_size=30), shift=st.integers(0, 3))
def test_distinct_lists_numbers_lists_by_first_occurrence(
    few: int, parts: list[list[int]], shift: int
) -> None:
    ptr = pointers(np, np.array([len(part) for part in parts], np.int64)) + shift
    items = np.array([7] * shift + [i for part in parts for i in part], np.int64)
    with mock.patch.object(lists, "_FEW_ITEMS", few):
        first, inverse = distinct_lists(ptr, (items, -items))
    assert first.dtype == inverse.dtype == np.int64
    assert [parts[first[number]] for number in inverse] == parts
    assert len({tuple(part) for part in parts}) == len(first)
    assert np.all(np.diff(first) > 0)


def test_ragged_helpers() -> None:
    ptr = pointers(np, np.array([2, 0, 3]))
    assert ptr.tolist() == [0, 2, 2, 5]
    assert positions_in_lists(ptr).tolist() == [0, 1, 0, 1, 2]
    assert concatenated_ranges(np.array([5, 9, 1]), np.array([2, 0, 3])).tolist() == [5, 6, 1, 2, 3]
