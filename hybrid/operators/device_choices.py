"""Fused choices on the device: one launch over the matrices of all layers, the best taken on the way."""

from __future__ import annotations

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    Device,
    Place,
    TileMatrix,
    Tuning,
    current_device,
    made_for,
    mark_entries,
    run_choices,
)
from hybrid.core.arrays import to_host
from hybrid.gpu.admission import SMALL_ENTRIES
from hybrid.gpu.choice_gains import code_gains
from hybrid.levels.probe_choices import build_choices
from hybrid.levels.stacked_curve import MOST_LAYERS
from hybrid.operators.device_choice_operator import DeviceOperator
from hybrid.operators.eligibility import NOTHING_TO_MULTIPLY, Ineligible, why_ineligible
from hybrid.operators.layer_choices import LayerChoices
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_problem import ChoiceProblem
from hybrid.solvers.workspace import Array


def device_choices(
    layer_choices: list[LayerChoices],
    problem: ChoiceProblem,
    options: CheckOptions,
) -> DeviceChoices | None:
    """Return what `fused_choices` does, or None for a refusal."""
    found = fused_choices(layer_choices, problem, options)
    return None if isinstance(found, Ineligible) else found


def fused_choices(
    layer_choices: list[LayerChoices],
    problem: ChoiceProblem,
    options: CheckOptions,
) -> DeviceChoices | Ineligible:
    """Put the matrices of all offers on the device.

    Parameters
    ----------
    layer_choices, problem, options
        As for `hybrid.operators.hybrid_choices.hybrid_choices`; offers with a row for every unknown state.

    Returns
    -------
    DeviceChoices or Ineligible
        Refused where the device is not wanted or would save too little, has no room, where an offer has rows
        for some states only, or where no level can be laid out for all layers.

    Raises
    ------
    MemoryError
        If the device was asked for and has no room.
    """
    matrices = {o.layer: o.matrix for o in layer_choices if o.matrix is not None}
    refusal = why_ineligible(options, problem)
    if refusal is not None:
        return refusal
    if not matrices:
        return Ineligible(NOTHING_TO_MULTIPLY, True)
    if any(o.place is not None for o in layer_choices):
        return Ineligible(
            "a layer has rows for some states only, and fused steps need one for every state", False
        )
    layers = 1 + max(o.layer for o in layer_choices)
    engine = options.matrix_backend()
    if layers > MOST_LAYERS:
        return Ineligible(
            f"there are {layers} layers of choices, and a fused step takes {MOST_LAYERS}", False
        )
    entries = sum(m.n_entries for m in matrices.values())
    if engine.is_free and entries < SMALL_ENTRIES:
        return Ineligible(f"{entries} non-zeros of all layers are too few for the GPU to be faster", True)
    device, size, maximise = current_device(), problem.size, problem.maximise
    known: list[ChoiceGains] = []

    def gains_for(tiles: TileMatrix) -> ChoiceGains:
        # The same for all levels: which layers have entries in a row does not depend on them.
        if not known:
            own = {o.layer: o.gain for o in layer_choices}
            factors = {o.layer: o.factor for o in layer_choices if o.factor is not None}
            marks = mark_entries(device, tiles)

            def make(place: Place) -> ChoiceGains:
                there = marks if place is device else to_host(marks)
                return code_gains(place, there, own, factors, layers, maximise)

            known.append(made_for(device, len(own) * size, make))
        return known[0]

    try:
        built = build_choices(device, matrices, layers, options.level, gains=gains_for, maximise=maximise)
    except MemoryError as error:
        if not engine.is_free:
            raise
        return Ineligible(str(error) or f"{device.name} has no room for the choices", True)
    if built is None:
        return Ineligible("no level can be laid out so that a fused step takes all layers", False)
    level, tiles = built
    found = DeviceChoices(device, tiles, gains_for(tiles), level, problem)
    found.backend_reason = engine.reason
    return found


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
    """

    def __init__(
        self,
        device: Device,
        tiles: TileMatrix,
        gains: ChoiceGains,
        level: int,
        problem: ChoiceProblem,
    ) -> None:
        super().__init__(device, problem)
        self._tiles, self._gains = tiles, gains
        self.level = level
        self.nbytes, self.operand_bytes = tiles.nbytes, gains.nbytes

    @property
    def tuning(self) -> Tuning:
        """Launch shape."""
        return self._tiles.tuning

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choices(self._device, self._tiles, self._gains, step, x, out)
