"""Structure of the models of [WB13] before and after breadth-first numbering (its figures 1 to 3).

For each model at a small size: the plot that `hybrid plot-matrix --bfs` draws, and its measures of both
orders. Of figure 1 a matrix of six rows, and which element of x each thread reads in which iteration when a
thread multiplies a row. Images go to docs/images, stored with 16 greys.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT, example
from benchmarks.library.records import Records
from hybrid.base.figures import new_figure, save_figure, styled
from hybrid.matrix.explicit import (
    bfs_order,
    density_of_diagram,
    density_of_rows,
    explicit_matrix,
    measure_structure,
)
from hybrid.matrix.explicit.density import plot_structures

CASES: tuple[tuple[str, int, dict[str, int]], ...] = (
    ("cluster", 8, {}),
    ("tandem", 15, {}),
    ("polling", 7, {}),
    ("kanban", 2, {}),
    ("brp", 16, {"MAX": 5}),
    ("fms", 2, {}),
    ("herman", 7, {}),
)
"""Those of the figures' models that are among the examples."""

IMAGES = ROOT / "docs" / "images"
CELLS = 400
GREYS = 16


def diagonal_matrix(size: int = 6) -> NDArray[np.bool_]:
    """Return where the diagonally shaped matrix of figure 1 has elements: beside and on the diagonal."""
    rows, columns = np.indices((size, size))
    there: NDArray[np.bool_] = np.abs(rows - columns) <= 1
    return there


def access_pattern(row_ptr: NDArray[np.integer], columns: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return which element of x each thread reads when a thread multiplies a row.

    Parameters
    ----------
    row_ptr : ndarray, shape (rows + 1,)
    columns : ndarray, shape (entries,)

    Returns
    -------
    ndarray, shape (iterations, rows), int64
        -1 where the thread reads none any more.
    """
    lengths = np.diff(row_ptr)
    pattern = np.full((int(lengths.max(initial=0)), len(lengths)), -1, np.int64)
    for thread, (begin, length) in enumerate(zip(row_ptr[:-1], lengths, strict=True)):
        pattern[:length, thread] = columns[begin : begin + length]
    return pattern


def plot_access(there: NDArray[np.bool_], path: Path) -> NDArray[np.int64]:
    """Draw a small matrix and its access pattern side by side ([WB13] figure 1), and return the pattern."""
    row_ptr = np.append(0, np.cumsum(there.sum(axis=1)))
    pattern = access_pattern(row_ptr, np.nonzero(there)[1])
    figure, (left, right) = new_figure(7.5, 3.2, 2)
    with styled():
        for axes, cells, title in (
            (left, np.where(there, "●", "○"), "(a) elements of M"),
            (
                right,
                np.where(pattern < 0, "*", pattern.astype(str)),
                "(b) element of x that a thread reads",
            ),
        ):
            rows, columns = cells.shape
            for (i, j), text in np.ndenumerate(cells):
                axes.text(j, i, text, ha="center", va="center", fontsize=11)
            axes.set(xlim=(-0.6, columns - 0.4), ylim=(rows - 0.4, -0.6), title=title)
            axes.set(xticks=range(columns), yticks=range(rows))
            axes.grid(visible=False)
        left.set(xlabel="column", ylabel="row")
        right.set(xlabel="thread", ylabel="iteration")
    save_figure(figure, path)
    return pattern


def measure(row: dict[str, Any], constants: dict[str, int], images: Path) -> None:
    """Draw one model in both orders, and measure both."""
    model = example(row["model"], row["size"], **constants)
    matrix = explicit_matrix(model.transitions)
    reordered = bfs_order(matrix, np.flatnonzero(model.indicator(model.initial))).permute(matrix)
    row.update(states=model.n_states, entries=matrix.nnz)
    row["original"] = measure_structure(matrix).record()
    row["bfs"] = measure_structure(reordered).record()
    grids = [
        ("original order", density_of_diagram(model.transitions, CELLS)),
        ("breadth-first order", density_of_rows(reordered, CELLS)),
    ]
    path = images / f"structure-{row['model']}.png"
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / path.name
        title = ", ".join([f"{row['model']} {row['size']}", *(f"{k} = {v}" for k, v in constants.items())])
        plot_structures(grids, drawn, title, model.transitions.shape)
        _store(drawn, path)
    row.update(image=path.name, image_bytes=path.stat().st_size)


def _store(drawn: Path, path: Path) -> None:
    """Store a picture with few greys."""
    with Image.open(drawn) as image:
        image.convert("L").quantize(GREYS, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_figure_1(images: Path) -> Path:
    """Draw figure 1 and return where it is."""
    path = images / "structure-access.png"
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / path.name
        plot_access(diagonal_matrix(), drawn)
        _store(drawn, path)
    return path


def main() -> None:
    """Draw, measure and write the record."""
    arguments = parser(__doc__, "only")
    arguments.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER", help="where plots go")
    options = arguments.parse_args()
    options.images.mkdir(parents=True, exist_ok=True)
    draw_figure_1(options.images)
    records = Records("structure_plots", options)
    for name, size, constants in CASES:
        if options.only is not None and name not in options.only:
            continue
        identity = {"model": name, "size": size, "constants": constants}
        records.run(identity, measure, constants, options.images)


if __name__ == "__main__":
    main()
