"""The conditions under which a lower vector l and an upper vector u enclose the values ``x = f(x)``.

Each is an inequality of one step, ``l <= f(l)`` or ``u >= f(u)``. Where the equation has more than one
solution, a condition on the graph is added. docs/certificates.md states and proves them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.states import Places
from hybrid.checking.certificates.transitions import Search, Transitions

# The sweep: the sign of every choice's inequality, for certain.
#
# A first pass is made in doubles with a bound on all rounding errors, underflow included; what it leaves open
# is decided in whole numbers.

Vector = NDArray[np.float64]
Signs = NDArray[np.int8]

_PART = 1 << 18  # choices taken together


class Sweep:
    """Evaluates ``sum_j w_j (x_j - y) + r - c z`` over the transitions of every choice.

    `exact` counts the choices so far that needed whole numbers.

    In doubles each weight is within half a unit in the last place of the rational number, each difference and
    product rounds once, and a sum of m terms loses at most m - 1 roundings of the sum of magnitudes, in any
    order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2). The bound charged, (m +
    16) 2^-52 times the sum of magnitudes as computed, is more than twice that; a product may underflow by
    2^-1075, for which 2^-1070 is charged. Numbers of the model beyond 2^±1000 are left to whole numbers.
    """

    def __init__(self, transitions: Transitions) -> None:
        self.transitions = transitions
        self.exact = 0
        table = transitions.states.table
        self._numbers = len(table.values)
        self._refresh()

    def _refresh(self) -> None:
        """Take the table's numbers as doubles and as whole numbers over one denominator."""
        table = self.transitions.states.table
        self._numbers = len(table.values)
        self._doubles, self._awkward = table.doubles()
        self._denominator = table.common_denominator()
        self._whole: dict[int, int] = {}

    def signs(
        self,
        x: Vector,
        center: Vector,
        earned: Places | None = None,
        scale: Places | None = None,
        offset: Vector | None = None,
        wanted: NDArray[np.bool_] | None = None,
    ) -> Signs:
        """Return every choice's sign of ``sum_j w_j (x_j - center) + earned - scale * offset``.

        `x`, `center` and `offset` have an element a state, finite, or positive infinity in `x`, which makes
        the sum infinite; `earned` and `scale` have a place in the table a choice. Choices that are not
        `wanted` get 0.
        """
        t = self.transitions
        if self._numbers != len(t.states.table.values):
            self._refresh()
        result = np.zeros(t.state.size, np.int8)
        infinite = np.isinf(x)
        finite = np.where(infinite, 0.0, x) if infinite.any() else x
        for start in range(0, t.state.size, _PART):
            choices = np.arange(start, min(start + _PART, t.state.size))
            part, decided = self._part(choices, finite, infinite, center, earned, scale, offset)
            result[choices] = part
            rest = ~decided if wanted is None else ~decided & wanted[choices]
            for choice in choices[rest].tolist():
                self.exact += 1
                result[choice] = self._sign(choice, finite, center, earned, scale, offset)
        if wanted is not None:
            result[~wanted] = 0
        return result

    def _part(
        self,
        choices: NDArray[np.int64],
        x: Vector,
        infinite: NDArray[np.bool_],
        center: Vector,
        earned: Places | None,
        scale: Places | None,
        offset: Vector | None,
    ) -> tuple[Signs, NDArray[np.bool_]]:
        """Return the signs of adjacent choices as far as doubles decide them, and where they do.

        Lemma: signs (docs/certificates.md).
        """
        t = self.transitions
        begin, end = int(t.begin[choices[0]]), int(t.begin[choices[-1] + 1])
        heads = (t.begin[choices] - begin).astype(np.intp)
        count = np.diff(t.begin[choices[0] : choices[-1] + 2])
        target, weight = t.target[begin:end], t.weight[begin:end]
        state = t.state[choices]
        with np.errstate(all="ignore"):
            gap = x[target] - np.repeat(center[state], count)
            term = self._doubles[weight] * gap
            total = np.add.reduceat(term, heads)
            size = np.add.reduceat(np.abs(term), heads)
            still = ~np.logical_or.reduceat(gap != 0, heads)
            awkward = np.logical_or.reduceat(self._awkward[weight], heads)
            if earned is not None:
                own = earned[choices]
                total, size = total + self._doubles[own], size + np.abs(self._doubles[own])
                awkward |= self._awkward[own]
                still &= own == t.states.table.zero  # lemma: signs
            if scale is not None and offset is not None:
                own = scale[choices]
                taken = self._doubles[own] * offset[state]
                total, size = total - taken, size + np.abs(taken)
                awkward |= self._awkward[own]
                still &= offset[state] == 0
            error = size * ((count + 16) * 2.0**-52) + (count + 4) * 2.0**-1070  # lemma: signs
            decided = (np.abs(total) > error) & np.isfinite(error) & ~awkward  # lemma: signs
        signs = np.where(decided, np.sign(np.where(np.isfinite(total), total, 0.0)), 0.0).astype(np.int8)
        decided |= still
        if infinite.any():
            endless = np.logical_or.reduceat(infinite[target], heads)
            signs[endless] = 1  # lemma: signs
            decided |= endless
        return signs, decided

    def _sign(
        self,
        choice: int,
        x: Vector,
        center: Vector,
        earned: Places | None,
        scale: Places | None,
        offset: Vector | None,
    ) -> int:
        """Return the sign of one choice's sum, in whole numbers."""
        value = self.value(choice, x, center, earned, scale, offset)
        return (value > 0) - (value < 0)

    def value(
        self,
        choice: int,
        x: Vector,
        center: Vector,
        earned: Places | None = None,
        scale: Places | None = None,
        offset: Vector | None = None,
    ) -> int | Fraction:
        """Return a positive multiple of one choice's sum, exactly."""
        t = self.transitions
        state, begin, end = int(t.state[choice]), int(t.begin[choice]), int(t.begin[choice + 1])
        here = _units(float(center[state]))
        total: int | Fraction = 0
        pairs = zip(t.weight[begin:end].tolist(), x[t.target[begin:end]].tolist(), strict=True)
        for weight, value in pairs:
            total += self._number(weight) * (_units(value) - here)  # lemma: signs
        if earned is not None:
            total += self._number(int(earned[choice])) * _ONE
        if scale is not None and offset is not None:
            total -= self._number(int(scale[choice])) * _units(float(offset[state]))  # lemma: signs
        return total

    def _number(self, place: int) -> int | Fraction:
        """Return a number of the table times the common denominator, or as it is if there is none."""
        value = self.transitions.states.table.values[place]
        if not self._denominator:
            return value
        found = self._whole.get(place)
        if found is None:
            found = self._whole[place] = int(value * self._denominator)
        return found


