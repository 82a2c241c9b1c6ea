"""What functions make of an object, kept with the object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self, TypeVar

T = TypeVar("T")


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
