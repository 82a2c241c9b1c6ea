"""Faults of models that come as files or arrays, each with its place."""

from __future__ import annotations

from typing import Protocol

from hybrid.errors import InterchangeError as InterchangeError


class Places(Protocol):
    """Tells where in its source a part of a model stands.

    Every method returns the beginning of a message, such as ``"m.tra:17"`` or
    ``"m.umb: branch-to-target[5]"``.
    """

    def state(self, number: int) -> str:
        """Return where a state stands."""
        ...

    def choice(self, number: int) -> str:
        """Return where a choice stands (of a chain: the row of a state)."""
        ...

    def entry(self, number: int) -> str:
        """Return where a transition stands."""
        ...


class ArrayPlaces:
    """The places of a model that was given as arrays.

    Parameters
    ----------
    source : str
        What the messages begin with.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    def state(self, number: int) -> str:
        """Return where a state stands."""
        return f"{self._source}: state {number}"

    def choice(self, number: int) -> str:
        """Return where a choice stands."""
        return f"{self._source}: row {number}"

    def entry(self, number: int) -> str:
        """Return where a transition stands."""
        return f"{self._source}: entry {number}"
