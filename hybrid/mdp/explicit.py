"""Choices written out: compressed sparse rows, one row a choice, with pointers from states to choices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.explicit.csr import index_types
from hybrid.explicit.extract import explicit_matrix, explicit_sizes
from hybrid.injection.ragged import concatenated_ranges, pointers
from hybrid.levels.report import free_memory_bytes
from hybrid.mdp.host import NoMatrix, finish_on_host, in_parts
from hybrid.mdp.offers import Groups, Offer
from hybrid.mdp.operator import NO_CHOICE, ChoiceOperator
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
    choice_ptr : ndarray, shape (size + 1,)
        Choices of every state.
    offsets : ndarray, shape (choices + 1,)
        Transitions of every choice.
    columns, values : ndarray, shape (transitions,)
        Their targets among the unknown states and their probabilities.
    gains : ndarray, shape (choices,), float64
    layers : ndarray, shape (choices,), uint16

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

    def __init__(
        self, offers: list[Offer], size: int, maximise: bool, groups: Groups | None, slack: float
    ) -> None:
        super().__init__(size, maximise, groups, slack, HostWorkspace(NoMatrix(size)))
        _check_room(offers, size)
        offers = sorted(offers, key=lambda offer: offer.layer)
        rows, degrees, matrices = [], [], []
        for offer in offers:
            has = np.isfinite(offer.gain)
            rows.append(np.flatnonzero(has) if offer.place is None else offer.place[has])
            matrix = None if offer.matrix is None else explicit_matrix(offer.matrix)
            matrices.append(matrix)
            counts = np.zeros(len(has), np.int64) if matrix is None else np.diff(matrix.row_starts)
            degrees.append(counts[has].astype(np.int64))
        choices, transitions = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for own, count in zip(rows, degrees, strict=True):
            choices[own] += 1
            transitions[own] += count
        choice, cursor = pointers(choices), pointers(transitions)[:-1]
        entries, total = int(transitions.sum()), int(choices.sum())
        place, column = index_types(size, max(entries, total))
        self.choice_ptr: NDArray[Any] = choice.astype(place)
        self.columns: NDArray[Any] = np.empty(entries, column)
        self.values = np.empty(entries)
        self.offsets: NDArray[Any] = np.full(total + 1, entries, place)
        self.gains = np.empty(total)
        self.layers = np.empty(total, np.uint16)
        for offer, own, count, matrix in zip(offers, rows, degrees, matrices, strict=True):
            here, starts = choice[own], cursor[own]
            has = np.isfinite(offer.gain)
            if matrix is not None:
                where = concatenated_ranges(starts, count)
                self.columns[where] = matrix.columns
                values = matrix.values
                if offer.factor is not None:
                    values = values * np.repeat(offer.factor[has], count)
                self.values[where] = values
            self.offsets[here] = starts
            self.gains[here] = offer.gain[has]
            self.layers[here] = offer.layer
            cursor[own] += count
            choice[own] += 1
        self.matrix_bytes = sum(a.nbytes for a in (self.columns, self.values, self.offsets, self.choice_ptr))
        self.operand_bytes = self.gains.nbytes + self.layers.nbytes
        self._no_policy = np.zeros(0, np.uint16)

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        from hybrid.mdp import kernels

        step: Any = kernels.explicit_step
        chosen = self._no_policy if policy is None else policy

        def run(begin: int, end: int, number: int) -> None:
            step(begin, end, self.choice_ptr, self.offsets, self.columns, self.values, self.gains, plain,
                 self.layers, self.maximise, chosen, policy is not None, x, out)  # fmt: skip

        in_parts(self.size, run)

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


def _check_room(offers: list[Offer], size: int) -> None:
    """Refuse before allocating what does not fit."""
    sizes = [explicit_sizes(o.matrix) for o in offers if o.matrix is not None]
    required = 2 * sum(s.matrix_bytes for s in sizes) + max((s.peak_bytes for s in sizes), default=0)
    required += sum(18 * len(o.gain) for o in offers) + 32 * size
    available = free_memory_bytes()
    if required > available:
        raise MemoryError(
            f"the choices of {size} states, written out, need {required} bytes in the host's memory, "
            f"{available} are available; use --engine hybrid or a smaller model"
        )
