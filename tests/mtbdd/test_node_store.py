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


def product(f, g, summed, rounding=NEAREST):
    store = NodeStore(f.bottom, rounding)
    return store.extract(store.product(f, g, summed))


@given(st.data(), st.integers(1, 3), st.integers(0, 2))
def test_the_product_of_a_matrix_with_several_vectors_is_that_of_dense_arrays(data, n_bits, extra):
    """Rows and columns are interleaved; further bits of the vectors stand below them."""
    bottom = 2 * n_bits + extra
    rows, columns, more = range(0, 2 * n_bits, 2), range(1, 2 * n_bits, 2), range(2 * n_bits, bottom)
    matrix = np.array(drawn(data, 2 * n_bits)).reshape(1 << n_bits, -1)
    vectors = np.array(drawn(data, n_bits + extra)).reshape(1 << n_bits, -1)
    split = matrix.reshape((2,) * (2 * n_bits))  # all row bits first
    order = [axis for i in range(n_bits) for axis in (i, n_bits + i)]
    a = diagram_of(split.transpose(order), list(range(2 * n_bits)), bottom)
    x = diagram_of(vectors, [*columns, *more], bottom)
    found = dense(product(a, x, columns), [*rows, *more]).reshape(1 << n_bits, -1)
    np.testing.assert_allclose(found, matrix @ vectors, rtol=1e-14, atol=1e-320)


@given(st.data(), st.integers(1, 5))
def test_bits_that_both_factors_skip_double_the_sum(data, n_bits):
    levels = list(range(n_bits))
    summed = data.draw(st.sets(st.sampled_from(levels)))
    own = [data.draw(st.sampled_from(sorted({v, 0.0}))) for v in [1.0, 2.0]]
    last = [own[i & 1] for i in range(1 << n_bits)]  # tests the last bit alone
    f, g = diagram_of(last, levels, n_bits), diagram_of([1.0] * (1 << n_bits), levels, n_bits)
    kept = [level for level in levels if level not in summed]
    expected = np.array(last).reshape((2,) * n_bits).sum(axis=tuple(summed)).reshape(-1)
    assert dense(product(f, g, summed), kept).tolist() == expected.tolist()


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
    levels = list(range(n_bits))
    left = np.array(drawn(data, n_bits)) * factor
    right = np.array(drawn(data, n_bits)) * tiny
    f, g = diagram_of(left, levels, n_bits), diagram_of(right, levels, n_bits)
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(left.tolist(), right.tolist(), strict=True))
    lower, near, upper = (dense(product(f, g, levels, r), [])[0] for r in (DOWN, NEAREST, UP))
    assert Fraction(lower) <= exact <= Fraction(upper)
    assert lower >= 0
    assert lower <= near <= upper


@given(st.data(), st.integers(1, 4))
def test_products_that_doubles_hold_are_the_same_rounded_up_and_down(data, n_bits):
    whole = st.lists(st.integers(0, 1000), min_size=1 << n_bits, max_size=1 << n_bits)
    levels = list(range(n_bits))
    left, right = np.array(data.draw(whole)) / 1024, np.array(data.draw(whole)) / 8
    f, g = diagram_of(left, levels, n_bits), diagram_of(right, levels, n_bits)
    found = [dense(product(f, g, levels, r), [])[0] for r in (DOWN, NEAREST, UP)]
    assert found == [float(left @ right)] * 3


# lemma: diagram-rounding
@pytest.mark.parametrize("scale", [1.0, 1e-307])
def test_the_sign_of_a_rounding_error_is_known_or_not_used(rng, scale):
    for a, b in zip((rng.uniform(0.5, 1, 60) * scale).tolist(), rng.random(60).tolist(), strict=True):
        f, g = diagram_of([a], [], 0), diagram_of([b], [], 0)
        lower, upper = (product(f, g, [], r).values[0] for r in (DOWN, UP))
        assert Fraction(lower) < Fraction(a) * Fraction(b) < Fraction(upper)


