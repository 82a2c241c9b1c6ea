"""Vectors h that show long-run averages, for the bottom components of a chain.

Poisson's equation ``g + d h = r + R h`` is solved by factors for components of moderate size, and by relaxed
steps of the jump chain for large ones, where the averages are known already and nothing drifts.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hybrid.checking.certificates.archive import PartVectors
from hybrid.checking.certificates.conditions import Average
from hybrid.checking.certificates.mending import mended
from hybrid.matrix.space.base import Criterion

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_OMEGA = 0.9  # below 1, so that chains with a period settle
_STEPS = 20  # between two looks at the averages
_PATIENCE = 100  # looks without a gain after which rounding is what is left
_FACTORED = 20_000  # states of all bottom components together that are solved by factors


def averages(condition: Average, lower: Vector, upper: Vector, criterion: Criterion) -> PartVectors:
    """Return bounds on averages, and a vector h that shows them in the bottom components.

    Parameters
    ----------
    condition : Average
    lower, upper : ndarray of float64, shape (states,)
        The solvers' bounds.
    criterion : Criterion
        How close to bring the bounds, and in how many steps at most.
    """
    course = _Poisson(condition, lower, upper)
    course.solve(criterion)
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
    """The bottom components of a chain, their rates scaled like the rows."""

    def __init__(self, condition: Average, lower: Vector, upper: Vector) -> None:
        t = condition.sweep.transitions
        size = t.states.size
        doubles, _ = t.states.table.doubles()
        row = np.repeat(np.arange(size), np.diff(t.begin).astype(np.intp))
        scale = doubles[condition.scale]
        off = row != t.target
        self._row, self._target = row[off], t.target[off]
        self._rate = (doubles[t.weight] / scale[row])[off]
        matrix: Any = coo_array((self._rate, (self._row, self._target)), (size, size)).tocsr()
        self._matrix = matrix
        self._leaving = np.bincount(self._row, self._rate, size)
        self._rewards = doubles[condition.earned] / scale
        count, label = connected_components(matrix, directed=True, connection="strong")
        leaves = np.zeros(count, np.bool_)
        leaves[label[self._row[label[self._row] != label[self._target]]]] = True
        self.ends: Mask = ~leaves[label]
        self._label, self._count = label, count
        self._gain = 0.5 * (lower + upper)
        self.h: Vector = np.zeros(size)

    def solve(self, criterion: Criterion) -> None:
        """Find h, by factors where that is possible and else by iteration."""
        if int(self.ends.sum()) > _FACTORED or not self._factored():
            self._run(criterion)
        self._centre()

    def _fastest(self) -> NDArray[np.int64]:
        """Return, for each bottom component, the state that is left at the greatest rate."""
        order = np.lexsort((self._leaving, self._label))
        last = np.append(np.flatnonzero(np.diff(self._label[order])), order.size - 1)
        found = order[last]
        return np.asarray(found[self.ends[found]])

    def _centre(self) -> None:
        """Make h zero where rates are greatest: errors of h count as much as the rates."""
        offset = np.zeros(self._count)
        fastest = self._fastest()
        offset[self._label[fastest]] = self.h[fastest]
        self.h = np.where(self.ends, self.h - offset[self._label], 0.0)

    def _factored(self) -> bool:
        """Solve for h and the averages at once, h being zero in one state of each component."""
        places = np.flatnonzero(self.ends)
        place = np.full(self.h.size, -1, np.int64)
        place[places] = np.arange(places.size)
        inside = self.ends[self._row]
        row, target = place[self._row[inside]], place[self._target[inside]]
        fastest = place[self._fastest()]
        anchor = np.full(self._count, -1, np.int64)
        anchor[self._label[places[fastest]]] = fastest
        every = np.arange(places.size)
        # The column of each component's anchor, whose h is zero, is that of its average.
        fixed = np.zeros(places.size, np.bool_)
        fixed[fastest] = True
        kept = ~fixed[target]
        rows = np.concatenate([row[kept], every[~fixed], every])
        columns = np.concatenate([target[kept], every[~fixed], anchor[self._label[places]]])
        leaving = self._leaving[places]
        entries = np.concatenate([-self._rate[inside][kept], leaving[~fixed], np.ones(places.size)])
        scale = np.where(leaving > 0, leaving, 1.0)
        matrix = coo_array((entries / scale[rows], (rows, columns)), (places.size,) * 2).tocsc()
        right = self._rewards[places] / scale
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                factors = splu(matrix)
            except RuntimeError:  # exactly singular in doubles
                return False
            found = factors.solve(right)
            found += factors.solve(right - matrix @ found)
        if not bool(np.isfinite(found).all()):
            return False
        self.h[places] = np.where(fixed, 0.0, found)
        return True

    def _run(self, criterion: Criterion) -> None:
        """Iterate until the bounds of every component are close, or rounding keeps them apart."""
        moves = self.ends & (self._leaving > 0)
        step = np.zeros(self.h.size)
        step[moves] = _OMEGA / self._leaving[moves]
        best, stale, keep = np.inf, 0, self.h.copy()
        for _ in range(0, criterion.max_iterations, _STEPS):
            for _ in range(_STEPS):
                defect = self._rewards + self._matrix @ self.h - self._leaving * self.h
                self.h += step * (defect - self._gain)
            least, most = self._extremes(self._rewards + self._matrix @ self.h - self._leaving * self.h)
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

    def _extremes(self, x: Vector) -> tuple[Vector, Vector]:
        """Return the least and greatest element of every component, for each of its states."""
        least, most = np.full(self._count, np.inf), np.full(self._count, -np.inf)
        np.minimum.at(least, self._label, x)
        np.maximum.at(most, self._label, x)
        return least[self._label], most[self._label]

    def bounds(self) -> tuple[Vector, Vector]:
        """Return bounds that the sweep confirms without whole numbers: rounding errors are charged twice."""
        terms = self._rate * (self.h[self._target] - self.h[self._row])
        size = np.bincount(self._row, np.abs(terms), self.h.size) + np.abs(self._rewards)
        rho = np.bincount(self._row, terms, self.h.size) + self._rewards
        error = 3.0 * (np.bincount(self._row, minlength=self.h.size) + 24) * 2.0**-52 * size
        return self._extremes(rho - error)[0], self._extremes(rho + error)[1]
