"""Cells with equal contents stored once.

Many row types differ in values and column bases only, which live in the terms; the numbers of the terms,
slice by slice, are then the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.ragged import owners, pointers, ranges
from gpu_kernels.tiles import LANES, PAD
from hybrid.core.arrays import Array, counts, scramble

__all__ = ["fill_cells", "gather_units", "share_cells", "write_codes"]

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def fill_cells(
    xp: Any, lane: Array, code: Array, n_cells: int, unit: int, most_terms: int
) -> tuple[Array, Array, Array]:
    """Write the term numbers of all cells, and keep one copy of cells with equal ones.

    Parameters
    ----------
    xp, lane, code, n_cells, unit, most_terms
        As for :func:`write_codes`.

    Returns
    -------
    cell_unit, cell_units : ndarray, shape (cells,), int64
        First unit and units of every cell.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Term numbers, [unit][lane][unit].

    Notes
    -----
    Time: O(entries + codes + cells log cells). Synchronises: yes.
    """
    cell_ptr, codes = write_codes(xp, lane, code, n_cells, unit, most_terms)
    cell_unit, cell_units, kept = share_cells(xp, cell_ptr, codes, unit)
    return cell_unit, cell_units, gather_units(codes, unit, kept)


def write_codes(
    xp: Any, lane: Array, code: Array, n_cells: int, unit: int, most_terms: int
) -> tuple[Array, Array]:
    """Write the term numbers of all cells.

    Parameters
    ----------
    xp : module
    lane : ndarray, shape (entries,), int64
        Place of the row of every entry, 32 to a cell, ascending.
    code : ndarray, shape (entries,), int64
        Number of its term.
    n_cells : int
    unit : int
        Term numbers that a lane reads at once: 1, 2 or 4.
    most_terms : int
        One more than the greatest number of a term, which decides whether it takes one byte or two.

    Returns
    -------
    cell_ptr : ndarray, shape (cells + 1,), int64
        Units of every cell.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Term numbers, [unit][lane][unit]; the largest number stands for no entry.

    Notes
    -----
    Time: O(entries + codes). Synchronises: yes.
    """
    # The position of an entry: how many of its row come before it.
    in_lane = counts(xp, lane, n_cells * LANES)
    position = xp.arange(len(lane)) - pointers(xp, in_lane)[lane]
    width = in_lane.reshape(n_cells, LANES).max(axis=1) if n_cells else xp.zeros(0, xp.int64)
    cell_ptr = pointers(xp, -(-width // unit))
    code_type = xp.uint8 if most_terms <= PAD[1] else xp.uint16
    codes = xp.full(int(cell_ptr[-1]) * LANES * unit, PAD[xp.dtype(code_type).itemsize], code_type)
    place = (cell_ptr[lane // LANES] + position // unit) * LANES + lane % LANES
    codes[place * unit + position % unit] = code.astype(code_type)
    return cell_ptr, codes


def gather_units(codes: Array, unit: int, kept: Array) -> Array:
    """Return the term numbers of some units."""
    if len(kept) == 0:
        return codes[:0]
    return codes.reshape(-1, LANES * unit)[kept].reshape(-1)


def share_cells(
    xp: Any, cell_ptr: Array, codes: Array, unit: int, marks: Array | None = None
) -> tuple[Array, Array, Array]:
    """Find cells with equal term numbers, of which one copy is enough.

    Parameters
    ----------
    xp : module
    cell_ptr : ndarray, shape (cells + 1,), int64
        Units of every cell.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Term numbers, [unit][lane][unit].
    unit : int
        Term numbers that a lane reads at once: 1, 2 or 4.
    marks : ndarray, shape (units,), int64, optional
        What goes with a unit; cells are equal if their units' marks are, too.

    Returns
    -------
    cell_unit, cell_units : ndarray, shape (cells,), int64
        First unit and units of every cell, among the kept ones.
    kept : ndarray, shape (kept units,), int64
        Units of the distinct cells, in the order of their first occurrence.

    Notes
    -----
    Cells are compared by a 64-bit hash and each is then checked against the one it would share with; should a
    hash collide, nothing is shared. Time: O(codes + cells log cells). Synchronises: yes.
    """
    cells, total = len(cell_ptr) - 1, len(codes) // (LANES * unit)
    units = cell_ptr[1:] - cell_ptr[:-1]
    if total == 0:
        return cell_ptr[:-1], units, xp.zeros(0, xp.int64)
    owner = owners(xp, cell_ptr, total)
    words = codes.view(_WORDS[codes.dtype.itemsize * unit]).reshape(total, LANES)
    hashes = _hash_units(xp, words, xp.arange(total) - cell_ptr[owner])
    if marks is not None:
        hashes = scramble(xp, hashes ^ scramble(xp, marks.astype(xp.uint64)))
    running = xp.zeros(total + 1, xp.uint64)
    xp.cumsum(hashes, out=running[1:])
    keys = running[cell_ptr[1:]] - running[cell_ptr[:-1]]
    _, first, inverse = xp.unique(keys, return_index=True, return_inverse=True)
    twin = first[inverse]
    source, _ = ranges(xp, cell_ptr[twin], cell_ptr, total)
    same = bool((units == units[twin]).all()) and bool((words[source] == words).all())
    if not same or (marks is not None and not bool((marks[source] == marks).all())):
        return cell_ptr[:-1], units, xp.arange(total)
    chosen = xp.sort(first)
    kept_ptr = pointers(xp, units[chosen])
    kept, _ = ranges(xp, cell_ptr[chosen], kept_ptr, int(kept_ptr[-1]))
    place = xp.zeros(cells, xp.int64)
    place[chosen] = kept_ptr[:-1]
    return place[twin], units, kept


def _hash_units(xp: Any, words: Array, position: Array) -> Array:
    key = words.astype(xp.uint64)
    lane = xp.arange(LANES, dtype=xp.uint64) * xp.uint64(_SEEDS[0])
    key = scramble(xp, key ^ lane)
    per_unit = key.sum(axis=1, dtype=xp.uint64)
    return scramble(xp, per_unit + position.astype(xp.uint64) * xp.uint64(_SEEDS[1]))
