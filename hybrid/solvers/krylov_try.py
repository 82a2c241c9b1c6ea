"""How far a try to find bounds by a Krylov method has come, for its budget and for records."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.matrix.space.bellman import STAGE, BellmanOperator, Held
from hybrid.matrix.space.preconditioner import Preconditioner
from hybrid.matrix.space.record import Numbers, State
from hybrid.matrix.space.recurrence import Recurrence
from hybrid.matrix.space.workspace import Array

SPREAD, APPROACH = 1, 2
"""What a try was looking for: w, or z; see `hybrid.solvers.krylov_bounds`."""


SWEPT = "swept"
"""Number of a record that tells that recurrences were those of a preconditioner."""


class Try:
    """How far a try has come, for its budget and for records.

    Parameters
    ----------
    operator : BellmanOperator
        Which counts the products.
    held : Held
    most : float
        Products after which the try is given up.

    Attributes
    ----------
    turn : int
        How often the shape has been changed.
    shape : array, shape (n,)
    preconditioner : Preconditioner, or None
        None while products do.
    """

    def __init__(self, operator: BellmanOperator, held: Held, most: float) -> None:
        self._operator, self._held, self._most = operator, held, most
        self._begun, self.turn, self.shape = operator.products, 0, held.x
        self.preconditioner: Preconditioner | None = None

    def leave_out(self, products: int) -> None:
        """Take note of products made that are none of its budget."""
        self._most += products

    @property
    def left(self) -> float:
        """Products that may still be made."""
        return self._most - (self._operator.products - self._begun)

    def state(self, found: Mapping[str, Recurrence], stage: int, loose: float = 0.0) -> State:
        """Return the state of a recurrence, for records; w is in its place but for its own recurrence."""
        held = self._held

        def now() -> tuple[Mapping[str, Array], Numbers]:
            vectors, numbers = held.state()
            own = {"w": held.spare} | {name: recurrence.x for name, recurrence in found.items()}
            shape = {"shape": self.shape} if self.turn else {}
            made = numbers["iterations"] + self._operator.products - self._begun
            told = {STAGE: stage, "turn": self.turn, "loose": loose, "most": self.left, "iterations": made}
            swept = {} if self.preconditioner is None else {SWEPT: 1.0}
            return {**vectors, **own, **shape}, {**numbers, **told, **swept}

        return now
