"""What is known of the achievable values: mixtures of points from inside, half-spaces from outside.

All objectives are turned so that more is better.  Whatever lies below a mixture of points is achievable,
whatever lies beyond a half-space is not.  Linear programs in doubles propose mixtures and directions;
rational arithmetic confirms what is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotConvergedError
from hybrid.matrix.space.base import Status

Vector = NDArray[np.float64]
Demands = Sequence[Fraction | None]

_FARTHEST = 1e15  # numbers beyond 1e20 count as infinite in linear programs
_SLIGHT = 1e-9  # shares below it are an error of the linear program


@dataclass(frozen=True)
class HalfSpace:
    """No scheduler's values have a greater weighted sum.

    Attributes
    ----------
    weights : tuple of float
        Not negative.
    most : float
    """

    weights: tuple[float, ...]
    most: float

    def excess(self, values: Demands) -> Fraction:
        """Return how far values lie beyond, exactly; those without a demand have weight 0."""
        total = sum(Fraction(w) * v for w, v in zip(self.weights, values, strict=True) if v is not None)
        return Fraction(total) - Fraction(self.most)  # lemma: outside


@dataclass(frozen=True)
class Proposal:
    """What a linear program says.

    Attributes
    ----------
    value : float
        What it maximises.
    shares : ndarray, shape (points,)
        Of the points in a mixture.
    direction : ndarray, shape (objectives,)
        The weights in which more would be needed to do better.
    """

    value: float
    shares: Vector
    direction: Vector


def widest_margin(points: Sequence[Sequence[float]], demands: Demands, scale: Vector) -> Proposal:
    """Return the mixture of points that exceeds demands by the greatest multiple of a scale."""
    lower = np.array(points, np.float64)
    asked = [i for i, demand in enumerate(demands) if demand is not None]
    wanted = _in_parts(demands, asked, scale)
    k = len(lower)
    # Variables: shares, then the margin.
    rows = np.hstack([-(lower[:, asked] / scale[asked]).T, np.ones((len(asked), 1))])
    found = _solved(np.append(np.zeros(k), -1.0), rows, -wanted, k)
    direction = np.zeros(len(demands))
    direction[asked] = np.maximum(-found.ineqlin.marginals, 0.0) / scale[asked]
    return Proposal(float(found.x[-1]), found.x[:k], direction)


def best_value(
    points: Sequence[Sequence[float]], demands: Demands, aim: int, scale: Vector
) -> Proposal | None:
    """Return the mixture that meets demands with the greatest value of one objective; None if none does."""
    lower = np.array(points, np.float64)
    asked = [i for i, demand in enumerate(demands) if demand is not None]
    wanted = _in_parts(demands, asked, scale)
    k = len(lower)
    rows = np.hstack([-(lower[:, asked] / scale[asked]).T, np.zeros((len(asked), 1))])
    found = _solved(np.append(-lower[:, aim] / scale[aim], 0.0), rows, -wanted, k, False)
    if found is None:
        return None
    direction = np.zeros(len(demands))
    direction[asked] = np.maximum(-found.ineqlin.marginals, 0.0) / scale[asked]
    direction[aim] = 1.0 / scale[aim]
    return Proposal(float(-found.fun * scale[aim]), found.x[:k], direction)


def _in_parts(demands: Demands, asked: Sequence[int], scale: Vector) -> Vector:
    """Return demands in parts of a scale; those far beyond it, as far as a linear program can take."""
    with np.errstate(over="ignore"):
        parts = np.array([float(demands[i] or 0) for i in asked]) / scale[asked]
    return np.clip(parts, -_FARTHEST, _FARTHEST)


def _solved(cost: Vector, rows: Vector, most: Vector, k: int, must: bool = True) -> Any:
    """Minimise over shares that add up to 1 and one free variable; None if that is infeasible."""
    from scipy.optimize import linprog

    equal = np.append(np.ones(k), 0.0)[None, :]
    bounds = [(0.0, None)] * k + [(None, None)]
    found = linprog(cost, rows, most, equal, [1.0], bounds, method="highs")
    if found.status == 2 and not must:
        return None
    if found.status != 0:
        raise NotConvergedError("a linear program of objectives", Status.BREAKDOWN, int(found.nit), np.inf)
    return found


# ------------------------------------------------------------------ in rational numbers


Shares = dict[int, Fraction]


def cleaned(shares: Vector) -> Shares:
    """Return shares as rational numbers that add up to 1, without slight ones."""
    kept = {i: Fraction(x) for i, x in enumerate(shares.tolist()) if x > _SLIGHT}
    total = sum(kept.values())
    return {i: x / total for i, x in kept.items()}  # lemma: mixture


def mixed(points: Sequence[Sequence[float]] | Sequence[Sequence[Fraction]], shares: Shares) -> list[Fraction]:
    """Return the values of a mixture, exactly."""
    return [
        sum((x * Fraction(points[j][i]) for j, x in shares.items()), Fraction(0))
        for i in range(len(points[0]))
    ]


def meets(values: Sequence[Fraction], demands: Demands) -> bool:
    """Return whether values meet demands."""
    return all(d is None or v >= d for v, d in zip(values, demands, strict=True))  # lemma: mixture


def repaired(
    points: Sequence[Sequence[float]], shares: Shares, other: Shares, demands: Demands
) -> Shares | None:
    """Return a mixture that meets demands, with as little as need be of another that does; None without.

    The first one may miss them by an error of rounding.
    """
    near, safe = mixed(points, shares), mixed(points, other)
    part = Fraction(0)
    for value, sure, demand in zip(near, safe, demands, strict=True):
        if demand is not None and value < demand:
            if sure < demand or sure == value:
                return None
            part = max(part, (demand - value) / (sure - value))  # lemma: mixture
    joined = {i: (1 - part) * x for i, x in shares.items()}
    for i, x in other.items():
        joined[i] = joined.get(i, Fraction(0)) + part * x
    joined = {i: x for i, x in joined.items() if x}
    return joined if meets(mixed(points, joined), demands) else None  # lemma: mixture
