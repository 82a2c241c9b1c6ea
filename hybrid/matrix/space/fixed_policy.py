"""A fixed policy: the matrix of the rows that it chooses, and the operator of what it earns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Improvement, Policy
from hybrid.matrix.space.workspace import Array


class FixedPolicy(ChoiceOperator):
    """``x -> A x + r`` with the rows A of a policy, on the matrices of another operator; a `MatrixOperator`.

    Parameters
    ----------
    choices : ChoiceOperator
        Its gains do not count.
    policy : array, shape (size,), uint16
        The layer that each state takes.
    rewards : ndarray, shape (size,), float64, optional
        r, not negative; zero by default.

    Notes
    -----
    Several of them share one operator's matrices, one after the other: `changes` are those of its last step.
    """

    def __init__(self, choices: ChoiceOperator, policy: Policy, rewards: NDArray[Any] | None = None) -> None:
        alike = choices.problem.communicator
        super().__init__(ChoiceProblem(choices.size, True, None, choices.slack, alike), choices.space)
        self.shape = (choices.size, choices.size)
        self._choices_of = choices
        self.backend, self.backend_reason = choices.backend, choices.backend_reason
        self.level, self.storage = choices.level, choices.storage
        self.nbytes, self.operand_bytes = choices.nbytes, choices.operand_bytes
        self.least_entry = choices.least_entry
        self._policy = choices.space.xp.asarray(policy)
        self._rewards = self.zeros() if rewards is None else choices.space.vector(rewards)
        self._scaled: dict[float, Array] = {1.0: self._rewards}

    @property
    def has_policies(self) -> bool:
        """See `ChoiceOperator.has_policies`: there is nothing to choose."""
        return False

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``A x``; on the host."""
        result = np.empty(len(x)) if out is None else out
        self._choices_of.follow(x, result, self._policy)
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``A x + b``: a step with omega 1, where the diagonal is 1."""
        choices = self._choices_of
        choices.improve(x, out, shape=self.zeros() if b is None else b, policy=self._policy)
        absolute, relative = self.space.read(choices.changes)
        return absolute, relative

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        """See `ChoiceOperator.improve`; the policy given is ignored."""
        shape = how.shape
        if shape is None:
            if how.factor not in self._scaled:
                self._scaled[how.factor] = how.factor * self._rewards
            shape = self._scaled[how.factor]
        self._choices_of.improve(x, out, how.factor, shape=shape, policy=self._policy)
        self.changes = self._choices_of.changes

    def _choices(self, x: Array) -> tuple[Array, Array]:
        raise NotImplementedError("there is nothing to choose")
