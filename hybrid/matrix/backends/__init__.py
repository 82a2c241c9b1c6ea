"""Backends that hold and multiply matrices: one object each, with its name, reason and representations.

The backend is chosen by one function, for one reason, and never silently another one than requested.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self, cast

from gpu_kernels import current_device, device_problem
from hybrid.base.arrays import lies_on_device
from hybrid.base.errors import OptionError
from hybrid.base.option_types import BackendName
from hybrid.base.units import bytes_text, counted, seconds_text
from hybrid.matrix.injection.injected import TaskList, cut_tasks, inject_level
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import BestLevel, LevelChoice, choose_level, rank_by_time, weigh
from hybrid.matrix.reference import ReferenceProduct
from hybrid.matrix.space.base import LinearOperator, Product
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.base.records import Record
from mtbdd.language.errors import suggestion
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import HOST, VectorPlace

if TYPE_CHECKING:
    from gpu_kernels import BlockTasks, PairMatrix, TileMatrix
    from hybrid.base.operands import Halo

    # Compiled code is loaded on first use.
    from hybrid.matrix.cpu.layout import CpuLayout
    from hybrid.matrix.gpu.halo import DeviceHalo
    from hybrid.matrix.gpu.product import GpuProduct
    from hybrid.matrix.levels.task_table import TaskTable
    from hybrid.matrix.space.swept import RowSweeps
    from mtbdd.offset.distributed import DistributedMTBDD

    MatrixTable = LevelCurve | TaskTable
    # In the representation in which the matrix or the layers will be held.

__all__ = ["BACKENDS", "Backend", "CpuBackend", "GpuBackend", "Product", "ReferenceBackend", "choose_backend"]

BACKENDS = ("auto", "cpu", "gpu", "reference")


FEW_EQUATIONS = 10_000
"""Equations up to which NumPy solves most systems in the third of a second that compiled code loads for."""

FEW_ENTRIES = 1 << 19
"""Entries of a chain up to which NumPy begins with more equations, by sweeps of Gauss-Seidel."""

TIMES_SWEPT = 6
"""Times `FEW_EQUATIONS` that these may be."""


def choose_backend(asked: str | Backend, equations: int | None = None, times: int = 1) -> Backend:
    """Resolve a backend's name.

    Parameters
    ----------
    asked : str or Backend
        ``auto``, ``cpu``, ``gpu`` or ``reference``; a backend stays what it is.
    equations : int, optional
        Of the one system that it is for: without a device ``auto`` takes plain NumPy for few.
    times : int, optional
        As many are few that often.

    Returns
    -------
    Backend
        With a reason in words. For ``auto`` it is free: the GPU wherever a device can be used, and
        :func:`hybrid.inject` goes back to the CPU for a matrix that is too small or too large for it, and
        says so.

    Raises
    ------
    OptionError
        If the name is not one of these, or names a backend that cannot run here.
    """
    if isinstance(asked, Backend):
        return asked
    if asked == "reference":
        return ReferenceBackend()
    has_numba = importlib.util.find_spec("numba") is not None
    if asked == "cpu":
        if not has_numba:
            raise OptionError(
                "backend: 'cpu' needs the package numba, which is not installed; use 'reference'"
            )
        return CpuBackend()
    if asked == "gpu":
        problem = device_problem()
        if problem is not None:
            raise OptionError(
                f"backend: 'gpu' cannot run here: {problem}; or use 'cpu', or 'auto' for the fastest one"
            )
        return GpuBackend()
    if asked == "auto":
        problem = device_problem()
        if problem is None:
            return GpuBackend(f"a device is there, {current_device().name}", True)
        if equations is not None and equations <= times * FEW_EQUATIONS:
            few = f"NumPy solves {counted(equations, 'equation')} before compiled kernels are loaded"
            return ReferenceBackend(f"{few}; no GPU: {problem}")
        if has_numba:
            return CpuBackend(f"compiled kernels on {_threads()}; no GPU: {problem}", True)
        return ReferenceBackend("the package numba is not installed, so only NumPy is left", True)
    near = suggestion(str(asked), BACKENDS)
    raise OptionError(f"backend: expected one of {', '.join(BACKENDS)}, got {asked!r}{near}")


def _threads() -> str:
    """Say how many threads work: all cores that the process may use, or as many as were requested."""
    from hybrid.matrix.cpu.threads import available_cores, thread_count

    asked, cores = thread_count(), available_cores()
    return "all cores" if asked == cores else f"{asked} thread{'s' if asked > 1 else ''} of {cores} cores"


# The interface of backends: predictions, representations of matrices, vector spaces.

_TASK_BUILD_BYTES = 85
"""Peak bytes of expanding submatrices, listing paths and cutting them, for each entry or instance."""


class Backend(Record, ABC):
    """A place for matrices and vectors.

    Attributes
    ----------
    name : str
        What users call it.
    reason : str
        Why it is in use, in words.
    is_free : bool
        Whether it was chosen by default, so that a better one may take its place.
    """

    reason: str = "asked for"
    is_free: bool = False

    name: ClassVar[BackendName]

    def because(self, reason: str) -> Self:
        """Return the same backend for another reason, no longer free."""
        return replace(self, reason=reason, is_free=False)

    @property
    def place(self) -> VectorPlace:
        """The place of vectors over states for matrices of this backend."""
        return HOST

    def holds(self, x: object) -> bool:
        """Return whether a vector lies where this backend has its own, and the host cannot read it."""
        return False

    def admitted(self, table: MatrixTable) -> Backend:
        """Return the backend for a matrix: another one, with the reason, where this one is free and worse."""
        return self

    def admitted_by_all(self, matrix: DistributedMTBDD) -> Backend:
        """Return the backend for a matrix that processes share, the same in all; they call it at once.

        A device is free no longer then: no process changes over to the CPU by itself.
        """
        return self

    def measured(self, table: MatrixTable, memory_budget: int | None) -> tuple[LevelChoice, Product] | None:
        """Return the fastest level within a budget by timing some; None where that does not pay."""
        return None

    def represent(self, table: MatrixTable, level: int) -> Product:
        """Build the representation of a level of one matrix.

        Raises
        ------
        MemoryError
            If there is no room to make it or to hold it.
        OptionError
            If the level has too many row types.
        """
        if isinstance(table, LevelCurve):
            return self._in_row_types(table, level)
        candidate = table[level]
        require_memory(
            _TASK_BUILD_BYTES * (candidate.submatrix_nonzeros + candidate.instances_worst_case),
            f"making the tasks of level {level}",
            f"choose another {option('level')}, such as min-memory, or "
            f"{option('representation', 'row-types')}",
        )
        return self._in_tasks(table.matrix, cut_tasks(inject_level(table.matrix, level)))

    @abstractmethod
    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        """Hold a level in the form made for this backend."""

    @abstractmethod
    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        """Hold a level as submatrices and instances in tasks of 256 rows ([Tealdi13] §4.4.1.2)."""

    @abstractmethod
    def vector_space(self, product: Product, operator: LinearOperator) -> VectorSpace:
        """Return memory and operations for a solution.

        Parameters
        ----------
        product : Product
            The matrix as this backend holds it.
        operator : LinearOperator
            The operator that has it.
        """

    def halo(self, divided: DistributedMTBDD) -> Halo:
        """Return what a process receives before products with a matrix of which it has its own rows."""
        from hybrid.base.operands import HostHalo

        return HostHalo(divided)

    def distributed_space(
        self, product: Product | None, operator: LinearOperator, halo: Halo, communicator: Communicator
    ) -> VectorSpace:
        """Return memory and operations for a solution of all processes.

        Parameters
        ----------
        product : Product or None
            Of the own rows; None where none has an entry.
        operator : LinearOperator
            Its products and steps are those of all processes.
        halo : Halo
            From `halo`.
        communicator : Communicator
        """
        from hybrid.matrix.space.distributed import DistributedHostSpace, EmptySweeps

        space: VectorSpace = HostSpace(operator, sweeps=EmptySweeps)
        if product is not None:
            space = self.vector_space(product, operator)
        assert isinstance(space, HostSpace)
        return DistributedHostSpace(operator, space.passes, communicator, halo, lambda: space.sweeps)

    def is_scaled(self, table: MatrixTable, level: int) -> bool:
        """Return whether blocks are shared up to a scale at a level."""
        return False


# The level of a matrix or of layers; where bytes count, they are those of levels that were built.

_MOST_BUILT = 8
"""Levels that are built, those of least predicted time first, before the level of least memory is sought."""


class Holding(Record):
    """A level as a backend holds it.

    Attributes
    ----------
    products : tuple of Product
        The representation of every matrix, ready to multiply.
    """

    products: tuple[Product, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all matrices."""
        return sum(product.nbytes for product in self.products)


