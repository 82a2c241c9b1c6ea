"""The backends of the host: compiled kernels on all cores, and plain NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.matrix.backends.base import Backend, MatrixTable, Product
from hybrid.matrix.injection.injected import inject_level
from hybrid.matrix.injection.tasks import TaskList
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.reference import ReferenceProduct, ReferenceTaskProduct
from hybrid.matrix.space.base import MatrixOperator
from hybrid.matrix.space.host import HostWorkspace
from hybrid.matrix.space.swept import RowSweeps
from mtbdd.base.communicator import ALONE
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    # Compiled code is loaded on first use.
    from hybrid.matrix.cpu.layout import CpuLayout


class CpuBackend(Backend):
    """See `Backend`; compiled kernels on all cores."""

    name = "cpu"

    def is_scaled(self, table: MatrixTable, level: int) -> bool:
        """See `Backend.is_scaled`."""
        return table[level].scaled

    def workspace(self, product: Product, operator: MatrixOperator) -> HostWorkspace:
        """See `Backend.workspace`."""
        from hybrid.matrix.cpu.passes import CpuPasses

        layout: CpuLayout | None = getattr(product, "layout", None)

        def sweeps() -> RowSweeps:
            from hybrid.matrix.cpu.sweep import RowSweep
            from hybrid.matrix.cpu.sweep_schedule import schedule_sweep

            assert layout is not None
            n_rows, sharing = operator.shape[0], getattr(operator, "communicator", ALONE).size
            return RowSweep(layout, n_rows, schedule_sweep(layout, n_rows, sharing=sharing))

        single = getattr(product, "multiply_single", None)
        return HostWorkspace(operator, CpuPasses(), single, None if layout is None else sweeps)

    def _in_row_types(self, matrix: OffsetMTBDD, curve: LevelCurve, level: int) -> Product:
        from hybrid.matrix.cpu.layout import build_cpu_layout
        from hybrid.matrix.cpu.product import CpuProduct

        early = _early_columns(matrix)
        layout = build_cpu_layout(curve.scaled if curve[level].scaled else curve.plain, level, early)
        if layout is None:
            # Sharing up to a scale would cost accuracy here.
            layout = build_cpu_layout(curve.plain, level, early)
        if layout is None:
            raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
        return CpuProduct(layout)

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        from hybrid.matrix.cpu.task_product import CpuTaskProduct

        return CpuTaskProduct(tasks, _early_columns(matrix))


def _early_columns(matrix: OffsetMTBDD) -> int | None:
    """Return how many columns are there while others are received; None where all are there."""
    if not isinstance(matrix, DividedMTBDD) or not matrix.communicator.carries:
        return None
    return matrix.own_columns


class ReferenceBackend(Backend):
    """See `Backend`; plain NumPy, the oracle of the others."""

    name = "reference"

    def workspace(self, product: Product, operator: MatrixOperator) -> HostWorkspace:
        """See `Backend.workspace`."""
        return HostWorkspace(operator)

    def _in_row_types(self, matrix: OffsetMTBDD, curve: LevelCurve, level: int) -> Product:
        return ReferenceProduct(inject_level(matrix, level))

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        return ReferenceTaskProduct(tasks)
