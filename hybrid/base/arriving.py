"""A vector of which a process has its own elements, while those of others are under way."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.communicator import NO_EXCHANGE, Exchange

Vector = NDArray[np.float64]


class ArrivingVector:
    """The own elements of a vector, and room for all; leaving its ``with`` block waits for the others.

    Parameters
    ----------
    own : ndarray, shape (own columns,), float64
    whole : ndarray, shape (n_columns,), float64
        Room for the own elements, and behind them what `exchange` brings.
    exchange : Exchange, optional

    Attributes
    ----------
    own, whole, exchange
        `received` copies all own elements to `whole`; before, `whole` has those that `Halo.cover` names.
    """

    def __init__(self, own: Vector, whole: Vector, exchange: Exchange = NO_EXCHANGE) -> None:
        self.own, self.whole, self.exchange = own, whole, exchange
        self._is_copied = False

    @property
    def is_under_way(self) -> bool:
        """Whether some elements may not be there yet."""
        return self.exchange.is_open

    def advance(self) -> None:
        """See `Exchange.advance`."""
        self.exchange.advance()

    def finish(self) -> None:
        """Wait for the elements of others."""
        self.exchange.finish()

    def received(self) -> Vector:
        """Return all elements: wait, and put the own ones before the others."""
        if not self._is_copied:
            self.whole[: self.own.size] = self.own
            self._is_copied = True
        self.finish()
        return self.whole

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()
