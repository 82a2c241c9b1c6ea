"""Both kinds of row types of a matrix: blocks shared when equal, or when equal up to a scale."""

from __future__ import annotations

from dataclasses import replace

from hybrid.matrix.injection.block_classes import find_block_classes
from hybrid.matrix.injection.row_types import RowTypes
from mtbdd.offset.offset import OffsetMTBDD

_MOST_TIMES = 8
"""How many times as many slots plain row types may have as scaled ones."""

_MANY_SLOTS = 1 << 10
"""Slots of a level from which that is asked."""

_MOST_TIMES_LARGER = 2
"""The same where plain row types take more bytes than scaled ones as well."""

_VERY_MANY_SLOTS = 1 << 14
"""Slots of a level from which that is asked: finding fewer is soon done."""


class RowTypeKinds:
    """The row types of a matrix, plain and scaled.

    Rates that depend on the state make plain row types many where scaled ones are few; then plain ones are
    not followed further down. Neither are they where they are a multiple of the scaled ones and no smaller
    for having no scales.

    Parameters
    ----------
    matrix : OffsetMTBDD

    Attributes
    ----------
    plain, scaled : RowTypes
        Row types with blocks shared when equal and when equal up to a scale.
    """

    def __init__(self, matrix: OffsetMTBDD) -> None:
        self.plain = RowTypes(find_block_classes(matrix, scaled=False))
        if len(matrix.terminals) <= 1:
            # Submatrices with one value are equal where they are up to a scale.
            self.scaled = self.plain.under(replace(self.plain.classes, scaled=True))
        else:
            self.scaled = RowTypes(find_block_classes(matrix, scaled=True))
        self._is_small: dict[int, bool] = {}

    def at(self, k: int) -> tuple[RowTypes, ...]:
        """Return the kinds that level k may be held in, the plain one first.

        Notes
        -----
        Time: that of finding the row types down to level k, once.
        """
        scaled = (self.scaled,) if self.scaled.reaches(k) else ()
        return (self.plain, *scaled) if self._plain_is_small(k) else scaled

    def _plain_is_small(self, k: int) -> bool:
        """Tell whether plain row types are followed as far as level k."""
        for level in range(len(self._is_small), k + 1):
            # Below a level where they are not, no more are looked for.
            self._is_small[level] = self._is_small.get(level - 1, True) and not self._is_many(level)
        return self._is_small[k]

    def _is_many(self, level: int) -> bool:
        """Tell whether plain row types are too many at a level, or not known."""
        if not self.plain.reaches(level):
            return True
        slots = len(self.plain[level].blocks)
        if slots <= _MANY_SLOTS or not self.scaled.reaches(level):
            return False
        times = slots / len(self.scaled[level].blocks)
        if times > _MOST_TIMES:
            return True
        if slots <= _VERY_MANY_SLOTS or times <= _MOST_TIMES_LARGER:
            return False
        return row_type_bytes(self.plain, level) > row_type_bytes(self.scaled, level)


def row_type_bytes(types: RowTypes, k: int, wide: int = 4) -> int:
    """Return the bytes of the row-type representation of level k.

    Parameters
    ----------
    types : RowTypes
    k : int
        Level.
    wide : {4, 8}
        Bytes of an index of a row or column.
    """
    # Of a type: packed entries (8) and row pointers (4). Of a group: row, type (4), column bases, scales (4).
    level = types[k]
    merged = 8 * int(level.entries.sum()) + 4 * int(level.rows.sum())
    slot = wide + (4 if types.classes.scaled else 0)
    return merged + level.n_groups * (wide + 4) + level.group_slots * slot
