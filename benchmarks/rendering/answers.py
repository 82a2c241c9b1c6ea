"""Sections on whole answers."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.rendering.markdown import Row, measured, section, table_of

__all__ = ["certified_products", "ltl_products"]


def certified_products(record: Row) -> str:
    """Return the section on products until bounds meet, with and without Krylov methods."""
    rows = measured(record)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    text = (
        f"Answers between bounds under default options, backend {record['backend']}, of built models, the "
        "second time asked.  `without` are optimistic iteration, and value iteration of averages, as they "
        "are; `default` lets IDR(4) look for the bounds where their pace tells that this is worth it.  "
        "Products are those of the matrix; seconds are whole answers, set-up included.  "
        f"\\> tells that {record['most']:,} iterations were not enough."
    )
    if ratios:
        mean = statistics.geometric_mean(ratios)
        text += f"  Geometric mean of the ratios of products: {mean:.2f}; greatest {max(ratios):.2f}."

    def products(kind: str) -> Callable[[Row], str]:
        return lambda r: ("" if r[kind]["met"] else "\\> ") + f"{r[kind]['products']:,}"

    def seconds(kind: str) -> Callable[[Row], str]:
        return lambda r: f"{r[kind]['seconds']:.2f}"

    return section(
        "Products until bounds meet" + (", on a card" if record["backend"] == "gpu" else ""),
        record,
        text,
        table_of(
            rows,
            ("model", "model"),
            ("question", lambda r: "`" + r["question"].replace("|", "\\|") + "`"),
            ("states", "states"),
            ("products without", products("without")),
            ("default", products("default")),
            ("ratio", lambda r: f"{r['ratio']:.3f}" if "ratio" in r else ""),
            ("seconds without", seconds("without")),
            ("default", seconds("default")),
        ),
    )


def ltl_products(record: Row) -> str:
    """Return the section on answers to questions in linear temporal logic."""
    text = (
        f"Whole answers between bounds, backend {record['backend']}: translation, product, graph, set-up and "
        "iterations of a built model, kernels compiled before; seconds.  The product of model and automaton "
        "is held compressed (hybrid), or written out (explicit); MB are those of its matrices."
    )

    def of(engine: str, key: str, scale: float, digits: int) -> Callable[[Row], str]:
        return lambda r: f"{r[engine][key] * scale:,.{digits}f}"

    return section(
        "Linear temporal logic",
        record,
        text,
        table_of(
            measured(record),
            ("model", lambda r: r["model"].replace(":", " ")),
            ("question", lambda r: "`" + r["question"].replace("|", "\\|") + "`"),
            ("states", "states"),
            ("iterations", lambda r: f"{r['hybrid']['iterations']:,}"),
            ("hybrid", of("hybrid", "seconds", 1.0, 2)),
            ("its iterations", of("hybrid", "iteration_seconds", 1.0, 2)),
            ("MB", of("hybrid", "matrix_bytes", 1e-6, 2)),
            ("explicit", of("explicit", "seconds", 1.0, 2)),
            ("its iterations", of("explicit", "iteration_seconds", 1.0, 2)),
            ("MB", of("explicit", "matrix_bytes", 1e-6, 2)),
        ),
    )