# lemma: diagram-rounding
@pytest.mark.parametrize(
    ("a", "b"), [(0.1, 0.1), (1 / 3, 3.0), (1e-200, 1e-200), (1e200, 0.1), (5e-324, 0.5), (1.1e-290, 0.7)]
)
def test_a_product_that_is_rounded_has_different_ends(a, b):
    f, g = diagram_of([a], [], 0), diagram_of([b], [], 0)
    lower, upper = (product(f, g, [], r).values[0] for r in (DOWN, UP))
    assert Fraction(lower) < Fraction(a) * Fraction(b) < Fraction(upper)
    assert np.nextafter(np.nextafter(lower, 1.0e300), 1.0e300) >= upper


# lemma: diagram-rounding
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.1), (1.0, 1e-20), (2.0**53, 1.0), (0.1, 0.2), (1.0, 2.0**-53)])
def test_sums_are_moved_only_where_they_are_rounded(a, b):
    found = []
    for rounding in (DOWN, UP):
        store = NodeStore(0, rounding)
        total = store.sum(store.insert(diagram_of([a], [], 0)), store.insert(diagram_of([b], [], 0)))
        found.append(store.extract(total).values[0])
    exact = Fraction(a) + Fraction(b)
    assert Fraction(found[0]) <= exact <= Fraction(found[1])
    assert (found[0] == found[1]) == (Fraction(a + b) == exact)


def test_a_function_goes_into_shared_arrays_and_back():
    work = ValueDiagrams(4)
    values = [0.0, 1.0, 5.0, 1.0, 0.0, 0.0, 5.0, 2.0] * 2
    f = diagram_of(values, [0, 1, 2, 3], 4)
    root = f.into(work)
    again = Diagram.of(work, root)
    assert again.equals(f)
    assert dense(again, [0, 1, 2, 3]).tolist() == values
    assert again.into(work) == root


def test_mapped_values_that_become_equal_are_one_leaf():
    f = diagram_of([0.0, 1.0, 2.0, 3.0], [0, 1], 2)
    rounded = f.mapped(lambda v: np.floor(v / 2))
    assert dense(rounded, [0, 1]).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert rounded.n_nodes == 3


def test_renaming_keeps_the_order():
    f = diagram_of([1.0, 2.0, 3.0, 4.0], [0, 2], 4)
    assert dense(f.renamed({0: 1, 2: 3}), [1, 3]).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="order of the bits"):
        f.renamed({0: 3})


def test_pairs_of_values_are_those_that_meet():
    f, g = diagram_of([1.0, 2.0, 1.0, 2.0], [0, 1], 2), diagram_of([5.0, 5.0, 6.0, 7.0], [0, 1], 2)
    left, right = f.leaf_pairs(g)
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == [
        (1.0, 5.0),
        (1.0, 6.0),
        (2.0, 5.0),
        (2.0, 7.0),
    ]


def test_values_beyond_the_doubles_and_nodes_beyond_the_room_are_refused(rng):
    f = diagram_of([1e200, 1.0], [0], 1)
    with pytest.raises(OverflowError, match="largest double"):
        product(f, f, [0])
    many = diagram_of(rng.random(1 << 10), list(range(10)), 10)
    store = NodeStore(10, most=1000)
    with pytest.raises(MemoryError, match="more than 1000 nodes"):
        store.insert(many)


def test_tables_grow_where_many_nodes_meet(rng):
    levels = list(range(14))
    left, right = rng.random(1 << 14), rng.random(1 << 14)
    f, g = diagram_of(left, levels, 14), diagram_of(right, levels, 14)
    store = NodeStore(14)
    found = store.extract(store.product(f, g, range(1, 14, 2)))
    expected = (left * right).reshape((2,) * 14).sum(axis=tuple(range(1, 14, 2))).reshape(-1)
    np.testing.assert_allclose(dense(found, levels[::2]), expected, rtol=1e-13)
    assert store.n_nodes > 1 << 13
    assert np.array_equal(f.leaf_pairs(g)[0].size, 1 << 14)
