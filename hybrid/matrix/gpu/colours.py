"""Gauss-Seidel on a device: rows are given colours, and a sweep takes one colour after another.

The rows of a colour are relaxed at once, from the newest values of all others. Colours are those of the graph
of the matrix, first fit. Rows of one colour do not read one another where so few suffice: a sweep is then
Gauss-Seidel's in the order of the colours. On the hybrid matrix groups of rows have colours. Rows within a
group see the old values of one another, as in pseudo-Gauss-Seidel by blocks. Where colours run out, rows
share one although they read one another. For any colours, sweeps are a regular splitting of the M-matrix
of a system. It converges wherever Jacobi's does, in the long run no slower (Varga, Matrix Iterative Analysis,
2nd ed., 2000, §3.6).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import CodedVector, Device, Step, TileMatrix, relax_rows, run_tiles
from gpu_kernels.explicit import ExplicitMatrix, Format
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import Array
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.gpu.build import build_layout
from hybrid.matrix.gpu.cost import types_of_level
from hybrid.matrix.gpu.device_space import DeviceSpace
from hybrid.matrix.gpu.repeated_steps import DeviceSteps, UnfusedSteps
from hybrid.matrix.injection.row_types import enumerate_groups, group_arrows
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.space.vector_space import Steps

MOST_COLOURS = 16
"""A colour takes launches of its own, on a share of the rows."""


def colours_of(n: int, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a colour for each of n vertices of a graph, first fit in their order, shape (n,).

    Time: O(n + edges), with compiled code to load.
    """
    from scipy.sparse import csr_array

    from hybrid.matrix.cpu.graph_kernels import first_fit_colours

    arrows = csr_array((np.ones(len(source), np.bool_), (source, target)), shape=(n, n))
    both = (arrows + arrows.T).tocsr()
    neighbours = both.indptr.astype(np.int64), both.indices.astype(np.int64)
    found: NDArray[np.int64] = first_fit_colours(*neighbours, MOST_COLOURS)
    return found


class ColouredTiles:
    """A hybrid matrix on a device, its groups by colours, for `hybrid.solvers.gauss_seidel`.

    Parameters
    ----------
    device : Device
    typed : TypedMatrix
        A square matrix without diagonal.
    k : int
        Level of the groups.

    Notes
    -----
    Memory: a layout of the level, and a byte a row and colour.
    """

    def __init__(self, device: Device, typed: TypedMatrix, k: int) -> None:
        types = types_of_level(typed, k)
        matrix, groups = types.classes.matrix, enumerate_groups(np, types, k)
        size = types[k].rows[groups.type].astype(np.int64)
        colour = colours_of(len(groups), *group_arrows(groups, size, matrix.columns[k]))
        # Rows without a group go with the first colour.
        of_row = np.zeros(matrix.n_rows, np.int64)
        of_row[concatenated_ranges(groups.row, size)] = np.repeat(colour, size)
        layout = build_layout(typed, k, block_row=colour)
        assert isinstance(layout, TileMatrix)
        self.colours = int(colour.max(initial=0)) + 1
        self._device, self._tiles = device, layout
        self._masks = [device.xp.asarray(of_row == number) for number in range(self.colours)]

    @property
    def nbytes(self) -> int:
        """Bytes of the layout and of the colours."""
        return self._tiles.nbytes + sum(int(mask.nbytes) for mask in self._masks)

    def vector_space(self) -> DeviceSpace:
        """Return the vector space of the layout: its products take all colours at once."""
        return DeviceSpace(self._device, self._run)

    def into(self, x: Array) -> Array:
        """Return a vector over the rows as sweeps take it: the same."""
        return x

    back = into

    def sweeps(self, steps: Steps) -> DeviceSteps:
        """Return steps of the vector space as sweeps over the colours."""
        assert isinstance(steps, DeviceSteps)
        return steps.over(self._sweep)

    def _run(self, step: Step, x: Array, out: Array) -> None:
        run_tiles(self._device, self._tiles, step, x, out)

    def _sweep(self, step: Step, x: Array, out: Array) -> None:
        """Queue a sweep; x has the newest values meanwhile, and ends as a copy of out."""
        single = len(self._tiles.block_row_ptr) < 2
        for number, mask in enumerate(self._masks):
            run_tiles(self._device, self._tiles, step, x, out, part="all" if single else number)
            self._device.xp.copyto(x, out, where=mask)


class ColouredRows:
    """An explicit matrix on a device, its rows and columns put colour by colour; see `ColouredTiles`.

    Parameters
    ----------
    device : Device
    matrix : CsrArrays
        Square, without diagonal.
    kind : Format
        The format of every colour.

    Notes
    -----
    Memory: the matrix again, and a vector.  Set-up on the host: O(entries).
    """

    def __init__(self, device: Device, matrix: CsrArrays, kind: Format) -> None:
        csr = matrix.to_host().to_scipy()
        n = csr.shape[0]
        source = np.repeat(np.arange(n), np.diff(csr.indptr))
        other = source != csr.indices
        colour = colours_of(n, source[other], csr.indices[other].astype(np.int64))
        self.colours = int(colour.max(initial=0)) + 1
        order = np.argsort(colour, kind="stable")
        ends = np.cumsum(np.bincount(colour, minlength=self.colours)).tolist()
        sorted_rows = csr[order][:, order].tocsr()
        self._device, self._size = device, n
        self._parts: list[tuple[slice, ExplicitMatrix]] = []
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            part = sorted_rows[begin:end]
            held = kind.from_csr(device, part.indptr, part.indices, part.data, n)
            self._parts.append((slice(begin, end), held))
        self._order = device.xp.asarray(order)
        self._rank = np.argsort(order)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix on the device."""
        return sum(part.nbytes for _, part in self._parts)

    @cached_property
    def _product(self) -> Array:
        return self._device.xp.empty(self._size)

    def vector_space(self) -> DeviceSpace:
        """Return the vector space of the matrix in the order of its colours."""
        return DeviceSpace(self._device, UnfusedSteps(self._device, self._multiply, self._size))

    def into(self, x: Array) -> Array:
        """Return a vector over the rows in the order of the colours, on the device."""
        plain = x.expand(self._device) if isinstance(x, CodedVector) else self._device.xp.asarray(x)
        return plain[self._order]

    def back(self, x: Array) -> Array:
        """Return a vector in the order of the rows, where it lies."""
        return x[self._rank if isinstance(x, np.ndarray) else self._device.xp.asarray(self._rank)]

    def sweeps(self, steps: Steps) -> DeviceSteps:
        """Return steps of the vector space as sweeps over the colours."""
        assert isinstance(steps, DeviceSteps)
        return steps.over(self._sweep)

    def _multiply(self, x: Array, out: Array) -> None:
        for rows, part in self._parts:
            part.multiply(self._device, x, out[rows])

    def _sweep(self, step: Step, x: Array, out: Array) -> None:
        """Queue a sweep; x has the newest values meanwhile, and ends as a copy of out."""
        product = self._product
        for rows, part in self._parts:
            part.multiply(self._device, x, product[rows])
            own = replace(step, diagonal=_cut(step.diagonal, rows), right=_cut(step.right, rows))
            relax_rows(self._device, own, x[rows], out[rows], product=product[rows])
            x[rows] = out[rows]


def _cut(vector: CodedVector, rows: slice) -> CodedVector:
    """Return some elements of a vector, which share its memory."""
    if vector.elements is None:
        return vector
    elements = vector.elements[rows]
    return replace(vector, size=len(elements), elements=elements)
