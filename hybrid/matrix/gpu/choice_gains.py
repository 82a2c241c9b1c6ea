"""What choices are worth by themselves, for all layers together: one short code a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceGains, Place
from hybrid.base.arrays import Array, counts, distinct_values, to_host
from mtbdd.offset.masks import is_any
from mtbdd.offset.tuples import distinct

Vector = NDArray[np.float64]

_GAINS_AN_ITEM = 2
"""Gains that the host codes in the time of an item of a layout."""


def gain_items(gains: int) -> int:
    """Return how many items of a layout take as long as coding so many gains, for `gpu_kernels.made_for`."""
    return gains // _GAINS_AN_ITEM


def code_gains(
    place: Place,
    marks: Array,
    gains: Mapping[int, Vector],
    factors: Mapping[int, Vector],
    layers: int,
    maximise: bool,
) -> ChoiceGains:
    """Put the gains of all layers into tables, one row for all states that agree in what matters.

    Parameters
    ----------
    place : Place
    marks : ndarray, shape (n,), uint64, in that place
        Which layers have entries in each row, from :func:`gpu_kernels.mark_entries`.
    gains : mapping of int to ndarray, shape (n,), float64
        For each layer that offers choices what they are worth; an infinity, the one that never wins, where
        there is no choice. A choice with entries has a finite gain.
    factors : mapping of int to ndarray, shape (n,), float64
        What products are multiplied by, for layers where that is not 1.
    layers : int
    maximise : bool

    Returns
    -------
    ChoiceGains

    Raises
    ------
    ValueError
        If a choice with entries has an infinite gain.

    Notes
    -----
    A state's gain in a layer does not matter where it has no entries in it, nor its factor; such places are
    filled with what is frequent, so that most models need few rows. Time: O(L n log n) for L layers.
    Synchronises: yes.
    """
    xp, size, worst = place.xp, len(marks), -np.inf if maximise else np.inf
    codes = xp.zeros(size, np.int64)
    usual: dict[int, tuple[float, float]] = {}

    def columns(layer: int, rows: Any) -> tuple[Array, Array, Array | None]:
        """Return gains with and without entries and factors of some rows."""
        here = xp.not_equal(xp.bitwise_and(marks[rows], np.uint64(1 << layer)), np.uint64(0))
        on_host = rows if isinstance(rows, slice) else to_host(rows)
        gain = xp.asarray(gains[layer][on_host])
        factor = xp.asarray(factors[layer][on_host]) if layer in factors else None
        if layer not in usual:
            if is_any(xp.isinf(gain[here])):
                raise ValueError(f"gains: layer {layer} has transitions of choices whose gain is infinite")
            usual[layer] = _frequent(xp, gain[here]), 1.0 if factor is None else _frequent(xp, factor[here])
        if factor is not None:
            factor = xp.where(here, factor, usual[layer][1])
        return xp.where(here, gain, usual[layer][0]), xp.where(here, worst, gain), factor

    everything = slice(None)
    for layer in sorted(gains):
        for column in columns(layer, everything):
            if column is not None and size:
                number = distinct_values(xp, column)[1]
                codes = distinct(xp, (codes, number))[1]
    first, codes = distinct(xp, (codes,))
    rows = max(len(first), 1)
    table = xp.zeros((rows, 2 * layers + 1))
    table[:, layers:] = worst
    weights = xp.ones((rows, layers)) if factors else None
    for layer in sorted(gains) if size else ():
        with_entries, without, factor = columns(layer, first)
        table[:, layer], table[:, layers + layer] = with_entries, without
        if factor is not None and weights is not None:
            weights[:, layer] = factor
    best = xp.max if maximise else xp.min
    table[:, 2 * layers] = best(table[:, layers : 2 * layers], axis=1)
    blank = xp.where(xp.isinf(table), table, 0.0)
    bits = 0 if rows == 1 else 8 if rows <= 1 << 8 else 16 if rows <= 1 << 16 else 32
    narrow = None if bits == 0 else codes.astype(np.dtype(f"u{bits // 8}"))
    same = to_host((table[:, :layers] == table[:1, :layers]).all(axis=0))
    uniform = sum(1 << layer for layer in range(layers) if same[layer])
    return ChoiceGains(
        bits, narrow, xp.ascontiguousarray(table), xp.ascontiguousarray(blank), weights, uniform
    )


def _frequent(xp: Any, values: Array) -> float:
    """Return the most frequent of some values; zero if there are none."""
    if not len(values):
        return 0.0
    table, number = distinct_values(xp, values)
    return float(table[counts(xp, number, len(table)).argmax()])
