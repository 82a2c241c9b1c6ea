"""Every explicit format beside the hybrid engine and cuSPARSE: time of a product, bytes, share of bandwidth.

Usage: python benchmarks/explicit_formats.py [--quick] [--only NAME] [--format NAME]
       [--synthetic ROWS:DIAGONALS] [--seconds S] [--resume] [--out FILE.json]

Needs a CUDA device. All formats of one matrix are measured in one run on one card, with the same vectors;
times are medians of CUDA event times, see device_timing.py. A format's traffic is what it has to move at
least: its own bytes, x and the result once each. Its share is that traffic per second over the bandwidth of a
copy on the device. The record is written after every matrix, and --resume goes on with it.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from device_timing import best_seconds, relative_difference
from gpu_product import load_matrix
from runs import Records

import gpu_kernels
from gpu_kernels import FORMATS, Device
from gpu_kernels.formats import CSR_ALGORITHMS, CusparseCsr
from hybrid.explicit.extract import explicit_matrix
from hybrid.operators.inject import inject

CASES = (
    ("herman", "N=15"), ("cluster", "N=320"), ("cluster", "N=464"), ("tandem", "c=1023"),
    ("tandem", "c=2047"), ("kanban", "t=5"), ("fms", "n=7"), ("fms", "n=8"), ("polling", "N=17"),
    ("polling", "N=18"),
)  # fmt: skip
"""The instances of [WB13] table 1."""

QUICK = (
    ("herman", "N=9"), ("cluster", "N=64"), ("tandem", "c=255"), ("kanban", "t=3"), ("fms", "n=4"),
    ("polling", "N=11"),
)  # fmt: skip

COPY_BYTES = 1 << 30
"""What a device copy reads when its bandwidth is measured; it writes as much."""

Timer = Callable[[Callable[[], None]], float]
"""Returns the seconds of a call."""

Arrays = tuple[Any, Any, Any]
"""Row starts, columns, values."""


def synthetic_matrix(xp: Any, n_rows: int, diagonals: int) -> Arrays:
    """Return a matrix like those of models: entries along diagonals near and far, a fifth of them missing.

    Parameters
    ----------
    xp : module
        NumPy or CuPy: where the matrix is made.
    n_rows, diagonals : int

    Returns
    -------
    tuple of ndarray
        Row starts, columns and values; eight distinct values, columns ascend.
    """
    # Half of the distances are small, half grow like the weights of a mixed-radix number.
    distances = sorted(
        {(-1) ** k * (k // 2 + 1 if k % 2 else round(n_rows ** (k / diagonals))) for k in range(diagonals)}
    )
    rows = xp.arange(n_rows, dtype=np.int64)[:, None]
    columns = rows + xp.asarray(np.array(distances, dtype=np.int64))
    # Gaps and values follow runs of rows, as they follow the value of a variable in a model.
    number = xp.arange(len(distances), dtype=np.int64)
    kept = (columns >= 0) & (columns < n_rows) & ((rows // 37 + 3 * number) % 5 != 0)
    values = 0.125 * (1 + (rows // 11 + number) % 8)
    starts = xp.zeros(n_rows + 1, np.int64)
    starts[1:] = xp.cumsum(kept.sum(axis=1))
    index = np.int32 if int(starts[-1]) < 2**31 else np.int64
    return starts.astype(index), columns[kept].astype(np.int32), values[kept]


def formats_of(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the formats to measure: those named, or all.

    Raises
    ------
    ValueError
        If there is no format of a name.
    """
    unknown = sorted(set(names or ()) - set(FORMATS))
    if unknown:
        raise ValueError(f"no format {', '.join(unknown)}; there are {', '.join(FORMATS)}")
    return tuple(names) if names else tuple(FORMATS)


