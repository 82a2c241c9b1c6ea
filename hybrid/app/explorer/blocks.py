"""Pictures of the explorer: where blocks lie, and plots drawn with matplotlib (extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.app.explorer.report import LevelReport
from hybrid.base.figures import (
    COLOURS,
    check_ending,
    new_figure,
    save_figure,
    shown_text,
    styled,
    whole_ticks,
)
from hybrid.matrix.explicit.density import grid_of
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD

# Which submatrix of a level lies where: the entries of a matrix on a grid, distinguished by submatrix.
#
# The paths of the diagram are followed once, from the root to where what is below a node lies within one cell
# of the grid. At such a place the entries of a cell are known. The levels that the path went through give the
# submatrices of the levels above. How they spread over the submatrices of the levels below is a sum over the
# diagram, not over paths. The explicit matrix is never built: a grid of 10^10 entries takes as long as that
# of a small relative.

Int64Array = NDArray[np.int64]

CELLS = 96
"""Cells a side of the grid."""

SHOWN = 8
"""Submatrices of a level with a colour of their own, those with the most entries; others share one."""

_MOST_PATHS = 1 << 20  # followed at a time; more take a coarser grid
_MOST_OUTLINES = 400
_MOST_NODES = 1 << 19  # of all levels; the sums over a larger diagram would take minutes
_SIDE = 4096  # units in which outlines are measured


@dataclass(frozen=True)
class ShownBlock:
    """A submatrix of a level: its sides, its entries, and how often it occurs."""

    rows: int
    columns: int
    entries: int
    paths: int


@dataclass(frozen=True, eq=False)
class LevelBlocks:
    """The submatrices of one level on the grid.

    `shown`: at most `SHOWN`, the one with the most entries of the matrix first. `kinds` (ndarray, shape
    (cells with entries,), uint8): which of them holds the most entries of each cell; ``len(shown)`` stands
    for all others. `outlines` (ndarray, shape (blocks, 5), int64, or None): row, column, rows, columns, each
    in 4096ths of the matrix's side, and the kind of every occurrence that is larger than a cell; None if they
    are too many to be seen.
    """

    shown: tuple[ShownBlock, ...]
    kinds: NDArray[np.uint8]
    outlines: Int64Array | None


@dataclass(frozen=True, eq=False)
class BlockPicture:
    """A matrix on a grid, at every level.

    Attributes
    ----------
    shape : tuple of int
        Of the matrix.
    grid : tuple of int
        Rows and columns of the grid. Row r of the matrix is in grid row ``r * grid[0] // shape[0]``.
    cells : ndarray, shape (cells with entries,), int64
        ``grid row * grid[1] + grid column``, ascending.
    entries : ndarray, shape (cells with entries,), int64
    levels : tuple of LevelBlocks
        2n + 1.
    """

    shape: tuple[int, int]
    grid: tuple[int, int]
    cells: Int64Array
    entries: Int64Array
    levels: tuple[LevelBlocks, ...]


def block_picture(matrix: OffsetMTBDD, cells: int = CELLS) -> BlockPicture | None:
    """Find which submatrices of every level lie where.

    Parameters
    ----------
    matrix : OffsetMTBDD
    cells : int
        Cells along the longer side, at most; fewer if more than 2**20 paths straddle their borders.

    Returns
    -------
    BlockPicture or None
        None for diagrams of more than 2**19 nodes.

    Notes
    -----
    Time: O(levels * (nodes + paths that straddle borders of cells)).
    """
    if sum(matrix.nodes) > _MOST_NODES:
        return None
    shown = [_most_entries(matrix, k) for k in range(matrix.n_levels + 1)]
    kinds = [_kinds(size, nodes) for size, nodes in zip(matrix.nodes, shown, strict=True)]
    found = _follow(matrix, kinds, cells)
    while found is None:
        cells //= 2
        found = _follow(matrix, kinds, cells)
    return found.picture(matrix, shown, kinds)


def _most_entries(matrix: OffsetMTBDD, k: int) -> Int64Array:
    """Return the nodes of a level whose occurrences together hold the most entries, most first."""
    held = matrix.paths_above[k].astype(np.float64) * matrix.entries_below[k]
    return np.argsort(-held, kind="stable")[:SHOWN].astype(np.int64)


def _kinds(size: int, shown: Int64Array) -> NDArray[np.uint8]:
    """Return the kind of every node of a level."""
    kinds = np.full(size, len(shown), np.uint8)
    kinds[shown] = np.arange(len(shown), dtype=np.uint8)
    return kinds


def _follow(matrix: OffsetMTBDD, kinds: list[NDArray[np.uint8]], cells: int) -> _Followed | None:
    """Follow the paths until they lie within cells; None if they become too many for more than one cell."""
    grid = grid_of(matrix.shape, cells)
    sides, halves = np.array(matrix.shape), np.array(grid)
    found = _Followed(grid, [], [])
    node = np.arange(matrix.nodes[0], dtype=np.int64)
    row, column = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
    history = np.zeros((len(node), 0), np.uint8)
    for k in range(matrix.n_levels + 1):
        if len(node) > _MOST_PATHS and cells > 1:
            return None
        history = np.column_stack((history, kinds[k][node]))
        rows, columns = matrix.rows[k][node], matrix.columns[k][node]
        found.outlines.append(_outlines(matrix, grid, row, column, rows, columns, history[:, -1]))
        first = np.stack((row, column)) * halves[:, None] // sides[:, None]
        last = np.stack((row + rows - 1, column + columns - 1)) * halves[:, None] // sides[:, None]
        within = (first == last).all(axis=0)
        cell = first[0, within] * grid[1] + first[1, within]
        found.within.append(_Within(node[within], cell, history[within]))
        if k < matrix.n_levels:
            left = np.flatnonzero(~within)
            node, row, column, history = descend(
                np, matrix, k, node[left], row[left], column[left], history[left]
            )
    return found


def _outlines(
    matrix: OffsetMTBDD,
    grid: tuple[int, int],
    row: Int64Array,
    column: Int64Array,
    rows: Int64Array,
    columns: Int64Array,
    kinds: NDArray[np.uint8],
) -> Int64Array | None:
    """Return the outlines of the blocks that are larger than a cell, None if they are too many."""
    n_rows, n_columns = matrix.shape
    large = (rows * grid[0] > n_rows) | (columns * grid[1] > n_columns)
    if large.sum() > _MOST_OUTLINES:
        return None
    # In doubles: sides of 10^15 times 4096 do not fit 63 bits, and the drawing has fewer pixels.
    top, left = row[large] / n_rows, column[large] / n_columns
    bottom, right = (row + rows)[large] / n_rows, (column + columns)[large] / n_columns
    edges = [np.rint(edge * _SIDE).astype(np.int64) for edge in (top, left, bottom, right)]
    own = (edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1], kinds[large].astype(np.int64))
    return np.column_stack(own)


@dataclass(frozen=True, eq=False)
class _Within:
    """Paths of one level that lie within cells: nodes, cells, kinds of the levels above and of their own."""

    node: Int64Array
    cell: Int64Array
    history: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class _Followed:
    """Nodes of a level at which every path lies within a cell."""

    grid: tuple[int, int]
    within: list[_Within]
    outlines: list[Int64Array | None]

    def picture(
        self, matrix: OffsetMTBDD, shown: list[Int64Array], kinds: list[NDArray[np.uint8]]
    ) -> BlockPicture:
        """Count the entries of the cells by kind, level by level."""
        below = matrix.entries_below
        total = np.zeros(self.grid[0] * self.grid[1], np.int64)
        for k, own in enumerate(self.within):
            np.add.at(total, own.cell, below[k][own.node])
        cells = np.flatnonzero(total).astype(np.int64)
        place = np.zeros(total.size, np.int64)
        place[cells] = np.arange(cells.size)
        counts = [self._counts(k, place, matrix.nodes[k], cells.size) for k in range(len(self.within))]
        levels = []
        for k in range(matrix.n_levels + 1):
            held = self._above(matrix, k, place, cells.size) + self._below(matrix, k, kinds[k], counts)
            names = tuple(
                ShownBlock(
                    *(int(a[k][node]) for a in (matrix.rows, matrix.columns, below, matrix.paths_above))
                )
                for node in shown[k]
            )
            levels.append(LevelBlocks(names, held.argmax(axis=1).astype(np.uint8), self.outlines[k]))
        return BlockPicture(matrix.shape, self.grid, cells, total[cells], tuple(levels))

    def _counts(self, k: int, place: Int64Array, nodes: int, cells: int) -> Any:
        """Return how often every node of a level lies within every cell, shape (cells, nodes), sparse."""
        from scipy.sparse import coo_array

        own = self.within[k]
        ones = np.ones(own.node.size)
        return coo_array((ones, (place[own.cell], own.node)), shape=(cells, nodes)).tocsr()

    def _above(self, matrix: OffsetMTBDD, k: int, place: Int64Array, cells: int) -> NDArray[np.float64]:
        """Return the entries of the cells, by kind at level k, of paths that are followed to it at least."""
        held = np.zeros(cells * (SHOWN + 1))
        for j in range(k, matrix.n_levels + 1):
            own = self.within[j]
            if own.node.size:
                at = place[own.cell] * (SHOWN + 1) + own.history[:, k]
                held += np.bincount(at, matrix.entries_below[j][own.node].astype(np.float64), held.size)
        return held.reshape(cells, SHOWN + 1)

    def _below(self, matrix: OffsetMTBDD, k: int, kinds: NDArray[np.uint8], counts: list[Any]) -> Any:
        """Return the entries of the cells, by kind at level k, of paths that ended above it."""
        held = np.zeros((counts[k].shape[0], SHOWN + 1))
        first = next((j for j in range(k) if self.within[j].node.size), k)
        entries = np.zeros((matrix.nodes[k] + 1, SHOWN + 1))  # the last one of zero, that -1 leads to
        entries[np.arange(matrix.nodes[k]), kinds] = matrix.entries_below[k]
        for j in range(k - 1, first - 1, -1):
            level = matrix.levels[j]
            entries = np.vstack((entries[level.low] + entries[level.high], np.zeros(SHOWN + 1)))
            if self.within[j].node.size:
                held += counts[j] @ entries[:-1]
        return held


# Plots of the level-selection explorer, drawn with matplotlib (extra `plot`).
#
# `plot_level_curves` is figure 5.2 of the thesis [Tealdi13]. It shows memory of the representation by level
# on a logarithmic axis, the base memory as a line, the chosen levels marked. `plot_memory_shares` is its
# figure 5.3: representation memory as a share of base memory, as bars. Both show the representation that the
# reports are of: with ``representation="tasks"`` they are the thesis's. The page of
# `hybrid.app.explorer.page` shows the same and more.

_MARKS = {
    "min_memory": ("v", COLOURS[0], (0, 8), "least held"),
    "min_memr": (">", COLOURS[2], (-8, 0), "least MemR"),
    "min_time": ("^", COLOURS[1], (0, -8), "least time"),
}
"""Shape, colour, place in points beside what is marked, and name; marks of one level stand side by side."""


def plot_level_curves(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw memory by injection level, one curve a report.

    `path`: ``.png``, ``.svg`` or ``.pdf``. Raises OptionError: another ending, or no matplotlib.
    """
    check_ending(path)
    figure, (axes,) = new_figure(9, 5.5)
    with styled():
        for number, report in enumerate(reports):
            _curve(axes, report, COLOURS[number % len(COLOURS)])
        axes.set_yscale("log")
        axes.set_xlabel("injection level (variables above it)")
        axes.set_ylabel("MB (10⁶ bytes)")
        whole_ticks(axes.xaxis)
        axes.set_title(shown_text(title) or "Memory of the matrix by injection level")
        handles, _ = axes.get_legend_handles_labels()
        axes.legend(handles=[*handles, *_legend(axes)], fontsize=8)
    save_figure(figure, path)


