"""The backends of the host: compiled kernels on all cores, and plain NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text, seconds_text
from hybrid.matrix.backends.base import Backend, MatrixTable
from hybrid.matrix.injection.injected import TaskList, inject_level
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import BestLevel, LevelChoice, rank_by_time, weigh
from hybrid.matrix.reference import ReferenceProduct
from hybrid.matrix.space.base import LinearOperator, Product
from hybrid.matrix.space.host import HostSpace
from mtbdd.base.communicator import ALONE
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    # Compiled code is loaded on first use.
    from hybrid.matrix.cpu.layout import CpuLayout
    from hybrid.matrix.space.swept import RowSweeps


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
    table: MatrixTable,
    policy: str | int,
    backend: Backend,
    memory_budget: int | None = None,
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
    from hybrid.matrix.levels.table import choose_level

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

        single = getattr(product, "multiply_single", None)
        return HostSpace(operator, CpuPasses(), single, None if layout is None else sweeps)

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
        return HostSpace(operator)

    def _in_row_types(self, curve: LevelCurve, level: int) -> Product:
        return ReferenceProduct(inject_level(curve.matrix, level))

    def _in_tasks(self, matrix: OffsetMTBDD, tasks: TaskList) -> Product:
        return ReferenceProduct(tasks)
