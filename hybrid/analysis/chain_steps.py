"""Steps of a chain within a set of states, with what they cost; see :mod:`hybrid.analysis.transient`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.dense_powers import FEWEST_STEPS, DensePowers, dense_powers, dense_powers_pay
from hybrid.analysis.held_matrices import injected, place_beside
from hybrid.analysis.row_sums import leaving_rates
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.transient_errors import Course, StepErrors, least_positive
from hybrid.base.arrays import elements, extremes, to_host
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.divided_matrix import DividedMatrix
from hybrid.matrix.operators.rounding import far_from_underflow, step_slack
from hybrid.matrix.space.bounded_solution import UNIT, positive_after, underflow_of
from hybrid.matrix.space.host import workspace_of
from hybrid.matrix.space.workspace import Array, Pair
from mtbdd.build.model import SymbolicModel
from mtbdd.language.syntax import ModelType
from mtbdd.offset.offset import SCALED_UNITS
from mtbdd.offset.row_entries import row_entries
from mtbdd.offset.states import StateIndex

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that P has a diagonal and no period
_VECTORS = 5  # two iterates, the sum, and the operands of the steps


class ChainSteps:
    """Steps of a chain within a set of states.

    Parameters
    ----------
    model : SymbolicModel
    within : StateIndex
        The states; all others are worth `b` when they are entered, and then nothing more.
    b : ndarray of float64, shape (within.size,), or callable, optional
        Not negative; per step (DTMC) or unit of time (CTMC).  A callable is given the set and returns the
        vector in the set's place.
    options : CheckOptions
    work : Work
        Takes the account.
    places : ndarray of int64, optional
        States of the set whose values are returned; default all of it.

    Attributes
    ----------
    there : StateIndex
        The set, with vectors where the matrix lies.
    """

    def __init__(
        self,
        model: SymbolicModel,
        within: StateIndex,
        b: Vector | Callable[[StateIndex], Vector] | None,
        options: CheckOptions,
        work: Work,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self.continuous = model.type is ModelType.CTMC
        self._work, self._criterion, self._within, self._places = work, options.criterion, within, places
        entered = model.submatrix(within, within, diagonal=not self.continuous)
        self._matrix = injected(entered, options, beside=True)
        self.there = within.at(place_beside(self._matrix))
        self._space = workspace_of(self._matrix)
        terminals = np.abs(self._matrix.symbolic.terminals)
        alike = self._alike = model.communicator
        self._least_entry = alike.least(float(terminals.min(initial=1.0)))
        # Where leaving the set is worth something, a value of a CTMC is a probability.
        self._least_bound = 0.0 if b is None else 1.0
        self._b: Vector | None = b(self.there) if callable(b) else b
        if self._b is not None:
            self._b = self.there.place.array(self._b)
        entries = row_entries(model.transitions)
        slack = absolute = step_slack(self._matrix, 4)  # lemma: rounding, steps
        if self.continuous:
            rates, shared = leaving_rates(model, self.there, options)
            self.rate = _ABOVE * alike.greatest(max(extremes(rates)[1], 0.0))
            self._divisor = rates
            system = self._space.system(rates, self._b)
            self._steps = system.uniformised(self.rate or 1.0)
            # The rounding errors of exit rates, of 1 / q and of their products count most where little of a
            # state's own value is kept. Fused multiply-adds make fewer.
            # lemma: steps, uniformisation
            exit_error = (entries + model.entry_units - SCALED_UNITS + shared + 6) * UNIT
            slack += exit_error * _ABOVE / (_ABOVE - 1.0)  # lemma: steps, uniformisation
            # lemma: steps, uniformisation
            absolute += exit_error
            # A time that is no double changes the weights by a unit a step in all, and each by two or so.
            # lemma: uniformisation
            slack += 3 * UNIT
            # lemma: uniformisation
            absolute += UNIT
        else:
            self.rate = 1.0
            totals = model.exit_rates(self.there)
            least, most = extremes(totals)
            near = alike.all(least >= 1.0 - 8.0 * UNIT and most <= 1.0 + 8.0 * UNIT)
            self._divisor = self._space.ones(within.size) if near else totals
            greatest = alike.greatest(1.0 if near else max(most, 1.0))
            self._steps = self._space.system(self._divisor, self._b).relaxation()
            # lemma: steps
            slack += (entries + 8) * UNIT
            absolute = slack
        self._most = self.rate if self.continuous else greatest
        lost = underflow_of(np.array([self._most or 1.0]), slack)
        self._errors = StepErrors(slack, absolute, lost, alike)

    def _asked_for(self, found: StateValues) -> StateValues:
        return found if self._places is None else found.at(self._places)

    def _told(self, x: Array) -> Vector:
        """Return what is asked for of a vector over the set, on the host."""
        told: Vector = to_host(x) if self._places is None else elements(x, self._places)
        return told

    def _leaps(self, start: Array, steps: int) -> DensePowers | None:
        """Return the steps as powers of a dense matrix where that pays: not if values settle before long."""
        size = self._matrix.shape[0]
        if isinstance(self._matrix, DividedMatrix) or not dense_powers_pay(size, steps):
            return None
        start = to_host(start)
        divisor, b = to_host(self._divisor), None if self._b is None else to_host(self._b)
        leaps = dense_powers(self._matrix, divisor, self.rate if self.continuous else None, b)
        x = leaps.after(start, FEWEST_STEPS // 2)
        change = float(np.abs(leaps.after(x, 1) - x).max())
        there = self._space.vector(x)
        return None if self._may_stop(there, change, steps - FEWEST_STEPS // 2, Course()) else leaps

    def _vectors(self, start: Array) -> Pair:
        """Return the start and room for the value after a step, in the workspace."""
        self._space.reserve(self._space.more(_VECTORS, self._divisor), start.size)
        return self._space.vector(self._placed(start)), self._space.xp.empty(start.size)

    def _placed(self, x: Array) -> Array:
        """Return a vector of a device on the host, where the matrix is; one of the host as it is."""
        return x if isinstance(x, np.ndarray) else self.there.place.array(x)

    def _may_stop(self, x: Array, change: float, remaining: int, course: Course) -> bool:
        """Return whether the steps still to come may be left out, and note the error if so."""
        error = self._errors.of_steps_left_out(self._space, x, change, remaining, self._criterion)
        if error is not None:
            # lemma: steps-left-out
            course.left_out = error
        return error is not None

    def _positive_after(self, told: Vector, start: Array, steps: int, made: int) -> NDArray[np.bool_] | None:
        """Return where exact values after some steps are positive, shape as `told`; None if not known.

        Notes
        -----
        Computed zeros are exact unless something on the way can have underflown.  Then the steps are made
        with zeros and ones; if that takes many more than were `made` nothing is known.
        """
        positive: NDArray[np.bool_] = told > 0.0
        if steps == 0 or self._alike.all(positive.all()):
            return positive
        seeds = [self._least_positive(start)]
        if self._b is not None:
            seeds.append(self._least_positive(self._b) / self._most)
        met = np.array([seed for seed in seeds if math.isfinite(seed)])
        if self._alike.all(far_from_underflow(met, self._least_entry / self._most, steps)):
            return positive
        space, b = self._space, None if self._b is None else self._space.vector(self._b > 0.0)

        def step(inside: Array, out: Array) -> None:
            space.multiply(inside, out)
            self._work.products += 1
            if b is not None:
                out += b

        found = positive_after(space, space.vector(self._placed(start) > 0.0), step, steps, made)
        return found if found is None or self._places is None else found[self._places]

    def _least_positive(self, x: Array) -> float:
        """Return the least positive element; infinite if there is none."""
        if isinstance(x, np.ndarray) and x.size and x.strides == (0,):
            x = x[:1]
        return float(least_positive(np if isinstance(x, np.ndarray) else self._space.xp, x))

    def _account(self, steps: int, seconds: float) -> None:
        """Add the steps made to the account of the work."""
        matrix = self._matrix
        base = 8 * _VECTORS * matrix.shape[0]
        method = "uniformisation" if self.continuous else "steps"
        self._work.synchronisations += self._space.synchronisations
        self._work.note(method, matrix, steps, seconds, base)
        self._work.products += steps