def _curve(axes: Any, report: LevelReport, color: str) -> None:
    """Draw one report: MemR, what is counted or held, vectors, and the chosen levels."""
    curve = report.curve
    levels = [c.level for c in curve.levels]
    worst = [c.bytes_worst_case / 1e6 for c in curve.levels]
    label = shown_text(report.label) or None
    axes.plot(levels, worst, marker=".", markersize=4, color=color, label=label, gid="memr")
    typed = {c.level: c.row_type_bytes / 1e6 for c in curve.levels if c.row_type_bytes is not None}
    if report.representation == "row-types" and typed:
        axes.plot(list(typed), list(typed.values()), color=color, linestyle=":", linewidth=1.2, gid="counted")
    held = {k: size / 1e6 for k, size in sorted(report.held.items())}
    if held:
        axes.plot(
            list(held),
            list(held.values()),
            color=color,
            marker="o",
            markersize=2.5,
            linestyle="none",
            gid="held",
        )
    axes.axhline(
        report.base_memory_bytes / 1e6, color=color, linestyle="--", linewidth=0.8, alpha=0.7, gid="vectors"
    )
    marked = {
        "min_memory": (report.min_memory, report.bytes_at(report.min_memory)),
        "min_memr": (report.min_memr, curve[report.min_memr].bytes_worst_case),
        "min_time": (report.min_time, report.bytes_at(report.min_time)),
    }
    for name, (level, size) in marked.items():
        if size is not None:
            _mark(axes, name, level, size / 1e6)


