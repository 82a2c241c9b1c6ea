"""Injection: the nodes of one level replaced by explicit submatrices, and the paths that lead to them; tasks.

Every path from the root to a node of the injection level is an instance (row, column, submatrix). The
submatrix occurs in the matrix with its corner at that row and column ([Tealdi13] §§4.3.3 and 4.4.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.errors import OptionError
from hybrid.matrix.injection.submatrices import CooBlocks, Submatrix, level_blocks
from mtbdd.base.records import Record
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]


class Instance(Record):
    """One occurrence of a submatrix, a path of the diagram.

    Attributes
    ----------
    row, column : int
        Where its corner lies in the matrix.
    submatrix : int
        Number of the submatrix.
    """

    row: int
    column: int
    submatrix: int


class InjectedMatrix(Record, eq=False):
    """A matrix cut at one level: submatrices and their instances.

    Attributes
    ----------
    shape : tuple of int
        Shape of the matrix.
    level : int
        Injection level: the number of variables above it.
    blocks : CooBlocks
        The submatrices, one a node of the level.
    instances : ndarray, shape (paths,), structured
        Fields ``row`` and ``column`` (int32, or int64 where the matrix has 2**31 rows or columns) and
        ``submatrix`` (int32), sorted by row, then by column.
    """

    shape: tuple[int, int]
    level: int
    blocks: CooBlocks
    instances: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the first representation: entries, submatrix pointers and instances."""
        return self.blocks.nbytes + self.instances.nbytes

    @property
    def n_submatrices(self) -> int:
        """Number of submatrices."""
        return len(self.blocks)

    def submatrix(self, number: int) -> Submatrix:
        """Return a view of one submatrix."""
        return self.blocks[number]

    def instance(self, number: int) -> Instance:
        """Return one instance."""
        row, column, submatrix = self.instances[number].tolist()
        return Instance(row, column, submatrix)

    def __iter__(self) -> Iterator[Instance]:
        return (Instance(*fields) for fields in self.instances.tolist())

    def __len__(self) -> int:
        return len(self.instances)

    def instances_by_submatrix(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield every submatrix number with its instances."""
        grouped, ptr = self._grouped
        for number in range(self.n_submatrices):
            yield number, grouped[ptr[number] : ptr[number + 1]]

    @cached_property
    def _grouped(self) -> tuple[NDArray[Any], Int64Array]:
        numbers = self.instances["submatrix"]
        order = np.argsort(numbers, kind="stable")
        return self.instances[order], pointers(np, np.bincount(numbers, minlength=self.n_submatrices))


def enumerate_paths(matrix: OffsetMTBDD, k: int) -> tuple[Int64Array, Int64Array, NDArray[np.int32]]:
    """List the paths from the root to the nodes of level k.

    Returns
    -------
    row, column : ndarray, shape (paths,), int64
        Sums of the offsets of the nodes left by their then edges.
    node : ndarray, shape (paths,), int32
        Node of level k in which each path ends. Paths are sorted by row, then by column.

    Notes
    -----
    Time and memory: O(paths, summed over the levels down to k), array sweeps only.
    """
    size = min(matrix.n_entries, 1)  # the root
    node = np.zeros(size, np.int32)
    row, column = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for depth in range(k):
        node, row, column = descend(np, matrix, depth, node, row, column)
    order = np.lexsort((column, row))
    return row[order], column[order], node[order]


def inject_level(matrix: OffsetMTBDD, k: int) -> InjectedMatrix:
    """Replace the nodes of level k by their submatrices.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    k : int
        Injection level, 0 (one submatrix, the whole matrix) .. 2n (the terminals).

    Returns
    -------
    InjectedMatrix
        Submatrices and instances.

    Raises
    ------
    ValueError
        If the matrix has no such level.

    Notes
    -----
    Time: O(paths + entries) times the levels that each is carried through.
    :func:`hybrid.matrix.levels.curve.level_curve` computes the memory beforehand.
    """
    if not 0 <= k <= matrix.n_levels:
        raise OptionError(f"level: expected 0..{matrix.n_levels} for this matrix, got {k}")
    blocks = level_blocks(matrix, k)
    row, column, node = enumerate_paths(matrix, k)
    index = np.int32 if max(matrix.shape) < 2**31 else np.int64
    instances = np.empty(len(node), [("row", index), ("column", index), ("submatrix", np.int32)])
    instances["row"], instances["column"], instances["submatrix"] = row, column, node
    return InjectedMatrix(matrix.shape, k, blocks, instances)


# Tasks: 256 consecutive result rows with all instances cut to them ([Tealdi13] §4.4.1.2).

TASK_ROWS = 256
"""Rows of a task in the thesis."""


class Task(Record, eq=False):
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


class TaskList(Record, eq=False):
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
