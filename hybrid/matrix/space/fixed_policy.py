"""Steps under a fixed policy: a choice operator with one choice a state and its gains."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Improvement, Policy
from hybrid.matrix.space.workspace import Array


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

    @property
    def has_policies(self) -> bool:
        """See `ChoiceOperator.has_policies`: there is nothing to choose."""
        return False

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        """See `ChoiceOperator.improve`; the policy given is ignored."""
        shape = how.shape
        if shape is None:
            if how.factor not in self._scaled:
                self._scaled[how.factor] = how.factor * self._rewards
            shape = self._scaled[how.factor]
        self._choices_of.improve(x, out, how.factor, shape=shape, policy=self._policy)
        self.changes = self._choices_of.changes

    def follow(self, x: Array, out: Array, policy: Array) -> None:
        """See `ChoiceOperator.follow`; the policy given is ignored."""
        self._choices_of.follow(x, out, self._policy)

    def _choices(self, x: Array) -> tuple[Array, Array]:
        raise NotImplementedError("there is nothing to choose")
