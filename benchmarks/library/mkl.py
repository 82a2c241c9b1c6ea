"""Products of compressed sparse rows by Intel's MKL, inspected and optimised before they are timed."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mkl", "MklProduct"]

_NOT_TRANSPOSED, _GENERAL, _FROM_ZERO = 10, 20, 0  # of mkl_spblas.h
_CALLS = 10_000  # that are announced to the inspector


class _Description(ctypes.Structure):
    """The struct matrix_descr, of a general matrix."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


class Mkl:
    """The library, loaded from a file.

    Parameters
    ----------
    path : Path
        ``libmkl_rt.so.3`` of the wheel ``mkl``, with the other files of the wheel and OpenMP's beside it.

    Raises
    ------
    OSError
        If the file cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        version = ctypes.create_string_buffer(198)
        self.library.MKL_Get_Version_String(version, 198)
        self.version = version.value.decode().strip()

    def set_threads(self, count: int) -> None:
        """Set the threads of products to come."""
        self.library.MKL_Set_Num_Threads(ctypes.c_int(count))


class MklProduct:
    """A matrix in compressed sparse rows, inspected.

    Parameters
    ----------
    mkl : Mkl
    matrix : csr_array
        Of float64, with indices of 32 bits.

    Raises
    ------
    RuntimeError
        If the library refuses.
    """

    def __init__(self, mkl: Mkl, matrix: Any) -> None:
        self._mkl, self._description = mkl, _Description(_GENERAL, 0, 0)
        pointers, columns = (np.ascontiguousarray(a, np.int32) for a in (matrix.indptr, matrix.indices))
        self._held = pointers, columns, np.ascontiguousarray(matrix.data, np.float64)
        self._handle = ctypes.c_void_p()
        rows, n_columns = matrix.shape
        self._call(
            "mkl_sparse_d_create_csr",
            ctypes.byref(self._handle),
            ctypes.c_int(_FROM_ZERO),
            ctypes.c_int(rows),
            ctypes.c_int(n_columns),
            _address(pointers),
            ctypes.c_void_p(pointers.ctypes.data + pointers.itemsize),
            _address(columns),
            _address(self._held[2]),
        )
        own = self._handle, ctypes.c_int(_NOT_TRANSPOSED), self._description, ctypes.c_int(_CALLS)
        self._call("mkl_sparse_set_mv_hint", *own)
        self._call("mkl_sparse_optimize", self._handle)

    def multiply(self, x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write ``M x`` to `out`."""
        self._call(
            "mkl_sparse_d_mv",
            ctypes.c_int(_NOT_TRANSPOSED),
            ctypes.c_double(1.0),
            self._handle,
            self._description,
            _address(x),
            ctypes.c_double(0.0),
            _address(out),
        )

    def close(self) -> None:
        """Give the matrix back."""
        self._call("mkl_sparse_destroy", self._handle)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._mkl.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned status {status}")


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
