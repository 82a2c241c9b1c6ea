"""Product and Jacobi step on the GPU: tiles, the published block tasks, explicit formats, a device copy.

Every matrix is measured in one run on one card. Times are medians of CUDA event times over batches of
queued launches, so that the host's launch overhead is hidden wherever a product is longer than it. The
engine's level is measured beside others; the published kernel at its level of minimum memory and at about six
more, and beyond the fastest of these where that is the last; the fastest is its level of minimum time.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np

import gpu_kernels
from benchmarks.library.arguments import parser
from benchmarks.library.device import best_seconds, free_device_memory, require_device
from benchmarks.library.models import example_of
from benchmarks.library.product_rivals import baseline_rows, explicit_rows
from benchmarks.library.records import Records
from gpu_kernels import IterationState, Mode, coded_step, finish_iteration
from hybrid.matrix.gpu.cost import rank_levels
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.operators.inject import inject

CASES = (
    ("tandem", "c=4095"),
    ("polling", "N=20"),
    ("kanban", "t=7"),
    ("fms", "n=10"),
    ("cluster", "N=512"),
    ("brp", "N=4096,MAX=50"),
    ("kanban", "t=8"),
)
LARGE = (("kanban", "t=10"),)
QUICK = (("tandem", "c=255"), ("polling", "N=11"), ("kanban", "t=4"), ("fms", "n=5"), ("cluster", "N=64"),
         ("brp", "N=256,MAX=20"))  # fmt: skip

EXPLICIT_LIMIT = 2_000_000_000
"""Entries beyond which no explicit form is made."""

_HOPELESS = 3.0


def measure(result: dict[str, Any], name: str, constants: str, n_levels: int | None) -> None:
    """Measure one matrix, at the level chosen and at others for comparison; None is all levels."""
    import cupy

    device = gpu_kernels.current_device()
    start = time.perf_counter()
    matrix = example_of(name, constants).transitions
    curve = level_curve(matrix)
    result.update(
        states=matrix.n_rows, entries=curve.nonzeros, symbolic_seconds=time.perf_counter() - start, levels=[]
    )
    rng = np.random.default_rng(2026)
    x = cupy.asarray(rng.random(matrix.n_columns))
    y = cupy.empty(matrix.n_rows)
    best: GpuProduct | None = None
    start = time.perf_counter()
    chosen = inject(matrix, "min-time", "gpu")
    result["choice_seconds"] = time.perf_counter() - start
    result["choice"] = chosen.level_reason
    level_now = chosen.level
    del chosen
    ranked = rank_levels(curve.typed)
    ranked.sort(key=lambda level: (level[0] != level_now, level[2]))
    for level, types, predicted in spread_levels(ranked, n_levels or len(ranked)):
        start = time.perf_counter()
        layout = build_tile_matrix(device, types, level)
        if layout is None:
            continue
        cupy.cuda.Device().synchronize()
        built = time.perf_counter() - start
        product = GpuProduct(device, layout)
        seconds = best_seconds(cupy, functools.partial(product.multiply, x, y))
        row = {
            "level": level, "scaled": types.classes.scaled, "seconds": seconds, "predicted": predicted,
            "bytes": product.nbytes, "build_seconds": built,
        }  # fmt: skip
        result["levels"].append(row)
        if best is None:
            # The first is the one that the engine chooses by itself; its time is the one reported.
            best = product
            result.update(seconds=seconds, level=level, bytes=product.nbytes, build_seconds=built)
    assert best is not None
    result["best_level_seconds"] = min(row["seconds"] for row in result["levels"])
    result["chosen_over_best"] = result["seconds"] / result["best_level_seconds"]
    result["chosen_within_10_percent"] = result["chosen_over_best"] <= 1.1
    best.multiply(x, y)
    result["entries_per_second"] = curve.nonzeros / result["seconds"]
    result.update(step_rows(cupy, device, best, x, y))
    result["copy_seconds"] = best_seconds(cupy, lambda: y.__setitem__(slice(None), x[: len(y)]))
    best.multiply(x, y)
    result["baseline"] = []
    if curve.nonzeros < EXPLICIT_LIMIT:
        try:
            result.update(explicit_rows(device, best, x, y))
        except MemoryError as error:
            result["explicit_error"] = str(error)
        free_device_memory()
        result["baseline"] = baseline_rows(device, curve, matrix, x, y)


def spread_levels(ranked: list[Any], count: int) -> list[Any]:
    """Return the level predicted to be fastest, and others spread evenly over all that are not hopeless."""
    usable = [level for level in ranked[1:] if level[2] < _HOPELESS * ranked[0][2]]
    usable.sort(key=lambda level: level[0])
    step = max(1.0, len(usable) / max(1, count - 1))
    others = [usable[int(i * step)] for i in range(count - 1) if int(i * step) < len(usable)]
    return [ranked[0], *others]


def step_rows(cupy: Any, device: Any, product: GpuProduct, x: Any, y: Any) -> dict[str, Any]:
    """Measure the whole Jacobi iteration: product, division, difference, stopping test."""
    diagonal = cupy.empty_like(y)
    product.multiply(cupy.ones_like(x), diagonal)
    diagonal += 1.0
    state = IterationState.create(device)
    found = {}
    for name in ("compressed", "plain"):
        if name == "plain":
            # As many values as rows: no dictionary.
            diagonal += cupy.arange(len(y)) * 1e-12
        step = coded_step(device, Mode.JACOBI, diagonal, None, 0.9, state)

        def iterate(step: Any = step) -> None:
            product.run(step, x, y)
            finish_iteration(device, state, 0.0, False)

        found[f"jacobi_{name}_seconds"] = best_seconds(cupy, iterate)
        found[f"jacobi_{name}_bits"] = step.diagonal.bits
    return found


def level_count(text: str) -> int | None:
    """Return how many levels to measure; None for all."""
    return None if text == "all" else max(1, int(text))


def main() -> None:
    """Run and write the record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument(
        "--levels",
        type=level_count,
        default=8,
        metavar="N|all",
        help="levels to measure besides choosing one",
    )
    arguments.add_argument("--large", action="store_true", help="kanban t=10 too, which has no explicit form")
    options = arguments.parse_args()
    require_device()
    records = Records("gpu_product", options)
    for name, constants in (QUICK if options.quick else CASES) + (LARGE if options.large else ()):
        if options.only and name not in options.only:
            continue
        identity = {"model": name, "constants": constants}
        records.run(identity, measure, name, constants, options.levels)
    records.show()


if __name__ == "__main__":
    main()
