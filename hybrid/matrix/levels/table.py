"""Tables of injection levels: the candidates, the level of minimum memory, predictions of time."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Generic, NamedTuple, TypeVar

from hybrid.base.directed_rounding import near_least
from hybrid.base.units import counted
from mtbdd.base.records import Record

# The level that a backend holds in least memory: found by building levels, the least work first.
#
# The level curve does not know the bytes of a level, because a backend stores equal diagonals, patterns and
# row types once. So levels are built and their bytes counted, in the order of the work that building takes.
# A level whose groups and slots alone take more than the best level so far is left out.

_log = logging.getLogger(__name__)

_MOST_ITEMS = 1 << 22
"""Entries and slots that all levels built may have together: a second or so of building."""

_MOST_SHARE = 32
"""... or so many times those of the level with the fewest."""


Built = TypeVar("Built")
Number = TypeVar("Number", int, float)


class Weight(NamedTuple):
    """Predictions for a level before it is built.

    Attributes
    ----------
    items : int
        Entries and slots that building goes through.
    level : int
    least_bytes : int
        Bytes that it cannot fall below.
    """

    items: int
    level: int
    least_bytes: int


class BestLevel(Generic[Built, Number]):
    """The level of least cost among those that are built one by one; two of them are held at a time.

    Parameters
    ----------
    cost : callable
        Returns the seconds or bytes of what was built.

    Attributes
    ----------
    best : (cost, level, object) or None
        The level of least cost, the first of equals in the order of building, as it was built.
    costs : dict of int to cost
        Of all levels that were built.
    problem : MemoryError or None
        Why the last one without room was not built.
    """

    def __init__(self, cost: Callable[[Built], Number]) -> None:
        self._cost: Callable[[Built], Number] = cost
        self.best: tuple[Number, int, Built] | None = None
        self.costs: dict[int, Number] = {}
        self.problem: MemoryError | None = None

    def take(self, level: int, build: Callable[[], Built | None]) -> bool:
        """Build a level, if there is room for it, and return whether it is the best so far."""
        try:
            built = build()
        except MemoryError as error:
            self.problem = error
            return False
        if built is None:
            return False
        cost = self.costs[level] = self._cost(built)
        if self.best is not None and cost >= self.best[0]:
            return False
        self.best = cost, level, built
        return True


def weigh(
    levels: Iterable[Weight], build: Callable[[int], Built | None], nbytes: Callable[[Built], int]
) -> BestLevel[Built, int]:
    """Build levels and find the one of least memory among them.

    Parameters
    ----------
    levels : iterable of Weight
        All that can be used.
    build : callable
        Returns the representation of a level, None if it cannot be laid out; a level for which it raises
        MemoryError is left out.
    nbytes : callable
        Returns the bytes of what was built.

    Raises
    ------
    MemoryError
        There is no room for any level.

    Notes
    -----
    Time: that of building levels with 2**22 items together, or 32 times the items of the first.
    """
    found: BestLevel[Built, int] = BestLevel(nbytes)
    spent, limit = 0, _MOST_ITEMS
    for weight in sorted(levels):
        limit = max(limit, _MOST_SHARE * weight.items) if spent == 0 else limit
        if found.best is not None:
            if spent + weight.items > limit:
                break
            if weight.least_bytes >= found.best[0]:
                continue
        spent += weight.items
        _log.info("weighing level %d", weight.level)
        found.take(weight.level, partial(build, weight.level))
    if found.best is None and found.problem is not None:
        raise found.problem
    return found


_REFERENCE_ENTRY_SECONDS = 12e-9
_REFERENCE_BLOCK_SECONDS = 30e-6


class CandidateLevel(Record):
    """One candidate injection level: of a matrix, or sums over the layers of a decision process.

    The first and the second representation are those of [Tealdi13]: paths with their submatrices, and tasks.

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


def sum_levels(layers: Sequence[CandidateLevel]) -> CandidateLevel:
    """Return one level of all layers together."""
    return CandidateLevel(
        level=layers[0].level,
        nodes=sum(c.nodes for c in layers),
        paths=sum(c.paths for c in layers),
        submatrix_nonzeros=sum(c.submatrix_nonzeros for c in layers),
        instances_worst_case=sum(c.instances_worst_case for c in layers),
        bytes_first=sum(c.bytes_first for c in layers),
        bytes_worst_case=sum(c.bytes_worst_case for c in layers),
        row_types=total_known(c.row_types for c in layers),
        groups=total_known(c.groups for c in layers),
        row_type_bytes=total_known(c.row_type_bytes for c in layers),
        seconds_predicted=total_known(c.seconds_predicted for c in layers),
        scaled=any(c.scaled for c in layers),
    )


def total_known(values: Iterable[Number | None]) -> Number | None:
    """Return a sum; None if a value is missing."""
    total: Number = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


