"""Faults of a model found while it is built: what is wrong, where in the text, in which state."""

from __future__ import annotations

from mtbdd.language.errors import LanguageError


class BuildError(LanguageError):
    """A model that parses but cannot be built; carries every fault found, each with its place."""


def format_state(values: dict[str, bool | int]) -> str:
    """Return a state as text, `(a=1, b=true)`."""
    parts = (f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())
    return f"({', '.join(parts)})"
