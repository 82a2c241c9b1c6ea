"""Sections of the page of results on the experiments of [WB13], [BESW10] and [CB12]."""

from __future__ import annotations

from benchmarks.rendering.formats import TAKEN_OUT
from benchmarks.rendering.markdown import (
    Row,
    measured,
    milliseconds,
    name_of,
    number,
    section,
    table,
    table_of,
)

__all__ = ["density_sweep", "paper_tables", "streamed_parts"]


def paper_tables(record: Row) -> str:
    """Return the section on the tables of [WB13] and [BESW10]."""
    rows: dict[str, list[Row]] = {"spmv": [], "solve": [], "bounded": []}
    for row in measured(record):
        rows[row["table"]].append(row)
    parts: list[str] = []
    spmv = rows["spmv"]
    if spmv:
        parts += [
            "Products of the papers' models in the original and breadth-first order ([WB13] tables 1 to 5), "
            "in milliseconds.  Factors are over the row-per-thread kernel on MSR in the original order; in "
            "brackets the paper's, on a GeForce GTX 480.",
            "**Order of the states** (tables 2 and 4)",
            _orders(spmv),
            "**Segments of a warp and of half a warp** (tables 3 and 5), and the hybrid engine",
            _segments(spmv),
            "**Structure** (figures 2 and 3): bandwidth, mean |row − column|, and bytes of x in the 128-byte "
            "lines that 32 consecutive rows read",
            _structures(spmv),
        ]
    if rows["solve"]:
        parts += [
            "**Whole solutions** ([BESW10] table II): seconds; `~` marks times extrapolated from some "
            "iterations.  In brackets the paper's: sequential, M1, M2 on a GeForce 285 GTX.",
            _solutions(rows["solve"]),
        ]
    if rows["bounded"]:
        parts += [
            "**Time-bounded until** on tandem ([BESW10] table III does not print its property; this is "
            f"`{rows['bounded'][0].get('property', '')}`): seconds, in brackets the paper's, sequential and "
            "M2; `~` marks times extrapolated from some iterations, the CPU uses all cores.",
            _bounded(rows["bounded"]),
        ]
    return section("The SpMV papers' tables", record, *parts)


def _seconds(row: Row, order: str, name: str) -> float | None:
    """Return the time of a format's product; None if it was not measured."""
    value = row[order]["formats"].get(name, {}).get("seconds")
    return None if value is None else float(value)


def _megabytes(row: Row, order: str, name: str) -> str:
    """Return a format's size."""
    value = row[order]["formats"].get(name, {}).get("bytes")
    return "" if value is None else f"{value / 1e6:,.0f}"


def _factor(before: float | None, after: float | None, paper: float | None = None) -> str:
    text = "" if before is None or after is None else f"{before / after:.2f}"
    return text if paper is None else f"{text} ({paper:.2f})"


