"""Sections on the field's benchmark set and on averages of decision processes; and a table of huge models.

Ours, Storm and PRISM stand side by side.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from benchmarks.rendering.markdown import Column, Row, measured, section, source, table, table_of

__all__ = ["HUGE", "engines", "field", "first_answered", "huge", "long_run"]

HUGE = 10**8
"""States from which a model is huge."""

PEER_PRECISION = 1e-6
"""Relative distance from the right value up to which a value without bounds counts."""

_PEERS = {"storm": "Storm, sound", "prism": "PRISM"}

_SIZES: tuple[tuple[str, float, float], ...] = (
    ("below 10⁵ states", 0, 1e5),
    ("10⁵ to 10⁶", 1e5, 1e6),
    ("from 10⁶ on", 1e6, float("inf")),
)


def long_run(record: Row) -> str:
    """Return the section on averages of decision processes."""
    return field(record, "Averages of decision processes")


def field(record: Row, title: str = "Questions of the field's benchmark set") -> str:
    """Return the section on the field's questions; columns that no question fills are left out."""
    rows = measured(record)
    tools = list(dict.fromkeys(name for row in rows for name in row["answers"]))
    columns: list[Column] = [("question", "name"), ("type", lambda r: r["type"].upper()), ("states", _states)]
    for tool in tools:
        columns.append((_title(tool), _taken_by(tool)))
    columns.append(("bounds", lambda r: _bounds(_own(r))))
    if any(row["reference"] is not None for row in rows):
        columns += [("value of the set", _reference), ("inside", _inside)]
    if any("elsewhere" in row for row in rows):
        columns.append(("elsewhere, wall s", _elsewhere))
    return section(
        title,
        record,
        _conditions(record, rows),
        _counts(rows, tools),
        _ratios(rows, tools),
        _first(rows),
        table_of(rows, *columns),
    )


def huge(record: Row) -> str:
    """Return a table of the answered questions about models of at least :data:`HUGE` states."""
    rows = [row for row in measured(record) if (_size(row) or 0) >= HUGE and _own(row)]
    parts = (
        table_of(
            rows,
            ("question", "name"),
            ("states", _states),
            ("processor s", lambda r: _number(_own(r)["cpu_seconds"])),
            ("wall s", lambda r: _number(_own(r)["wall_seconds"])),
            ("MB", lambda r: _megabytes(_own(r))),
            ("bounds", lambda r: _bounds(_own(r))),
            ("value of the set", _reference),
            ("elsewhere, wall s", _elsewhere),
        ),
        _first(rows),
        _where(rows),
        source(record),
    )
    return "\n\n".join(part for part in parts if part)


def engines(record: Row) -> str:
    """Return the section on engines: the one that is chosen, in the first column, beside each by itself."""
    rows = measured(record)
    chosen, *fixed = dict.fromkeys(name for row in rows for name in row["answers"])
    shares = {row["name"]: share for row in rows if (share := _of_best(row, chosen, fixed)) is not None}
    columns: list[Column] = [("question", "name"), ("type", lambda r: r["type"].upper()), ("states", _states)]
    columns += [(_title(engine), _taken_by(engine)) for engine in (chosen, *fixed)]
    columns += [
        ("chosen", lambda r: r["answers"][chosen].get("engine", "")),
        ("of the best", lambda r: f"{shares[r['name']]:.2f}" if r["name"] in shares else ""),
    ]
    told = ""
    if shares:
        worst = max(shares, key=lambda name: shares[name])
        mean = statistics.geometric_mean(shares.values())
        told = (
            f"Processor seconds of {_title(chosen)} over those of the best engine by itself, "
            f"of {len(shares)} questions: geometric mean {mean:.2f}, at most {shares[worst]:.2f} ({worst})."
        )
    conditions = _conditions(record, rows)
    return section("The engine that is chosen", record, conditions, told, table_of(rows, *columns))


def _of_best(row: Row, chosen: str, fixed: list[str]) -> float | None:
    """Return the processor seconds of a tool over the fewest of others; None where one side has no answer."""
    others = [row["answers"][tool]["cpu_seconds"] for tool in fixed if _answered(row, tool)]
    if not others or not _answered(row, chosen):
        return None
    return float(row["answers"][chosen]["cpu_seconds"]) / min(map(float, others))


# ------------------------------------------------------------------ answers


def _is_own(tool: str) -> bool:
    return tool not in _PEERS


def _title(tool: str) -> str:
    return _PEERS.get(tool, f"`{tool}`")


