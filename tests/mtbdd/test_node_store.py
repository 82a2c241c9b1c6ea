"""Products, sums and maxima of MTBDDs as arrays, against dense arrays of NumPy and rational numbers."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from mtbdd.diagrams.node_store import DOWN, NEAREST, UP, Diagram, NodeStore
from mtbdd.diagrams.value_diagrams import ValueDiagrams

VALUES = st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.25, 3.0, 0.1, 1 / 3, 1e-300, 7e20])


def diagram_of(values, levels, bottom):
    """Return the function with given values over the bits of some levels, the highest bit first."""
    work = ValueDiagrams(bottom)
    ids = work.leaves(np.asarray(values, dtype=np.float64).reshape(-1))
    for level in reversed(levels):
        ids = work.nodes(level, ids[0::2], ids[1::2])
    return Diagram.of(work, int(ids[0]))


def dense(diagram, levels):
    """Return a function's values over the bits of some levels."""
    found = np.zeros(1 << len(levels))
    for number in range(found.size):
        node = diagram.n_nodes - 1
        while diagram.nodes[node, 0] < diagram.bottom:
            at = levels.index(diagram.nodes[node, 0])
            node = diagram.nodes[node, 1 + (number >> (len(levels) - 1 - at) & 1)]
        found[number] = diagram.values[diagram.nodes[node, 1]]
    return found


def drawn(data, n_bits):
    return data.draw(st.lists(VALUES, min_size=1 << n_bits, max_size=1 << n_bits))


def product(f, g, rounding=NEAREST):
    store = NodeStore(f.bottom)
    return store.extract(store.product(store.insert(f), store.insert(g), rounding))


def matrix_product(f, g, rounding=NEAREST):
    store = NodeStore(f.bottom)
    return store.extract(store.matrix_product(store.insert(f), store.insert(g), rounding))


def matrix_of(entries, n_bits):
    """Return a matrix over row bits 0, 3, ... and column bits 1, 4, ..."""
    split = np.asarray(entries).reshape((2,) * (2 * n_bits))  # all row bits first
    order = [axis for i in range(n_bits) for axis in (i, n_bits + i)]
    levels = [level for i in range(n_bits) for level in (3 * i, 3 * i + 1)]
    return diagram_of(split.transpose(order), levels, 3 * n_bits)


def vector_of(values, n_bits):
    return diagram_of(values, list(range(0, 3 * n_bits, 3)), 3 * n_bits)


def dense_matrix(diagram, n_bits):
    """Return the entries of a matrix."""
    rows, columns = range(0, 3 * n_bits, 3), range(1, 3 * n_bits, 3)
    return dense(diagram, [*rows, *columns]).reshape(1 << n_bits, -1)


@given(st.data(), st.integers(1, 3))
def test_a_matrix_times_a_vector_or_a_matrix_is_that_of_dense_arrays(data, n_bits):
    size = 1 << n_bits
    left = np.array(drawn(data, 2 * n_bits)).reshape(size, -1)
    right = np.array(drawn(data, 2 * n_bits)).reshape(size, -1)
    a = matrix_of(left, n_bits)
    found = dense(matrix_product(a, vector_of(right[0], n_bits)), list(range(0, 3 * n_bits, 3)))
    np.testing.assert_allclose(found, left @ right[0], rtol=1e-14, atol=1e-320)
    found = dense_matrix(matrix_product(a, matrix_of(right, n_bits)), n_bits)
    np.testing.assert_allclose(found, left @ right, rtol=1e-14, atol=1e-320)


@given(st.data(), st.integers(1, 4))
def test_bits_that_both_factors_skip_double_the_sum(data, n_bits):
    """The matrix tests the rows of one bit, the vector another one."""
    bit, other = (data.draw(st.integers(0, n_bits - 1)) for _ in range(2))
    size = np.arange(1 << n_bits)
    of_bit, of_other = (1.0 + (size >> (n_bits - 1 - place) & 1) for place in (bit, other))
    a = matrix_of(np.outer(of_bit, np.ones(1 << n_bits)), n_bits)
    found = dense(matrix_product(a, vector_of(of_other, n_bits)), list(range(0, 3 * n_bits, 3)))
    assert found.tolist() == (of_bit * of_other.sum()).tolist()


@given(st.data(), st.integers(0, 4))
def test_sums_maxima_and_minima_are_those_of_all_values(data, n_bits):
    levels = list(range(n_bits))
    left, right = drawn(data, n_bits), drawn(data, n_bits)
    store = NodeStore(n_bits)
    f, g = (store.insert(diagram_of(v, levels, n_bits)) for v in (left, right))
    for operation, expected in (
        (store.sum, np.add),
        (store.maximum, np.maximum),
        (store.minimum, np.minimum),
    ):
        found = operation(f, g)
        assert dense(store.extract(found), levels).tolist() == expected(left, right).tolist()
        assert operation(g, f) == found


