"""Bytes, durations and values for people."""

from __future__ import annotations

import math

from hybrid.core.units import bytes_text as bytes_text
from hybrid.core.units import seconds_text as seconds_text


def value_text(value: float | int | bool | None) -> str:
    """Return a value as text, all digits kept."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
