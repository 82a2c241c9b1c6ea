"""Choices written out, one row a choice: compiled steps over them on the host."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.matrix.backends import FEW_EQUATIONS
from hybrid.matrix.cpu.passes import CpuPasses
from hybrid.matrix.cpu.threads import threads_for
from hybrid.matrix.explicit.extract import LayerRows, explicit_matrix, explicit_sizes, merge_layers
from hybrid.matrix.operators.array_choices import ArrayChoices
from hybrid.matrix.operators.hybrid_choices import compiled_passes
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Improvement
from hybrid.matrix.space.vector_space import Array, Pair
from mtbdd.base.errors import option
from mtbdd.base.memory import free_memory_bytes, is_small

Vector = NDArray[np.float64]

_LOOK = 1 << 14
"""Transitions that a step passes over in the time that it takes to look at it."""

_MOST_STEPS = 16
"""Between two looks."""


class ExplicitChoices(ArrayChoices):
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
    solves_policies = False

    def __init__(self, rows: ChoiceRows, problem: ChoiceProblem) -> None:
        super().__init__(rows, problem, CpuPasses())
        self._no_policy, self._no_shape = np.zeros(0, np.uint16), np.zeros(0)

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        how = Improvement(1.0, self._no_shape if plain else None, policy)
        compiled_passes().step_at_once(self.size, *self._operands(how, is_added=False), x, out)

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

    @property
    def _is_one_part(self) -> bool:
        """Whether steps are calls of one thread, in which no states wait for those of other parts."""
        is_one = self.groups is None and threads_for(self.size) == 1
        return is_one and compiled_passes().parts_of(self.size) == 1

    def _improve(self, x: Array, out: Array, how: Improvement) -> None:
        if self.groups is not None and how.descending is None:
            super()._improve(x, out, how)
            return
        passes = compiled_passes()
        step = passes.step_at_once if how.descending is None else passes.state_by_state
        self.changes = step(self.size, *self._operands(how), x, out)

    def improve_repeatedly(self, pair: Pair, done: int, count: int, how: Improvement) -> None:
        """See `ChoiceOperator.improve_repeatedly`; one call where steps are short."""
        if count < 2 or not self._is_one_part:
            super().improve_repeatedly(pair, done, count, how)
            return
        operands, pair = self._operands(how), (pair[done % 2], pair[1 - done % 2])
        self.changes = compiled_passes().steps_at_once(count, *operands, *pair)

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        self.changes = compiled_passes().finish_on_host(x, out, factor, shape)


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


def written_choices(rows: ChoiceRows, problem: ChoiceProblem, engine: str, reason: str) -> ArrayChoices:
    """Return choices that are written out, whose steps are made by arrays where the engine is the reference.

    Many states whose policies have equations that are not solved soon have compiled steps, unless the
    reference was asked for, or is all there is.
    """
    if engine == "reference":
        is_all = reason == "asked for" or find_spec("numba") is None
        are_few = is_all or problem.size <= FEW_EQUATIONS
        later = None if are_few else ExplicitChoices
        found = ArrayChoices(rows, problem, later=later)
        if are_few or found.solves_policies:
            found.backend_reason = reason
            return found
    return ExplicitChoices(rows, problem)


def as_explicit_choices(system: ChoiceOperator) -> ChoiceOperator:
    """Return choices of the host written out, whose steps are shorter, or as they are.

    Compiled steps are Gauss-Seidel's, too.
    """
    if isinstance(system, ArrayChoices) or system.write is None or system.loses_digits:
        return system
    return written_choices(system.write(), system.problem, system.backend, system.backend_reason)


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
