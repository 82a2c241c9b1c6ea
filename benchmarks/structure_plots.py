"""Structure of the models of [WB13] before and after breadth-first numbering (its figures 2 and 3).

Usage: python benchmarks/structure_plots.py [--only MODEL ...] [--images FOLDER] [--out FILE.json]

For each model at a small size: the plot that `hybrid plot-matrix --bfs` draws, and its measures of both
orders. Images go to docs/images, stored with 16 greys.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
from runs import ROOT, Records, example

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
CELLS = 600
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [name for name, _, _ in CASES]
    parser.add_argument("--only", action="append", choices=names, help="only this model; may be repeated")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER", help="where plots go")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    options.images.mkdir(parents=True, exist_ok=True)
    records = Records("structure_plots", options.out)
    for name, size, constants in CASES:
        if options.only is not None and name not in options.only:
            continue
        row = records.run(
            {"model": name, "size": size, "constants": constants},
            functools.partial(measure, constants=constants, images=options.images),
        )
        if "error" in row:
            print(f"{name} {size}: {row['error']}", flush=True)
        else:
            before, after = row["original"], row["bfs"]
            print(
                f"{name} {size}: bandwidth {before['bandwidth']:,} to {after['bandwidth']:,}, x a warp "
                f"{before['bytes_per_warp']:.0f} to {after['bytes_per_warp']:.0f} bytes, "
                f"{row['image_bytes'] / 1e3:.0f} kB",
                flush=True,
            )


if __name__ == "__main__":
    main()
