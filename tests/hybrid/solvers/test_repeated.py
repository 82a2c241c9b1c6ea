"""Several damped steps for a product, on the host: the system they solve, where both recurrences arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybrid.matrix.explicit import CsrArrays, ExplicitOperator
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.repeated import OMEGA, STEPS, RepeatedIDR, RepeatedSystem
from tests.builders.linear_systems import linear_system

scipy_sparse = pytest.importorskip("scipy.sparse")

ANCHORS = [None, 7]


def anchored(dense: np.ndarray, diagonal: np.ndarray, anchor: int | None) -> np.ndarray:
    """The matrix of the system."""
    system = np.diag(diagonal) - dense
    if anchor is not None:
        system[:, anchor] += 1.0
    return system


def repeated_of(dense: np.ndarray, diagonal: np.ndarray, b: np.ndarray) -> tuple[Any, RepeatedSystem]:
    matrix = ExplicitOperator(CsrArrays.from_scipy(scipy_sparse.csr_matrix(dense)))
    space = space_of(matrix)
    system: Any = space.system(diagonal, b)
    found = system.repeated()
    assert isinstance(found, RepeatedSystem)
    return system, found


@pytest.mark.parametrize("anchor", ANCHORS)
def test_images_are_those_of_several_steps(anchor: int | None, rng: np.random.Generator) -> None:
    size = 40
    dense, diagonal, b = linear_system(rng, size)
    system, found = repeated_of(dense, diagonal, b)
    x = rng.normal(size=size)
    weight = OMEGA / diagonal.max()
    step = np.eye(size) - weight * (np.diag(diagonal) - dense)
    power = np.linalg.matrix_power(step, STEPS)
    summed = weight * sum(np.linalg.matrix_power(step, k) for k in range(STEPS))
    whole = np.eye(size) - power
    if anchor is not None:
        whole[:, anchor] += summed @ np.ones(size)
    for right, own in ((None, b), (rng.random(size), None)):
        recurrence = found.idr(right, x, 0.0, anchor)
        recurrence.restart()
        assert recurrence.products == STEPS * (1 + (anchor is not None))
        wanted = summed @ (own if right is None else right) - whole @ x
        np.testing.assert_allclose(recurrence.r, wanted, rtol=1e-11, atol=1e-12)
        image = np.empty(size)
        recurrence._images.apply(x, image)
        np.testing.assert_allclose(image, whole @ x, rtol=1e-11, atol=1e-12)
        made = recurrence.products
        plain = (b if right is None else right) - anchored(dense, diagonal, anchor) @ x
        np.testing.assert_allclose(recurrence.plain_residual(), plain / diagonal, rtol=1e-11, atol=1e-12)
        assert recurrence.products == made + 1


@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize("is_weighed", [False, True])
def test_both_recurrences_arrive_where_the_system_is_solved(
    anchor: int | None, is_weighed: bool, rng: np.random.Generator
) -> None:
    dense, diagonal, b = linear_system(rng, 60)
    _, found = repeated_of(dense, diagonal, b)
    start, weights = rng.random(60), rng.random(60) + 0.5 if is_weighed else None
    exact, kept = np.linalg.solve(anchored(dense, diagonal, anchor), b), start.copy()
    for recurrence in (
        found.idr(None, start, 1e-11, anchor, weights),
        found.idr(None, start, 1e-11, anchor, weights, directions=1),
    ):
        assert isinstance(recurrence, RepeatedIDR)
        assert recurrence.cost == STEPS * (len(recurrence._u) + 1)
        recurrence.restart()
        standing = recurrence.advance(1)
        while not standing.ended:
            assert recurrence.products < 20_000
            standing = recurrence.advance(1)
        assert not standing.broken
        np.testing.assert_allclose(recurrence.x, exact, rtol=1e-8)
    assert start.tolist() == kept.tolist()


def test_without_room_none_is_made() -> None:
    dense, diagonal = np.zeros((3, 3)), np.ones(3)
    _, found = repeated_of(dense, diagonal, diagonal)

    def full(*_: Any) -> Any:
        raise MemoryError("no piece is large enough")

    found._steps = full
    with pytest.raises(MemoryError, match="find no room in some process"):
        found.idr(None, np.zeros(3), 0.0)
