"""Section of the page of results on whole answers: our engines, and other checkers beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.rendering.markdown import Row, measured, section, table_of

__all__ = ["LARGE", "Entry", "entries_of", "judgement", "whole_answers"]

LARGE = 100_000
"""States beyond which the hybrid engine on a device is meant to be first."""

NEAR = 1.2
"""Times the best, up to which it is meant to be below."""

PEER_TOLERANCE = 1e-3
"""Relative difference from our bounds up to which another checker's answer counts."""

OURS = {"cpu": "CPU hybrid", "gpu": "GPU hybrid", "gpu-explicit": "GPU explicit"}
PEERS = {"prism_hybrid": "PRISM hybrid", "prism_sparse": "PRISM sparse", "storm_sparse": "Storm sparse"}


@dataclass(frozen=True)
class Entry:
    """What an engine took for a question.

    Attributes
    ----------
    seconds : float or None
        None if it came to no answer.
    over : float or None
        The limit at which it was ended; None if it was not.
    refused : bool
        It ended without an answer.
    """

    seconds: float | None
    over: float | None = None
    refused: bool = False

    def __str__(self) -> str:
        """Show it as a cell."""
        if self.refused:
            return "no answer"
        if self.seconds is None:
            return f"\\> {self.over:g}"
        return f"{self.seconds:.2f}" if self.seconds < 10 else f"{self.seconds:.1f}"


def entries_of(record: Row, *others: Row | None) -> list[Row]:
    """Return a row a question: ``name``, ``place``, ``states``, ``rows`` and ``entries`` by engine."""
    records = [record, *(other for other in others if other is not None)]
    found: dict[str, Row] = {}
    for row in (row for one in records for row in measured(one)):
        of_name = found.setdefault(row["name"], {"name": row["name"], "place": row["place"], "rows": {}})
        of_name["rows"].setdefault(row["backend"], row)
    runs: dict[str, Any] = next((one["peers"]["runs"] for one in records if "peers" in one), {})
    for name, question in found.items():
        rows = question["rows"]
        question["states"] = next((row["states"] for row in rows.values() if "states" in row), None)
        entries = {backend: _own_entry(rows[backend]) for backend in OURS if backend in rows}
        for engine, own in runs.get(name, {}).items():
            if (entry := _peer_entry(own, list(rows.values()))) is not None:
                entries[engine] = entry
        question["entries"] = entries
    return sorted(found.values(), key=lambda question: int(question["place"]))


def _own_entry(row: Row) -> Entry:
    if "over_seconds" in row:
        return Entry(None, row["over_seconds"])
    return Entry(None, refused=True) if "refused" in row else Entry(row["wall_seconds"])


def _peer_entry(runs: list[Row], rows: list[Row]) -> Entry | None:
    """Return the shortest run whose answer is not refuted by our bounds; the longest limit without one."""
    bounds = [(row["lower"], row["upper"]) for row in rows if row.get("lower") is not None]
    ended = [
        run["seconds"] for run in runs
        if "seconds" in run and all(_agrees(run["value"], lower, upper) for lower, upper in bounds)
    ]  # fmt: skip
    if ended:
        return Entry(min(ended))
    stopped = [run["over_seconds"] for run in runs if "over_seconds" in run]
    return Entry(None, max(stopped)) if stopped else None


def _agrees(value: float, lower: float, upper: float) -> bool:
    slack = PEER_TOLERANCE * max(abs(lower), abs(upper))
    return lower - slack <= value <= upper + slack


def judgement(entries: dict[str, Entry], among: tuple[str, ...] | None = None) -> tuple[float, str] | None:
    """Return how many times as long as the best other engine the hybrid engine on a device took, and which.

    Parameters
    ----------
    entries : dict
        By engine.
    among : tuple of str, optional
        The other engines; all by default.

    Returns
    -------
    tuple or None
        None where it cannot be told: there is no time of its own, or another engine was ended earlier than
        that and none came to an answer earlier.  One that was ended later counts with the time it was given.
    """
    own = entries.get("gpu")
    others = {
        name: entry for name, entry in entries.items() if name != "gpu" and (not among or name in among)
    }
    if own is None or own.seconds is None:
        return None
    ended = {name: entry.seconds for name, entry in others.items() if entry.seconds is not None}
    stopped = {name: entry.over for name, entry in others.items() if entry.over is not None}
    known = ended | stopped
    # Whatever an engine that was ended would have taken, one that came to an answer earlier tells the rest.
    if not ended or min(ended.values()) > own.seconds:
        if not known or min(stopped.values(), default=own.seconds) < own.seconds:
            return None
        best = min(known, key=lambda name: known[name])
    else:
        best = min(ended, key=lambda name: ended[name])
    return own.seconds / known[best], best


def whole_answers(record: Row, beside: Row | None = None) -> str:
    """Return the section on whole answers; the record of another machine's columns may stand beside."""
    found = entries_of(record, beside)
    shown = [engine for engine in (*OURS, *PEERS) if any(engine in q["entries"] for q in found)]
    judged = "gpu" in shown
    columns: list[Any] = [("model", "name"), ("states", "states")]
    for engine in shown:
        columns.append(((OURS | PEERS)[engine], lambda q, e=engine: str(q["entries"].get(e, ""))))
    if judged:
        columns += [("best other", _best_other), ("times that", _times), ("first?", _verdict)]
    else:
        columns += [
            ("least of its runs", lambda q: _of(q, "all_seconds", ".2f")),
            ("iterations", lambda q: _of(q, "iterations", ",")),
            ("host MB", lambda q: _of(q, "peak_rss_bytes", ",.0f", 1e-6)),
            ("runs", lambda q: _of(q, "runs", "")),
            ("load", lambda q: _of(q, "load", ".1f")),
            ("answer", lambda q: _of(q, "value", "")),
            ("bounds", lambda q: f"{_of(q, 'lower', '')}, {_of(q, 'upper', '')}".strip(", ")),
        ]
    parts = [
        _conditions(record, beside, found),
        *([_claim(found)] if judged else []),
        table_of(found, *columns),
    ]
    return section("Whole answers" + ("" if judged else ", on the CPU"), record, *parts)


