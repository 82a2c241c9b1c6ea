"""Value iteration over choices until two iterates are close: an estimate without bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hybrid.matrix.space.base import Clock, Criterion, Progress, Solution, Status
from hybrid.matrix.space.bellman import Outcome
from hybrid.matrix.space.check_interval import CheckInterval
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.matrix.space.record import Numbers
from hybrid.matrix.space.workspace import Array, Pair


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
        kept = clock.resumed(space, self.name, system.size)
        pair: Pair = (system.zeros() if kept is None else kept.vectors["x"]), system.zeros()
        outcome, pace = Outcome(), CheckInterval(space.stride)
        before = 0 if kept is None else int(kept.numbers["iterations"])
        most = max(self.criterion.max_iterations - before, 1)

        def state() -> tuple[Mapping[str, Array], Numbers]:
            return {"x": pair[outcome.iterations % 2]}, {"iterations": before + outcome.iterations}

        while outcome.status is Status.MAX_ITERATIONS and outcome.iterations < most:
            count = pace.steps(most - outcome.iterations)
            system.repeat(pair, outcome.iterations, count)
            outcome.iterations += count
            absolute, relative = space.read(system.changes)
            outcome.difference = self.criterion.difference(absolute, relative)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
            elif outcome.difference < self.criterion.epsilon:
                outcome.status = Status.CONVERGED
            else:
                clock.offer(state)
            pace.look(outcome.iterations, outcome.difference, self.criterion.epsilon)
            clock.tick(before + outcome.iterations, outcome.difference)
        if outcome.status is not Status.DIVERGED:
            clock.keep(state, outcome.status is Status.CONVERGED)
        k = outcome.iterations % 2
        seconds, looks = clock.seconds, space.synchronisations
        residual = system.residual(pair[k], pair[1 - k])
        return Solution(
            space.to_host(pair[k]), outcome.status, before + outcome.iterations, seconds, outcome.difference,
            residual, synchronisations=looks, products=outcome.iterations + 1,
        )  # fmt: skip
