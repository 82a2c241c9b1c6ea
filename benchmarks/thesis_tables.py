"""The thesis's tables (003 figures 5.4 to 5.10): whole solutions on the CPU and on the GPU at both levels.

Usage: python benchmarks/thesis_tables.py [--largest] [--only STUDY ...] [--sizes STUDY=N,M ...]
       [--seconds S] [--cpu-seconds S] [--out FILE.json]

For every case study and size: Jacobi's method (JOR with weight 0.9 for steady states, where Jacobi does not
settle) to a relative difference of 1e-6, on the GPU at the level of minimum memory and of minimum time, and
on the CPU at its level of minimum time. A CPU run that would take longer than --cpu-seconds is stopped after
some iterations; its time is then that of an iteration times the iterations that the GPU needed, and is
marked as extrapolated. MemB and MemR as 003 section 5.2.3.1 defines them. Rows come in the order of their
cost, and the record is written after each of them.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from runs import EXAMPLES, Records, example, free_device_memory, has_device

from hybrid import SymbolicModel, check_all
from hybrid.properties import Properties, load_properties, resolve_properties

EPSILON = 1e-6
LIMIT = 1_000_000
PROBE = 10
"""Iterations after which a CPU run is judged; ten more decide once more, so that the first are warm."""


@dataclass(frozen=True)
class Study:
    """A case study of the thesis.

    Attributes
    ----------
    figure : str
        Number of its table.
    model, prop : str
        Example model and name of a property in its properties file.
    sizes : tuple of int
        Sizes of the thesis.
    method : str
        Method of the project.
    constants : dict
        Further constants.
    """

    figure: str
    model: str
    prop: str
    sizes: tuple[int, ...]
    method: str
    constants: dict[str, int]


STUDIES = {
    "fms": Study("5.4", "fms", "productivity", (6, 7, 8, 9, 10), "jor", {}),
    "kanban": Study("5.5", "kanban", "throughput", (4, 5, 6, 7, 8), "jor", {}),
    "polling-before": Study("5.6", "polling", "s1_before_s2", (15, 16, 17, 18, 19, 20), "jacobi", {}),
    "polling-s1": Study("5.7", "polling", "s1", (15, 16, 17, 18, 19, 20), "jor", {}),
    "cluster": Study("5.8", "cluster", "premium_steady", (128, 256, 512), "jor", {}),
    "tandem": Study("5.9", "tandem", "customers", (511, 1023, 2047, 4095), "jor", {}),
    "brp": Study("5.10", "brp", "p1", (512, 1024, 2048, 4096), "jacobi", {"MAX": 50}),
}

THESIS = {
    "fms": {6: (31.9, 3.79, 0.87), 7: (205.1, 13.9, 11.49), 8: (969.1, 47.01, 36.77),
            9: (2541.22, 141.66, 98.55), 10: (8818.31, 370.9, 247.3)},
    "kanban": {4: (6.18, 1.34, 0.65), 5: (61.1, 13.15, 6.49), 6: (395.18, 83.49, 40.87),
               7: (1976.26, 434.93, 190.87), 8: (8649.98, 1862.29, 822.24)},
    "polling-before": {15: (72.77, 7.94, 6.03), 16: (176.84, 25.96, 12.66), 17: (400.54, 57.21, 28.94),
                       18: (914.12, 149.92, 61.35), 19: (2043.92, 329.58, 137.75),
                       20: (4590.52, 807.42, 303.57)},
    "polling-s1": {15: (16.7, 4.6, 1.84), 16: (41.14, 12.41, 4.09), 17: (98.6, 28.8, 9.4),
                   18: (245.03, 74.44, 21.76), 19: (556.7, 170.46, 50.34), 20: (1310.45, 449.52, 118.6)},
    "cluster": {128: (19.19, 0.86, 0.43), 256: (238.28, 43.14, 19.75), 512: (9697.12, 1157.67, 646.89)},
    "tandem": {511: (106.5, 7.67, 7.5), 1023: (788.25, 52.04, 34.46), 2047: (4393.5, 308.55, 218.4),
               4095: (29527, 1967, 1338.6)},
    "brp": {512: (18.7, 1.53, 1.34), 1024: (76.58, 5.38, 4.49), 2048: (327.1, 19.4, 15.8),
            4096: (1277.1, 79.7, 60.1)},
}  # fmt: skip
"""Seconds of the thesis: its CPU, its GPU at the level of minimum memory, and at that of minimum time."""

ORDER = ("brp", "cluster", "fms", "polling-before", "polling-s1", "tandem", "kanban")
"""Studies from the cheapest to the dearest at their largest sizes."""


def solve(
    model: SymbolicModel, prop: Properties, study: Study, backend: str, level: str, iterations: int = LIMIT
) -> dict[str, Any]:
    """Answer the property once and return what it took."""
    begin = time.perf_counter()
    (answer,) = check_all(
        model, prop, backend=backend, level=level, method=study.method, epsilon=EPSILON,
        max_iterations=iterations,
    )  # fmt: skip
    work = answer.statistics
    return {
        "backend": work.backend,
        "level": work.level,
        "method": work.method,
        "value": answer.value,
        "error": answer.error,
        "iterations": work.iterations,
        "solve_seconds": work.seconds,
        "iteration_seconds": work.seconds / work.iterations if work.iterations else None,
        "total_seconds": time.perf_counter() - begin,
        "base_memory_bytes": work.base_bytes,
        "representation_memory_bytes": work.representation_bytes,
    }


def solve_on_cpu(
    model: SymbolicModel, prop: Properties, study: Study, expected: int, seconds: float
) -> dict[str, Any]:
    """Run on the CPU to the end where there is time for it, and extrapolate where there is not."""
    count, run = PROBE, solve(model, prop, study, "cpu", "min-time", PROBE)
    while run["error"] is not None and run["iterations"] >= count:
        each = run["iteration_seconds"]
        if each * expected <= seconds:
            return solve(model, prop, study, "cpu", "min-time") | {"extrapolated": False}
        if count > PROBE:
            return run | {
                "value": None, "iterations": expected, "solve_seconds": each * expected, "extrapolated": True,
                "error": None, "measured_iterations": count,
            }  # fmt: skip
        count = max(2 * PROBE, min(10_000, int(0.1 * seconds / each)))
        run = solve(model, prop, study, "cpu", "min-time", count)
    return run | {"extrapolated": False}


def measure(row: dict[str, Any], study: Study, size: int, options: argparse.Namespace) -> None:
    """Fill a row."""
    model = example(study.model, size, **study.constants)
    properties = load_properties(EXAMPLES / f"{study.model}.props")
    prop = resolve_properties(properties, model.source).select([study.prop])
    row.update(states=model.n_states, transitions=model.n_transitions, build_seconds=model.build_seconds)
    device = options.backend
    for name, level in (("gpu_min_time", "min-time"), ("gpu_min_memory", "min-memory")):
        row[name] = solve(model, prop, study, device, level)
        free_device_memory()
    expected = row["gpu_min_time"]["iterations"]
    if options.cpu_seconds > 0:
        row["cpu"] = solve_on_cpu(model, prop, study, expected, options.cpu_seconds)
        for name in ("gpu_min_time", "gpu_min_memory"):
            row[f"speedup_{name[4:]}"] = row["cpu"]["solve_seconds"] / row[name]["solve_seconds"]
        row["agreement"] = agreement(row)


def agreement(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the greatest relative difference of the GPU's answers from the CPU's; None without one."""
    expected = row["cpu"]["value"]
    found = [row[name]["value"] for name in ("gpu_min_time", "gpu_min_memory")]
    if expected is None or None in found:
        return None
    difference = max(abs(value - expected) for value in found)
    relative = difference / abs(expected) if expected else difference
    return {"relative_difference": relative, "agrees": relative <= 1e-6}


