"""The backend of a device: whether a matrix belongs there, which level is fastest there, how it is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpu_kernels import current_device
from hybrid.base.arrays import lies_on_device
from hybrid.matrix.backends import Backend, CpuBackend, MatrixTable
from hybrid.matrix.injection.injected import TaskList
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import LevelChoice
from hybrid.matrix.space.base import LinearOperator, Product
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.base.communicator import Communicator
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import VectorPlace

if TYPE_CHECKING:
    from gpu_kernels import BlockTasks, PairMatrix, TileMatrix
    from hybrid.base.halo import Halo
    from hybrid.matrix.gpu.halo import DeviceHalo
    from hybrid.matrix.gpu.product import GpuProduct
    from mtbdd.offset.distributed import DistributedMTBDD


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
        from hybrid.matrix.gpu.admission import reason_for_cpu, reason_of_size, reason_of_time

        device = current_device()
        if isinstance(table, LevelCurve):
            reason = reason_for_cpu(device, table.typed)
        else:
            fastest = min(table.seconds(c.level, self.name) for c in table.levels)
            reason = reason_of_size(device, table.nonzeros, table.shape)
            reason = reason or reason_of_time(device, table.nonzeros, fastest)
        return self if reason is None else CpuBackend(reason)

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
