"""Exponentials of generators: inside the told error of exact ones, for matrices of every kind."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.sparse import csr_array, csr_matrix
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import hybrid
from gpu_kernels import Device
from hybrid.analysis.linear import Transient, transient
from hybrid.analysis.linear.uniformisation import uniformised
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.operators.inject import inject
from tests.builders.matrices import from_dense, random_sparse
from tests.exploring import each
from tests.gpu_kernels.devices import to_numpy


def rates(rng: np.random.Generator, size: int, density: float = 0.15) -> np.ndarray:
    """A few rates of several magnitudes, absorbing states among them."""
    dense = random_sparse(rng, size, size, density) * 10.0 ** rng.integers(-2, 2)
    np.fill_diagonal(dense, 0.0)
    return dense


def generator(dense: np.ndarray) -> np.ndarray:
    return dense - np.diag(dense.sum(axis=1))


def exact(dense: np.ndarray, exits: np.ndarray | None, x: np.ndarray, t: float) -> list[Fraction]:
    """Taylor's series in rational numbers, far beyond the precision of doubles."""
    size, time = len(x), Fraction(t)
    q = [[Fraction(v) for v in row] for row in dense.tolist()]
    for i in range(size):
        q[i][i] -= sum(q[i]) if exits is None else Fraction(exits[i])
    term, total = [Fraction(v) for v in x.tolist()], [Fraction(v) for v in x.tolist()]
    for k in range(1, 150):
        term = [sum((q[i][j] * term[j] for j in range(size)), Fraction(0)) * time / k for i in range(size)]
        # Enough digits, or the numbers grow without end.
        term = [Fraction(round(v * 2**300), 2**300) for v in term]
        total = [a + b for a, b in zip(total, term, strict=True)]
    assert max(abs(v) for v in term) < Fraction(1, 2**200)
    return total


def distance(found: Transient, expected: list[Fraction]) -> Fraction:
    return max(abs(Fraction(a) - b) for a, b in zip(found.values.tolist(), expected, strict=True))


KINDS: dict[str, Any] = {
    "cpu": lambda a: inject(from_dense(a), backend="cpu"),
    "reference": lambda a: inject(from_dense(a), backend="reference"),
    "tasks": lambda a: inject(from_dense(a), backend="cpu", representation="tasks"),
    "written out": lambda a: ExplicitOperator(CsrArrays.from_scipy(csr_matrix(a))),
    "arrays": lambda a: CsrArrays.from_scipy(csr_matrix(a)),
    "csr": csr_matrix,
    "sparse array": csr_array,
    "dense": np.asarray,
}


