"""Arithmetic on symbolic functions, entry by entry and over bits, against dense arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mtbdd.diagrams import arithmetic
from mtbdd.diagrams import arithmetic as products
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from tests.builders.dense import dense_matrix, dense_vector, symbolic_matrix, symbolic_vector
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST

Array = NDArray[np.float64]

BITS = 3
PALETTE = (0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 0.75, -1.0, -3.5, 6.0)  # dyadic: sums and products are exact


def arrays(*shape: int, palette: tuple[float, ...] = PALETTE) -> st.SearchStrategy[Array]:
    size = math.prod(shape)
    entries = st.lists(st.sampled_from(palette), min_size=size, max_size=size)
    # Blocks that repeat and rows that are equal make diagrams that skip levels.
    return st.tuples(entries, st.integers(0, 3)).map(
        lambda drawn: coarse(np.array(drawn[0]), shape, drawn[1])
    )


def coarse(entries: Array, shape: tuple[int, ...], steps: int) -> Array:
    """Make entries equal along some of the bits."""
    dense = entries.reshape((2,) * (entries.size.bit_length() - 1)).copy()
    for axis in range(steps):
        at = (2 * axis) % dense.ndim
        dense = np.repeat(dense.take([0], axis=at), 2, axis=at)
    return dense.reshape(shape)


def matrices() -> st.SearchStrategy[Array]:
    return arrays(1 << BITS, 1 << BITS)


FEW = settings(max_examples=40)  # of matrices of 64 entries each, by several operations

MANAGERS = {package: Manager(BITS, package) for package in DIAGRAM_PACKAGES}

POINTWISE: list[tuple[Callable[..., SymbolicMatrix], Callable[..., Any]]] = [
    (arithmetic.add, np.add),
    (arithmetic.multiply, np.multiply),
    (arithmetic.maximum, np.maximum),
    (arithmetic.minimum, np.minimum),
]


@pytest.mark.parametrize("package", MANAGERS)
@FEW
@given(a=matrices(), b=matrices())
def test_pointwise_operations_are_those_of_arrays(package: str, a: Array, b: Array) -> None:
    manager = MANAGERS[package]
    x, y = symbolic_matrix(manager, a), symbolic_matrix(manager, b)
    for symbolic, dense in POINTWISE:
        found = symbolic(x, y)
        assert np.array_equal(dense_matrix(found), dense(a, b))
        again = symbolic_matrix(manager, dense(a, b))
        assert found.node == again.node, "not canonical"
        assert np.array_equal(found.terminals, again.terminals)


@given(a=matrices(), b=arrays(1 << BITS, 1 << BITS, palette=(1.0, -2.0, 0.5)))
def test_quotients(a: Array, b: Array) -> None:
    manager = MANAGERS[FASTEST]
    found = arithmetic.divide(symbolic_matrix(manager, a), symbolic_matrix(manager, b))
    assert np.array_equal(dense_matrix(found), a / b)


@FEW
@given(a=matrices(), chosen=st.lists(st.booleans(), min_size=2 * BITS, max_size=2 * BITS))
def test_folds_over_bits_are_those_over_axes(a: Array, chosen: list[bool]) -> None:
    manager = MANAGERS[FASTEST]
    names = manager.rows + manager.columns
    axes = tuple(i for i, c in enumerate(chosen) if c)
    bits = [names[i] for i in reversed(axes)]
    cells = a.reshape((2,) * (2 * BITS))
    x = symbolic_matrix(manager, a)
    for symbolic, dense in (
        (arithmetic.sum_over, np.sum),
        (arithmetic.maximum_over, np.max),
        (arithmetic.minimum_over, np.min),
    ):
        expected = np.broadcast_to(dense(cells, axis=axes, keepdims=True), cells.shape).reshape(a.shape)
        assert np.array_equal(dense_matrix(symbolic(x, bits)), expected)


@given(a=matrices(), bits=st.dictionaries(st.integers(0, 2 * BITS - 1), st.booleans()))
def test_restriction_fixes_bits(a: Array, bits: dict[int, bool]) -> None:
    manager = MANAGERS[FASTEST]
    names = manager.rows + manager.columns
    cells = a.reshape((2,) * (2 * BITS))
    for axis, value in bits.items():
        cells = np.repeat(cells.take([int(value)], axis=axis), 2, axis=axis)
    found = arithmetic.restricted(symbolic_matrix(manager, a), {names[i]: v for i, v in bits.items()})
    assert np.array_equal(dense_matrix(found), cells.reshape(a.shape))


@pytest.mark.parametrize("package", MANAGERS)
@FEW
@given(a=matrices(), b=matrices(), v=arrays(1 << BITS))
def test_products_of_matrices_and_vectors(package: str, a: Array, b: Array, v: Array) -> None:
    manager = MANAGERS[package]
    x, y, z = symbolic_matrix(manager, a), symbolic_matrix(manager, b), symbolic_vector(manager, v)
    assert np.array_equal(dense_vector(products.matrix_vector(x, z)), a @ v)
    assert np.array_equal(dense_vector(products.vector_matrix(z, x)), v @ a)
    assert np.array_equal(dense_matrix(products.matrix_matrix(x, y)), a @ b)


@given(a=matrices(), factor=st.sampled_from((0.0, 1.0, -2.0, 0.375, 3.0)))
def test_scaled(a: Array, factor: float) -> None:
    manager = MANAGERS[FASTEST]
    found = arithmetic.scaled(symbolic_matrix(manager, a), factor)
    assert np.array_equal(dense_matrix(found), a * factor)
    assert found.units == (0.0 if factor in (0.0, 1.0, -2.0) else 1.0)


def test_units_bound_the_error_of_one_sign(rng: np.random.Generator) -> None:
    """Sums and products of thirds differ from the rational ones by no more units than are told."""
    manager = MANAGERS[FASTEST]
    numbers = rng.integers(1, 100, (8, 8)) / 7.0
    vector = rng.integers(1, 100, 8) / 11.0
    found = products.matrix_vector(symbolic_matrix(manager, numbers), symbolic_vector(manager, vector))
    exact = [
        sum(Fraction(p) * Fraction(q) for p, q in zip(row, vector.tolist(), strict=True))
        for row in numbers.tolist()
    ]
    off = [abs(Fraction(f) / e - 1) * 2**53 for f, e in zip(dense_vector(found).tolist(), exact, strict=True)]
    assert 0 < float(max(off)) <= found.units < 4.01


def test_units_of_both_signs_are_infinite() -> None:
    manager = MANAGERS[FASTEST]
    positive = symbolic_vector(manager, np.arange(1.0, 9.0))
    negative = arithmetic.scaled(positive, -1.0)
    assert arithmetic.add(positive, positive).units == 1.0
    assert math.isinf(arithmetic.add(positive, negative).units)
    mixed = symbolic_vector(manager, np.array([1.0, -1.0] * 4))
    assert math.isinf(arithmetic.sum_over(mixed, manager.rows).units)
    assert math.isinf(products.vector_matrix(mixed, symbolic_matrix(manager, np.ones((8, 8)))).units)
    assert arithmetic.maximum(mixed, negative).units == 0.0


def test_products_that_vanish_stay_above_zero() -> None:
    manager = MANAGERS[FASTEST]
    small = symbolic_vector(manager, np.full(8, 1e-200))
    assert dense_vector(arithmetic.multiply(small, small)).tolist() == [2.0**-1074] * 8
    assert (
        dense_vector(arithmetic.multiply(small, arithmetic.scaled(small, -1.0))).tolist()
        == [-(2.0**-1074)] * 8
    )


def test_faults_of_operands() -> None:
    manager, other = MANAGERS[FASTEST], Manager(BITS, FASTEST)
    ones = symbolic_vector(manager, np.ones(8))
    with pytest.raises(ValueError, match="one manager"):
        arithmetic.add(ones, symbolic_vector(other, np.ones(8)))
    with pytest.raises(ValueError, match="expected bits"):
        arithmetic.sum_over(ones, ["x"])
    with pytest.raises(ValueError, match="expected bits"):
        arithmetic.restricted(ones, {manager.spares[0]: True})
    with pytest.raises(ValueError, match="row bits"):
        products.matrix_vector(ones, symbolic_matrix(manager, np.eye(8)))
    with pytest.raises(ValueError, match="NaN"):
        arithmetic.scaled(ones, math.nan)
    with pytest.raises(OverflowError, match="largest double"):
        arithmetic.scaled(ones, math.inf)
    large = arithmetic.scaled(ones, 1e308)
    for overflowing in (
        lambda: arithmetic.add(large, large),
        lambda: arithmetic.sum_over(large, manager.rows),
    ):
        with pytest.raises(OverflowError, match="largest double"):
            overflowing()
    with pytest.raises(ZeroDivisionError, match="divisor"):
        arithmetic.divide(ones, symbolic_vector(manager, np.arange(8.0)))


def test_a_large_matrix_is_summed_without_its_entries() -> None:
    """2^80 entries: one value on the diagonal, another one elsewhere."""
    manager = Manager(40, FASTEST)
    stay = manager.equal_bits(range(40))
    matrix = SymbolicMatrix.from_partition(Partition(manager, {0.25: stay, 0.5: manager.true & ~stay}))
    sums = arithmetic.sum_over(matrix, manager.columns)
    assert sums.terminals.tolist() == [0.5 * (2.0**40 - 1) + 0.25]
    assert sums.node == manager.true


def test_values_a_rounding_apart_are_united() -> None:
    manager = MANAGERS[FASTEST]
    near = 0.1 + np.arange(8) * np.spacing(0.1) * np.array([0, 1, 0, 0, 0, 0, 0, 1])
    dense = np.where(np.arange(8) == 4, 0.0, near)
    found = arithmetic.united(symbolic_vector(manager, dense))
    assert sorted(set(dense_vector(found).tolist())) == [0.0, 0.1, near[7]]
    assert 1 < found.units < 3
    assert np.abs(dense_vector(found) - dense).max() <= found.units * 2.0**-53 * 0.1000001
    assert arithmetic.united(found).units == found.units
