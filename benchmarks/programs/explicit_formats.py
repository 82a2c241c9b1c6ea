"""Every explicit format beside the hybrid engine and cuSPARSE: time of a product, bytes, share of bandwidth.

All formats of one matrix are measured in one run on one card, with the same vectors; times are medians of
CUDA event times with launches hidden.  A format's traffic is what it has to move at least: its own bytes, x
and the result once each.  Its share is that traffic per second over the bandwidth of a copy on the device.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence

import numpy as np

from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.formats import Timer, measure_formats, product_seconds
from benchmarks.library.models import example_of
from benchmarks.library.records import Records, Row
from gpu_kernels import FORMATS, Device, current_device
from hybrid.matrix.explicit.extract import explicit_matrix
from hybrid.matrix.operators.inject import inject

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


def copy_bandwidth(device: Device, timer: Timer, size: int = COPY_BYTES) -> float:
    """Return the bytes a second, read and written, of a copy within the device."""
    source = device.xp.ones(size // 8)
    target = device.xp.empty_like(source)

    def copy() -> None:
        target[:] = source

    return 2 * 8 * len(source) / timer(copy)


def measure(
    row: Row, device: Device, timer: Timer, bandwidth: float, names: Sequence[str] = tuple(FORMATS)
) -> None:
    """Measure the hybrid engine and formats with the matrix of a model."""

    def of_copy(found: Row) -> Row:
        rate = found["traffic_bytes"] / found["seconds"]
        return found | {"bytes_per_second": rate, "share_of_copy": rate / bandwidth}

    symbolic = example_of(row["model"], row["constants"]).transitions
    xp = device.xp
    backend = "cpu" if xp is np else "gpu"
    hybrid = inject(symbolic, "min-time", "cpu" if xp is np else "gpu")
    x = xp.asarray(np.random.default_rng(2026).random(symbolic.n_columns))
    expected = xp.empty(symbolic.n_rows)
    seconds = timer(lambda: hybrid.product.multiply(x, expected))
    nbytes = int(hybrid.product.nbytes)
    csr = explicit_matrix(symbolic, backend)
    row.update(states=symbolic.n_rows, entries=csr.nnz, values=len(xp.unique(csr.values)))
    row["hybrid"] = of_copy(
        {"seconds": seconds, "level": hybrid.level, "bytes": nbytes, "entries_per_second": csr.nnz / seconds,
         "traffic_bytes": nbytes + 8 * sum(symbolic.shape)}
    )  # fmt: skip
    arrays = csr.row_starts, csr.columns, csr.values
    row["formats"] = [
        of_copy(found) if "seconds" in found else found
        for found in measure_formats(device, arrays, x, expected, names, timer)
    ]


def run(
    options: argparse.Namespace, device: Device, timer: Timer, names: Sequence[str] = tuple(FORMATS)
) -> Records:
    """Measure all matrices that are asked for."""
    bandwidth = copy_bandwidth(device, timer)
    # The bandwidth differs a little from run to run; rows that are kept have the shares of their own run.
    records = Records("explicit_formats", options)
    records.facts["copy_bytes_per_second"] = bandwidth
    for name, constants in QUICK if options.quick else CASES:
        if options.only and name not in options.only:
            continue
        identity = {"model": name, "constants": constants}
        records.run(identity, measure, device, timer, bandwidth, names)
    records.show()
    return records


def main() -> None:
    """Run and write the record."""
    options = parser(__doc__, "quick", "only", "seconds", "resume").parse_args()
    require_device()
    device = current_device()
    run(options, device, functools.partial(product_seconds, device))


if __name__ == "__main__":
    main()
