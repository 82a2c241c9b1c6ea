"""Bounds that hold are made bounds that a sweep confirms.

The solvers' bounds come from directed iteration on the doubles next to the model's numbers, and may fail an
inequality by some units in the last place.  They are moved to the loose side where they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from hybrid.certificates.archive import PartVectors
from hybrid.certificates.conditions import Average, Condition
from hybrid.certificates.solving import slackened
from hybrid.solvers.base import Criterion

__all__ = ["averages", "mended"]

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUNDS = 40
_PLACES = 2.0**-51
_OMEGA = 0.9  # below 1, so that chains with a period settle
_STEPS = 20  # between two looks at the averages
_PATIENCE = 100  # looks without a gain after which rounding is what is left


def mended(
    condition: Condition, lower: Vector, upper: Vector, unknown: Mask | None = None
) -> tuple[Vector, Vector]:
    """Return bounds moved to the loose side until the inequalities hold, if that is possible.

    A state that fails takes what one step makes of the vector, rounded to the loose side, more so with every
    round; if some rounds do not do, small systems are solved anew.

    Parameters
    ----------
    condition : Condition
    lower, upper : ndarray of float64, shape (states,)
    unknown : ndarray of bool, shape (states,), optional
        The states that an equation ``x = f(x)`` is about; default those that the condition names.

    Notes
    -----
    Time: one sweep a round.
    """
    lower, upper = (np.clip(v, condition.least, condition.greatest) for v in (lower, upper))
    with np.errstate(invalid="ignore"):
        middle = np.where(lower == upper, lower, 0.5 * (lower + upper))
    if _mend(condition, lower, -1.0) and _mend(condition, upper, 1.0):
        return lower, upper
    for low, high in slackened(condition, middle, condition.unknown(middle) if unknown is None else unknown):
        if not condition.lower_faults(low)[0].any() and not condition.upper_faults(high)[0].any():
            return low, high
    return lower, upper


def _mend(condition: Condition, x: Vector, direction: float) -> bool:
    """Move a vector in place, up for direction 1, and return whether it holds then."""
    for round_ in range(_ROUNDS):
        faults, _ = condition.lower_faults(x) if direction < 0 else condition.upper_faults(x)
        places = np.flatnonzero(faults)
        if places.size == 0:
            return True
        image = _best(condition, x)[places]
        image += direction * np.abs(image) * (_PLACES * 2.0 ** (round_ // 4))
        image = np.nextafter(image, direction * np.inf)
        moved = np.fmin(x[places], image) if direction < 0 else np.fmax(x[places], image)
        x[places] = np.clip(moved, condition.least, condition.greatest)
    return False


def _best(condition: Condition, x: Vector) -> Vector:
    """Return about the best that one step makes of a vector, for every state."""
    image = condition.images(x)
    heads = condition.sweep.transitions.first[:-1].astype(np.intp)
    gather = np.fmax if condition.maximise else np.fmin
    return np.asarray(gather.reduceat(image, heads))


# ------------------------------------------------------------------ long-run averages


def averages(condition: Average, lower: Vector, upper: Vector, criterion: Criterion) -> PartVectors:
    """Return bounds on averages, and a vector h that shows them in the bottom components.

    h comes from relaxed steps of the jump chain with the averages known, which converge since nothing drifts.

    Parameters
    ----------
    condition : Average
    lower, upper : ndarray of float64, shape (states,)
        The solvers' bounds.
    criterion : Criterion
        How close to bring the bounds, and in how many steps at most.
    """
    course = _Poisson(condition, lower, upper)
    course.run(criterion)
    low, high = course.bounds()
    condition.bias = course.h
    ends = course.ends
    # Transient states follow their components: what is true of l is true of l less a constant.
    lower, upper = lower.copy(), upper.copy()
    lower[~ends] -= max(0.0, float((lower[ends] - low[ends]).max())) * (1 + 1e-9)
    upper[~ends] += max(0.0, float((high[ends] - upper[ends]).max())) * (1 + 1e-9)
    lower[ends], upper[ends] = low[ends], high[ends]
    lower, upper = mended(condition, lower, upper, ~ends)
    return PartVectors(lower, upper, course.h)


class _Poisson:
    """Relaxed steps for ``h = h + (r - g + Q h) / d`` in the bottom components of a chain."""

    def __init__(self, condition: Average, lower: Vector, upper: Vector) -> None:
        t = condition.sweep.transitions
        size = t.states.size
        doubles, _ = t.states.table.doubles()
        row = np.repeat(np.arange(size), np.diff(t.begin).astype(np.intp))
        scale = doubles[condition.scale]
        weights = doubles[t.weight] / scale[row]
        off = row != t.target
        self._matrix: Any = coo_array((weights[off], (row[off], t.target[off])), (size, size)).tocsr()
        self._leaving = np.asarray(self._matrix.sum(axis=1)).reshape(-1)
        self._rewards = doubles[condition.earned] / scale
        count, label = connected_components(self._matrix, directed=True, connection="strong")
        leaves = np.zeros(count, np.bool_)
        leaves[label[row[label[row] != label[t.target]]]] = True
        self.ends: Mask = ~leaves[label]
        self._label, self._count = label, count
        self._members = np.diff(self._matrix.indptr)
        self._gain = 0.5 * (lower + upper)
        self.h: Vector = np.zeros(size)

    def run(self, criterion: Criterion) -> None:
        """Iterate until the bounds of every component are close, or rounding keeps them apart."""
        moves = self.ends & (self._leaving > 0)
        step = np.zeros(self.h.size)
        step[moves] = _OMEGA / self._leaving[moves]
        best, stale, keep = np.inf, 0, self.h.copy()
        for _ in range(0, criterion.max_iterations, _STEPS):
            for _ in range(_STEPS):
                self.h += step * (self._defect() - self._gain)
            rho = self._defect()
            least, most = self._extremes(rho)
            middle = 0.5 * (least + most)
            width = np.where(self.ends, most - least, 0.0)
            if not criterion.absolute:
                width /= np.where(middle == 0, 1.0, np.abs(middle))
            worst = float(width.max())
            stale = 0 if worst < 0.9 * best else stale + 1
            if worst < best:
                best, keep = worst, self.h.copy()
            if best <= 0.1 * criterion.epsilon or stale >= _PATIENCE:
                break
            low, high = self._extremes(self.h)
            self.h -= np.where(self.ends, 0.5 * (low + high), 0.0)
        self.h = keep

    def _defect(self) -> Vector:
        found: Vector = self._rewards + self._matrix @ self.h - self._leaving * self.h
        return found

    def _extremes(self, x: Vector) -> tuple[Vector, Vector]:
        """Return the least and greatest element of every component, for each of its states."""
        least, most = np.full(self._count, np.inf), np.full(self._count, -np.inf)
        np.minimum.at(least, self._label, x)
        np.maximum.at(most, self._label, x)
        return least[self._label], most[self._label]

    def bounds(self) -> tuple[Vector, Vector]:
        """Return bounds that the sweep confirms without whole numbers: rounding errors are charged twice."""
        rho = self._defect()
        size = np.abs(self._rewards) + abs(self._matrix) @ np.abs(self.h) + self._leaving * np.abs(self.h)
        error = 2.0 * (self._members + 24) * 2.0**-52 * size
        return self._extremes(rho - error)[0], self._extremes(rho + error)[1]
