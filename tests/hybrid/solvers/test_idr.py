"""IDR(s): passes on all cores and in plain NumPy, properties of the recurrence, the ways in which it ends."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.base.operands import PIECE
from hybrid.matrix.cpu.passes import CpuPasses
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.idr import IDR, Space
from hybrid.matrix.space.passes import DIRECTIONS, NumPyPasses, signs
from tests.builders.linear_systems import Dense, linear_system


def recurrence(
    dense: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    start: np.ndarray,
    limit: float = 1e-12,
    weights: np.ndarray | None = None,
) -> IDR:
    found = space_of(Dense(dense)).system(diagonal, b).idr(start, limit, None, weights)
    assert isinstance(found, IDR)
    return found


def test_signs_are_shared_out_evenly_and_alone() -> None:
    found = signs(0, 1 << 16)
    assert set(np.unique(found)) == {-1.0, 1.0}
    products = found @ found.T / found.shape[1]
    np.testing.assert_allclose(products, np.eye(DIRECTIONS), atol=0.02)
    assert np.abs(found.mean(axis=1)).max() < 0.02
    # No shadow repeats itself, as models do.
    for shift in (1, 2, 3, 7, 16, 64, 256, 1000, 4096):
        assert np.abs((found[:, shift:] * found[:, :-shift]).mean(axis=1)).max() < 0.03
    np.testing.assert_array_equal(signs(500, 600), found[:, 500:600])
    # Rows beyond 2^32 have signs, too.
    assert signs(2**32 + 5, 2**32 + 9).tolist() == found[:, 5:9].tolist()


@pytest.mark.parametrize("size", [1, 1000, 3 * PIECE + 17])
@pytest.mark.parametrize("weighed", [False, True])
def test_passes_on_all_cores_are_those_in_numpy(rng: np.random.Generator, size: int, weighed: bool) -> None:
    ours, plain = CpuPasses(), NumPyPasses()
    x, t, weights = rng.normal(size=(3, size))
    scale = weights if weighed else None
    np.testing.assert_allclose(ours.shadow_sums(x, scale), plain.shadow_sums(x, scale), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        ours.step_sums(t, x, scale), plain.step_sums(t, x, scale), rtol=1e-9, atol=1e-9
    )
    vectors = [*rng.normal(size=(2, DIRECTIONS, size)), *rng.normal(size=(2, size))]
    shares, taken = rng.uniform(-1.0, 1.0, (2, DIRECTIONS))
    betas = rng.uniform(-1.0, 1.0, DIRECTIONS)
    results = []
    for passes in (ours, plain):
        u, g, r, y = (vector.copy() for vector in vectors)
        passes.aim(0, shares, 0.7, r, u, g)
        for k in range(DIRECTIONS):
            passes.settle(k, taken, betas, shares, 0.7, u, g, r, y)
        passes.step(0.4, t, r, y)
        results.append((u, g, r, y))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_residual_is_orthogonal_to_more_and_more_shadows(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 60)
    ours = recurrence(dense, diagonal, b, np.zeros(60))
    ours.restart()
    a, right, shadow = np.eye(60) - dense / diagonal[:, None], b / diagonal, signs(0, 60)
    for _ in range(3):
        before = ours.products
        standing = ours.advance(1)
        # One more where a fresh residual was due.
        assert ours.products - before - ours.cost in (0, 1)
        # The residual that is kept is that of x, and the images are those of the directions.
        np.testing.assert_allclose(ours.r, right - a @ ours.x, atol=1e-12)
        assert standing.norm == pytest.approx(np.linalg.norm(ours.r), rel=1e-12)
        np.testing.assert_allclose(ours._u @ a.T, ours._g, atol=1e-9)
        # Image k is orthogonal to the shadows before number k.
        angles = shadow @ ours._g.T / np.linalg.norm(ours._g, axis=1)
        np.testing.assert_allclose(np.triu(angles, 1), 0.0, atol=1e-9)


def test_small_systems_end_within_their_size(rng: np.random.Generator) -> None:
    # In exact arithmetic after n + n / s products.
    for size in (1, 2, 5, 12, 20):
        dense, diagonal, b = linear_system(rng, size)
        ours = recurrence(dense, diagonal, b, np.zeros(size), limit=1e-9)
        ours.restart()
        standing = ours.advance(1)
        while not standing.ended:
            standing = ours.advance(1)
        assert ours.products <= 2 * (size + size // DIRECTIONS + DIRECTIONS + 1)
        exact = np.linalg.solve(np.diag(diagonal) - dense, b)
        np.testing.assert_allclose(ours.x, exact, rtol=1e-6)


def test_weights_are_a_change_of_variables(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 30)
    scale = 10.0 ** rng.uniform(-1, 1, 30)
    weighed = recurrence(dense, diagonal, b, np.zeros(30), weights=1.0 / scale)
    changed = recurrence(dense * scale / scale[:, None], diagonal, b / scale, np.zeros(30))
    assert weighed.restart() == pytest.approx(changed.restart(), rel=1e-12)
    assert weighed.advance(1).norm == pytest.approx(changed.advance(1).norm, rel=1e-6)
    np.testing.assert_allclose(weighed.x / scale, changed.x, rtol=1e-6)


def test_ended_recurrences_stay_where_they_are(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 20)
    start = rng.random(20)
    kept = start.copy()
    ours = recurrence(dense, diagonal, b, start, limit=1e-6)
    assert ours.advance(1).iterations == 0
    ours.restart()
    standing = ours.advance(1)
    while not standing.ended:
        standing = ours.advance(1)
    assert not standing.broken and standing.norm < 1e-6
    x, made = ours.x.copy(), ours.products
    assert ours.advance(1) == standing
    assert ours.x.tolist() == x.tolist() and ours.products == made
    assert start.tolist() == kept.tolist()
    assert ours.restart() < 2e-6


ENDS = {
    # The first direction is in the kernel of I - M.
    "a kernel": ([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0]),
    "no number": ([[0.0, 1e200], [1e200, 0.0]], [1e200, 1e200]),
    "infinite": ([[0.0, 1.0], [1.0, 0.0]], [np.inf, 1.0]),
    # r = b is orthogonal to its image: the cosine that chooses omega is zero.
    "zero": ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]),
}


@pytest.mark.parametrize("name", ENDS)
def test_ways_to_break_down(name: str) -> None:
    matrix, b = ENDS[name]
    ours = recurrence(np.array(matrix), np.ones(2), np.array(b), np.zeros(2))
    with np.errstate(over="ignore", invalid="ignore"):
        ours.restart()
        standing = ours.advance(1)
    assert standing.ended and standing.broken


def test_residuals_that_grow_beyond_all_digits_break_down(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 30)
    ours = recurrence(dense, diagonal, b, np.zeros(30))
    ours.restart()
    ours._first = 1e-300
    standing = ours.advance(1)
    assert standing.ended and standing.broken


def test_numbers_of_a_space() -> None:
    space = Space()
    space.begin(np.array([1.0, 2.0, 3.0, 4.0]))
    assert space.shares(0).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert space.take(0, np.array([0.0, 1.0, 1.0, 1.0])) is None
    assert space.take(0, np.array([np.nan, 1.0, 1.0, 1.0])) is None
    assert space.take(0, np.array([2.0, np.inf, 1.0, 1.0])) is None
    assert not space.step(1.0, 0.0, 1.0)
    assert not space.step(0.0, 1.0, 1.0)
    assert not space.step(np.nan, 1.0, 1.0)
    assert not space.step(1.0, np.inf, 1.0)
    # A small cosine makes omega greater: 0.35 / 0.35 * 0.7.
    assert space.step(0.35, 1.0, 1.0) and space.omega == pytest.approx(0.7)
    assert space.step(0.9, 1.0, 1.0) and space.omega == pytest.approx(0.9)