def _mark(axes: Any, name: str, level: int, height: float) -> None:
    """Draw the mark of a level beside the point that it is of."""
    from matplotlib.transforms import ScaledTranslation

    shape, shade, (across, up), _ = _MARKS[name]
    beside = ScaledTranslation(across / 72, up / 72, axes.figure.dpi_scale_trans)
    axes.plot(
        [level], [height], marker=shape, color=shade, markersize=8, linestyle="none", markeredgecolor="white",
        zorder=5, clip_on=False, transform=axes.transData + beside, gid=name,
    )  # fmt: skip


def _legend(axes: Any) -> list[Any]:
    """Return the legend's entries for the line styles and marks that are drawn, and for no others."""
    from matplotlib.lines import Line2D

    styles: dict[str, tuple[str, dict[str, Any]]] = {
        "memr": ("MemR: submatrices and tasks, worst case", {"color": "gray"}),
        "counted": ("row types, counted", {"color": "gray", "linestyle": ":"}),
        "held": ("held", {"color": "gray", "marker": "o", "markersize": 2.5, "linestyle": "none"}),
        "vectors": ("vectors (MemB)", {"color": "gray", "linestyle": "--"}),
    }
    for name, (shape, shade, _, label) in _MARKS.items():
        styles[name] = label, {"color": shade, "marker": shape, "markersize": 8, "linestyle": "none"}
    drawn = {line.get_gid() for line in axes.get_lines()}
    return [
        Line2D([], [], markeredgecolor="white" if name in _MARKS else None, label=label, **style)
        for name, (label, style) in styles.items()
        if name in drawn
    ]


