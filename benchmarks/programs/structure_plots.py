"""Structure of the models of [WB13] before and after breadth-first numbering (its figures 2 and 3).

For each model at a small size: the plot that `hybrid plot-matrix --bfs` draws, and its measures of both
orders. Images go to docs/images, stored with 16 greys.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT, example
from benchmarks.library.records import Records
from hybrid.explicit import (
    bfs_order,
    density_of_diagram,
    density_of_rows,
    explicit_matrix,
    measure_structure,
)
from hybrid.explicit.plots import plot_structures

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
        with Image.open(drawn) as image:
            few = image.convert("L").quantize(GREYS, dither=Image.Dither.NONE)
            few.save(path, optimize=True)
    row.update(image=path.name, image_bytes=path.stat().st_size)


def main() -> None:
    """Draw, measure and write the record."""
    arguments = parser(__doc__, "only")
    arguments.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER", help="where plots go")
    options = arguments.parse_args()
    options.images.mkdir(parents=True, exist_ok=True)
    records = Records("structure_plots", options)
    for name, size, constants in CASES:
        if options.only is not None and name not in options.only:
            continue
        identity = {"model": name, "size": size, "constants": constants}
        records.run(identity, measure, constants, options.images)


if __name__ == "__main__":
    main()
