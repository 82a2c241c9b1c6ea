"""Variable orders: bytes and time of a product in the text's and in others by rule.

Every row is a model in one order: nodes of the MTBDD; seconds of building; bytes of the matrix at the level
of least memory; and one product on the CPU at the level of least time, with all threads, the median of some
repeats.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.models import EXAMPLES
from benchmarks.library.records import Records
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.build.order import ORDERS
from mtbdd.language import load_model, resolve

MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "fms n=7": ("fms", {"n": 7}),
    "kanban t=5": ("kanban", {"t": 5}),
    "cluster N=128": ("cluster", {"N": 128}),
    "tandem c=511": ("tandem", {"c": 511}),
    "brp N=128": ("brp", {"N": 128, "MAX": 20}),
}
"""Chains of examples/ and their constants."""

_REPEATS = 15


def product_seconds(matrix: Any, size: int) -> float:
    """Return the median time of a product."""
    x, y = np.random.default_rng(1).random(size), np.empty(size)
    times = []
    for _ in range(_REPEATS + 2):
        begin = time.perf_counter()
        matrix.multiply(x, y)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:])


def built(row: dict[str, Any], name: str, constants: dict[str, int], order: str) -> SymbolicModel:
    """Build a model in an order, and note how long that took."""
    syntax = load_model(EXAMPLES / f"{name}.prism")
    begin = time.perf_counter()
    model = build_model(resolve(syntax, constants), order=order)
    row["build_seconds"] = time.perf_counter() - begin
    return model


def measure(row: dict[str, Any], name: str, constants: dict[str, int], order: str) -> None:
    """Fill a row."""
    model = built(row, name, constants, order)
    row.update(states=model.n_states, transitions=model.n_transitions, nodes=model.statistics.mtbdd_nodes)
    small = hybrid.inject(model.transitions, level="min-memory", backend="cpu")
    row["least_bytes"] = small.nbytes
    fast = hybrid.inject(model.transitions, level="min-time", backend="cpu")
    row.update(
        bytes=fast.nbytes, level=fast.level, product_seconds=product_seconds(fast.prepare(), model.n_states)
    )


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--only", action="append", choices=tuple(MODELS), help="this one; may be repeated")
    options = arguments.parse_args()
    records = Records("variable_orders", options)
    for title in options.only or MODELS:
        for order in ORDERS:
            records.run({"model": title, "order": order}, measure, *MODELS[title], order)
    records.show()


if __name__ == "__main__":
    main()
