"""Steps over choices written out, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybrid.cpu.threads import run_in_parts
from hybrid.operators.choice_rows import write_choices
from hybrid.operators.host_choices import NoMatrix, finish_on_host
from hybrid.operators.offers import Offer
from hybrid.solvers.choice_operator import NO_CHOICE, ChoiceOperator, Quotient
from hybrid.solvers.host import HostWorkspace
from hybrid.solvers.workspace import Array

__all__ = ["ExplicitChoices"]


class ExplicitChoices(ChoiceOperator):
    """See `ChoiceOperator`; on the host, compiled.

    Parameters
    ----------
    offers : list of Offer
    size, maximise, groups, slack
        As for `ChoiceOperator`.

    Attributes
    ----------
    choice_ptr, offsets, columns, values, gains, layers
        See `hybrid.operators.choice_rows.WrittenChoices`.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated.

    Notes
    -----
    Time: O(transitions + states * layers) to build, O(transitions) a step.
    """

    backend = "cpu"
    level = None
    storage = "csr"

    def __init__(
        self, offers: list[Offer], size: int, maximise: bool, groups: Quotient | None, slack: float
    ) -> None:
        super().__init__(size, maximise, groups, slack, HostWorkspace(NoMatrix(size)))
        written = write_choices(offers, size)
        self.choice_ptr, self.offsets = written.choice_ptr, written.offsets
        self.columns, self.values = written.columns, written.values
        self.gains, self.layers = written.gains, written.layers
        self.nbytes = sum(a.nbytes for a in (self.columns, self.values, self.offsets, self.choice_ptr))
        self.operand_bytes = self.gains.nbytes + self.layers.nbytes
        self._no_policy = np.zeros(0, np.uint16)

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        from hybrid.cpu import choice_kernels as kernels

        step: Any = kernels.explicit_step
        chosen = self._no_policy if policy is None else policy

        def run(begin: int, end: int, number: int) -> None:
            step(begin, end, self.choice_ptr, self.offsets, self.columns, self.values, self.gains, plain,
                 self.layers, self.maximise, chosen, policy is not None, x, out)  # fmt: skip

        run_in_parts(self.size, run)

    def _choices(self, x: Array) -> tuple[Array, Array]:
        worth = self.gains.copy()
        owner = np.repeat(np.arange(len(self.gains)), np.diff(self.offsets))
        worth += np.bincount(owner, self.values * x[self.columns], minlength=len(worth))
        best, policy = np.full(self.size, self.worst), np.full(self.size, NO_CHOICE, np.uint16)
        has = np.diff(self.choice_ptr) > 0
        starts = self.choice_ptr[:-1][has]
        reduce = np.maximum if self.maximise else np.minimum
        if len(starts):
            best[has] = reduce.reduceat(worth, starts)
            attained = worth == np.repeat(best, np.diff(self.choice_ptr))
            first = np.minimum.reduceat(np.where(attained, np.arange(len(worth)), len(worth)), starts)
            policy[has] = self.layers[first]
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        self.changes = finish_on_host(x, out, factor, shape)
