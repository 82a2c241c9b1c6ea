"""Matrices as the iterative methods want them: products with M and relaxation steps, wherever M lies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, current_device
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import Array, to_host
from hybrid.base.foreign import lies_on_device, on_host, through_host
from hybrid.base.linear_protocol import LinearProtocol, TransposedProtocol
from hybrid.base.operands import as_columns
from hybrid.base.storages import replacement_of
from hybrid.matrix.cpu.csr import CsrMatrix, csr_of
from hybrid.matrix.reference import relax_in_place
from hybrid.matrix.space.host import HostWorkspace
from hybrid.matrix.space.workspace import Workspace
from mtbdd.base.wording import option
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import HOST, VectorPlace

if TYPE_CHECKING:
    # Loaded on first use: a matrix on the host needs no format of the device.
    from gpu_kernels import ExplicitMatrix
    from hybrid.matrix.gpu.colours import ColouredRows

Vector = NDArray[np.float64]

_log = logging.getLogger(__name__)


class Relaxing(LinearProtocol):
    """Relaxation steps from products, on vectors of any array module; the base of the operators here.

    Attributes
    ----------
    device : Device or None
        Where the vectors lie; None is the host.
    xp : module
        Array module of the vectors.
    recorded : bool
        Whether a product does nothing but launch kernels on the current stream, so that launches can be
        recorded and repeated.
    """

    backend = "cpu"
    level = None
    xp: Any = np
    device: Device | None = None
    recorded = True

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        raise NotImplementedError

    def multiply(self, x: Array, out: Array | None = None) -> Array:
        """Return ``M x``, written to `out` if given."""
        raise NotImplementedError

    def jacobi_step(
        self, x: Array, out: Array, b: Array | None, diagonal: Array, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences.

        Synchronises: yes, for the two numbers; iterations that leave them on the device have a workspace.
        """
        if self.device is None:
            self.multiply(x, out)
            return relax_in_place(x, b, diagonal, omega, out)
        from hybrid.matrix.gpu.operands import relax_once
        from hybrid.matrix.gpu.unfused import Unfused

        run = Unfused(self.device, self.multiply, self.shape[0])
        return relax_once(self.device, run, x, b, diagonal, omega, out)

    @property
    def place(self) -> VectorPlace:
        """Where vectors over its rows and columns are made."""
        if self.device is None:
            return HOST
        from hybrid.matrix.gpu.places import DevicePlace

        return DevicePlace(self.device)

    def workspace(self) -> Workspace:
        """Return where the solvers keep their vectors: beside the matrix."""
        if self.device is None:
            held = csr_of(self)
            return HostWorkspace(self, sweeps=None if held is None else held.sweeps)
        from hybrid.matrix.gpu.unfused import Unfused
        from hybrid.matrix.gpu.workspace import DeviceWorkspace

        device: Any = self.device if self.recorded else _Unrecorded(self.device)
        return DeviceWorkspace(device, Unfused(device, self.multiply, self.shape[0]))

    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,), float64, on the host.

        Synchronises: yes, on a device.
        """
        sums: Vector = to_host(self.multiply(self.xp.ones(self.shape[1])))
        return sums


class _Unrecorded:
    """A device that repeats work by doing it again; everything else is the device's."""

    def __init__(self, device: Device | None) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return the work itself."""
        return work


class ExplicitOperator(Relaxing, TransposedProtocol):
    """An explicit matrix: compressed sparse rows on the host, one of the formats on a device.

    Parameters
    ----------
    matrix : CsrArrays
    device : Device, optional
        Where the matrix lies; default the host for NumPy arrays and the current device for CuPy arrays.
    storage : str
        On a device: a name of :data:`gpu_kernels.explicit.FORMATS`, to which the matrix is converted, or
        "auto" for the one that `hybrid.matrix.explicit.storage.choose_storage` expects to be fastest.
    n_values : int, optional
        A bound on the number of distinct values, which saves counting them for "auto".

    Attributes
    ----------
    stored : CsrMatrix or gpu_kernels.ExplicitMatrix
        The matrix as it is multiplied.
    storage : str
        Name of the format; "csr" on the host.
    backend, backend_reason : str
        "cpu" or "gpu", and why, in words.
    symbolic : OffsetMTBDD
        Of an operator made by `write_out`: the diagram of the matrix.

    Raises
    ------
    ValueError
        If there is no such format.
    MemoryError
        If the device has no room for it.
    """

    backend_reason = "asked for"
    symbolic: OffsetMTBDD

    def __init__(
        self,
        matrix: CsrArrays,
        device: Device | None = None,
        storage: str = "auto",
        n_values: int | None = None,
    ) -> None:
        if storage != "auto":
            from gpu_kernels import FORMATS

            if storage not in FORMATS:
                raise ValueError(
                    f"storage: expected one of {', '.join((*FORMATS, 'auto'))}, got {storage!r}"
                    f"{replacement_of(storage)}"
                )
        self._shape, self.nnz = matrix.shape, matrix.nnz
        self.device = current_device() if device is None and matrix.xp is not np else device
        self.stored: CsrMatrix | ExplicitMatrix
        if self.device is None:
            self.storage, self.stored = "csr", CsrMatrix(matrix.to_scipy())
            return
        from gpu_kernels import FORMATS
        from hybrid.matrix.explicit.storage import choose_storage

        if storage == "auto":
            storage = choose_storage(matrix, self.device.free_bytes(), n_values)
        self.backend, self.storage, self.xp = "gpu", storage, self.device.xp
        # A library's calls may do more than launch kernels.
        self.recorded = storage != "cusparse"
        arrays = matrix.row_starts, matrix.columns, matrix.values
        self.stored = FORMATS[storage].from_csr(self.device, *arrays, matrix.shape[1])

    @property
    def matrix(self) -> CsrArrays:
        """The matrix; on a device made again from its storage, since two forms would take twice the room."""
        if isinstance(self.stored, CsrMatrix):
            csr = self.stored.csr
            return CsrArrays(self._shape, csr.indptr, csr.indices, csr.data)
        return CsrArrays(self._shape, *self.stored.to_csr())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix as it is multiplied."""
        return self.stored.nbytes

    def multiply(self, x: Array, out: Array | None = None) -> Array:
        """Return ``M x``, written to `out` if given; on a device each of them lies there or on the host.

        Without `out` the result lies where x does; a matrix on the host copies an x on a device, and the
        result back.  Synchronises: only where a vector lies on the host.
        """
        stored, device = self.stored, self.device
        if isinstance(stored, CsrMatrix):
            if not isinstance(x, np.ndarray):
                if lies_on_device(x):
                    return through_host(self.multiply, x)
                x = on_host(x)
            return stored.multiply(x, out)
        assert device is not None
        xp = device.xp
        target = out if isinstance(out, xp.ndarray) else xp.empty(self.shape[0])
        is_there = isinstance(x, xp.ndarray)
        stored.multiply(device, x if is_there else xp.asarray(x, dtype=np.float64), target)
        if out is None:
            return target if is_there else to_host(target)
        if target is not out:
            out[:] = to_host(target)
        return out

    def coloured(self) -> ColouredRows:
        """Return the rows by colours, for sweeps of Gauss-Seidel on a device."""
        from gpu_kernels import FORMATS
        from hybrid.matrix.gpu.colours import ColouredRows

        device: Any = self.device if self.recorded else _Unrecorded(self.device)
        return ColouredRows(device, self.matrix, FORMATS[self.storage])

    @cached_property
    def T(self) -> ExplicitOperator:  # noqa: N802
        """The transposed matrix, written out on first use beside this one and kept: as many bytes again."""
        matrix = CsrArrays.from_scipy(self.matrix.to_scipy().T)
        transposed = ExplicitOperator(matrix, self.device, "auto" if self.device is None else self.storage)
        transposed.__dict__["T"] = self
        return transposed

    def _multiply_many(self, x: Array) -> Array:
        """Return ``M X``; on the host SciPy serves all columns in one sweep."""
        if not isinstance(self.stored, CsrMatrix) or lies_on_device(x):
            return super()._multiply_many(x)
        with np.errstate(invalid="ignore", over="ignore"):
            return self.stored.csr @ as_columns(on_host(x), self.shape[1], "x")


