"""The tables of [Tealdi13] (figures 5.4 to 5.10): whole solutions on CPU and GPU at both levels.

For every case study and size: Jacobi's method (JOR with weight 0.9 for steady states, where Jacobi does not
settle) to a relative difference of 1e-6, on the GPU at the level of minimum memory and of minimum time, and
on the CPU at its level of minimum time. At either level of the GPU some iterations that do not count are
made first; then both levels are solved at in turn, in one order and in the other, and the better time of each
is kept. A solution longer than --repeat-seconds is counted once. A CPU run that would take longer than
--cpu-seconds is stopped after some iterations; its time is then that of an iteration times the iterations
that the GPU needed, and is marked as extrapolated. --cpu-values has answers of CPU runs made elsewhere to
compare with: a record of this script, or {study: {"value", "iterations", "solve_seconds", "level"}} for the
largest sizes, with "where" or --cpu-where to say on what. MemB and MemR as [Tealdi13] §5.2.3.1 defines them.
The largest sizes of all studies come first, the second largest next; the record is written after each row.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import existing, parser
from benchmarks.library.device import free_device_memory, require_device
from benchmarks.library.models import EXAMPLES, example
from benchmarks.library.records import Records
from benchmarks.library.repeated_solves import Trial, WarmThenCounted, WithinSeconds, answer
from benchmarks.published.thesis import ORDER, STUDIES, THESIS, Study
from hybrid import SymbolicModel
from hybrid.base.check_options import REPRESENTATIONS
from hybrid.properties import Properties, load_properties, resolve_properties

EPSILON = 1e-6
LIMIT = 1_000_000
WARM = 40
"""Iterations before those that count."""


def solve(
    model: SymbolicModel,
    prop: Properties,
    study: Study,
    backend: str,
    level: str,
    trial: Trial,
    representation: str = "row-types",
) -> dict[str, Any]:
    """Answer the property once and return what it took."""
    begin = time.perf_counter()
    found = answer(
        model, prop.properties[0], trial, backend=backend, level=level, method=study.method, epsilon=EPSILON,
        max_iterations=LIMIT, representation=representation,
    )  # fmt: skip
    work = found.statistics
    return {
        "backend": work.backend,
        "level": work.level,
        "method": work.method,
        "value": found.value,
        "error": found.error,
        "iterations": work.iterations,
        "solve_seconds": work.seconds,
        "iteration_seconds": work.seconds / work.iterations if work.iterations else None,
        "synchronisations": work.synchronisations,
        "total_seconds": time.perf_counter() - begin,
        "base_memory_bytes": work.base_bytes,
        "representation_memory_bytes": work.representation_bytes,
    }


def solve_at_both_levels(
    model: SymbolicModel, prop: Properties, study: Study, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Solve at the levels of minimum time and of minimum memory, so that neither has the better place."""
    levels = {"gpu_min_time": "min-time", "gpu_min_memory": "min-memory"}
    trials = {name: WarmThenCounted(WARM if options.backend == "gpu" else 0) for name in levels}
    found: dict[str, dict[str, Any]] = {}
    for name, level in levels.items():
        found[name] = solve(model, prop, study, options.backend, level, trials[name], options.representation)
        # What did not count is no part of the whole, either.
        found[name]["total_seconds"] -= trials[name].warm_seconds
        free_device_memory(collect=False)
    times = {name: [run["solve_seconds"]] for name, run in found.items()}
    if found["gpu_min_time"]["level"] == found["gpu_min_memory"]["level"]:
        # The same thing measured twice.
        times = dict.fromkeys(levels, [seconds for counted in times.values() for seconds in counted])
    turn, whole = list(levels), all(run["error"] is None for run in found.values())
    while whole and _more_wanted(times, options):
        turn.reverse()
        for name in turn:
            times[name].append(trials[name].again())
    for name, run in found.items():
        run["counted_seconds"], run["solve_seconds"] = times[name], min(times[name])
        if run["iterations"]:
            run["iteration_seconds"] = run["solve_seconds"] / run["iterations"]
    return found


def _more_wanted(times: dict[str, list[float]], options: argparse.Namespace) -> bool:
    """Return whether to solve once more at each level."""
    counted, longest = len(times["gpu_min_time"]), max(map(min, times.values()))
    return bool(counted < options.runs and longest <= options.repeat_seconds)


def solve_on_cpu(
    model: SymbolicModel, prop: Properties, study: Study, expected: int, seconds: float
) -> dict[str, Any]:
    """Run on the CPU to the end where there is time for it, and extrapolate where there is not."""
    run = solve(model, prop, study, "cpu", "min-time", WithinSeconds(seconds, expected))
    if run["error"] is None or run["iterations"] >= expected or not run["iterations"]:
        return run | {"extrapolated": False}
    return run | {
        "value": None, "iterations": expected, "solve_seconds": run["iteration_seconds"] * expected,
        "extrapolated": True, "error": None, "measured_iterations": run["iterations"],
    }  # fmt: skip


