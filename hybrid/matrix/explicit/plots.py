"""Structure plots ([WB13] figures 2 and 3): where a matrix has entries, by density over a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.drawing.figures import check_ending, new_figure, save_figure, shown_text, styled, whole_ticks
from hybrid.base.errors import OptionError

_INCHES = 6.0
_POINTS = 240  # a single entry, or a line of them, is at least this part of the side wide
_PIXELS = 2  # of a cell, at least


def plot_structures(
    grids: Sequence[tuple[str, NDArray[np.int64]]],
    path: str | Path,
    title: str = "",
    shape: tuple[int, int] | None = None,
) -> None:
    """Draw one panel a grid, side by side on one scale of grey.

    Parameters
    ----------
    grids : sequence of (str, ndarray of int64, shape (grid rows, grid columns))
        Titles of the panels and entries a cell, from :func:`hybrid.matrix.explicit.density_of_diagram` or
        :func:`hybrid.matrix.explicit.density_of_rows`. A cell with any entry is drawn, however few they are,
        and where it stands alone, large enough to be seen.
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    title : str
    shape : tuple of int, optional
        Rows and columns of the matrix, for the axes; default those of the grid.

    Raises
    ------
    OptionError
        Another ending, no grid, no matplotlib, or a file that cannot be written.
    """
    check_ending(path, "a structure plot")
    if not grids:
        raise OptionError("a structure plot needs at least one grid")
    figure, panels = new_figure(_INCHES * len(grids) + 1.0, _INCHES + 0.6, len(grids))
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    most = max(int(grid.max(initial=1)) for _, grid in grids)
    # A single entry must show, so the palest greys are left out.
    shades = ListedColormap(colormaps["Greys"](np.linspace(0.55 if most > 1 else 1.0, 1.0, 256)))
    image: Any = None
    with styled():
        for panel, (name, grid) in zip(panels, grids, strict=True):
            rows, columns = shape if shape is not None else grid.shape
            image = panel.imshow(
                np.ma.masked_equal(visible(grid), 0),
                norm=LogNorm(1, max(2, most)),
                cmap=shades,
                interpolation="nearest",
                aspect="equal" if rows == columns else "auto",
                extent=(0, columns, rows, 0),
            )
            panel.set_title(shown_text(name), fontsize=10)
            panel.xaxis.tick_top()
            panel.tick_params(labelsize=7)
            panel.grid(visible=False)
            panel.spines[:].set_visible(True)
            panel.spines[:].set_color("#adb3b9")
            for axis in (panel.xaxis, panel.yaxis):
                whole_ticks(axis)
        if most > 1:
            _scale(figure.colorbar(image, ax=list(panels), label="entries a cell", shrink=0.8), most)
        if title:
            figure.suptitle(shown_text(title))
    cells = max(max(grid.shape) for _, grid in grids)
    # The panel is a little smaller than the figure.
    save_figure(figure, path, dpi=max(150, -(-_PIXELS * cells * 10 // int(8 * _INCHES))))


def visible(grid: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a grid in which cells with few neighbours are wide enough to be seen on a large grid.

    Parameters
    ----------
    grid : ndarray of int64, shape (grid rows, grid columns)

    Returns
    -------
    ndarray of int64, shape (grid rows, grid columns)
        Cells with entries as they are; empty ones beside a point or a thin line have the value of that.
    """
    reach = (-(-max(grid.shape) // _POINTS)) // 2
    if reach == 0:
        return grid
    is_there = np.pad(grid > 0, 1).astype(np.int8)
    height, width = grid.shape
    around = sum(is_there[i : i + height, j : j + width] for i in range(3) for j in range(3))
    thin = np.pad(np.where(around <= 5, grid, 0), reach)  # itself and four others
    spread = np.zeros_like(grid)
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            np.maximum(spread, thin[i : i + height, j : j + width], out=spread)
    return np.where(grid > 0, grid, spread)


def _scale(bar: Any, most: int) -> None:
    """Label a scale of grey with whole numbers."""
    powers = [10**k for k in range(len(str(most)))]
    ticks = powers if most >= 1000 else [m * p for p in powers for m in (1, 2, 5)]
    ticks = [tick for tick in ticks if tick <= most]
    bar.set_ticks(ticks, labels=[f"{tick:,}" if tick < 10**6 else f"{tick:.0e}" for tick in ticks])
    bar.ax.minorticks_off()
