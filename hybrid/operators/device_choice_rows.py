"""Choices written out on the device, one row a choice."""

from __future__ import annotations

from gpu_kernels import ChoiceRows, ChoiceStep, Device, current_device, run_choice_rows
from hybrid.operators.choice_rows import device_bytes, write_choices
from hybrid.operators.device_choice_operator import DeviceOperator
from hybrid.operators.offers import Offer
from hybrid.solvers.choice_operator import Quotient
from hybrid.solvers.workspace import Array

__all__ = ["DeviceRows", "device_rows"]


class DeviceRows(DeviceOperator):
    """See `DeviceOperator`; the choices of all layers as compressed sparse rows.

    Parameters
    ----------
    device : Device
    rows : ChoiceRows
    maximise, groups, slack
        As for `ChoiceOperator`.
    """

    level = None
    storage = "csr"

    def __init__(
        self, device: Device, rows: ChoiceRows, maximise: bool, groups: Quotient | None, slack: float
    ) -> None:
        super().__init__(device, rows.size, maximise, groups, slack)
        self._rows = rows
        self.operand_bytes = int(rows.gains.nbytes + rows.layers.nbytes)
        self.nbytes = rows.nbytes - int(rows.gains.nbytes)

    def _run(self, step: ChoiceStep, x: Array, out: Array) -> None:
        run_choice_rows(self._device, self._rows, step, x, out)


def device_rows(
    offers: list[Offer], size: int, maximise: bool, groups: Quotient | None, slack: float
) -> DeviceRows:
    """Write the choices of all layers out and put them on the current device.

    Parameters
    ----------
    offers : list of Offer
    size, maximise, groups, slack
        As for `ChoiceOperator`.

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
    required, available = device_bytes(offers, size), device.free_bytes()
    if required > available:
        raise MemoryError(
            f"the choices of {size} states, written out, need {required} bytes on {device.name}, "
            f"{available} are free; use --engine hybrid, --backend cpu, or a smaller model"
        )
    written = write_choices(offers, size)
    rows = ChoiceRows.on_device(
        device,
        written.choice_ptr,
        written.offsets,
        written.columns,
        written.values,
        written.gains,
        written.layers,
    )
    return DeviceRows(device, rows, maximise, groups, slack)
