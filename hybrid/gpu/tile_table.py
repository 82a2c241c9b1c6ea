"""The tiles of all row types, as built: index arrays of 64 bits, not yet packed for the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.core.arrays import Array

__all__ = ["TileTable"]


@dataclass(frozen=True, eq=False)
class TileTable:
    """The tiles of all row types; words as in :class:`gpu_kernels.TileMatrix`.

    Attributes
    ----------
    type_tile : ndarray, shape (types + 1,), int64
        Tiles of type t are ``type_tile[t] .. type_tile[t + 1]``.
    begin, rows : ndarray, shape (tiles,), int64
        First row of a tile within its type, and its rows.
    round_ptr : ndarray, shape (tiles + 1,), int64
        Rounds of every tile, at least one.
    term_ptr, round_cell : ndarray, shape (rounds + 1,), int64
        First term and first cell of every round.
    cell_unit, cell_units : ndarray, shape (cells,), int64
        First unit of a cell, and its units.
    unit : int
        Term numbers that a lane reads at once.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Term numbers, [unit][lane][unit]; the largest number stands for no entry.
    term_slot, term_shift, term_value : ndarray, shape (terms,), int64
        Slot, local column minus local row, and number of the value of every term.
    values : ndarray, float64
        The distinct values.
    """

    type_tile: Array
    begin: Array
    rows: Array
    round_ptr: Array
    term_ptr: Array
    round_cell: Array
    cell_unit: Array
    cell_units: Array
    unit: int
    codes: Array
    term_slot: Array
    term_shift: Array
    term_value: Array
    values: Array
