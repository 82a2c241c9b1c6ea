"""The sweep: the sign of every choice's inequality, for certain.

A first pass is made in doubles with a bound on all rounding errors, underflow included; what it leaves open
is decided in whole numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.certificates.table import Places
from hybrid.checking.certificates.transitions import Transitions

Vector = NDArray[np.float64]
Signs = NDArray[np.int8]

_PART = 1 << 18  # choices taken together


class Sweep:
    """Evaluates ``sum_j w_j (x_j - y) + r - c z`` over the transitions of every choice.

    Parameters
    ----------
    transitions : Transitions

    Attributes
    ----------
    exact : int
        How many choices so far needed whole numbers.

    Notes
    -----
    In doubles each weight is within half a unit in the last place of the rational number, each difference and
    product rounds once, and a sum of m terms loses at most m - 1 roundings of the sum of magnitudes, in any
    order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2).  The bound charged,
    (m + 16) 2^-52 times the sum of magnitudes as computed, is more than twice that; a product may underflow
    by 2^-1075, for which 2^-1070 is charged.  Numbers of the model beyond 2^±1000 are left to whole numbers.
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
        """Return the sign of ``sum_j w_j (x_j - center) + earned - scale * offset`` for every choice.

        Parameters
        ----------
        x, center, offset : ndarray of float64, shape (states,)
            Finite, or positive infinity in `x`, which makes the sum infinite.
        earned, scale : ndarray of int32, shape (choices,)
            Places in the table.
        wanted : ndarray of bool, shape (choices,), optional
            Which choices are asked for; the others get 0.

        Returns
        -------
        ndarray of int8, shape (choices,)
            -1, 0 or 1, exactly.
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
        """Return the signs of adjacent choices as far as doubles decide them, and where they do."""
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