class FunctionOperator(Relaxing):
    """A matrix known by its products alone.

    Parameters
    ----------
    shape : tuple of int
    product : callable
        Takes x and returns M x in an array of its own.  It may do anything, and not only launch kernels.
    device : Device, optional
        Where the vectors lie; default the host.
    nbytes : int
        Bytes of what stands behind the product, if known.
    """

    recorded = False

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


def write_out(symbolic: OffsetMTBDD, backend: str, storage: str = "auto") -> ExplicitOperator:
    """Return a matrix written out, for the explicit engine.

    Parameters
    ----------
    symbolic : OffsetMTBDD
    backend : {"cpu", "gpu"}
        On the gpu it is extracted on the current device and kept there.
    storage : str
        See `ExplicitOperator`.

    Raises
    ------
    MemoryError
        If there is no room for the extraction, the matrix and, on a device, the vectors of a solution, before
        anything is allocated; with required and available bytes.  A format that takes more room than the
        leanest one is refused when the matrix is converted to it.
    ValueError
        If the format cannot hold the matrix.
    RuntimeError
        If the device does not have the format.
    """
    from hybrid.matrix.explicit.extract import explicit_matrix, explicit_sizes

    _log.info("writing out a matrix of %d states", symbolic.shape[0])
    if backend == "cpu":
        held = ExplicitOperator(explicit_matrix(symbolic))
    else:
        from hybrid.matrix.explicit.storage import least_device_bytes

        device, values = current_device(), len(symbolic.terminals)
        required = least_device_bytes(explicit_sizes(symbolic, "gpu"), values)
        available = device.free_bytes()
        if required > available:
            raise MemoryError(
                f"the explicit matrix of {symbolic.n_rows} x {symbolic.n_columns} and its vectors need "
                f"{required} bytes on {device.name}, {available} are free; "
                f"use {option('engine', 'hybrid')}, {option('backend', 'cpu')}, or a smaller model"
            )
        matrix = explicit_matrix(symbolic, "gpu", memory_budget=available)
        held = ExplicitOperator(matrix, device, storage, values)
    held.symbolic = symbolic
    return held
