"""Products of operators whose vectors lie on the device: checked, and answered on the device."""

from __future__ import annotations

from typing import Any

from hybrid.core.arrays import Array

__all__ = ["multiply", "multiply_any"]


def multiply(product: Any, x: Array, out: Array | None) -> Array:
    """Return M x, on the device.

    Parameters
    ----------
    product : GpuProduct
        The operator's representation.
    x : cupy.ndarray, shape (n_columns,), real
        Copied if it is not contiguous float64.
    out : cupy.ndarray, shape (n_rows,), float64, optional
        Where to write the result.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape, or they overlap.

    Notes
    -----
    Synchronises: no.
    """
    xp = product.device.xp
    if x.shape != (product.matrix.n_columns,):
        raise ValueError(f"x: expected shape ({product.matrix.n_columns},), got {x.shape}")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"x: expected real numbers, got dtype {x.dtype}")
    vector = xp.ascontiguousarray(x, dtype=float)
    target = xp.empty(product.matrix.n_rows) if out is None else out
    product.multiply(vector, target)
    return target


def multiply_any(product: Any, x: Array) -> Array:
    """Return M x for a device vector, or M X for the columns of a device array, shape (n_columns, k)."""
    if x.ndim != 2:
        return multiply(product, x, None)
    if x.shape[0] != product.matrix.n_columns:
        raise ValueError(
            f"x: expected {product.matrix.n_columns} rows, one a column of the matrix, got {x.shape}"
        )
    out = product.device.xp.empty((product.matrix.n_rows, x.shape[1]))
    for i in range(x.shape[1]):
        out[:, i] = multiply(product, x[:, i], None)
    return out
