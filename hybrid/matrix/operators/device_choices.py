"""Choices on a device: the matrices of all layers fused in one launch, or written out, one row a choice."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_kernels import (
    ChoiceGains,
    ChoiceRows,
    ChoiceStep,
    CodedVector,
    Device,
    IterationState,
    Mode,
    Place,
    Step,
    TileMatrix,
    Tuning,
    current_device,
    finish_choices,
    finish_iteration,
    made_for,
    mark_entries,
    run_choice_rows,
    run_choices,
)
from gpu_kernels.runtime.csr import index_types
from hybrid.base.arrays import to_host
from hybrid.base.option_types import LevelOption
from hybrid.matrix.backends import Backend
from hybrid.matrix.explicit.extract import explicit_sizes
from hybrid.matrix.gpu.build import code_gains, gain_items
from hybrid.matrix.gpu.cost import SMALL_ENTRIES
from hybrid.matrix.gpu.device_space import DeviceSpace
from hybrid.matrix.gpu.distributed_space import DistributedDeviceSpace
from hybrid.matrix.gpu.halo import DeviceHalo
from hybrid.matrix.gpu.repeated_steps import DeviceSteps, UnfusedSteps
from hybrid.matrix.levels.curve import MOST_LAYERS
from hybrid.matrix.levels.probe import build_choices
from hybrid.matrix.operators.array_choices import merged_gains
from hybrid.matrix.operators.explicit_choices import write_choices
from hybrid.matrix.operators.hybrid_choices import (
    NOTHING_TO_MULTIPLY,
    Ineligible,
    refusal_of_all,
    why_ineligible,
)
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import BOUND_VECTORS, ChoiceOperator, ChoiceProblem, Improvement
from hybrid.matrix.space.vector_space import Array, Pair
from mtbdd.base.errors import option
from mtbdd.offset.distributed import DistributedMTBDD

# Steps over choices on the device, for any format of the choices.

_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps."""


class DeviceOperator(ChoiceOperator):
    """See `ChoiceOperator`; a subclass defines how a step is queued.

    Parameters
    ----------
    device : Device
    problem : ChoiceProblem
    space : DeviceSpace, optional
        Where processes share the states.

    Notes
    -----
    A step is one launch, in which x is read where it is needed and the result written once, and the second
    pass of the measurement; with groups three launches for their best values lie between, and a pass over
    all rows.  Nothing waits for the device, or allocates, unless other processes have members of groups.
    """

    backend = "gpu"
    space: DeviceSpace

    def __init__(self, device: Device, problem: ChoiceProblem, space: DeviceSpace | None = None) -> None:
        self._device = device
        self._state = IterationState.create(device)
        self._repeated: dict[float, DeviceSteps] = {}
        super().__init__(problem, DeviceSpace(device, refuse_product) if space is None else space)

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

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        plain = how.shape is not None
        step = ChoiceStep(self.maximise, how.factor, plain, how.shape, how.policy, state=self._state)
        self._queue(step, x, out)
        finish_iteration(self._device, self._state, _MEASURE_ONLY, False)

    def _queue(self, step: ChoiceStep, x: Array, out: Array) -> None:
        """Queue a step, members of groups joined."""
        if self.groups is None:
            self._run(step, x, out)
            return
        self._run(ChoiceStep(step.maximise, plain=step.plain, policy=step.policy), x, out)
        self.join(out)
        if step.scale != 1.0 or step.shape is not None or step.state is not None:
            finish_choices(self._device, step, x, out)

    @property
    def has_policies(self) -> bool:
        """See `ChoiceOperator.has_policies`."""
        return self.problem.communicator.size == 1

    @property
    def _asks_others(self) -> bool:
        """Whether a step waits for members of groups that other processes have."""
        return self.groups is not None and self.groups.n_shared > 0

    def of_policy(self, policy: Array) -> DeviceSpace:
        """See `ChoiceOperator.of_policy`."""
        step = ChoiceStep(self.maximise, plain=True, policy=policy)

        def multiply(x: Array, out: Array) -> None:
            self._queue(step, x, out)

        return DeviceSpace(self._device, UnfusedSteps(self._device, multiply, self.size))

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

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp = self._device.xp
        best, policy = xp.empty(self.size), xp.empty(self.size, np.uint16)
        self._run(ChoiceStep(self.maximise, chosen=policy), x, best)
        return best, policy


def refuse_product(step: Any, x: Array, out: Array) -> None:
    """Refuse products: a step over choices is more than one."""
    raise NotImplementedError("a system over choices has no product; use ChoiceOperator.improve")


def device_choices(
    layer_choices: list[LayerChoices], problem: ChoiceProblem, engine: Backend, level: LevelOption = "auto"
) -> DeviceChoices | None:
    """Return what `fused_choices` does, or None for a refusal."""
    found = fused_choices(layer_choices, problem, engine, level)
    return None if isinstance(found, Ineligible) else found


