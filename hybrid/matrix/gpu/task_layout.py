"""The representation of [Tealdi13] on the device: injected submatrices and tasks for the block kernel."""

from __future__ import annotations

from gpu_kernels import BlockTasks, Device
from hybrid.matrix.injection.injected import inject_level
from hybrid.matrix.injection.tasks import TaskList, cut_tasks
from mtbdd.offset.offset import OffsetMTBDD


def build_block_tasks(device: Device, matrix: OffsetMTBDD, k: int, wide: bool = False) -> BlockTasks:
    """Inject level k, cut the instances at every 256 rows, and copy all to the device.

    Parameters
    ----------
    device : Device
    matrix : OffsetMTBDD
    k : int
        Injection level, 0 .. 2n.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Returns
    -------
    BlockTasks
        The second representation of [Tealdi13] 4.4.1.2.

    Raises
    ------
    MemoryError
        If the device has no room for it, with required and available bytes; it is made on the host first.
    """
    return tasks_on_device(device, matrix.shape, cut_tasks(inject_level(matrix, k)), wide)


def tasks_on_device(
    device: Device, shape: tuple[int, int], tasks: TaskList, wide: bool = False
) -> BlockTasks:
    """Copy the tasks of a matrix to the device; see `build_block_tasks`."""
    cut, blocks = tasks.instances, tasks.blocks
    return BlockTasks.on_device(
        device,
        shape,
        wide,
        task_ptr=tasks.task_ptr,
        row=cut["row"],
        column=cut["column"],
        submatrix=cut["submatrix"],
        offset_begin=cut["offset_begin"],
        offset_end=cut["offset_end"],
        entry_ptr=blocks.ptr,
        entry_row=blocks.row,
        entry_column=blocks.column,
        entry_value=blocks.value,
    )