# lemma: diagram-rounding
@given(st.data(), st.integers(1, 3), st.floats(1e-3, 1e3), st.floats(1e-310, 1.0))
def test_rounded_products_enclose_the_exact_ones_and_keep_exact_results(data, n_bits, factor, tiny):
    left = np.array(drawn(data, n_bits)) * factor
    right = np.array(drawn(data, n_bits)) * tiny
    rows = np.tile(left, (1 << n_bits, 1))
    f, g = matrix_of(rows, n_bits), vector_of(right, n_bits)
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(left.tolist(), right.tolist(), strict=True))
    lower, near, upper = (matrix_product(f, g, r).values[-1] for r in (DOWN, NEAREST, UP))
    assert Fraction(lower) <= exact <= Fraction(upper)
    assert lower >= 0
    assert lower <= near <= upper


@given(st.data(), st.integers(1, 4))
def test_products_that_doubles_hold_are_the_same_rounded_up_and_down(data, n_bits):
    whole = st.lists(st.integers(0, 1000), min_size=1 << n_bits, max_size=1 << n_bits)
    left, right = np.array(data.draw(whole)) / 1024, np.array(data.draw(whole)) / 8
    f, g = matrix_of(np.tile(left, (1 << n_bits, 1)), n_bits), vector_of(right, n_bits)
    found = [matrix_product(f, g, r).values[-1] for r in (DOWN, NEAREST, UP)]
    assert found == [float(left @ right)] * 3


# lemma: diagram-rounding
@pytest.mark.parametrize("scale", [1.0, 1e-307])
def test_the_sign_of_a_rounding_error_is_known_or_not_used(rng, scale):
    for a, b in zip((rng.uniform(0.5, 1, 60) * scale).tolist(), rng.random(60).tolist(), strict=True):
        f, g = diagram_of([a], [], 0), diagram_of([b], [], 0)
        lower, upper = (product(f, g, r).values[0] for r in (DOWN, UP))
        assert Fraction(lower) < Fraction(a) * Fraction(b) < Fraction(upper)


# lemma: diagram-rounding
@pytest.mark.parametrize(
    ("a", "b"), [(0.1, 0.1), (1 / 3, 3.0), (1e-200, 1e-200), (1e200, 0.1), (5e-324, 0.5), (1.1e-290, 0.7)]
)
def test_a_product_that_is_rounded_has_different_ends(a, b):
    f, g = diagram_of([a], [], 0), diagram_of([b], [], 0)
    lower, upper = (product(f, g, r).values[0] for r in (DOWN, UP))
    assert Fraction(lower) < Fraction(a) * Fraction(b) < Fraction(upper)
    assert np.nextafter(np.nextafter(lower, 1.0e300), 1.0e300) >= upper


# lemma: diagram-rounding
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.1), (1.0, 1e-20), (2.0**53, 1.0), (0.1, 0.2), (1.0, 2.0**-53)])
def test_sums_are_moved_only_where_they_are_rounded(a, b):
    found = []
    for rounding in (DOWN, UP):
        store = NodeStore(0)
        total = store.sum(store.constant(a), store.constant(b), rounding)
        found.append(store.extract(total).values[0])
    exact = Fraction(a) + Fraction(b)
    assert Fraction(found[0]) <= exact <= Fraction(found[1])
    assert (found[0] == found[1]) == (Fraction(a + b) == exact)


def test_what_is_kept_is_found_again_and_what_is_not_is_gone(rng):
    levels, store = list(range(6)), NodeStore(6)
    values = rng.integers(0, 5, (40, 64)).astype(np.float64)
    stored = [store.insert(diagram_of(v, levels, 6)) for v in values]
    total = store.sum(stored[3], stored[30])
    before = store.n_nodes
    kept = store.collect(stored[3], total, stored[30], 0)
    assert kept[3] == 0 and store.n_nodes < before / 4
    assert store.sum(kept[0], kept[2]) == kept[1]  # nothing of it is known, and its nodes are there
    for function, own in zip(kept, (values[3], values[3] + values[30], values[30]), strict=False):
        assert dense(store.extract(function), levels).tolist() == own.tolist()
        assert store.insert(diagram_of(own, levels, 6)) == function


def test_a_store_is_crowded_by_what_nobody_needs(rng):
    levels, store = list(range(10)), NodeStore(10)
    (kept,) = store.collect(store.insert(diagram_of(rng.random(1 << 10), levels, 10)))
    assert not store.is_crowded()
    for _ in range(4):
        store.insert(diagram_of(rng.random(1 << 10), levels, 10))
    assert store.is_crowded()
    store.collect(kept)
    assert not store.is_crowded()


