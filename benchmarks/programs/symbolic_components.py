"""Components found on decision diagrams, on models whose graph does not fit in memory and on smaller ones.

Each row has the bytes that the written-out graph would take, whether it is refused for want of memory, and
the seconds of both symbolic decompositions, once each, as one thread's processor time.  Where the graph
fits, its components are counted as well, and have to be as many.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import example
from benchmarks.library.records import Records
from hybrid.analysis.graphs import decompose, graph_bytes, mec_decomposition, model_graph
from mtbdd.base.memory import free_memory_bytes
from mtbdd.graph.components import model_components, model_end_components

DEFAULT = ("kanban=4", "kanban=10")
WRITTEN_OUT = 20_000_000
"""Transitions up to which the graph is written out to compare."""


def measure(row: dict[str, Any], name: str, size: int) -> None:
    """Decompose one model, and add what was found to the row."""
    started = time.perf_counter()
    model = example(name, size)
    row["build_seconds"] = time.perf_counter() - started
    row |= {"states": model.n_states, "transitions": model.n_transitions, "graph_bytes": graph_bytes(model)}
    row["free_bytes"] = free_memory_bytes()
    row["refused"] = None
    if row["graph_bytes"] > row["free_bytes"]:
        try:
            model_graph(model)
        except MemoryError as error:
            row["refused"] = str(error)
    started = time.process_time()
    components = model_components(model)
    row["scc_seconds"] = time.process_time() - started
    started = time.process_time()
    ends = model_end_components(model)
    row["mec_seconds"] = time.process_time() - started
    row |= {
        "sccs": len(components.sizes) + components.n_trivial,
        "largest_scc": max(components.sizes, default=1),
        "mecs": len(ends.sizes) + ends.n_single,
    }
    if row["refused"] is None and model.n_transitions <= WRITTEN_OUT:
        graph = model_graph(model)
        row["same"] = [decompose(graph).count, mec_decomposition(graph).count] == [row["sccs"], row["mecs"]]
        if not row["same"]:
            raise ValueError("the written-out graph has other components")


def main() -> None:
    """Run and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("models", nargs="*", help="an example and its size, as in kanban=10")
    options = arguments.parse_args()
    records = Records("symbolic_components", options)
    for text in options.models or DEFAULT:
        name, _, size = text.partition("=")
        identity = {"model": name, "size": int(size)}
        records.run(identity, measure, name, int(size))
    records.show()


if __name__ == "__main__":
    main()