def measure_formats(
    device: Device, csr: Arrays, x: Any, expected: Any, timer: Timer, bandwidth: float, names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Measure formats of one matrix, one after the other, each freed before the next.

    Parameters
    ----------
    device : Device
    csr : tuple of ndarray
        Row starts, columns and values on the device.
    x, expected : ndarray
        Operand, and the result to compare with.
    timer : callable
    bandwidth : float
        Bytes a second of a device copy.
    names : sequence of str

    Yields
    ------
    dict
        Name, seconds, bytes, elements an entry, traffic, its rate and share, seconds of the conversion, and
        the greatest difference relative to the greatest element. A format that does not fit has an ``error``.
    """
    entries = max(1, len(csr[1]))
    for name in names:
        out = device.xp.empty_like(expected)
        start = time.perf_counter()
        try:
            matrix = FORMATS[name].from_csr(device, *csr, n_columns=len(x))
        except (MemoryError, RuntimeError, ValueError) as error:
            yield {"format": name, "error": str(error)}
            continue
        device.synchronise()
        converted = time.perf_counter() - start
        calls = {name: functools.partial(matrix.multiply, device, x, out)}
        if isinstance(matrix, CusparseCsr):
            for key, number in CSR_ALGORITHMS.items():
                calls[f"{name} {key}"] = functools.partial(matrix.plan.run, x, out, number)
            del calls[name]
        for label, call in calls.items():
            seconds = timer(call)
            yield {
                "format": label,
                "seconds": seconds,
                "bytes": matrix.nbytes,
                "elements_an_entry": matrix.n_elements / entries,
                "traffic_bytes": matrix.traffic_bytes,
                "bytes_per_second": matrix.traffic_bytes / seconds,
                "share_of_copy": matrix.traffic_bytes / seconds / bandwidth,
                "entries_per_second": entries / seconds,
                "convert_seconds": converted,
                "difference": relative_difference(out, expected),
            }
        del matrix, calls, call


def copy_bandwidth(device: Device, timer: Timer, size: int = COPY_BYTES) -> float:
    """Return the bytes a second, read and written, of a copy within the device."""
    source = device.xp.ones(size // 8)
    target = device.xp.empty_like(source)

    def copy() -> None:
        target[:] = source

    return 2 * 8 * len(source) / timer(copy)


def measure_model(
    device: Device, name: str, constants: str, timer: Timer, bandwidth: float, names: Sequence[str]
) -> dict[str, Any]:
    """Measure the hybrid engine and all formats with the matrix of a model."""
    symbolic = load_matrix(name, constants)
    backend = "gpu" if device.xp is not np else "cpu"
    hybrid = inject(symbolic, "min-time", backend)
    xp = device.xp
    x = xp.asarray(np.random.default_rng(2026).random(symbolic.n_columns))
    expected = xp.empty(symbolic.n_rows)
    seconds = timer(lambda: hybrid.product.multiply(x, expected))
    nbytes = int(hybrid.product.nbytes)
    traffic = nbytes + 8 * sum(symbolic.shape)
    csr = explicit_matrix(symbolic, backend)
    arrays = csr.row_starts, csr.columns, csr.values
    rows = list(measure_formats(device, arrays, x, expected, timer, bandwidth, names))
    return {
        "model": name,
        "constants": constants,
        "states": symbolic.n_rows,
        "entries": csr.nnz,
        "values": len(xp.unique(csr.values)),
        "hybrid": {
            "seconds": seconds,
            "level": hybrid.level,
            "bytes": nbytes,
            "traffic_bytes": traffic,
            "bytes_per_second": traffic / seconds,
            "share_of_copy": traffic / seconds / bandwidth,
            "entries_per_second": csr.nnz / seconds,
        },
        "formats": rows,
    }


def measure_synthetic(
    device: Device, n_rows: int, diagonals: int, timer: Timer, bandwidth: float, names: Sequence[str]
) -> dict[str, Any]:
    """Measure all formats with a synthetic matrix, which has no symbolic form."""
    xp = device.xp
    csr = synthetic_matrix(xp, n_rows, diagonals)
    x = xp.asarray(np.random.default_rng(2026).random(n_rows))
    expected = xp.empty(n_rows)
    FORMATS["msr"].from_csr(device, *csr).multiply(device, x, expected)
    rows = list(measure_formats(device, csr, x, expected, timer, bandwidth, names))
    return {
        "model": "synthetic",
        "constants": f"{n_rows}:{diagonals}",
        "states": n_rows,
        "entries": len(csr[1]),
        "values": len(xp.unique(csr[2])),
        "hybrid": None,
        "formats": rows,
    }


def table(row: dict[str, Any]) -> str:
    """Return the results for one matrix as text, the fastest first."""
    measured = [f for f in row["formats"] if "seconds" in f]
    if row["hybrid"] is not None:
        measured.append({"format": "hybrid", "elements_an_entry": 1.0, "difference": 0.0, **row["hybrid"]})
    csr = [f["seconds"] for f in measured if f["format"].startswith("cusparse")]
    lines = [
        f"{row['model']} {row['constants']}: {row['states']} states, {row['entries']} entries, "
        f"{row['values']} values",
        f"{'format':18} {'ms':>9} {'x cuSP':>7} {'MB':>10} {'B/entry':>8} {'padding':>8} {'GB/s':>7} "
        f"{'of copy':>8} {'differs':>8}",
    ]
    for f in sorted(measured, key=lambda f: float(f["seconds"])):
        ratio = min(csr) / f["seconds"] if csr else float("nan")
        lines.append(
            f"{f['format']:18} {f['seconds'] * 1e3:9.4f} {ratio:7.2f} {f['bytes'] / 1e6:10.2f} "
            f"{f['bytes'] / max(1, row['entries']):8.2f} {f['elements_an_entry']:8.2f} "
            f"{f['bytes_per_second'] / 1e9:7.0f} {f['share_of_copy']:8.2f} {f['difference']:8.0e}"
        )
    lines += [f"{f['format']:18} {f['error']}" for f in row["formats"] if "error" in f]
    return "\n".join(lines)


def main() -> None:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", action="append", help="measure this model only; may be repeated")
    parser.add_argument("--format", action="append", help="measure this format only; may be repeated")
    parser.add_argument("--synthetic", action="append", default=[], metavar="ROWS:DIAGONALS",
                        help="a synthetic matrix besides the models; may be repeated")  # fmt: skip
    parser.add_argument("--seconds", type=float, help="begin no matrix after this time")
    parser.add_argument("--resume", action="store_true", help="keep the finished rows of --out")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    try:
        names = formats_of(options.format)
        sizes = [tuple(int(part) for part in text.split(":")) for text in options.synthetic]
        if any(len(size) != 2 or min(size) < 1 for size in sizes):
            raise ValueError(f"--synthetic: expected ROWS:DIAGONALS, got {' '.join(options.synthetic)}")
    except ValueError as error:
        parser.error(str(error))
    device = gpu_kernels.CudaDevice()
    timer = functools.partial(best_seconds, device.xp)
    run(options, device, timer, names, sizes)


def run(
    options: argparse.Namespace,
    device: Device,
    timer: Timer,
    names: Sequence[str],
    sizes: Sequence[tuple[int, ...]],
) -> Records:
    """Measure all matrices that are asked for."""
    bandwidth = copy_bandwidth(device, timer)
    # The bandwidth differs a little from run to run; rows that are kept have the shares of their own run.
    records = Records("explicit_formats", options.out, options.seconds, resume=options.resume)
    records.facts["copy_bytes_per_second"] = bandwidth
    cases = [(name, constants) for name, constants in (QUICK if options.quick else CASES)
             if not options.only or name in options.only]  # fmt: skip

    def show(row: dict[str, Any]) -> None:
        print(row["error"] if "error" in row else table(row), end="\n\n", flush=True)

    for name, constants in cases:
        identity = {"model": name, "constants": constants}
        show(records.run(identity, lambda r, i=identity: r.update(
            measure_model(device, *i.values(), timer, bandwidth, names))))  # fmt: skip
    for n_rows, diagonals in sizes:
        identity = {"model": "synthetic", "constants": f"{n_rows}:{diagonals}"}
        show(records.run(identity, lambda r, n=n_rows, d=diagonals: r.update(
            measure_synthetic(device, n, d, timer, bandwidth, names))))  # fmt: skip
    print(f"device copy: {bandwidth / 1e9:.0f} GB/s")
    return records


if __name__ == "__main__":
    main()
