"""IDR(s) on the device: the course that it takes on the host, few looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import Device
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.host import space_of
from tests.builders.linear_systems import Dense
from tests.builders.matrices import banded, from_dense
from tests.exploring import pairs
from tests.gpu_kernels.devices import to_numpy


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


@pytest.mark.parametrize(("weighed", "anchor", "form"), pairs([False, True], [None, 7], FORMS))
def test_the_course_is_that_of_the_host(
    device: Device, rng: np.random.Generator, form: str, anchor: int | None, weighed: bool
) -> None:
    dense, size = without_diagonal(40), 40
    diagonal = dense.sum(axis=1) * (1.0 if anchor is not None else 1.2)
    if weighed:
        diagonal = diagonal + rng.random(size)  # many values: a diagonal without dictionary
    b, start, weights = rng.random((3, size)) + 0.5
    space: Any = FORMS[form](dense, device).vector_space()
    scale = (space.vector(weights), weights) if weighed else (None, None)
    ours = space.system(diagonal, b).idr(space.vector(start), 1e-11, anchor, scale[0])
    host = space_of(Dense(dense)).system(diagonal, b).idr(start, 1e-11, anchor, scale[1])
    assert ours.restart() == pytest.approx(host.restart(), rel=1e-12)
    for _ in range(3):
        found, expected = ours.advance(1), host.advance(1)
        assert found.iterations == expected.iterations
        # Rounding grows quickly where a direction is nearly one of those before.
        assert found.norm == pytest.approx(expected.norm, rel=1e-3)
    looks, calls = space.synchronisations, 0
    while not found.ended:
        found, calls = ours.advance(3), calls + 1
    while not expected.ended:
        expected = host.advance(1)
    assert not found.broken and not expected.broken
    # One more where a fresh residual is due.
    assert calls < found.iterations and space.synchronisations - looks <= 2 * calls
    kept, made = to_numpy(ours.x).tolist(), ours.products
    assert ours.advance(3) == found
    assert to_numpy(ours.x).tolist() == kept and ours.products == made
    for place, standing in ((ours, found), (host, expected)):
        assert 0 < place.products - place.cost * standing.iterations <= 1 + standing.iterations
    anchored = np.zeros((size, size))
    if anchor is not None:
        anchored[:, anchor] = 1.0
    exact = np.linalg.solve(np.diag(diagonal) - dense + anchored, b)
    np.testing.assert_allclose(to_numpy(ours.x), exact, rtol=1e-8)
    np.testing.assert_allclose(host.x, exact, rtol=1e-8)