def fused_choices(
    layer_choices: list[LayerChoices], problem: ChoiceProblem, engine: Backend, level: LevelOption = "auto"
) -> DeviceChoices | Ineligible:
    """Put the matrices of all offers on the device.

    Parameters
    ----------
    layer_choices, problem, engine, level
        As for `hybrid.matrix.operators.hybrid_choices.hybrid_choices`; offers with a row for every unknown
        state.

    Returns
    -------
    DeviceChoices or Ineligible
        Refused where the device is not wanted or would save too little, has no room, where an offer has rows
        for some states only, or where no level can be laid out for all layers. Processes that share the
        states all take the layers so, or none does.

    Raises
    ------
    MemoryError
        If the device was requested and has no room, for a single process.

    Notes
    -----
    All processes call it at once.
    """
    matrices = {o.layer: o.matrix for o in layer_choices if o.matrix is not None}
    refusal = why_ineligible(engine, problem)
    if refusal is not None:
        return refusal
    if not matrices:
        return Ineligible(NOTHING_TO_MULTIPLY, True)
    if any(o.place is not None for o in layer_choices):
        return Ineligible(
            "a layer has rows for some states only, and fused steps need one for every state", False
        )
    layers = 1 + max(o.layer for o in layer_choices)
    if layers > MOST_LAYERS:
        return Ineligible(
            f"there are {layers} layers of choices, and a fused step takes {MOST_LAYERS}", False
        )
    alike = problem.communicator
    entries = int(alike.total([sum(m.n_entries for m in matrices.values())])[0])
    if engine.is_free and entries < SMALL_ENTRIES:
        return Ineligible(f"{entries} non-zeros of all layers are too few for the GPU to be faster", True)
    device, maximise = current_device(), problem.maximise
    known: list[ChoiceGains] = []

    def gains_for(tiles: TileMatrix) -> ChoiceGains:
        # The same for all levels: which layers have entries in a row does not depend on them.
        if not known:
            known.append(_coded(device, tiles, layer_choices, maximise))
        return known[0]

    built, own = None, None
    try:
        built = build_choices(device, matrices, layers, level, gains=gains_for, maximise=maximise)
        if built is None:
            own = Ineligible("no level can be laid out so that a fused step takes all layers", False)
        else:
            gains_for(built[1])
    except MemoryError as error:
        if not engine.is_free and alike.size == 1:
            raise
        # Layers that go one by one take less room at a time.
        reason = str(error) or f"{device.name} has no room for the choices"
        own = Ineligible(reason, engine.is_free)
    refusal = refusal_of_all(alike, own)
    if refusal is not None:
        return refusal
    assert built is not None
    level, tiles = built
    gains = gains_for(tiles)
    shared = next(iter(matrices.values()))
    if alike.size > 1:
        assert isinstance(shared, DistributedMTBDD)
        return DistributedDeviceChoices(device, tiles, gains, level, problem, DeviceHalo(device, shared))
    found = DeviceChoices(device, tiles, gains, level, problem)
    found.backend_reason = engine.reason
    return found


def _coded(
    device: Device, tiles: TileMatrix, layer_choices: list[LayerChoices], maximise: bool
) -> ChoiceGains:
    """Return the gains of all layers in tables, on the device."""
    own = {o.layer: o.gain for o in layer_choices}
    factors = {o.layer: o.factor for o in layer_choices if o.factor is not None}
    marks = mark_entries(device, tiles)

    def make(place: Place) -> ChoiceGains:
        there = marks if place is device else to_host(marks)
        return code_gains(place, there, own, factors, tiles.layers, maximise)

    return made_for(device, gain_items(len(own) * tiles.n_rows), make)


class DeviceChoices(DeviceOperator):
    """See `DeviceOperator`; the matrices of all layers compressed, in tiles.

    Parameters
    ----------
    device : Device
    tiles : TileMatrix
    gains : ChoiceGains
    level : int
        Injection level.
    problem : ChoiceProblem
    space : DeviceSpace, optional
        See `DeviceOperator`.
    """

    def __init__(
        self,
        device: Device,
        tiles: TileMatrix,
        gains: ChoiceGains,
        level: int,
        problem: ChoiceProblem,
        space: DeviceSpace | None = None,
    ) -> None:
        super().__init__(device, problem, space)
        self._tiles, self._gains = tiles, gains
        self.level = self._level = level
        self.nbytes, self.operand_bytes = tiles.nbytes, gains.nbytes

    def with_rewards(self, layer_choices: list[LayerChoices], problem: ChoiceProblem) -> DeviceChoices:
        """Return the choices on the same matrices with other gains, groups or optimum."""
        gains = _coded(self._device, self._tiles, layer_choices, problem.maximise)
        return self._on(gains, problem)

    def _on(self, gains: ChoiceGains, problem: ChoiceProblem) -> DeviceChoices:
        found = DeviceChoices(self._device, self._tiles, gains, self._level, problem)
        found.backend_reason = self.backend_reason
        return found

    @property
    def tuning(self) -> Tuning:
        """Launch shape."""
        return self._tiles.tuning

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choices(self._device, self._tiles, self._gains, step, x, out)


