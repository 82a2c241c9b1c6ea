"""A product in stages: early rows while the late columns are received, then late rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arriving import ArrivingVector

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_MOST = 8
"""Stages of the early rows at most."""

_LEAST_TERMS = 1 << 16
"""Terms of early rows, about fifty microseconds of work, below which calls of their own do not pay."""

_STAGE_TERMS = 1 << 18
"""Terms of a stage, about a fifth of a millisecond, while there are fewer stages than `_MOST`."""


class Run(Protocol[T_contra]):
    """Runs the kernel of a product, one call a stage and thread."""

    def __call__(
        self, x: Float64Array, stages: Sequence[T_contra], advance: Callable[[], None] | None = None
    ) -> Float64Array:
        """Call `advance` after every stage; return the changes of each call of the kernel, (calls, 3)."""


@dataclass(frozen=True, eq=False)
class Stages(Generic[T]):
    """The rows of a product in stages; T holds the arguments of the kernel for one stage.

    Attributes
    ----------
    all : sequence of T
        All rows as one stage.
    early, late : sequence of T
        Stages of the rows that read no late columns, and of the other rows; both empty where waiting for the
        late columns first is expected to be faster.
    """

    all: Sequence[T]
    early: Sequence[T]
    late: Sequence[T]

    def run(self, run: Run[T], x: ArrivingVector) -> Float64Array:
        """Multiply early rows, advancing the messages between stages; wait for them; multiply late rows."""
        if not self.early:
            return run(x.received(), self.all)
        changes = run(x.own, self.early, x.advance if x.is_under_way else None)
        x.finish()
        return np.concatenate((changes, run(x.whole, self.late)))


def greatest_changes(found: Float64Array) -> tuple[float, float] | None:
    """Return the greatest absolute and relative change of a step.

    Parameters
    ----------
    found : ndarray, shape (calls, 3), float64
        Of every call of the kernel: greatest absolute and relative change, and a number that is finite only
        if all new values are.

    Returns
    -------
    tuple of float, float, or None
        None where some new value is no finite number.
    """
    if math.isfinite(found[:, 2].sum()):
        return float(found[:, 0].max()), float(found[:, 1].max())
    return None


def cut_stages(size: int, terms: int) -> list[tuple[int, int]]:
    """Cut early rows into stages, between which MPI advances its messages: some move within its calls alone.

    Parameters
    ----------
    size : int
        Chunks or tasks of the early rows.
    terms : int
        Terms of all of them.

    Returns
    -------
    list of tuple of int, int
        Half-open ranges of 0 .. size, at most eight; none where there is too little work for stages.
    """
    count = 0 if terms < _LEAST_TERMS else min(_MOST, 1 + terms // _STAGE_TERMS)
    cuts = np.unique(np.linspace(0, size, count + 1).astype(np.int64)).tolist()
    return list(zip(cuts[:-1], cuts[1:], strict=True))
