"""Bounds around direct solutions: long walks, whose values are known in closed form."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import hybrid
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.space import direct
from hybrid.matrix.space.base import Clock, Criterion, Status
from hybrid.matrix.space.bellman import DirectedSystem, LowerIterationState
from hybrid.matrix.space.direct import FactoredSystem, SlenderSystem, factored_system
from hybrid.solvers import Optimistic
from hybrid.solvers.direct_bounds import DirectBounds

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
UNIT = 2.0**-53

WALK = """dtmc
const int N;
module walk
  x : [0..N] init 1;
  [] x>0 & x<N -> 0.5:(x'=x+1) + 0.5:(x'=x-1);
  [] x=0 | x=N -> true;
endmodule
rewards "steps" true : 1; endrewards
"""


def walk(n: int) -> tuple[CsrMatrix, np.ndarray]:
    """Return the inner states of a walk between 0 and n that ends at both, and its row sums with the ends."""
    half = np.full(n - 2, 0.5)
    return CsrMatrix(csr_array(diags_array([half, half], offsets=[-1, 1]))), np.ones(n - 1)


def test_a_walk_is_enclosed_by_factors_where_steps_do_not_end():
    n = 6000
    matrix, diagonal = walk(n)
    b = np.zeros(n - 1)
    b[-1] = 0.5
    found = Optimistic(Criterion(1e-6)).solve(matrix, diagonal, b, 4 * UNIT, 1.0)
    assert found.status is Status.CONVERGED and found.iterations < 20_000
    exact = [Fraction(k + 1, n) for k in range(0, n - 1, 97)]
    for value, low, high in zip(exact, found.lower[::97], found.upper[::97], strict=True):
        assert Fraction(low) <= value <= Fraction(high)
    assert float(np.max((found.upper - found.lower) / found.lower)) <= 1e-6
    never = Optimistic(Criterion(1e-6, max_iterations=20_000), krylov="never").solve(
        matrix, diagonal, b, 4 * UNIT, 1.0
    )
    assert never.status is not Status.CONVERGED


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
def test_a_walk_of_a_model(tmp_path, engine):
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    n = 4000
    model = hybrid.load(path, constants={"N": n})
    for text, exact in (("P=? [ F x=N ]", Fraction(1, n)), ('R{"steps"}=? [ F x=0 | x=N ]', Fraction(n - 1))):
        answer = hybrid.check(model, text, engine=engine, backend="cpu")
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
        assert answer.upper - answer.lower <= 1e-5 * float(exact)


K = 48


# What the values tend to as K grows; for this K they differ by less than a unit of rounding.
@pytest.mark.parametrize(
    ("engine", "text", "exact"),
    [
        ("hybrid", 'Pmin=? [ F "all_heads" ]', Fraction(2 * K - 1, 4 * K)),
        ("explicit", 'Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]', Fraction(1, 4 * K)),
        ("explicit", 'R{"steps"}min=? [ F "decided" ]', Fraction(12 * K**2)),
        ("hybrid", 'R{"steps"}max=? [ F "decided" ]', Fraction(3 * (2 * K + 1) ** 2)),
    ],
)
def test_a_shared_coin_is_a_long_walk(engine, text, exact):
    model = hybrid.load(EXAMPLES / "coin.prism", constants={"K": K})
    answer = hybrid.check(model, text, engine=engine, backend="cpu")
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-6 * float(exact)


@pytest.mark.parametrize("n", [300, 900])
def test_solutions_of_a_band_whatever_its_order(rng, n):
    places = rng.permutation(n)
    rows = np.repeat(places, 4)
    columns = places[np.clip(np.repeat(np.arange(n), 4) + np.tile([-2, -1, 1, 2], n), 0, n - 1)]
    matrix = csr_array((rng.uniform(0.0, 0.2, 4 * n), (rows, columns)), shape=(n, n))
    exact, diagonal = rng.uniform(1.0, 2.0, n), np.ones(n)
    system = factored_system(CsrArrays.from_scipy(matrix), diagonal, diagonal * exact - matrix @ exact)
    found = system.solve(system.b)
    assert found is not None
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    if n > 512:
        # Reverse Cuthill-McKee finds the band again, and factors stay within it.
        assert system.nanoseconds <= 2.0 * n * 25.0
        assert system.nbytes >= 12.0 * (system._factors.L.nnz + system._factors.U.nnz)


@pytest.mark.parametrize("n", [2, 1000])
def test_singular_equations_have_no_solution(n):
    ring = csr_array((np.ones(n), (np.arange(n), np.roll(np.arange(n), 1))), shape=(n, n))
    assert factored_system(CsrArrays.from_scipy(ring), np.ones(n), np.ones(n)).solve(np.ones(n)) is None


def corridor(rng: np.random.Generator, n: int) -> csr_array:
    """Return a walk between neighbours, at places in any order."""
    places, steps = rng.permutation(n), np.arange(n)
    rows, columns = np.repeat(places, 2), places[np.clip(np.repeat(steps, 2) + np.tile([-1, 1], n), 0, n - 1)]
    return csr_array((np.full(2 * n, 0.49), (rows, columns)), shape=(n, n))


def scattered(rng: np.random.Generator, n: int) -> csr_array:
    """Return rows of two entries anywhere."""
    rows, columns = np.repeat(np.arange(n), 2), rng.integers(0, n, 2 * n)
    return csr_array((np.full(2 * n, 0.49), (rows, columns)), shape=(n, n))


@pytest.mark.parametrize("is_alone", [True, False])
def test_solutions_of_a_corridor_by_slender_factors(rng, monkeypatch, is_alone):
    if not is_alone:
        monkeypatch.setattr(direct, "scipy_alone", lambda *path: None)
    else:
        monkeypatch.delitem(sys.modules, "scipy.sparse")
    n = 9000
    matrix = corridor(rng, n)
    rows, exact = CsrArrays.from_scipy(matrix), rng.uniform(1.0, 2.0, n)
    assert SlenderSystem.suits(rows)
    system = factored_system(rows, np.ones(n), exact - matrix @ exact, is_slender=True)
    assert isinstance(system, SlenderSystem)
    found = system.solve(system.b)
    assert found is not None
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    assert system.nbytes >= 12.0 * system._factors.nnz


def test_factors_without_narrow_cuts_are_not_made_or_given_up(rng):
    rows = CsrArrays.from_scipy(scattered(rng, 9000))
    assert not SlenderSystem.suits(rows)
    rows = CsrArrays.from_scipy(scattered(rng, 4000))
    assert SlenderSystem.suits(rows)
    assert factored_system(rows, np.ones(4000), np.ones(4000), is_slender=True).solve(np.ones(4000)) is None


def test_a_ring_has_no_slender_factors():
    n = 1000
    ring = csr_array((np.ones(n), (np.arange(n), np.roll(np.arange(n), 1))), shape=(n, n))
    system = factored_system(CsrArrays.from_scipy(ring), np.ones(n), np.ones(n), is_slender=True)
    assert system.solve(np.ones(n)) is None


COIN = {"K": 90}  # 12,000 states or so


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ('Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]', Fraction(1, 4 * COIN["K"])),
        ('R{"steps"}min=? [ F "decided" ]', Fraction(12 * COIN["K"] ** 2)),
    ],
)
def test_policies_of_many_states_are_solved_before_code_is_loaded(monkeypatch, text, exact):
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "none is asked for")
    model = hybrid.load(EXAMPLES / "coin.prism", constants=COIN)
    assert model.n_states > 10_000
    answer = hybrid.check(model, text, engine="auto", epsilon=1e-6)
    assert answer.record()["backend"] == "reference" and answer.statistics.iterations < 400
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-6 * float(exact)


def directly(operator: DirectedSystem, epsilon: float = 1e-9) -> tuple[float, np.ndarray, np.ndarray]:
    """Return what is found before any step: the width and both bounds."""
    x, y, spare = np.zeros((3, operator.size))
    accelerator = DirectBounds(operator, Criterion(epsilon), None, first=True)
    held = LowerIterationState(x, y, None, spare, 0, None, lambda: ({}, {}))
    assert accelerator.budget(held, math.inf) == math.inf
    accelerator.solve(held, math.inf, 100, Clock(None))
    return accelerator.width, x, y


def short_walk() -> DirectedSystem:
    """Return the twelve inner states of a walk, whose end is worth 1."""
    matrix, diagonal = walk(13)
    return DirectedSystem(matrix, diagonal, np.append(np.zeros(11), 0.5), 64 * UNIT, 8)


def off_by(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Have all that factors solve come out too great by a share of it."""
    own = FactoredSystem.solve

    def solve(self: FactoredSystem, b: np.ndarray) -> np.ndarray | None:
        found = own(self, b)
        return None if found is None else found * (1.0 + share)

    monkeypatch.setattr(FactoredSystem, "solve", solve)


