"""BiCGStab's recurrence on the host against one written down plainly, and the ways in which it ends."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.space.base import PART, parts
from hybrid.matrix.space.host import workspace_of
from hybrid.matrix.space.idr import HostBiCGStab
from tests.builders.linear_systems import Dense, linear_system

ORTHOGONAL = 1e-8


def recurrence(
    dense: np.ndarray, diagonal: np.ndarray, b: np.ndarray, start: np.ndarray, limit: float = 1e-12
) -> HostBiCGStab:
    found = workspace_of(Dense(dense)).system(diagonal, b).bicgstab(start, limit, ORTHOGONAL)
    assert isinstance(found, HostBiCGStab)
    return found


def plainly(a: np.ndarray, right: np.ndarray, x: np.ndarray, count: int) -> list[tuple[np.ndarray, float]]:
    """Iterates and norms of the residuals, after van der Vorst."""
    r = right - a @ x
    shadow, p, found = r, r, []
    for _ in range(count):
        v = a @ p
        alpha = (shadow @ r) / (shadow @ v)
        s = r - alpha * v
        t = a @ s
        omega = (t @ s) / (t @ t)
        x = x + alpha * p + omega * s
        following = s - omega * t
        beta = (shadow @ following) / (shadow @ r) * alpha / omega
        p, r = following + beta * (p - omega * v), following
        found.append((x, float(np.linalg.norm(r))))
    return found


def test_iterations_are_those_of_the_textbook(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 50)
    start = rng.random(50)
    kept = start.copy()
    a, right = np.eye(50) - dense / diagonal[:, None], b / diagonal
    ours = recurrence(dense, diagonal, b, start)
    assert ours.restart() == pytest.approx(np.linalg.norm(right - a @ start), rel=1e-12)
    for made, (x, norm) in enumerate(plainly(a, right, start, 5), start=1):
        standing = ours.advance(7)
        assert standing == (made, pytest.approx(norm, rel=1e-6), False, False)
        np.testing.assert_allclose(ours.x, x, rtol=1e-8)
    assert start.tolist() == kept.tolist()
    # A fresh beginning keeps the count.
    assert ours.restart() == pytest.approx(norm, rel=1e-6)
    assert ours.advance(1).iterations == 6


def test_long_vectors_are_worked_on_in_parts() -> None:
    size = 2 * PART + 5
    assert [(part.start, part.stop) for part in parts(size)] == [
        (0, PART),
        (PART, 2 * PART),
        (2 * PART, size),
    ]
    values = np.linspace(0.0, 0.9, size)

    class Diagonal(Dense):
        def multiply(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            return np.multiply(values, x, out=out)

    ours = workspace_of(Diagonal(np.zeros((1, 1)))).system(np.ones(size), np.ones(size))
    found = ours.bicgstab(np.zeros(size), 1e-12, ORTHOGONAL)
    found.restart()
    a = 1.0 - values
    x, r, p = np.zeros(size), np.ones(size), np.ones(size)
    v = a * p
    alpha = (r @ r) / (r @ v)
    s = r - alpha * v
    t = a * s
    omega = (t @ s) / (t @ t)
    found.advance(1)
    np.testing.assert_allclose(found.x, x + alpha * p + omega * s, rtol=1e-12)


def test_ended_recurrences_stay_where_they_are(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng, 10)
    ours = recurrence(dense, diagonal, b, np.zeros(10), limit=1e-6)
    ours.restart()
    standing = ours.advance(1)
    while not standing.ended:
        standing = ours.advance(1)
    assert not standing.broken
    assert standing.norm < 1e-6
    x = ours.x.copy()
    assert ours.advance(1) == standing
    assert ours.x.tolist() == x.tolist()
    # One that begins at the end has arrived.
    assert ours.restart() < 2e-6


ENDS = {
    # The direction is in the kernel of I - M, or becomes infinite: no step along it.
    "a kernel": ([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0], [0.0, 0.0], True),
    "no number": ([[0.0, 1e200], [1e200, 0.0]], [1e200, 1e200], [0.0, 0.0], True),
    # Without entries the first step arrives, and t has no length.
    "no entries": ([[0.0, 0.0], [0.0, 0.0]], [1.0, 2.0], [0.0, 0.0], False),
    # A rotation by a right angle takes the direction to one that is orthogonal to the shadow.
    "a rotation": ([[1.0, -1.0], [1.0, 1.0]], [1.0, 0.0], [0.0, 0.0], True),
    # After half a step r is (0, -1) and t is (-1, 0), so that omega is zero.
    "omega": ([[0.0, -1.0], [-1.0, 1.0]], [1.0, 0.0], [0.0, 0.0], True),
}


@pytest.mark.parametrize("name", ENDS)
def test_ways_to_end(name: str) -> None:
    matrix, b, start, broken = ENDS[name]
    ours = recurrence(np.array(matrix), np.ones(2), np.array(b), np.array(start))
    with np.errstate(over="ignore", invalid="ignore"):
        ours.restart()
        standing = ours.advance(1)
    assert (standing.iterations, standing.ended, standing.broken) == (1, True, broken)
    if name == "omega":
        assert ours.x.tolist() == [1.0, 0.0]
    if not broken:
        np.testing.assert_allclose(np.array(matrix) @ ours.x + b, ours.x)
