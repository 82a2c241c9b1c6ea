"""IDR(s) with sweeps for products: the system they solve, the better order, bounds around exact values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid.matrix.space.direct as direct
import hybrid.matrix.space.swept as sweeps
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.cpu.threads import set_thread_count
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.host import HostSpace, space_of
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.swept import PROBES, SweptImages, SweptSystem, TriangularSweeps
from hybrid.solvers import AverageReward, Criterion, Optimistic
from tests.builders.closed_classes import exact_average, queue, random_class
from tests.builders.failing_recurrences import breaks, stagnates
from tests.builders.linear_systems import exact_solution, linear_system
from tests.builders.matrices import from_dense
from tests.exploring import rounds

SLACK = 64 * UNIT
HELD = ("explicit", "compressed", "submatrix")


def held(dense: np.ndarray, name: str) -> Any:
    """Return a matrix, written out, compressed, or as one submatrix of NumPy."""
    if name == "explicit":
        return CsrMatrix(csr_matrix(dense))
    matrix = from_dense(dense, n_bits=max(len(dense) - 1, 1).bit_length())
    if name == "submatrix":
        return inject(matrix, 0, backend="reference").prepare()
    return inject(matrix, backend="cpu").prepare()


def swept(matrix: Any, diagonal: np.ndarray, shape: np.ndarray | None = None) -> SweptSystem:
    found = space_of(matrix).system(diagonal, None).preconditioner(shape)
    assert isinstance(found, SweptSystem)
    return found


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("anchor", [None, 4])
def test_sweeps_multiply_with_a_matrix_that_has_the_same_solution(
    rng: np.random.Generator, name: str, anchor: int | None
) -> None:
    dense, diagonal, b = linear_system(rng, 40)
    space = space_of(held(dense, name))
    assert isinstance(space, HostSpace) and space.sweeps is not None
    images = SweptImages(space.passes, space.sweeps, diagonal, b, True, anchor)
    system = np.diag(diagonal) - dense
    if anchor is not None:
        system[:, anchor] += 1.0
    solution, out = np.linalg.solve(system, b), np.empty(40)
    images.residual(solution, out)
    np.testing.assert_allclose(out, 0.0, atol=1e-12)
    # The residual and the products are those of one matrix.
    x, image, other = rng.normal(size=40), np.empty(40), np.empty(40)
    images.residual(x, out)
    images.apply(solution - x, image)
    np.testing.assert_allclose(out, image, atol=1e-11)
    images.apply(2.0 * x, image)
    images.apply(x, other)
    np.testing.assert_allclose(image, 2.0 * other, atol=1e-11)
    assert images.made == 5


@pytest.mark.parametrize("name", HELD)
def test_the_order_is_that_in_which_more_jumps_are_followed(name: str) -> None:
    up = held(np.diag(np.full(199, 9.0), 1) + np.diag(np.full(199, 1.0), -1), name)
    down = held(np.diag(np.full(199, 1.0), 1) + np.diag(np.full(199, 9.0), -1), name)
    diagonal = np.full(200, 10.0)
    # Rows are solved after those that they lead to.
    assert swept(up, diagonal).descending
    assert not swept(down, diagonal).descending
    if name != "compressed":
        assert swept(up, diagonal).is_worth_it
        assert 9.0 < swept(up, diagonal).jumps < 10.0
        # Values that halve from row to row come from the other side: 9 / 2 up is 1 * 2 down no more.
        shape = 0.1 ** np.arange(200.0)
        assert not swept(up, diagonal, shape).descending


@pytest.mark.parametrize("name", ["explicit", "submatrix"])
def test_an_order_that_follows_nothing_is_not_worth_it(name: str) -> None:
    diagonal = np.full(9, 2.0)
    apart = np.zeros((9, 9))
    apart[0, 0] = 1.0
    nothing = swept(held(apart if name == "submatrix" else np.zeros((9, 9)), name), diagonal)
    assert (nothing.jumps, nothing.is_worth_it) == (1.0, False)
    # Nor is one whose jumps are not numbers.
    broken = swept(held(np.ones((9, 9)) - np.eye(9), name), np.zeros(9))
    assert not broken.is_worth_it


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("omega", [1.0, 0.7])
def test_triangles_are_solved_from_the_newest_values(
    rng: np.random.Generator, alone: bool, descending: bool, omega: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As row after row is; what lies on the diagonal is old. Another SciPy has no routines of its own."""
    if not alone:
        monkeypatch.setattr(direct, "scipy_alone", lambda *_: None)
    dense = np.where(rng.random((60, 60)) < 0.1, rng.random((60, 60)), 0.0)
    starts, (row, column) = np.append(0, np.cumsum((dense != 0).sum(axis=1))), np.nonzero(dense)
    found = TriangularSweeps(CsrArrays(dense.shape, starts, column, dense[row, column]))
    diagonal, b, x = dense.sum(axis=1) + 1.0, rng.random(60), rng.random(60)
    for right, less, scale in ((b, 0.25, 1.0), (None, 0.0, 1.0), (b, 0.0, 2.0)):
        own, expected, out = diagonal * scale, x.copy(), np.empty(60)
        for i in reversed(range(60)) if descending else range(60):
            term = dense[i] @ expected + (0.0 if right is None else right[i]) - less
            expected[i] = (1.0 - omega) * expected[i] + omega * term / own[i]
        found.sweep(x, right, own, out, less, omega, descending)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_sweeps_of_submatrices_are_of_a_whole_square_matrix(rng: np.random.Generator) -> None:
    dense, _, _ = linear_system(rng, 16)
    assert space_of(inject(from_dense(dense, n_bits=4), 2, backend="reference").prepare()).sweeps is None
    tasks = inject(from_dense(dense, n_bits=4), 0, backend="reference", representation="tasks").prepare()
    assert space_of(tasks).sweeps is None


