"""Matrices as the iterative methods want them: products with M and relaxation steps, wherever M lies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import array_module
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import Array, lies_on_device, on_host, through_host, to_host
from hybrid.base.check_options import replacement_of
from hybrid.base.operands import LinearProtocol, TransposedProtocol, as_columns
from hybrid.matrix.cpu.csr import CsrMatrix, csr_of
from hybrid.matrix.explicit.extract import ExplicitSizes
from hybrid.matrix.reference import relax_in_place
from hybrid.matrix.space.base import DEFAULT_VECTORS
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.base.errors import option
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import HOST, VectorPlace

if TYPE_CHECKING:
    # Loaded on first use: a matrix on the host needs no format of the device.
    from gpu_kernels import Device, ExplicitMatrix


# In which format a device multiplies an explicit matrix fastest: the one place where that is decided.
#
# A format that gives a row to a thread is as slow as its longest row, about 0.1 microseconds an entry, and
# formats that cut entries into equal parts take over where there are long rows.  Among the first, sliced ELL
# reads whole lines at once and pads rows to the longest of their slice; row-compressed storage pads nothing.
# On an H200 sliced ELL was a tenth faster where padding made up 18 % (kanban), and a tenth slower where it
# made up 30 % (polling); both took less than half of cuSPARSE's time.  With rows of up to 32,768 entries
# (herman) a thread a row took 3 ms and more, equal parts 0.044 ms, cuSPARSE 0.060 ms.  Values go by a
# dictionary wherever its numbers have 16 bits.

_LONG_ROW = 256
"""Entries of a row beyond which one thread keeps all others waiting."""

_LONG_MEAN = 64
"""Entries a row, on average, beyond which neighbouring threads have no line in common."""

_MOST_PADDING = 1.25
"""Elements an entry beyond which sliced ELL loses to row-compressed storage."""

_DICTIONARY = 1 << 16
"""Distinct values, at most, of a dictionary whose numbers have 16 bits."""

_CHUNK = 1 << 24
"""Values sorted together."""

_SLICE = 32
"""Rows of a slice of sliced ELL."""

_SORTED_BYTES = 32
"""Bytes of temporary arrays a value of a chunk, where the dictionary is made."""


def choose_storage(matrix: CsrArrays, free_bytes: int, n_values: int | None = None) -> str:
    """Return the name of the format, one of `gpu_kernels.FORMATS`.

    Parameters
    ----------
    matrix : CsrArrays
        On the host or on the device.
    free_bytes : int
        What the conversion may take.
    n_values : int, optional
        A bound on the number of distinct values, such as a diagram's number of terminals; without it
        they are counted.

    Returns
    -------
    str
        "cmsr-stream" where rows are long, "csell" where they are short and alike, else "cmsr";
        without the first c where a dictionary does not pay.

    Notes
    -----
    Time: O(rows), and O(entries log(values)) to count values.  Synchronises: yes.
    """
    known_few = n_values is not None and n_values <= _DICTIONARY
    compact = known_few or _has_few(matrix.values)
    return _layout(matrix, free_bytes, "c" if compact else "")


def least_device_bytes(sizes: ExplicitSizes, n_values: int) -> int:
    """Return the bytes that a device needs to extract a matrix, to store it and to solve with it.

    Parameters
    ----------
    sizes : ExplicitSizes
        For the backend gpu.
    n_values : int
        A bound on the number of distinct values.

    Notes
    -----
    With the storage that needs least; formats that need more are chosen only if there is room for them.
    """
    numbers = (1 if n_values <= 1 << 8 else 2) if n_values <= _DICTIONARY else 0
    conversion = numbers * sizes.entries + (_SORTED_BYTES * min(sizes.entries, _CHUNK) if numbers else 0)
    return max(sizes.peak_bytes, sizes.matrix_bytes + conversion) + 8 * DEFAULT_VECTORS * max(sizes.shape)


def _layout(matrix: CsrArrays, free_bytes: int, prefix: str) -> str:
    """Return the format by the lengths of the rows; `prefix` says whether values go by a dictionary."""
    xp, rows, entries = matrix.xp, matrix.shape[0], matrix.nnz
    if rows == 0 or entries == 0:
        return f"{prefix}msr"
    lengths = xp.diff(matrix.row_starts)
    if entries > _LONG_MEAN * rows or int(lengths.max()) > _LONG_ROW:
        return f"{prefix}msr-stream"
    padded = xp.zeros(-(-rows // _SLICE) * _SLICE, lengths.dtype)
    padded[:rows] = lengths
    elements = _SLICE * int(padded.reshape(-1, _SLICE).max(axis=1).sum())
    sliced = f"{prefix}sell"
    from gpu_kernels.explicit import FORMATS

    required = FORMATS[sliced].conversion_bytes(rows, entries, elements)
    return sliced if elements <= _MOST_PADDING * entries and required <= free_bytes else f"{prefix}msr"


def _has_few(values: Array) -> bool:
    """Return whether the distinct values fit a dictionary; stops at the first part that has too many."""
    xp: Any = array_module(values)
    known = xp.zeros(0, np.int64)
    for begin in range(0, len(values), _CHUNK):
        part = xp.unique(values[begin : begin + _CHUNK].view(np.int64))
        known = xp.unique(xp.concatenate((known, part)))
        if len(known) > _DICTIONARY:
            return False
    return True


Vector = NDArray[np.float64]

_log = logging.getLogger(__name__)


class RelaxingOperator(LinearProtocol):
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

        Synchronises: yes, for the two numbers; iterations that leave them on the device have a vector space.
        """
        if self.device is None:
            self.multiply(x, out)
            return relax_in_place(x, b, diagonal, omega, out)
        from hybrid.matrix.gpu.device_space import relax_once
        from hybrid.matrix.gpu.repeated_steps import UnfusedSteps

        run = UnfusedSteps(self.device, self.multiply, self.shape[0])
        return relax_once(self.device, run, x, b, diagonal, omega, out)

    @property
    def place(self) -> VectorPlace:
        """The place of vectors over its rows and columns."""
        if self.device is None:
            return HOST
        from hybrid.matrix.gpu.halo import DevicePlace

        return DevicePlace(self.device)

    def vector_space(self) -> VectorSpace:
        """Return where the solvers keep their vectors: beside the matrix."""
        if self.device is None:
            held = csr_of(self)
            return HostSpace(self, sweeps=None if held is None else held.sweeps)
        from hybrid.matrix.gpu.device_space import DeviceSpace
        from hybrid.matrix.gpu.repeated_steps import UnfusedSteps

        device: Any = self.device if self.recorded else _Unrecorded(self.device)
        return DeviceSpace(device, UnfusedSteps(device, self.multiply, self.shape[0]))

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


