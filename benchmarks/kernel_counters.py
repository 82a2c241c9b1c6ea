"""Hardware counters of one product a matrix on the GPU, by Nsight Compute.

Usage: python benchmarks/kernel_counters.py [--quick] [--only NAME ...] [--ncu PROGRAM] [--save-csv FILE.csv]
       [--out FILE.json]
       python benchmarks/kernel_counters.py --csv FILE.csv --commit C --date D --device NAME [--out FILE.json]

The profiler is launched on this script with --products, which multiplies every matrix once with the profiler
on, at the level that the engine chooses, after a product that is not looked at. Clocks are left as they are.
The profiler's table is read into a record: time, how busy device memory and both caches are, hit rates,
occupancy, and what warps wait for. With --csv a table made earlier is read instead, and its commit, day and
device are given by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from gpu_product import load_matrix
from ncu_table import kernels_of
from record import environment
from runs import device_record, has_device

from hybrid.levels.curve import level_curve

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

_CASE = re.compile(r"^(?:product )?(\w+)(?: (\S+=\S+))? (\d+)$")


def multiply_once(cases: list[tuple[str, str]]) -> None:
    """Multiply every matrix once with the profiler on, and print its name and level."""
    import cupy

    from hybrid.operators.inject import inject

    for name, constants in cases:
        matrix = load_matrix(name, constants)
        operator = inject(matrix, "min-time", "gpu")
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
    own = [sys.executable, str(Path(__file__).resolve()), "--products"]
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


def rows_of(text: str, cases: dict[str, str]) -> list[dict[str, Any]]:
    """Return the counters of every product.

    Parameters
    ----------
    text : str
        Output of the profiler, the script's own lines (model, constants, level) among it.
    cases : dict
        Constants by model, for lines without them.

    Raises
    ------
    ValueError
        If the table has more or fewer kernels than products were made.
    """
    made = [found.groups() for line in text.splitlines() if (found := _CASE.match(line.strip()))]
    kernels = kernels_of(text)
    if len(made) != len(kernels):
        raise ValueError(f"expected a kernel for each of the {len(made)} products, got {len(kernels)}")
    rows = []
    for (model, constants, level), kernel in zip(made, kernels, strict=True):
        identity = {"model": model, "constants": constants or cases[model], "level": int(level)}
        rows.append({**identity, **kernel})
    return rows


def sizes(name: str, constants: str) -> dict[str, int]:
    """Return states and entries of a matrix."""
    matrix = load_matrix(name, constants)
    return {"states": int(matrix.n_rows), "entries": int(level_curve(matrix).nonzeros)}


def main() -> None:
    """Profile or read, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two small matrices")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this model; may be repeated")
    parser.add_argument("--ncu", default="ncu", metavar="PROGRAM", help="the profiler (default ncu)")
    parser.add_argument("--products", action="store_true", help="what the profiler runs: the products alone")
    parser.add_argument("--save-csv", type=Path, metavar="FILE.csv", help="keep the profiler's output")
    parser.add_argument("--csv", type=Path, metavar="FILE.csv", help="read a table made earlier")
    parser.add_argument("--commit", help="with --csv: the commit that was profiled")
    parser.add_argument("--date", help="with --csv: the day, as 2026-11-21")
    parser.add_argument("--device", help="with --csv: the card")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    cases = [
        case for case in (QUICK if options.quick else CASES) if not options.only or case[0] in options.only
    ]
    if options.products:
        multiply_once(cases)
        return
    where: dict[str, Any]
    if options.csv is not None:
        if None in (options.commit, options.date, options.device):
            parser.error("--csv needs --commit, --date and --device of the run that made the table")
        text = options.csv.read_text(errors="replace")
        where = {
            "environment": {"date": options.date, "commit": options.commit},
            "device": {"name": options.device},
        }
    else:
        if not has_device():
            raise SystemExit("no CUDA device: --csv reads a table that was made elsewhere")
        text = profile(options.ncu, options)
        if options.save_csv is not None:
            options.save_csv.write_text(text)
        where = {
            "environment": environment(),
            "device": device_record(),
            "profiler_options": list(FLAGS),
        }
    rows = [{**row, **sizes(row["model"], row["constants"])} for row in rows_of(text, dict(CASES))]
    for row in rows:
        print(
            f"{row['model']:8} {row['constants']:14} {row['seconds'] * 1e3:8.4f} ms "
            f"DRAM {row['dram_percent']:5.1f} L2 {row['l2_percent']:5.1f} L1 {row['l1_percent']:5.1f} %"
        )
    if options.out is not None:
        record = {"benchmark": "kernel_counters", **where, "rows": rows}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
