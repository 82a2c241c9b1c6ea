"""Bytes, durations and counts for people, as the explorer's page writes them, too; numbers for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence

_BYTES = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"), (1e18, "EB"))
_SECONDS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
_ALMOST = 0.9995  # of a unit: three digits round it up to the unit


def bytes_text(count: float | None) -> str:
    """Return a number of bytes with a unit: 1.25 MB; "-" for none."""
    return _scaled(count, _BYTES)


def seconds_text(seconds: float | None) -> str:
    """Return a duration with a unit: 3.2 ms; "-" for none."""
    return _scaled(seconds, _SECONDS)


def _scaled(value: float | None, units: Sequence[tuple[float, str]]) -> str:
    if value is None:
        return "-"
    factor, unit = units[0]
    for larger, name in units:
        if abs(value) >= _ALMOST * larger:
            factor, unit = larger, name
    number = value / factor
    return f"{number:.0f} {unit}" if abs(number) >= 100 else f"{number:.3g} {unit}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things: 1 group, 1,750 groups."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def json_number(value: float | int | bool | None) -> float | int | bool | str | None:
    """Return a value as JSON has it; JSON has no infinities."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