class ExplicitOperator(RelaxingOperator, TransposedProtocol):
    """An explicit matrix: compressed sparse rows on the host, one of the formats on a device.

    Parameters
    ----------
    matrix : CsrArrays
    device : Device, optional
        Where the matrix lies; default the host for NumPy arrays and the current device for CuPy arrays.
    storage : str
        On a device: a name of :data:`gpu_kernels.explicit.FORMATS`, to which the matrix is converted, or
        "auto" for the one that `hybrid.matrix.explicit.operators.choose_storage` expects to be fastest.
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
        if device is None and matrix.xp is not np:
            from gpu_kernels import current_device

            device = current_device()
        self.device = device
        self.stored: CsrMatrix | ExplicitMatrix
        if self.device is None:
            self.storage, self.stored = "csr", CsrMatrix(matrix.to_scipy())
            return
        from gpu_kernels import FORMATS

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


class FunctionOperator(RelaxingOperator):
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


MOST_WRITTEN = 1 << 22
"""Entries of a matrix that is written out beside the one that is multiplied."""


def entries_on_host(matrix: object) -> int | None:
    """Return the entries of a matrix whose rows `rows_on_host` writes; None where it does not."""
    from mtbdd.offset.distributed import DistributedMTBDD

    held = csr_of(matrix)
    if held is not None:
        return int(held.csr.nnz)
    symbolic = getattr(matrix, "symbolic", None)
    if not isinstance(symbolic, OffsetMTBDD) or isinstance(symbolic, DistributedMTBDD):
        return None
    is_here = getattr(matrix, "place", None) is HOST and symbolic.n_entries <= MOST_WRITTEN
    return int(symbolic.n_entries) if is_here else None


def rows_on_host(matrix: Any) -> CsrArrays:
    """Return the rows of a matrix on the host; see `entries_on_host`.

    Time: O(entries) where it is not held so.
    """
    from hybrid.matrix.explicit.extract import explicit_matrix

    held = csr_of(matrix)
    if held is None:
        return explicit_matrix(matrix.symbolic)
    return CsrArrays(held.shape, held.csr.indptr, held.csr.indices, held.csr.data)


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
        from gpu_kernels import current_device

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
