"""cuSPARSE's product with a matrix in compressed sparse rows, by its own call; the plan is made once."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpu_kernels.device import CudaDevice, Device
from gpu_kernels.formats.arrays import CsrArrays, require_memory
from gpu_kernels.formats.msr import Msr

__all__ = ["CSR_ALGORITHMS", "CusparseCsr", "CusparsePlan"]

Array = Any

CSR_ALGORITHMS = {"default": 0, "csr-1": 2, "csr-2": 3}
"""cuSPARSE's numbers of its algorithms for CSR; the second gives the same bits in every run."""

_DOUBLE = 1
"""CUDA_R_64F."""


@dataclass(frozen=True, eq=False)
class CusparsePlan:
    """Descriptor of a matrix and buffers of an algorithm, kept from product to product.

    Attributes
    ----------
    descriptor : object
        CuPy's descriptor of the matrix, which keeps its arrays alive.
    buffers : dict
        Work space of every algorithm that has been used, by its number.
    """

    descriptor: Any
    buffers: dict[int, Any]

    @classmethod
    def create(cls, shape: tuple[int, int], row_starts: Array, columns: Array, values: Array) -> CusparsePlan:
        """Describe a matrix on the device to cuSPARSE."""
        import cupyx.scipy.sparse
        from cupyx.cusparse import SpMatDescriptor

        matrix = cupyx.scipy.sparse.csr_matrix((values, columns, row_starts), shape=shape)
        return cls(SpMatDescriptor.create(matrix), {})

    @property
    def nbytes(self) -> int:
        """Bytes of the work space."""
        return sum(int(buffer.nbytes) for buffer in self.buffers.values())

    def run(self, x: Array, out: Array, algorithm: int = 0) -> None:
        """Queue ``out = M x`` with an algorithm of `CSR_ALGORITHMS`; its first call makes the work space.

        Raises
        ------
        MemoryError
            If there is no room for it.
        """
        import cupy
        from cupyx.cusparse import DnVecDescriptor

        cusparse = importlib.import_module("cupy_backends.cuda.libs.cusparse")
        one, zero = np.array(1.0), np.array(0.0)
        vectors = DnVecDescriptor.create(x), DnVecDescriptor.create(out)
        arguments = (
            cupy.cuda.device.get_cusparse_handle(), cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE,
            one.ctypes.data, self.descriptor.desc, vectors[0].desc, zero.ctypes.data, vectors[1].desc,
            _DOUBLE, algorithm,
        )  # fmt: skip
        if algorithm not in self.buffers:
            size = int(cusparse.spMV_bufferSize(*arguments))
            require_memory(CudaDevice(), size, "the work space of cuSPARSE")
            self.buffers[algorithm] = cupy.empty(max(size, 1), np.int8)
        cusparse.spMV(*arguments, self.buffers[algorithm].data.ptr)


@dataclass(frozen=True, eq=False)
class CusparseCsr(Msr):
    """Row-compressed storage multiplied by cuSPARSE; on a CUDA device only.

    Attributes
    ----------
    plan : CusparsePlan
    """

    plan: CusparsePlan

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        if device.xp.__name__ != "cupy":
            raise RuntimeError(
                f"cuSPARSE runs on a CUDA device only, not on {device.name}; use another of FORMATS"
            )
        if csr.row_starts.dtype != np.int32:
            raise ValueError(
                f"cuSPARSE is called with 32-bit row starts, and the matrix has {len(csr.columns)} entries; "
                "use another of FORMATS, or parts of the matrix"
            )
        values = cls._store_values(device, csr, None, len(csr.values))
        plan = CusparsePlan.create(csr.shape, csr.row_starts, csr.columns, csr.values)
        return cls(csr.shape, values, csr.row_starts, csr.columns, plan)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        self.plan.run(x, out)
