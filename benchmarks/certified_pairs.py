"""Certified answers of two source trees, in pairs: whether an iteration is as quick as before.

``python benchmarks/certified_pairs.py --base FOLDER [--backend gpu] [--to FILE]``

FOLDER holds the packages of the older tree.  Every case is answered by a process of its own, which answers it
once to compile and to load, and then several times; its figure is the least time of an iteration, and that of
an answer without the model's build.  The trees take turns; the ratio is that of the least figures of all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from benchmarks.record import environment  # noqa: E402

CASES = {
    "kanban t=4, long-run reward": ("kanban", {"t": 4}, 'R{"throughput"}=? [ S ]'),
    "brp N=256, until": ("brp", {"N": 256, "MAX": 20}, "P=? [ F s=5 & srep=2 ]"),
    "cluster N=64, long-run share": ("cluster", {"N": 64}, 'S=? [ "premium" ]'),
    "tandem c=127, long-run reward": ("tandem", {"c": 127}, 'R{"customers"}=? [ S ]'),
    "coin K=4, least probability": ("coin", {"K": 4}, 'Pmin=? [ F "all_heads" ]'),
    "coin K=4, steps": ("coin", {"K": 4}, 'Pmax=? [ F<=2000 "decided" ]'),
    "brp N=256, steps": ("brp", {"N": 256, "MAX": 20}, "P=? [ F<=1000 s=5 ]"),
    "kanban t=3, rewards over a time": ("kanban", {"t": 3}, 'R{"throughput"}=? [ C<=20 ]'),
}
"""Model of `examples`, constants, property."""

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder with the older packages")
    parser.add_argument("--backend", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=3, help="answers a process, after the first")
    parser.add_argument("--only", help="cases whose name holds this text")
    parser.add_argument("--to", type=Path)
    chosen = parser.parse_args()
    trees = {"base": chosen.base.resolve(), "this": HERE}
    found = {}
    for name, case in CASES.items():
        if chosen.only and chosen.only not in name:
            continue
        rounds = []
        for _ in range(chosen.rounds):
            rounds.append({tree: _answer(folder, case, chosen) for tree, folder in trees.items()})
            if any("error" in figures for figures in rounds[-1].values()):
                break
        found[name] = _summary(rounds)
        print(f"{name}: {json.dumps(found[name]['ratio'])}", flush=True)
    record = {**environment(), "backend": chosen.backend, "rounds": chosen.rounds, "cases": found}
    if chosen.to is not None:
        chosen.to.write_text(json.dumps(record, indent=1) + "\n")


def _answer(folder: Path, case: tuple[str, dict[str, int], str], chosen: argparse.Namespace) -> dict:
    """Answer a case in a process of its own."""
    model, constants, prop = case
    arguments = [str(HERE / f"examples/{model}.prism"), constants, prop, chosen.backend, chosen.times]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, json.dumps(arguments)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "no message"}
    return json.loads(done.stdout)


def _summary(rounds: list[dict]) -> dict:
    """Return the rounds with the ratio of the least figures: what else runs only adds to them."""
    if any("error" in figures for both in rounds for figures in both.values()):
        return {"ratio": None, "rounds": rounds}

    def ratio(key: str) -> float | None:
        this, base = (min(both[tree][key] for both in rounds) for tree in ("this", "base"))
        return round(this / base, 3) if base else None

    return {"ratio": {key: ratio(key) for key in ("iteration", "answer", "iterations")}, "rounds": rounds}


if __name__ == "__main__":
    main()
