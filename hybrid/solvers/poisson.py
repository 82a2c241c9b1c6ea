"""Poisson probabilities for uniformisation, stable for any mean, with bounds on what is left out.

Fox and Glynn (Computing Poisson probabilities, CACM 1988) compute weights proportional to the probabilities
by recursion from the mode outwards. Nothing can underflow there that matters, and the weights are normalised
by their sum. The tails are bounded by geometric series here, because beyond the mode the ratio of
neighbouring probabilities only falls.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import PropertyError
from hybrid.matrix.space.bounded_solution import UNIT
from mtbdd.base.records import Record

# lemma: uniformisation
_NORMAL = 2.0**-960  # weights below it are part of the tail: their products would have no digits left
_TAIL = 1e-40  # so small that even tiny results keep their digits; a few standard deviations more


class PoissonWeights(Record):
    """The probabilities of ``left .. right``.

    Attributes
    ----------
    left, right : int
    weights : ndarray of float64, shape (right - left + 1,)
        Normalised to the sum 1: each is the true probability times a factor between 1 and
        ``1 + left_tail + right_tail``, up to `slack`.
    left_tail, right_tail : float
        Bounds on the probability below `left` and above `right`.
    excess : float
        Bound on the mean of ``max(N - right - 1, 0)``, N the Poisson variable.
    slack : float
        Bound on the relative rounding error of the weights.
    """

    left: int
    right: int
    weights: NDArray[np.float64]
    left_tail: float
    right_tail: float
    excess: float
    slack: float

    def above(self) -> NDArray[np.float64]:
        """Return the probabilities of more than k, for k = left .. right, shape as `weights`.

        Below `left` the probability is 1 up to `left_tail`.  Added up from the small ones.
        """
        sums = np.cumsum(self.weights[::-1])[::-1]
        return np.append(sums[1:], 0.0)


def poisson_weights(mean: float) -> PoissonWeights:
    """Return the probabilities of a Poisson distribution that matter.

    Parameters
    ----------
    mean : float
        Not negative, at most 2^52.

    Raises
    ------
    PropertyError
        The mean is out of range.

    Notes
    -----
    Time and memory: O(sqrt(mean)).

    Lemma: uniformisation (docs/bounds.md).
    """
    if not 0 <= mean <= 2.0**52:
        raise PropertyError(
            f"rate times time must lie between 0 and 2^52, got {mean:g}: choose a shorter time, "
            "or a long-run operator"
        )
    if mean == 0:
        return PoissonWeights(0, 0, np.ones(1), 0.0, 0.0, 0.0, 0.0)
    mode = math.floor(mean)
    reach = int(15.0 * math.sqrt(mean)) + 150
    down = np.cumprod(np.arange(mode, max(mode - reach, 0), -1) / mean)
    up = np.cumprod(mean / np.arange(mode + 1, mode + reach + 1, dtype=np.float64))
    # Two terms more than none: where hardly anything happens, they are what happens.
    down, up = down[down > _TAIL], up[: max(int((up > _TAIL).sum()), 2)]
    up = up[up > _NORMAL]
    weights = np.concatenate((down[::-1], [1.0], up))
    left, right = mode - down.size, mode + up.size
    total = float(weights.sum())
    weights /= total
    below = 0.0
    if left > 0:
        ratio = left / mean
        below = float(weights[0]) * ratio / (1.0 - ratio)  # lemma: uniformisation
    ratio = mean / (right + 1)
    above = float(weights[-1]) * ratio / (1.0 - ratio)
    # Each step of a recursion rounds twice; cumulated sums and the total add as much again.
    slack = (4 * weights.size + 256) * UNIT  # lemma: uniformisation
    # Bounds on tails are rounded, too, and may underflow.
    # lemma: uniformisation
    below, above, excess = (
        tail * (1.0 + 2.0**-40) + _NORMAL if tail else 0.0 for tail in (below, above, above / (1.0 - ratio))
    )
    return PoissonWeights(left, right, weights, below, above or _NORMAL, excess or _NORMAL, slack)
