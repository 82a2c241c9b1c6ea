"""A product in stages: what needs no late columns while these are under way, then the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid.core.arriving import ArrivingVector

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_MOST = 8
_LEAST_TERMS = 1 << 16
"""Near terms, about fifty microseconds of work, below which a call of their own costs more than it saves."""
_STAGE_TERMS = 1 << 18
"""Terms of a stage, about a fifth of a millisecond, while there are fewer than `_MOST`."""


class Run(Protocol[T_contra]):
    """Runs a kernel on some stages."""

    def __call__(
        self, x: Float64Array, stages: Sequence[T_contra], advance: Callable[[], None] | None = None
    ) -> Float64Array:
        """Call `advance` between stages, and return what every call of the kernel found, shape (calls, 3)."""


@dataclass(frozen=True, eq=False)
class Stages(Generic[T]):
    """Work of a product, as its kernel takes it.

    Attributes
    ----------
    all : sequence of T
        All of it in one call.
    near, far : sequence of T
        What reads no late columns, and the rest; both empty where waiting first is expected to be faster.
    """

    all: Sequence[T]
    near: Sequence[T]
    far: Sequence[T]

    def run(self, run: Run[T], x: ArrivingVector) -> Float64Array:
        """Multiply near rows, with messages moving between the stages, wait, and multiply the others."""
        if not self.near:
            return run(x.received(), self.all)
        found = run(x.own, self.near, x.advance if x.is_under_way else None)
        x.finish()
        return np.concatenate((found, run(x.whole, self.far)))


def greatest_changes(found: Float64Array) -> tuple[float, float] | None:
    """Return the greatest absolute and relative change of a step, of what every call of its kernel found.

    Returns
    -------
    tuple of float, float, or None
        None where some new value is no finite number.
    """
    if math.isfinite(found[:, 2].sum()):
        return float(found[:, 0].max()), float(found[:, 1].max())
    return None


def cut_stages(size: int, terms: int) -> list[tuple[int, int]]:
    """Cut near work into ranges between which messages are given time, since some move in calls of MPI alone.

    Parameters
    ----------
    size : int
        Pieces of work.
    terms : int
        Terms of all of them.

    Returns
    -------
    list of tuple of int, int
        At most eight; none where there is too little work to be done apart.
    """
    count = 0 if terms < _LEAST_TERMS else min(_MOST, 1 + terms // _STAGE_TERMS)
    cuts = np.unique(np.linspace(0, size, count + 1).astype(np.int64)).tolist()
    return list(zip(cuts[:-1], cuts[1:], strict=True))