def _answered(row: Row, tool: str) -> bool:
    return "value" in row["answers"].get(tool, {})


def _certified(answer: Row) -> bool:
    """Return whether an answer is between bounds, or decided by the graph."""
    return answer.get("lower") is not None or isinstance(answer.get("value"), bool)


def _right(row: Row, answer: Row) -> bool:
    """Return whether a value is not refuted: by an exact reference, or by our bounds."""
    if row["reference"] is not None and row["reference_exact"]:
        return bool(answer["inside"]) if answer["inside"] is not None else answer["off"] <= PEER_PRECISION
    own = _own(row)
    if not own or own.get("lower") is None or answer is own:
        return True
    lower, upper = answer["lower"], answer["upper"]
    if lower is None:
        slack = PEER_PRECISION * max(abs(own["lower"]), abs(own["upper"]))
        return bool(own["lower"] - slack <= answer["value"] <= own["upper"] + slack)
    return bool(max(lower, own["lower"]) <= min(upper, own["upper"]))


def _own(row: Row) -> Row:
    """Return the answer of ours that took the least processor time; an empty one without any."""
    found = [one for tool, one in row["answers"].items() if _is_own(tool) and "value" in one]
    return min(found, key=lambda one: float(one["cpu_seconds"]), default={})


def _size(row: Row) -> int | None:
    """Return the states that the set tells, or those that an answer was built with."""
    built = next((one["states"] for one in row["answers"].values() if "states" in one), None)
    known: int | None = row["states"] if row["states"] is not None else built
    return known


def first_answered(rows: Iterable[Row]) -> list[str]:
    """Return the questions with bounds of ours to which the set has no value, and others tried in vain."""

    def others(row: Row) -> list[Row]:
        elsewhere: list[Row] = row.get("elsewhere", [])
        return [row["answers"][tool] for tool in _PEERS if tool in row["answers"]] + elsewhere

    return [
        row["name"] for row in rows
        if _certified(_own(row)) and row["reference"] is None and others(row)
        and not any("value" in one for one in others(row))
    ]  # fmt: skip


# ------------------------------------------------------------------ cells


