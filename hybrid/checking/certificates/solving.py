"""Bounds for small systems where the solvers' bounds are not inductive: a solution, moved by a slack.

With ``x = f(x)`` and ``w = s + P w`` for a positive s, ``x - d w`` and ``x + d w`` satisfy the inequalities
by ``d s`` in every state, which covers what rounding has cost x as soon as d is large enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, identity
from scipy.sparse.linalg import splu

from hybrid.checking.certificates.condition import Condition

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST = 20_000  # unknown states
_FIRST, _LAST, _FACTOR = 2.0**-50, 2.0**-18, 8.0


def slackened(condition: Condition, middle: Vector, unknown: Mask) -> Iterator[tuple[Vector, Vector]]:
    """Yield lower and upper vectors around a solution, with more slack every time.

    Parameters
    ----------
    condition : Condition
    middle : ndarray of float64, shape (states,)
        About the solution; right outside of the unknown states.
    unknown : ndarray of bool, shape (states,)

    Notes
    -----
    Nothing is yielded for more than 20,000 unknown states, or if the choices that are best at `middle` do not
    leave them.  Time: that of a sparse factorisation.
    """
    places = np.flatnonzero(unknown)
    if places.size == 0 or places.size > _MOST:
        return
    matrix, right = _system(condition, middle, places)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            factors = splu((identity(places.size, format="csc") - matrix).tocsc())
        except RuntimeError:  # exactly singular
            return
        x = factors.solve(right)
        x += factors.solve(right - x + matrix @ x)
        slack = factors.solve(np.maximum(np.abs(x), np.abs(right).max() * 2.0**-60))
    if not bool(np.isfinite(x).all()) or not bool((slack > 0).all()):
        return
    distance = _FIRST
    while distance <= _LAST:
        found = []
        for direction in (-1.0, 1.0):
            moved = middle.copy()
            moved[places] = np.clip(x + direction * distance * slack, condition.least, condition.greatest)
            found.append(moved)
        yield found[0], found[1]
        distance *= _FACTOR


def _system(condition: Condition, middle: Vector, places: NDArray[np.int64]) -> tuple[Any, Vector]:
    """Return matrix and right-hand side of the unknown states under the choices that are best at a vector."""
    t = condition.sweep.transitions
    choice = _chosen(condition, middle)[places]
    place = np.full(t.states.size, -1, np.int64)
    place[places] = np.arange(places.size)
    doubles, _ = t.states.table.doubles()
    count = (t.begin[choice + 1] - t.begin[choice]).astype(np.intp)
    row = np.repeat(np.arange(places.size), count)
    first = np.repeat(t.begin[choice] - (np.cumsum(count) - count), count)
    entries = first + np.arange(row.size)
    weight, target = doubles[t.weight[entries]], t.target[entries]
    total = np.bincount(row, weight, places.size)
    weight = weight / total[row]
    inside = place[target] >= 0
    matrix = coo_array(
        (weight[inside], (row[inside], place[target[inside]])), (places.size, places.size)
    ).tocsc()
    outside = ~inside
    entering = weight[outside] * middle[target[outside]]
    right: Vector = np.bincount(row[outside], entering, places.size).astype(np.float64)
    earned = condition.gains()
    if earned is not None:
        right += doubles[earned[choice]] / total
    return matrix, right


def _chosen(condition: Condition, x: Vector) -> NDArray[np.int64]:
    """Return the best choice of every state at a vector."""
    t = condition.sweep.transitions
    image = condition.images(x)
    worst = -np.inf if condition.maximise else np.inf
    image = np.where(np.isnan(image), worst, image)
    order = np.lexsort((-image if condition.maximise else image, t.state))
    return np.asarray(order[t.first[:-1]])