class DistributedDeviceChoices(DeviceChoices):
    """See `DeviceChoices`; of the states of one of several processes.

    Parameters
    ----------
    device, tiles, gains, level, problem
        As for `DeviceChoices`; `tiles` over the own columns and those of the halo.
    halo : DeviceHalo
        What all layers read of others.

    Notes
    -----
    All processes make the same steps at once. A step receives once for all layers; meanwhile go the tiles
    that read nothing of others.
    """

    def __init__(
        self,
        device: Device,
        tiles: TileMatrix,
        gains: ChoiceGains,
        level: int,
        problem: ChoiceProblem,
        halo: DeviceHalo,
    ) -> None:
        alike = problem.communicator
        self._halo = halo
        super().__init__(
            device, tiles, gains, level, problem,
            DistributedDeviceSpace(device, refuse_product, alike, halo.host_waits),
        )  # fmt: skip
        self.backend_reason = f"{alike.size} parts share the states, elements are carried {halo.way}"
        # All processes have to record what one of them records.
        self._is_repeated = not alike.any(self.groups is not None)

    def _on(self, gains: ChoiceGains, problem: ChoiceProblem) -> DistributedDeviceChoices:
        return DistributedDeviceChoices(self._device, self._tiles, gains, self._level, problem, self._halo)

    @property
    def changes(self) -> Array:
        """See `ChoiceOperator.changes`; those of all processes."""
        return self.space.agreed(self._state.differences)

    @changes.setter
    def changes(self, values: Array) -> None:
        self._state.differences[...] = self._device.xp.asarray(values)

    def repeat(self, pair: Pair, done: int, count: int, factor: float = 1.0) -> None:
        """See `ChoiceOperator.repeat`; one by one where some process has groups."""
        if self._is_repeated:
            super().repeat(pair, done, count, factor)
        else:
            ChoiceOperator.repeat(self, pair, done, count, factor)

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        operands = self._device, self._tiles, self._gains, step, x, out
        with self._halo.exchange(x) as arriving:
            run_choices(*operands, arriving.others, "early")
            with arriving.behind():
                run_choices(*operands, arriving.others, "late")


# Choices written out on a device.


class DeviceRows(DeviceOperator):
    """See `DeviceOperator`; the choices of all layers as compressed sparse rows.

    Parameters
    ----------
    device : Device
    rows : ChoiceRows
    problem : ChoiceProblem
    """

    level = None
    storage = "csr"

    def __init__(self, device: Device, rows: ChoiceRows, problem: ChoiceProblem) -> None:
        super().__init__(device, problem)
        self._rows = rows
        self.nbytes, self.operand_bytes = rows.matrix_bytes, rows.operand_bytes

    def with_rewards(self, layer_choices: list[LayerChoices], problem: ChoiceProblem) -> DeviceRows:
        """Return the choices on the same matrices with other gains, groups or optimum."""
        gains = self._device.xp.asarray(merged_gains(layer_choices))
        return DeviceRows(self._device, replace(self._rows, gains=gains), problem)

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choice_rows(self._device, self._rows, step, x, out)


def device_rows(layer_choices: list[LayerChoices], problem: ChoiceProblem) -> DeviceRows:
    """Write the choices of all layers out and put them on the current device.

    Parameters
    ----------
    layer_choices : list of LayerChoices
    problem : ChoiceProblem

    Raises
    ------
    MemoryError
        If the device or the host has no room, before anything is allocated; with required and available
        bytes.

    Notes
    -----
    Time: O(transitions + states * layers), on the host; O(transitions) a step.
    """
    device = current_device()
    required, available = device_bytes(layer_choices, problem.size), device.free_bytes()
    if required > available:
        raise MemoryError(
            f"the choices of {problem.size} states, written out, need {required} bytes on {device.name}, "
            f"{available} are free; use {option('engine', 'hybrid')}, {option('backend', 'cpu')}, "
            "or a smaller model"
        )
    return DeviceRows(device, write_choices(layer_choices, problem.size).to_device(device), problem)


def device_bytes(layer_choices: list[LayerChoices], size: int) -> int:
    """Return the bytes that a device needs for the choices of all layers and the vectors of a solution.

    Notes
    -----
    Time: O(nodes + states * layers).
    """
    entries = sum(explicit_sizes(offer.matrix).entries for offer in layer_choices if offer.matrix is not None)
    choices = sum(int(np.isfinite(offer.gain).sum()) for offer in layer_choices)
    index = int(np.dtype(index_types(size, max(entries, choices))[0]).itemsize)
    # The targets have 32 bits there; every choice has a gain and a layer, too.
    return 12 * entries + (index + 10) * choices + (index + 8 * BOUND_VECTORS) * (size + 1)