def test_a_residual_is_that_of_the_system_as_it_is(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 30)
    space, start = space_of(held(dense, "explicit")), rng.random(30)
    found = swept(held(dense, "explicit"), diagonal).idr(b, start, 0.0, 7)
    wanted = (b + dense @ start - start[7]) / diagonal - start
    np.testing.assert_allclose(found.plain_residual(), wanted, atol=1e-13)
    assert found.products == 1
    found.restart()
    assert found.products == 2
    ordinary = space.system(diagonal, b).idr(start, 0.0)
    assert isinstance(ordinary, IDR)
    assert ordinary.plain_residual() is ordinary.r


@pytest.mark.parametrize("name", HELD)
def test_averages_lie_between_the_bounds(rng: np.random.Generator, name: str) -> None:
    for k in range(rounds(40)):
        size = int(rng.integers(2, 40))
        rates = random_class(rng, size) if k % 2 else queue(size, *rng.uniform(0.5, 2.0, 2))
        rewards = rng.normal(size=len(rates))
        found = AverageReward(Criterion(1e-8, max_iterations=5000)).solve(
            held(rates, name), rates.sum(axis=1), rewards, 1e-14
        )
        value = exact_average(rates, rewards)
        slack = 1e-9 * (1.0 + abs(value))  # of the least squares
        assert found.lower - slack <= value <= found.upper + slack
        assert found.status in (Status.CONVERGED, Status.MAX_ITERATIONS)


@pytest.mark.parametrize("name", HELD)
def test_averages_take_fewer_products(name: str) -> None:
    side = 40
    forth, back = queue(side - 1, 1.0, 1.2), np.eye(side)
    rates = np.kron(forth, back) + np.kron(back, forth)
    rewards = np.arange(float(side * side))
    matrix = held(rates, name)
    quick = AverageReward().solve(matrix, rates.sum(axis=1), rewards, 1e-14)
    # By products alone, of the same matrix.
    plain = AverageReward().solve(Plain(csr_matrix(rates)), rates.sum(axis=1), rewards, 1e-14)
    assert quick.status is plain.status is Status.CONVERGED
    assert quick.products < plain.products
    assert quick.lower <= plain.upper and plain.lower <= quick.upper


class Plain(CsrMatrix):
    """Without sweeps."""

    sweeps = None  # type: ignore[assignment]


class Counting(CsrMatrix):
    """Counts its products and sweeps."""

    made = 0

    def multiply(self, x: Any, out: Any = None) -> Any:
        self.made += 1
        return super().multiply(x, out)

    def sweeps(self) -> Any:
        found = super().sweeps()
        own = found.sweep

        def sweep(*arguments: Any, **options: Any) -> None:
            self.made += 1
            own(*arguments, **options)

        found.sweep = sweep  # type: ignore[method-assign]
        return found