def _orders(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        line = [name_of(row), f"{row['states']:,}", f"{row['entries']:,}"]
        for i, name in enumerate(("msr", "cmsr")):
            before, after = _seconds(row, "original", name), _seconds(row, "bfs", name)
            paper = row.get("paper_standard")
            own = None if paper is None else paper[i][1] / paper[i][2]
            line += [_megabytes(row, "original", name), milliseconds(before), milliseconds(after)]
            line.append(_factor(before, after, own))
        lines.append(line)
    columns = ["model", "states", "entries", "MSR MB", "MSR", "+ BFS", "factor"]
    return table([*columns, "CMSR MB", "CMSR", "+ BFS", "factor"], lines)


def _segments(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        standard = _seconds(row, "original", "msr")
        line = [name_of(row)]
        for name in ("msr-wl", "msr-hwl", "cmsr-wl", "cmsr-hwl"):
            line.append(" / ".join(milliseconds(_seconds(row, order, name)) for order in ("original", "bfs")))
        names = ("msr-wl", "msr-hwl")
        measured = [s for s in (_seconds(row, "original", name) for name in names) if s is not None]
        paper, segments = row.get("paper_standard"), row.get("paper_segments")
        own = None if paper is None or segments is None else paper[0][1] / min(segments[0][:2])
        line.append(_factor(standard, min(measured, default=None), own))
        own_times = {
            name: f["seconds"] for name, f in row["original"]["formats"].items()
            if "seconds" in f and not name.startswith("cusparse") and name not in TAKEN_OUT
        }  # fmt: skip
        best = min(own_times, key=lambda name: own_times[name])
        cusparse = _seconds(row, "original", "cusparse")
        hybrid = row["hybrid"]
        line += [
            f"{best} {milliseconds(own_times[best])}",
            milliseconds(cusparse),
            milliseconds(hybrid["seconds"]),
            _factor(standard, hybrid["seconds"]),
            f"{hybrid['bytes'] / 1e6:.2f}",
            _megabytes(row, "original", "msr"),
        ]
        lines.append(line)
    columns = ["model", "MSR WL / + BFS", "MSR HWL / + BFS", "CMSR WL / + BFS", "CMSR HWL / + BFS", "factor"]
    columns += ["fastest explicit", "cuSPARSE", "hybrid", "factor", "hybrid MB", "MSR MB"]
    return table(columns, lines)


def _structures(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        before, after = row["original"]["structure"], row["bfs"]["structure"]
        line = [name_of(row)]
        for key, digits in (("bandwidth", 0), ("mean_distance", 0), ("bytes_per_warp", 0)):
            line += [f"{before[key]:,.{digits}f}", f"{after[key]:,.{digits}f}"]
        lines.append([*line, milliseconds(row["bfs_seconds"])])
    columns = ["model", "bandwidth", "+ BFS", "mean distance", "+ BFS", "bytes a warp", "+ BFS", "search ms"]
    return table(columns, lines)


def _solutions(rows: list[Row]) -> str:
    names = ("scipy_csr_one_core", "hybrid_cpu", "msr", "msr-scan", "auto", "cusparse")
    lines = []
    for row in rows:
        if "hybrid_gpu" not in row:
            continue
        own = row["paper_seconds"]
        paper = dict(zip(("scipy_csr_one_core", "msr", "msr-scan"), own, strict=True)) if own else {}
        line = [name_of(row), f"{row['states']:,}", f"{row['hybrid_gpu']['iterations']:,}"]
        for name in (*names, "hybrid_gpu"):
            run = row.get(name, {})
            text = ""
            if "seconds" in run:
                text = ("~" if run["extrapolated"] else "") + f"{run['seconds']:.3g}"
                text += f" {run['storage']}" if name == "auto" else ""
                text += "" if run.get("status", "converged") == "converged" else f" {run['status']}"
            line.append(text + (f" ({paper[name]:g})" if name in paper else ""))
        lines.append(line)
    heads = ["model", "states", "iterations", "SciPy CSR, one core", "hybrid, CPU", "M1", "M2"]
    return table([*heads, "explicit engine, GPU", "cuSPARSE", "hybrid, GPU"], lines)


def _bounded(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        if "hybrid_gpu" not in row:
            continue
        paper = row.get("paper_seconds") or (None, None)
        gpu, cpu, explicit = (row.get(name, {}) for name in ("hybrid_gpu", "hybrid_cpu", "explicit_gpu"))
        mark = "~" if cpu.get("extrapolated") else ""
        lines.append(
            [
                name_of(row),
                f"{row['states']:,}",
                f"{gpu['iterations']:,}",
                mark + number(cpu.get("seconds")) + (f" ({paper[0]:g})" if paper[0] else ""),
                number(explicit.get("seconds")) + (f" ({paper[1]:g})" if paper[1] else ""),
                number(gpu.get("seconds")),
                number(gpu.get("value"), 8),
            ]
        )
    return table(
        ["model", "states", "iterations", "hybrid, CPU", "explicit, GPU", "hybrid, GPU", "value"], lines
    )


def density_sweep(record: Row) -> str:
    """Return the section on [CB12]'s experiments."""
    titles = {
        "random": "**Random diagonally dominant matrices** (figures 1 to 3), the last ones of 10 % density",
        "chains": "**Chains of programs** (figures 4 and 5): biased die with the sizes of Table 1, random "
        "quick sort with sizes near them",
        "twins": "**Random matrices with the sizes of Table 1** (figures 6 and 7)",
        "large": "**The biased die at larger sizes**",
    }
    parts = [
        "Milliseconds of a solution of `(I − P) x = b` or `A x = b` to "
        f"{record['epsilon']:g} ([CB12] §§6 and 7), iterations in brackets; explicit matrices, SciPy's "
        f"product on one core of the CPU, the format `{record['storage']}` on the GPU.  Set-up is not "
        f"counted.  A solution is given {record['solve_seconds']:g} s; `max iterations` says that it needs "
        "more." + _plain(record),
    ]
    for part, title in titles.items():
        rows = [row for row in record["rows"] if row["part"] == part and "runs" in row]
        if rows:
            parts += [title, _sweep(rows)]
    return section("Jacobi and BiCGStab by density", record, *parts)


def _plain(record: Row) -> str:
    """Return what is to be said of the method without a preconditioner, where it was measured."""
    if "bicgstab-plain" not in record["methods"]:
        return ""
    fewest = min(run["trials"] for row in measured(record) for run in row["runs"] if row["part"] != "large")
    fewer = f", of {fewest} at least where matrices are large" if fewest < record["trials"] else ""
    return (
        "  `bicgstab` is preconditioned with the diagonal, `bicgstab-plain` is not, as [CB12]'s.  Means of "
        f"{record['trials']} trials{fewer}."
    )


def _sweep(rows: list[Row]) -> str:
    keys = list(dict.fromkeys((run["method"], run["backend"]) for row in rows for run in row["runs"]))
    lines = []
    for row in rows:
        runs = {(run["method"], run["backend"]): run for run in row["runs"]}
        times = {key: run["seconds"] for key, run in runs.items() if run["statuses"] == ["converged"]}
        fastest = min(times, key=lambda key: times[key], default=None)
        line = [row.get("model", "random"), f"{row['n']:,}", f"{row['entries']:,}", f"{row['density']:.5f}"]
        line += [_sweep_cell(runs.get(key)) for key in keys]
        lines.append([*line, "" if fastest is None else " ".join(fastest)])
    heads = [f"{method} {backend}" for method, backend in keys]
    return table(["matrix", "n", "entries", "density", *heads, "fastest"], lines)


def _sweep_cell(run: Row | None) -> str:
    if run is None:
        return ""
    text = f"{milliseconds(run['seconds'])} ({run['iterations']:.0f})"
    odd = [status.replace("_", " ") for status in run["statuses"] if status != "converged"]
    return f"{text} {', '.join(odd)}" if odd else text


def streamed_parts(record: Row) -> str:
    """Return the section on matrices streamed in parts."""
    rows = measured(record)
    parts = [
        "Milliseconds of a product whose matrix lies in pinned memory of the host and goes to the card in "
        "parts, through two buffers ([BESW10] §II): the copies of all parts alone, the products of all "
        "parts alone, resident, and the streamed product.  Without overlap that takes the sum of both, with "
        "perfect overlap the greater one.  Cutting the matrix and pinning its parts is not counted.  The "
        "last column is from events on both streams: the share of the products' time in which the copy of "
        "another part was under way.",
        table_of(
            rows,
            ("matrix", name_of),
            ("entries", "entries"),
            ("MB", lambda r: f"{r['bytes'] / 1e6:,.0f}"),
            ("buffers MB", lambda r: f"{r['buffer_bytes'] / 1e6:,.0f}"),
            ("parts", "parts"),
            ("copies", lambda r: milliseconds(r["copies_seconds"])),
            ("GB/s", lambda r: f"{r['copy_bytes_per_second'] / 1e9:.1f}"),
            ("products", lambda r: milliseconds(r["products_seconds"])),
            ("streamed", lambda r: milliseconds(r["streamed_seconds"])),
            ("of the greater", lambda r: f"{r['of_greater']:.3f}"),
            ("of the sum", lambda r: f"{r['of_sum']:.3f}"),
            ("products within copies", lambda r: f"{100 * r['products_within_copies']:.0f} %"),
        ),
    ]
    shown = [row for row in rows if "time_line" in row]
    if shown:
        row = min(shown, key=lambda row: abs(row["parts"] - 5))
        parts += [
            f"**Time line** of {name_of(row)} in {row['parts']} parts, milliseconds since the product began",
            _time_line(row["time_line"]),
        ]
    return section("Matrices in parts", record, *parts)


def _time_line(times: list[list[float]]) -> str:
    lines = [[str(i), *(f"{1e3 * t:.3f}" for t in part)] for i, part in enumerate(times)]
    return table(["part", "copy begins", "copy ends, product begins", "product ends"], lines)
