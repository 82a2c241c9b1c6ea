"""``x = (M x + b) / diagonal``, rounded down and rounded up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from gpu_kernels.runtime.coded import array_module
from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import LinearOperator, Vector
from hybrid.matrix.space.bellman import BellmanOperator
from hybrid.matrix.space.bounded_solution import NEGLIGIBLE, least_closure, underflow_of
from hybrid.matrix.space.direct import FactoredSystem, factored_system
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import Array, Steps
from mtbdd.offset.places import is_all

_PART = 1 << 20  # elements compared together: bounds the temporary memory


class DirectedSystem(BellmanOperator):
    """The Bellman operator of a chain; divides by the diagonal, rounded in one direction.

    Lemma: directed-steps (docs/bounds.md).

    Parameters
    ----------
    matrix, diagonal, b, slack
        As for :class:`hybrid.solvers.bounding.BoundingMethod`.
    vectors : int
        Of the method, for which room is asked before anything is copied.

    Attributes
    ----------
    matrix, diagonal, b
        As they were given.
    system : System
        The equation, not rounded in any direction.
    """

    def __init__(
        self, matrix: LinearOperator, diagonal: Vector, b: Vector, slack: float, vectors: int
    ) -> None:
        space = space_of(matrix)
        space.reserve(space.more(vectors, b), b.size)
        super().__init__(space, b.size, slack, underflow_of(diagonal, slack, space.communicator))
        alike = space.communicator
        # lemma: underflow
        far = 2.0 * NEGLIGIBLE * self.underflow * alike.greatest(max(extremes(diagonal)[1], 0.0))
        self.is_far = alike.all(_exceeds(b, far))
        self.matrix, self.diagonal, self.b = matrix, diagonal, b
        self.system = space.system(diagonal, b)

    @cached_property
    def down(self) -> Steps:
        """See `BellmanOperator.down`."""
        return self.system.relaxation(factor=1.0 + self.slack)  # lemma: directed-steps

    @cached_property
    def up(self) -> Steps:
        """See `BellmanOperator.up`."""
        return self.system.relaxation(factor=1.0 - self.slack)  # lemma: directed-steps

    @property
    def entries(self) -> int | None:
        """See `BellmanOperator.entries`."""
        from hybrid.matrix.explicit.operators import entries_on_host

        return entries_on_host(self.matrix)

    def written(self, policy: Array | None = None) -> FactoredSystem:
        """See `BellmanOperator.written`."""
        from hybrid.matrix.explicit.operators import rows_on_host

        return factored_system(rows_on_host(self.matrix), self.diagonal, self.b)

    def result(self, x: Array) -> Array:
        """See `BellmanOperator.result`: where the operands were given."""
        return self.space.result(x, self.b)

    def positive(self, is_over: Callable[[], bool] | None = None) -> Array:
        """See `BellmanOperator.positive`: rows from which M leads to a positive element of b."""
        inside = self.space.vector(self.b > 0.0)
        found, steps = least_closure(self.space, inside, self.space.multiply, is_over)
        self.products += steps
        return found

    def are_zeros(self, positive: Array) -> bool:
        """See `BellmanOperator.are_zeros`: such rows have no right-hand side, and lead to no other.

        Time: a product, in which nothing underflows.
        """
        space, out = self.space, self.zeros()
        space.multiply(positive, out)
        self.products += 1
        out += space.vector(self.b > 0.0)
        (holds,) = space.read(space.all((out == 0.0) | (positive > 0.0)))
        return bool(holds)

    def raised(self, positive: Array) -> Steps:
        """See `BellmanOperator.raised`: b is raised above the floor in the rows that are positive."""
        space, xp = self.space, self.space.xp
        b = space.vector(self.diagonal)
        with np.errstate(over="ignore"):  # an infinite solution is no bound, and is reported as such
            b *= 4.0 * self.floor
        xp.maximum(b, space.operand(self.b), out=b)
        # Not a product: infinity times zero is no number.
        xp.copyto(b, 0.0, where=positive == 0.0)
        return self.system.sharing(b).relaxation(factor=1.0 + self.slack)

    def residual(self, x: Array, scratch: Array) -> float:
        """See `BellmanOperator.residual`: the greatest ``|M x + b - diagonal * x|``."""
        return self.space.read(self.system.residual(x, scratch))[0]


def _exceeds(x: Vector, limit: float) -> bool:
    """Whether all elements are greater; most vectors have a small one among the first."""
    parts = (x[i : i + _PART] for i in range(0, x.size, _PART))
    return all(is_all(array_module(part).greater(part, limit)) for part in parts)