def weigh_parts(table: MatrixTable, backend: Backend) -> BestLevel[Holding, int]:
    """Build levels of a matrix, or of layers held one by one, and find the level of least memory."""
    return weigh(
        table.weights(backend.name),
        lambda level: _hold(table, backend, level),
        lambda holding: holding.nbytes,
    )


def select_level(
    table: MatrixTable, policy: str | int, backend: Backend, memory_budget: int | None = None
) -> tuple[LevelChoice, Holding | None]:
    """Choose the level of a matrix, or of layers that are held one by one.

    Parameters
    ----------
    table : LevelCurve or TaskTable
    policy, memory_budget
        See :func:`hybrid.matrix.levels.table.choose_level`. Where bytes are not known beforehand, levels are
        built for ``min-memory`` and for a budget.
    backend : Backend

    Returns
    -------
    LevelChoice
    Holding or None
        The level chosen, if it was built.

    Raises
    ------
    OptionError
        As :func:`hybrid.matrix.levels.table.choose_level`.
    """
    if table.knows_bytes(backend.name):
        return choose_level(table, policy, backend.name, memory_budget), None
    choice = choose_level(table, policy, backend.name)
    if policy == "min-memory":
        return _smallest(table, backend, memory_budget)
    if memory_budget is None:
        return choice, None
    least = {weight.level: weight.least_bytes for weight in table.weights(backend.name)}
    if isinstance(policy, int):
        holding = _hold(table, backend, choice.level)
        if holding.nbytes > memory_budget:
            raise OptionError(
                f"level: level {policy} needs {holding.nbytes} bytes, more than the budget of {memory_budget}"
            )
        return choice, holding
    light = (k for k in least if least[k] <= memory_budget)
    for level in rank_by_time(table, policy, backend.name, light)[:_MOST_BUILT]:
        holding, seconds = _hold(table, backend, level), table.seconds(level, backend.name)
        if holding.nbytes <= memory_budget:
            assert seconds is not None
            reason = (
                f"level {level} is predicted to be the fastest of those built within {memory_budget} bytes: "
                f"{bytes_text(holding.nbytes)}, {seconds_text(seconds)} a product on the {backend.name} "
                "backend"
            )
            return LevelChoice(level, reason), holding
    return _smallest(table, backend, memory_budget)


