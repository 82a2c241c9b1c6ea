"""The level that a backend holds in least memory: found by building levels, the least work first.

The level curve cannot tell the bytes of a level, because a backend stores equal diagonals, patterns and row
types once. So levels are built and their bytes counted, in the order of the work that building takes. A level
whose groups and slots alone take more than the best level so far is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

_log = logging.getLogger(__name__)

_MOST_ITEMS = 1 << 22
"""Entries and slots that all levels built may have together: a second or so of building."""

_MOST_SHARE = 32
"""... or so many times those of the level with the fewest."""


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Built = TypeVar("Built", bound=_Sized)


class Weight(NamedTuple):
    """What is known of a level before it is built.

    Attributes
    ----------
    items : int
        Entries and slots that building goes through.
    level : int
    least_bytes : int
        Bytes that it cannot fall below.
    """

    items: int
    level: int
    least_bytes: int


class Weighed(Generic[Built]):
    """Levels that were built.

    Attributes
    ----------
    sizes : dict of int to int
        Bytes by level.
    level : int or None
        The level with the fewest, the first of equals in the order of building; None if none was built.
    built : object or None
        That level as `build` returned it.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.level: int | None = None
        self.built: Built | None = None

    def take(self, level: int, built: Built) -> None:
        """Take a level into account."""
        self.sizes[level] = built.nbytes
        if self.level is None or built.nbytes < self.sizes[self.level]:
            self.level, self.built = level, built


def weigh(levels: Iterable[Weight], build: Callable[[int], Built | None]) -> Weighed[Built]:
    """Build levels and find the one of least memory among them.

    Parameters
    ----------
    levels : iterable of Weight
        All that can be used.
    build : callable
        Returns the representation of a level, None if it cannot be laid out; a level for which it raises
        MemoryError is left out.

    Raises
    ------
    MemoryError
        There is no room for any level.

    Notes
    -----
    Time: that of building levels with 2**22 items together, or 32 times the items of the first.
    Memory: two levels at a time.
    """
    found: Weighed[Built] = Weighed()
    spent, problem = 0, None
    limit = _MOST_ITEMS
    for weight in sorted(levels):
        limit = max(limit, _MOST_SHARE * weight.items) if spent == 0 else limit
        if found.level is not None:
            if spent + weight.items > limit:
                break
            if weight.least_bytes >= found.sizes[found.level]:
                continue
        spent += weight.items
        _log.info("weighing level %d", weight.level)
        try:
            built = build(weight.level)
        except MemoryError as error:
            problem = error
            continue
        if built is not None:
            found.take(weight.level, built)
    if found.level is None and problem is not None:
        raise problem
    return found