class LevelTable(Record, ABC, eq=False):
    """All candidate levels of a matrix, or of the matrices of all layers of a decision process.

    Attributes
    ----------
    shape : tuple of int
        Shape of the matrix, or of every layer over all states.
    nonzeros : int
        Non-zeros of the matrix, or of all layers together.
    form : str
        What is counted, if it is not one matrix: how the layers of a decision process are held.
    """

    shape: tuple[int, int]
    nonzeros: int
    form: str = field(default="", kw_only=True)

    @property
    def levels(self) -> tuple[CandidateLevel, ...]:
        """All levels, 0 .. 2n."""
        return tuple(self[k] for k in range(len(self)))

    @property
    def min_memory(self) -> int:
        """Level of least MemR, the second representation in the worst case; the first of equals."""
        return min(self.levels, key=lambda c: (c.bytes_worst_case, c.level)).level

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of levels."""

    def __getitem__(self, level: int) -> CandidateLevel:
        if not 0 <= level < len(self):
            raise IndexError(f"level: expected 0..{len(self) - 1}, got {level}")
        if level not in self._counted:
            self._counted[level] = self._candidate(level)
        return self._counted[level]

    @cached_property
    def _counted(self) -> dict[int, CandidateLevel]:
        return {}

    @abstractmethod
    def _candidate(self, level: int) -> CandidateLevel:
        """Count a level."""

    @abstractmethod
    def seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of a product at a level; None where the backend cannot, or should not, use it.

        Parameters
        ----------
        level : int
        backend : {"cpu", "gpu", "reference"}
        """

    def least_seconds(self, level: int, backend: str) -> float:
        """Return what the predicted time of no level is below, from this one down; 0 where that is not known.

        Parameters
        ----------
        level, backend
            As for `seconds`.
        """
        return 0.0

    def set_up_seconds(self, level: int, backend: str) -> float:
        """Predict the time of laying out a usable level; 0 where levels are not distinguished.

        Parameters
        ----------
        level, backend
            As for `seconds`.
        """
        return 0.0

    def fast_levels(
        self, backend: str, factor: float, allowed: Collection[int] | None = None
    ) -> list[tuple[float, int]]:
        """Return levels with their predicted times, those near the least among them, in their order.

        Parameters
        ----------
        backend
            As for `seconds`.
        factor : float
            Near is what takes at most so many times the least time.
        allowed : collection of int, optional
            The levels that may be chosen; all if left out.

        Notes
        -----
        Time: that of `seconds` for every level as far as one may be near.
        """

        def seconds(level: int) -> float | None:
            return self.seconds(level, backend) if allowed is None or level in allowed else None

        return near_least(len(self), seconds, lambda level: self.least_seconds(level, backend), factor)

    def bytes_predicted(self, level: int, backend: str) -> int:
        """Return about how many bytes a backend holds a level in.

        Exact on ``reference``, which holds submatrices and paths. Row types are counted without what equal
        diagonals and patterns share; `weights` says which levels may be built to know.
        """
        candidate = self[level]
        if backend == "reference":
            return candidate.bytes_first
        return candidate.bytes_worst_case if candidate.row_type_bytes is None else candidate.row_type_bytes

    def bytes_known(self, level: int, backend: str) -> int | None:
        """Return the bytes in which a backend holds a level; None where only building it would give them."""
        return self.bytes_predicted(level, backend) if self.knows_bytes(backend) else None

    def all_bytes_known(self, backend: str) -> dict[int, int]:
        """Return the bytes of the levels for which `bytes_known` has them."""
        known = ((k, self.bytes_known(k, backend)) for k in range(len(self)))
        return {k: size for k, size in known if size is not None}

    def least_memory(self, levels: Iterable[int], backend: str) -> int:
        """Return which of some levels is predicted to take the fewest bytes, the first of equals."""
        return min(levels, key=lambda k: (self.bytes_predicted(k, backend), k))

    def keeps(self, level: int, backend: str, memory_budget: int) -> bool:
        """Return whether a backend is predicted to hold a level in so many bytes."""
        return self.bytes_predicted(level, backend) <= memory_budget

    def parts(self, level: int) -> str:
        """Return what a level is made of, in words."""
        candidate = self[level]
        instances = counted(candidate.instances_worst_case, "instance")
        return f"{counted(candidate.nodes, 'submatrix', 'submatrices')} and at most {instances}"

    def knows_bytes(self, backend: str) -> bool:
        """Return whether `bytes_predicted` is what is held."""
        return backend == "reference"

    @abstractmethod
    def weights(self, backend: str) -> list[Weight]:
        """Return the levels that a backend can use; see `hybrid.matrix.levels.table.weigh`."""

    def _reference_seconds(self, level: int) -> float | None:
        """Predict the time of a product in plain NumPy: entries, and a Python step for every submatrix.

        Levels where the submatrices together come near to the explicit matrix are no candidates: they
        compress nothing.
        """
        candidate = self[level]
        if candidate.submatrix_nonzeros > max(self.nonzeros // 4, 1 << 16):
            return None
        return self.nonzeros * _REFERENCE_ENTRY_SECONDS + candidate.nodes * _REFERENCE_BLOCK_SECONDS

    def describe(self, candidate: CandidateLevel, backend: str) -> str:
        """Return what a level consists of on a backend, in words that end before the time of a product."""
        if backend == "reference" or candidate.row_types is None or candidate.groups is None:
            return ""
        return f"{counted(candidate.row_types, 'row type')} and {counted(candidate.groups, 'group')}, "
