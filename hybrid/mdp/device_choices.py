"""Choices on the device: the matrices of all layers in one pass, the best taken on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    ChoiceTiles,
    CodedVector,
    Device,
    IterationState,
    Mode,
    Step,
    Tuning,
    current_device,
    device_problem,
    finish_choices,
    finish_iteration,
    mark_entries,
    run_choices,
)
from hybrid.checking.options import CheckOptions
from hybrid.gpu.choice import SMALL_ENTRIES
from hybrid.gpu.choice_build import MOST_LAYERS, build_choices
from hybrid.gpu.choice_gains import code_gains
from hybrid.gpu.sweeps import DeviceSteps
from hybrid.gpu.workspace import DeviceWorkspace
from hybrid.mdp.offers import Groups, Offer
from hybrid.mdp.operator import ChoiceOperator
from hybrid.solvers.workspace import Array, Pair
from mtbdd.convert import count_nonzeros

__all__ = ["DeviceChoices", "device_choices", "prefers_device"]

_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps."""

_SMALL_STATES = 1 << 16
"""States below which ``auto`` never takes the device."""


def prefers_device(options: CheckOptions, size: int) -> bool:
    """Tell whether offers for `device_choices` are worth making: with a row for every unknown state."""
    backend = options.matrix_backend()
    if size == 0 or backend not in ("auto", "gpu") or device_problem() is not None:
        return False
    return backend == "gpu" or size >= _SMALL_STATES


def device_choices(
    offers: list[Offer],
    size: int,
    maximise: bool,
    groups: Groups | None,
    slack: float,
    options: CheckOptions,
) -> DeviceChoices | None:
    """Put the matrices of all offers on the device.

    Parameters
    ----------
    offers, size, maximise, groups, slack, options
        As for `hybrid.mdp.hybrid_choices.hybrid_choices`; offers with a row for every unknown state.

    Returns
    -------
    DeviceChoices or None
        None where the device is not wanted or too small a part of the time would be saved, where an offer has
        rows for some states only, or where a step cannot be laid out as one pass: layers then go one by one.

    Raises
    ------
    MemoryError
        If the device was asked for and has no room.
    """
    matrices = {o.layer: o.matrix for o in offers if o.matrix is not None}
    if not matrices or not prefers_device(options, size) or any(o.place is not None for o in offers):
        return None
    layers = 1 + max(o.layer for o in offers)
    backend = options.matrix_backend()
    if layers > MOST_LAYERS:
        return None
    if backend == "auto" and sum(count_nonzeros(m) for m in matrices.values()) < SMALL_ENTRIES:
        return None
    device = current_device()
    try:
        built = build_choices(device, matrices, layers, options.level)
    except MemoryError:
        if backend == "gpu":
            raise
        return None
    if built is None:
        return None
    level, tiles = built
    gains = code_gains(
        device,
        mark_entries(device, tiles),
        {o.layer: o.gain for o in offers},
        {o.layer: o.factor for o in offers if o.factor is not None},
        layers,
        maximise,
    )
    return DeviceChoices(device, tiles, gains, level, maximise, groups, slack)


class DeviceChoices(ChoiceOperator):
    """See `ChoiceOperator`.

    Parameters
    ----------
    device : Device
    tiles : ChoiceTiles
    gains : ChoiceGains
    level : int
        Injection level.
    maximise, groups, slack
        As for `ChoiceOperator`.

    Notes
    -----
    A step is one launch, in which x is read where it is needed and the result written once, and the second
    pass of the measurement; with groups the best values of groups lie between.  Nothing waits for the device.
    """

    backend = "gpu"

    def __init__(
        self,
        device: Device,
        tiles: ChoiceTiles,
        gains: ChoiceGains,
        level: int,
        maximise: bool,
        groups: Groups | None,
        slack: float,
    ) -> None:
        self._device, self._tiles, self._gains = device, tiles, gains
        self._state = IterationState.create(device)
        self._repeated: dict[float, DeviceSteps] = {}
        super().__init__(tiles.size, maximise, groups, slack, DeviceWorkspace(device, _refuse))
        self.level = level
        self.matrix_bytes, self.operand_bytes = tiles.nbytes, gains.nbytes

    @property
    def tuning(self) -> Tuning:
        """Launch shape."""
        return self._tiles.tuning

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
        """See `ChoiceOperator.improve`; without groups all in one pass."""
        if self.groups is not None:
            super().improve(x, out, factor, shape=shape, policy=policy)
            return
        self._run(
            ChoiceStep(self.maximise, factor, shape is not None, shape, policy, state=self._state), x, out
        )
        self._measured()

    def repeat(self, pair: Pair, done: int, count: int, factor: float = 1.0) -> None:
        """See `ChoiceOperator.repeat`; from a recorded graph of launches where there are many."""
        if self.groups is not None:
            super().repeat(pair, done, count, factor)
            return
        steps = self._repeated.get(factor)
        if steps is None:
            state = IterationState.create(self._device)
            step = ChoiceStep(self.maximise, factor, state=state)
            nothing = CodedVector(0, 0, None, None)

            def run(_: Step, x: Array, out: Array) -> None:
                self._run(step, x, out)

            steps = DeviceSteps(
                self._device, run, Step(Mode.PRODUCT, nothing, nothing, 1.0, state), _MEASURE_ONLY, False,
                self._note_look,
            )  # fmt: skip
            self._repeated[factor] = steps
        steps.sweep(pair, done, count)
        self._state = steps.state

    def _note_look(self) -> None:
        self.space.looks += 1

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choices(self._device, self._tiles, self._gains, step, x, out)

    def _measured(self) -> None:
        finish_iteration(self._device, self._state, _MEASURE_ONLY, False)

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        self._run(ChoiceStep(self.maximise, plain=plain, policy=policy), x, out)

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp = self._device.xp
        best, policy = xp.empty(self.size), xp.empty(self.size, np.uint16)
        self._run(ChoiceStep(self.maximise, chosen=policy), x, best)
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        step = ChoiceStep(self.maximise, factor, shape=shape, state=self._state)
        finish_choices(self._device, step, x, out)
        self._measured()


def _refuse(step: Any, x: Array, out: Array) -> None:
    """Refuse products: a step over choices is more than one."""
    raise NotImplementedError("a system over choices has no product; use ChoiceOperator.improve")