def _smallest(table: MatrixTable, backend: Backend, budget: int | None) -> tuple[LevelChoice, Holding]:
    """Return the level of least memory among those that are built, if it keeps the budget."""
    found = weigh_parts(table, backend)
    assert found.best is not None
    (size, level, built), count = found.best, len(found.costs)
    if budget is not None and size > budget:
        raise OptionError(
            f"memory_budget: no level fits {budget} bytes; of {count} levels built, level {level} "
            f"needs least, {size} bytes"
        )
    reason = f"level {level} needs the least memory, {bytes_text(size)}, of {count} levels built"
    return LevelChoice(level, reason), built


def _hold(table: MatrixTable, backend: Backend, level: int) -> Holding:
    return Holding(tuple(backend.represent(own, level) for own in table.apart))


# The backends of the host: compiled kernels on all cores, and plain NumPy.


class CpuBackend(Backend):
    """See `Backend`; compiled kernels on all cores."""

    name = "cpu"

    def is_scaled(self, table: MatrixTable, level: int) -> bool:
        """See `Backend.is_scaled`."""
        return table[level].scaled

    def vector_space(self, product: Product, operator: LinearOperator) -> HostSpace:
        """See `Backend.vector_space`."""
        from hybrid.matrix.cpu.passes import CpuPasses

        layout: CpuLayout | None = getattr(product, "layout", None)

        def sweeps() -> RowSweeps:
            from hybrid.matrix.cpu.sweep import RowSweep, schedule_sweep

            assert layout is not None
            n_rows, sharing = operator.shape[0], getattr(operator, "communicator", ALONE).size
            return RowSweep(layout, n_rows, schedule_sweep(layout, n_rows, sharing=sharing))

        return HostSpace(operator, CpuPasses(), None if layout is None else sweeps)

    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        from hybrid.matrix.cpu.layout import build_cpu_layout
        from hybrid.matrix.cpu.product import CpuProduct

        n_own = _own_columns(curve.matrix)
        layout = build_cpu_layout(curve.types(level, self.name), level, n_own)
        if layout is None:
            # Sharing up to a scale would cost accuracy here.
            layout = build_cpu_layout(curve.typed.plain, level, n_own)
        if layout is None:
            raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
        return CpuProduct(layout)

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        from hybrid.matrix.cpu.task_product import CpuTaskProduct

        return CpuTaskProduct(tasks, _own_columns(matrix))


def _own_columns(matrix: OffsetMTBDD) -> int | None:
    """Return how many columns are own ones, whose rows go first; None where all rows go together."""
    from mtbdd.offset.distributed import DistributedMTBDD

    if not isinstance(matrix, DistributedMTBDD) or not matrix.communicator.carries:
        return None
    return matrix.own_columns