def test_old_results_are_forgotten_and_take_no_room(rng):
    levels, store = list(range(12)), NodeStore(12)
    f, g = (store.insert(diagram_of(rng.random(1 << 12), levels, 12)) for _ in range(2))
    total = store.sum(f, g)
    most = 0
    for i in range(40):
        store.product(f, store.insert(diagram_of(rng.integers(0, 9, 1 << 12) + i, levels, 12)))
        most = max(most, store._store.keys.size)
    assert most <= 1 << 18
    assert store.sum(f, g) == total


def test_results_beyond_a_limit_are_refused(rng):
    levels, store = list(range(12)), NodeStore(12)
    f, g = (store.insert(diagram_of(rng.random(1 << 12), levels, 12)) for _ in range(2))
    store.most_results = 1 << 12
    store.sum(f, g)
    with pytest.raises(MemoryError, match="more than 4,096 results"):
        store.product(f, g)


def test_results_are_forgotten_where_there_is_no_room_for_more(rng, monkeypatch):
    monkeypatch.setattr("mtbdd.diagrams.node_store._MOST_KEYS", 1 << 14)
    levels, store = list(range(14)), NodeStore(14)
    left, right = rng.integers(0, 9, (2, 1 << 14)).astype(np.float64)
    f, g = (store.insert(diagram_of(v, levels, 14)) for v in (left, right))
    assert dense(store.extract(store.sum(f, g)), levels).tolist() == (left + right).tolist()


def test_mapped_values_that_become_equal_are_one_leaf():
    store = NodeStore(2)
    f = store.insert(diagram_of([0.0, 1.0, 2.0, 3.0], [0, 1], 2))
    rounded = store.extract(store.mapped(f, lambda v: np.floor(v / 2)))
    assert dense(rounded, [0, 1]).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert rounded.n_nodes == 3


def test_pairs_of_values_are_those_that_meet():
    store = NodeStore(2)
    f, g = (store.insert(diagram_of(v, [0, 1], 2)) for v in ([1.0, 2.0, 1.0, 2.0], [5.0, 5.0, 6.0, 7.0]))
    for _ in range(2):
        left, right = store.leaf_pairs(f, g)
        assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == [
            (1.0, 5.0),
            (1.0, 6.0),
            (2.0, 5.0),
            (2.0, 7.0),
        ]


# lemma: diagram-series
def test_what_was_rounded_or_tiny_is_known():
    store = NodeStore(0)
    for a, b, is_sum, rounded, tiny in (
        (0.5, 0.25, True, False, False),
        (0.5, 0.25, False, False, False),
        (0.1, 0.2, True, True, False),
        (0.1, 0.2, False, True, False),
        (1.0, 1e-300, True, True, False),
        (1.0, 2.0**-990, False, False, True),
        (1e-200, 1e-200, False, True, True),
    ):
        for rounding in (DOWN, UP):
            store.begin_exact()
            f, g = store.constant(a), store.constant(b)
            (store.sum if is_sum else store.product)(f, g, rounding)
            assert (store.was_rounded, store.was_tiny) == (rounded, tiny)
            store.collect()


# lemma: diagram-series
def test_a_result_that_is_known_counts_as_rounded_where_it_was():
    store = NodeStore(1)
    f, g = (store.insert(diagram_of(v, [0], 1)) for v in ([0.1, 0.5], [0.2, 0.5]))
    for _ in range(2):
        store.begin_exact()
        assert not store.was_rounded
        store.sum(f, g, DOWN)
        assert store.was_rounded


def test_values_beyond_the_doubles_and_nodes_beyond_the_room_are_refused(rng):
    f = diagram_of([1e200, 1.0], [0], 1)
    with pytest.raises(OverflowError, match="largest double"):
        product(f, f)
    many = diagram_of(rng.random(1 << 10), list(range(10)), 10)
    store = NodeStore(10, most=1000)
    with pytest.raises(MemoryError, match="more than 1000 nodes"):
        store.insert(many)


def test_tables_grow_where_many_nodes_meet(rng):
    left, right = rng.random((1 << 7, 1 << 7)), rng.random((1 << 7, 1 << 7))
    store = NodeStore(21)
    a, b = (store.insert(matrix_of(entries, 7)) for entries in (left, right))
    found = dense_matrix(store.extract(store.matrix_product(a, b)), 7)
    np.testing.assert_allclose(found, left @ right, rtol=1e-13)
    assert store.n_nodes > 1 << 13
    assert store.leaf_pairs(a, b)[0].size == 1 << 14
