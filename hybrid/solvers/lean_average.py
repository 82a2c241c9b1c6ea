"""The bias of an average in the fewest vectors: BiCGStab from the beginning, operands by dictionary.

Where value iteration and its Krylov methods have no room (:mod:`hybrid.solvers.average_reward`), six vectors
may still have it; with a preconditioner, where there is one and room for it.  Whatever bias comes out, its
bounds hold.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion, Status, Vector
from hybrid.matrix.space.record import Kept, Numbers
from hybrid.matrix.space.recurrence import Recurrence
from hybrid.matrix.space.workspace import OPERANDS, Array, Workspace
from hybrid.solvers.average_bounds import average_bounds
from hybrid.solvers.average_krylov import ORTHOGONAL, AnchoredSolution

LEAN_VECTORS = 8
"""Six of BiCGStab, diagonal and rewards."""


@dataclass(eq=False)
class LeanCourse:
    """An average's bias by BiCGStab alone.

    Attributes
    ----------
    space : Workspace
    diagonal, rewards : vector or CodedVector, shape (n,)
        Operands of the space.
    products, probes : int
        Made so far, those of earlier runs included, and besides.
    more_vectors : int
        Always 0: `nbytes` tells what is held.
    """

    space: Workspace
    diagonal: Vector
    rewards: Vector
    products: int = 0
    probes: int = 0
    more_vectors = 0

    def __post_init__(self) -> None:
        """Ask for room; the operands may have theirs already."""
        self.space.reserve(self.space.more(LEAN_VECTORS, self.diagonal), len(self.rewards))
        self._h: Array | None = None
        self._anchor, self._vectors = 0, LEAN_VECTORS

    @property
    def nbytes(self) -> int:
        """Bytes held at once beside the matrix."""
        return 8 * (self._vectors - OPERANDS) * len(self.rewards) + self.diagonal.nbytes + self.rewards.nbytes

    def take(self, kept: Kept) -> None:
        """Go on from what an earlier run has left, whichever course it had; constants do not count."""
        self._h, self.products = kept.vectors["h"], int(kept.numbers["products"])

    def run(
        self, anchor: int, criterion: Criterion, floor: Callable[[float, float], float], clock: Clock
    ) -> Status:
        """Iterate until the bounds are close, or nothing helps; parameters as for `AnchoredSolution`."""
        space, self._anchor = self.space, anchor
        start = np.broadcast_to(np.float64(0.0), (len(self.rewards),)) if self._h is None else self._h
        recurrence = self._recurrence(start)
        # It has a copy.
        del start
        self._h = None
        solution = AnchoredSolution(space, recurrence, self.diagonal, anchor, criterion, floor)
        reached = solution.run(self.products, np.inf, clock)
        self.products += reached.products
        self._h = recurrence.x
        if not math.isfinite(reached.difference):
            # A bias without numbers has no bounds; that of zeros has the least and the greatest reward.
            self._h[...] = 0.0
        return reached.status

    def _recurrence(self, start: Array) -> Recurrence:
        space, size, anchor = self.space, len(self.rewards), self._anchor
        system = space.system(self.diagonal, self.rewards)
        found = system.preconditioner()
        if found is not None:
            self.probes = found.probes
            vectors = LEAN_VECTORS + found.more_vectors
            if found.is_worth_it and space.has_room(space.more(vectors, self.diagonal), size):
                # What is free may be cut into pieces.
                with contextlib.suppress(MemoryError):
                    recurrence = found.bicgstab(None, start, 0.0, ORTHOGONAL, anchor)
                    self._vectors = vectors
                    return recurrence
        return space.communicator.with_room(lambda: system.bicgstab(start, 0.0, ORTHOGONAL, anchor))

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return the bias and the average so far, for records."""
        (offset,) = self.space.read(self.space.element(self._h, self._anchor))
        return {"h": self._h}, {"offset": offset, "products": self.products}

    def bounds(self, slack: float) -> tuple[Array, Array]:
        """Return bounds on the average, see `average_bounds`; the vectors of the iteration are let go."""
        space, h = self.space, self._h
        assert h is not None
        least, most = space.extremes(h)
        h -= 0.5 * (least + most)
        rewards, diagonal = space.plain(self.rewards), space.plain(self.diagonal)
        rho, error = (space.xp.empty(len(h)) for _ in range(2))
        return average_bounds(space, h, rewards, diagonal, rho, error, slack)
