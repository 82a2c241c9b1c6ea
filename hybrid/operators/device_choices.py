"""Choices on the device: the matrices of all layers in one pass, the best taken on the way."""

from __future__ import annotations

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    ChoiceTiles,
    Device,
    Place,
    Tuning,
    current_device,
    made_for,
    mark_entries,
    run_choices,
)
from hybrid.core.arrays import to_host
from hybrid.core.backend import choose_backend
from hybrid.gpu.admission import SMALL_ENTRIES
from hybrid.gpu.choice_gains import code_gains
from hybrid.levels.probe_choices import MOST_LAYERS, build_choices
from hybrid.operators.device_choice_operator import DeviceOperator
from hybrid.operators.offers import Offer
from hybrid.operators.refusal import NOTHING_TO_MULTIPLY, Refusal, refuse_device
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_operator import Quotient
from hybrid.solvers.workspace import Array

__all__ = ["DeviceChoices", "choices_in_one_pass", "device_choices"]


def device_choices(
    offers: list[Offer],
    size: int,
    maximise: bool,
    groups: Quotient | None,
    slack: float,
    options: CheckOptions,
) -> DeviceChoices | None:
    """Return what `choices_in_one_pass` does, or None for a refusal."""
    found = choices_in_one_pass(offers, size, maximise, groups, slack, options)
    return None if isinstance(found, Refusal) else found


def choices_in_one_pass(
    offers: list[Offer],
    size: int,
    maximise: bool,
    groups: Quotient | None,
    slack: float,
    options: CheckOptions,
) -> DeviceChoices | Refusal:
    """Put the matrices of all offers on the device.

    Parameters
    ----------
    offers, size, maximise, groups, slack, options
        As for `hybrid.operators.hybrid_choices.hybrid_choices`; offers with a row for every unknown state.

    Returns
    -------
    DeviceChoices or Refusal
        Refused where the device is not wanted or would save too little, has no room, where an offer has rows
        for some states only, or where a step cannot be laid out as one pass.

    Raises
    ------
    MemoryError
        If the device was asked for and has no room.
    """
    matrices = {o.layer: o.matrix for o in offers if o.matrix is not None}
    refusal = refuse_device(options, size)
    if refusal is not None:
        return refusal
    if not matrices:
        return Refusal(NOTHING_TO_MULTIPLY, True)
    if any(o.place is not None for o in offers):
        return Refusal("a layer has rows for some states only, and one pass needs one for every state", False)
    layers = 1 + max(o.layer for o in offers)
    backend = options.matrix_backend()
    if layers > MOST_LAYERS:
        return Refusal(f"there are {layers} layers of choices, and one pass takes {MOST_LAYERS}", False)
    entries = sum(m.n_entries for m in matrices.values())
    if backend == "auto" and entries < SMALL_ENTRIES:
        return Refusal(f"{entries} non-zeros of all layers are too few for the GPU to be faster", True)
    device = current_device()
    known: list[ChoiceGains] = []

    def gains_for(tiles: ChoiceTiles) -> ChoiceGains:
        # The same for all levels: which layers have entries in a row does not depend on them.
        if not known:
            own = {o.layer: o.gain for o in offers}
            factors = {o.layer: o.factor for o in offers if o.factor is not None}
            marks = mark_entries(device, tiles)

            def make(place: Place) -> ChoiceGains:
                there = marks if place is device else to_host(marks)
                return code_gains(place, there, own, factors, layers, maximise)

            known.append(made_for(device, len(own) * size, make))
        return known[0]

    try:
        built = build_choices(device, matrices, layers, options.level, gains=gains_for, maximise=maximise)
    except MemoryError as error:
        if backend == "gpu":
            raise
        return Refusal(str(error) or f"{device.name} has no room for the choices", True)
    if built is None:
        return Refusal("no level can be laid out so that one pass takes all layers", False)
    level, tiles = built
    found = DeviceChoices(device, tiles, gains_for(tiles), level, maximise, groups, slack)
    found.backend_reason = choose_backend(backend).reason
    return found


class DeviceChoices(DeviceOperator):
    """See `DeviceOperator`; the matrices of all layers compressed, in tiles.

    Parameters
    ----------
    device : Device
    tiles : ChoiceTiles
    gains : ChoiceGains
    level : int
        Injection level.
    maximise, groups, slack
        As for `ChoiceOperator`.
    """

    def __init__(
        self,
        device: Device,
        tiles: ChoiceTiles,
        gains: ChoiceGains,
        level: int,
        maximise: bool,
        groups: Quotient | None,
        slack: float,
    ) -> None:
        super().__init__(device, tiles.size, maximise, groups, slack)
        self._tiles, self._gains = tiles, gains
        self.level = level
        self.nbytes, self.operand_bytes = tiles.nbytes, gains.nbytes

    @property
    def tuning(self) -> Tuning:
        """Launch shape."""
        return self._tiles.tuning

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choices(self._device, self._tiles, self._gains, step, x, out)