class ReferenceBackend(Backend):
    """See `Backend`; plain NumPy, the oracle of the others."""

    name = "reference"

    def vector_space(self, product: Product, operator: LinearOperator) -> HostSpace:
        """See `Backend.vector_space`."""
        return HostSpace(operator, sweeps=cast(ReferenceProduct, product).sweeps)

    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        return ReferenceProduct(inject_level(curve.matrix, level))

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        return ReferenceProduct(tasks)


# The backend of a device: whether a matrix belongs there, which level is fastest there, how it is held.


class GpuBackend(Backend):
    """See `Backend`; a CUDA device, with vectors that lie there."""

    name = "gpu"

    @property
    def place(self) -> VectorPlace:
        """See `Backend.place`."""
        from hybrid.matrix.gpu.halo import DevicePlace

        return DevicePlace(current_device())

    def holds(self, x: object) -> bool:
        """See `Backend.holds`."""
        return lies_on_device(x)

    def admitted(self, table: MatrixTable) -> Backend:
        """Return the CPU instead, with the reason, where the device is free, and slower or full."""
        if not self.is_free:
            return self
        from hybrid.matrix.gpu.cost import reason_for_cpu, reason_of_size, reason_of_time

        device = current_device()
        if isinstance(table, LevelCurve):
            reason = reason_for_cpu(device, table.typed)
        else:
            fastest = min(table.seconds(c.level, self.name) for c in table.levels)
            reason = reason_of_size(device, table.nonzeros, table.shape)
            reason = reason or reason_of_time(device, table.nonzeros, fastest)
        return self if reason is None else CpuBackend(reason)

    def admitted_by_all(self, matrix: DistributedMTBDD) -> Backend:
        """See `Backend.admitted_by_all`; the entries of all processes count."""
        if not self.is_free:
            return self
        from hybrid.matrix.gpu.cost import reason_of_entries

        reason = reason_of_entries(int(matrix.communicator.total([matrix.n_entries])[0]))
        return self.because(self.reason) if reason is None else CpuBackend(reason)

    def measured(self, table: MatrixTable, memory_budget: int | None) -> tuple[LevelChoice, Product] | None:
        """Choose among the levels predicted to be fastest by timing them, if the matrix is large enough."""
        from hybrid.matrix.levels.probe import PROBE_ENTRIES, probe_levels

        if not isinstance(table, LevelCurve) or table.nonzeros < PROBE_ENTRIES:
            return None
        return probe_levels(current_device(), table, memory_budget)

    def is_scaled(self, table: MatrixTable, level: int) -> bool:
        """See `Backend.is_scaled`."""
        from hybrid.matrix.gpu.cost import types_of_level

        return isinstance(table, LevelCurve) and types_of_level(table.typed, level).classes.scaled

    def vector_space(self, product: Product, operator: LinearOperator) -> VectorSpace:
        """See `Backend.vector_space`."""
        from hybrid.matrix.gpu.product import GpuProduct

        return cast(GpuProduct, product).vector_space()

    def halo(self, divided: DistributedMTBDD) -> DeviceHalo:
        """See `Backend.halo`; on the device."""
        from hybrid.matrix.gpu.halo import DeviceHalo

        return DeviceHalo(current_device(), divided)

    def distributed_space(
        self, product: Product | None, operator: LinearOperator, halo: Halo, communicator: Communicator
    ) -> VectorSpace:
        """See `Backend.distributed_space`."""
        from hybrid.matrix.gpu.distributed_space import DistributedDeviceSpace, run_distributed
        from hybrid.matrix.gpu.product import DistributedGpuProduct

        own, device, there = (
            cast(DistributedGpuProduct | None, product),
            current_device(),
            cast("DeviceHalo", halo),
        )
        return DistributedDeviceSpace(
            device, run_distributed(device, own, there), communicator, there.host_waits
        )

    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        from hybrid.matrix.gpu.build import build_layout
        from mtbdd.offset.distributed import DistributedMTBDD

        matrix = curve.matrix
        own = matrix.own_columns if isinstance(matrix, DistributedMTBDD) else None
        return _product(matrix, build_layout(curve.typed, level, own_columns=own))

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        from hybrid.matrix.gpu.product import tasks_on_device

        return _product(matrix, tasks_on_device(current_device(), matrix.shape, tasks))


def _product(matrix: OffsetMTBDD, layout: TileMatrix | PairMatrix | BlockTasks) -> GpuProduct:
    """Return the product of a matrix, or of a process's rows of one, as it is laid out."""
    from hybrid.matrix.gpu.product import DistributedGpuProduct, GpuProduct
    from mtbdd.offset.distributed import DistributedMTBDD

    kind = DistributedGpuProduct if isinstance(matrix, DistributedMTBDD) else GpuProduct
    return kind(current_device(), layout)
