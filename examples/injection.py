"""From a model to products by blocks: levels, COO submatrices, tasks of 256 rows, the block kernel.

    python examples/injection.py examples/kanban.prism t=3
    python examples/injection.py examples/kanban.prism t=3 gpu

docs/injection.md explains the steps.
"""

from __future__ import annotations

import sys

import numpy as np

import hybrid
from hybrid.app.explorer import report_levels
from mtbdd.language import parse_constants

file, constants, backend = sys.argv[1:] + ["", "cpu"][len(sys.argv) - 2 :]

model = hybrid.load(file, constants=parse_constants(constants))
diagram = model.transitions  # the offset-labelled MTBDD
print(f"{sum(diagram.nodes):,} nodes for {diagram.n_entries:,} entries of {diagram.n_rows:,} rows")

report = report_levels(diagram, backend=backend, representation="tasks")
print(*report.reasons.values(), sep="\n")

matrix = hybrid.inject(diagram, report.min_memory, backend, representation="tasks")
blocks, tasks = matrix.injected.blocks, matrix.tasks
print(f"{len(blocks)} submatrices of {len(blocks.value):,} entries, {len(matrix.injected):,} paths to them")
print(f"{len(tasks)} tasks of {tasks.task_rows} rows with {len(tasks.instances):,} instances")

largest = max((blocks[k] for k in range(len(blocks))), key=lambda block: block.nnz)
print(f"the largest submatrix: {largest.n_rows} x {largest.n_columns}")
for row, column, value in zip(largest.row[:4], largest.column[:4], largest.value[:4], strict=True):
    print(f"  row {row}, column {column}: {value:g}")

x = np.random.default_rng(1).random(diagram.n_columns)
y, expected = matrix @ x, hybrid.inject(diagram, backend="cpu") @ x
print(f"{matrix.nbytes:,} bytes on the {matrix.backend}, products differ by {np.abs(y - expected).max():.0e}")
