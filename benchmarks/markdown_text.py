"""Tables and notes in Markdown, for the page of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["made", "milliseconds", "not_measured", "number", "table"]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("| " + " | ".join(["---"] + ["---:"] * (len(columns) - 1)) + " |")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def made(record: dict[str, Any]) -> str:
    """Return where and when a record was made."""
    e = record["environment"]
    versions = ", ".join(f"{k} {v}" for k, v in e["packages"].items() if v)
    device = record.get("device")
    if isinstance(device, str):
        card = f", {device}"
    else:
        card = f", {device['name']}, CuPy {device['cupy']}" if device else ""
    machine = f"{e['processor']}, {e['cores']} cores{card}, Python {e['python']}"
    text = f"{e['date'][:10]}, commit {e['commit']}, {machine}, {versions}."
    notes = [record.get("note"), *(r.get("note") and f"{_name(r)}: {r['note']}" for r in _rows(record))]
    return "  ".join([text, *(f"{note}." for note in notes if note)])


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a record, whatever they are called."""
    rows: list[dict[str, Any]] = record.get("rows") or record.get("cases") or record.get("results") or []
    return rows


def _name(row: dict[str, Any]) -> str:
    """Return what a row is about."""
    return str(row.get("name") or row.get("study") or row.get("model"))


def not_measured(record: dict[str, Any], name: Callable[[dict[str, Any]], str]) -> list[str]:
    """Return a sentence on the rows that were not measured and why, as a list; none if all were."""
    failed = [f"{name(row)}: {row['error']}" for row in _rows(record) if "error" in row]
    return [f"Not measured: {'; '.join(failed)}."] if failed else []


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with few digits."""
    return "" if value is None else f"{value:.{digits}g}"


def milliseconds(seconds: float | None, digits: int = 3) -> str:
    """Return a duration in milliseconds with few digits and no exponent."""
    if seconds is None:
        return ""
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.{digits}g}".rstrip(".")
