"""The last few results of a function, kept as long as they are small together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Results by key; those asked for longest ago go first.

    Parameters
    ----------
    most : int
        What the sizes of all results may add up to.

    Notes
    -----
    Threads may ask at the same time: one that finds a result gone makes it again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Hashable, tuple[T, int]] = {}

    def get(self, key: Hashable) -> T | None:
        """Return a result, or None if it is not kept."""
        found = self._held.pop(key, None)
        if found is None:
            return None
        self._held[key] = found
        return found[0]

    def keep(self, key: Hashable, result: T, size: int) -> None:
        """Keep a result, unless it is too large by itself."""
        if size > self._most:
            return
        self._held[key] = result, size
        held = list(self._held.items())
        total = sum(own for _, (_, own) in held)
        for old, (_, own) in held:
            if total <= self._most:
                break
            self._held.pop(old, None)
            total -= own
