"""A matrix with both kinds of its row types: blocks shared when equal, or when equal up to a scale."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import find_block_classes
from mtbdd.base.memoised import Memoised
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from mtbdd.offset.distributed import StackedLayers

_MOST_TIMES = 8
"""Greatest ratio of the slots of plain row types to those of scaled ones."""

_MANY_SLOTS = 1 << 10
"""Slots of a level from which that is asked."""

_MOST_TIMES_LARGER = 2
"""The same where plain row types take more bytes than scaled ones as well."""

_VERY_MANY_SLOTS = 1 << 14
"""Slots of a level from which that is asked: finding fewer is soon done."""


class TypedMatrix(Memoised):
    """A matrix, or the stacked layers of a decision process, with its row types, plain and scaled.

    Either kind is found on request: the level of few entries in NumPy is known without row types.
    Rates that depend on the state make plain row types many where scaled ones are few; then plain ones are
    not followed further down. Neither are they where they are a multiple of the scaled ones and no smaller
    for having no scales. Stacked layers share blocks when equal and of one layer, never up to a scale.

    Parameters
    ----------
    held : OffsetMTBDD or StackedLayers

    Attributes
    ----------
    matrix : OffsetMTBDD
    stacked : StackedLayers or None
        The layers, if it is theirs.
    """

    def __init__(self, held: OffsetMTBDD | StackedLayers) -> None:
        from mtbdd.offset.distributed import StackedLayers

        self.stacked = held if isinstance(held, StackedLayers) else None
        self.matrix: OffsetMTBDD = held.matrix if isinstance(held, StackedLayers) else held
        self._is_small: dict[int, bool] = {}

    @cached_property
    def plain(self) -> RowTypes:
        """Row types with blocks shared when equal."""
        return RowTypes(find_block_classes(self.matrix, scaled=False))

    @cached_property
    def scaled(self) -> RowTypes:
        """Row types with blocks shared when equal up to a scale; of layers the plain ones."""
        if self.stacked is not None:
            return self.plain
        if len(self.matrix.terminals) <= 1:
            # Submatrices with one value are equal where they are up to a scale.
            return self.plain.under(replace(self.plain.classes, scaled=True))
        return RowTypes(find_block_classes(self.matrix, scaled=True))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix, or of every layer."""
        return self.matrix.shape if self.stacked is None else (self.stacked.size, self.stacked.columns)

    @property
    def nonzeros(self) -> int:
        """Non-zeros, of all layers together."""
        return self.matrix.n_entries

    @property
    def first_level(self) -> int:
        """Level of the diagram where levels begin: of stacked layers below the choice of a layer."""
        return 0 if self.stacked is None else self.stacked.first_level

    def __len__(self) -> int:
        """Return the number of levels."""
        return self.matrix.n_levels + 1 - self.first_level

    def kinds(self, k: int) -> tuple[RowTypes, ...]:
        """Return the row types that level k may be held in, the plain ones first.

        Notes
        -----
        Time: that of finding the row types down to level k, once.
        """
        scaled = (self.scaled,) if self.scaled.reaches(self.first_level + k) else ()
        if self.stacked is not None:
            return scaled
        return (self.plain, *scaled) if self._plain_is_small(k) else scaled

    def _plain_is_small(self, k: int) -> bool:
        """Return whether plain row types are followed as far as level k."""
        for level in range(len(self._is_small), k + 1):
            # Below a level where they are not, no more are looked for.
            self._is_small[level] = self._is_small.get(level - 1, True) and not self._is_many(level)
        return self._is_small[k]

    def _is_many(self, level: int) -> bool:
        """Return whether plain row types are too many at a level, or not known."""
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
