"""Iterates from below until a guess above them is verified: the climb of optimistic value iteration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion, Status
from hybrid.matrix.space.bellman import STAGE, BellmanOperator, Guess, Held, Leap, Outcome, Rising
from hybrid.matrix.space.bounded_solution import SearchEndedError
from hybrid.matrix.space.check_interval import CheckInterval
from hybrid.matrix.space.record import Kept, Numbers
from hybrid.matrix.space.workspace import Array, Pair, Steps

_LOOKS = 16  # in as many steps as have been made, while a leap may take over


class Climb:
    """Iterates from 0 until a guess above them is verified.

    Parameters
    ----------
    criterion : Criterion
    operator : BellmanOperator
    pair : pair of arrays, shape (n,)
        Zero; the iterates.
    guess : Guess
    outcome : Outcome
        Of all runs.
    clock : Clock
    leap : Leap, optional
        What may take over from the first run.
    kept : Kept, optional
        Where an earlier process was in its first run.
    rising : Rising, optional
        What the first run takes in the place of its steps, until a guess is due.

    Attributes
    ----------
    is_recorded : bool
        Whether states are offered to the record.
    positive : array, shape (n,), float64, or None
        One where the solution is positive, zero where it is zero; None while all iterates are far from
        underflow.
    lost : bool
        Whether positive values of some run were so near to underflow that no guess could be verified.
    """

    def __init__(
        self,
        criterion: Criterion,
        operator: BellmanOperator,
        pair: Pair,
        guess: Guess,
        outcome: Outcome,
        clock: Clock,
        leap: Leap | None = None,
        kept: Kept | None = None,
        rising: Rising | None = None,
    ) -> None:
        self.leap, self.rising, self.is_recorded = leap, rising, True
        self.criterion, self._operator, self._pair = criterion, operator, pair
        self._guess, self._outcome, self._clock = guess, outcome, clock
        self.positive: Array | None = None
        self.lost = False
        self._made, self._target, self._kept = 0, criterion.epsilon, kept

    def run(self, down: Steps) -> tuple[Array, Array | None]:
        """Iterate, and leave the outcome's status.

        Parameters
        ----------
        down : Steps
            Of the operator, or of one with a greater solution.

        Returns
        -------
        x, upper : array, shape (n,)
            The last iterate, and an upper bound of the operator's solution; None if none was verified.
        """
        try:
            return self._iterated(down)
        except SearchEndedError:
            self._keep()
            self._outcome.status = Status.INTERRUPTED
            return self._pair[self._made % 2], None

    def _iterated(self, down: Steps) -> tuple[Array, Array | None]:
        """Do as `run` does."""
        space, outcome, guess = self._operator.space, self._outcome, self._guess
        pair, self._target = self._pair, self.criterion.epsilon
        pace, outcome.status = CheckInterval(space.stride), Status.MAX_ITERATIONS
        kept, self._kept = self._kept, None
        made = self._made = 0 if kept is None else self._take(kept)
        if self.leap is not None:
            self.leap.begin(made)
        if kept is not None and STAGE in kept.numbers and self._leaps(made, kept):
            return pair[made % 2], pair[1 - made % 2]
        while outcome.iterations < self.criterion.max_iterations:
            target = self._target
            count = pace.steps(min(self.criterion.max_iterations - outcome.iterations, self._unseen(made)))
            is_finite, is_told = self._advance(self.rising or down, count), self.rising is None
            may_follow = outcome.iterations < self.criterion.max_iterations
            if outcome.difference <= target and not is_told and may_follow:
                # A guess needs to know what a step of all states at once changes.
                is_finite, is_told = self._advance(down, 1), True
            made = self._made
            if not is_finite:
                outcome.status = Status.DIVERGED
                break
            if is_told and outcome.difference <= target:
                x, y = pair[made % 2], pair[1 - made % 2]
                if self._is_lost(x) and (outcome.difference == 0.0 or not self.criterion.absolute):
                    outcome.status = Status.NO_BOUND
                    break
                wanted = guess.verified(x, y, made, outcome, self.positive)  # lemma: park
                if wanted is None:
                    outcome.status = Status.CONVERGED
                    return x, y
                if outcome.difference == 0.0:
                    outcome.status = Status.NO_BOUND
                    break
                self._target = target = min(wanted, 0.5 * target)
            elif self._leaps(made):
                return pair[made % 2], pair[1 - made % 2]
            pace.look(made, outcome.difference, target)
            if self.is_recorded:
                self._clock.offer(self.state)
            if self._clock.tick(outcome.iterations, outcome.difference):
                self._keep()
                outcome.status = Status.INTERRUPTED
                return self._ended(down)
        if outcome.status is Status.MAX_ITERATIONS and made > 0:
            self._keep()
            return self._ended(down)
        return pair[made % 2], None

    def _advance(self, steps: Steps, count: int) -> bool:
        """Make some steps, and note their last difference; return whether values are finite numbers."""
        outcome, guess = self._outcome, self._guess
        steps.sweep(self._pair, self._made, count, guess.total)
        self._made += count
        outcome.iterations += count
        self._operator.products += count
        absolute, relative = self._operator.space.read(steps.changes)
        if not math.isfinite(absolute):
            return False
        outcome.difference = guess.difference(absolute, relative)
        return True

    def _ended(self, down: Steps) -> tuple[Array, Array | None]:
        """Return the last iterate where the iteration is ended, and the bound that a few guesses find."""
        if self.rising is not None and not self.lost:
            # For the guesses' sake, which no limit counts either.
            is_finite = self._advance(down, 1)
            self._outcome.iterations -= 1
            if not is_finite:
                # The iterate before is a bound, and not what has overflowed.
                return self._pair[1 - self._made % 2], None
        x, y = self._pair[self._made % 2], self._pair[1 - self._made % 2]
        return x, y if self._ends_above(x, y, self._made) else None

    def _unseen(self, made: int) -> int:
        """Return the steps that may follow one another without a look: a pace needs looks to be seen."""
        if self.leap is None:
            return self.criterion.max_iterations
        return max(self._operator.space.stride, made // (2 * _LOOKS) * 2)

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return where the first run is; see `hybrid.matrix.space.record.State`."""
        made, outcome, total = self._made, self._outcome, self._guess.total
        vectors = {"x": self._pair[made % 2]} | ({} if total is None else {"total": total})
        numbers = {"made": made, "iterations": outcome.iterations, "difference": outcome.difference}
        rising = {} if self.rising is None else self.rising.told()
        return vectors, {**numbers, "target": self._target, **rising}

    def _keep(self) -> None:
        """Keep where the first run is, which ends before it has arrived."""
        if self.is_recorded:
            self._clock.keep(self.state)

    def _take(self, kept: Kept) -> int:
        """Go to where an earlier process was; return the steps that it had made."""
        made, outcome, total = int(kept.numbers["made"]), self._outcome, self._guess.total
        self._pair[made % 2][...] = kept.vectors["x"]
        if total is not None:
            total[...] = kept.vectors["total"]
        outcome.iterations, outcome.difference = int(kept.numbers["iterations"]), kept.numbers["difference"]
        self._target = kept.numbers["target"]
        if self.rising is not None:
            self.rising.take(kept.numbers)
        return made

    def _leaps(self, made: int, kept: Kept | None = None) -> bool:
        """Whether both bounds are found at once: the lower in the place of the iterate, the upper beside."""
        leap, outcome, total = self.leap, self._outcome, self._guess.total
        if leap is None:
            return False
        x, y, spare = self._pair[made % 2], self._pair[1 - made % 2], self._guess.scratch
        held = Held(x, y, total, spare, made, self.positive, self.state, self._target)
        most = leap.budget(held, outcome.difference) if kept is None else kept.numbers["most"]
        if most <= 0.0 or not (leap.from_anywhere or self._is_clear(x)):
            return False
        limit = self.criterion.max_iterations - outcome.iterations
        held = replace(held, positive=self.positive)
        outcome.iterations += leap.solve(held, most, limit, self._clock, kept)
        outcome.more_vectors = max(outcome.more_vectors, leap.more_vectors)
        if not math.isfinite(leap.width):
            return False
        outcome.status, outcome.difference = Status.CONVERGED, leap.width
        return True

    def _is_clear(self, x: Array) -> bool:
        """Whether no positive value is next to underflow.

        Raises
        ------
        SearchEndedError
            The iteration is to be ended, in the midst of the search for positive values.
        """
        operator, xp = self._operator, self._operator.space.xp
        if not operator.is_near_underflow(x):
            return True
        if self.positive is None:
            outcome = self._outcome
            self.positive = operator.positive(
                lambda: self._clock.tick(outcome.iterations, outcome.difference)
            )
        least = operator.space.least(xp.where(xp.greater(self.positive, 0.0), x, np.inf))
        return bool(operator.space.read(least)[0] > operator.floor)

    def _ends_above(self, x: Array, y: Array, made: int) -> bool:
        """Whether a few guesses leave an upper bound in y, for an iteration that is ended here.

        Next to underflow, where the graph would have to be searched first, none is made.
        """
        if self.lost or not math.isfinite(self._outcome.difference) or self._operator.is_near_underflow(x):
            return False
        # lemma: park
        return self._guess.verified(x, y, made, self._outcome, self.positive, last=True) is None

    def _is_lost(self, x: Array) -> bool:
        """Whether a positive value is so near to underflow that no guess can be verified."""
        self.lost = not self._is_clear(x)  # lemma: underflow
        return self.lost