def memory_shares(report: LevelReport) -> dict[str, float | None]:
    """Return bytes of the matrix as a percentage of those of the vectors, by what they are of.

    They are those of the representation that the report is of, at its levels of least memory and least time;
    and the least MemR, submatrices and tasks in the worst case. None where a level's bytes are not known.
    """
    kind = report.representation.replace("-", " ")
    sizes = {
        f"{kind}, least held": report.bytes_at(report.min_memory),
        f"{kind}, least time": report.bytes_at(report.min_time),
        "least MemR, worst case": report.curve[report.min_memr].bytes_worst_case,
    }
    base = max(report.base_memory_bytes, 1)
    return {name: None if size is None else 100 * size / base for name, size in sizes.items()}


def plot_memory_shares(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw representation memory as a percentage of base memory, the bars of `memory_shares` for each report.

    `path`: ``.png``, ``.svg`` or ``.pdf``. Raises OptionError: another ending, or no matplotlib.
    """
    check_ending(path)
    figure, (axes,) = new_figure(1.8 + 1.5 * len(reports), 4.5)
    shares = [memory_shares(report) for report in reports]
    with styled():
        for place, (name, color) in enumerate(zip(shares[0] if shares else (), COLOURS, strict=False)):
            known = [(i, own[name]) for i, own in enumerate(shares) if own[name] is not None]
            at = [i + 0.27 * (place - 1) for i, _ in known]
            bars = axes.bar(at, [height for _, height in known], 0.25, color=color, label=name)
            axes.bar_label(bars, fmt="%.2g", fontsize=7)
        names = [f"{shown_text(r.label)}\nMemB {r.base_memory_bytes / 1e6:.3g} MB" for r in reports]
        axes.set_xticks(range(len(reports)), names, fontsize=8)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("% of base memory")
        axes.set_title(shown_text(title) or "Memory of the matrix as a share of the vectors'")
        axes.legend(fontsize=8)
    save_figure(figure, path)