@pytest.mark.parametrize(
    ("t", "kind"),
    each([0.0, 0.3, 20.0, 4000.0], KINDS),
)
def test_every_kind_of_matrix_is_certified(rng: np.random.Generator, kind: str, t: float) -> None:
    dense = rates(rng, 33)
    q, x = generator(dense), rng.normal(size=(33, 5))
    start = rng.random(33)
    start /= start.sum()
    power = expm(q * t)
    exits = -np.diag(q)
    for matrix, options in ((KINDS[kind](dense), {"exit_rates": exits}), (KINDS[kind](q), {})):
        for vector in (x[:, 0], x):
            found = transient(matrix, vector, t, **options)
            assert found.kind == "certified"
            assert found.values.shape == vector.shape
            assert np.abs(found.values - power @ vector).max() <= found.error + 1e-11
            assert found.error < (1e-8 if t < 1000 else 1e-7)  # every step is charged with its rounding
        found = transient(matrix, start, t, transposed=True, **options)
        assert np.abs(found.values - power.T @ start).sum() <= found.error + 1e-11
        assert found.truncation <= 1e-10


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 6.0), st.sampled_from([1e-3, 1e-9, 1e-15]), st.booleans())
def test_exact_values_lie_within_the_told_error(seed: int, t: float, epsilon: float, computed: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.random((3, 3)) * (rng.random((3, 3)) < 0.7)
    x = rng.normal(size=3) * 10.0 ** rng.integers(-3, 4)
    exits = None if computed else dense.sum(axis=1)
    matrix = inject(from_dense(dense), backend=("cpu", "reference")[seed % 2])
    given_exits: Any = "row sums" if computed else exits
    for own in (matrix, csr_matrix(dense)):
        found = transient(own, x, t, exit_rates=given_exits, epsilon=epsilon)
        assert distance(found, exact(dense, exits, x, t)) <= found.error
        assert found.truncation <= epsilon * np.abs(x).max()
        found = transient(own, x, t, exit_rates=given_exits, epsilon=epsilon, transposed=True)
        # Sums of rows are those of the matrix itself.
        sums = [sum(map(Fraction, row)) for row in dense.tolist()]
        loops = np.array([float(s) for s in sums]) if exits is None else exits
        if exits is None and any(Fraction(a) != b for a, b in zip(loops.tolist(), sums, strict=True)):
            continue
        expected = exact(dense.T, loops, x, t)
        errors = [abs(Fraction(a) - b) for a, b in zip(found.values.tolist(), expected, strict=True)]
        assert sum(errors) <= found.error


def test_the_error_that_is_told_is_not_far_from_what_is_left_out() -> None:
    dense = np.array([[0.0, 1.0], [2.0, 0.0]])
    x = np.array([1.0, 0.0])
    for epsilon in (1e-2, 1e-4, 1e-8):
        found = transient(csr_matrix(dense), x, 3.0, exit_rates="row sums", epsilon=epsilon)
        off = distance(found, exact(dense, None, x, 3.0))
        assert off <= found.error <= epsilon
        assert off >= found.error * 1e-4


def test_rounding_counts_where_nothing_is_left_out() -> None:
    dense = np.array([[0.0, 1 / 3], [0.7, 0.0]])
    found = transient(csr_matrix(dense), np.array([0.1, 0.7]), 5.0, exit_rates="row sums", epsilon=1e-30)
    off = distance(found, exact(dense, None, np.array([0.1, 0.7]), 5.0))
    assert found.rounding is not None
    assert 0.0 < off <= found.rounding
    assert found.truncation < 1e-25


@pytest.mark.parametrize("transposed", [False, True])
def test_a_step_is_off_by_no_more_than_its_bound(rng: np.random.Generator, transposed: bool) -> None:
    worst = Fraction(0)
    for _ in range(50):
        dense = rng.random((4, 4)) * 10.0 ** rng.integers(-3, 4)
        x, exits = rng.normal(size=4), dense.sum(axis=1)
        chain = uniformised(csr_matrix(dense), exits, None, transposed)
        found = chain.step(x)
        own = [[Fraction(v) for v in row] for row in (dense.T if transposed else dense).tolist()]
        start, taken, rate = list(map(Fraction, x)), list(map(Fraction, exits)), chain.rate
        errors = [
            abs(Fraction(found[i]) - a - (sum(map(operator.mul, own[i], start), -e * a)) / Fraction(rate))
            for i, (a, e) in enumerate(zip(start, taken, strict=True))
        ]
        off, norm = (sum(errors), np.abs(x).sum()) if transposed else (max(errors), np.abs(x).max())
        assert off <= Fraction(chain.step_error) * Fraction(norm)
        worst = max(worst, off / Fraction(chain.step_error * norm))
        # No row of P stretches a vector by more.
        rows = [
            sum(map(Fraction, row), Fraction(0)) / Fraction(rate) + abs(1 - e / Fraction(rate))
            for row, e in zip(dense.tolist(), taken, strict=True)
        ]
        assert max(rows) <= Fraction(chain.stretch)
        assert chain.stretch < 1.0 + 1e-13
    # The bound is not far from what happens.
    assert worst > Fraction(1, 100)


def test_long_times_settle() -> None:
    dense = np.array([[0.0, 1.0], [3.0, 0.0]])
    found = transient(csr_matrix(dense), np.array([1.0, 0.0]), 1e7, exit_rates="row sums", epsilon=1e-6)
    assert found.products < 200
    np.testing.assert_allclose(found.values, 0.75, atol=found.error)
    assert found.error < 1e-6


def test_solutions_that_grow_a_little_have_their_error_told() -> None:
    dense = np.array([[-1.0, 1.015625], [0.5, -0.5]])
    x = np.array([1.0, -2.0])
    found = transient(dense, x, 2.0, epsilon=1e-12)
    assert found.kind == "certified"
    assert distance(found, exact(dense, np.zeros(2), x, 2.0)) <= found.error < 1e-6


def test_matrices_that_are_no_generators_are_refused() -> None:
    dense = np.array([[0.5, -0.25], [0.25, 0.5]])
    with pytest.raises(OptionError, match="expected a generator"):
        transient(dense, np.ones(2), 1000.0)
    with pytest.raises(OptionError, match="no negative entry"):
        transient(np.abs(dense), np.ones(2), 1.0)


def test_products_alone_make_an_estimate(rng: np.random.Generator) -> None:
    dense = rates(rng, 20)
    q, x = generator(dense), rng.normal(size=(20, 3))
    expected, most = expm(q * 2.0) @ x, float(-np.diag(q).min())
    plain = LinearOperator(q.shape, matvec=lambda v: q @ v, rmatvec=lambda v: q.T @ v, dtype=float)
    function = FunctionOperator(q.shape, lambda v: q @ v)
    for known in (plain, aslinearoperator(csr_matrix(q)), function):
        found = transient(known, x, 2.0, rate=1.1 * most)
        assert (found.kind, found.rounding) == ("estimate", None)
        assert found.error == found.truncation
        np.testing.assert_allclose(found.values, expected, atol=1e-9)
    found = transient(plain, x[:, 0], 2.0, rate=1.1 * most, transposed=True)
    np.testing.assert_allclose(found.values, expm(q.T * 2.0) @ x[:, 0], atol=1e-9)
    both = LinearOperator(q.shape, matvec=lambda v: dense @ v, dtype=float)
    np.testing.assert_allclose(transient(both, x, 2.0, exit_rates="row sums").values, expected, atol=1e-9)
    with pytest.raises(OptionError, match="rate: of a generator that is known by its products"):
        transient(plain, x, 2.0)
    with pytest.raises(OptionError, match="rmatvec"):
        transient(function, x, 2.0, rate=most, transposed=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t": -1.0}, "t: expected a time"),
        ({"t": math.inf}, "t: expected a time"),
        ({"t": math.nan}, "t: expected a time"),
        ({"t": 1e300}, "2\\^40 steps"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"rate": -1.0}, "rate: expected a positive"),
        ({"rate": math.inf}, "rate: expected a positive"),
        ({"x": np.ones(3)}, r"x: expected real numbers, shape \(2,\)"),
        ({"x": np.ones(2, complex)}, "x: expected real numbers"),
        ({"x": np.ones((2, 1, 1))}, "x: expected real numbers"),
        ({"operator": np.ones((2, 3))}, "expected a square matrix"),
        ({"operator": np.eye(2) * 1j}, "expected real entries"),
        ({"operator": "Q"}, "expected a square matrix"),
        ({"operator": np.array([[-1.0, np.nan], [1.0, -1.0]])}, "finite"),
        ({"operator": np.array([[-np.inf, 1.0], [1.0, -1.0]])}, "finite"),
        ({"t": [0.1, -0.5]}, "t: expected a time or a sequence of times"),
        ({"t": [[0.1]]}, "t: expected a time or a sequence of times"),
        ({"t": "0.1"}, "t: expected a time or a sequence of times"),
        ({"t": [0.1, "late"]}, "t: expected a time or a sequence of times"),
        ({"exit_rates": "rows"}, "'row sums'"),
        ({"exit_rates": "row sums"}, "negative entries"),
        ({"exit_rates": [1.0]}, "expected 2 finite numbers"),
        ({"exit_rates": [1.0, -1.0]}, "none below 0"),
        ({"exit_rates": [1.0, np.nan]}, "none below 0"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    q = np.array([[-1.0, 1.0], [2.0, -2.0]])
    options = {"operator": q, "x": np.ones(2), "t": 1.0} | changes
    with pytest.raises(OptionError, match=message):
        transient(options.pop("operator"), options.pop("x"), options.pop("t"), **options)


def test_several_times_have_a_row_each() -> None:
    q = np.array([[-1.0, 1.0], [2.0, -2.0]])
    for x in (np.array([1.0, 0.0]), np.eye(2)):
        found = transient(q, x, [0.1, 3.0, 0.5], transposed=True)
        alone = [transient(q, x, t, transposed=True) for t in (0.1, 3.0, 0.5)]
        np.testing.assert_array_equal(found.values, [one.values for one in alone])
        assert found.error == max(one.error for one in alone)
        assert found.rounding == max(one.rounding or 0.0 for one in alone)
        assert found.products == sum(one.products for one in alone) and found.kind == "certified"
    assert transient(q, x, []).values.shape == (0, 2, 2)


def test_values_beyond_the_doubles_are_not_told() -> None:
    from hybrid.base.errors import NotConvergedError

    q = np.array([[-1.0, 1.0], [2.0, -2.0]])
    for bad in (np.inf, np.nan):
        with pytest.raises(NotConvergedError), np.errstate(all="ignore"):
            transient(q, np.array([bad, 1.0]), 1.0)


def test_x_is_not_written_to_and_may_have_any_layout() -> None:
    q, x = csr_matrix([[-1.0, 1.0], [2.0, -2.0]]), np.arange(4)[::2]
    found = hybrid.transient(q, x, 0.0)
    np.testing.assert_array_equal(found.values, [0.0, 2.0])
    np.testing.assert_array_equal(x, [0, 2])
    empty = hybrid.transient(csr_matrix((0, 0)), np.zeros(0), 1.0, exit_rates="row sums")
    assert empty.values.shape == (0,)


def test_matrices_on_a_device(device: Device, rng: np.random.Generator) -> None:
    dense = rates(rng, 40)
    q, x = generator(dense), rng.normal(size=(40, 3))
    expected = expm(q * 3.0) @ x
    matrices = (
        inject(from_dense(dense), backend="gpu"),
        ExplicitOperator(CsrArrays.from_scipy(csr_matrix(dense)).to_device(device), device, "msr"),
    )
    for matrix in matrices:
        for given_x in (x, device.xp.asarray(x)):
            found = transient(matrix, given_x, 3.0, exit_rates="row sums")
            assert isinstance(found.values, type(given_x))
            assert np.abs(to_numpy(found.values) - expected).max() <= found.error + 1e-12
