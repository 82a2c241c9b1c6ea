"""Passes over the vectors of IDR(s) (:mod:`hybrid.matrix.space.idr`) on the host, in plain NumPy."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hybrid.base.operands import PIECE
from hybrid.base.shadow_signs import DIRECTIONS, signs
from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.parts import parts


class ShadowPasses(Protocol):
    """What IDR(s) does with whole vectors besides products.

    Directions and their images are held together: `u` and `g`, shape (s, n), float64.  `weights`, shape (n,),
    are what the elements of a vector are multiplied with before it is measured; None stands for ones.
    """

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors, and of x with itself, shape (s + 1,)."""

    def clear(self, u: Vector, g: Vector) -> None:
        """Write zeros; memory that nobody has written to yet is had by the threads that will."""

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write ``omega r + sum over j >= first of shares[j] (u[j] - omega g[j])`` to ``u[first]``."""

    def settle(
        self,
        last: int,
        taken: Vector,
        betas: Vector,
        shares: Vector,
        omega: float,
        u: Vector,
        g: Vector,
        r: Vector,
        x: Vector,
    ) -> None:
        """Take ``taken[j]`` times the vectors j < last from number `last`, move along it, aim anew.

        That is ``x += betas[last] u[last]`` and ``r -= betas[last] g[last]``, then `aim` at the next
        direction; the last one of a cycle is followed by none.  Moves of x may wait for the last one.
        """

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products ``t . r``, ``t . t`` and ``r . r``, shape (3,)."""

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move by ``omega r``: ``x += omega r``, then ``r -= omega t``."""


class NumPyShadows:
    """See `ShadowPasses`; on one thread, part by part."""

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products."""
        found = np.zeros(DIRECTIONS + 1)
        for begin in range(0, x.size, PIECE):
            piece = slice(begin, begin + PIECE)
            part = x[piece] if weights is None else x[piece] * weights[piece]
            found[:DIRECTIONS] += signs(begin, begin + part.size) @ part
            found[DIRECTIONS] += part @ part
        return found

    def clear(self, u: Vector, g: Vector) -> None:
        """Write zeros."""
        u[...] = 0.0
        g[...] = 0.0

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write the direction."""
        for part in parts(r.size):
            aimed = omega * r[part]
            for j in range(first, DIRECTIONS):
                aimed += shares[j] * (u[j, part] - omega * g[j, part])
            u[first, part] = aimed

    def settle(
        self,
        last: int,
        taken: Vector,
        betas: Vector,
        shares: Vector,
        omega: float,
        u: Vector,
        g: Vector,
        r: Vector,
        x: Vector,
    ) -> None:
        """Take the shares away, move, and aim anew."""
        for part in parts(r.size):
            for j in range(last):
                u[last, part] -= taken[j] * u[j, part]
                g[last, part] -= taken[j] * g[j, part]
            x[part] += betas[last] * u[last, part]
            r[part] -= betas[last] * g[last, part]
        if last + 1 < DIRECTIONS:
            self.aim(last + 1, shares, omega, r, u, g)

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products."""
        found = np.zeros(3)
        for begin in range(0, r.size, PIECE):
            piece = slice(begin, begin + PIECE)
            image, part = t[piece], r[piece]
            if weights is not None:
                image, part = image * weights[piece], part * weights[piece]
            found += image @ part, image @ image, part @ part
        return found

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move."""
        for part in parts(r.size):
            x[part] += omega * r[part]
            r[part] -= omega * t[part]