def text(row: dict[str, Any]) -> str:
    """Return a row for people."""
    head = f"{row['figure']:>5} {row['study']:15} {row['size']:>5}"
    if "error" in row:
        return f"{head} {row['error']}"
    slow, fast = row["gpu_min_memory"], row["gpu_min_time"]
    cpu = row.get("cpu")
    each = fast["iteration_seconds"] or math.nan
    line = f"{head} {row['states']:>12,} {fast['iterations']:>7} it {each * 1e3:8.3f} ms "
    line += f"GPU {slow['solve_seconds']:8.2f} {fast['solve_seconds']:8.2f} s "
    if cpu is not None:
        mark = "~" if cpu["extrapolated"] else " "
        line += f"CPU {mark}{cpu['solve_seconds']:9.2f} s {row['speedup_min_memory']:7.1f}x "
        line += f"{row['speedup_min_time']:7.1f}x "
        if row["agreement"] is not None:
            line += "agrees " if row["agreement"]["agrees"] else "DIFFERS "
    line += (
        f"MemB {fast['base_memory_bytes'] / 1e6:8.1f} MemR {slow['representation_memory_bytes'] / 1e6:7.2f} "
    )
    return line + f"{fast['representation_memory_bytes'] / 1e6:7.2f} MB {fast['error'] or ''}"


