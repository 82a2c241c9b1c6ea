"""The conditions under which a lower vector l and an upper vector u enclose the values ``x = f(x)``.

Each is an inequality of one step, ``l <= f(l)`` and ``u >= f(u)``; where the equation has more than one
solution, a condition on the graph is added.  docs/certificates.md states and proves them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.sweep import Sweep
from hybrid.checking.certificates.table import Places
from hybrid.checking.certificates.transitions import Search

# A condition on vectors: inequalities of one step in every state, checked or told where they fail.

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


@dataclass
class Until(Condition):
    """The probability of ``safe U target``."""

    safe: Mask
    target: Mask

    name = "until probabilities"
    greatest = 1.0

    def unknown(self, middle: Vector) -> Mask:
        """Return the safe states whose probability is neither 0 nor 1."""
        return self.safe & ~self.target & (middle > 0) & (middle < 1)

    def lower_faults(self, lower: Vector) -> tuple[Mask, str]:
        """Return where ``l <= f(l)`` fails, or where nothing leads from a positive value to the target."""
        lost = ~self.safe & ~self.target & (lower > 0)  # lemma: lower-probability
        if lost.any():
            return lost, "l = 0 outside of the safe and target states"
        inside = (lower > 0) & ~self.target
        # lemma: lower-probability
        holds = self.sweep.signs(lower, lower, wanted=self._choices_of(inside)) >= 0
        wrong = inside & ~self._of_states(holds, every=not self.maximise)
        if wrong.any():
            return wrong, "l <= f(l)"
        base = self.target | (lower == 0)  # lemma: lower-probability
        # lemma: lower-probability
        reached = self.search.every(base) if self.maximise is False else self.search.some(base, holds)
        return (
            inside & ~reached,
            "that the target or l = 0 is reached from l > 0 by choices with l <= f(l)",
        )

    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return where ``u >= f(u)`` fails."""
        low = self.target & (upper < 1)  # lemma: upper-probability
        if low.any():
            return low, "u = 1 in the target"
        inside = (upper < 1) & self.safe & ~self.target
        # lemma: upper-probability
        holds = self.sweep.signs(upper, upper, wanted=self._choices_of(inside)) <= 0
        return inside & ~self._of_states(holds, every=self.maximise is not False), "u >= f(u)"


