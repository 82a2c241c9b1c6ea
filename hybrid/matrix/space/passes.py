"""Passes over the vectors of a solution on the host, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from hybrid.base.operands import PIECE
from hybrid.base.shadow_signs import DIRECTIONS, signs
from hybrid.matrix.space.base import PART, Vector, parts


class Passes(Protocol):
    """Passes of a vector space on the host, and of recurrences, over whole vectors, besides products.

    IDR(s) holds directions and their images together: `u` and `g`, shape (s, n), float64, where s is 4 or 1.
    `weights`, shape (n,), are what the elements of a vector are multiplied with before it is measured; None
    stands for ones.  Passes are in plain NumPy, part by part, where others do not take their place.
    """

    def add_scaled(self, weight: float, x: Vector, total: Vector) -> None:
        """Add ``weight * x`` to `total`."""
        spare = np.empty(min(PART, x.size))
        # Values beyond the doubles become infinite, and those who look at them say so.
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts(x.size):
                term = np.multiply(x[part], weight, out=spare[: part.stop - part.start])
                total[part] += term

    def uniformise(self, x: Vector, b: Vector | None, diagonal: Vector, weight: float, out: Vector) -> None:
        """Turn ``out = M x`` into ``(1 - weight * diagonal) x + weight (M x + b)``."""
        spare = np.empty(min(PART, x.size))
        for part in parts(x.size):
            own, kept = out[part], spare[: part.stop - part.start]
            if b is not None:
                own += b[part]
            own *= weight
            np.multiply(diagonal[part], -weight, out=kept)
            kept += 1.0
            kept *= x[part]
            own += kept

    def greatest_changes(self, new: Vector, old: Vector) -> Vector:
        """Return the greatest ``|new - old|`` and ``|new - old| / |new|``, shape (2,).

        An undefined change makes the first number NaN; zero over zero is no change.
        """
        found = np.zeros(2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for part in parts(new.size):
                change = np.abs(new[part] - old[part])
                greatest = change.max()
                if greatest != 0.0:
                    change /= np.abs(new[part])
                    # Zero over zero is no change; an undefined change shows in the first number.
                    found[1] = max(found[1], np.fmax.reduce(change, initial=0.0))
                found[0] = np.maximum(found[0], greatest)
        return found

    def extremes(self, x: Vector) -> tuple[np.float64, np.float64]:
        """Return the least and the greatest element of a vector that is not empty; NaN if some element is.

        NumPy's numbers, and not Python's, which raise where a quotient is infinite.
        """
        return np.float64(x.min()), np.float64(x.max())

    def agreed(self, changes: Vector) -> Vector:
        """Return the greatest of every change that processes have measured: there is one process."""
        return changes

    def element(self, x: Vector, place: int) -> float:
        """Return one element; the place is negative where another process has it."""
        return float(x[place])

    def clear(self, u: Vector, g: Vector) -> None:
        """Write zeros; memory that nobody has written to yet is had by the threads that will."""
        u[...] = 0.0
        g[...] = 0.0

    def each(self, work: Callable[..., object], *vectors: Vector) -> None:
        """Call `work` with the same part of every vector, for all parts; it writes elementwise, in place."""
        for part in parts(vectors[0].size):
            work(*(vector[part] for vector in vectors))

    def image(self, x: Vector, diagonal: Vector, at_anchor: float, out: Vector) -> None:
        """Turn ``out = M x`` into ``x - (M x - at_anchor) / diagonal``."""
        for part in parts(x.size):
            own = out[part]
            own -= at_anchor
            own /= diagonal[part]
            np.subtract(x[part], own, out=own)

    def subtract_from(self, x: Vector, out: Vector) -> None:
        """Turn `out` into ``x - out``."""
        np.subtract(x, out, out=out)

    # ------------------------------------------------------------------ of IDR(s)

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors of s = 4, and of x with itself, shape (5,)."""
        found = np.zeros(DIRECTIONS + 1)
        for begin in range(0, x.size, PIECE):
            piece = slice(begin, begin + PIECE)
            part = x[piece] if weights is None else x[piece] * weights[piece]
            found[:DIRECTIONS] += signs(begin, begin + part.size) @ part
            found[DIRECTIONS] += part @ part
        return found

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write ``omega r + sum over j >= first of shares[j] (u[j] - omega g[j])`` to ``u[first]``."""
        for part in parts(r.size):
            aimed = omega * r[part]
            for j in range(first, len(u)):
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
        """Take ``taken[j]`` times the vectors j < last from number `last`, move, update the direction.

        That is ``x += betas[last] u[last]`` and ``r -= betas[last] g[last]``, then `aim` at the next
        direction; the last one of a cycle is followed by none.  Moves of x may wait for the last one.
        """
        for part in parts(r.size):
            for j in range(last):
                u[last, part] -= taken[j] * u[j, part]
                g[last, part] -= taken[j] * g[j, part]
            x[part] += betas[last] * u[last, part]
            r[part] -= betas[last] * g[last, part]
        if last + 1 < len(u):
            self.aim(last + 1, shares, omega, r, u, g)

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products ``t . r``, ``t . t`` and ``r . r``, shape (3,)."""
        found = np.zeros(3)
        for begin in range(0, r.size, PIECE):
            piece = slice(begin, begin + PIECE)
            image, part = t[piece], r[piece]
            if weights is not None:
                image, part = image * weights[piece], part * weights[piece]
            found += image @ part, image @ image, part @ part
        return found

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move by ``omega r``: ``x += omega r``, then ``r -= omega t``."""
        for part in parts(r.size):
            x[part] += omega * r[part]
            r[part] -= omega * t[part]


class NumPyPasses(Passes):
    """The passes in plain NumPy, on one thread, part by part, so that temporary results stay in the cache."""
