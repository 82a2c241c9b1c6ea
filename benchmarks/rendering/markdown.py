"""Sections, tables and notes in Markdown, for the page of results and for tables in other pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "Column", "Row", "aged", "columns_where", "made", "measured", "milliseconds", "name_of", "not_measured",
    "number",
    "section", "source", "table", "table_of",
]  # fmt: skip

Row = dict[str, Any]

Column = tuple[str, "str | Callable[[Row], str]"]
"""Its head, and what it shows of a row: an entry by its key, or what a function returns."""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("| " + " | ".join(["---"] + ["---:"] * (len(columns) - 1)) + " |")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def table_of(rows: Iterable[Row], *columns: Column) -> str:
    """Return a table with a line for every row; integers have commas, and what is missing is empty."""

    def cell(row: Row, show: str | Callable[[Row], str]) -> str:
        if callable(show):
            return show(row)
        value = row.get(show)
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    return table([head for head, _ in columns], [[cell(row, show) for _, show in columns] for row in rows])


def columns_where(rows: Iterable[Row], key: str, *columns: Column) -> tuple[Column, ...]:
    """Return the columns if some row has the entry, which older records lack, and none otherwise."""
    return columns if any(row.get(key) is not None for row in rows) else ()


def section(title: str, record: Row, *parts: str) -> str:
    """Return a section of the page: its parts, what was not measured, and the source."""
    paragraphs = [f"## {title}", *parts, not_measured(record), source(record)]
    return "\n\n".join(part for part in paragraphs if part)


def source(record: Row) -> str:
    """Return a link to a record, with where and when it was made."""
    # A program may have several records: `many_vectors_gpu` is the one of `many_vectors` on a card.
    name = record.get("file", record["benchmark"])
    return f"[`{name}.json`](../benchmarks/results/{name}.json), {made(record)}{aged(record)}"


def aged(record: Row) -> str:
    """Return how many commits changed what a record measures since, where rendering has counted them."""
    return str(record.get("age", ""))


def made(record: Row) -> str:
    """Return where and when a record was made, as far as it knows."""
    e, device = record["environment"], record.get("device") or {}
    card = [
        device[key] if key == "name" else f"CuPy {device[key]}" for key in ("name", "cupy") if key in device
    ]
    host = [e["processor"], f"{e['cores']} cores"] if "processor" in e else []
    versions = [f"Python {e['python']}"] if "python" in e else []
    versions += [f"{k} {v}" for k, v in e.get("packages", {}).items() if v]
    text = ", ".join([e["date"][:10], f"commit {e['commit']}", *host, *card, *versions]) + "."
    notes = [
        record.get("note"),
        *(f"{row['model']}: {row['note']}" for row in record["rows"] if "note" in row),
    ]
    return "  ".join([text, *(f"{note}." for note in notes if note)])


def measured(record: Row) -> list[Row]:
    """Return the rows that were measured."""
    return [row for row in record["rows"] if "error" not in row]


def not_measured(record: Row) -> str:
    """Return a sentence on the rows that were not measured and why; empty if all were."""
    failed: dict[str, list[str]] = {}
    for row in record["rows"]:
        if "error" in row:
            failed.setdefault(row["error"], []).append(name_of(row))
    reasons = [f"{', '.join(dict.fromkeys(names))} ({error})" for error, names in failed.items()]
    return f"Not measured: {'; '.join(reasons)}." if reasons else ""


def name_of(row: Row) -> str:
    """Return what a row is about."""
    what = row.get("name") or row.get("model") or row.get("study") or row.get("part", "")
    constants = row.get("constants")
    if isinstance(constants, dict):
        constants = ",".join(f"{key}={value}" for key, value in constants.items())
    size = row["size"] if "size" in row and "study" not in row else None
    return " ".join(
        str(part).replace(",", ", ") for part in (what, size, constants) if part not in (None, "")
    )


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with few digits."""
    return "" if value is None else f"{value:.{digits}g}"


def milliseconds(seconds: float | None, digits: int = 3) -> str:
    """Return a duration in milliseconds with few digits and no exponent."""
    if seconds is None:
        return ""
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.{digits}g}".rstrip(".")