@dataclass
class Next(Condition):
    """The probability that the next state lies in a set."""

    target: Mask

    name = "next-step probabilities"
    greatest = 1.0

    def lower_faults(self, lower: Vector) -> tuple[Mask, str]:
        """Return where ``l`` is greater than the probability of one step."""
        # lemma: one-step
        holds = self.sweep.signs(self.target.astype(np.float64), lower) >= 0
        return ~self._of_states(holds, every=not self.maximise), "l <= P(next in the set)"

    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return where ``u`` is less than the probability of one step."""
        holds = self.sweep.signs(self.target.astype(np.float64), upper) <= 0  # lemma: one-step
        every = self.maximise is not False
        return ~self._of_states(holds, every=every), "u >= P(next in the set)"

    def images(self, x: Vector) -> Vector:
        """Return about the probabilities of one step, for every choice."""
        return super().images(self.target.astype(np.float64))


@dataclass
class Total(Condition):
    """The expected reward until a set is reached; infinite where that is not sure."""

    target: Mask
    earned: Places

    name = "expected rewards"

    def __post_init__(self) -> None:
        signs = self.sweep.transitions.states.table.signs()[self.earned]
        negative = self._of_states(signs < 0, every=False) & ~self.target
        self._losing = bool(negative.any())
        if self._losing and self.maximise is not None:
            raise NotCertifiableError("rewards below zero in an MDP have no certificate")
        if self._losing:
            self.least = -np.inf

    def gains(self) -> Places:
        """Return what a step earns, scaled."""
        return self.earned

    def unknown(self, middle: Vector) -> Mask:
        """Return the states outside of the target with a finite reward other than zero."""
        found: Mask = ~self.target & np.isfinite(middle) & (middle != 0)
        return found

    def lower_faults(self, lower: Vector) -> tuple[Mask, str]:
        """Return where ``l <= r + P l`` fails, or where l is infinite and the value is not."""
        above = self.target & (lower > 0)  # lemma: lower-reward
        if above.any():
            return above, "l <= 0 in the target"
        endless = np.isposinf(lower)
        if endless.any():
            wrong = endless & ~self._may_miss()  # lemma: lower-reward
            if wrong.any():
                return wrong, "that the target is missed with positive probability where l is infinite"
            if self._losing:
                return endless, "that no reward below zero is earned where values are infinite"
        if bool(np.isneginf(lower).any()):
            return np.isneginf(lower), "l > -infinity"
        inside = ~endless & ~self.target
        if not self._losing:
            inside &= lower > 0
        center = np.where(endless, 0.0, lower)
        # lemma: lower-reward
        holds = self.sweep.signs(lower, center, self.earned, wanted=self._choices_of(inside)) >= 0
        wrong = inside & ~self._of_states(holds, every=not self.maximise)
        if wrong.any() or not self._losing:
            return wrong, "l <= r + P l"
        # lemma: signed-reward
        return inside & ~self.search.some(self.target), "that the target is reached from every state"

    def _may_miss(self) -> Mask:
        """Return where the value is infinite: the target is missed with positive probability."""
        if self.maximise is False:
            return ~self.search.surely(self.target)  # lemma: lower-reward
        return self.search.sources_avoiding(~self.search.every(self.target), self.target)

    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return where ``u >= r + P u`` fails, or where the target is not surely reached."""
        below = self.target & (upper < 0)  # lemma: upper-reward
        if below.any():
            return below, "u >= 0 in the target"
        if bool(np.isneginf(upper).any()):
            return np.isneginf(upper), "u > -infinity"
        finite = np.isfinite(upper)
        inside = finite & ~self.target
        center = np.where(finite, upper, 0.0)
        wanted = self._choices_of(inside)
        # lemma: upper-reward
        holds = (self.sweep.signs(upper, center, self.earned, wanted=wanted) <= 0) & wanted
        wrong = inside & ~self._of_states(holds, every=self.maximise is not False)
        if wrong.any():
            return wrong, "u >= r + P u"
        if self.maximise is False:
            reached = self.search.some(self.target, holds)  # lemma: upper-reward
        else:
            reached = self.search.every(self.target)  # lemma: upper-reward
        return inside & ~reached, "that the target is surely reached where u is finite"


@dataclass
class Average(Condition):
    """The long-run average of a reward in a chain."""

    earned: Places
    scale: Places
    bias: Vector

    name = "long-run averages"
    least = -np.inf
    has_bias = True

    def lower_faults(self, lower: Vector) -> tuple[Mask, str]:
        """Return where ``l <= P l``, or in the long run ``l <= r + P h - h``, fails."""
        return self._faults(lower, 1)

    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return where ``u >= P u``, or in the long run ``u >= r + P h - h``, fails."""
        return self._faults(upper, -1)

    def _faults(self, bound: Vector, sign: int) -> tuple[Mask, str]:
        letter, relation = ("l", "<=") if sign > 0 else ("u", ">=")
        endless = ~np.isfinite(bound)
        if endless.any():
            return endless, f"that {letter} is finite"
        wrong = self.sweep.signs(bound, bound) * sign < 0  # lemma: average
        if wrong.any():
            return wrong, f"{letter} {relation} P {letter}"
        # Where the second inequality fails the chain must be bound to go, and never to come back.
        # lemma: average
        fails = self.sweep.signs(self.bias, self.bias, self.earned, self.scale, bound) * sign < 0
        settled = ~self.search.some(fails)  # lemma: average
        wrong = fails & ~self.search.some(settled)
        return wrong, f"{letter} {relation} r + P h - h in the states visited for ever"

    def _sides(self, vector: Vector, place: int) -> str:
        t = self.sweep.transitions
        doubles, _ = t.states.table.doubles()
        entries = slice(int(t.begin[place]), int(t.begin[place + 1]))
        with np.errstate(all="ignore"):
            moved = doubles[t.weight[entries]] @ (self.bias[t.target[entries]] - self.bias[place])
            rho = (moved + doubles[self.earned[place]]) / doubles[self.scale[place]]
        return f"{super()._sides(vector, place)}; r + P h - h is {float(rho)!r}"
