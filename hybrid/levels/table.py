"""What every level curve has: the candidate levels, the level of minimum memory, predictions of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = ["CandidateLevel", "LevelTable"]


@dataclass(frozen=True)
class CandidateLevel:
    """One candidate injection level.

    Of the layers of a decision process it has the sums over the layers.

    Attributes
    ----------
    level : int
        Number of variables above it: 0 is the root, 2n the terminals.
    nodes : int
        Nodes, each of which would become a submatrix.
    paths : int
        Instances of the first representation.
    submatrix_nonzeros : int
        Entries of all submatrices.
    instances_worst_case : int
        Upper bound of the instances cut at 256 rows: floor(n / 256) + 2 for a path to a submatrix of n rows.
    bytes_first : int
        Bytes of the first representation (submatrices and paths).
    bytes_worst_case : int
        Bytes of the second representation with that bound (submatrices, instances, tasks): MemR.
    row_types, groups : int or None
        Distinct row types and row prefixes; None where the row types are too many to list.
    row_type_bytes : int or None
        Bytes of the row-type representation, blocks shared up to a scale where that is smaller.
    seconds_predicted : float or None
        Predicted time of a product on the CPU backend; None where it cannot use the level.
    scaled : bool
        Whether the prediction is for blocks shared up to a scale.
    """

    level: int
    nodes: int
    paths: int
    submatrix_nonzeros: int
    instances_worst_case: int
    bytes_first: int
    bytes_worst_case: int
    row_types: int | None
    groups: int | None
    row_type_bytes: int | None
    seconds_predicted: float | None
    scaled: bool


@dataclass(frozen=True, eq=False)
class LevelTable(ABC):
    """All candidate levels of a matrix, or of the matrices of all layers of a decision process.

    Attributes
    ----------
    levels : tuple of CandidateLevel
        The levels 0 .. 2n.
    shape : tuple of int
        Shape of the matrix, or of every layer over all states.
    nonzeros : int
        Non-zeros of the matrix, or of all layers together.
    """

    levels: tuple[CandidateLevel, ...]
    shape: tuple[int, int]
    nonzeros: int

    @property
    def min_memory(self) -> int:
        """Level whose second representation is smallest in the worst case, the first of equals."""
        return min(self.levels, key=lambda c: (c.bytes_worst_case, c.level)).level

    @property
    def form(self) -> str:
        """What is counted, if it is not one matrix: how the layers of a decision process are held."""
        return ""

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, level: int) -> CandidateLevel:
        if not 0 <= level < len(self.levels):
            raise IndexError(f"level: expected 0..{len(self.levels) - 1}, got {level}")
        return self.levels[level]

    @abstractmethod
    def compiled_seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of a product at a level on ``cpu`` or ``gpu``; None where it cannot be used."""
