"""Values for people."""

from __future__ import annotations

import math


def value_text(value: float | int | bool | None) -> str:
    """Return a value as text, all digits kept."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)
