"""Checks whose linear systems are solved as a benchmark wants: after a warm run, again, or for some time.

The checker asks its options for a method and hands it the system. Here the options give a method that passes
the system on to a function of the benchmark, so that what is solved again is the same representation with
the same vectors, and set-up is paid once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hybrid import Answer, CheckOptions, SymbolicModel
from hybrid.checking.checker import Checker
from hybrid.matrix.space.base import Solution, Vector
from hybrid.properties.tree import Property
from hybrid.solvers import Status

__all__ = ["LinearTrial", "Trial", "WarmThenCounted", "WithinSeconds", "answer"]


@dataclass(frozen=True)
class LinearTrial:
    """One linear system with its method; it can be solved any number of times.

    Attributes
    ----------
    method : Jacobi or another of the project's methods without bounds
    operands : tuple
        Matrix, diagonal, right-hand side, first iterate.
    """

    method: Any
    operands: tuple[Any, Vector, Vector | None, Vector]

    def solve(self, iterations: int | None = None) -> Solution:
        """Solve to the end, or make so many iterations at most."""
        method = self.method
        if iterations is not None:
            method = replace(method, criterion=replace(method.criterion, max_iterations=iterations))
        found: Solution = method.solve(*self.operands)
        return found


Trial = Callable[[LinearTrial], Solution]


@dataclass(frozen=True)
class _PassedOn:
    """A method that leaves the solving to a benchmark."""

    method: Any
    trial: Trial

    @property
    def name(self) -> str:
        return str(self.method.name)

    @property
    def vectors(self) -> int:
        return int(self.method.vectors)

    def solve(
        self, matrix: Any, diagonal: Vector, b: Vector | None, start: Vector, progress: Any = None
    ) -> Solution:
        return self.trial(LinearTrial(self.method, (matrix, diagonal, b, start)))


class _TrialOptions(CheckOptions):
    trial: Trial = LinearTrial.solve

    def solver(self, steady: bool) -> Any:
        return _PassedOn(super().solver(steady), self.trial)


@dataclass
class WarmThenCounted:
    """Some iterations that do not count, then the whole solution; both can be seen afterwards.

    Attributes
    ----------
    iterations : int
        Of the warm run; 0 for none.
    warm_seconds : float
        Wall time of the warm runs.
    systems : list of LinearTrial
        What was solved, to be solved again.
    """

    iterations: int
    warm_seconds: float = 0.0
    systems: list[LinearTrial] = field(default_factory=list)

    def __call__(self, system: LinearTrial) -> Solution:
        """Solve one system."""
        if self.iterations:
            begin = time.perf_counter()
            system.solve(self.iterations)
            self.warm_seconds += time.perf_counter() - begin
        self.systems.append(system)
        return system.solve()

    def again(self) -> float:
        """Solve everything once more and return the seconds of the iterations."""
        return sum(system.solve().seconds for system in self.systems)


@dataclass
class WithinSeconds:
    """The whole solution where there is time for it, and some iterations where there is not.

    Attributes
    ----------
    seconds : float
        Time of the longest whole solution.
    expected : int
        Iterations that it takes.
    probe : int
        Iterations after which the rest is judged; once more with more of them, so that the first are warm.
    """

    seconds: float
    expected: int
    probe: int = 10

    def __call__(self, system: LinearTrial) -> Solution:
        """Solve one system."""
        count, longest = self.probe, 10_000
        while True:
            found = system.solve(count)
            if found.status is not Status.MAX_ITERATIONS:
                return found
            each = found.seconds / found.iterations
            if each * self.expected <= self.seconds:
                return system.solve()
            if count > self.probe:
                return found
            count = max(2 * self.probe, min(longest, int(0.1 * self.seconds / max(each, 1e-9))))


def answer(model: SymbolicModel, prop: Property, trial: Trial, **options: Any) -> Answer:
    """Return the answer to a resolved property; its linear systems are solved by the trial.

    Parameters
    ----------
    model : SymbolicModel
    prop : Property
    trial : callable
        Gets each linear system and returns its solution.
    **options
        Of `hybrid.CheckOptions.of`; the method must be one without bounds.
    """
    plain = CheckOptions.of(**options)
    if plain.bounding_method() is not None:
        raise ValueError(f"expected a method without bounds, such as jor, got {plain.method!r}")
    chosen = _TrialOptions(**{f.name: getattr(plain, f.name) for f in fields(plain)}, trial=trial)
    return Checker(model, chosen).answer(prop)
