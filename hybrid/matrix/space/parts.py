"""Vectors worked on part by part: operands and temporary results stay in the first-level cache."""

from __future__ import annotations

from collections.abc import Iterator

PART = 1 << 14
"""Elements of a part."""


def parts(size: int) -> Iterator[slice]:
    """Cut a vector into parts."""
    return (slice(begin, min(begin + PART, size)) for begin in range(0, size, PART))
