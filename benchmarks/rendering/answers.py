"""Sections on whole answers."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable

from benchmarks.rendering.markdown import Row, measured, section, table_of

__all__ = [
    "certified_products", "commit_pairs", "ltl_products", "quotients", "same_answers", "several_processes",
    "vectors_on_disk",
]  # fmt: skip


def certified_products(record: Row) -> str:
    """Return the section on products until bounds meet, by default and by value iteration alone."""
    rows = measured(record)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    text = (
        f"Answers between bounds under default options, backend {record['backend']}, of built models, the "
        "second time asked.  `without` are optimistic iteration, and value iteration of averages, as they "
        "are; `default` lets IDR(4) look for the bounds, of chains on the CPU with sweeps for products, each "
        "of which counts as one, of decision processes by policy iteration, where "
        "their pace tells that this is worth it, and on the CPU solves chains whose components are small one "
        "component after another.  Products are those of the matrix; seconds are whole answers, set-up "
        "included.  `product / step` is the time of the iterations by default for each of their products, "
        "vectors included, beside that of a step of `without`.  "
        f"\\> tells that {record['most']:,} iterations were not enough."
    )
    if ratios:
        mean = statistics.geometric_mean(ratios)
        text += f"  Geometric mean of the ratios of products: {mean:.2f}; greatest {max(ratios):.2f}."

    def products(kind: str) -> Callable[[Row], str]:
        return lambda r: ("" if r[kind]["met"] else "\\> ") + f"{r[kind]['products']:,}"

    def seconds(kind: str) -> Callable[[Row], str]:
        return lambda r: f"{r[kind]['seconds']:.2f}"

    def product_seconds(row: Row, kind: str) -> float:
        return float(row[kind]["iteration_seconds"] / row[kind]["products"])

    def beside_a_step(row: Row) -> str:
        return f"{product_seconds(row, 'default') / product_seconds(row, 'without'):.2f}"

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
            ("method", lambda r: r["default"]["method"]),
            ("product / step", beside_a_step),
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


def several_processes(record: Row) -> str:
    """Return the section on processes that share the states of a model."""
    cores = record["cores"]
    text = (
        f"Whole processes of `hybrid check` with bounds on one machine, medians of {record['repeat']}: one "
        f"process with one thread, one with {cores} threads, {cores} processes of MPI with one thread each.  "
        "`x` is how many times faster than with one thread an iteration is; MB are vectors of one process."
    )

    def milliseconds(form: str) -> Callable[[Row], str]:
        return lambda r: f"{1e3 * r[f'{form}_iteration_seconds']:.2f}"

    def megabytes(form: str) -> Callable[[Row], str]:
        return lambda r: f"{1e-6 * r[f'{form}_vector_bytes']:,.1f}"

    def wall(form: str) -> Callable[[Row], str]:
        return lambda r: f"{r[f'{form}_wall_seconds']:.1f}"

    return section(
        "Several processes",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("ms an iteration, 1 thread", milliseconds("one")),
            (f"{cores} threads, x", lambda r: f"{r['threads_speedup']:.2f}"),
            (f"{cores} processes, x", lambda r: f"{r['processes_speedup']:.2f}"),
            ("MB, 1 process", megabytes("one")),
            (f"MB, {cores} processes", megabytes("processes")),
            ("wall s, 1 thread", wall("one")),
            (f"{cores} threads", wall("threads")),
            (f"{cores} processes", wall("processes")),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )


def vectors_on_disk(record: Row) -> str:
    """Return the section on vectors in files."""
    limit, memory = record["data_limit_bytes"], record["memory_bytes"]
    text = (
        f"Whole processes of `hybrid check` with bounds, once each, on a machine with {memory / 1e9:.1f} GB: "
        f"with `--spill`, the process's data limited to {limit / 1e9:.2f} GB (RLIMIT_DATA, which does not "
        "count pages of files), and with all in memory and no limit.  With all in memory and the limit none "
        "is answered.  Pages of files stay in memory as far as the machine has room (`free`, at the start): "
        "nothing limited that.  `files` are the bytes of all arrays on the disk at most, `read` is what came "
        "from it, `data` what the process allocated beside files at most.  Both forms have the same bits.  "
        "What has `--max-iters` was left after so many steps, without an answer."
    )

    def of(form: str, key: str, scale: float, digits: int) -> Callable[[Row], str]:
        return lambda r: f"{scale * r[form][key]:,.{digits}f}" if form in r else ""

    return section(
        "Vectors on a disk",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("question", lambda r: f"`{r.get('question', '')}`"),
            ("states", "states"),
            ("free, GB", lambda r: f"{r['available_bytes'] / 1e9:.1f}"),
            ("files, GB", of("disk", "disk_bytes", 1e-9, 1)),
            ("read", of("disk", "disk_read_bytes", 1e-9, 1)),
            ("data, GB", of("disk", "data_bytes", 1e-9, 2)),
            ("data, in memory", of("memory", "data_bytes", 1e-9, 2)),
            ("s an iteration", of("disk", "iteration_seconds", 1.0, 2)),
            ("in memory", of("memory", "iteration_seconds", 1.0, 2)),
            ("wall s", of("disk", "wall_seconds", 1.0, 1)),
            ("in memory", of("memory", "wall_seconds", 1.0, 1)),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )


def quotients(record: Row) -> str:
    """Return the section on checks with the bisimulation quotient and without."""
    text = (
        "Whole processes of `hybrid check` with bounds, medians of the runs, with `--bisimulation` and "
        "without; the bounds of both hold one number.  `quotient s` is listing the transitions, refining, "
        "proving and compressing; `x` is how many times faster the whole process is with it.  Where blocks "
        "are half as many as states or more, the model itself is checked after all."
    )

    def megabytes(form: str) -> Callable[[Row], str]:
        return lambda r: f"{r[f'{form}_peak_rss_mb']:,.0f}"

    return section(
        "Bisimulation quotients",
        record,
        text,
        table_of(
            measured(record),
            ("model", "model"),
            ("question", lambda r: "`" + r["property"].replace("|", "\\|") + "`"),
            ("states", "states"),
            ("transitions", "transitions"),
            ("blocks", "blocks"),
            ("rounds", "rounds"),
            ("quotient s", lambda r: f"{r['refinement_seconds']:.2f}"),
            ("wall s", lambda r: f"{r['lumped_wall_seconds']:.2f}"),
            ("without", lambda r: f"{r['plain_wall_seconds']:.2f}"),
            ("x", lambda r: f"{r['speedup']:.2f}"),
            ("runs", "runs"),
            ("MB", megabytes("lumped")),
            ("without", megabytes("plain")),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )


def same_answers(record: Row) -> str:
    """Return the section on answers beside those of another commit, to the last bit."""
    rows, ways = measured(record), record["ways"]
    counted = [row for row in rows if "compared" in row]
    text = (
        "Every property of the examples, and the quick rows of a table of reference values, answered in each "
        f"of these ways where a model is small enough for it: {', '.join(ways)}.  An answer is its value, "
        "its bounds, and a digest of the values and bounds of all states."
    )
    if counted:
        equal, compared = (sum(row[key] for row in counted) for key in ("equal", "compared"))
        text += (
            f"  Of {compared:,} answers {equal:,} are equal to the last bit to those of commit "
            f"{record['against']}."
        )

    def answers(row: Row, way: str) -> str:
        return f"{sum(way in found for found in row['answers'].values()) or ''}"

    def equal_ones(row: Row) -> str:
        return f"{row['equal']} of {row['compared']}" if "compared" in row else ""

    return section(
        "Answers to the last bit",
        record,
        text,
        table_of(
            rows,
            ("model", "model"),
            ("constants", lambda r: r["constants"].replace(",", ", ")),
            ("properties", "properties"),
            ("states", "states"),
            *((way, functools.partial(answers, way=way)) for way in ways),
            *((("equal", equal_ones),) if counted else ()),
        ),
    )


def commit_pairs(record: Row) -> str:
    """Return the section on times beside those of another commit."""
    rows = measured(record)
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows)) if rows else 1.0
    return section(
        "Times beside those of another commit",
        record,
        f"The same commands with the packages of this commit and of {record['against']}, in turn, "
        f"{record['rounds']} times each; medians, and the median of the ratios of neighbouring runs.  Their "
        f"geometric mean is {mean:.2f}.",
        table_of(
            rows,
            ("what", "name"),
            ("kind", "kind"),
            ("s", lambda r: f"{r['seconds']:.3f}"),
            ("the other's", lambda r: f"{r['other_seconds']:.3f}"),
            ("ratio", lambda r: f"{r['ratio']:.2f}"),
            ("of processor time", lambda r: f"{r['processor_ratio']:.2f}"),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )
