"""Choices written out, one row a choice: compiled steps over them on the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.matrix.cpu.passes import CpuPasses
from hybrid.matrix.cpu.threads import threads_for
from hybrid.matrix.explicit.extract import LayerRows, explicit_matrix, explicit_sizes, merge_layers
from hybrid.matrix.operators.hybrid_choices import (
    EmptyMatrix,
    changes_of_parts,
    finish_on_host,
    parts_of,
    run_state_by_state,
)
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem, Improvement
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import Array, Pair
from mtbdd.base.errors import option
from mtbdd.base.memory import free_memory_bytes, is_small

Vector = NDArray[np.float64]

_LOOK = 1 << 14
"""Transitions that a step passes over in the time that it takes to look at it."""

_MOST_STEPS = 16
"""Between two looks."""

_BELOW = 1.0 - 1e-12
"""Times a number, which leaves room for the rounding of a step."""


class ExplicitChoices(ChoiceOperator):
    """See `ChoiceOperator`; on the host, compiled.

    Parameters
    ----------
    rows : ChoiceRows
        On the host, as `write_choices` makes them.
    problem : ChoiceProblem

    Notes
    -----
    Time: O(transitions) a step.
    """

    backend = "cpu"
    level = None
    storage = "csr"

    def __init__(self, rows: ChoiceRows, problem: ChoiceProblem) -> None:
        super().__init__(problem, HostSpace(EmptyMatrix(problem.size), CpuPasses()))
        self.rows = rows
        self.write, self.writable = (lambda: rows), len(rows.columns)
        self.nbytes, self.operand_bytes = self.rows.matrix_bytes, self.rows.operand_bytes
        self._no_policy, self._no_shape = np.zeros(0, np.uint16), np.zeros(0)

    def with_rewards(self, layer_choices: list[LayerChoices], problem: ChoiceProblem) -> ExplicitChoices:
        """Return the choices on the same matrices with other gains, groups or optimum."""
        return ExplicitChoices(replace(self.rows, gains=merged_gains(layer_choices)), problem)

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        how = Improvement(1.0, self._no_shape if plain else None, policy)
        self._run_rows(x, out, self._operands(how, is_added=False))

    def _run_rows(self, x: Array, out: Array, operands: tuple[Any, ...]) -> Vector:
        """Make a step of all states at once; return the greatest changes, shape (2,)."""
        from hybrid.matrix.cpu import choice_kernels as kernels
        from hybrid.matrix.cpu.arguments import PerPart
        from hybrid.matrix.cpu.pool import run_rows

        kernel: Any = kernels.explicit_step
        changes = np.zeros((threads_for(self.size), 3))
        run_rows(kernel, self.size, *operands, x, out, PerPart(changes))
        return changes_of_parts(changes)

    def _operands(self, how: Improvement, is_added: bool = True) -> tuple[Any, ...]:
        """Return the arguments of compiled steps that follow the numbers of states.

        `is_added` says whether a shape is added, and does not only take the place of the gains.
        """
        rows, has_shape, has_policy = self.rows, how.shape is not None, how.policy is not None
        policy, shape = how.policy if has_policy else self._no_policy, how.shape
        return (how.descending is not None, bool(how.descending), rows.choice_ptr, rows.offsets,
                rows.columns, rows.values, rows.gains, has_shape, rows.layers, self.maximise,
                policy, has_policy, how.factor, shape if has_shape else self._no_shape,
                has_shape and is_added)  # fmt: skip

    @property
    def has_gauss_seidel(self) -> bool:
        """See `ChoiceOperator.has_gauss_seidel`."""
        return self.groups is None and self.problem.communicator.size == 1

    @property
    def stride(self) -> int:
        """See `BellmanOperator.stride`."""
        return min(max(_LOOK // max(len(self.rows.columns), 1), 1), _MOST_STEPS) if self._is_one_part else 1

    def constant_below(self) -> float:
        """See `BellmanOperator.constant_below`: the least of what choices are worth that alone are taken.

        That of a choice which gains g and stays among the states with the probability p is ``g / (1 - p)``.
        """
        rows = self.rows
        if not len(rows.gains) or rows.gains.max() == 0.0:
            return 0.0
        owner = np.repeat(np.arange(len(rows.gains)), np.diff(rows.offsets))
        stays = _BELOW * np.bincount(owner, rows.values, minlength=len(rows.gains))
        with np.errstate(over="ignore"):
            worth = _BELOW * rows.gains / np.maximum(1.0 - stays, 1.0 - _BELOW)
        best = np.full(self.size, self.worst)
        has = np.diff(rows.choice_ptr) > 0
        reduce = np.maximum if self.maximise else np.minimum
        best[has] = reduce.reduceat(worth, rows.choice_ptr[:-1][has])
        self.join(best)
        least = float(best.min())
        return least if 0.0 < least < np.inf else 0.0

    @property
    def _is_one_part(self) -> bool:
        """Whether steps are calls of one thread, in which no states wait for those of other parts."""
        return parts_of(self.size) == 1 and threads_for(self.size) == 1 and self.groups is None

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        if self.groups is not None and how.descending is None:
            super()._improve(x, out, how)
            return
        operands = self._operands(how)
        if how.descending is None:
            self.changes = self._run_rows(x, out, operands)
            return
        from hybrid.matrix.cpu import choice_kernels as kernels

        kernel: Any = kernels.explicit_step

        def run(begin: int, end: int, changes: Array) -> None:
            kernel(begin, end, *operands, x, out, changes)

        self.changes = run_state_by_state(self.size, run)

    def improve_repeatedly(self, pair: Pair, done: int, count: int, how: Improvement) -> None:
        """See `ChoiceOperator.improve_repeatedly`; one call where steps are short."""
        if count < 2 or not self._is_one_part:
            super().improve_repeatedly(pair, done, count, how)
            return
        from hybrid.matrix.cpu import choice_kernels as kernels

        changes, kernel = np.zeros(3), kernels.explicit_steps
        kernel(count, *self._operands(how), pair[done % 2], pair[1 - done % 2], changes)
        self.changes = changes_of_parts(changes[np.newaxis])

    def _choices(self, x: Array) -> tuple[Array, Array]:
        rows = self.rows
        worth = rows.gains.copy()
        owner = np.repeat(np.arange(len(rows.gains)), np.diff(rows.offsets))
        worth += np.bincount(owner, rows.values * x[rows.columns], minlength=len(worth))
        best, policy = np.full(self.size, self.worst), np.full(self.size, NO_CHOICE, np.uint16)
        has = np.diff(rows.choice_ptr) > 0
        starts = rows.choice_ptr[:-1][has]
        reduce = np.maximum if self.maximise else np.minimum
        if len(starts):
            best[has] = reduce.reduceat(worth, starts)
            attained = worth == np.repeat(best, np.diff(rows.choice_ptr))
            first = np.minimum.reduceat(np.where(attained, np.arange(len(worth)), len(worth)), starts)
            policy[has] = rows.layers[first]
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        self.changes = finish_on_host(x, out, factor, shape)


def write_choices(layer_choices: list[LayerChoices], size: int) -> ChoiceRows:
    """Write the choices of all layers out, on the host.

    Parameters
    ----------
    layer_choices : list of LayerChoices
    size : int
        Unknown states.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated; with required and available bytes.

    Notes
    -----
    Time: O(transitions + states * layers).
    """
    _check_room(layer_choices, size)
    return merge_layers([_layer_rows(o) for o in sorted(layer_choices, key=lambda offer: offer.layer)], size)


def as_explicit_choices(system: ChoiceOperator) -> ChoiceOperator:
    """Return choices of the host written out, whose steps are shorter and Gauss-Seidel's; or as they are."""
    if isinstance(system, ExplicitChoices) or system.write is None or system.loses_digits:
        return system
    return ExplicitChoices(system.write(), system.problem)


