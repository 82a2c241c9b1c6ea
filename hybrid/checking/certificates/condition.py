"""A condition on vectors: inequalities of one step in every state, checked or told where they fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.search import Search
from hybrid.checking.certificates.sweep import Sweep
from hybrid.checking.certificates.table import Places

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class Condition(ABC):
    """The conditions on the vectors of one operator.

    Attributes
    ----------
    sweep : Sweep
    search : Search
    maximise : bool or None
        The optimum over the choices of an MDP; None for a chain.
    """

    sweep: Sweep
    search: Search
    maximise: bool | None

    name = ""
    least, greatest = 0.0, np.inf  # what the values may be
    has_bias = False

    @abstractmethod
    def lower_faults(self, lower: Vector) -> tuple[Mask, str]:
        """Return the states in which a lower vector fails, and at what."""

    @abstractmethod
    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return the states in which an upper vector fails, and at what."""

    def check(self, lower: Vector, upper: Vector) -> None:
        """Raise unless both vectors hold.

        Raises
        ------
        CertificateError
            Names a state, the inequality and what stands on both sides.
        """
        for vector, side in ((lower, "lower"), (upper, "upper")):
            wrong = np.isnan(vector) | (vector < self.least) | (vector > self.greatest)
            if wrong.any():
                place = int(np.flatnonzero(wrong)[0])
                raise CertificateError(
                    f"{self.name}, {side} vector: expected values from {self.least} to {self.greatest}, got "
                    f"{vector[place]!r} in state {self._describe(place)}"
                )
        for vector, faults in ((lower, self.lower_faults), (upper, self.upper_faults)):
            mask, what = faults(vector)
            if mask.any():
                place = int(np.flatnonzero(mask)[0])
                raise CertificateError(
                    f"{self.name}: {what} does not hold in state {self._describe(place)}: "
                    f"{self._sides(vector, place)}"
                )

    # ------------------------------------------------------------------ helpers

    def _describe(self, place: int) -> str:
        return self.sweep.transitions.states.describe(place)

    def _sides(self, vector: Vector, place: int) -> str:
        """Return both sides of a state's inequality, as numbers to read."""
        image = self.images(vector)
        first = self.sweep.transitions.first
        found = image[int(first[place]) : int(first[place + 1])].tolist()
        shown = ", ".join(repr(v) for v in found[:4]) + (", ..." if len(found) > 4 else "")
        return f"the vector has {float(vector[place])!r}, one step gives {shown}"

    def images(self, x: Vector) -> Vector:
        """Return about what one step makes of a vector, for every choice; for messages, and to mend."""
        t = self.sweep.transitions
        doubles, _ = t.states.table.doubles()
        heads = t.begin[:-1].astype(np.intp)
        with np.errstate(all="ignore"):
            weights = doubles[t.weight]
            flow = np.add.reduceat(weights * x[t.target], heads)
            earned = self.gains()
            if earned is not None:
                flow = flow + doubles[earned]
            found: Vector = flow / np.add.reduceat(weights, heads)
        return found

    def unknown(self, middle: Vector) -> Mask:
        """Return the states whose values near `middle` are those of an equation ``x = f(x)``."""
        return np.zeros(middle.size, np.bool_)

    def gains(self) -> Places | None:
        """Return what a step earns in the equation ``x = f(x)``, scaled; None for nothing."""
        return None

    def _of_states(self, choices: Mask, every: bool) -> Mask:
        """Return the states all of whose choices are marked, or some."""
        heads = self.sweep.transitions.first[:-1].astype(np.intp)
        gather = np.logical_and if every else np.logical_or
        return np.asarray(gather.reduceat(choices, heads))

    def _choices_of(self, states: Mask) -> Mask:
        return np.asarray(states[self.sweep.transitions.state])
