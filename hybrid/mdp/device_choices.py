"""Choices on the device: the matrices of all layers in one pass, the best taken on the way."""

from __future__ import annotations

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    ChoiceTiles,
    Device,
    Tuning,
    current_device,
    device_problem,
    mark_entries,
    run_choices,
)
from hybrid.checking.options import CheckOptions
from hybrid.gpu.choice import SMALL_ENTRIES
from hybrid.gpu.choice_build import MOST_LAYERS, build_choices
from hybrid.gpu.choice_gains import code_gains
from hybrid.mdp.device_operator import DeviceOperator
from hybrid.mdp.offers import Groups, Offer
from hybrid.solvers.workspace import Array
from mtbdd.convert import count_nonzeros

__all__ = ["DeviceChoices", "device_choices", "prefers_device"]

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
        groups: Groups | None,
        slack: float,
    ) -> None:
        super().__init__(device, tiles.size, maximise, groups, slack)
        self._tiles, self._gains = tiles, gains
        self.level = level
        self.matrix_bytes, self.operand_bytes = tiles.nbytes, gains.nbytes

    @property
    def tuning(self) -> Tuning:
        """Launch shape."""
        return self._tiles.tuning

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choices(self._device, self._tiles, self._gains, step, x, out)
