"""Whole checks with the bisimulation quotient and without: states, blocks, seconds.

Every row is `hybrid check --json` of one property in processes of their own, with `--bisimulation` and
without, in turns; checks of more than a minute run once.  Models of the folder --models are not in the
repository; without it their rows are left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import existing, parser
from benchmarks.library.models import ROOT
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records

EXAMPLES: dict[str, tuple[str, ...]] = {
    "coin K=8": ("examples/coin.prism", "examples/coin.props", "--const", "K=8", "--prop", "5"),
    "mutex M=4": ("examples/mutex.prism", "examples/mutex.props", "--const", "M=4", "--prop", "4"),
    "tandem c=255": ("examples/tandem.prism", "examples/tandem.props", "--const", "c=255", "--prop", "1"),
    "cluster N=64": ("examples/cluster.prism", "examples/cluster.props", "--const", "N=64", "--prop", "1"),
}
"""Arguments of the check by name."""

FOLDER: dict[str, tuple[str, ...]] = {
    "herman 13": ("herman/herman13.pm", "herman/steps.pctl"),
    "herman 15": ("herman/herman15.pm", "herman/steps.pctl"),
    "phil-nofair 5": ("mdp/phil/phil-nofair5.nm", "mdp/phil/phil.pctl", "--prop", "3"),
    "leader 5": ("mdp/leader_async/leader5.nm", "mdp/leader_async/leader.pctl", "--prop", "5"),
    "csma 3 4": ("mdp/csma/csma3_4.nm", "mdp/csma/time_max.pctl"),
    "consensus 6 K=2": ("mdp/consensus/coin6.nm", "mdp/consensus/steps_max.pctl", "--const", "K=2"),
    "dining_crypt 8": (
        "mdp/dining_crypt/dining_crypt8.nm",
        "mdp/dining_crypt/correctness.pctl",
        "--prop",
        "1",
    ),
    "polling 10": ("polling/poll10.sm", "polling/s1.csl"),
}
"""The same, of models in the folder."""

_LONG = 60.0  # seconds of a check that runs once


def checked(command: tuple[str, ...], *more: str) -> dict[str, Any]:
    """Run a check once; return its answer, its model and its seconds.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    check = [sys.executable, "-m", "hybrid", "check", *command, "--json", *more]
    begin = time.perf_counter()
    done = subprocess.run(
        check, cwd=ROOT, env=child_environment(), capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(check)} ended with {done.returncode}: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    answer = found["results"][0]
    return {
        "property": answer["property"],
        "lower": answer["lower"],
        "upper": answer["upper"],
        "products": answer["products"],
        "wall_seconds": wall,
        "peak_rss_mb": found["model"]["peak_rss_mb"],
        "bisimulation": answer.get("bisimulation"),
    }


def measure(row: dict[str, Any], command: tuple[str, ...], repeat: int) -> None:
    """Run both forms of a check in turns, and fill a row."""
    plain, lumped = [], []
    for _ in range(repeat):
        plain.append(checked(command))
        lumped.append(checked(command, "--bisimulation"))
        if plain[0]["wall_seconds"] > _LONG:
            break
    sizes = lumped[0]["bisimulation"]
    row |= {
        "runs": len(plain),
        "property": plain[0]["property"],
        **{k: v for k, v in sizes.items() if k != "seconds"},
    }
    row["refinement_seconds"] = statistics.median(run["bisimulation"]["seconds"] for run in lumped)
    for name, runs in (("plain", plain), ("lumped", lumped)):
        for key in ("wall_seconds", "products", "peak_rss_mb"):
            row[f"{name}_{key}"] = statistics.median(run[key] for run in runs)
        row[f"{name}_lower"], row[f"{name}_upper"] = runs[0]["lower"], runs[0]["upper"]
    if not (row["plain_lower"] <= row["lumped_upper"] and row["lumped_lower"] <= row["plain_upper"]):
        raise RuntimeError("the bounds with the quotient and without have nothing in common")
    row["speedup"] = row["plain_wall_seconds"] / row["lumped_wall_seconds"]
    row["load"] = os.getloadavg()[0]


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    known = (*EXAMPLES, *FOLDER)
    arguments.add_argument("--only", action="append", choices=known, help="this one; may be repeated")
    arguments.add_argument("--models", type=existing, metavar="FOLDER", help="models of other rows")
    arguments.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of either form")
    options = arguments.parse_args()
    models: Path | None = options.models
    rows = dict(EXAMPLES)
    if models is not None:
        where = models.resolve()
        rows |= {
            name: tuple(str(where / part) if "/" in part else part for part in command)
            for name, command in FOLDER.items()
        }
    records = Records("lumping", options, repeat=options.repeat)
    for name, command in rows.items():
        if options.only is None or name in options.only:
            records.run({"model": name}, measure, command, options.repeat)
    records.show()


if __name__ == "__main__":
    main()
