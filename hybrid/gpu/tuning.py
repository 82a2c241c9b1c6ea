"""Launch shape and tile size for a level, from what its row types look like; all by measurement."""

from __future__ import annotations

from gpu_kernels import Tuning
from hybrid.gpu.tile_build import TileShape
from hybrid.injection.row_types import RowTypes

__all__ = ["FEW_TERMS", "LARGE_SLICES", "choose_shape", "choose_tuning"]

_THREADS = 128
_SLICES = 16

_SHORT_ROWS = 2.5
"""Entries of a row, on average, below which rows are read two entries at a time."""

_FILLED = 0.55
"""Share of the places for groups that must be taken for four places to be better than two."""

FEW_TERMS = 16
"""Terms of a tile, on average, up to which a start costs next to nothing but its latency."""

LARGE_SLICES = 64
"""Slices of a tile where terms are few: fewer blocks start, and none starts with much work."""


def choose_tuning(types: RowTypes, k: int) -> Tuning:
    """Choose the launch shape for the row types of level k.

    Four groups at once read each term number once for four; where most types have too few groups, places in
    the registers are wasted, and two are better. Eight blocks of 128 threads leave 64 registers a thread,
    which is what the kernel needs.
    """
    level = types.levels[k]
    rows = level.rows
    wanted = float((rows * level.groups).sum())
    offered = float((rows * 4 * -(-level.groups // 4)).sum())
    return Tuning(threads=_THREADS, min_blocks=8, members=4 if wanted >= _FILLED * offered else 2)


def choose_shape(n_rows: int, entries: int) -> TileShape:
    """Choose the sizes of tiles for a matrix.

    Tiles of 512 rows read x from the first-level cache as often as larger ones, nearly, and leave the parts
    of x that are in use at the same time small enough for the second-level cache. Rows of one or two entries
    are read two at a time, others four.
    """
    return TileShape(_SLICES, unit=2 if entries < _SHORT_ROWS * n_rows else 4)
