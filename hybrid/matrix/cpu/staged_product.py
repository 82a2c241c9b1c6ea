"""What products and steps of the CPU share: one kernel in stages, and care where numbers overflow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arriving import ArrivingVector
from hybrid.matrix.cpu.arguments import Each, Fixed
from hybrid.matrix.cpu.pool import run_kernel, run_together
from hybrid.matrix.cpu.stages import Stages, greatest_changes
from hybrid.matrix.reference import relax_in_place

Float64Array = NDArray[np.float64]
Vector = NDArray[np.float64] | NDArray[np.float32]
Stage = Fixed
"""Arguments of a kernel that stand for the matrix, or for a part of its rows."""
Operands = tuple[bool, Float64Array, bool, Float64Array, float]
"""Whether to relax, and with what, as kernels take them."""

_NOTHING = np.zeros(0)
NO_STEP: Operands = (False, _NOTHING, False, _NOTHING, 1.0)
"""A product alone."""


class StagedProduct(ABC):
    """Products and steps by a kernel that takes the rows in stages.

    Parameters
    ----------
    kernel : callable
        ``kernel(counter, *stage, x, *operands, changes, out)``, compiled.
    stages : Stages
        Of the arguments that stand for the matrix.
    """

    def __init__(self, kernel: Any, stages: Stages[Stage]) -> None:
        self._kernel, self._stages = kernel, stages
        self._spare: dict[int, list[tuple[NDArray[np.int64], Each]]] = {}

    @abstractmethod
    def _threads(self, x: Vector) -> int:
        """Return how many threads a sweep is worth."""

    @abstractmethod
    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out`` where a step has met numbers that are not finite."""

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

        Returns
        -------
        tuple of float, float
            Greatest absolute change and greatest change relative to the new value.
        """
        changes = self._run(_step(b, diagonal, omega), out, x, self._stages.all)
        if (greatest := greatest_changes(changes)) is not None:
            return greatest
        # The compiled step multiplies the old iterate by 1 - omega also where that is zero.
        self._multiply_exactly(x, out)
        return relax_in_place(x, b, diagonal, omega, out)

    def relax_meanwhile(
        self,
        x: ArrivingVector,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float,
        out: Float64Array,
    ) -> tuple[float, float]:
        """Return what `relax` does, in the order of `multiply_meanwhile`."""
        changes = self._stages.run(partial(self._run, _step(b, diagonal, omega), out), x)
        if (greatest := greatest_changes(changes)) is not None:
            return greatest
        self._multiply_exactly(x.received(), out)
        return relax_in_place(x.own, b, diagonal, omega, out)

    def _run(
        self,
        operands: Operands,
        out: Vector,
        x: Vector,
        stages: Sequence[Stage],
        advance: Callable[[], None] | None = None,
        kernel: Any = None,
    ) -> Float64Array:
        threads, kernel = self._threads(x), kernel or self._kernel
        if len(stages) == 1 and advance is None:
            return self._run_at_once(kernel, operands, out, x, stages[0], threads)
        counters, changes = np.zeros((len(stages), 1), np.int64), np.zeros((len(stages) * threads, 3))

        def work(number: int) -> None:
            for k, stage in enumerate(stages):
                kernel(counters[k], *stage.arguments, x, *operands, changes[k * threads + number], out)
                if advance is not None and number == 0:
                    advance()

        run_together(work, threads)
        return changes

    def _run_at_once(
        self, kernel: Any, operands: Operands, out: Vector, x: Vector, stage: Stage, threads: int
    ) -> Float64Array:
        # The same counters and changes serve again, so that the words of a call are known; callers at the
        # same time have their own.
        spare = self._spare.setdefault(threads, [])
        counter, changes = spare.pop() if spare else (np.zeros(1, np.int64), Each(np.zeros((threads, 3))))
        counter[0] = 0
        try:
            run_kernel(kernel, threads, counter, stage, x, *operands, changes, out)
            found: Float64Array = np.array(changes.values)
        finally:
            spare.append((counter, changes))
        return found


def _step(b: Float64Array | None, diagonal: Float64Array, omega: float) -> Operands:
    return True, _NOTHING if b is None else b, b is not None, diagonal, omega