def measure(row: dict[str, Any], study: Study, size: int, options: argparse.Namespace) -> None:
    """Fill a row."""
    model = example(study.model, size, **study.constants)
    properties = load_properties(EXAMPLES / f"{study.model}.props")
    prop = resolve_properties(properties, model.source).select([study.prop])
    row.update(states=model.n_states, transitions=model.n_transitions, build_seconds=model.build_seconds)
    row.update(solve_at_both_levels(model, prop, study, options))
    free_device_memory()
    expected = row["gpu_min_time"]["iterations"]
    if options.cpu_seconds > 0:
        row["cpu"] = solve_on_cpu(model, prop, study, expected, options.cpu_seconds)
        for name in ("gpu_min_time", "gpu_min_memory"):
            row[f"speedup_{name[4:]}"] = row["cpu"]["solve_seconds"] / row[name]["solve_seconds"]
    elsewhere = options.known.get((row["study"], size))
    if elsewhere is not None:
        row["cpu_elsewhere"] = elsewhere
    row["agreement"] = agreement(row)


def agreement(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the greatest relative difference of the GPU's answers from the CPU's; None without one."""
    own, elsewhere = row.get("cpu"), row.get("cpu_elsewhere")
    expected, where = (None, None) if own is None else (own["value"], None)
    if expected is None and elsewhere is not None:
        expected, where = elsewhere["value"], elsewhere["where"]
    found = [row[name]["value"] for name in ("gpu_min_time", "gpu_min_memory")]
    if expected is None or None in found:
        return None
    difference = max(abs(value - expected) for value in found)
    relative = difference / abs(expected) if expected else difference
    known = {"relative_difference": relative, "agrees": relative <= 1e-6, "cpu_value": expected}
    return known if where is None else {**known, "where": where}


def known_values(path: Path | None, where: str | None) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the CPU runs of a file, by study and size.

    Raises
    ------
    SystemExit
        If the file has a study that there is not.
    """
    if path is None:
        return {}
    content, known = json.loads(path.read_text()), {}
    if "rows" in content:
        environment = content["environment"]
        where = where or f"{environment['processor']}, {environment['cores']} cores"
        for row in content["rows"]:
            runs = [row.get("cpu"), row.get("gpu_min_time")]
            whole = [r for r in runs if r and r["backend"] == "cpu" and r["value"] is not None]
            if whole and "error" not in row:
                known[row["study"], row["size"]] = {**whole[0], "where": where}
        return known
    for name, run in content.items():
        if name not in STUDIES:
            raise SystemExit(f"{path}: expected one of {', '.join(ORDER)}, got {name!r}")
        size = run.get("size", max(STUDIES[name].sizes))
        known[name, size] = {"where": where or "another machine", **run}
    return known


def chosen_cases(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return studies and sizes: the largest of every study first, the cheapest of them first."""
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
    return [
        (name, sorted(sizes[name])[-back]) for back in range(1, longest + 1) for name in names
        if back <= len(sizes[name])
    ]  # fmt: skip


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--largest", action="store_true", help="only the largest size of every study")
    arguments.add_argument("--only", action="append", choices=ORDER, help="only this study; may be repeated")
    arguments.add_argument("--sizes", action="append", default=[], metavar="STUDY=N,M", help="other sizes")
    arguments.add_argument(
        "--cpu-seconds",
        type=float,
        default=2.0,
        help="longest whole run on the CPU; 0 for no CPU runs at all",
    )
    arguments.add_argument("--cpu-values", type=existing, metavar="FILE.json", help="of CPU runs elsewhere")
    arguments.add_argument("--cpu-where", metavar="TEXT", help="the machine of --cpu-values")
    arguments.add_argument("--runs", type=int, default=2, help="counted solutions at each level")
    arguments.add_argument("--repeat-seconds", type=float, default=3.0, help="count longer ones once")
    arguments.add_argument(
        "--backend",
        default="gpu",
        choices=("gpu", "cpu", "reference"),
        help="instead of gpu, to try the script",
    )
    arguments.add_argument(
        "--representation",
        default="row-types",
        choices=REPRESENTATIONS,
        help="how the device holds matrices; tasks, the thesis's, for the record thesis_tables_tasks",
    )
    options = arguments.parse_args()
    if options.backend == "gpu":
        require_device("use --backend cpu to try the program")
    options.known = known_values(options.cpu_values, options.cpu_where)
    records = Records(
        "thesis_tables", options, epsilon=EPSILON,
        cpu_seconds=options.cpu_seconds, warm_iterations=WARM, representation=options.representation,
    )  # fmt: skip
    for name, size in chosen_cases(options):
        study = STUDIES[name]
        identity = {"figure": study.figure, "study": name, "size": size, "property": study.prop,
                    "constants": study.constants, "thesis_seconds": THESIS[name].get(size)}  # fmt: skip
        records.run(identity, measure, study, size, options)
    records.show()


if __name__ == "__main__":
    main()
