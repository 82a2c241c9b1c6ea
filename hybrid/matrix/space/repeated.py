"""Krylov methods with several damped steps for a product, whose numbers are the host's.

The step ``T x = (1 - w) x + w (M x + b) / diagonal`` leaves the solution as it is, and so do k of them. Their
change of x is the residual of a system with the same solution. Its matrix is ``I - T^k`` without b, a
polynomial of ``A = I - M / diagonal``. The recurrence passes over its vectors once in k products. On long
walks it converges where plain products stagnate. Damped, the steps know no period: -1 is an eigenvalue of
many a chain, and 1 would be one of its square.

An anchor s (:mod:`hybrid.solvers.average_krylov`) may lie in one of the processes that share the states, and
no step can read it in the others.  So steps know of none, and the image of a vector of ones makes up for
that: with ``T^k x + S b`` what k steps make of x and a right-hand side b, the system is

    ((I - T^k) + c e_s') x = S b    with c = S 1,

for its solution has x[s] for the constant that the right-hand side loses in every step.  An image takes one
number sent to the other processes, and one vector more. Source of the idea: Saad, Iterative Methods for
Sparse Linear Systems, 2nd ed., 2003, §12.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.idr import IDR, Images
from hybrid.matrix.space.passes import Passes
from mtbdd.base.communicator import AgreedMemoryError

Array = Any
Made = TypeVar("Made")

STEPS = 8
"""Steps of a product."""

OMEGA = 0.9
"""Relaxation of a step."""

REPEATED_CYCLES = 4 * IDR.cycles
"""Cycles without any gain: of a queue that fills bounds gain nothing in most cycles, and then all at once."""

PlainImages = Callable[["Array | None", "int | None"], Images]


def repeat(step: Callable[[Array, Array], object], x: Array, between: Array, out: Array) -> None:
    """Make `STEPS` steps from x to `out`.

    Parameters
    ----------
    step : callable
        Writes what a step makes of a vector to another one: ``step(x, out)``.
    between : array, shape (n,), float64
        For iterates between the first and the last; neither x nor `out`.
    """
    for left in reversed(range(STEPS)):
        target = between if left % 2 else out
        step(x, target)
        x = target


class Repetition(Protocol):
    """`STEPS` damped steps of a system, as one."""

    def with_right(self, x: Array, out: Array) -> None:
        """Write what the steps make of x to `out`."""

    def without(self, x: Array, out: Array) -> None:
        """Write what they make of x without right-hand side."""

    def of_ones(self, out: Array) -> Array:
        """Return what they make of ones on the right-hand side, from zero; `out` is overwritten."""


class RepeatedImages:
    """See :class:`hybrid.matrix.space.idr.Images`; residuals and products of the system that steps solve.

    Parameters
    ----------
    passes : Passes
        Of all processes.
    steps : Repetition
    anchor : int or None
        Number of an element of x; negative where another process has it.

    Attributes
    ----------
    made : int
        Products so far.
    """

    def __init__(self, passes: Passes, steps: Repetition, anchor: int | None) -> None:
        self._passes, self._steps, self._anchor = passes, steps, anchor
        self._of_ones: Array = None
        self.made = 0

    def residual(self, x: Array, out: Array) -> None:
        """Write what the steps change in x, with the anchor's element taken from the right-hand side."""
        if self._anchor is not None and self._of_ones is None:
            self._of_ones = self._steps.of_ones(out)
            self.made += STEPS
        self._steps.with_right(x, out)
        self.made += STEPS
        self._passes.add_scaled(-1.0, x, out)
        self._add_anchored(-1.0, x, out)

    def apply(self, x: Array, out: Array) -> None:
        """Write x less what steps without right-hand side make of it, and what its anchor makes."""
        self._steps.without(x, out)
        self.made += STEPS
        self._passes.subtract_from(x, out)
        self._add_anchored(1.0, x, out)

    def _add_anchored(self, sign: float, x: Array, out: Array) -> None:
        """Add what the anchor makes of ones, to an image or, with -1, to a residual."""
        if self._anchor is not None:
            self._passes.add_scaled(sign * self._passes.element(x, self._anchor), self._of_ones, out)


class RepeatedIDR(IDR):
    """IDR(s) over the images of several steps; a cycle is ``(s + 1) STEPS`` products."""

    steps, cycles = STEPS, REPEATED_CYCLES


class RepeatedSystem:
    """``diagonal * x = M x + b`` by several steps; a `hybrid.matrix.space.vector_space.Preconditioner`.

    One of its two vectors more is made for an anchor alone.

    Parameters
    ----------
    passes : Passes
    steps : callable
        Returns the steps for a right-hand side, that of the system for None, with room for the image of ones
        if there is an anchor: ``steps(b, is_anchored)``.
    copied : callable
        Copies a vector to where the others are.
    plain : callable
        Returns the images of the system as it is: ``plain(b, anchor)``.
    agreed : callable
        Returns in all processes whether a condition holds in each of them.
    """

    probes, more_vectors, is_worth_it = 0, 2, True

    def __init__(
        self,
        passes: Passes,
        steps: Callable[[Array | None, bool], Repetition],
        copied: Callable[[Any], Array],
        plain: PlainImages,
        agreed: Callable[[bool], bool] = bool,
    ) -> None:
        self._passes, self._steps, self._copied = passes, steps, copied
        self._plain, self._agreed = plain, agreed

    def idr(
        self,
        b: Array | None,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        directions: int = DIRECTIONS,
    ) -> RepeatedIDR:
        """See `Preconditioner.idr`."""

        def make() -> RepeatedIDR:
            images, plain = self._images(b, anchor)
            x = self._copied(start)
            return RepeatedIDR(self._passes, images, x, limit, weights, plain=plain, directions=directions)

        return self._together(make)

    def _images(self, b: Array | None, anchor: int | None) -> tuple[RepeatedImages, Images]:
        steps = self._steps(b, anchor is not None)
        return RepeatedImages(self._passes, steps, anchor), self._plain(b, anchor)

    def _together(self, make: Callable[[], Made]) -> Made:
        """Return what every process has room for.

        Raises
        ------
        AgreedMemoryError
            In all of them, if one has none: what is free may be cut into pieces.
        """
        try:
            made = make()
        except MemoryError:
            made = None
        if self._agreed(made is not None) and made is not None:
            return made
        raise AgreedMemoryError("the vectors of a recurrence of several steps find no room in some process")
