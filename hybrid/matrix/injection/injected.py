"""Injection: the nodes of one level replaced by explicit submatrices, and the paths that lead to them.

Every path from the root to a node of the injection level is an instance (row, column, submatrix): the
submatrix occurs in the matrix with its corner at that row and column ([Tealdi13] §§4.3.3 and 4.4.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.errors import OptionError
from hybrid.matrix.injection.submatrices import CooBlocks, Submatrix, expand_nodes
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
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


@dataclass(frozen=True, eq=False)
class InjectedMatrix:
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
    size = matrix.nodes[0]
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
    :func:`hybrid.matrix.levels.curve.level_curve`
    tells the memory beforehand.
    """
    if not 0 <= k <= matrix.n_levels:
        raise OptionError(f"level: expected 0..{matrix.n_levels} for this matrix, got {k}")
    blocks = expand_nodes(np, matrix, k, np.arange(matrix.nodes[k]))
    row, column, node = enumerate_paths(matrix, k)
    index = np.int32 if max(matrix.shape) < 2**31 else np.int64
    instances = np.empty(len(node), [("row", index), ("column", index), ("submatrix", np.int32)])
    instances["row"], instances["column"], instances["submatrix"] = row, column, node
    return InjectedMatrix(matrix.shape, k, blocks, instances)
