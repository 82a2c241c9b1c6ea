"""Bytes, durations and values for people."""

from __future__ import annotations

import math


def bytes_text(count: float | None) -> str:
    """Return a number of bytes with a unit: 1.25 MB."""
    if count is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def seconds_text(seconds: float | None) -> str:
    """Return a duration with a unit: 3.2 ms."""
    if seconds is None:
        return "-"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def value_text(value: float | int | bool | None) -> str:
    """Return a value as text, all digits kept."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
