"""Hardware counters of one product a matrix on the GPU, by Nsight Compute.

The profiler is launched on this program with --products, which multiplies every matrix once with the profiler
on, after a product that is not looked at.  The levels are those of the record gpu_product, so that the
counters explain its times.  Clocks are left as they are.  The profiler's table is read into a record: time,
how busy device memory and both caches are, hit rates, occupancy, and what warps wait for.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys

from benchmarks.library.arguments import existing, parser
from benchmarks.library.device import require_device
from benchmarks.library.models import ROOT, example_of
from benchmarks.library.ncu_table import kernels_of
from benchmarks.library.records import Records, Row
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.operators.inject import inject

CASES = (
    ("tandem", "c=4095"),
    ("brp", "N=4096,MAX=50"),
    ("cluster", "N=512"),
    ("polling", "N=20"),
    ("kanban", "t=7"),
    ("fms", "n=10"),
)
QUICK = (("tandem", "c=255"), ("kanban", "t=4"))

FLAGS = ("--profile-from-start", "off", "--clock-control", "none", "--csv", "--page", "details",
         "--set", "full", "--print-units", "base")  # fmt: skip

GPU_PRODUCT = ROOT / "benchmarks" / "results" / "gpu_product.json"

Case = tuple[str, str, int | None]
"""Model, constants, and level; None for the one that the engine chooses."""

_CASE = re.compile(r"^product (\w+) (\S+=\S+) (\d+)$")


def multiply_once(cases: list[Case]) -> None:
    """Multiply every matrix once with the profiler on, and print its name and level."""
    import cupy

    for name, constants, level in cases:
        matrix = example_of(name, constants).transitions
        operator = inject(matrix, "min-time" if level is None else level, "gpu")
        x, y = cupy.full(matrix.n_columns, 0.5), cupy.empty(matrix.n_rows)
        operator.product.multiply(x, y)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.start()
        operator.product.multiply(x, y)
        cupy.cuda.Device().synchronize()
        cupy.cuda.profiler.stop()
        print(f"product {name} {constants} {operator.level}", flush=True)
        del operator, x, y
        cupy.get_default_memory_pool().free_all_blocks()


def profile(program: str, options: argparse.Namespace) -> str:
    """Return what the profiler prints about this script's products.

    Raises
    ------
    SystemExit
        If there is no profiler, or it fails.
    """
    own = [sys.executable, "-m", "benchmarks.programs.kernel_counters", "--products"]
    own += ["--levels-of", str(options.levels_of)]
    own += ["--quick"] if options.quick else []
    for name in options.only or ():
        own += ["--only", name]
    try:
        done = subprocess.run([program, *FLAGS, *own], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{program}: no such program; install Nsight Compute or give --ncu PATH") from None
    if done.returncode != 0:
        raise SystemExit(
            f"{program} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def rows_of(text: str) -> list[Row]:
    """Return the counters of every product.

    Parameters
    ----------
    text : str
        Output of the profiler, the program's own lines (model, constants, level) among it.

    Raises
    ------
    ValueError
        If the table has more or fewer kernels than products were made.
    """
    made = [found.groups() for line in text.splitlines() if (found := _CASE.match(line.strip()))]
    kernels = kernels_of(text)
    if len(made) != len(kernels):
        raise ValueError(f"expected a kernel for each of the {len(made)} products, got {len(kernels)}")
    return [
        {"model": model, "constants": constants, "level": int(level), **kernel}
        for (model, constants, level), kernel in zip(made, kernels, strict=True)
    ]


def fill(row: Row, counters: Row) -> None:
    """Fill a row with the counters of a product, and with states and entries of its matrix."""
    matrix = example_of(row["model"], row["constants"]).transitions
    row.update(counters, states=int(matrix.n_rows), entries=int(level_curve(matrix).nonzeros))


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases asked for, with the levels of the record --levels-of where that has them."""
    levels: dict[tuple[str, str], int] = {}
    if options.levels_of is not None:
        rows = json.loads(options.levels_of.read_text())["rows"]
        levels = {(row["model"], row["constants"]): row["level"] for row in rows if "level" in row}
    cases = QUICK if options.quick else CASES
    return [(*case, levels.get(case)) for case in cases if not options.only or case[0] in options.only]


def main() -> None:
    """Profile, and write the record."""
    arguments = parser(__doc__, "quick", "only")
    arguments.add_argument("--ncu", default="ncu", metavar="PROGRAM", help="the profiler (default ncu)")
    arguments.add_argument("--products", action="store_true", help="what the profiler runs")
    arguments.add_argument(
        "--levels-of", type=existing, metavar="FILE.json", default=GPU_PRODUCT,
        help="profile at the levels of this record of gpu_product (default: that of the repository)",
    )  # fmt: skip
    options = arguments.parse_args()
    require_device()
    cases = chosen_cases(options)
    if options.products:
        multiply_once(cases)
        return
    text = profile(options.ncu, options)
    records = Records("kernel_counters", options, profiler_options=list(FLAGS))
    for counters in rows_of(text):
        identity = {key: counters.pop(key) for key in ("model", "constants", "level")}
        records.run(identity, fill, counters)
    records.show()


if __name__ == "__main__":
    main()
