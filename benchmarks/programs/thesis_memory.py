"""Memory of the thesis's case studies in tasks, beside row types ([Tealdi13] figures 5.2 to 5.10).

For every case study and size, of its transition matrix: MemB, the vectors; MemR, submatrices and tasks in the
worst case, at the level where it is least; what tasks hold at the level of least bytes and at that of least
time predicted for a device; and what row types hold on the CPU at their level of least bytes. No tasks are
built: instances are counted on the diagram. Row types are built to weigh them.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import example
from benchmarks.library.records import Records
from benchmarks.programs.thesis_tables import chosen_cases
from benchmarks.published.thesis import MEMORY, ORDER, STUDIES, Study
from hybrid.app.explorer import report_levels, weigh_levels
from hybrid.matrix.backends import choose_backend
from hybrid.matrix.levels.curve import base_memory_bytes


def measure(row: dict[str, Any], study: Study, size: int) -> None:
    """Fill a row."""
    model = example(study.model, size, **study.constants)
    matrix = model.transitions
    tasks = report_levels(matrix, backend="gpu", representation="tasks")
    held = weigh_levels(matrix, choose_backend("cpu"))
    smallest = min(held, key=lambda k: (held[k], k))
    curve = tasks.curve
    row.update(
        states=model.n_states,
        transitions=model.n_transitions,
        # Linear systems have a right-hand side.
        base_memory_bytes=base_memory_bytes(model.n_states, with_b=study.method == "jacobi"),
        min_memr={"level": tasks.min_memr, "bytes": curve[tasks.min_memr].bytes_worst_case},
        min_memory={"level": tasks.min_memory, "bytes": curve.bytes_predicted(tasks.min_memory, "cpu")},
        min_time={
            "level": tasks.min_time,
            "bytes": curve.bytes_predicted(tasks.min_time, "cpu"),
            "bytes_worst_case": curve[tasks.min_time].bytes_worst_case,
        },
        row_types={"level": smallest, "bytes": held[smallest], "weighed": len(held)},
        memr_by_level=[c.bytes_worst_case for c in curve.levels],
    )


def main() -> None:
    """Count and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--largest", action="store_true", help="only the largest size of every study")
    arguments.add_argument("--only", action="append", choices=ORDER, help="only this study; may be repeated")
    arguments.add_argument("--sizes", action="append", default=[], metavar="STUDY=N,M", help="other sizes")
    options: argparse.Namespace = arguments.parse_args()
    records = Records("thesis_memory", options)
    for name, size in chosen_cases(options):
        study = STUDIES[name]
        identity = {
            "figure": study.figure, "study": name, "size": size, "constants": study.constants,
            "thesis_megabytes": MEMORY[name].get(size),
        }  # fmt: skip
        records.run(identity, measure, study, size)
    records.show()


if __name__ == "__main__":
    main()
