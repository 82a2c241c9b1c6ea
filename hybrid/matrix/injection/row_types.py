"""Row types: the distinct lists of submatrices that row prefixes meet, found on the diagram itself.

Fix a level k. The instances that start with the same row bits cover the same rows; they form a *group*,
and the classes of their submatrices, ordered by column, form the *row type* of the group. Few row types serve
many groups, so all that is computed per row type (merged rows, slices) is computed once.

Row types need no enumeration of groups: :mod:`hybrid.matrix.injection.row_type_level` takes those of one
level to the next, one array sweep a level, and the groups of a row type are counted like paths. Levels are
found when they are asked for: a choice of level seldom looks at the deepest ones, which are the most work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hybrid.matrix.injection.block_classes import BlockClasses
from hybrid.matrix.injection.row_type_level import RowTypeLevel, level_below, root_level

T = TypeVar("T")

SLOT_LIMIT = 1 << 19
"""Slots of one level beyond which the sweep stops: deeper levels have no compact row types to offer."""


class _Sweep:
    """The levels found so far; threads that ask for more wait for one another."""

    def __init__(self, classes: BlockClasses, slot_limit: int) -> None:
        self._classes, self._slot_limit = classes, slot_limit
        self._lock = threading.Lock()
        self._is_stopped = False
        self.found = [root_level(classes)]

    def reaches(self, k: int) -> bool:
        if k < len(self.found):
            return True
        with self._lock:
            while not self._is_stopped and len(self.found) <= min(k, self._classes.matrix.n_levels):
                below = level_below(self.found[-1], self._classes, len(self.found) - 1)
                if len(below.blocks) > self._slot_limit:
                    self._is_stopped = True
                else:
                    self.found.append(below)
        return k < len(self.found)


class RowTypes:
    """Row types of the levels from the root down, all 2n + 1 as a rule: ``types[k]`` are those of level k.

    The sequence ends early where they become too many. A level is found at the first question about it or
    a deeper one.

    Parameters
    ----------
    classes : BlockClasses
        Classes of submatrices of the matrix.
    slot_limit : int
        The sequence ends before the first level whose types have more slots than this together.

    Notes
    -----
    Time and memory: O(slots log types) a level.
    """

    def __init__(self, classes: BlockClasses, slot_limit: int = SLOT_LIMIT) -> None:
        self.classes = classes
        self._sweep = _Sweep(classes, slot_limit)

    def under(self, classes: BlockClasses) -> RowTypes:
        """Return the same lists for classes that have the same members, under another name."""
        other = RowTypes.__new__(RowTypes)
        other.classes, other._sweep = classes, self._sweep
        return other

    def reaches(self, k: int) -> bool:
        """Tell whether there are row types of level k; all levels down to it are found."""
        return k >= 0 and self._sweep.reaches(k)

    def __getitem__(self, k: int) -> RowTypeLevel:
        if not self.reaches(k):
            raise IndexError(f"level: expected 0..{len(self) - 1}, where row types are known, got {k}")
        return self._sweep.found[k]

    def __len__(self) -> int:
        self._sweep.reaches(self.classes.matrix.n_levels)
        return len(self._sweep.found)


class TypedMatrix(Protocol):
    """A matrix whose row types are known, such as every level curve of one matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def nonzeros(self) -> int:
        """Non-zeros."""

    @property
    def plain(self) -> RowTypes:
        """Row types with blocks shared when equal."""

    @property
    def scaled(self) -> RowTypes:
        """Row types with blocks shared when equal up to a scale."""

    def kinds(self, k: int) -> tuple[RowTypes, ...]:
        """Return those of both that level k may be held in, the plain ones first."""

    def once(self, function: Callable[[Any], T]) -> T:
        """Return what a function makes of the matrix; see :class:`mtbdd.base.memoised.Memoised`."""
