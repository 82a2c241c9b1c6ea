"""IDR(1) against BiCGStab written down plainly, and the ways in which it ends."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.space.base import PART, parts
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.idr import BICGSTAB_VECTORS, IDR
from tests.builders.linear_systems import Dense, linear_system


def recurrence(
    dense: np.ndarray, diagonal: np.ndarray, b: np.ndarray, start: np.ndarray, limit: float = 1e-12
) -> IDR:
    found = space_of(Dense(dense)).system(diagonal, b).idr(start, limit, directions=1)
    assert isinstance(found, IDR)
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
        shape = size, size

        def multiply(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            return np.multiply(values, x, out=out)

    ours = space_of(Diagonal(np.zeros((1, 1)))).system(np.ones(size), np.ones(size))
    found = ours.idr(np.zeros(size), 1e-12, directions=1)
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
    # The direction is in the kernel of I - M: no step along it.
    "a kernel": ([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0], [0.0, 0.0], True),
    # The norm of the residual is infinite.
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
    made = 0 if name == "no number" else 1
    assert (standing.iterations, standing.ended, standing.broken) == (made, True, broken)
    if name == "omega":
        assert ours.x.tolist() == [1.0, 0.0]
    if not broken:
        np.testing.assert_allclose(np.array(matrix) @ ours.x + b, ours.x)


def test_a_residual_orthogonal_to_the_shadow_gets_another_one() -> None:
    # A shift: after one cycle nothing is left of the first residual.
    size = 12
    shift, b = np.roll(np.eye(size), 1, axis=1), np.eye(size)[0]
    ours = recurrence(shift, np.full(size, 1.3), b, np.zeros(size), limit=1e-9)
    ours.restart()
    first, standing = ours._shadow.copy(), ours.advance(1)
    begun = 0
    while not standing.ended:
        assert standing.iterations < 60
        begun += ours.products - ours.cost * standing.iterations > 1 + begun
        standing = ours.advance(1)
    assert begun and not standing.broken and ours._shadow.tolist() != first.tolist()
    np.testing.assert_allclose(ours.x, np.linalg.solve(1.3 * np.eye(size) - shift, b), rtol=1e-6)


def test_vectors_are_as_many_as_are_counted(rng: np.random.Generator) -> None:
    ours = recurrence(*linear_system(rng, 8), np.zeros(8))
    held = {id(x): x.size // 8 for x in vars(ours).values() if isinstance(x, np.ndarray)}
    assert sum(held.values()) == BICGSTAB_VECTORS
