"""What a quotient saved, and what it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Reduction:
    """How a model became smaller before a property was answered.

    Attributes
    ----------
    states, transitions : int
        Of the model.
    blocks : int
        States of its quotient.
    block_transitions : int or None
        Transitions of its quotient; None if so little was saved that the model itself was checked.
    rounds : int
        Of refinement.
    seconds : float
        Wall time of listing, refining, proving and compressing.
    """

    states: int
    transitions: int
    blocks: int
    block_transitions: int | None
    rounds: int
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values."""
        return asdict(self)
