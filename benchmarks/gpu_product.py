"""Product and Jacobi step on the GPU: tiles, the published block tasks, explicit formats, a device copy.

Usage: python benchmarks/gpu_product.py [--quick] [--large] [--only NAME] [--out FILE.json]

Every matrix is measured in one run on one card. Times are medians of CUDA event times over batches of
queued launches, so that the host's launch overhead is hidden wherever a product is longer than it.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from record import environment

import gpu_kernels
from gpu_kernels import Mode, coded_step, finish_iteration
from hybrid.gpu.baseline import build_block_tasks
from hybrid.gpu.layout import build_layout
from hybrid.gpu.product import GpuProduct
from hybrid.levels.curve import LevelCurve, level_curve
from hybrid.operator import inject
from mtbdd.build import build_model
from mtbdd.language import load_model, parse_constants, resolve
from mtbdd.offset import OffsetMTBDD

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CASES = (
    ("tandem", "c=4095"),
    ("polling", "N=20"),
    ("kanban", "t=7"),
    ("fms", "n=10"),
    ("cluster", "N=512"),
    ("brp", "N=4096,MAX=50"),
)
LARGE = (("kanban", "t=10"),)
QUICK = (("tandem", "c=255"), ("polling", "N=11"), ("kanban", "t=4"), ("fms", "n=5"), ("cluster", "N=64"),
         ("brp", "N=256,MAX=20"))  # fmt: skip

EXPLICIT_LIMIT = 2_000_000_000
"""Entries beyond which no explicit form is made."""

EXPLICIT = {"csr_warp": "msr-subwarp", "sell": "sell", "csell": "csell", "delta_csell": "delta-csell"}
"""Explicit formats measured beside cuSPARSE, by their key in the record."""

_BATCH_SECONDS = 0.004
_BATCHES = 15
_HOPELESS = 3.0
_INSTANCE_LIMIT = 60_000_000
_ENTRY_LIMIT = 40_000_000


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


def event_seconds(cupy: Any, call: Callable[[], None]) -> float:
    """Return the median seconds of a call, from events around batches of queued calls."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def batch(count: int) -> float:
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / count

    call()
    once = batch(3)
    count = max(1, min(100, int(_BATCH_SECONDS / max(once, 1e-6))))
    return statistics.median(batch(count) for _ in range(_BATCHES))


def graph_seconds(cupy: Any, call: Callable[[], None], count: int = 20) -> float | None:
    """Return the median seconds of a call replayed from a CUDA graph; None where it cannot be captured."""
    call()
    stream = cupy.cuda.Stream(non_blocking=True)
    try:
        with stream:
            stream.begin_capture()
            for _ in range(count):
                call()
            graph = stream.end_capture()
    except Exception:
        return None
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    with stream:
        for _ in range(_BATCHES + 1):
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / count)
    return statistics.median(times[1:])


def best_seconds(cupy: Any, call: Callable[[], None]) -> float:
    """Return the time of a call with launch overhead hidden: long ones queued, short ones from a graph."""
    queued = event_seconds(cupy, call)
    if queued > 2e-4:
        return queued
    replayed = graph_seconds(cupy, call)
    return queued if replayed is None else min(queued, replayed)


def cusparse_product(cupy: Any, matrix: Any, x: Any, y: Any) -> Callable[[], None]:
    """Return cuSPARSE's product y = A x with descriptors and buffer made beforehand."""
    from cupy._core import _dtype
    from cupy_backends.cuda.libs import cusparse
    from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor

    handle = cupy.cuda.get_device_handle() if hasattr(cupy.cuda, "get_device_handle") else None
    if handle is None:
        handle = cupy.cuda.device.get_cusparse_handle()
    a, vx, vy = SpMatDescriptor.create(matrix), DnVecDescriptor.create(x), DnVecDescriptor.create(y)
    one, zero = np.array(1.0), np.array(0.0)
    kind, algorithm = _dtype.to_cuda_dtype(np.dtype(np.float64)), cusparse.CUSPARSE_MV_ALG_DEFAULT
    arguments = (handle, cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE, one.ctypes.data, a.desc, vx.desc,
                 zero.ctypes.data, vy.desc, kind, algorithm)  # fmt: skip
    size = cusparse.spMV_bufferSize(*arguments)
    buffer = cupy.empty(max(int(size), 1), np.int8)
    keep = (a, vx, vy, one, zero, buffer, matrix)

    def call() -> None:
        assert keep
        cusparse.spMV(*arguments, buffer.data.ptr)

    return call


