"""Structure plots ([WB13] figures 2 and 3): where a matrix has entries, by density over a grid of cells."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import OptionError

_INCHES = 6.0


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
        Titles of the panels and entries a cell, from :func:`hybrid.explicit.density_of_diagram` or
        :func:`hybrid.explicit.density_of_rows`. A cell with any entry is drawn, however few they are.
    path : path-like
        ``.png``.
    title : str
    shape : tuple of int, optional
        Rows and columns of the matrix, for the axes; default those of the grid.

    Raises
    ------
    OptionError
        Another ending, no grid, no matplotlib, or a file that cannot be written.
    """
    if not str(path).lower().endswith(".png"):
        raise OptionError(f"a structure plot is written as .png, got {str(path)!r}")
    if not grids:
        raise OptionError("a structure plot needs at least one grid")
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import ListedColormap, LogNorm
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError("plots need matplotlib, which is not installed; install the extra 'plot'") from None
    figure: Any = Figure(figsize=(_INCHES * len(grids) + 1.0, _INCHES + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(grids), squeeze=False)[0]
    most = max(2, *(int(grid.max(initial=1)) for _, grid in grids))
    # A single entry must show, so the palest greys are left out.
    shades = ListedColormap(colormaps["Greys"](np.linspace(0.45, 1.0, 256)))
    image: Any = None
    for panel, (name, grid) in zip(panels, grids, strict=True):
        rows, columns = shape if shape is not None else grid.shape
        image = panel.imshow(
            np.ma.masked_equal(grid, 0),
            norm=LogNorm(1, most),
            cmap=shades,
            interpolation="nearest",
            aspect="equal" if rows == columns else "auto",
            extent=(0, columns, rows, 0),
        )
        panel.set_title(name, fontsize=10)
        panel.xaxis.tick_top()
        panel.tick_params(labelsize=7)
    figure.colorbar(image, ax=list(panels), label="entries a cell", shrink=0.8)
    if title:
        figure.suptitle(title)
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=150)
    try:
        Path(path).write_bytes(drawing.getvalue())
    except OSError as error:
        raise OptionError(f"cannot write the plot {str(path)!r}: {error.strerror}") from None