def _of(question: Row, key: str, form: str, scale: float | None = None) -> str:
    """Return an entry of the only backend's row, the least of several seconds; empty without one."""
    (row,) = question["rows"].values()
    value = max(row["loads"]) if key == "load" else row.get(key)
    if key == "all_seconds":
        value = min(value, default=None)
    return "" if value is None else format(value if scale is None else value * scale, form)


def _conditions(record: Row, beside: Row | None, found: list[Row]) -> str:
    """Return what the times are, and which are from another machine."""
    ours = [row for question in found for row in question["rows"].values()]
    counts = "; ".join(
        f"{OURS[backend]} {_runs([row for row in ours if row['backend'] == backend])}"
        for backend in OURS
        if any(row["backend"] == backend for row in ours)
    )
    text = (
        "Seconds of whole processes of `hybrid check`, from start to exit: the model is built, the level "
        "chosen, the matrix laid out, the iterations run.  Answers are certified by the command's own "
        f"methods, to {record['epsilon']:g} relative; {_meeting(found)}.  Kernels and bytecode had been "
        f"compiled before{_but(ours)}.  Medians ({counts}); `\\>`: ended at this limit, without an answer."
    )
    if beside is not None:
        text += f"  **CPU hybrid is from another machine**: {_made_on(beside)}."
    peers = next((one["peers"] for one in (record, beside) if one is not None and "peers" in one), None)
    if peers is not None:
        text += (
            "  **PRISM's and Storm's times were measured elsewhere, on another machine** "
            f"({peers['where']}), at their precision of 1e-6, PRISM's without bounds: the shortest "
            "of the runs at hand, by any of their methods, "
            f"whose answer is within {PEER_TOLERANCE:g} relative of ours; empty where there "
            "is none."
        )
    return text


def _runs(rows: list[Row]) -> str:
    """Return how many runs rows have."""
    counts = [row["runs"] for row in rows if "runs" in row]
    least, most = min(counts, default=1), max(counts, default=1)
    return "one run" if most == 1 else f"{most} runs" if least == most else f"{least} to {most} runs"


def _but(rows: list[Row]) -> str:
    """Return the exceptions from kernels being compiled before."""
    names = [f"{row['name']} ({OURS[row['backend']]})" for row in rows if row.get("compiled_kernels")]
    return f", but for some of {', '.join(names)}" if names else ""


def _made_on(record: Row) -> str:
    """Return when and on what a record was made, with a link to it."""
    e, name = record["environment"], record.get("file", record["benchmark"])
    link = f"[`{name}.json`](../benchmarks/results/{name}.json)"
    return f"{link}, {e['date'][:10]}, commit {e['commit']}, {e['processor']}, {e['cores']} cores"


def _meeting(found: list[Row]) -> str:
    """Return whether the bounds of our engines meet."""
    apart = []
    for question in found:
        bounds = [(r["lower"], r["upper"]) for r in question["rows"].values() if r.get("lower") is not None]
        if bounds and max(lower for lower, _ in bounds) > min(upper for _, upper in bounds):
            apart.append(question["name"])
    if apart:
        return f"**bounds of our engines do not meet: {', '.join(apart)}**"
    return "the bounds of our engines meet in every row"


def _claim(found: list[Row]) -> str:
    """Return on how many rows the hybrid engine on a device is first, or near the best."""
    texts = []
    for what, among in (("Among our own engines", tuple(OURS)), ("With PRISM's and Storm's times", None)):
        large = [judgement(q["entries"], among) for q in found if (q["states"] or 0) > LARGE]
        small = [judgement(q["entries"], among) for q in found if (q["states"] or 0) <= LARGE]
        first = sum(one is not None and one[0] <= 1.0 for one in large)
        near = sum(one is not None and one[0] <= NEAR for one in small)
        texts.append(
            f"{what}, GPU hybrid is first on {first} of {len(large)} rows of more than 10⁵ states, and "
            f"within {100 * (NEAR - 1):.0f} % of the best on {near} of {len(small)} below"
            + (f"; {unknown} of all cannot be told." if (unknown := (large + small).count(None)) else ".")
        )
    return "  ".join(texts)


def _best_other(question: Row) -> str:
    found = judgement(question["entries"])
    return "" if found is None else (OURS | PEERS)[found[1]]


def _times(question: Row) -> str:
    found = judgement(question["entries"])
    if found is None:
        return ""
    return ("< " if question["entries"][found[1]].seconds is None else "") + f"{found[0]:.2f}"


def _verdict(question: Row) -> str:
    found = judgement(question["entries"])
    if found is None:
        return "not known"
    if found[0] <= 1.0:
        return "yes"
    small = (question["states"] or 0) <= LARGE
    return f"within {100 * (NEAR - 1):.0f} %" if small and found[0] <= NEAR else "no"
