"""Tasks: 256 consecutive result rows with all instances cut to them ([Tealdi13] §4.4.1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.matrix.injection.injected import InjectedMatrix
from hybrid.matrix.injection.submatrices import CooBlocks

TASK_ROWS = 256
"""Rows of a task in the thesis."""

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """Consecutive result rows and the instances that write them.

    Attributes
    ----------
    first_row, n_rows : int
        The rows; only the last task may have fewer than the others.
    instances : ndarray, shape (instances of the task,), structured
        Fields ``row``, ``column``, ``submatrix``, ``offset_begin``, ``offset_end``: entries
        ``offset_begin`` up to ``offset_end`` of the submatrix, with its corner at (row, column), write rows
        of this task only.
    """

    first_row: int
    n_rows: int
    instances: NDArray[Any]


@dataclass(frozen=True, eq=False)
class TaskList:
    """All tasks of an injected matrix.

    Attributes
    ----------
    shape : tuple of int
        Shape of the matrix.
    blocks : CooBlocks
        The submatrices that the instances refer to.
    task_rows : int
        Rows of a task.
    instances : ndarray, shape (cut instances,), structured
        Instances of all tasks, task by task, as described in :class:`Task`.
    task_ptr : ndarray, shape (tasks + 1,), int64
        Instances of task i are ``task_ptr[i] .. task_ptr[i + 1]``.
    """

    shape: tuple[int, int]
    blocks: CooBlocks
    task_rows: int
    instances: NDArray[Any]
    task_ptr: Int64Array

    @property
    def nbytes(self) -> int:
        """Bytes of the second representation: submatrices, cut instances and task pointers (MemR)."""
        return self.blocks.nbytes + self.instances.nbytes + self.task_ptr.nbytes

    def __len__(self) -> int:
        return len(self.task_ptr) - 1

    def __getitem__(self, number: int) -> Task:
        if not 0 <= number < len(self):
            raise IndexError(f"number: expected a task 0..{len(self) - 1}, got {number}")
        first = number * self.task_rows
        kept = slice(int(self.task_ptr[number]), int(self.task_ptr[number + 1]))
        rows = min(self.task_rows, self.shape[0] - first)
        return Task(first, rows, self.instances[kept])

    def __iter__(self) -> Iterator[Task]:
        return (self[number] for number in range(len(self)))


class RowCuts(NamedTuple):
    """Submatrices cut at the borders of tasks: the parts that have entries, owner by owner.

    Attributes
    ----------
    owner : ndarray, shape (parts,), int64
        Position of the submatrix that is cut among those given.
    task : ndarray, shape (parts,), int64
    begin, end : ndarray, shape (parts,), int64
        Entries of the submatrix that lie in the rows of the task.
    """

    owner: Int64Array
    task: Int64Array
    begin: Int64Array
    end: Int64Array


def cut_rows(blocks: CooBlocks, row: Int64Array, number: Int64Array, task_rows: int = TASK_ROWS) -> RowCuts:
    """Cut submatrices that begin at given rows at every multiple of ``task_rows`` rows.

    Parameters
    ----------
    blocks : CooBlocks
    row, number : ndarray, shape (m,), int64
        First row of each, and which submatrix lies there.
    task_rows : int

    Returns
    -------
    RowCuts
        Parts without entries are left out.

    Notes
    -----
    Time: O(parts * log(entries)).
    """
    first_task = row // task_rows
    parts = (row + blocks.n_rows[number] - 1) // task_rows - first_task + 1
    owner = np.repeat(np.arange(len(row)), parts)
    task = np.arange(len(owner)) - np.repeat(pointers(np, parts)[:-1] - first_task, parts)
    number = number[owner]
    stride = int(blocks.n_rows.max(initial=0)) + 1
    block = np.repeat(np.arange(len(blocks)), np.diff(blocks.ptr))
    # Entries are sorted by block, then by row: one search over all of them finds every cut.
    key = block * stride + blocks.row
    low = np.clip(task * task_rows - row[owner], 0, blocks.n_rows[number])
    high = np.clip((task + 1) * task_rows - row[owner], 0, blocks.n_rows[number])
    begin = np.searchsorted(key, number * stride + low) - blocks.ptr[number]
    end = np.searchsorted(key, number * stride + high) - blocks.ptr[number]
    kept = np.flatnonzero(begin < end)
    return RowCuts(owner[kept], task[kept], begin[kept], end[kept])


def cut_tasks(injected: InjectedMatrix, task_rows: int = TASK_ROWS) -> TaskList:
    """Cut the instances at every multiple of ``task_rows`` rows and group them by task.

    Parameters
    ----------
    injected : InjectedMatrix
        Submatrices and instances.
    task_rows : int
        Rows of a task, 256 as in the thesis.

    Returns
    -------
    TaskList
        Parts without entries are left out, so there are at most floor(n / 256) + 2 for an instance whose
        submatrix has n rows, and usually fewer.

    Raises
    ------
    ValueError
        If ``task_rows`` is less than one.

    Notes
    -----
    Time: O(cut instances * log(entries)).
    """
    if task_rows < 1:
        raise ValueError(f"task_rows: expected at least 1, got {task_rows}")
    blocks, instances = injected.blocks, injected.instances
    row = instances["row"].astype(np.int64)
    number = instances["submatrix"].astype(np.int64)
    found = cut_rows(blocks, row, number, task_rows)
    order = np.argsort(found.task, kind="stable")
    owner, task = found.owner[order], found.task[order]
    index = instances.dtype["row"]
    offset = np.int32 if int(np.diff(blocks.ptr).max(initial=0)) < 2**31 else np.int64
    fields: list[tuple[str, Any]] = [
        ("row", index),
        ("column", index),
        ("submatrix", np.int32),
        ("offset_begin", offset),
        ("offset_end", offset),
    ]
    cut = np.empty(len(owner), fields)
    for name in ("row", "column", "submatrix"):
        cut[name] = instances[name][owner]
    cut["offset_begin"], cut["offset_end"] = found.begin[order], found.end[order]
    n_tasks = -(-injected.shape[0] // task_rows)
    task_ptr = pointers(np, np.bincount(task, minlength=n_tasks))
    return TaskList(injected.shape, blocks, task_rows, cut, task_ptr)