_ONE = 1 << 1074


def _units(value: float) -> int:
    """Return a finite double as a multiple of the smallest positive one."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (1075 - denominator.bit_length())


# A condition on vectors: inequalities of one step in every state, with the states where they fail.

Mask = NDArray[np.bool_]


@dataclass
class Condition(ABC):
    """The conditions on the vectors of one operator.

    `maximise` is the optimum over the choices of an MDP; None for a chain.
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
        """Raise unless both vectors hold: CertificateError names a state, the inequality and both sides."""
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
        """Return where ``l <= f(l)`` fails, or where nothing leads from a positive value to the target.

        Lemma: lower-probability (docs/certificates.md).
        """
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
        return (inside & ~reached, "that the target or l = 0 is reached from l > 0 by choices with l <= f(l)")

    def upper_faults(self, upper: Vector) -> tuple[Mask, str]:
        """Return where ``u >= f(u)`` fails.

        Lemma: upper-probability (docs/certificates.md).
        """
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
        """Return where ``l`` is greater than the probability of one step.

        Lemma: one-step (docs/certificates.md).
        """
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
        """Return where ``l <= r + P l`` fails, or where l is infinite and the value is not.

        Lemmas: lower-reward, signed-reward (docs/certificates.md).
        """
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
        """Return where ``u >= r + P u`` fails, or where the target is not surely reached.

        Lemma: upper-reward (docs/certificates.md).
        """
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
    """The long-run average of a reward."""

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
        """Return where a bound does not hold in a step.

        Lemma: average (docs/certificates.md).
        """
        letter, relation = ("l", "<=") if sign > 0 else ("u", ">=")
        endless = ~np.isfinite(bound)
        if endless.any():
            return endless, f"that {letter} is finite"
        every = not self.maximise if sign > 0 else self.maximise is not False
        moves = self.sweep.signs(bound, bound) * sign
        goes = moves >= 0  # lemma: average
        wrong = ~self._of_states(goes, every)
        if wrong.any():
            return wrong, f"{letter} {relation} P {letter}"
        # Choices by which the bound moves are taken only so often.
        still = moves == 0  # lemma: average
        # lemma: average
        earns = self.sweep.signs(self.bias, self.bias, self.earned, self.scale, bound, still) * sign >= 0
        holds, search = goes & earns, self.search
        if every:
            # Runs must leave the states where the second inequality fails, and never come back.
            settled = ~search.some(~self._of_states(holds, True))  # lemma: average
            leads = ~search.inside(~search.every(settled))  # lemma: average
            wrong = ~self._of_states(holds | leads, True)
        else:
            # Runs go to where choices that satisfy both can be made for ever.
            settled = ~search.every(~self._of_states(holds, False), holds)  # lemma: average
            wrong = ~search.some(settled, goes)  # lemma: average
        return wrong, f"{letter} {relation} r + P h - h in the states visited for ever"

    def _sides(self, vector: Vector, place: int) -> str:
        t = self.sweep.transitions
        doubles, _ = t.states.table.doubles()
        found = []
        for choice in range(int(t.first[place]), min(int(t.first[place + 1]), int(t.first[place]) + 4)):
            entries = slice(int(t.begin[choice]), int(t.begin[choice + 1]))
            with np.errstate(all="ignore"):
                moved = doubles[t.weight[entries]] @ (self.bias[t.target[entries]] - self.bias[place])
                found.append(float((moved + doubles[self.earned[choice]]) / doubles[self.scale[choice]]))
        return f"{super()._sides(vector, place)}; r + P h - h is {', '.join(map(repr, found))}"