def merged_gains(layer_choices: list[LayerChoices]) -> Vector:
    """Return the gains of choices in the order in which `write_choices` writes them."""
    owners, layers, gains = [], [], []
    for offer in layer_choices:
        has = np.isfinite(offer.gain)
        owners.append(np.flatnonzero(has) if offer.place is None else offer.place[has])
        layers.append(np.full(len(owners[-1]), offer.layer))
        gains.append(offer.gain[has])
    if not gains:
        return np.zeros(0)
    order = np.lexsort((np.concatenate(layers), np.concatenate(owners)))
    found: Vector = np.concatenate(gains)[order]
    return found


def _layer_rows(offer: LayerChoices) -> LayerRows:
    """Return the choices of one offer."""
    has = np.isfinite(offer.gain)
    states = np.flatnonzero(has) if offer.place is None else offer.place[has]
    if offer.matrix is None:
        none = np.zeros(0)
        return LayerRows(offer.layer, states, np.zeros(len(states), np.int8), none, none, offer.gain[has])
    matrix = explicit_matrix(offer.matrix)
    lengths = np.diff(matrix.row_starts)[has]
    values = matrix.values if offer.factor is None else matrix.values * np.repeat(offer.factor[has], lengths)
    return LayerRows(offer.layer, states, lengths, matrix.columns, values, offer.gain[has])


def _check_room(layer_choices: list[LayerChoices], size: int) -> None:
    """Refuse a matrix that does not fit, before it is allocated."""
    sizes = [explicit_sizes(o.matrix) for o in layer_choices if o.matrix is not None]
    required = 2 * sum(s.matrix_bytes for s in sizes) + max((s.peak_bytes for s in sizes), default=0)
    required += sum(18 * len(o.gain) for o in layer_choices) + 32 * size
    if not is_small(required) and required > (available := free_memory_bytes()):
        raise MemoryError(
            f"the choices of {size} states, written out, need {required} bytes in the host's memory, "
            f"{available} are available; use {option('engine', 'hybrid')} or a smaller model"
        )
