"""Steps over choices on the device, whatever form the choices have there."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from typing import Any

import numpy as np

from gpu_kernels import (
    ChoiceStep,
    CodedVector,
    Device,
    IterationState,
    Mode,
    Step,
    finish_choices,
    finish_iteration,
)
from hybrid.matrix.gpu.sweeps import DeviceSteps
from hybrid.matrix.gpu.unfused import Unfused
from hybrid.matrix.gpu.workspace import DeviceWorkspace
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.matrix.space.choice_problem import ChoiceProblem
from hybrid.matrix.space.workspace import Array, Pair

_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps."""


class DeviceOperator(ChoiceOperator):
    """See `ChoiceOperator`; a subclass tells how a step is queued.

    Parameters
    ----------
    device : Device
    problem : ChoiceProblem
    space : DeviceWorkspace, optional
        Where processes share the states.

    Notes
    -----
    A step is one launch, in which x is read where it is needed and the result written once, and the second
    pass of the measurement; with groups three launches for their best values lie between, and a pass over
    all rows.  Nothing waits for the device, or allocates, unless other processes have members of groups.
    """

    backend = "gpu"
    space: DeviceWorkspace

    def __init__(self, device: Device, problem: ChoiceProblem, space: DeviceWorkspace | None = None) -> None:
        self._device = device
        self._state = IterationState.create(device)
        self._repeated: dict[float, DeviceSteps] = {}
        super().__init__(problem, DeviceWorkspace(device, refuse_product) if space is None else space)

    @abstractmethod
    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        """Queue a step."""

    @property
    def changes(self) -> Array:
        """Greatest absolute and relative difference of the last step, on the device; a copy."""
        return self._state.differences.copy()

    @changes.setter
    def changes(self, values: Array) -> None:
        self._state.differences[...] = self._device.xp.asarray(values)

    def improve(
        self,
        x: Array,
        out: Array,
        factor: float = 1.0,
        *,
        shape: Array | None = None,
        policy: Array | None = None,
    ) -> None:
        """See `ChoiceOperator.improve`."""
        plain = shape is not None
        self._queue(ChoiceStep(self.maximise, factor, plain, shape, policy, state=self._state), x, out)
        finish_iteration(self._device, self._state, _MEASURE_ONLY, False)

    def _queue(self, step: ChoiceStep, x: Array, out: Array) -> None:
        """Queue a step, members of groups joined."""
        if self.groups is None:
            self._run(step, x, out)
            return
        self._run(ChoiceStep(step.maximise, plain=step.plain, policy=step.policy), x, out)
        self._join(out)
        if step.scale != 1.0 or step.shape is not None or step.state is not None:
            finish_choices(self._device, step, x, out)

    @property
    def has_policies(self) -> bool:
        """See `Choosing.has_policies`."""
        return self.problem.communicator.size == 1

    @property
    def _asks_others(self) -> bool:
        """Whether a step waits for members of groups that other processes have."""
        return self.groups is not None and self.groups.n_shared > 0

    def of_policy(self, policy: Array) -> DeviceWorkspace:
        """See `Choosing.of_policy`."""
        step = ChoiceStep(self.maximise, plain=True, policy=policy)

        def multiply(x: Array, out: Array) -> None:
            self._queue(step, x, out)

        return DeviceWorkspace(self._device, Unfused(self._device, multiply, self.size))

    def repeat(self, pair: Pair, done: int, count: int, factor: float = 1.0) -> None:
        """See `ChoiceOperator.repeat`; from a recorded graph of launches where there are many."""
        if self._asks_others:
            super().repeat(pair, done, count, factor)
            return
        steps = self._repeated.get(factor)
        if steps is None:
            state = IterationState.create(self._device)
            step = ChoiceStep(self.maximise, factor, state=state)
            nothing = CodedVector(0, 0, None, None)
            own = weakref.proxy(self)  # no circle: recordings hold vectors, which go with the operator

            def run(_: Step, x: Array, out: Array) -> None:
                own._queue(step, x, out)

            steps = self.space.steps(Step(Mode.PRODUCT, nothing, nothing, 1.0, state), None, run)
            self._repeated[factor] = steps
        steps.sweep(pair, done, count)
        self._state = steps.state

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        raise NotImplementedError("steps are queued as a whole")

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp = self._device.xp
        best, policy = xp.empty(self.size), xp.empty(self.size, np.uint16)
        self._run(ChoiceStep(self.maximise, chosen=policy), x, best)
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        raise NotImplementedError("steps are queued as a whole")


def refuse_product(step: Any, x: Array, out: Array) -> None:
    """Refuse products: a step over choices is more than one."""
    raise NotImplementedError("a system over choices has no product; use ChoiceOperator.improve")