def test_sweeps_count_as_products(rng: np.random.Generator) -> None:
    rates = queue(50, 1.0, 1.1)
    matrix = Counting(csr_matrix(rates))
    found = AverageReward().solve(matrix, rates.sum(axis=1), rng.random(51), 1e-14)
    assert found.products == matrix.made > found.iterations > PROBES
    dense, diagonal, b = slow(60)
    other = Counting(csr_matrix(dense))
    bounded = Optimistic(krylov="always").solve(other, diagonal, b, SLACK, None)
    assert bounded.products == other.made > bounded.iterations


@pytest.mark.parametrize("fails", [breaks, stagnates])
def test_where_sweeps_fail_the_steps_go_on(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, fails: Any
) -> None:
    rates, rewards = queue(30, 1.0, 1.5), rng.random(31)
    monkeypatch.setattr(sweeps, "IDR", type("Failing", (IDR,), {"cycles": 10, "advance": fails}))
    found = AverageReward().solve(held(rates, "explicit"), rates.sum(axis=1), rewards, 1e-14)
    assert found.status is Status.CONVERGED
    value = exact_average(rates, rewards)
    assert found.lower - 1e-9 <= value <= found.upper + 1e-9
    # Nothing is left of what has failed: the steps are the same ones, and may be measured a few later.
    plain = AverageReward().solve(Plain(csr_matrix(rates)), rates.sum(axis=1), rewards, 1e-14)
    assert (found.lower, found.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-8)
    assert found.iterations <= plain.iterations + 200


def test_there_are_none_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("nothing is swept")

    monkeypatch.setattr(SweptSystem, "idr", refused)
    rates, rewards = queue(30, 1.0, 1.5), np.arange(31.0)
    for options in ({"krylov": "never"}, {"krylov": "always", "recurrence": "bicgstab"}):
        method = AverageReward(**options)  # type: ignore[arg-type]
        found = method.solve(held(rates, "explicit"), rates.sum(axis=1), rewards, 1e-14)
        assert found.status is Status.CONVERGED


def slow(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A walk on a grid that is long on its way: IDR(s) takes more than a few products for it."""
    dense = queue(size - 1, 1.0, 0.9)
    b = np.zeros(size)
    b[-1] = 1.0
    return dense, dense.sum(axis=1) + b, b


@pytest.mark.parametrize("name", HELD)
def test_bounds_hold_by_sweeps(name: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    used = []
    own = SweptSystem.idr
    monkeypatch.setattr(SweptSystem, "idr", lambda self, *a: used.append(self.descending) or own(self, *a))
    monkeypatch.setattr("hybrid.solvers.krylov_bounds._BRIEF", 1)
    monkeypatch.setattr("hybrid.matrix.space.swept._WORTH", 0.0)
    systems = [slow(60), *(linear_system(rng, 25) for _ in range(8))]
    for dense, diagonal, b in systems:
        found = Optimistic(krylov="always").solve(held(dense, name), diagonal, b, SLACK, None)
        assert found.status is Status.CONVERGED
        exact = exact_solution(dense, diagonal, b)
        bounds = zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True)
        assert all(low <= x <= high for low, x, high in bounds)
    assert used


def test_a_few_products_may_do(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 25)
    monkeypatch.setattr(SweptSystem, "idr", lambda *_: pytest.fail("swept"))
    found = Optimistic(krylov="always").solve(held(dense, "explicit"), diagonal, b, SLACK, None)
    assert found.status is Status.CONVERGED


def test_averages_have_the_same_bits_with_any_number_of_threads(rng: np.random.Generator) -> None:
    side = 160
    forth, still = csr_matrix(queue(side - 1, 1.0, 1.3)), csr_matrix(np.eye(side))
    from scipy.sparse import kron

    rates = csr_matrix(kron(forth, still) + kron(still, forth))
    rewards, found = rng.random(side * side), []
    for threads in (1, 2, 5):
        set_thread_count(threads)
        try:
            diagonal = np.asarray(rates.sum(axis=1)).ravel()
            result = AverageReward().solve(CsrMatrix(rates), diagonal, rewards, 1e-14)
        finally:
            set_thread_count(None)
        found.append((result.lower, result.upper, result.iterations))
    assert len(set(found)) == 1
