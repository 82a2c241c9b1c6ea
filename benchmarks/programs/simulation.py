"""Steps a second of sample paths, on one core: many paths together, few, and one.

Every model is read and compiled first, which is timed apart; then its paths are drawn and recorded: states,
times and actions of every step. The wall time of the best of some repeats counts; its processor time stands
beside, which is less where other work shares the core. One step is one transition of one path.
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks.library.arguments import parser
from benchmarks.library.models import EXAMPLES
from benchmarks.library.records import Records, Row
from hybrid.checking.simulation import simulate
from hybrid.checking.simulation.rules import Rules
from mtbdd.language import load_model, parse_constants, resolve

MODELS = (
    ("kanban", "t=5"),
    ("fms", "n=6"),
    ("cluster", "N=256"),
    ("polling", ""),
    ("tandem", "c=1023"),
    ("brp", "N=512,MAX=50"),
    ("herman", ""),
    ("coin", "K=8"),
)

# Paths and steps of each.
SHAPES = ((10_000, 1_000), (100, 1_000), (1, 10_000))
QUICK = ((1_000, 100), (1, 100))


def measure(row: Row, name: str, constants: str, paths: int, steps: int, repeats: int) -> None:
    """Draw the paths of one model several times."""
    begin = time.perf_counter()
    model = resolve(load_model(EXAMPLES / f"{name}.prism"), parse_constants(constants))
    events = len(Rules(model).events)
    row.update(events=events, set_up_seconds=time.perf_counter() - begin)
    times = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        simulate(model, steps, paths, seed=1)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    seconds, processor = min(times)
    row.update(
        seconds=seconds,
        processor_seconds=processor,
        all_seconds=[wall for wall, _ in times],
        steps_per_second=paths * steps / seconds,
    )


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument("--repeats", type=int, default=3)
    options = arguments.parse_args()
    # One core, whatever libraries would take.
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        measure_all(options)
    finally:
        os.sched_setaffinity(0, cores)


def measure_all(options: argparse.Namespace) -> None:
    """Measure every model with every number of paths."""
    records = Records("simulation", options, repeats=options.repeats)
    for name, constants in MODELS:
        if options.only and name not in options.only:
            continue
        for paths, steps in QUICK if options.quick else SHAPES:
            identity = {"model": name, "constants": constants, "paths": paths, "steps": steps}
            records.run(identity, measure, name, constants, paths, steps, options.repeats)
    records.show()


if __name__ == "__main__":
    main()
