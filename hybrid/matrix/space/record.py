"""What is kept of an iteration while it runs, so that another run can go on from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Array = Any
"""An array of a workspace."""

Numbers = Mapping[str, float]
"""What a method has to know besides its vectors."""

State = Callable[[], tuple[Mapping[str, Array], Numbers]]
"""Returns the vectors, shape (n,), float64, and the numbers from which a method can go on; called at once."""


class Place(Protocol):
    """Reads and writes vectors of a `hybrid.matrix.space.workspace.Workspace`."""

    xp: Any

    def vector(self, values: Any) -> Array:
        """Return a copy in the workspace."""

    def to_host(self, array: Array) -> Any:
        """Return a NumPy array."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What an earlier run has left of an iteration.

    Attributes
    ----------
    vectors : dict of str to array, shape (n,)
        In the workspace; theirs who asked.
    numbers : dict of str to float
    is_finished : bool
        Whether the iteration had arrived.
    """

    vectors: dict[str, Array]
    numbers: dict[str, float]
    is_finished: bool


class IterationRecord(Protocol):
    """The record of one solution; processes that share the states call it together."""

    def resume(self, space: Place, name: str, size: int, target: float | None) -> Kept | None:
        """Return what has been kept, if anything; to be called first.

        Parameters
        ----------
        space : Place
            Where the vectors shall be.
        name : str
            Of the method: what another one has left is of no use.
        size : int
            Elements of the vectors.
        target : float, optional
            The difference that ends the iteration.

        Raises
        ------
        CheckpointError
            What is there is damaged.
        """

    def offer(self, state: State) -> None:
        """Keep a state if it is time to."""

    def keep(self, state: State, is_finished: bool = False, seconds: float = 0.0) -> None:
        """Keep a state now.

        Parameters
        ----------
        is_finished : bool
            It is the solution, which took so many seconds; one that is found again as quickly as it would be
            read is not kept.
        """

    def rescue(self, state: State) -> None:
        """Keep a state now, unless other processes would have to."""
