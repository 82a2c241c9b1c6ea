"""Counting what is allocated while a method runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.gpu.device_space import DeviceSpace

__all__ = ["CountingModule", "memory_at_looks"]


class CountingModule:
    """NumPy, with a list of the arrays that its functions have made: names and sizes; `out` makes none."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        own = getattr(np, name)
        if not callable(own) or isinstance(own, type):
            return own

        def counted(*arguments: Any, **options: Any) -> Any:
            result = own(*arguments, **options)
            is_new = options.get("out") is None and not any(result is argument for argument in arguments)
            if isinstance(result, (np.ndarray, np.generic)) and is_new:
                self.made.append((name, int(np.size(result))))
            return result

        return counted


@contextmanager
def memory_at_looks(monkeypatch: pytest.MonkeyPatch, used: Callable[[], int]) -> Iterator[list[int]]:
    """Record how much memory is in use whenever a method looks at numbers on the device."""
    found: list[int] = []
    read = DeviceSpace.read

    def recorded(space: DeviceSpace, *arrays: Any) -> list[float]:
        found.append(used())
        return read(space, *arrays)

    with monkeypatch.context() as patch:
        patch.setattr(DeviceSpace, "read", recorded)
        yield found
