"""What still fails, in one place: an entry is taken away when its fault is mended (its test then passes)."""

from __future__ import annotations

__all__ = ["OPEN_CASES", "OPEN_FAULTS"]

# Numbers of cases of `test_attack`.
OPEN_CASES: frozenset[int] = frozenset()

# Names of faults of `test_known_faults`, or of their runs with an engine and a method.
OPEN_FAULTS: frozenset[str] = frozenset()
