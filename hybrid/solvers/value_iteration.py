"""Value iteration over choices until two iterates are close: an estimate without bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status
from hybrid.solvers.bellman import Outcome
from hybrid.solvers.check_interval import CheckInterval
from hybrid.solvers.choice_operator import ChoiceOperator
from hybrid.solvers.workspace import Pair


@dataclass(frozen=True)
class ValueIteration:
    """Value iteration that stops when two iterates are close: an estimate without bounds.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "value-iteration"
    vectors: ClassVar[int] = 3  # two iterates and a layer's product

    def solve(self, system: ChoiceOperator, progress: Progress | None = None) -> Solution:
        """Iterate from 0."""
        clock, space = Clock(progress), system.space
        space.reserve(self.vectors, system.size)
        pair: Pair = system.zeros(), system.zeros()
        outcome, pace = Outcome(), CheckInterval(space.stride)
        while outcome.status is Status.MAX_ITERATIONS and outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            system.repeat(pair, outcome.iterations, count)
            outcome.iterations += count
            absolute, relative = space.read(system.changes)
            outcome.difference = self.criterion.difference(absolute, relative)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
            elif outcome.difference < self.criterion.epsilon:
                outcome.status = Status.CONVERGED
            pace.look(outcome.iterations, outcome.difference, self.criterion.epsilon)
            clock.tick(outcome.iterations, outcome.difference)
        k = outcome.iterations % 2
        seconds, looks = clock.seconds, space.synchronisations
        residual = system.residual(pair[k], pair[1 - k])
        return Solution(
            space.to_host(pair[k]), outcome.status, outcome.iterations, seconds, outcome.difference, residual,
            synchronisations=looks, products=outcome.iterations + 1,
        )  # fmt: skip
