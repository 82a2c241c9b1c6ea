"""The explicit engine: the matrix written out, in compressed rows on the host or a format of the device."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import current_device
from hybrid.core.arrays import to_host
from hybrid.cpu.csr import CsrMatrix
from hybrid.solvers.workspace import Workspace
from mtbdd.offset import OffsetMTBDD

__all__ = ["DeviceMatrix", "ExplicitMatrix", "HostMatrix", "write_out"]

_log = logging.getLogger(__name__)

Vector = NDArray[np.float64]


class ExplicitMatrix(ABC):
    """A symbolic matrix written out; products and relaxation steps as of the hybrid matrix.

    Attributes
    ----------
    symbolic : OffsetMTBDD
        The matrix.
    backend : str
        "cpu" or "gpu".
    backend_reason : str
        Why it is that one, in words.
    level : None
        There is no injection level.
    storage : str
        Name of the format: one of `HOST_STORAGES` or of `gpu_kernels.FORMATS`.
    """

    symbolic: OffsetMTBDD
    backend: str
    backend_reason: str = "asked for"
    level: None = None
    storage: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the matrix as it is multiplied."""

    @abstractmethod
    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``M x``, written to `out` if given."""

    @abstractmethod
    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences."""

    @abstractmethod
    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,)."""


class HostMatrix(CsrMatrix, ExplicitMatrix):
    """See `ExplicitMatrix`; compressed sparse rows on the host.

    Parameters
    ----------
    symbolic : OffsetMTBDD

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated; with required and available bytes.
    """

    backend = "cpu"
    level = None
    storage = "csr"

    def __init__(self, symbolic: OffsetMTBDD) -> None:
        from hybrid.explicit.extract import explicit_matrix  # the package builds upon checks

        super().__init__(explicit_matrix(symbolic).to_scipy())
        self.symbolic = symbolic


class DeviceMatrix(ExplicitMatrix):
    """See `ExplicitMatrix`; extracted on the current device and kept there, in the format chosen for it.

    Parameters
    ----------
    symbolic : OffsetMTBDD
    storage : str
        A name of `gpu_kernels.FORMATS`, or "auto" for the one expected to be fastest; see
        `hybrid.explicit.storage.choose_storage`.

    Raises
    ------
    MemoryError
        If the device has no room for the extraction, the matrix and the vectors of a solution, before
        anything is allocated; with required and available bytes.  A format that takes more room than the
        leanest one is refused when the matrix is converted to it.
    ValueError
        If the format cannot hold the matrix.
    RuntimeError
        If the device does not have the format.
    """

    backend = "gpu"

    def __init__(self, symbolic: OffsetMTBDD, storage: str = "auto") -> None:
        from hybrid.explicit.extract import explicit_matrix, explicit_sizes
        from hybrid.explicit.operators import ExplicitOperator
        from hybrid.explicit.storage import least_device_bytes

        self._device = current_device()
        values = len(symbolic.terminals)
        required = least_device_bytes(explicit_sizes(symbolic, "gpu"), values)
        available = self._device.free_bytes()
        if required > available:
            raise MemoryError(
                f"the explicit matrix of {symbolic.n_rows} x {symbolic.n_columns} and its vectors need "
                f"{required} bytes on {self._device.name}, {available} are free; "
                "use --engine hybrid, --backend cpu, or a smaller model"
            )
        self.symbolic = symbolic
        self._operator = ExplicitOperator(
            explicit_matrix(symbolic, "gpu", memory_budget=available), self._device, storage, values
        )
        self.storage = str(self._operator.storage)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.symbolic.shape

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self._operator.nbytes

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``M x``, written to `out` if given; each of them lies on the device or on the host.

        Notes
        -----
        Without `out` the result lies where x does.  Synchronises: only where a vector lies on the host.
        """
        xp: Any = self._device.xp
        target = out if isinstance(out, xp.ndarray) else xp.empty(self.shape[0])
        self._operator.multiply(xp.ascontiguousarray(xp.asarray(x, dtype=np.float64)), target)
        if out is None:
            result: Vector = target if isinstance(x, xp.ndarray) else to_host(target)
            return result
        if target is not out:
            out[:] = to_host(target)
        return out

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences.

        Notes
        -----
        Vectors lie on the device or on the host.  Synchronises: yes, for the two numbers; iterations that
        leave them on the device have a workspace.
        """
        xp: Any = self._device.xp
        target = out if isinstance(out, xp.ndarray) else xp.empty(self.shape[0])
        right = None if b is None else xp.asarray(b)
        source, divisor = xp.ascontiguousarray(xp.asarray(x, dtype=np.float64)), xp.asarray(diagonal)
        changes = self._operator.jacobi_step(source, target, right, divisor, omega)
        if target is not out:
            out[:] = to_host(target)
        return changes

    def workspace(self) -> Workspace:
        """Return memory and operations for a solution on the device."""
        return self._operator.workspace()

    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,), on the host."""
        return self.multiply(np.ones(self.shape[1]))


def write_out(symbolic: OffsetMTBDD, backend: str, storage: str = "auto") -> ExplicitMatrix:
    """Return a matrix written out where a backend has it.

    Parameters
    ----------
    symbolic : OffsetMTBDD
    backend : {"cpu", "gpu"}
    storage : str
        See `DeviceMatrix`; the host has one format.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated.
    """
    _log.info("writing out a matrix of %d states", symbolic.shape[0])
    return DeviceMatrix(symbolic, storage) if backend == "gpu" else HostMatrix(symbolic)
