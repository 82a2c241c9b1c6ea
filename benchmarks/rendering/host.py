"""Sections on products, builds and values on the host."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.rendering.markdown import Row, measured, name_of, number, section, table, table_of

__all__ = [
    "agreement",
    "cpu_iteration",
    "file_formats",
    "large_speedups",
    "many_vectors",
    "simulation",
    "symbolic_build",
    "variable_orders",
]

MILLION = 1_000_000


def large_speedups(rows: list[Row], key: str = "speedup") -> list[float]:
    """Return the gains on models with over a million transitions."""
    return [row[key] for row in rows if key in row and row["transitions"] > MILLION]


def by_name(key: str) -> Callable[[Row], str]:
    """Return what tells nanoseconds a transition of a row."""
    return lambda row: number(row["ns_per_transition"].get(key))


def cpu_iteration(record: Row) -> str:
    """Return the section on products on the CPU."""
    rows = measured(record)
    means = []
    every = f"all {record['threads']} threads"
    for key, threads in (
        ("speedup", f"{every} over SciPy"),
        ("speedup_one_thread", "one over SciPy"),
        ("speedup_over_mkl", f"{every} over MKL with as many"),
        ("speedup_over_mkl_one_thread", "one over MKL with one"),
    ):
        found = large_speedups(rows, key)
        if found:
            means.append(f"{statistics.geometric_mean(found):.2f} with {threads}, least {min(found):.2f}")
    text = (
        "Nanoseconds a transition of one product `M @ x` (medians of some two seconds), once the level is "
        "chosen and kernels are compiled; SciPy's CSR product uses one core, PRISM's engines too.  `gain` is "
        "over SciPy.  `set-up` is choosing the level and laying the matrix out."
    )
    beside: list[tuple[str, Callable[[Row], str]]] = []
    if "mkl" in record:
        name = record["mkl"].split("-Product")[0]
        text += (
            f"  MKL is {name}, inspected and optimised, with as many threads and with one.  Its products "
            "follow one another, and so do those `beside` it, over which it has its `gain`; the others come "
            "after one of SciPy's, which has emptied the caches."
        )
        for title, key in (("MKL", "mkl"), ("MKL, 1 thread", "mkl_one_thread")):
            suffix = key.removeprefix("mkl")
            beside += [
                (title, by_name(key)),
                ("beside", by_name(f"product_beside_mkl{suffix}")),
                ("gain", lambda r, gain=f"speedup_over_{key}": number(r.get(gain))),  # type: ignore[misc]
            ]
    if means:
        text += f"  Geometric means over the models with more than 10⁶ transitions: {'; '.join(means)}."
    return section(
        "A product on the CPU" if record["threads"] == 2 else f"A product on {record['threads']} cores",
        record,
        text,
        table_of(
            rows,
            ("model", lambda r: r["model"].replace(":", " ")),
            ("transitions", "transitions"),
            ("set-up s", lambda r: f"{r['choose_seconds'] + r['build_seconds']:.2f}"),
            ("MB", lambda r: f"{r['representation_memory_bytes'] / 1e6:.1f}"),
            ("of CSR", lambda r: f"{100 * r['representation_memory_bytes'] / r['csr_bytes']:.1f} %"),
            ("SciPy CSR", lambda r: number(r["ns_per_transition"]["scipy_csr"])),
            ("1 thread", lambda r: number(r["ns_per_transition"]["product_one_thread"])),
            ("all threads", lambda r: number(r["ns_per_transition"]["product"])),
            ("gain", lambda r: f"{r['speedup']:.2f}"),
            ("gain, 1 thread", lambda r: f"{r['speedup_one_thread']:.2f}"),
            *beside,
            ("PRISM hybrid", lambda r: number(r["prism_ns_per_transition"].get("hybrid"))),
            ("PRISM sparse", lambda r: number(r["prism_ns_per_transition"].get("sparse"))),
        ),
    )


def many_vectors(record: Row) -> str:
    """Return the section on products with several vectors at once."""
    text = (
        "Milliseconds of the products with several vectors: `M @ X` in one sweep, as many products `M @ x`, "
        "and SciPy's CSR with X on one core.  Medians of one run, the three in turns; `share` is that of the "
        "first over the second, also of the best times.  The results are the same bit for bit."
    )

    def times(key: str) -> Callable[[Row], str]:
        return lambda r: f"{1e3 * r['seconds'][key]:.1f}" if key in r["seconds"] else "-"

    return section(
        "Products with several vectors at once" + (", on a card" if record["backend"] == "gpu" else ""),
        record,
        text,
        table_of(
            measured(record),
            ("model", lambda r: r["model"].replace(":", " ")),
            ("transitions", "transitions"),
            ("vectors", "vectors"),
            ("at once", times("at_once")),
            ("one by one", times("one_by_one")),
            ("SciPy CSR", times("scipy_csr_at_once")),
            ("share", lambda r: f"{r['share_of_one_by_one']:.2f}"),
            ("share of the best", lambda r: f"{r['best_share_of_one_by_one']:.2f}"),
        ),
    )


def variable_orders(record: Row) -> str:
    """Return the section on orders of variables."""
    text = (
        "`search`, of an earlier version, tried up to 150 orders on a small instance, for the seconds of its "
        "column ([decisions](design/decisions.md#orders-of-variables-by-search)); the others go by rule.  "
        "`least MB` is the matrix at the level of least memory, `MB` and `ms a product` those of the level "
        "of least time, on the CPU with all threads."
    )
    return section(
        "Variable orders",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("order", "order"),
            ("transitions", lambda r: f"{r['transitions']:,}"),
            ("nodes", lambda r: f"{r['nodes']:,}"),
            ("search s", lambda r: f"{r['search_seconds']:.1f}" if "search_seconds" in r else ""),
            ("build s", lambda r: f"{r['build_seconds']:.2f}"),
            ("least MB", lambda r: f"{r['least_bytes'] / 1e6:.2f}"),
            ("MB", lambda r: f"{r['bytes'] / 1e6:.2f}"),
            ("ms a product", lambda r: f"{1e3 * r['product_seconds']:.2f}"),
        ),
    )


def file_formats(record: Row) -> str:
    """Return the section on files of other formats."""
    text = (
        "A model written and read back, a process each; `.tra` is counted with its `.sta` and `.lab`.  "
        "`build` is the build from the text in the PRISM language in the same row; memory is the peak of "
        "reading beyond what the process had, over the bytes of targets and values as arrays (8 each).  "
        "`nodes` and `matrix` are those of what comes back over those of the text's model."
    )
    return section(
        "Files of other formats",
        record,
        text,
        table_of(
            measured(record),
            ("model", lambda r: r["model"].replace(":", " ")),
            ("file", lambda r: f"`{r['format']}`"),
            ("transitions", "transitions"),
            ("MB", lambda r: f"{r['bytes'] / 1e6:.3f}"),
            ("build, s", lambda r: f"{r['build_seconds']:.2f}"),
            ("write, s", lambda r: f"{r['write_seconds']:.2f}"),
            ("read, s", lambda r: f"{r['read_seconds']:.2f}"),
            ("memory", lambda r: f"{r['read_memory'] / r['explicit_bytes']:.1f}"),
            ("nodes", lambda r: f"{r['nodes']['file'] / r['nodes']['text']:.2f}"),
            ("matrix", lambda r: f"{r['matrix_bytes']['file'] / r['matrix_bytes']['text']:.2f}"),
        ),
    )


def symbolic_build(record: Row) -> str:
    """Return the section on the symbolic build."""
    rows = measured(record)
    first = any("first_seconds" in row for row in rows)
    conditions = (
        "`first` is the first build of a process that has imported the packages, with compiled kernels kept "
        "from earlier processes; `again` the median of those that follow in it."
        if first
        else "Medians of three builds of each model, one process for all models, after a build of another "
        "model, so that the first build of a model, imports and compilation do not show."
    )
    if all(row.get("same_sizes", True) for row in rows):
        conditions += "  States, transitions and nodes equal PRISM's in every row."
    return section(
        "The symbolic build",
        record,
        f"Seconds from text to offset-labelled matrix.  {conditions}  PRISM's is its own figure for model "
        "construction, the least of its runs, measured apart, each in a process that had "
        "built nothing before.",
        table_of(
            rows,
            ("model", lambda r: f"{r['model']} {r['constants']}"),
            ("states", "states"),
            ("transitions", "transitions"),
            ("MTBDD nodes", "mtbdd_nodes"),
            *((("first s", lambda r: f"{r['first_seconds']:.3f}"),) if first else ()),
            ("again s", lambda r: f"{r['seconds']:.3f}"),
            ("PRISM's construction s", lambda r: number(r.get("prism_seconds"))),
        ),
    )


def simulation(record: Row) -> str:
    """Return the section on sample paths."""
    return section(
        "Sample paths",
        record,
        "Steps of paths drawn and recorded by `simulate` on one core, after the model is read and "
        "its tables are made (`set-up`); all paths of a row advance together.  The best of "
        f"{record['repeats']} repeats, by the clock, and by the processor time of that one, which is less "
        "where other work shares the core.",
        table_of(
            measured(record),
            ("model", name_of),
            ("events", "events"),
            ("paths", "paths"),
            ("steps each", "steps"),
            ("set-up s", lambda r: number(r["set_up_seconds"], 2)),
            ("10³ steps a second", lambda r: f"{r['steps_per_second'] / 1e3:,.1f}"),
            (
                "10³ steps a second of the processor",
                lambda r: f"{r['paths'] * r['steps'] / r['processor_seconds'] / 1e3:,.1f}",
            ),
        ),
    )


def agreement(record: Row) -> str:
    """Return the section on values."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in measured(record):
        engine = "explicit" if row.get("engine") == "explicit" else row["backend"]
        groups.setdefault((row["model"].split("/")[0], engine), []).append(row)
    lines = []
    for (model, engine), members in groups.items():
        worst = max((m["relative_error"] for m in members if m["relative_error"] is not None), default=None)
        inside = [m["inside"] for m in members if m["inside"] is not None]
        agree = f"{sum(m['agrees'] for m in members)} of {len(members)}"
        lines.append([model, engine, agree, number(worst, 2), f"{sum(inside)} of {len(inside)}"])
    levels = ", ".join(sorted({r["policy"] for r in record["rows"] if r.get("engine") != "explicit"}))
    return section(
        "Values",
        record,
        f"Reference values obtained elsewhere, epsilon {record['epsilon']:g}, at the levels {levels}: "
        "how many agree within their tolerance of 10⁻⁶, and the greatest relative error.",
        table(["model", "backend", "agree", "greatest error", "between the bounds"], lines),
    )
