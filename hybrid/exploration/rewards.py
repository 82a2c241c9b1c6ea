"""Labels and rewards of states that are listed, with a bound on what rounding costs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.simulation.variables import Ints, Variables
from mtbdd.faults import BuildError
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import Fault
from mtbdd.language.model_syntax import RewardItem, RewardStructure
from mtbdd.language.syntax import Expression
from mtbdd.rewards import relative_units

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True)
class Numbers:
    """Numbers of states, and a bound on the absolute error of each.

    Attributes
    ----------
    values, error : ndarray of float64, shape (n,)
    """

    values: Vector
    error: Vector

    @classmethod
    def zeros(cls, n: int) -> Numbers:
        """Return n zeros."""
        return cls(np.zeros(n), np.zeros(n))

    def plus(self, other: Numbers) -> Numbers:
        """Return the sum; adding to zero costs nothing."""
        values = self.values + other.values
        rounding = np.where((self.values == 0) | (other.values == 0), 0.0, np.abs(values) * _UNIT)
        return Numbers(values, (self.error + other.error + rounding) * _UP)

    def times(self, factor: Vector, units: float) -> Numbers:
        """Return the product with factors that are not negative, off by some units."""
        values = self.values * factor
        exact = (values == 0) | (factor == 1) | (self.values == 1)
        size = np.abs(values)
        error = self.error * factor + size * (units * _UNIT) + np.where(exact, 0.0, size * _UNIT)
        return Numbers(values, error * (1 + units * _UNIT) * _UP)


class ListedStates:
    """Expressions over states that are listed.

    Parameters
    ----------
    variables : Variables
    states : ndarray of int64, shape (variables, n)
    initial, deadlocks : ndarray of bool, shape (n,)
        What the labels "init" and "deadlock" mean.
    """

    def __init__(self, variables: Variables, states: Ints, initial: Mask, deadlocks: Mask) -> None:
        self._variables, self._states = variables, states
        self.n = states.shape[1]
        self._environment: Mapping[str, Any] = {
            **{name: variables.typed(row, states[row]) for row, name in enumerate(variables.names)},
            '"init"': initial,
            '"deadlock"': deadlocks,
        }

    def where(self, expression: Expression, what: str) -> Mask:
        """Return where a condition holds.

        Raises
        ------
        BuildError
            It has no value in some state.
        """
        self._require(expression, np.ones(self.n, dtype=np.bool_), what)
        found: Mask = enclose(expression, self._environment, (self.n,)).values.astype(np.bool_)
        return found

    def earned(self, items: Sequence[RewardItem], among: Mask | None = None) -> Numbers:
        """Return the sum of some reward items, in the states that count."""
        total = Numbers.zeros(self.n)
        for item in items:
            where = self.where(item.guard, "the guard of a reward")
            if among is not None:
                where = where & among
            if not where.any():
                continue
            self._require(item.value, where, "a reward")
            found = enclose(item.value, self._environment, (self.n,), where)
            values = np.where(where, found.values.astype(np.float64), 0.0)
            self._refuse(item, np.isfinite(values), "expected a reward that is a finite number, got none")
            error = np.zeros(self.n) if found.error is None else np.where(where, found.error, 0.0)
            wide = np.abs(values) >= 2.0**53  # integers that doubles may not hold
            total = total.plus(Numbers(values, np.where(wide, error + np.abs(values) * _UNIT, error)))
        return total

    def units(self, structure: RewardStructure, found: Numbers) -> float:
        """Return a bound on the relative error of rewards, in units.

        Raises
        ------
        BuildError
            They cancel so far that it is not known whether anything is left, or leave the doubles.
        """
        sure = np.isfinite(found.values) & ((found.error == 0) | (np.abs(found.values) > found.error))
        if not sure.all():
            state = self._variables.text(self._states[:, int(np.argmin(sure))])
            message = "expected rewards that add up to a number of known sign, got none"
            raise BuildError(
                [Fault(structure.position, f"{message} in state {state}; write them as one item")]
            )
        return relative_units(found.values, found.error)

    def _require(self, expression: Expression, where: Mask, what: str) -> None:
        """Refuse an expression that has no value in a state that counts."""
        needed = self._variables.definedness(expression)
        defined = enclose(needed, self._environment, (self.n,)).values.astype(np.bool_)
        if not (defined | ~where).all():
            state = self._variables.text(self._states[:, int(np.argmin(defined | ~where))])
            raise BuildError([Fault(expression.position, f"{what} has no value in state {state}")])

    def _refuse(self, item: RewardItem, sound: Mask, message: str) -> None:
        if not sound.all():
            state = self._variables.text(self._states[:, int(np.argmin(sound))])
            raise BuildError([Fault(item.position, f"{message} in state {state}")])
