"""Passes over vectors of which every process has a part: what is measured is measured over all parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.base.arrays import extremes, to_host
from hybrid.base.operands import Halo
from hybrid.matrix.reference import relax_in_place
from hybrid.matrix.space.base import LinearOperator, Vector
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.swept import RowSweeps
from hybrid.matrix.space.vector_space import Array, VectorSpace
from mtbdd.base.communicator import Communicator


class DistributedReductions(VectorSpace):
    """Reductions over all processes, to be put before a vector space of the own parts of vectors.

    Attributes
    ----------
    together : DistributedPasses
    """

    together: DistributedPasses

    def stretch(self, most: int) -> int:
        """See `VectorSpace.stretch`."""
        return min(self.stride, most)

    def distance(self, x: Array, y: Array) -> Vector:
        """See `VectorSpace.distance`."""
        return self.together.greatest_changes(x, y)

    def extremes(self, x: Array) -> tuple[np.float64, np.float64]:
        """See `VectorSpace.extremes`."""
        return self.together.extremes(x)

    def all(self, mask: Array) -> bool:
        """See `VectorSpace.all`."""
        return self.communicator.all(to_host(super().all(mask)))

    def any(self, mask: Array) -> bool:
        """See `VectorSpace.any`."""
        return self.communicator.any(to_host(super().any(mask)))

    def least(self, x: Array) -> np.float64:
        """See `VectorSpace.least`; infinite where no process has an element."""
        own = float(to_host(super().least(x))) if x.size else np.inf
        return np.float64(self.communicator.least(own))

    def greatest(self, x: Array) -> np.float64:
        """See `VectorSpace.greatest`; 0 at least, for numbers that are not negative."""
        own = np.maximum(to_host(super().greatest(x)), 0.0) if x.size else 0.0
        return np.float64(self.communicator.greatest(float(own)))

    def agreed(self, changes: Array) -> Vector:
        """See `VectorSpace.agreed`."""
        return self.together.agreed(to_host(changes))

    def element(self, x: Array, place: int) -> Vector:
        """See `VectorSpace.element`."""
        return np.array([self.together.element(x, place)])


class DistributedHostSpace(DistributedReductions, HostSpace):
    """See `VectorSpace`; of the own part of a matrix and of all vectors.

    Parameters
    ----------
    matrix : LinearOperator
        Its products and steps are those of all processes.
    passes : Passes
        Of the own parts.
    communicator : Communicator
    halo : Halo, optional
        What others have of the vectors that the matrix multiplies.
    sweeps : callable, optional
        Returns sweeps over the own rows, of a matrix over own elements and halo; None if there are none.  All
        processes ask at once, and have sweeps if each of them has.
    """

    stride = 10  # what all have to agree on costs a message

    def __init__(
        self,
        matrix: LinearOperator,
        passes: Passes,
        communicator: Communicator,
        halo: Halo | None = None,
        sweeps: Callable[[], RowSweeps | None] | None = None,
    ) -> None:
        def agreed() -> DistributedSweeps | None:
            if halo is None or sweeps is None:
                return None
            own = sweeps()
            has = communicator.all(own is not None)
            return DistributedSweeps(own, halo) if has and own is not None else None

        self.together = DistributedPasses(passes, communicator)
        super().__init__(matrix, self.together, sweeps=agreed)
        self.communicator, self._own_passes = communicator, passes

    def over(self, matrix: LinearOperator) -> DistributedHostSpace:
        """See `HostSpace.over`."""
        return DistributedHostSpace(matrix, self._own_passes, self.communicator)

    def reserve(self, vectors: int, size: int) -> None:
        """See `VectorSpace.reserve`: refused in all processes, which call it at once, if some has no room."""
        self.communicator.with_room(lambda: HostSpace.reserve(self, vectors, size))


class DistributedSweeps:
    """See `RowSweeps`; rows see the newest values of own rows, and of others those that the sweep began with.

    Parameters
    ----------
    own : RowSweeps
        Over the own rows.
    halo : Halo
    """

    def __init__(self, own: RowSweeps, halo: Halo) -> None:
        self._own, self._halo = own, halo

    def sweep(
        self,
        x: Vector,
        b: Vector | None,
        diagonal: Vector,
        out: Vector,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """See `RowSweeps.sweep`; all processes call it at once."""
        with self._halo.exchange(x) as arriving:
            whole = arriving.received()
            self._own.sweep(whole, b, diagonal, out, less, omega, descending)


class EmptySweeps:
    """See `RowSweeps`; of rows without entries."""

    def sweep(
        self,
        x: Vector,
        b: Vector | None,
        diagonal: Vector,
        out: Vector,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """See `RowSweeps.sweep`."""
        out.fill(-less)
        relax_in_place(x, b, diagonal, omega, out)


class DistributedPasses:
    """See `Passes`; sums are added up in the order of the processes.

    Every process has the same signs of shadow vectors for its own elements.

    Parameters
    ----------
    passes : Passes
        Of the own parts.
    communicator : Communicator
    """

    def __init__(self, passes: Passes, communicator: Communicator) -> None:
        self._own, self._all = passes, communicator
        self.add_scaled, self.uniformise, self.each = passes.add_scaled, passes.uniformise, passes.each
        self.image, self.subtract_from = passes.image, passes.subtract_from
        self.clear, self.aim, self.settle, self.step = passes.clear, passes.aim, passes.settle, passes.step

    def greatest_changes(self, new: Vector, old: Vector) -> Vector:
        """See `Passes.greatest_changes`."""
        own = self._own.greatest_changes(new, old) if new.size else np.zeros(2)
        found: Vector = self._all.gather(own).max(axis=0)
        return found

    def agreed(self, changes: Vector) -> Vector:
        """See `Passes.agreed`."""
        found: Vector = self._all.gather(changes).max(axis=0)
        return found

    def extremes(self, x: Vector) -> tuple[np.float64, np.float64]:
        """See `Passes.extremes`; parts may be empty, not all of them."""
        least, most = self._own.extremes(x) if x.size else (np.float64(np.inf), np.float64(-np.inf))
        found = self._all.gather([least, most])
        return found[:, 0].min(), found[:, 1].max()

    def element(self, x: Vector, place: int) -> float:
        """See `Passes.element`."""
        return float(self._all.total([self._own.element(x, place) if place >= 0 else 0.0])[0])

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """See `Passes.shadow_sums`."""
        return self._all.total(self._own.shadow_sums(x, weights))

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """See `Passes.step_sums`."""
        return self._all.total(self._own.step_sums(t, r, weights))


def place_of_greatest(communicator: Communicator, x: Vector) -> tuple[int, float]:
    """Return the place of the greatest element of a vector, and the element.

    Of several the first; the place is -1 where another process has it.
    """
    place = int(x.argmax()) if len(x) else -1
    found = communicator.gather([extremes(x)[1]]).reshape(-1)
    is_own = int(np.argmax(found)) == communicator.rank
    return place if is_own else -1, float(found.max())
