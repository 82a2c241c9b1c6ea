"""Certified answers of two source trees, in pairs: whether an iteration is as quick as before.

The folder --base holds the packages of the older tree.  Every case is answered by a process of its own, once
to compile and to load, and then several times; its figure is the least time of an iteration, and that of an
answer without the model's build.  The trees take turns; the ratio is that of the least figures of all.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.library.arguments import existing, parser
from benchmarks.library.device import require_device
from benchmarks.library.models import EXAMPLES, ROOT, example_file
from benchmarks.library.processes import run_python
from benchmarks.library.records import Records, Row

CASES = {
    "kanban t=4, long-run reward": ("kanban", {"t": 4}, 'R{"throughput"}=? [ S ]'),
    "brp N=256, until": ("brp", {"N": 256, "MAX": 20}, "P=? [ F s=5 & srep=2 ]"),
    "cluster N=64, long-run share": ("cluster", {"N": 64}, 'S=? [ "premium" ]'),
    "tandem c=127, long-run reward": ("tandem", {"c": 127}, 'R{"customers"}=? [ S ]'),
    "coin K=4, least probability": ("coin", {"K": 4}, 'Pmin=? [ F "all_heads" ]'),
    "coin K=4, steps": ("coin", {"K": 4}, 'Pmax=? [ F<=2000 "decided" ]'),
    "brp N=256, steps": ("brp", {"N": 256, "MAX": 20}, "P=? [ F<=1000 s=5 ]"),
    "kanban t=3, rewards over a time": ("kanban", {"t": 3}, 'R{"throughput"}=? [ C<=20 ]'),
    "kanban t=5, rewards over a time": ("kanban", {"t": 5}, 'R{"throughput"}=? [ C<=2 ]'),
    "kanban t=5, average": ("kanban", {"t": 5}, 'R{"throughput"}=? [ S ]'),
    "kanban t=7, average": ("kanban", {"t": 7}, 'R{"throughput"}=? [ S ]'),
    "kanban t=8, average": ("kanban", {"t": 8}, 'R{"throughput"}=? [ S ]'),
    "fms n=7, average": ("fms", {"n": 7}, 'R{"productivity"}=? [ S ]'),
    "fms n=10, average": ("fms", {"n": 10}, 'R{"productivity"}=? [ S ]'),
    "cluster N=128, average": ("cluster", {"N": 128}, 'S=? [ "premium" ]'),
    "cluster N=512, average": ("cluster", {"N": 512}, 'S=? [ "premium" ]'),
    "tandem c=511, average": ("tandem", {"c": 511}, 'R{"customers"}=? [ S ]'),
    "tandem c=2047, average": ("tandem", {"c": 2047}, 'R{"customers"}=? [ S ]'),
    "polling N=16, average": ("polling", {"N": 16}, "S=? [ s1=1 & !(s=1 & a=1) ]"),
    "polling N=20, average": ("polling", {"N": 20}, "S=? [ s1=1 & !(s=1 & a=1) ]"),
}
"""Model of `examples`, constants, property."""

_WRITTEN = "polling"
"""Its text is written for every size."""

ANSWER = """
import json, sys, time
import hybrid
model, constants, prop, backend, times = json.loads(sys.argv[1])
built = hybrid.load(model, constants=constants)
best = each = None
for _ in range(times + 1):
    start = time.perf_counter()
    answer = hybrid.check(built, prop, backend=backend)
    seconds = time.perf_counter() - start
    if answer.error is not None:
        raise SystemExit(answer.error)
    work = answer.statistics
    step = work.seconds / max(work.iterations, 1)
    if best is not None or times == 0:
        best, each = min(best, seconds), min(each, step)
    else:
        best = each = float("inf")
print(json.dumps({"answer": best, "iteration": each, "iterations": work.iterations}))
"""


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    arguments.add_argument(
        "--base", type=existing, required=True, metavar="FOLDER", help="with the older packages"
    )
    arguments.add_argument("--backend", default="cpu", choices=("cpu", "gpu"))
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--times", type=int, default=3, help="answers a process, after the first")
    options = arguments.parse_args()
    if options.backend == "gpu":
        require_device("use --backend cpu")
    trees = {"base": options.base.resolve(), "this": ROOT}
    records = Records("certified_pairs", options, backend=options.backend, rounds=options.rounds)
    for name, case in CASES.items():
        if options.only and not any(text in name for text in options.only):
            continue
        row = records.run({"name": name}, measure, case, trees, options)
        print(f"{name}: {row.get('error') or row['ratio']}", flush=True)


def measure(
    row: Row, case: tuple[str, dict[str, int], str], trees: dict[str, Path], options: argparse.Namespace
) -> None:
    """Answer a case by both trees in turn, each time in a process of its own."""
    model, constants, prop = case
    with tempfile.TemporaryDirectory() as folder:
        path = EXAMPLES / f"{model}.prism"
        if model == _WRITTEN:
            path, constants = example_file(model, constants["N"], Path(folder))
        argument = [str(path), constants, prop, options.backend, options.times]
        rounds = [
            {tree: run_python(ANSWER, argument, place) for tree, place in trees.items()}
            for _ in range(options.rounds)
        ]
    row.update(ratio=ratios(rounds), rounds=rounds)


def ratios(rounds: list[Row]) -> dict[str, float | None]:
    """Return the ratios of the least figures: what else runs only adds to them."""

    def ratio(key: str) -> float | None:
        this, base = (min(both[tree][key] for both in rounds) for tree in ("this", "base"))
        return round(this / base, 3) if base else None

    return {key: ratio(key) for key in ("iteration", "answer", "iterations")}


if __name__ == "__main__":
    main()
