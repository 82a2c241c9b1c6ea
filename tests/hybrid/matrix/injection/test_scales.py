"""Blocks shared up to a scale whose values lie so far apart that quotients leave the doubles."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.backends import Backend, CpuBackend, GpuBackend
from hybrid.matrix.injection.submatrices import class_submatrices
from hybrid.matrix.levels.curve import level_curve
from tests.builders.matrices import from_dense, to_dense
from tests.builders.models import build

FAR_APART = {
    "overflow": [[7e-300, 5e30], [1e-30, 0.0]],
    "underflow": [[5e30, 7e-300], [1e-30, 0.0]],
    "both": [[1e-200, 1e200], [1e-310, 1.0]],
}


@pytest.mark.parametrize("name", FAR_APART)
def test_quotients_that_leave_the_doubles_are_refused(name: str) -> None:
    matrix = from_dense(np.array(FAR_APART[name]))
    classes = level_curve(matrix).typed.scaled.classes
    # At the top the whole matrix is the only member of its class.
    assert class_submatrices(np, classes, 0) is None
    assert class_submatrices(np, classes, matrix.n_levels) is not None


@pytest.mark.parametrize("name", FAR_APART)
@pytest.mark.parametrize("backend", [CpuBackend(), GpuBackend()])
def test_products_keep_values_that_lie_far_apart(
    device: object, rng: np.random.Generator, backend: Backend, name: str
) -> None:
    dense = np.kron(np.array(FAR_APART[name]), np.diag([1.0, 2.0, 3.0, 1.0]))
    matrix, x = from_dense(dense), rng.uniform(1.0, 2.0, 8)
    curve = level_curve(matrix)
    for level in range(len(curve)):
        out = np.empty(8)
        backend.represent(curve, level).multiply(x, out)
        np.testing.assert_allclose(out, dense @ x, rtol=1e-14)
        # Row by row of the unit vectors, so that no large value hides a small one.
        for column in range(8):
            unit = np.zeros(8)
            unit[column] = 1.0
            backend.represent(curve, level).multiply(unit, out)
            np.testing.assert_array_equal(out, dense[:, column])


def test_a_level_that_is_scaled_keeps_them_too() -> None:
    matrix = build(STIFF).transitions
    curve, dense = level_curve(matrix), to_dense(matrix)
    assert any(candidate.scaled for candidate in curve.levels[:-1])
    x = np.linspace(1.0, 2.0, matrix.n_columns)
    for level in range(len(curve)):
        out = np.empty(matrix.n_rows)
        CpuBackend().represent(curve, level).multiply(x, out)
        np.testing.assert_allclose(out, dense @ x, rtol=1e-14)


STIFF = """
ctmc
module m
  s : [0..11] init 2;
  [b] s=0 -> 5e30:(s'=3) + 1e-30:(s'=9) + 7e-300:(s'=2);
  [] s=2 -> 7e5:(s'=9) + 5e30:(s'=0);
endmodule
"""