def explicit_rows(cupy: Any, device: Any, product: GpuProduct, x: Any, y: Any) -> dict[str, Any]:
    """Measure the explicit formats; the matrix is made from the tiles on the device."""
    csr = gpu_kernels.explicit_csr(device, product.matrix)
    z = cupy.empty_like(y)
    result: dict[str, Any] = {"csr_bytes": sum(int(a.nbytes) for a in csr)}
    difference = 0.0
    for key, name in EXPLICIT.items():
        matrix = gpu_kernels.FORMATS[name].from_csr(device, *csr, n_columns=len(x))
        multiply = functools.partial(matrix.multiply, device, x, z)
        result |= {f"{key}_bytes": matrix.nbytes, f"{key}_seconds": best_seconds(cupy, multiply)}
        difference = max(difference, relative_difference(z, y))
        # Before the next format is made: large matrices fit the card once or twice only.
        del matrix, multiply
    result |= cusparse_rows(cupy, csr, x, y)
    result["difference"] = max(result["difference"], difference)
    return result


def relative_difference(z: Any, y: Any) -> float:
    """Return the greatest difference of two vectors, relative to the greatest element."""
    return float(abs(z - y).max() / abs(y).max())


def cusparse_rows(cupy: Any, csr: tuple[Any, Any, Any], x: Any, y: Any) -> dict[str, Any]:
    """Measure cuSPARSE's CSR product, by its own call if CuPy offers it and by ``csr @ x`` otherwise."""
    import cupyx.scipy.sparse as sparse

    indptr, indices, data = csr
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(y), len(x)))
    z = cupy.empty_like(y)
    try:
        call, kind = cusparse_product(cupy, matrix, x, z), "spMV"
        call()
    except Exception as error:
        print(f"  low-level cuSPARSE call failed ({error!r}); measuring csr @ x", file=sys.stderr)
        call, kind = (lambda: cupy.copyto(z, matrix @ x)), "csr @ x"
    seconds = best_seconds(cupy, call)
    return {"cusparse_call": kind, "cusparse_seconds": seconds, "difference": relative_difference(z, y)}


def baseline_rows(
    cupy: Any, device: Any, curve: LevelCurve, matrix: OffsetMTBDD, x: Any, y: Any
) -> Iterator[dict[str, Any]]:
    """Measure the published kernel at the level of minimum memory and at the fastest of some levels."""
    fits = [
        c for c in curve.levels
        if c.instances_worst_case <= _INSTANCE_LIMIT and c.submatrix_nonzeros <= _ENTRY_LIMIT
    ]  # fmt: skip
    if not fits:
        return
    by_memory = min(fits, key=lambda c: c.bytes_worst_case).level
    # Fewer, larger submatrices are faster until they leave the caches.
    near = sorted(fits, key=lambda c: abs(c.submatrix_nonzeros - (1 << 20)))[:1]
    for level in sorted({by_memory, *(c.level for c in near)}):
        start = time.perf_counter()
        tasks = build_block_tasks(device, matrix, level)
        z = cupy.empty_like(y)
        built = time.perf_counter() - start
        seconds = best_seconds(cupy, lambda tasks=tasks, z=z: gpu_kernels.block_spmv(device, tasks, x, z))
        yield {
            "level": level,
            "is_min_memory": level == by_memory,
            "seconds": seconds,
            "bytes": tasks.nbytes,
            "build_seconds": built,
            "difference": relative_difference(z, y),
        }


