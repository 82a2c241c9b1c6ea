"""Matrices as SciPy's and CuPy's solvers take them, and arrays of other libraries."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg as solvers
from scipy.sparse import csr_matrix

from hybrid.matrix.explicit import CsrArrays, ExplicitOperator
from hybrid.matrix.operators.inject import inject
from tests.builders.matrices import banded, from_dense, random_sparse

SIZE = 60
DENSE = 0.1 * banded(SIZE) + np.eye(SIZE)
SYMMETRIC = DENSE + DENSE.T
B = np.arange(1.0, SIZE + 1)

MAKERS: dict[str, Any] = {
    "reference": lambda a: inject(from_dense(a), backend="reference"),
    "cpu": lambda a: inject(from_dense(a), backend="cpu"),
    "tasks": lambda a: inject(from_dense(a), backend="cpu", representation="tasks"),
    "written out": lambda a: ExplicitOperator(CsrArrays.from_scipy(csr_matrix(a))),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


@pytest.mark.parametrize("name", ["gmres", "bicgstab", "bicg", "cgs", "qmr", "lgmres", "gcrotmk", "tfqmr"])
def test_solvers_of_systems(make: Any, name: str) -> None:
    x, info = getattr(solvers, name)(make(DENSE), B, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(DENSE @ x, B, rtol=1e-9)


@pytest.mark.parametrize("name", ["cg", "minres", "gmres"])
def test_solvers_of_symmetric_systems(make: Any, name: str) -> None:
    x, info = getattr(solvers, name)(make(SYMMETRIC), B, rtol=1e-12)
    assert info == 0
    np.testing.assert_allclose(SYMMETRIC @ x, B, rtol=1e-8)


@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
def test_least_squares_of_rectangular_matrices(make: Any, name: str, rng: np.random.Generator) -> None:
    tall = random_sparse(rng, 40, 13, 0.4) + np.eye(40, 13)
    options = {"atol": 1e-13, "btol": 1e-13, ("iter_lim" if name == "lsqr" else "maxiter"): 200}
    x = getattr(solvers, name)(make(tall), np.arange(40.0), **options)[0]
    np.testing.assert_allclose(x, np.linalg.lstsq(tall, np.arange(40.0))[0], rtol=1e-7)


def test_eigenvalues_and_singular_values(make: Any) -> None:
    start = np.ones(SIZE)
    found = solvers.eigs(make(DENSE), k=3, v0=start, return_eigenvectors=False)
    every = np.linalg.eigvals(DENSE)
    np.testing.assert_allclose(np.abs(found).max(), np.abs(every).max(), rtol=1e-9)
    found = solvers.eigsh(make(SYMMETRIC), k=2, v0=start, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(SYMMETRIC)[-2:], rtol=1e-9)
    found = solvers.svds(make(DENSE), k=2, v0=start, return_singular_vectors=False)
    np.testing.assert_allclose(np.sort(found), np.linalg.svd(DENSE)[1][1::-1], rtol=1e-9)
    begin = np.random.default_rng(1).random((SIZE, 2))
    found = solvers.lobpcg(make(SYMMETRIC), begin, largest=True, maxiter=200, tol=1e-8)[0]
    np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(SYMMETRIC)[-2:], rtol=1e-9)


def test_norms_and_exponentials(make: Any) -> None:
    matrix = make(DENSE)
    assert solvers.onenormest(matrix) == pytest.approx(np.abs(DENSE).sum(axis=0).max())
    operator = matrix.as_linear_operator()
    assert isinstance(operator, solvers.LinearOperator)
    found = solvers.expm_multiply(operator, B, traceA=np.trace(DENSE))
    np.testing.assert_allclose(found, solvers.expm_multiply(DENSE, B), rtol=1e-12)
    np.testing.assert_allclose((2.0 * operator).rmatmat(np.eye(SIZE)), 2.0 * DENSE.T, rtol=1e-12)
    if hasattr(matrix, "trace"):
        assert matrix.trace() == pytest.approx(np.trace(DENSE))


def test_all_products_from_both_sides(make: Any, rng: np.random.Generator) -> None:
    dense = random_sparse(rng, 30, 17, 0.3)
    matrix, x, y = make(dense), rng.normal(size=(17, 4)), rng.normal(size=(30, 4))
    assert matrix.shape == (30, 17)
    assert matrix.dtype == np.float64
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(matrix.matvec(x[:, 0]), dense @ x[:, 0], **close)
    np.testing.assert_allclose(matrix.matvec(x[:, :1]), dense @ x[:, :1], **close)
    np.testing.assert_allclose(matrix.rmatvec(y[:, 0]), dense.T @ y[:, 0], **close)
    np.testing.assert_allclose(matrix.rmatvec(y[:, :1]), dense.T @ y[:, :1], **close)
    np.testing.assert_allclose(matrix.matmat(x), dense @ x, **close)
    np.testing.assert_allclose(matrix.rmatmat(y), dense.T @ y, **close)
    np.testing.assert_allclose(matrix @ x, dense @ x, **close)
    np.testing.assert_allclose(y.T @ matrix, y.T @ dense, **close)
    np.testing.assert_allclose(y[:, 0] @ matrix, y[:, 0] @ dense, **close)
    assert matrix.T.shape == (17, 30)
    assert matrix.T is matrix.T
    assert matrix.T.T is matrix
    assert matrix.T.nbytes > 0


class Tensor:
    """An array of another library, which knows DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape
        self.asked = 0

    def __dlpack__(self, **options: Any) -> Any:
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OnHost(Tensor):
    """As PyTorch's: its class has the interface of CUDA, which it refuses for tensors on the host."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("a tensor on the host")


@pytest.mark.parametrize("kind", [Tensor, OnHost])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays_that_speak_dlpack_are_taken(make: Any, kind: type[Tensor], dtype: type) -> None:
    matrix, x = make(DENSE), np.arange(SIZE, dtype=dtype)
    given = kind(x)
    np.testing.assert_allclose(matrix.matvec(given), DENSE @ x, rtol=1e-12)
    assert given.asked == 1
    columns = kind(np.stack([x, x + 1], axis=1))
    np.testing.assert_allclose(matrix.matmat(columns), DENSE @ columns.array, rtol=1e-12)


def test_tensors_of_other_types_are_refused() -> None:
    class Strange(Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("no such type")

    with pytest.raises(TypeError, match="no such type"):
        inject(from_dense(DENSE), backend="cpu") @ Strange(B)


class Remote:
    """An array on a device, as CuPy's."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def get(self) -> np.ndarray:
        return self._array


def test_matrices_on_the_host_copy_arrays_of_a_device_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(array: Any) -> Remote:
        return array if isinstance(array, Remote) else Remote(array)

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=put))
    matrix = inject(from_dense(DENSE), backend="cpu")
    found = matrix @ Remote(B)
    assert isinstance(found, Remote)
    np.testing.assert_array_equal(found.get(), matrix @ B)
    columns = np.stack([B, B + 1], axis=1)
    np.testing.assert_array_equal((matrix @ Remote(columns)).get(), matrix @ columns)
    np.testing.assert_array_equal(matrix.rmatvec(Remote(B)).get(), matrix.T @ B)
    with pytest.raises(ValueError, match="out: the matrix lies on the host"):
        matrix.multiply(Remote(B), np.empty(SIZE))
