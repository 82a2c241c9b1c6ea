"""IDR(s) on the device: passes as the host makes them, the same course of the recurrence, few looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import Device, ShadowKernels, compress, shadows
from hybrid.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.gpu.shadow_passes import DeviceShadows
from hybrid.operators.inject import inject
from hybrid.solvers.host import workspace_of
from hybrid.solvers.shadows import DIRECTIONS, NumPyShadows
from tests.builders.linear_systems import Dense
from tests.builders.matrices import banded, from_dense
from tests.gpu_kernels.devices import to_numpy

SIZES = (1, 31, 257, 1000)


def passes(device: Device, size: int, wide: bool = False) -> DeviceShadows:
    space: Any = inject(from_dense(np.eye(2)[::-1]), backend="gpu").workspace()
    diagonal = compress(device, np.ones(size))
    return DeviceShadows(space, ShadowKernels(device, diagonal, wide))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_sums_are_those_of_the_host(device: Device, rng: np.random.Generator, size: int, wide: bool) -> None:
    ours, host = passes(device, size, wide), NumPyShadows()
    x, t, weights = rng.normal(size=(3, size))
    there = [device.xp.asarray(vector.copy()) for vector in (x, t, weights)]
    for weigh, weighed in ((None, None), (weights, there[2])):
        np.testing.assert_allclose(
            ours.shadow_sums(there[0], weighed), host.shadow_sums(x, weigh), rtol=1e-11, atol=1e-12
        )
        np.testing.assert_allclose(
            ours.step_sums(there[1], there[0], weighed), host.step_sums(t, x, weigh), rtol=1e-11, atol=1e-12
        )


def test_sums_meet_rows_beyond_the_grid(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadows, "_MOST_BLOCKS", 3)
    x = rng.normal(size=2000)
    ours, there = passes(device, 2000), device.xp.asarray(x.copy())
    first = ours.shadow_sums(there, None)
    np.testing.assert_allclose(first, NumPyShadows().shadow_sums(x, None), rtol=1e-11)
    # Every time the same bits, and blocks are counted anew.
    assert ours.shadow_sums(there, None).tolist() == first.tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", range(DIRECTIONS))
def test_moves_are_those_of_the_host(device: Device, rng: np.random.Generator, size: int, k: int) -> None:
    vectors = [*rng.normal(size=(2, DIRECTIONS, size)), *rng.normal(size=(3, size))]
    shares = rng.normal(size=DIRECTIONS)
    ours, host = passes(device, size), NumPyShadows()
    there = [device.xp.asarray(vector.copy()) for vector in vectors]
    for place, (u, g, r, x, t) in ((ours, there), (host, vectors)):
        place.aim(k, shares, 0.7, r, u, g)
        place.settle(k, shares, 0.3, u, g, r, x)
        place.step(0.4, t, r, x)
    for found, expected in zip(there, vectors, strict=True):
        np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12, atol=1e-13)


def without_diagonal(size: int) -> np.ndarray:
    dense = banded(size)
    np.fill_diagonal(dense, 0.0)
    return dense


FORMS = {
    "hybrid": lambda dense, device: inject(from_dense(dense), backend="gpu"),
    "explicit": lambda dense, device: ExplicitOperator(
        CsrArrays.from_scipy(csr_matrix(dense)).to_device(device), device, "msr"
    ),
    "function": lambda dense, device: FunctionOperator(
        dense.shape, lambda x: device.xp.asarray(dense) @ x, device
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("anchor", [None, 7])
@pytest.mark.parametrize("weighed", [False, True])
def test_the_course_is_that_of_the_host(
    device: Device, rng: np.random.Generator, form: str, anchor: int | None, weighed: bool
) -> None:
    dense, size = without_diagonal(40), 40
    diagonal = dense.sum(axis=1) * (1.0 if anchor is not None else 1.2)
    if weighed:
        diagonal = diagonal + rng.random(size)  # many values: a diagonal without dictionary
    b, start, weights = rng.random((3, size)) + 0.5
    space: Any = FORMS[form](dense, device).workspace()
    scale = (space.vector(weights), weights) if weighed else (None, None)
    ours = space.system(diagonal, b).idr(space.vector(start), 1e-11, anchor, scale[0])
    host = workspace_of(Dense(dense)).system(diagonal, b).idr(start, 1e-11, anchor, scale[1])
    assert ours.restart() == pytest.approx(host.restart(), rel=1e-12)
    for _ in range(2):
        found, expected = ours.advance(3), host.advance(3)
        assert found.norm == pytest.approx(expected.norm, rel=1e-5)
    looks = space.synchronisations
    while not found.ended:
        found = ours.advance(1)
    while not expected.ended:
        expected = host.advance(1)
    assert not found.broken and not expected.broken
    assert space.synchronisations - looks <= (DIRECTIONS + 3) * found.iterations
    for place, standing in ((ours, found), (host, expected)):
        assert 0 < place.products - place.cost * standing.iterations <= 1 + standing.iterations
    anchored = np.zeros((size, size))
    if anchor is not None:
        anchored[:, anchor] = 1.0
    exact = np.linalg.solve(np.diag(diagonal) - dense + anchored, b)
    np.testing.assert_allclose(to_numpy(ours.x), exact, rtol=1e-8)
    np.testing.assert_allclose(host.x, exact, rtol=1e-8)


def test_bad_operands_are_refused(device: Device) -> None:
    with pytest.raises(ValueError, match="diagonal: expected one that is held"):
        ShadowKernels(device, compress(device, None))
    with pytest.raises(ValueError, match="anchor: expected a row below 3, got 3"):
        ShadowKernels(device, compress(device, np.ones(3)), anchor=3)
    kernels = ShadowKernels(device, compress(device, np.ones(3)))
    with pytest.raises(ValueError, match=r"x: expected shape \(3,\)"):
        kernels.image(device.xp.ones(4), device.xp.ones(3))
    with pytest.raises(ValueError, match=r"out: expected shape \(3,\)"):
        kernels.residual(device.xp.ones(3), device.xp.ones(4))