def _number(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def _power(precision: float) -> str:
    return f"{precision:g}".replace("e-0", "e-")


def _megabytes(answer: Row) -> str:
    peak = answer.get("peak_rss_bytes")
    return "" if peak is None else f"{peak / 1e6:,.0f}"


def _took(answer: Row | None) -> str:
    """Return processor seconds, wall seconds and memory of an answer."""
    if answer is None:
        return ""
    if "over_seconds" in answer:
        return f"\\> {answer['over_seconds']:g}"
    if "refused" in answer:
        return "no answer"
    memory = _megabytes(answer)
    return f"{_number(answer['cpu_seconds'])} ({_number(answer['wall_seconds'])})" + (
        f", {memory} MB" if memory else ""
    )


def _taken_by(tool: str) -> Callable[[Row], str]:
    """Return what shows a tool's answer in a row."""
    return lambda row: _took(row["answers"].get(tool))


def _states(row: Row) -> str:
    size = _size(row)
    return "" if size is None else f"{size:,}"


def _bounds(answer: Row) -> str:
    if not answer:
        return ""
    if answer["lower"] is None or isinstance(answer["value"], bool):
        return str(answer["value"]).lower()
    return f"{answer['lower']!r}, {answer['upper']!r}"


def _reference(row: Row) -> str:
    if row["reference"] is None:
        return "none"
    return f"{row['reference']!r}" if row["reference_exact"] else f"about {row['reference']:.10g}"


def _inside(row: Row) -> str:
    own = _own(row)
    if row["reference"] is None or not own:
        return ""
    if own["inside"] is None:
        return "yes" if own["off"] == 0.0 else "**no**"
    if own["inside"]:
        return "yes"
    return "**no**" if row["reference_exact"] else f"{own['off']:.0e} off"


def _elsewhere(row: Row) -> str:
    """Return the runs that were made on another machine."""
    found = []
    for run in row.get("elsewhere", ()):
        if "over_seconds" in run:
            took = f"\\> {run['over_seconds']:g}"
        else:
            took = "no answer" if "refused" in run else _number(run["wall_seconds"])
        note = f" ({run['note']})" if "note" in run else ""
        found.append(f"{run['tool']} {took}{note}")
    return "; ".join(found)


# ------------------------------------------------------------------ summaries


def _conditions(record: Row, rows: list[Row]) -> str:
    """Return what the times are, on what load, and which were made elsewhere."""
    answers = [one for row in rows for one in row["answers"].values()]
    loads = [load for one in answers for load in one["loads"]]
    runs = [len(one["loads"]) for one in answers if one["loads"]]
    cores = record["environment"]["cores"]
    text = (
        "Whole processes from start to exit, tools in turn: processor seconds of all threads, wall seconds "
        "in brackets, greatest resident memory.  Ours are `hybrid check` with the engine of the column, "
        f"between bounds, to {_power(record['epsilon'])} relative; kernels had been compiled before.  `\\>`: "
        "ended at this limit of wall time.  States are those that the set tells, or those built where it "
        "tells none."
    )
    if any(tool in row["answers"] for row in rows for tool in _PEERS):
        text += (
            "  Storm answers by its sound methods through `stormpy`, to its own precision of 1e-6.  Bounds "
            "are those of our quicker answer."
        )
    if any(row["reference"] is not None for row in rows):
        text += (
            "  `inside`: the value of the set lies between our bounds, compared in rational numbers; where "
            "one that is no exact number does not, its distance is told."
        )
    if loads:
        text += (
            f"  {_runs(runs)}.  **The machine was shared**: the load of its "
            f"{cores} cores was {min(loads):.1f} to {max(loads):.1f}, so that wall seconds say little."
        )
    return "  ".join(part for part in (text, _where(rows)) if part)


def _runs(counts: list[int]) -> str:
    least, most = min(counts), max(counts)
    if most == 1:
        return "Each was run once"
    return f"Medians of {least} runs" if least == most else f"Medians of {least} to {most} runs"


def _where(rows: list[Row]) -> str:
    """Return where runs were made that are taken over."""
    wheres = dict.fromkeys(run["where"] for row in rows for run in row.get("elsewhere", ()))
    if not wheres:
        return ""
    return f"*Elsewhere* are wall seconds of runs that were not made beside ours.  {'.  '.join(wheres)}."


def _counts(rows: list[Row], tools: list[str]) -> str:
    """Return how many questions each tool was asked, answered, certified, and was first at."""
    first: dict[str, int] = dict.fromkeys(tools, 0)
    contested = [row for row in rows if len(row["answers"]) > 1]
    for row in contested:
        right = {
            tool: answer["cpu_seconds"] for tool, answer in row["answers"].items()
            if "value" in answer and _right(row, answer)
        }  # fmt: skip
        if right:
            first[min(right, key=lambda tool: float(right[tool]))] += 1

    def line(tool: str) -> list[str]:
        asked = [row for row in rows if tool in row["answers"]]
        found = [(row, row["answers"][tool]) for row in asked if _answered(row, tool)]
        wrong = sum(not _right(row, answer) for row, answer in found)
        certified = sum(_certified(answer) for _, answer in found)
        return [_title(tool), *map(str, (len(asked), len(found), certified, wrong, first[tool]))]

    heads = ("tool", "asked", "answered", "between bounds", "wrong", f"first of {len(contested)}")
    return table(heads, [line(tool) for tool in tools])


def _ratios(rows: list[Row], tools: list[str]) -> str:
    """Return processor seconds of our first column over those of each other tool, by size and type."""
    own, *others = tools or [""]
    types = list(dict.fromkeys(row["type"] for row in rows))
    groups = {
        "all": rows,
        **{name: [r for r in rows if least <= (_size(r) or 0) < most] for name, least, most in _SIZES},
        **{kind.upper(): [r for r in rows if r["type"] == kind] for kind in types},
    }

    def cell(other: str, group: list[Row]) -> str:
        ratios = [
            row["answers"][own]["cpu_seconds"] / row["answers"][other]["cpu_seconds"]
            for row in group if _answered(row, own) and _answered(row, other)
        ]  # fmt: skip
        return f"{statistics.geometric_mean(ratios):.2f} ({len(ratios)})" if ratios else ""

    lines = [[_title(other), *(cell(other, group) for group in groups.values())] for other in others]
    if not any(any(line[1:]) for line in lines):
        return ""
    return (
        f"Processor seconds of {_title(own)} over those of the others, where both have an answer: geometric "
        "mean, in brackets of how many; below 1 ours is quicker.\n\n" + table(("over", *groups), lines)
    )


def _first(rows: list[Row]) -> str:
    """Return the questions that are answered here first, as far as the record knows."""
    names = first_answered(rows)
    if not names:
        return ""
    return (
        f"Answered here first, as far as this record knows: **{', '.join(names)}**.  The set has no value of "
        "these, and other tools that were asked, here or elsewhere, came to none."
    )
