"""Confidence intervals of estimates."""

from __future__ import annotations

import math

from hybrid.checking.simulation.draws import Doubles


def clopper_pearson(successes: int, unknown: int, paths: int, confidence: float) -> tuple[float, float]:
    """Return an interval that covers a probability with at least the given confidence, however few paths.

    Parameters
    ----------
    successes : int
        Paths that show the event.
    unknown : int
        Paths of which it is not known: the lower end counts them as failures, the upper one as successes.
    paths : int
        All of them, at least 1.
    confidence : float
        In (0, 1).

    Returns
    -------
    lower, upper : float
        In [0, 1].
    """
    from scipy.stats import beta

    tail, most = (1.0 - confidence) / 2, successes + unknown
    lower = float(beta.ppf(tail, successes, paths - successes + 1)) if successes else 0.0
    upper = float(beta.ppf(1.0 - tail, most + 1, paths - most)) if most < paths else 1.0
    return lower, upper


def student(values: Doubles, confidence: float) -> tuple[float, float]:
    """Return an interval around the mean that covers the expectation if means are distributed normally.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        At least two.
    confidence : float
        In (0, 1).
    """
    from scipy.stats import t

    mean = float(values.mean())
    deviation = float(values.std(ddof=1))
    width = float(t.ppf(0.5 + confidence / 2, values.size - 1)) * deviation / math.sqrt(values.size)
    return mean - width, mean + width
