"""Product and Jacobi step on the GPU: tiles, the published block tasks, explicit formats, a device copy.

Usage: python benchmarks/gpu_product.py [--quick] [--large] [--only NAME] [--levels N|all] [--seconds S]
       [--resume] [--out FILE.json]

Every matrix is measured in one run on one card. Times are medians of CUDA event times over batches of
queued launches, so that the host's launch overhead is hidden wherever a product is longer than it. The
engine's level is measured beside others; the published kernel at its level of minimum memory and at about six
more, of which the fastest is its level of minimum time. The record is written after every matrix, and
--resume goes on with it.
"""

from __future__ import annotations

import argparse
import functools
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from device_timing import best_seconds, relative_difference
from product_rivals import baseline_rows, explicit_rows
from render_gpu import EXPLICIT_KEYS, gains, mean_gains_text
from runs import Records, device_record, free_device_memory

import gpu_kernels
from gpu_kernels import Mode, coded_step, finish_iteration
from hybrid.gpu.layout import build_tile_matrix
from hybrid.gpu.product import GpuProduct
from hybrid.levels.curve import level_curve
from hybrid.operators.inject import inject
from mtbdd.build import build_model
from mtbdd.language import load_model, parse_constants, resolve
from mtbdd.offset import OffsetMTBDD

__all__ = ["best_seconds", "device_record", "load_matrix", "relative_difference"]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
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


def load_matrix(name: str, constants: str) -> OffsetMTBDD:
    """Build the transition matrix of an example; polling and herman are generated for their one constant."""
    if name not in ("polling", "herman"):
        return build_model(
            resolve(load_model(EXAMPLES / f"{name}.prism"), parse_constants(constants))
        ).transitions
    size = constants.split("=")[1]
    text = subprocess.run(
        [sys.executable, str(EXAMPLES / "generate.py"), name, size],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.prism"
        path.write_text(text)
        return build_model(resolve(load_model(path), {})).transitions


def measure(result: dict[str, Any], name: str, constants: str, n_levels: int | None) -> None:
    """Measure one matrix, at the level chosen and at others for comparison; None is all levels."""
    import cupy

    from hybrid.gpu.cost import rank_levels

    device = gpu_kernels.current_device()
    start = time.perf_counter()
    matrix = load_matrix(name, constants)
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
    ranked = rank_levels(curve)
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
            result.update(explicit_rows(cupy, device, best, x, y))
        except MemoryError as error:
            result["explicit_error"] = str(error)
        free_device_memory()
        result["baseline"] = baseline_rows(cupy, device, curve, matrix, x, y)


def spread_levels(ranked: list[Any], count: int) -> list[Any]:
    """Return the level predicted to be fastest, and others spread evenly over all that are not hopeless."""
    usable = [level for level in ranked[1:] if level[2] < _HOPELESS * ranked[0][2]]
    usable.sort(key=lambda level: level[0])
    step = max(1.0, len(usable) / max(1, count - 1))
    others = [usable[int(i * step)] for i in range(count - 1) if int(i * step) < len(usable)]
    return [ranked[0], *others]


def step_rows(cupy: Any, device: Any, product: GpuProduct, x: Any, y: Any) -> dict[str, Any]:
    """Measure the whole Jacobi iteration: product, division, difference, stopping test."""
    from gpu_kernels import IterationState

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


def table(rows: list[dict[str, Any]]) -> str:
    """Return the results as text."""
    lines = [
        f"{'model':8} {'constants':14} {'states':>11} {'entries':>12} {'level':>5} {'ms':>8} {'best':>5} "
        f"{'Gent/s':>7} {'MB':>7} {'% CSR':>6} {'cuSP/':>6} {'plain/':>6} {'expl/':>6} {'block/':>7} "
        f"{'copy ms':>8} {'jacobi':>7} {'set-up':>6}"
    ]
    for r in rows:
        t = r["seconds"]
        base = min((b["seconds"] for b in r["baseline"]), default=math.nan)
        cusparse, uncompressed, explicit = gains(r) or (math.nan,) * 3
        lines.append(
            f"{r['model']:8} {r['constants']:14} {r['states']:>11} {r['entries']:>12} {r['level']:>5} "
            f"{t * 1e3:8.4f} {r['chosen_over_best']:5.2f} {r['entries_per_second'] / 1e9:7.0f} "
            f"{r['bytes'] / 1e6:7.2f} {100 * r['bytes'] / r.get('csr_bytes', math.nan):6.2f} "
            f"{cusparse:6.2f} {uncompressed:6.2f} {explicit:6.2f} {base / t:7.2f} "
            f"{r['copy_seconds'] * 1e3:8.4f} {r['jacobi_compressed_seconds'] * 1e3:7.4f} "
            f"{r['choice_seconds']:6.2f}"
        )
        lines += [f"  {key}: {r[f'{key}_error']}" for key in EXPLICIT_KEYS if f"{key}_error" in r]
    return "\n".join([*lines, mean_gains_text(rows)])


def level_count(text: str) -> int | None:
    """Return how many levels to measure; None for all."""
    return None if text == "all" else max(1, int(text))


def main() -> None:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", action="append", help="measure this model only; may be repeated")
    parser.add_argument(
        "--levels",
        type=level_count,
        default=8,
        metavar="N|all",
        help="levels to measure besides choosing one",
    )
    parser.add_argument("--large", action="store_true", help="kanban t=10 too, which has no explicit form")
    parser.add_argument("--seconds", type=float, help="begin no matrix after this time")
    parser.add_argument("--resume", action="store_true", help="keep the finished rows of --out")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    records = Records("gpu_product", options.out, options.seconds, resume=options.resume)
    for name, constants in (QUICK if options.quick else CASES) + (LARGE if options.large else ()):
        if options.only and name not in options.only:
            continue
        identity = {"model": name, "constants": constants}
        row = records.run(
            identity, functools.partial(measure, name=name, constants=constants, n_levels=options.levels)
        )
        text = row["error"] if "error" in row else f"{row['seconds'] * 1e3:.4f} ms"
        print(f"{name} {constants}: {text}", file=sys.stderr, flush=True)
    measured = [row for row in records.rows if "error" not in row]
    if measured:
        print(table(measured))


if __name__ == "__main__":
    main()
