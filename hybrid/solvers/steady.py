"""Whether an iteration from below has grown, in every row, as it does now since it began.

A chain that is left very rarely gains the same in every step, for as long as one looks: its differences
fall like ``1 / k``, and no curve of them tells that k has to become the mean time of leaving.  There a Krylov
method is at its best: all that is left is one direction.  Where a row has met what ends it while others have
not, its change has dropped from what it was, and a Krylov method has to wait for the others as well
(:mod:`hybrid.solvers.forecast`).
"""

from __future__ import annotations

from hybrid.matrix.space.bellman import Held
from hybrid.matrix.space.workspace import Workspace

_UNLIKE = 0.25  # of the greatest change: in a front that passes row after row some change is off by half


def is_steady(space: Workspace, held: Held, difference: float) -> bool:
    """Return whether the last change of every row is that of all steps, beside the greatest of them.

    Rows that changed by d in all k steps have ``sum over j < k of (x_k - x_j) = d k (k + 1) / 2``, and rows
    that stand still for long have little of either.

    Parameters
    ----------
    space : Workspace
    held : Held
        Its `spare` and `y` are overwritten; y is the iterate before.
    difference : float
        Greatest relative change of the last step.

    Notes
    -----
    A look, and nine passes over vectors.
    """
    xp, x, y, spare, made = space.xp, held.x, held.y, held.spare, float(held.made)
    assert held.total is not None
    xp.multiply(held.total, -1.0, out=spare)
    space.add_scaled(made, x, spare)
    spare *= 2.0 / (made * (made + 1.0))
    spare += y
    spare -= x
    xp.absolute(spare, out=spare)
    xp.multiply(x, _UNLIKE * difference, out=y)
    (alike,) = space.read(space.all(spare <= y))
    return bool(alike)
