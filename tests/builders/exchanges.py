"""Exchanges by windows on an emulated device, which cannot wait within one."""

from __future__ import annotations

from functools import partial
from typing import Any

from hybrid.matrix.gpu.transports import PeerTransport

__all__ = ["InTurns"]


class InTurns(PeerTransport):
    """Steps of an exchange one by one, all processes waiting for each other between them."""

    def begin(self, x: Any) -> None:
        alike = self.alike
        for step in (self._pushes.announce, partial(self._pushes.push, x), self._pushes.await_arrivals):
            alike.gather([0.0])
            step()
