"""Rewards in a UMB file: of states, of choices, and of branches, which are folded into their choice's."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.explicit_model import ExplicitReward
from hybrid.interchange.folding import folded
from hybrid.interchange.umb.arrays import UmbArrays
from hybrid.interchange.umb.schema import StoredAnnotation, UmbIndex

Numbers = NDArray[np.int64]
Vector = NDArray[np.float64]


class RewardReader:
    """Reads the reward structures of a model.

    Parameters
    ----------
    arrays : UmbArrays
    index : UmbIndex
    row_starts : ndarray of int64
        Of the model: a row a choice, in a chain a row a state.
    probabilities : ndarray of float64, shape (n_branches,)
        Of branches, before exit rates make them rates.
    units : float
        Their relative error in units of 2^-53.
    state_choices : ndarray of int64, shape (n_states + 1,), or None
        Of a chain some of whose states have no choice: where the choices of its states begin.
    """

    def __init__(
        self,
        arrays: UmbArrays,
        index: UmbIndex,
        row_starts: Numbers,
        probabilities: Vector,
        units: float,
        state_choices: Numbers | None,
    ) -> None:
        self._arrays = arrays
        self._index = index
        self._row_starts = row_starts
        self._probabilities = probabilities
        self._units = units
        self._state_choices = state_choices

    def all(self) -> tuple[ExplicitReward, ...]:
        """Return all reward structures, in the order of the index."""
        return tuple(self._reward(stored) for stored in self._index.rewards)

    def _numbers(self, stored: StoredAnnotation, entity: str) -> tuple[Vector, float] | None:
        if entity not in stored.entities:
            return None
        place = f"annotations/rewards/{stored.identifier}/{entity}/values.bin"
        found = self._arrays.numbers(place, stored.type)
        return (np.zeros(self._index.count(entity)), 0.0) if found is None else found

    def _reward(self, stored: StoredAnnotation) -> ExplicitReward:
        states = self._numbers(stored, "states")
        choices = self._numbers(stored, "choices")
        branches = self._numbers(stored, "branches")
        if choices is not None and self._state_choices is not None:
            has_choice = np.diff(self._state_choices) > 0
            of_states = np.zeros(self._index.n_states)
            of_states[has_choice] = choices[0]
            choices = of_states, choices[1]
        if branches is not None:
            expected = self._folded(*branches)
            choices = expected if choices is None else _sum(choices, expected)
        # PRISM numbers structures without a name.
        name = stored.alias if stored.alias is not None else stored.identifier
        return ExplicitReward(
            name=None if stored.alias is None and name.isdigit() else name,
            states=None if states is None else states[0],
            choices=None if choices is None else choices[0],
            units=max(0.0 if part is None else part[1] for part in (states, choices)),
        )

    def _folded(self, rewards: Vector, units: float) -> tuple[Vector, float]:
        """Return what choices earn on average; where all branches of a choice earn the same, exactly that."""
        starts = self._row_starts
        filled = np.flatnonzero(np.diff(starts))
        expected = np.zeros(len(starts) - 1)
        if not filled.size:
            return expected, 0.0
        least = np.minimum.reduceat(rewards, starts[filled])
        is_same = least == np.maximum.reduceat(rewards, starts[filled])
        if is_same.all():
            expected[filled] = least
            return expected, units
        # Conditional on the jump, so that neither exit rates nor sums a little beside 1 count.
        expected, lost = folded(starts, self._probabilities, rewards, per_jump=True)
        inherited = units + 2.0 * self._units  # lemma: entry-units
        if inherited:
            # Relative errors of the numbers bound that of a sum of one sign alone.
            most = np.maximum.reduceat(rewards, starts[filled])
            if ((least < 0) & (most > 0)).any():
                return expected, math.inf
        return expected, (lost + inherited) * (1.0 + 2.0**-40)  # lemma: entry-units


def _sum(left: tuple[Vector, float], right: tuple[Vector, float]) -> tuple[Vector, float]:
    """Return the sum of what choices earn themselves and of what their branches earn."""
    total = left[0] + right[0]
    units = max(left[1], right[1])
    both = (left[0] != 0) & (right[0] != 0)
    if not both.any():
        return total, units
    if units and ((left[0] < 0) != (right[0] < 0))[both].any():
        return total, math.inf
    return total, (units + 1.0) * (1.0 + 2.0**-40)  # lemma: entry-units