def measure(name: str, constants: str, n_levels: int) -> dict[str, Any]:
    """Measure one matrix, at the level chosen and at others for comparison."""
    import cupy

    from hybrid.gpu.cost import rank_levels

    device = gpu_kernels.current_device()
    start = time.perf_counter()
    matrix = load_matrix(name, constants)
    curve = level_curve(matrix)
    result: dict[str, Any] = {
        "model": name, "constants": constants, "states": matrix.n_rows, "entries": curve.nonzeros,
        "symbolic_seconds": time.perf_counter() - start, "levels": [],
    }  # fmt: skip
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
    for level, types, predicted in spread_levels(ranked, n_levels):
        start = time.perf_counter()
        layout = build_layout(device, types, level)
        if layout is None:
            continue
        cupy.cuda.Device().synchronize()
        built = time.perf_counter() - start
        product = GpuProduct(device, layout)
        seconds = best_seconds(cupy, lambda product=product: product.multiply(x, y))
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
    best.multiply(x, y)
    result["entries_per_second"] = curve.nonzeros / result["seconds"]
    result |= step_rows(cupy, device, best, x, y)
    result["copy_seconds"] = best_seconds(cupy, lambda: y.__setitem__(slice(None), x[: len(y)]))
    best.multiply(x, y)
    result["baseline"] = []
    if curve.nonzeros < EXPLICIT_LIMIT:
        result |= explicit_rows(cupy, device, best, x, y)
        result["baseline"] = list(baseline_rows(cupy, device, curve, matrix, x, y))
    return result


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
        f"{'Gent/s':>7} {'MB':>7} {'% CSR':>6} {'cuSP/':>6} {'warp/':>6} {'SELL/':>6} {'block/':>7} "
        f"{'copy ms':>8} {'jacobi':>7} {'set-up':>6}"
    ]
    for r in rows:
        t = r["seconds"]
        base = min((b["seconds"] for b in r["baseline"]), default=math.nan)
        nothing = math.nan
        lines.append(
            f"{r['model']:8} {r['constants']:14} {r['states']:>11} {r['entries']:>12} {r['level']:>5} "
            f"{t * 1e3:8.4f} {t / r['best_level_seconds']:5.2f} {r['entries_per_second'] / 1e9:7.0f} "
            f"{r['bytes'] / 1e6:7.2f} {100 * r['bytes'] / r.get('csr_bytes', nothing):6.2f} "
            f"{r.get('cusparse_seconds', nothing) / t:6.2f} {r.get('csr_warp_seconds', nothing) / t:6.2f} "
            f"{r.get('sell_seconds', nothing) / t:6.2f} {base / t:7.2f} {r['copy_seconds'] * 1e3:8.4f} "
            f"{r['jacobi_compressed_seconds'] * 1e3:7.4f} {r['choice_seconds']:6.2f}"
        )
    rows = [r for r in rows if "csr_bytes" in r]
    ratios = [r["cusparse_seconds"] / r["seconds"] for r in rows]
    names = [*(f"{key}_seconds" for key in EXPLICIT), "cusparse_seconds"]
    best = [min(r[name] for name in names) / r["seconds"] for r in rows]
    lines.append(
        f"geometric means: cuSPARSE CSR {statistics.geometric_mean(ratios):.2f}x, "
        f"best explicit {statistics.geometric_mean(best):.2f}x"
    )
    return "\n".join(lines)


def device_record() -> dict[str, Any]:
    """Return what identifies the card and its software."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": properties["name"].decode(),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "memory_bytes": properties["totalGlobalMem"],
        "cupy": cupy.__version__,
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cuda_driver": cupy.cuda.runtime.driverGetVersion(),
    }


def main() -> None:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", action="append", help="measure this model only; may be repeated")
    parser.add_argument("--levels", type=int, default=8, help="levels to measure besides choosing one")
    parser.add_argument("--large", action="store_true", help="kanban t=10 too, which has no explicit form")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    rows = []
    for name, constants in (QUICK if options.quick else CASES) + (LARGE if options.large else ()):
        if options.only and name not in options.only:
            continue
        rows.append(measure(name, constants, options.levels))
        print(f"{name} {constants}: {rows[-1]['seconds'] * 1e3:.4f} ms", file=sys.stderr, flush=True)
    print(table(rows))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        record = {"environment": environment(), "device": device_record(), "rows": rows}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
