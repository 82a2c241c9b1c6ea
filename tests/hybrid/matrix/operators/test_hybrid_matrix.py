"""Every backend at every level against dense products."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse, to_dense
from tests.exploring import each

BACKENDS = ("reference", "cpu")
RTOL = 1e-13


def case(seed: int, n_bits: int, n_rows: int, n_columns: int, density: float) -> tuple[np.ndarray, object]:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, n_rows, n_columns, density)
    codes = random_codes(rng, n_bits, n_rows), random_codes(rng, n_bits, n_columns)
    return dense, from_dense(dense, *codes, n_bits)


def levels_of(matrix: object) -> range:
    return range(matrix.n_levels + 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_2x2_matrices_at_all_levels(backend: str) -> None:
    x = np.array([3.0, 5.0])
    for values in itertools.product((0.0, 0.5, 1.0), repeat=4):
        dense = np.array(values).reshape(2, 2)
        matrix = from_dense(dense, n_bits=1)
        for level in levels_of(matrix):
            operator = inject(matrix, level, backend)
            np.testing.assert_array_equal(operator @ x, dense @ x)
            np.testing.assert_array_equal(operator.T @ x, dense.T @ x)
            np.testing.assert_array_equal(operator.diagonal(), np.diag(dense))


@pytest.mark.parametrize("backend", BACKENDS)
def test_4x4_matrices_with_holes(backend: str) -> None:
    rng = np.random.default_rng(811)
    for number in range(60):
        dense = rng.choice((0.0, 0.5, 1.0), size=(4, 4))
        codes = random_codes(rng, 4, 4)
        matrix = from_dense(dense, codes, codes, 4)
        x = rng.random(4)
        for level in range(number % 3, 9, 3):
            operator = inject(matrix, level, backend)
            np.testing.assert_allclose(operator @ x, dense @ x, rtol=RTOL)
        np.testing.assert_array_equal(operator.diagonal(), np.diag(dense))


@pytest.mark.parametrize(("size", "backend"), each([1, 7, 8, 9, 16, 17, 100, 257], BACKENDS))
def test_random_square_matrices(backend: str, size: int) -> None:
    dense, matrix = case(1000 + size, 9, size, size, 0.1)
    x = np.random.default_rng(5).normal(size=size)
    for level in range(0, matrix.n_levels + 1, 3):
        operator = inject(matrix, level, backend)
        np.testing.assert_allclose(operator @ x, dense @ x, rtol=RTOL, atol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("policy", ["auto", "min-memory", "min-time"])
def test_rectangular_matrices_and_policies(backend: str, policy: str) -> None:
    dense, matrix = case(77, 8, 90, 33, 0.15)
    x, z = np.random.default_rng(6).normal(size=33), np.random.default_rng(7).normal(size=90)
    operator = inject(matrix, policy, backend)
    np.testing.assert_allclose(operator @ x, dense @ x, rtol=RTOL, atol=1e-13)
    np.testing.assert_allclose(operator.rmatvec(z), dense.T @ z, rtol=RTOL, atol=1e-13)
    np.testing.assert_allclose(operator.row_sums(), dense.sum(axis=1), rtol=RTOL)
    assert operator.T.T is operator
    assert operator.statistics.level == operator.level
    assert operator.nbytes > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_zero_matrix_and_single_state(backend: str) -> None:
    for n_bits, size in ((0, 1), (3, 5)):
        matrix = from_dense(np.zeros((size, size)), np.arange(size), np.arange(size), n_bits)
        operator = inject(matrix, backend=backend)
        np.testing.assert_array_equal(operator @ np.ones(size), np.zeros(size))
        np.testing.assert_array_equal(operator.diagonal(), np.zeros(size))
    operator = inject(from_dense(np.array([[4.0]]), n_bits=0), backend=backend)
    np.testing.assert_array_equal(operator @ np.array([3.0]), [12.0])
    np.testing.assert_array_equal(operator.diagonal(), [4.0])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_absent_entries_contribute_nothing_at_any_level(bad: float) -> None:
    """Rows of a slice share terms, with coefficients of zero where a row has no such entry."""
    dense = np.zeros((64, 64))
    index = np.arange(63)
    dense[index, index + 1] = np.where(index % 3, 0.5, 0.0)
    dense[index + 1, index] = np.where(index % 5, 0.25, 0.0)
    dense[:32, 40] = np.where(np.arange(32) % 2, 1.0, 0.0)
    x = np.linspace(1, 2, 64)
    x[[21, 40]] = bad
    expected = np.array([sum(v * x[j] for j, v in enumerate(row) if v != 0.0) for row in dense])
    diagonal, right = np.linspace(2, 3, 64), np.linspace(0, 1, 64)
    matrix = from_dense(dense)
    for level in levels_of(matrix):
        operator = inject(matrix, level, "cpu")
        np.testing.assert_allclose(operator @ x, expected, rtol=RTOL)
        out = np.empty(64)
        absolute, _ = operator.jacobi_step(x, out, right, diagonal)
        np.testing.assert_allclose(out, (expected + right) / diagonal, rtol=RTOL)
        assert not np.isfinite(absolute)


def test_cpu_shares_blocks_up_to_a_scale_accurately() -> None:
    dense = banded(512)
    operator = inject(from_dense(dense), backend="cpu")
    for level in range(operator.symbolic.n_levels + 1):
        scaled = operator.curve.typed.scaled
        for i in (0, 37, 400):
            x = np.zeros(512)
            x[i] = 1.0
            from hybrid.matrix.cpu.layout import build_cpu_layout
            from hybrid.matrix.cpu.product import CpuProduct

            layout = build_cpu_layout(scaled, level)
            assert layout is not None
            out = np.empty(512)
            CpuProduct(layout).multiply(x, out)
            assert np.all(np.abs(out - dense[:, i]) <= 4 * np.spacing(dense[:, i]))


def test_linear_operator_solves() -> None:
    from scipy.sparse.linalg import LinearOperator, gmres

    dense = banded(60) * 0.2
    system = inject(from_dense(np.eye(60) + dense)).as_linear_operator()
    assert isinstance(system, LinearOperator)
    right = np.arange(60.0)
    solution, info = gmres(system, right, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose((np.eye(60) + dense) @ solution, right, atol=1e-8)
    np.testing.assert_allclose(system.rmatvec(right), (np.eye(60) + dense).T @ right)
    np.testing.assert_allclose(system @ np.eye(60), np.eye(60) + dense)


def test_threads_do_not_change_the_result() -> None:
    from hybrid.matrix.cpu.threads import set_thread_count

    dense, matrix = case(3141, 11, 1500, 1500, 0.02)
    operator = inject(matrix, 6, "cpu")
    x = np.random.default_rng(8).random(1500)
    results = []
    try:
        for count in (1, 2, 5):
            set_thread_count(count)
            results.append(operator @ x)
    finally:
        set_thread_count(None)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], dense @ x, rtol=1e-12)
    with pytest.raises(ValueError, match="at least 1"):
        set_thread_count(0)


def test_transpose_agrees_with_dense() -> None:
    dense, matrix = case(99, 7, 40, 60, 0.2)
    transposed = matrix.transpose()
    transposed.validate()
    np.testing.assert_array_equal(to_dense(transposed), dense.T)
    assert transposed.transpose().nodes == matrix.nodes


def operator_2x2() -> HybridMatrix:
    return inject(from_dense(np.array([[1.0, 0.0], [0.5, 0.5]])), backend="cpu")


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones(3), ValueError, r"x: expected shape \(2,\), got \(3,\)"),
        (np.ones((3, 2)), ValueError, "x: expected 2 rows"),
        (np.ones(2, complex), TypeError, "expected real numbers"),
        (np.array(["a", "b"]), TypeError, "expected real numbers"),
    ],
)
def test_bad_vectors_are_refused(x: np.ndarray, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        operator_2x2() @ x


def test_vectors_are_converted_where_that_is_safe() -> None:
    operator = operator_2x2()
    np.testing.assert_array_equal(operator @ [2, 4], [2.0, 3.0])
    np.testing.assert_array_equal(operator @ np.arange(8.0)[::4], [0.0, 2.0])
    frozen = np.array([2.0, 4.0])
    frozen.flags.writeable = False
    np.testing.assert_array_equal(operator @ frozen, [2.0, 3.0])


def test_bad_outputs_are_refused() -> None:
    operator, x = operator_2x2(), np.ones(2)
    with pytest.raises(ValueError, match="shares memory"):
        operator.multiply(x, x)
    with pytest.raises(TypeError, match="float64"):
        operator.multiply(x, np.ones(2, np.float32))
    with pytest.raises(ValueError, match="shape"):
        operator.multiply(x, np.ones(5))
    with pytest.raises(ValueError, match="contiguous"):
        operator.multiply(x, np.ones(4)[::2])


def test_bad_choices_are_refused() -> None:
    matrix = from_dense(np.eye(4))
    with pytest.raises(ValueError, match="expected one of auto, cpu"):
        inject(matrix, backend="tpu")
    with pytest.raises(ValueError, match=r"expected 0\.\.4"):
        inject(matrix, 5)
    with pytest.raises(ValueError, match="min-memory"):
        inject(matrix, "fastest")
    with pytest.raises(ValueError, match="memory_budget"):
        inject(matrix, memory_budget=1)
    with pytest.raises(TypeError, match="OffsetMTBDD"):
        inject(np.eye(2))  # type: ignore[arg-type]


def test_rectangular_matrices_have_no_diagonal_or_step() -> None:
    operator = inject(from_dense(np.ones((2, 3)), n_bits=2))
    with pytest.raises(ValueError, match="square"):
        operator.diagonal()
    with pytest.raises(ValueError, match="square"):
        operator.jacobi_step(np.ones(3), np.ones(2), None, np.ones(2))


def test_diagonal_of_different_state_sets_is_refused() -> None:
    matrix = from_dense(np.ones((2, 2)), np.array([0, 1]), np.array([0, 3]), 2)
    with pytest.raises(ValueError, match="different sets of states"):
        inject(matrix).diagonal()
