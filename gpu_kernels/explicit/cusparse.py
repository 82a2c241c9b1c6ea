"""cuSPARSE's product with a matrix in compressed sparse rows, by its own call; the plan is made once."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from gpu_kernels.explicit.matrix import require_memory
from gpu_kernels.explicit.rows import Msr
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.device import CudaDevice, Device

Array = Any

CSR_ALGORITHMS = {"default": 0, "csr-1": 2, "csr-2": 3}
"""cuSPARSE's numbers of its algorithms for CSR; the second gives the same bits in every run."""

_DOUBLE = 1
"""CUDA_R_64F."""


@functools.cache
def preprocess_call(maps: Path = Path("/proc/self/maps")) -> Callable[..., int] | None:
    """Return `cusparseSpMV_preprocess` of the library that this process has loaded; None if it has none.

    CuPy binds `cusparseSpMV` without it. The library has it from CUDA 12.4 on.

    Parameters
    ----------
    maps : Path
        Where the system lists the files that are mapped into this process.
    """
    try:
        paths = {
            line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines() if "cusparse.so" in line
        }
        found = ctypes.CDLL(min(paths)).cusparseSpMV_preprocess
    except (AttributeError, OSError, ValueError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    found.argtypes = (pointer, number, pointer, pointer, pointer, pointer, pointer, number, number, pointer)
    found.restype = number
    return found


@dataclass(eq=False)
class CusparsePlan:
    """A matrix described to cuSPARSE, and work space of an algorithm, kept from product to product.

    Every algorithm has a descriptor of its own, because only one work space of a descriptor can hold what
    preprocessing has found.

    Attributes
    ----------
    matrix : cupyx.scipy.sparse.csr_matrix
        Keeps the arrays alive.
    prepared : dict
        Descriptor and work space of every algorithm that has been used, by its number.
    preprocessed : bool
        Whether cuSPARSE has preprocessed the matrix for all of them.
    """

    matrix: Any
    prepared: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    preprocessed: bool = True

    @classmethod
    def create(cls, shape: tuple[int, int], row_starts: Array, columns: Array, values: Array) -> CusparsePlan:
        """Describe a matrix on the device to cuSPARSE."""
        import cupyx.scipy.sparse

        return cls(cupyx.scipy.sparse.csr_matrix((values, columns, row_starts), shape=shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the work space."""
        return sum(int(space.nbytes) for _, space in self.prepared.values())

    def run(self, x: Array, out: Array, algorithm: int = 0) -> None:
        """Queue ``out = M x`` with an algorithm of `CSR_ALGORITHMS`; its first call prepares it.

        Raises
        ------
        MemoryError
            If there is no room for the work space.
        """
        import cupy
        from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor

        cusparse = importlib.import_module("cupy_backends.cuda.libs.cusparse")
        handle = cupy.cuda.device.get_cusparse_handle()
        one, zero = np.array(1.0), np.array(0.0)
        vectors = DnVecDescriptor.create(x), DnVecDescriptor.create(out)
        known = self.prepared.get(algorithm)
        descriptor = SpMatDescriptor.create(self.matrix) if known is None else known[0]
        arguments = (
            handle, cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE, one.ctypes.data, descriptor.desc,
            vectors[0].desc, zero.ctypes.data, vectors[1].desc, _DOUBLE, algorithm,
        )  # fmt: skip
        if known is None:
            size = int(cusparse.spMV_bufferSize(*arguments))
            require_memory(CudaDevice(), size, "the work space of cuSPARSE")
            known = descriptor, cupy.empty(max(size, 1), np.int8)
            self.prepared[algorithm] = known
            preprocess = preprocess_call()
            cusparse.setStream(handle, cupy.cuda.get_current_stream().ptr)
            done = preprocess is not None and preprocess(*arguments, known[1].data.ptr) == 0
            self.preprocessed = self.preprocessed and done
        cusparse.spMV(*arguments, known[1].data.ptr)


@dataclass(frozen=True, eq=False)
class CusparseCsr(Msr):
    """Row-compressed storage multiplied by cuSPARSE; on a CUDA device only.

    Attributes
    ----------
    plan : CusparsePlan
    """

    plan: CusparsePlan

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        if compact:
            raise ValueError("cuSPARSE reads plain values; use another of FORMATS for a dictionary")
        if device.xp.__name__ != "cupy":
            raise RuntimeError(
                f"cuSPARSE runs on a CUDA device only, not on {device.name}; use another of FORMATS"
            )
        if csr.row_starts.dtype != np.int32:
            raise ValueError(
                f"cuSPARSE is called with 32-bit row starts, and the matrix has {len(csr.columns)} entries; "
                "use another of FORMATS, or parts of the matrix"
            )
        values = cls._store_values(device, csr, None, len(csr.values), False)
        plan = CusparsePlan.create(csr.shape, csr.row_starts, csr.columns, csr.values)
        return cls(csr.shape, values, csr.row_starts, csr.columns, plan)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        self.plan.run(x, out)
