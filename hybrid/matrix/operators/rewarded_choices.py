"""Choices whose gains change from one system to the next, while the matrices stay.

A chain is a decision process with one layer.  Any engine and backend may hold the matrices; every layer has
a row for every unknown state, and its gains are plain vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.backends import Backend
from hybrid.matrix.explicit.operators import ExplicitOperator
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, ChoiceProblem
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import Array, VectorSpace

Vector = NDArray[np.float64]


class BufferedProduct:
    """A matrix whose products lie where it has its space.

    Parameters
    ----------
    matrix : HybridMatrix, DistributedMatrix or ExplicitOperator
    """

    def __init__(self, matrix: HybridMatrix | DistributedMatrix | ExplicitOperator) -> None:
        self.matrix = matrix
        self.space: VectorSpace = space_of(matrix)
        self._product = self.space.xp.empty(matrix.shape[0])

    def __call__(self, x: Array) -> Array:
        """Return the product with x, which the next one overwrites."""
        self.space.multiply(x, self._product)
        return self._product


@dataclass(frozen=True, eq=False)
class RewardedLayer:
    """One layer's choices.

    Attributes
    ----------
    matrix : BufferedProduct or None
        From the unknown states to themselves; None if it has no entries.
    factor : array, shape (n,), float64, or None
        To multiply the product with; None is 1.
    allowed : array, shape (n,), bool
        Where the layer has a choice that may be taken.
    """

    matrix: BufferedProduct | None
    factor: Array | None
    allowed: Array


class RewardedChoices(ChoiceOperator):
    """See `ChoiceOperator`; gains are those of the last call of `set_rewards`.

    Parameters
    ----------
    layers : sequence of RewardedLayer
        At most 65,534.
    problem : ChoiceProblem
    space : VectorSpace
        Where vectors live, beside all matrices.
    engine : Backend
        Where matrices are held.
    """

    def __init__(
        self, layers: Sequence[RewardedLayer], problem: ChoiceProblem, space: VectorSpace, engine: Backend
    ) -> None:
        super().__init__(problem, space)
        self._layers = tuple(layers)
        xp: Any = space.xp
        self._blank = [xp.where(e.allowed, 0.0, self.worst) for e in self._layers]
        self._gains = self._blank
        self.operand_bytes = 25 * problem.size * len(self._layers)
        self.backend, self.backend_reason = engine.name, engine.reason
        self.level, self.storage, self.nbytes = None, None, 0
        self.hold(e.matrix for e in self._layers if e.matrix is not None)

    def hold(self, matrices: Iterable[BufferedProduct]) -> None:
        """Count matrices that gains are made with among those held."""
        for held in matrices:
            if self.nbytes == 0:
                self.level, self.storage = held.matrix.level, held.matrix.storage
            self.nbytes += held.matrix.nbytes

    def set_rewards(self, gains: Sequence[Array]) -> None:
        """Take other gains, one vector a layer, shape (n,), float64; they count where a choice is allowed."""
        self._gains = [own + blank for own, blank in zip(gains, self._blank, strict=True)]

    # ------------------------------------------------------------------ steps

    def _best(self, x: Array, out: Array, plain: bool, policy: Array | None) -> None:
        xp: Any = self.space.xp
        reduce = xp.maximum if self.maximise else xp.minimum
        out.fill(self.worst)
        for number, e in enumerate(self._layers):
            value = self._value(e, x, (self._blank if plain else self._gains)[number])
            if policy is not None:
                value = xp.where(policy == number, value, self.worst)
            reduce(out, value, out=out)

    def _value(self, e: RewardedLayer, x: Array, gains: Array) -> Array:
        """Return what a layer's choices are worth."""
        if e.matrix is None:
            return gains
        with np.errstate(over="ignore", invalid="ignore"):
            product = e.matrix(x)
            return (product if e.factor is None else product * e.factor) + gains

    def _choices(self, x: Array) -> tuple[Array, Array]:
        xp: Any = self.space.xp
        best, policy = xp.full(self.size, self.worst), xp.full(self.size, NO_CHOICE, dtype=np.uint16)
        for number, e in enumerate(self._layers):
            value = self._value(e, x, self._gains[number])
            better = value > best if self.maximise else value < best
            best = xp.where(better, value, best)
            policy = xp.where(better, np.uint16(number), policy)
        return best, policy

    def _finish(self, x: Array, out: Array, factor: float, shape: Array | None) -> None:
        if factor != 1.0:
            out *= factor
        if shape is not None:
            out += shape
        self.changes = np.zeros(2) if self.space.is_empty(self.size) else self.space.distance(out, x)
