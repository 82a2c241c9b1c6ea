"""Time of the symbolic build, from text to offset-labelled matrix, beside PRISM's model construction.

Every model is built in a process of its own, several times.  The first build counts apart: the process has
imported the packages, and compiled kernels are kept from earlier processes; of those that follow the median
counts.  With --models and --prism every distinct model of the table is built from the folder's files, and the
table's construction time stands beside; without them the project's examples are built.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.library.arguments import existing, parser
from benchmarks.library.models import EXAMPLES
from benchmarks.library.processes import run_python
from benchmarks.library.records import Records, Row

SIZES = ("states", "transitions", "mtbdd_nodes")

OWN = (
    ("tandem.prism", "c=1023"),
    ("kanban.prism", "t=6"),
    ("fms.prism", "n=6"),
    ("cluster.prism", "N=256"),
    ("brp.prism", "N=512,MAX=50"),
)


def cases(models: Path | None, prism: Path | None) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """Yield file, constants and PRISM's row."""
    if models is None or prism is None:
        for name, constants in OWN:
            yield EXAMPLES / name, constants, {}
        return
    best: dict[tuple[str, str], dict[str, str]] = {}
    with prism.open() as lines:
        for row in csv.DictReader(lines):
            key = (row["model"], row["const"])
            if row["t_model_construction_s"] and (
                key not in best
                or float(row["t_model_construction_s"]) < float(best[key]["t_model_construction_s"])
            ):
                best[key] = row
    for (model, constants), row in best.items():
        path = Path(*Path(model).parts[1:])
        yield models / path, constants, row


BUILD = """
import json, sys, time
from mtbdd.build.build import build_model
from mtbdd.language import load_model, parse_constants, resolve
path, constants, repeats = json.loads(sys.argv[1])
times = []
for _ in range(1 + repeats):
    start = time.perf_counter()
    model = build_model(resolve(load_model(path), parse_constants(constants)))
    times.append(time.perf_counter() - start)
found = model.statistics
print(json.dumps([times, found.states, found.transitions, found.mtbdd_nodes]))
"""


def measure(row: Row, path: Path, constants: str, beside: dict[str, str], repeats: int) -> None:
    """Build one model several times in a process of its own."""
    (first, *again), *sizes = run_python(BUILD, [str(path.resolve()), constants, repeats])
    row.update(first_seconds=first, seconds=statistics.median(again), all_seconds=[first, *again])
    row.update(zip(SIZES, sizes, strict=True))
    if beside:
        row["prism_seconds"] = float(beside["t_model_construction_s"])
        row["ratio"] = row["prism_seconds"] / row["first_seconds"]
        row["same_sizes"] = sizes == [int(beside[key]) for key in SIZES]


def main() -> None:
    """Run and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--models", type=existing, metavar="FOLDER", help="files that the table names")
    arguments.add_argument("--prism", type=existing, metavar="FILE.csv", help="PRISM's construction times")
    arguments.add_argument("--repeats", type=int, default=3)
    options = arguments.parse_args()
    if (options.models is None) != (options.prism is None):
        arguments.error("--models and --prism go together")
    records = Records("symbolic_build", options, repeats=options.repeats)
    # So that kernels have been compiled.
    for name, constants in OWN[1::3]:
        run_python(BUILD, [str(EXAMPLES / name), constants, 1])
    for path, constants, beside in cases(options.models, options.prism):
        if not path.exists():
            print(f"{path.name:14} {constants:14}  no such file, left out", flush=True)
            continue
        identity = {"model": path.name, "constants": constants}
        records.run(identity, measure, path, constants, beside, options.repeats)
    records.show()


if __name__ == "__main__":
    main()
