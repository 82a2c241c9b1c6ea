"""Any matrix as the iterative methods want it: products with M, and relaxation steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_kernels import Device, current_device
from gpu_kernels.formats import FORMATS, ExplicitMatrix
from hybrid.explicit.csr import Array, CsrArrays
from hybrid.explicit.storage import STORAGES, choose_storage
from hybrid.solvers.workspace import Workspace

__all__ = ["ExplicitOperator", "FunctionOperator", "Relaxing", "device_module", "unrecorded"]


class Relaxing:
    """Relaxation steps from products, on vectors of any array module; the base of the operators here.

    Attributes
    ----------
    xp : module
        Array module of the vectors.
    device : Device or None
        Where the vectors lie; None is the host.
    """

    backend = "cpu"
    level = None
    xp: Any = np
    device: Device | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        raise NotImplementedError

    def multiply(self, x: Array, out: Array | None = None) -> Array:
        """Return ``M x``, written to `out` if given."""
        raise NotImplementedError

    def __matmul__(self, x: Array) -> Array:
        return self.multiply(x)

    def jacobi_step(
        self, x: Array, out: Array, b: Array | None, diagonal: Array, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences.

        Synchronises: yes, for the two numbers.
        """
        xp = self.xp
        self.multiply(x, out)
        if b is not None:
            out += b
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            out /= diagonal
            if omega != 1.0:
                out *= omega
                out += (1.0 - omega) * x
            change = abs(out - x)
            relative = xp.where(change == 0.0, 0.0, change / abs(out))
        if len(change) == 0:
            return 0.0, 0.0
        return float(change.max()), float(relative.max())

    def workspace(self) -> Workspace:
        """Return where the solvers keep their vectors: beside the matrix."""
        if self.device is None:
            from hybrid.solvers.host import HostWorkspace

            return HostWorkspace(self)
        from hybrid.gpu.unfused import Unfused
        from hybrid.gpu.workspace import DeviceWorkspace

        def multiply(x: Array, out: Array) -> None:
            self.multiply(x, out)

        return DeviceWorkspace(self.device, Unfused(self.device, multiply, self.shape[0]))

    def row_sums(self) -> Array:
        """Return the sums of the rows, shape (n_rows,)."""
        return self.multiply(self.xp.ones(self.shape[1]))


class ExplicitOperator(Relaxing):
    """A matrix in compressed sparse rows, multiplied by SciPy, or on a device by one of the formats' kernels.

    Parameters
    ----------
    matrix : CsrArrays
    device : Device, optional
        Where the matrix lies; default the host for NumPy arrays and the current device for CuPy arrays.
    storage : str
        On a device: a name of :data:`gpu_kernels.formats.FORMATS`, to which the matrix is converted, or
        "auto" for the one that `hybrid.explicit.storage.choose_storage` expects to be fastest.
    n_values : int, optional
        A bound on the number of distinct values, which saves counting them for "auto".

    Attributes
    ----------
    storage : str or None
        Name of the format; None on the host.

    Raises
    ------
    ValueError
        If there is no such format.
    MemoryError
        If the device has no room for it.
    """

    def __init__(
        self,
        matrix: CsrArrays,
        device: Device | None = None,
        storage: str = "auto",
        n_values: int | None = None,
    ) -> None:
        if storage not in STORAGES:
            raise ValueError(f"storage: expected one of {', '.join((*FORMATS, 'auto'))}, got {storage!r}")
        self.xp = matrix.xp
        self.device = current_device() if device is None and self.xp is not np else device
        self._shape, self._nnz = matrix.shape, matrix.nnz
        self._stored: ExplicitMatrix | None = None
        self._csr: CsrArrays | None = None
        self.storage: str | None = None
        if self.device is None:
            self._csr, self._sparse = matrix, matrix.to_scipy()
            return
        self.backend, self.xp = "gpu", self.device.xp
        if storage == "auto":
            storage = choose_storage(matrix, self.device.free_bytes(), n_values)
        self.storage = storage
        arrays = matrix.row_starts, matrix.columns, matrix.values
        self._stored = FORMATS[storage].from_csr(self.device, *arrays, matrix.shape[1])

    @property
    def matrix(self) -> CsrArrays:
        """The matrix; on a device made again from its storage, since two forms would take twice the room."""
        if self._stored is None:
            assert self._csr is not None
            return self._csr
        return CsrArrays(self._shape, *self._stored.to_csr())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    def workspace(self) -> Workspace:
        """Return where the solvers keep their vectors: beside the matrix."""
        # A library's calls may do more than launch kernels.
        return unrecorded(self) if self.storage == "cusparse" else super().workspace()

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self._nnz

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix as it is multiplied."""
        return self.matrix.nbytes if self._stored is None else self._stored.nbytes

    def multiply(self, x: Array, out: Array | None = None) -> Array:
        """Return ``M x``, written to `out` if given. Synchronises: no."""
        if self.device is not None:
            result = self.xp.empty(self.shape[0]) if out is None else out
            stored: Any = self._stored
            stored.multiply(self.device, x, result)
            return result
        with np.errstate(invalid="ignore", over="ignore"):
            product = self._sparse @ x
        if out is None:
            return product
        out[...] = product
        return out


class FunctionOperator(Relaxing):
    """A matrix known by its products alone.

    Parameters
    ----------
    shape : tuple of int
    product : callable
        Takes x and returns M x in an array of its own.
    device : Device, optional
        Where the vectors lie; default the host.
    nbytes : int
        Bytes of what stands behind the product, if known.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        product: Callable[[Array], Array],
        device: Device | None = None,
        nbytes: int = 0,
    ) -> None:
        self._shape, self._product = shape, product
        self.device, self.nbytes = device, nbytes
        self.xp = np if device is None else device.xp

    def workspace(self) -> Workspace:
        """Return a workspace that records no launches: a product may do anything, and not only launch."""
        return unrecorded(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    def multiply(self, x: Array, out: Array | None = None) -> Array:
        """Return ``M x``, written to `out` if given."""
        product = self._product(x)
        if out is None:
            return product
        out[...] = product
        return out


def device_module(operator: Any) -> Any:
    """Return the array module of the vectors that an operator multiplies without copying them elsewhere.

    Parameters
    ----------
    operator : HybridMatrix, ExplicitOperator or any other matrix
        The device's module where ``operator.backend`` is "gpu", else NumPy.
    """
    return current_device().xp if getattr(operator, "backend", "cpu") == "gpu" else np


class _Unrecorded:
    """A device that repeats work by doing it again; everything else is the device's."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return the work itself."""
        return work


def unrecorded(operator: Relaxing) -> Workspace:
    """Return a workspace whose sweeps are not recorded, for products that use several streams or the host."""
    if operator.device is None:
        return Relaxing.workspace(operator)
    from hybrid.gpu.unfused import Unfused
    from hybrid.gpu.workspace import DeviceWorkspace

    device: Any = _Unrecorded(operator.device)

    def multiply(x: Array, out: Array) -> None:
        operator.multiply(x, out)

    return DeviceWorkspace(device, Unfused(device, multiply, operator.shape[0]))
