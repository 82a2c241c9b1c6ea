"""Bounds on a long-run average from any bias; see :mod:`hybrid.solvers.average_reward`."""

from __future__ import annotations

from hybrid.matrix.space.workspace import Array, Workspace


def average_bounds(
    space: Workspace, h: Array, rewards: Array, diagonal: Array, rho: Array, error: Array, slack: float
) -> tuple[Array, Array]:
    """Return the least and greatest element of ``r + M h - d * h``, widened by the errors of computing it.

    Parameters
    ----------
    h, rho, error : array, shape (n,), float64
        The bias, and room; all are overwritten.
    rewards, diagonal : array, shape (n,), float64
        r and d.
    slack : float
        Bound on the relative error of evaluating the three terms.

    Returns
    -------
    tuple of two arrays, shape ()
        In the workspace, so that nothing waits for them.
    """
    xp = space.xp
    space.multiply(h, rho)
    rho += rewards
    xp.multiply(diagonal, h, out=error)
    # lemma: gain
    rho -= error
    xp.absolute(h, out=h)
    space.multiply(h, error)
    h *= diagonal
    error += h  # lemma: gain
    xp.absolute(rewards, out=h)
    # lemma: gain
    error += h  # lemma: gain
    error *= slack  # lemma: gain
    xp.subtract(rho, error, out=h)
    # lemma: gain
    rho += error
    return space.least(h), space.greatest(rho)