def chosen_cases(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return studies and sizes, the cheapest first."""
    sizes = {name: STUDIES[name].sizes for name in ORDER}
    for item in options.sizes:
        name, _, numbers = item.partition("=")
        if name not in STUDIES or not numbers:
            raise SystemExit(f"--sizes: expected STUDY=N,M with one of {', '.join(ORDER)}, got {item!r}")
        sizes[name] = tuple(int(number) for number in numbers.split(","))
    names = [name for name in ORDER if options.only is None or name in options.only]
    if options.largest:
        return [(name, max(sizes[name])) for name in names]
    longest = max(len(sizes[name]) for name in names)
    # Counted from the largest: second-largest sizes of all studies come before the largest of any.
    return [
        (name, sorted(sizes[name])[-back]) for back in range(longest, 0, -1) for name in names
        if back <= len(sizes[name])
    ]  # fmt: skip


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", action="store_true", help="only the largest size of every study")
    parser.add_argument("--only", action="append", choices=ORDER, help="only this study; may be repeated")
    parser.add_argument("--sizes", action="append", default=[], metavar="STUDY=N,M", help="other sizes")
    parser.add_argument("--seconds", type=float, help="begin no row after this time")
    parser.add_argument(
        "--cpu-seconds",
        type=float,
        default=20.0,
        help="longest whole run on the CPU; 0 for no CPU runs at all",
    )
    parser.add_argument(
        "--backend",
        default="gpu",
        choices=("gpu", "cpu", "reference"),
        help="instead of gpu, to try the script",
    )
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    if options.backend == "gpu" and not has_device():
        raise SystemExit("no CUDA device: use --backend cpu to try the script")
    records = Records(
        "thesis_tables", options.out, options.seconds, epsilon=EPSILON, cpu_seconds=options.cpu_seconds
    )
    for name, size in chosen_cases(options):
        study = STUDIES[name]
        identity = {"figure": study.figure, "study": name, "size": size, "property": study.prop,
                    "constants": study.constants, "thesis_seconds": THESIS[name].get(size)}  # fmt: skip
        row = records.run(identity, lambda r, s=study, n=size: measure(r, s, n, options))
        print(text(row), flush=True)
    for policy in ("min_memory", "min_time"):
        gains = [row[f"speedup_{policy}"] for row in records.rows if f"speedup_{policy}" in row]
        if gains:
            print(f"geometric mean of the speed-up at {policy}: {statistics.geometric_mean(gains):.1f}")


if __name__ == "__main__":
    main()
