"""Steps under one choice a state: a choice operator with its policy held fast, and the same as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.solvers.base import Criterion, Vector
from hybrid.solvers.choice_operator import ChoiceOperator, Policy
from hybrid.solvers.choice_problem import ChoiceProblem
from hybrid.solvers.host import HostWorkspace
from hybrid.solvers.workspace import Array


class PolicyMatrix:
    """The rows of a policy as a matrix, on those of a choice operator; see `MatrixOperator`.

    Parameters
    ----------
    choices : ChoiceOperator
        On the host.
    policy : ndarray, shape (size,), uint16
        From `ChoiceOperator.choose`.
    zeros : ndarray, shape (size,), float64
    """

    def __init__(self, choices: ChoiceOperator, policy: Policy, zeros: Vector) -> None:
        self._choices_of, self._policy, self._zeros = choices, policy, zeros
        self.shape = (choices.size, choices.size)

    def workspace(self) -> HostWorkspace:
        """Return where vectors beside it live."""
        space = self._choices_of.space
        return HostWorkspace(self, space.passes if isinstance(space, HostWorkspace) else None)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``A x``."""
        result = np.empty(len(x)) if out is None else out
        self._choices_of.improve(x, result, shape=self._zeros, policy=self._policy)
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``A x + b``: a step with omega 1, where the diagonal is 1."""
        self._choices_of.improve(x, out, shape=self._zeros if b is None else b, policy=self._policy)
        absolute, relative = self._choices_of.space.read(self._choices_of.changes)
        return absolute, relative


class FixedPolicy(ChoiceOperator):
    """``x -> A x + r`` with the rows A of a policy, on the matrices of another operator.

    Parameters
    ----------
    choices : ChoiceOperator
        Without groups; its gains do not count.
    policy : ndarray, shape (size,), uint16
        The layer that each state takes.
    rewards : ndarray, shape (size,), float64
        r, not negative.

    Notes
    -----
    Several of them share one operator's matrices, one after the other: `changes` are those of its last step.
    """

    def __init__(self, choices: ChoiceOperator, policy: Policy, rewards: NDArray[Any]) -> None:
        alike = choices.problem.communicator
        super().__init__(ChoiceProblem(choices.size, True, None, choices.slack, alike), choices.space)
        self._choices_of = choices
        self.backend, self.backend_reason = choices.backend, choices.backend_reason
        self.level, self.storage = choices.level, choices.storage
        self.nbytes, self.operand_bytes = choices.nbytes, choices.operand_bytes
        self.least_entry = choices.least_entry
        self._policy = choices.space.xp.asarray(policy)
        self._rewards = choices.space.vector(rewards)
        self._scaled: dict[float, Array] = {1.0: self._rewards}

    def leap(self, criterion: Criterion, always: bool) -> None:
        """See `BellmanOperator.leap`: there is nothing to choose."""

    def improve(
        self,
        x: Array,
        out: Array,
        factor: float = 1.0,
        *,
        shape: Array | None = None,
        policy: Array | None = None,
    ) -> None:
        """See `ChoiceOperator.improve`; there is one choice, whatever the policy given."""
        if shape is None:
            if factor not in self._scaled:
                self._scaled[factor] = factor * self._rewards
            shape = self._scaled[factor]
        self._choices_of.improve(x, out, factor, shape=shape, policy=self._policy)
        self.changes = self._choices_of.changes

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        raise NotImplementedError("the operator beneath makes whole steps")

    def _choices(self, x: Array) -> tuple[Array, Array]:
        raise NotImplementedError("there is nothing to choose")

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        raise NotImplementedError("the operator beneath makes whole steps")
