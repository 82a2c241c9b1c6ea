"""A matrix streamed to the card in parts, and whether its copies hide its products ([BESW10] §II).

A limit is what the two buffers may take on the card together; the matrix is cut into as few parts as fit.
For every matrix and limit, in one run and with the same parts in pinned memory:

- copies of all parts alone, through both buffers;
- products of all parts alone, the parts resident on the card, by the kernel that the streamed product has;
- the streamed product;
- a time line of one more product from events on both streams: copy and product of every part, and which
  share of the products' time lies within copies.

Without overlap the streamed product takes the sum of the first two, with perfect overlap the greater one.
Matrices: models extracted from their diagrams, and a synthetic one along diagonals that no single part holds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.models import example
from benchmarks.library.records import Records
from benchmarks.library.streamed import PartTimes, StreamedMatrix, parts_by_bytes
from gpu_kernels import Device, current_device
from gpu_kernels.explicit import Msr
from hybrid.matrix.explicit import CsrArrays, explicit_matrix

CASES = (("kanban", 6), ("synthetic", 1 << 24), ("kanban", 7))
QUICK = (("kanban", 2), ("synthetic", 3_000))
"""Model and size; the size of the synthetic matrix is its number of rows."""

DIAGONALS = 36
LIMITS = (1 << 30, 1 << 28, 1 << 26)
QUICK_LIMITS = (1 << 14, 1 << 16)
REPEATS = 3
MOST_SHOWN = 16
"""Parts of the time line that is kept whole."""


def synthetic_matrix(xp: Any, n_rows: int, diagonals: int) -> tuple[Any, Any, Any]:
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


def host_matrix(name: str, size: int, device: Device) -> CsrArrays:
    """Return a matrix on the host, made on the device."""
    if name != "synthetic":
        return explicit_matrix(example(name, size).transitions, "gpu").to_host()
    return CsrArrays((size, size), *synthetic_matrix(device.xp, size, DIAGONALS)).to_host()


def measure(row: dict[str, Any], device: Device, matrix: CsrArrays, limit: int) -> None:
    """Fill a row: one matrix in parts under one limit."""
    xp = device.xp
    cuts = parts_by_bytes(matrix, limit // 2)
    row.update(states=matrix.shape[0], entries=matrix.nnz, bytes=matrix.nbytes, parts=len(cuts) - 1)
    x = xp.asarray(np.random.default_rng(17).random(matrix.shape[1]))
    out, expected = xp.empty(matrix.shape[0]), xp.empty(matrix.shape[0])
    row["products_seconds"] = resident_seconds(device, matrix, cuts, x, expected)
    begin = time.perf_counter()
    streamed = StreamedMatrix(matrix, cuts, device)
    row["set_up_seconds"] = time.perf_counter() - begin
    row["buffer_bytes"] = streamed.buffer_bytes
    row["copies_seconds"] = device.seconds(streamed.copy_parts, REPEATS)
    row["streamed_seconds"] = device.seconds(lambda: streamed.multiply(x, out), REPEATS)
    row["difference"] = float(abs(out - expected).max() / abs(expected).max())
    times = streamed.trace(x, out)
    alone = row["copies_seconds"], row["products_seconds"]
    row["of_greater"] = row["streamed_seconds"] / max(alone)
    row["of_sum"] = row["streamed_seconds"] / sum(alone)
    row["copy_bytes_per_second"] = streamed.nbytes / row["copies_seconds"]
    row.update(overlap(times))
    if len(times) <= MOST_SHOWN:
        row["time_line"] = [[t.copy_begin, t.copy_end, t.product_end] for t in times]


def resident_seconds(device: Device, matrix: CsrArrays, cuts: list[int], x: Any, out: Any) -> float:
    """Return the seconds of the products of all parts, which lie on the device, one after the other."""
    resident = []
    for begin, end in zip(cuts[:-1], cuts[1:], strict=True):
        part = matrix.rows(begin, end)
        arrays = part.row_starts, part.columns, part.values
        stored = Msr.from_csr(device, *arrays, n_columns=matrix.shape[1])
        resident.append((stored, out[begin:end]))

    def multiply() -> None:
        for stored, rows in resident:
            stored.multiply(device, x, rows)

    return device.seconds(multiply, REPEATS)


def overlap(times: Sequence[PartTimes]) -> dict[str, float]:
    """Return how the products of a time line lie to its copies.

    Returns
    -------
    dict
        Seconds from the first copy to the last product (``traced_seconds``), seconds in which a copy was
        under way, a product was, both were, and ``products_within_copies``, the share of the products'
        seconds in which there was a copy, too.
    """
    copies = [(t.copy_begin, t.copy_end) for t in times]
    products = [(t.copy_end, t.product_end) for t in times]
    copying, working = covered(copies), covered(products)
    both = copying + working - covered(copies + products)
    return {
        "traced_seconds": max(t.product_end for t in times) - min(t.copy_begin for t in times),
        "traced_copy_seconds": copying,
        "traced_product_seconds": working,
        "traced_both_seconds": both,
        "products_within_copies": both / working if working > 0 else 0.0,
    }


def covered(intervals: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    ordered = np.array(sorted(intervals), dtype=np.float64).reshape(-1, 2)
    reach = np.maximum.accumulate(np.append(-np.inf, ordered[:, 1]))
    return float(np.maximum(ordered[:, 1] - np.maximum(ordered[:, 0], reach[:-1]), 0.0).sum())


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument("--limit", action="append", type=int, help="bytes of both buffers")
    options = arguments.parse_args()
    require_device()
    run(options)


def run(options: argparse.Namespace) -> Records:
    """Measure all rows that are asked for, on the current device."""
    device = current_device()
    records = Records("streamed_parts", options)
    limits = options.limit or (QUICK_LIMITS if options.quick else LIMITS)
    held: dict[tuple[str, int], CsrArrays] = {}

    def fill(row: dict[str, Any], name: str, size: int, limit: int) -> None:
        if (name, size) not in held:
            held.clear()
            held[name, size] = host_matrix(name, size, device)
        measure(row, device, held[name, size], limit)

    for name, size in QUICK if options.quick else CASES:
        if options.only is None or name in options.only:
            for limit in limits:
                identity = {"model": name, "size": size, "limit": limit}
                records.run(identity, fill, name, size, limit)
    records.show()
    return records


if __name__ == "__main__":
    main()
