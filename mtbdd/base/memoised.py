"""Results of functions of an object, memoised with the object."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

# The last few results of a function, kept up to a total size.

T = TypeVar("T")


class Recent(Generic[T]):
    """Results by key; those requested longest ago go first.

    `most`: what the sizes of all results may add up to. Time: O(1) a call, and O(1) for every result that
    goes. Threads may call at the same time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Hashable, tuple[T, int]] = {}
        self._total = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """Return a result, or None if it is not kept."""
        with self._lock:
            if key in self._held:
                self._held[key] = self._held.pop(key)
                return self._held[key][0]
        return None

    def keep(self, key: Hashable, result: T, size: int) -> None:
        """Keep a result, unless it alone exceeds the limit."""
        if size > self._most:
            return
        gone = []
        with self._lock:
            before = self._held.pop(key, None)
            self._held[key] = result, size
            self._total += size - (0 if before is None else before[1])
            while self._total > self._most:
                oldest = next(iter(self._held))
                gone.append((oldest, self._held.pop(oldest)))
                self._total -= gone[-1][1][1]
        # Out of the lock: what goes may have more to do as it goes.
        del gone, before


class Memoised:
    """An object that keeps what functions of it return.

    Packages that build upon this one derive large facts from a model or a matrix.  Kept here they go when the
    object goes, and nothing global holds them.
    """

    @cached_property
    def _results(self) -> dict[Callable[[Any], Any], Any]:
        return {}

    def once(self, function: Callable[[Self], T]) -> T:
        """Return `function(self)`, called at the first request only.

        Threads that ask at the same moment may both call it; all get the same result.
        """
        if function not in self._results:
            self._results.setdefault(function, function(self))
        result: T = self._results[function]
        return result
