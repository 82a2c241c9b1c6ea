"""Products and passes of IDR(s) with vectors of single precision, compiled.

The functions are those of :mod:`hybrid.matrix.cpu.kernels`, :mod:`hybrid.matrix.cpu.shadow_kernels` and
:mod:`hybrid.matrix.cpu.vector_kernels`.  Sums of products are added up in double precision, and the iterate
has it.
"""

from __future__ import annotations

from typing import Any

from numba import types

from hybrid.matrix.cpu import kernels, shadow_kernels, vector_kernels
from mtbdd.base.compiled import njit

_ROWS = (types.int64, types.int64)
_NUMBERS = types.Array(types.float64, 1, "C", readonly=True)
_INPUT = types.Array(types.float32, 1, "C", readonly=True)
_OUTPUT, _ITERATE, _SUMS = types.float32[::1], types.float64[::1], types.float64[:, ::1]
_MATRIX = types.float32[:, ::1]
_SUMMED = {"reassoc", "nsz"}


def _single(function: Any, signature: Any, **options: Any) -> Any:
    """Return a compiled function compiled for another signature."""
    return njit(signature, cache=True, nogil=True, **options)(getattr(function, "py_func", function))


image_rows: Any = _single(
    vector_kernels.image_rows,
    types.void(*_ROWS, _INPUT, _NUMBERS, types.float64, _OUTPUT),
    error_model="numpy",
)
block_spmv: Any = _single(kernels.block_spmv, kernels.signature(_INPUT, _OUTPUT), boundscheck=False)

shadow_sums_rows: Any = _single(
    shadow_kernels.shadow_sums_rows,
    types.void(*_ROWS, _INPUT, _NUMBERS, types.boolean, _SUMS),
    fastmath=_SUMMED,
)
turn_rows: Any = _single(
    shadow_kernels.turn_rows,
    types.void(
        *_ROWS,
        types.int64,
        types.boolean,
        *[_NUMBERS] * 3,
        types.float64,
        _MATRIX,
        _MATRIX,
        _OUTPUT,
        _ITERATE,
    ),
)
step_sums_rows: Any = _single(
    shadow_kernels.step_sums_rows,
    types.void(*_ROWS, _INPUT, _INPUT, _NUMBERS, types.boolean, _SUMS),
    fastmath=_SUMMED,
)
step_rows: Any = _single(
    shadow_kernels.step_rows, types.void(*_ROWS, types.float64, _INPUT, _OUTPUT, _ITERATE)
)
