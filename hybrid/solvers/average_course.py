"""The iterates behind the bounds on a long-run average: bias, visits, average so far."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.idr import IDR_VECTORS, SINGLE_VECTORS
from hybrid.matrix.space.preconditioner import Preconditioner
from hybrid.matrix.space.record import Kept, Numbers
from hybrid.matrix.space.recurrence import Recurrence
from hybrid.matrix.space.workspace import Array, Steps, Workspace
from hybrid.solvers.average_bounds import average_bounds
from hybrid.solvers.average_krylov import ORTHOGONAL

_OPERANDS = 2
_LET_GO = 5  # vectors that the steps need and IDR(s) does not
_KEPT = 2  # of them that are kept where there is room: w and its increments
_UNLIKE = 0.125  # of the distance of the bounds: where a front is on its way some error changes by more


class AverageCourse:
    """The two iterations; all vectors and numbers stay in the workspace.

    Attributes
    ----------
    products, probes : int
        Made by the iterations and what takes over from them, and besides.
    """

    nbytes = None
    _spare: Array
    _moved: Array
    _right: Array
    _before: Array | None
    _pacing: Steps | None
    _moving: Steps | None

    def __init__(self, space: Workspace, diagonal: Vector, rewards: Vector, omega: float) -> None:
        self.space, self._omega = space, omega
        self.diagonal, self._rewards = space.plain(diagonal), space.plain(rewards)
        self._system = space.system(diagonal, space.ones(len(rewards)))
        self._h = space.xp.zeros(len(rewards))
        self._offset = space.xp.zeros(())
        self.products = self.more_vectors = self.probes = 0
        self._w: Array | None = None
        self._paces: tuple[Array, Array] | None = None
        self.settled = False
        self._let_go()

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return the bias and the average so far, for records."""
        (offset,) = self.space.read(self._offset)
        return {"h": self._h}, {"offset": offset, "products": self.products}

    def take(self, kept: Kept) -> None:
        """Go on from what an earlier run has left."""
        self._h, self.products = kept.vectors["h"], int(kept.numbers["products"])
        self._offset = self._offset + kept.numbers["offset"]

    def begin(self) -> None:
        """Make what the iterations need besides h and the average so far; a w that was let go begins anew."""
        xp, size, omega = self.space.xp, self._h.size, self._omega
        if self._w is None:
            self._w, self._paced = xp.zeros(size), xp.ones(size)
            self._paces, self.settled = None, False
        self._spare, self._moved = xp.empty(size), xp.empty(size)
        self._right = self.space.vector(self._rewards)
        self._right -= self._offset
        self._pacing = self._system.relaxation(omega)
        self._moving = self._system.sharing(self._right).relaxation(omega)
        self._noted = self.products

    def anchored(
        self,
        anchor: int,
        by_bicgstab: bool = False,
        is_single: bool = False,
        preconditioner: Preconditioner | None = None,
    ) -> Recurrence:
        """Return the recurrence for h with h[anchor] the average, from where h is.

        All but h is let go; w is kept where there is room for it, as it would have to settle again.

        It is IDR(s)'s, of single precision if that is asked for, or by a preconditioner where there is room
        for that, unless there is no room for its vectors, or BiCGStab's is asked for.
        """
        self._let_go()
        (element,) = self.space.read(self.space.element(self._h, anchor))
        self._h += self.space.xp.subtract(self._offset, element)
        system = self._system.sharing(self._rewards)
        # It ends by its bounds, and not by a norm.
        vectors = SINGLE_VECTORS if is_single else IDR_VECTORS
        if by_bicgstab or not self.space.has_room(vectors + _OPERANDS, self._h.size):
            return self.space.communicator.with_room(
                lambda: system.bicgstab(self._h, 0.0, ORTHOGONAL, anchor)
            )
        more = vectors - _LET_GO + (0 if self._w is None else _KEPT)
        if preconditioner is not None and self.space.has_room(
            IDR_VECTORS + preconditioner.more_vectors + _OPERANDS, self._h.size
        ):
            # What is free may be cut into pieces.
            with contextlib.suppress(MemoryError):
                recurrence = preconditioner.idr(self._rewards, self._h, 0.0, anchor)
                self.more_vectors = max(self.more_vectors, more + preconditioner.more_vectors)
                return recurrence
        self.more_vectors = max(self.more_vectors, more)
        return self.space.communicator.with_room(
            lambda: system.idr(self._h, 0.0, anchor, is_single=is_single)
        )

    def preconditioner(self) -> Preconditioner | None:
        """Return the matrix's own."""
        return self._system.preconditioner()

    def _let_go(self) -> None:
        """Let go of what the steps need, but for h, and for w where there is room for it."""
        self._spare = self._moved = self._right = self._before = None
        self._pacing = self._moving = None
        if self._paces is None or not self.keeps_visits:
            self._w = self._paced = None

    @property
    def keeps_visits(self) -> bool:
        """Whether there is room for the vectors of IDR(s) beside w."""
        return self.space.has_room(IDR_VECTORS + _OPERANDS, self._h.size)

    def take_bias(self, recurrence: Recurrence, closer: bool) -> None:
        """Take over the iterate as h if its bounds are closer, and vectors for measuring them."""
        self._moved, self._spare = recurrence.r, recurrence.spare
        if self._moved.dtype != self._h.dtype:
            self._moved = self.space.xp.empty_like(self._h)
        if closer:
            self._h = recurrence.x
        self._centre(self._h)

    def advance(self, count: int) -> None:
        """Make an even number of steps of h, and of w unless it has settled; note the last increments."""
        assert self._moving is not None and self._pacing is not None  # it has begun
        space, subtract = self.space, self.space.xp.subtract

        def increment(new: Array, old: Array, out: Array) -> None:
            subtract(new, old, out=out)

        self._moving.sweep((self._h, self._spare), 0, count)
        space.each(increment, self._h, self._spare, self._moved)
        self.products += count
        if self.settled:
            return
        self._pacing.sweep((self._w, self._spare), 0, count)
        space.each(increment, self._w, self._spare, self._paced)
        self.products += count
        quickest, slowest = space.extremes(self._paced)
        self._paces = slowest, quickest
        self._centre(self._w)

    def correct(self) -> tuple[Array, ...]:
        """Take what is missing in the average out of h, and measure what is left.

        Returns
        -------
        tuple of arrays, shape ()
            Greatest and least increment of w, average so far, its extreme errors, least and greatest h.
        """
        if self._paces is None:
            raise RuntimeError("increments are corrected after the first steps")
        space, subtract, omega = self.space, self.space.xp.subtract, self._omega
        slowest, quickest = self._paces
        least, most = space.extremes(self._moved)
        missing = (least + most) / (slowest + quickest)
        offset = self._offset = self._offset + missing

        def offer(rewards: Array, right: Array) -> None:
            subtract(rewards, offset, out=right)

        def weigh(moved: Array, diagonal: Array) -> None:
            moved *= diagonal
            moved /= omega

        space.add_scaled(-1.0, self._w, self._h, missing)
        space.each(offer, self._rewards, self._right)
        space.add_scaled(-1.0, self._paced, self._moved, missing)
        space.each(weigh, self._moved, self.diagonal)
        least, most = self._centre(self._h)
        return slowest, quickest, offset, *space.extremes(self._moved), least, most

    def is_steady(self, width: float) -> bool:
        """Whether the errors of no state have changed in the last fifth of the products, but for a constant.

        Their extremes stand still as well while a front passes row after row, and a Krylov method has to wait
        for it as the steps have to; two parts that meet rarely stand still in every row.  Asked after
        `correct`, again and again.

        Parameters
        ----------
        width : float
            Distance of the extreme errors.

        Notes
        -----
        A vector now and then, if there is room.  Some passes over vectors whenever the products have doubled.
        """
        made, space = self.products, self.space
        if self._before is None:
            if made >= 2 * self._noted and space.has_room(1 + _OPERANDS, self._h.size):
                self._before, self._noted = space.vector(self._moved), made
                self.more_vectors = max(self.more_vectors, 1)
            return False
        if 4 * made < 5 * self._noted:
            return False
        before, self._before, self._noted = self._before, None, made

        def change(moved: Array, before: Array) -> None:
            space.xp.subtract(moved, before, out=before)

        space.each(change, self._moved, before)
        least, most = space.read(*space.extremes(before))
        return most - least <= _UNLIKE * width

    def _centre(self, x: Array) -> tuple[Array, Array]:
        """Take the middle of a vector's extremes out of it, and return them."""
        least, most = self.space.extremes(x)
        middle = self.space.xp.multiply(0.5, least + most)

        def lower(x: Array) -> None:
            x -= middle

        self.space.each(lower, x)
        return least, most

    def bounds(self, slack: float) -> tuple[Array, Array]:
        """Return the least and greatest rho, widened by the rounding errors of computing them."""
        if self._spare is None:
            self.begin()
        operands = self._rewards, self.diagonal
        return average_bounds(self.space, self._h, *operands, self._moved, self._spare, slack)
