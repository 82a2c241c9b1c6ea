"""Faults of a model found while it is built: what is wrong, where in the text, in which state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtbdd.language.syntax import Position

__all__ = ["BuildError", "BuildFault", "format_state"]


@dataclass(frozen=True)
class BuildFault:
    """One fault and the place in the model text that causes it."""

    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.message}"


class BuildError(ValueError):
    """A model that parses but cannot be built; carries every fault found.

    Attributes
    ----------
    faults : tuple of BuildFault
    """

    def __init__(self, faults: Sequence[BuildFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(f) for f in self.faults))


def format_state(values: dict[str, bool | int]) -> str:
    """Return a state as text, `(a=1, b=true)`."""
    parts = (f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in values.items())
    return f"({', '.join(parts)})"
