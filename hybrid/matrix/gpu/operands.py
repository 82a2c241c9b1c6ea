"""Products and steps of operators on the device, for vectors that lie there and for those of the host."""

from __future__ import annotations

from typing import Any

from gpu_kernels import Device, IterationState, Mode, coded_step, finish_iteration
from hybrid.base.arrays import Array, to_host
from hybrid.matrix.gpu.sweeps import Run


def multiply(product: Any, x: Array, out: Array | None) -> Array:
    """Return M x, on the device.

    Parameters
    ----------
    product : GpuProduct
        The operator's representation.
    x : cupy.ndarray, shape (n_columns,), real
        Or another library's array with the CUDA interface. Copied if it is not contiguous float64.
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
    # Another library's array on the device, without a copy.
    x = x if isinstance(x, xp.ndarray) else xp.asarray(x)
    if x.shape != (product.matrix.n_columns,):
        raise ValueError(f"x: expected shape ({product.matrix.n_columns},), got {x.shape}")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"x: expected real numbers, got dtype {x.dtype}")
    vector = xp.ascontiguousarray(x, dtype=float)
    target = xp.empty(product.matrix.n_rows) if out is None else out
    product.multiply(vector, target)
    return target


def multiply_columns(product: Any, x: Array) -> Array:
    """Return M X for the columns of a device array, shape (n_columns, k), on the device.

    Raises
    ------
    TypeError, ValueError
        If the operand has the wrong type or shape.

    Notes
    -----
    Synchronises: no. One sweep over a matrix in tiles serves several columns; others go one by one.
    """
    xp, matrix = product.device.xp, product.matrix
    columns = x if isinstance(x, xp.ndarray) else xp.asarray(x)
    if columns.ndim != 2 or columns.shape[0] != matrix.n_columns:
        raise ValueError(
            f"x: expected {matrix.n_columns} rows, one a column of the matrix, got shape {columns.shape}"
        )
    if columns.dtype.kind not in "fiub":
        raise TypeError(f"x: expected real numbers, got dtype {columns.dtype}")
    out = xp.empty((matrix.n_rows, columns.shape[1]))
    product.multiply_many(columns, out)
    return out


def relax_once(
    device: Device, run: Run, x: Array, b: Array | None, diagonal: Array, omega: float, out: Array
) -> tuple[float, float]:
    """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows of M.
    x, b, diagonal, out : ndarray, shape (n,), float64
        Each of them lies on the device or on the host.

    Returns
    -------
    tuple of float, float
        Greatest absolute change and greatest change relative to the new value.

    Notes
    -----
    Synchronises: yes, for the two numbers. Iterations that leave them on the device have a workspace.
    """
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, diagonal, b, omega, state)
    target = out if isinstance(out, xp.ndarray) else xp.empty(len(out))
    run(step, xp.asarray(x), target)
    finish_iteration(device, state, -1.0, False)
    if target is not out:
        out[:] = to_host(target)
    absolute, relative = to_host(state.differences).tolist()
    return absolute, relative