# lemma: around-a-guess
@pytest.mark.parametrize("share", [-1e-12, 1e-12])
def test_bounds_hold_on_either_side_of_a_solution_that_is_off(monkeypatch, share):
    off_by(monkeypatch, share)
    width, x, y = directly(short_walk())
    assert width <= 1e-9
    for k, (low, high) in enumerate(zip(x.tolist(), y.tolist(), strict=True), start=1):
        assert Fraction(low) < Fraction(k, 13) < Fraction(high)


def test_only_rounding_excuses_bounds_that_are_wider_than_epsilon(monkeypatch):
    off_by(monkeypatch, 1e-6)
    assert directly(short_walk())[0] == math.inf


# lemma: next-to-underflow
def test_values_that_underflow_have_no_bounds_by_factors():
    matrix = CsrMatrix(csr_array(np.diag([1e-200, 1e-200], 1)))
    operator = DirectedSystem(matrix, np.ones(3), np.array([0.0, 0.0, 0.5]), 64 * UNIT, 8)
    width, x, _ = directly(operator)
    assert width == math.inf and not x.any()


# lemma: next-to-underflow
def test_what_underflow_adds_counts_where_values_are_near_to_it(monkeypatch):
    operator, told = short_walk(), []
    operator.negligible, verifies = 10.0, operator.verifies

    def noted(*arguments):
        told.append(arguments[3])
        return verifies(*arguments)

    monkeypatch.setattr(operator, "verifies", noted)
    assert directly(operator)[0] <= 1e-9
    assert [positive.tolist() for positive in told] == [[1.0] * 12]
