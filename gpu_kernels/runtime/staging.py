"""Arrays made on the host and then copied to a device.

CuPy compiles a kernel for every operation on arrays and every combination of types when it first meets them
on a machine. NumPy makes a small record in less time than CuPy needs to compile the first few kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from gpu_kernels.runtime.device import Device, Place
from gpu_kernels.runtime.warm_up import begin_warm_up, end_warm_up, is_compiled

Record = TypeVar("Record")

HOST_ITEMS = 1 << 20
"""Items up to which the host makes a record, in a fifth of a second: as long as a device takes, in a process
that has loaded none of the kernels of its many small operations."""

_TIMES_UNCOMPILED = 4
"""How many times as many while the device's operations are not compiled, which takes several seconds."""


class Host:
    """The host as a place where arrays are made."""

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np


def made_for(device: Device, items: int, make: Callable[[Place], Record]) -> Record:
    """Return a record on a device, made on the host and copied where it is little work.

    Parameters
    ----------
    device : Device
    items : int
        What the work grows with: entries and slots of a layout, gains of all layers.
    make : callable
        Returns the record, a frozen dataclass or None, made in the place that it is called with.

    Returns
    -------
    dataclass or None
        What `make` returned, its arrays on the device.

    Notes
    -----
    Up to 2**20 items a record is made on the host; up to 2**22 where the operations that make it on a device
    have not been compiled on this machine. Time: that of `make`, and O(bytes). Synchronises: yes where the
    record is copied.
    """
    if items <= HOST_ITEMS or (items <= _TIMES_UNCOMPILED * HOST_ITEMS and not is_compiled("layouts")):
        return copied_to(device, make(Host()))
    begin_warm_up("layouts")
    end_warm_up()
    return make(device)


def copied_to(device: Device, record: Record) -> Record:
    """Return a record whose arrays lie on a device; records within it as well.

    Parameters
    ----------
    device : Device
    record : dataclass or None
        Frozen; its NumPy arrays are copied, all else is kept.

    Returns
    -------
    dataclass or None
        Of the same type as `record`.

    Notes
    -----
    Time: O(bytes). Synchronises: yes.
    """
    if record is None:
        return record
    changed: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            changed[field.name] = device.xp.asarray(value)
        elif is_dataclass(value):
            changed[field.name] = copied_to(device, value)
    return replace(record, **changed)  # type: ignore[type-var]
