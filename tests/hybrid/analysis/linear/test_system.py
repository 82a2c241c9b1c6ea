"""Linear systems on any operator, with the project's methods and with SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, aslinearoperator, bicg, bicgstab, gmres, qmr, spsolve

from gpu_kernels import Device
from hybrid.analysis.linear import LinearSystem, solve, split_system
from hybrid.matrix.cpu.csr import csr_of
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.reference import relax_in_place
from hybrid.solvers import Criterion, Status
from hybrid.solvers.iteration import GaussSeidel
from tests.builders.matrices import banded, from_dense
from tests.exploring import each
from tests.gpu_kernels.devices import to_numpy
from tests.hybrid.analysis.linear.methods import krylov, method_name

TIGHT = Criterion(1e-11)


def case(size: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """A diagonally dominant matrix and a right-hand side."""
    dense = -banded(size)
    np.fill_diagonal(dense, 0.0)
    np.fill_diagonal(dense, np.abs(dense).sum(axis=1) + 0.3)
    return dense, np.linspace(-1.0, 2.0, size)


FORMS = {
    "dense": lambda a: a,
    "csr": csr_matrix,
    "coo": lambda a: csr_matrix(a).tocoo(),
    "arrays": lambda a: CsrArrays.from_scipy(csr_matrix(a)),
    "hybrid": lambda a: inject(from_dense(a), backend="cpu"),
}


@pytest.mark.parametrize("method", ["jacobi", "jor", "bicgstab", gmres, bicgstab], ids=method_name)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_and_method_gives_the_solution(form: str, method: Any) -> None:
    dense, b = case()
    found = solve(FORMS[form](dense), b, method, criterion=TIGHT)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-9)
    assert found.residual == pytest.approx(np.abs(b - dense @ found.values).max(), abs=1e-13)
    assert found.iterations > 0


def test_operators_need_a_diagonal_told() -> None:
    dense, b = case(40)
    operator = aslinearoperator(dense)
    with pytest.raises(ValueError, match="expected the diagonal of A beside an operator"):
        solve(operator, b)
    for method in ("jacobi", "bicgstab", gmres):
        found = solve(operator, b, method, diagonal=np.diag(dense).copy(), criterion=TIGHT)
        assert found.status is Status.CONVERGED
        np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", [bicg, qmr])
def test_methods_that_need_the_transposed_product_get_it_from_a_hybrid_matrix(method: Any) -> None:
    dense, b = case(60)
    off = -dense.copy()
    np.fill_diagonal(off, 0.0)
    system = LinearSystem(inject(from_dense(off), backend="cpu"), np.diag(dense).copy(), b)
    operator = system.as_linear_operator()
    assert isinstance(operator, LinearOperator)
    x = np.arange(60.0)
    np.testing.assert_allclose(operator @ x, dense @ x, rtol=1e-12)
    np.testing.assert_allclose(operator.rmatvec(x), dense.T @ x, rtol=1e-12)
    found = system.solve(method, criterion=Criterion(1e-8))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-6, atol=1e-7)


def test_a_method_is_told_precision_limit_and_start() -> None:
    dense, b = case(10)
    seen: dict[str, Any] = {}

    def recorder(a: Any, right: Any, x0: Any = None, *, rtol: Any, atol: Any, maxiter: Any, own: int) -> Any:
        seen.update(x0=x0, rtol=rtol, atol=atol, maxiter=maxiter, own=own)
        return np.linalg.solve(a @ np.eye(10), right)

    start = np.ones(10)
    found = solve(dense, b, recorder, start=start, criterion=Criterion(1e-7, max_iterations=12), own=5)
    assert found.status is Status.CONVERGED
    assert found.iterations == 10
    assert seen == {"x0": start, "rtol": 1e-7, "atol": 0.0, "maxiter": 12, "own": 5}
    solve(dense, b, recorder, criterion=Criterion(1e-7, absolute=True), own=5)
    assert (seen["rtol"], seen["atol"], seen["x0"]) == (0.0, 1e-7, None)


def test_spsolve_is_a_method_too() -> None:
    dense, b = case(30)
    found = solve(dense, b, lambda a, right: spsolve(csr_matrix(a @ np.eye(30)), right))
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize(
    ("returned", "status"),
    [
        ((np.zeros(20), 0), Status.BREAKDOWN),
        ((np.zeros(20), 7), Status.MAX_ITERATIONS),
        ((np.zeros(20), -1), Status.BREAKDOWN),
        (np.full(20, np.nan), Status.DIVERGED),
    ],
)
def test_what_a_method_claims_is_not_believed(returned: Any, status: Status) -> None:
    dense, b = case(20)
    assert solve(dense, b, lambda a, right: returned).status is status


def test_a_method_that_gives_up_is_not_converged() -> None:
    dense, b = case(90)
    found = solve(dense, b, bicgstab, criterion=Criterion(1e-12, max_iterations=2))
    assert found.status is Status.MAX_ITERATIONS
    assert found.difference > 1e-12


@pytest.mark.parametrize(
    ("method", "storage"), each(["jacobi", "jor", "bicgstab"], ["msr", "cmsr-wl", "sell"])
)
def test_formats_are_solved_with_on_the_device(device: Device, storage: str, method: str) -> None:
    dense, b = case(70)
    off = -dense.copy()
    np.fill_diagonal(off, 0.0)
    matrix = CsrArrays.from_scipy(csr_matrix(off)).to_device(device)
    operator = ExplicitOperator(matrix, device, storage)
    xp = device.xp
    found = LinearSystem(operator, xp.asarray(np.diag(dense).copy()), xp.asarray(b)).solve(
        method, criterion=TIGHT
    )
    assert found.status is Status.CONVERGED
    assert isinstance(found.values, np.ndarray)
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-8, atol=1e-9)
    assert operator.nbytes > 0
    with pytest.raises(ValueError, match="storage: expected one of msr"):
        ExplicitOperator(matrix, device, "diagonal")


@pytest.mark.parametrize("omega", [1.0, 0.8])
def test_steps_are_those_of_the_reference(rng: np.random.Generator, omega: float) -> None:
    dense = banded(50)
    x, diagonal, b = rng.random(50), rng.uniform(1, 2, 50), rng.random(50)
    expected = dense @ x
    changes = relax_in_place(x, b, diagonal, omega, expected)
    for operator in (
        ExplicitOperator(CsrArrays.from_scipy(csr_matrix(dense))),
        FunctionOperator((50, 50), lambda v: dense @ v),
    ):
        out = np.empty(50)
        assert operator.jacobi_step(x, out, b, diagonal, omega) == pytest.approx(changes)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        np.testing.assert_allclose(operator.row_sums(), dense.sum(axis=1), rtol=1e-13)
        np.testing.assert_allclose(operator @ x, dense @ x, rtol=1e-13)


def test_methods_that_need_rows_find_those_of_an_operator_on_the_host() -> None:
    dense, b = case(40)
    system = split_system(csr_matrix(dense), b)
    expected = np.linalg.solve(dense, b)
    found = GaussSeidel(TIGHT).solve(system.matrix, system.diagonal, b, np.zeros(40))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, expected, rtol=1e-8, atol=1e-9)
    assert csr_of(system.matrix) is system.matrix.stored
    assert csr_of(FunctionOperator((40, 40), lambda v: dense @ v)) is None


@pytest.mark.parametrize("omega", [1.0, 0.8])
def test_steps_on_a_device_are_those_of_the_reference(
    device: Device, rng: np.random.Generator, omega: float
) -> None:
    dense, xp = banded(50), device.xp
    x, diagonal, b = rng.random(50), rng.uniform(1, 2, 50), rng.random(50)
    expected = dense @ x
    changes = relax_in_place(x, b, diagonal, omega, expected)
    for operator in (
        ExplicitOperator(CsrArrays.from_scipy(csr_matrix(dense)), device, "cmsr"),
        FunctionOperator((50, 50), lambda v: xp.asarray(dense) @ v, device),
    ):
        out = xp.empty(50)
        found = operator.jacobi_step(xp.asarray(x), out, xp.asarray(b), xp.asarray(diagonal), omega)
        assert found == pytest.approx(changes)
        np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-13)


def test_wrong_systems_are_refused() -> None:
    dense, b = case(8)
    with pytest.raises(ValueError, match="square one, got"):
        split_system(np.ones((2, 3)), [1.0, 2.0])
    with pytest.raises(ValueError, match="1 diagonal elements are zero"):
        split_system(np.array([[0.0, 1.0], [1.0, 2.0]]), [1.0, 2.0])
    with pytest.raises(ValueError, match="of one size"):
        split_system(dense, np.ones(5))
    with pytest.raises(ValueError, match="expected one of jacobi, jor, bicgstab or a callable, got 'lu'"):
        solve(dense, b, "lu")
    with pytest.raises(TypeError, match="only a callable method takes options"):
        solve(dense, b, "jacobi", restart=3)
    with pytest.raises(ValueError, match=r"a solution of shape \(8,\), got \(3,\)"):
        solve(dense, b, lambda a, right: np.ones(3))


def test_systems_of_one_state_and_of_none() -> None:
    assert solve(np.array([[4.0]]), [2.0], "jacobi").values.tolist() == [0.5]
    nothing = CsrArrays((0, 0), np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0))
    found = solve(nothing, np.zeros(0), "jacobi")
    assert (found.status, len(found.values), found.residual) == (Status.CONVERGED, 0, 0.0)


@pytest.mark.parametrize("name", ["gmres", "cgs"])
@pytest.mark.parametrize("form", ["hybrid", "msr", "cmsr-hwl", "csell"])
def test_solvers_of_the_devices_library_run_on_its_operators(device: Device, form: str, name: str) -> None:
    dense, b = case(70)
    off, xp = -dense.copy(), device.xp
    np.fill_diagonal(off, 0.0)
    operator: Any = inject(from_dense(off), backend="gpu")
    if form != "hybrid":
        operator = ExplicitOperator(CsrArrays.from_scipy(csr_matrix(off)), device, form)
    system = LinearSystem(operator, xp.asarray(np.diag(dense).copy()), xp.asarray(b))
    x = np.linspace(1.0, 2.0, 70)
    product = system.apply(xp.asarray(x))
    assert isinstance(product, xp.ndarray)
    np.testing.assert_allclose(to_numpy(product), dense @ x, rtol=1e-12)
    found = system.solve(krylov(device, name), criterion=Criterion(1e-9))
    assert found.status is Status.CONVERGED
    assert found.iterations > 0
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", ["jacobi", "bicgstab", "gmres"])
def test_a_whole_matrix_on_the_device_is_split_there(device: Device, method: str) -> None:
    dense, b = case(60)
    operator = inject(from_dense(dense), backend="gpu")
    system = split_system(operator, device.xp.asarray(b))
    assert system.matrix.device is device
    assert isinstance(system.diagonal, device.xp.ndarray)
    chosen = krylov(device, method) if method == "gmres" else method
    found = system.solve(chosen, criterion=Criterion(1e-9))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), rtol=1e-6, atol=1e-7)


def test_columns_of_a_solver_are_made_contiguous(device: Device) -> None:
    dense, b = case(40)
    off, xp = -dense.copy(), device.xp
    np.fill_diagonal(off, 0.0)
    operator = ExplicitOperator(CsrArrays.from_scipy(csr_matrix(off)), device, "msr")
    system = LinearSystem(operator, xp.asarray(np.diag(dense).copy()), xp.asarray(b))
    two = xp.asarray(np.stack((b, 2.0 * b), axis=1))
    np.testing.assert_allclose(to_numpy(system.as_linear_operator().matvec(two[:, 1])), dense @ (2.0 * b))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["gmres", "cgs"])
def test_solvers_of_cupy_run_on_the_device(name: str) -> None:
    import cupy
    import cupyx.scipy.sparse.linalg as linalg
    from cupyx.scipy.sparse import csr_matrix as device_matrix

    dense, b = case()
    found = solve(
        device_matrix(cupy.asarray(dense)), cupy.asarray(b), getattr(linalg, name), criterion=Criterion(1e-9)
    )
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(cupy.asnumpy(found.values), np.linalg.solve(dense, b), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("size", "seed"), [(40, 3), (60, 2)])
def test_bicgstab_starts_anew_before_its_residuals_become_orthogonal(size: int, seed: int) -> None:
    # A tree of coin tosses: nilpotent, and Krylov spaces end after as many steps as it has levels.
    dense = np.eye(size)
    b = np.zeros(size)
    wins = np.random.default_rng(seed)
    for state in range(size):
        for child, chance in ((2 * state + 1, 0.3), (2 * state + 2, 0.7)):
            if child < size:
                dense[state, child] -= chance
            else:
                b[state] += chance * (wins.random() < 0.3)
    found = solve(csr_matrix(dense), b, "bicgstab", criterion=TIGHT)
    assert found.status is Status.CONVERGED
    assert found.iterations <= 8
    np.testing.assert_allclose(found.values, np.linalg.solve(dense, b), atol=1e-10)
