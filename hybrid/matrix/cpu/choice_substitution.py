"""Compiled solution of states over choices, one after another, each after those that it leads to."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def substitute_choices(  # type: ignore[no-untyped-def]
    order, rows, choice_ptr, offsets, columns, values, gains, maximise, slack, underflow, tiny, upper_bound,
    lower, upper,
):  # fmt: skip
    """Write bounds of states whose choices lead to states with bounds, or to the state itself.

    A choice that gains g, and stays with the probability p, is worth ``(g + what it reaches) / (1 - p)``.

    Parameters
    ----------
    order : ndarray, shape (k,), int64
        States, as numbers of `rows`, in an order in which every state comes after those it leads to.
    rows : ndarray, shape (m,), int64
        Places of the states in `lower` and `upper`.
    choice_ptr, offsets, columns, values, gains
        As for `hybrid.matrix.cpu.choice_kernels.explicit_step`; columns are places, and every state has a
        choice.
    maximise : bool
    slack : float64
        Bound on the relative error of a step, operands included.
    underflow : float64
        Bound on what underflow adds to a state's value.
    tiny : float64
        Positive values below it may have lost digits to underflow: their bounds are 0 and `tiny`.
    upper_bound : float64
        A bound on all values known beforehand, or infinity.
    lower, upper : ndarray, shape (n,), float64
        Those of the states are written.
    """
    worst = -np.inf if maximise else np.inf
    for k in range(len(order)):
        s = order[k]
        i = rows[s]
        least, most, is_positive = worst, worst, not maximise
        for c in range(choice_ptr[s], choice_ptr[s + 1]):
            below = gains[c]
            above = gains[c]
            positive = above > 0.0
            stays = 0.0
            for e in range(offsets[c], offsets[c + 1]):
                j = columns[e]
                if j == i:
                    stays += values[e]
                    continue
                below += values[e] * lower[j]
                above += values[e] * upper[j]
                positive = positive or upper[j] > 0.0
            below *= 1.0 - slack
            above /= 1.0 - slack
            if positive:
                below = max(below - underflow, 0.0)
                above += underflow
            if stays > 0.0:
                # One slack is the probability's own; the other, of some dozens of units, is for what rounding
                # its product adds, which is not relative to the divisor.
                below = below * (1.0 - slack) / (1.0 - stays * (1.0 - 2.0 * slack))
                leaving = 1.0 - stays * (1.0 + 2.0 * slack)
                above = above / (1.0 - slack) / leaving if leaving > 0.0 else np.inf
            if maximise:
                least = max(least, below)
                most = max(most, above)
                is_positive = is_positive or positive
            else:
                least = min(least, below)
                most = min(most, above)
                is_positive = is_positive and positive
        if is_positive and most < tiny:
            least, most = 0.0, tiny
        lower[i] = least
        upper[i] = min(most, upper_bound)
