"""Choices written out, one row a choice: steps over them on the host by whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.scipy_routines import csr_multiplier
from hybrid.matrix.operators.hybrid_choices import EmptyMatrix
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem
from hybrid.matrix.space.direct import FEW, SlenderSystem
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.passes import NumPyPasses, Passes
from hybrid.matrix.space.vector_space import Array

Vector = NDArray[np.float64]

_MOST = 1000
"""Steps over many states, before which their policies are solved."""

_RANKS = 8
"""Choices of a state up to which the best is found rank by rank, sooner than list by list."""

_BELOW = 1.0 - 1e-12
"""Times a number, which leaves room for the rounding of a step."""


class ArrayChoices(ChoiceOperator):
    """See `ChoiceOperator`; on the host, in NumPy.

    Parameters
    ----------
    rows : ChoiceRows
        On the host, as `write_choices` makes them.
    problem : ChoiceProblem
    passes : Passes, optional
        Over vectors; default in NumPy.
    later : callable, optional
        Returns what makes the steps after the first thousand, from the same parameters.

    Notes
    -----
    Time: O(transitions) a step.
    """

    backend = "reference"
    level = None
    storage = "csr"

    def __init__(
        self,
        rows: ChoiceRows,
        problem: ChoiceProblem,
        passes: Passes | None = None,
        later: Callable[[ChoiceRows, ChoiceProblem], ChoiceOperator] | None = None,
    ) -> None:
        super().__init__(problem, HostSpace(EmptyMatrix(problem.size), passes or NumPyPasses()))
        self.rows, self._later, self._left = rows, later, _MOST
        self._after: ChoiceOperator | None = None
        self.write, self.writable = (lambda: rows), len(rows.columns)
        self.nbytes, self.operand_bytes = self.rows.matrix_bytes, self.rows.operand_bytes

    def with_rewards(self, layer_choices: list[LayerChoices], problem: ChoiceProblem) -> Self:
        """Return the choices on the same matrices with other gains, groups or optimum."""
        found = type(self)(replace(self.rows, gains=merged_gains(layer_choices)), problem)
        found._later = self._later
        return found

    def constant_below(self) -> float:
        """See `BellmanOperator.constant_below`: the least of what choices are worth that alone are taken.

        That of a choice which gains g and stays among the states with the probability p is ``g / (1 - p)``.
        """
        rows = self.rows
        if not len(rows.gains) or rows.gains.max() == 0.0:
            return 0.0
        stays = _BELOW * self._of_successors(np.ones(self.size))
        with np.errstate(over="ignore"):
            worth = _BELOW * rows.gains / np.maximum(1.0 - stays, 1.0 - _BELOW)
        best = self._best_of_choices(worth)
        self.join(best)
        least = float(best.min())
        return least if 0.0 < least < np.inf else 0.0

    @property
    def solves_policies(self) -> bool:
        """See `BellmanOperator.solves_policies`."""
        if self.is_slender is None:
            states, targets, values = self.rows.of_policy(self.choose(self.zeros()))
            starts = np.searchsorted(states, np.arange(self.size + 1))
            of_one = CsrArrays((self.size, self.size), starts, targets, values)
            self.is_slender = self.size > FEW and SlenderSystem.suits(of_one)
        return self.is_slender

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        self._left -= 1
        if self._left < 0 and self._later is not None and self._after is None:
            self._after = self._later(self.rows, self.problem)
        if self._after is not None:
            self._after._best(x, out, plain, policy)
            return
        worth = self._of_successors(x)
        if not plain:
            worth += self.rows.gains
        if policy is not None:
            worth[self.rows.layers != np.repeat(policy, np.diff(self.rows.choice_ptr))] = self.worst
        out[...] = self._best_of_choices(worth)

    def _choices(self, x: Array) -> tuple[Array, Array]:
        rows, worth = self.rows, self._of_successors(x)
        worth += rows.gains
        best, policy = self._best_of_choices(worth), np.full(self.size, NO_CHOICE, np.uint16)
        has = np.diff(rows.choice_ptr) > 0
        starts = rows.choice_ptr[:-1][has]
        if len(starts):
            attained = worth == np.repeat(best, np.diff(rows.choice_ptr))
            first = np.minimum.reduceat(np.where(attained, np.arange(len(worth)), len(worth)), starts)
            policy[has] = rows.layers[first]
        return best, policy

    def _of_successors(self, x: Array) -> Vector:
        """Return what the successors of every choice are worth."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._sums(x)

    def _best_of_choices(self, worth: Vector) -> Vector:
        """Return the best number of every state's choices."""
        better, best = np.maximum if self.maximise else np.minimum, np.full(self.size, self.worst)
        if self._ranks is None:
            has = np.diff(self.rows.choice_ptr) > 0
            best[has] = better.reduceat(worth, self.rows.choice_ptr[:-1][has])
            return best
        for states, choices in self._ranks:
            best[states] = better(best[states], worth[choices])
        return best

    @cached_property
    def _ranks(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]] | None:
        """The states that have a first choice, and these, then second ones; None where some have many."""
        starts, counts = self.rows.choice_ptr[:-1], np.diff(self.rows.choice_ptr)
        if counts.max(initial=0) > _RANKS:
            return None
        having = (np.flatnonzero(counts > rank) for rank in range(int(counts.max(initial=0))))
        return [(states, starts[states] + rank) for rank, states in enumerate(having)]

    @cached_property
    def _sums(self) -> Callable[[Vector], Vector]:
        """The product with the matrix of all choices."""
        return csr_multiplier(self.rows.offsets, self.rows.columns, self.rows.values, self.size)


def merged_gains(layer_choices: list[LayerChoices]) -> Vector:
    """Return the gains of choices in the order in which `write_choices` writes them."""
    owners, layers, gains = [], [], []
    for offer in layer_choices:
        has = np.isfinite(offer.gain)
        owners.append(np.flatnonzero(has) if offer.place is None else offer.place[has])
        layers.append(np.full(len(owners[-1]), offer.layer))
        gains.append(offer.gain[has])
    if not gains:
        return np.zeros(0)
    order = np.lexsort((np.concatenate(layers), np.concatenate(owners)))
    found: Vector = np.concatenate(gains)[order]
    return found
