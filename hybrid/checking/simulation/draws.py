"""Random numbers that depend on the seed and on the number of the path alone.

Paths are numbered from 0 and stand in groups of a fixed width. Each group has a generator of its own, which
draws for the whole group at every step, whoever of it still goes on: what a path draws depends neither on how
many paths there are, nor on how they are cut into batches, nor on which of them have ended.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import Array

WIDTH = 1024
"""Paths of a group."""

Doubles = NDArray[np.float64]


class Draws:
    """The random numbers of some consecutive paths, step by step.

    Parameters
    ----------
    seed : int
        Not negative.
    first, count : int
        Numbers of the paths.
    rows : int
        Numbers that a path takes at a step.
    is_timed : bool
        Whether a path takes a sojourn time, too.

    Notes
    -----
    Time: O(groups × WIDTH × rows) a step.
    """

    def __init__(self, seed: int, first: int, count: int, rows: int, is_timed: bool) -> None:
        self._rows, self._is_timed = rows, is_timed
        begin, end = first // WIDTH, -(-(first + count) // WIDTH)
        self._generators = [
            np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(group,))))
            for group in range(begin, end)
        ]
        self._shift = first - begin * WIDTH

    def start(self, count: int) -> Doubles:
        """Return a number from [0, 1) for the first state of each path; once, before all steps."""
        drawn = np.concatenate([generator.random(WIDTH) for generator in self._generators])
        return drawn[self._shift : self._shift + count]

    def step(self, alive: Array) -> tuple[Doubles, Doubles | None]:
        """Return the numbers of a step.

        Parameters
        ----------
        alive : ndarray of int64, shape (n,)
            The paths that go on, counted from the first one, ascending; at least one.

        Returns
        -------
        uniform : ndarray of float64, shape (rows, n)
            From [0, 1).
        sojourns : ndarray of float64, shape (n,), or None
            Of mean 1, exponentially distributed.
        """
        slots = alive + self._shift
        groups = slots // WIDTH
        present = np.flatnonzero(np.bincount(groups, minlength=len(self._generators)))
        generators = [self._generators[group] for group in present.tolist()]
        where = np.searchsorted(present, groups) * WIDTH + slots % WIDTH
        is_whole = where.size == present.size * WIDTH
        sojourns = None
        if self._is_timed:
            drawn = np.concatenate([generator.standard_exponential(WIDTH) for generator in generators])
            sojourns = drawn if is_whole else drawn.take(where)
        uniform = np.empty((self._rows, present.size * WIDTH))
        for k, generator in enumerate(generators):
            uniform[:, k * WIDTH : (k + 1) * WIDTH] = generator.random((self._rows, WIDTH))
        return (uniform if is_whole else uniform.take(where, axis=1)), sojourns
