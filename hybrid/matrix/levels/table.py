"""Tables of injection levels: the candidates, the level of minimum memory, predictions of time."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Generic, NamedTuple, TypeVar

from hybrid.base.directed_rounding import near_least
from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text, counted, seconds_text
from mtbdd.base.errors import option
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


# Choice of the injection level from the level curve.

LEVEL_POLICIES = ("auto", "min-memory", "min-time")

_EQUAL_TIMES = 1.04
"""Times that differ by less than this factor are beyond what the prediction can distinguish."""

_PRODUCTS = 1000
"""Products of a solution, as far as nothing is known of it: most take some hundred, and some far more."""

_FEW_ENTRIES = 1 << 20
"""Entries that are multiplied by one call, in a small part of the time that many submatrices take."""

_MOST_TIMES = 1.13
"""Greatest ratio of a product's time to the least one for the sake of a shorter set-up."""


class LevelChoice(Record):
    """The chosen level and why."""

    level: int
    reason: str


def choose_level(
    curve: LevelTable, policy: str | int = "auto", backend: str = "cpu", memory_budget: int | None = None
) -> LevelChoice:
    """Choose the injection level.

    Parameters
    ----------
    curve : LevelTable
        The candidates; of a decision process those of all layers, which have one level together.
    policy : str or int
        ``min-memory``: the fewest bytes on the backend, as far as they are known beforehand
        (:meth:`hybrid.matrix.levels.table.LevelTable.bytes_predicted`). ``min-time``: the least predicted
        time of a product on the backend, unless a device is there to time some levels on
        (:mod:`hybrid.matrix.levels.probe`): that takes longer than a solution of a thousand products gains by
        it. ``auto``: the least predicted time of set-up and a thousand products, if one of them takes no more
        than 1.13 times the least; where set-up is not known to differ
        (:meth:`hybrid.matrix.levels.table.LevelTable.set_up_seconds`), as ``min-time`` predicts; of few
        entries in NumPy level 0, where a product has one step. A number: that level.
    backend : str
        ``cpu``, ``gpu`` or ``reference``, for the prediction of time.
    memory_budget : int, optional
        Bytes that the representation may take. Levels predicted to take more are not considered.

    Returns
    -------
    LevelChoice
        Level and reason.

    Raises
    ------
    OptionError
        If the policy is unknown, the level does not exist or cannot be used, or no level keeps the budget.
    """
    if isinstance(policy, bool) or not isinstance(policy, int | str):
        raise OptionError(f"level: expected a number or one of {', '.join(LEVEL_POLICIES)}, got {policy!r}")
    if isinstance(policy, int):
        return _fixed(curve, policy, memory_budget, backend)
    allowed = None if memory_budget is None else _within(curve, backend, memory_budget)
    if policy == "auto" and backend == "reference" and allowed is None and curve.nonzeros <= _FEW_ENTRIES:
        return LevelChoice(0, f"level 0 is one submatrix, of {counted(curve.nonzeros, 'entry', 'entries')}")
    within = ""
    if allowed is not None:
        within = f" among the {len(allowed)} levels within {memory_budget} bytes"
    candidates = range(len(curve)) if allowed is None else sorted(allowed)
    if policy == "min-memory":
        usable = [k for k in candidates if backend == "reference" or curve.seconds(k, backend) is not None]
        if not usable:
            raise OptionError(_unusable(candidates[0], backend))
        least = curve.least_memory(usable, backend)
        size = bytes_text(curve.bytes_predicted(least, backend))
        return LevelChoice(
            least, f"level {least} needs the least memory, {size} for {curve.parts(least)}{within}"
        )
    if policy not in LEVEL_POLICIES:
        raise OptionError(f"level: expected a number or one of {', '.join(LEVEL_POLICIES)}, got {policy!r}")
    # On other backends levels are not distinguished by their set-up, and none has to be found for it.
    counts_set_up = policy == "auto" and backend == "gpu"
    timed = curve.fast_levels(backend, _MOST_TIMES if counts_set_up else _EQUAL_TIMES, allowed)
    if not timed:
        fallback = min(candidates, key=lambda k: (curve[k].bytes_worst_case, k))
        if backend != "reference":
            raise OptionError(_unusable(fallback, backend))
        return LevelChoice(
            fallback,
            f"level {fallback} needs the least memory; no level is compact enough to be timed{within}",
        )
    shortest = min(seconds for seconds, _ in timed)
    near = [(t, curve[k]) for t, k in timed if t <= _EQUAL_TIMES * shortest]
    seconds, best = min(near, key=lambda t: (_size(t[1], backend), t[1].level))
    where, what = " on one thread" if backend == "cpu" else "", "time"
    if counts_set_up:
        whole = {k: _whole_seconds(curve, t, k, backend) for t, k in timed if t <= _MOST_TIMES * shortest}
        soonest = min(whole, key=lambda k: (whole[k], k))
        if _EQUAL_TIMES * whole[soonest] < whole[best.level]:
            seconds, best = next((t, curve[k]) for t, k in timed if k == soonest)
            what = f"time of set-up and {_PRODUCTS} products"
    parts = curve.describe(best, backend)
    return LevelChoice(
        best.level,
        f"level {best.level} has the least predicted {what} on the {backend} backend: {parts}"
        f"{seconds_text(seconds)} a product{where}{within}",
    )


def rank_by_time(curve: LevelTable, policy: str, backend: str, levels: Iterable[int]) -> list[int]:
    """Return those of some levels that a backend can use, the best for a policy of time first.

    Parameters
    ----------
    curve : LevelTable
    policy : {"auto", "min-time"}
    backend : str
    levels : iterable of int
    """
    found = ((curve.seconds(k, backend), k) for k in levels)
    timed = sorted((seconds, k) for seconds, k in found if seconds is not None)
    if policy != "auto" or not timed:
        return [k for _, k in timed]
    most = _MOST_TIMES * timed[0][0]
    ranked = sorted((t > most, _whole_seconds(curve, t, k, backend) if t <= most else t, k) for t, k in timed)
    return [k for _, _, k in ranked]


def _whole_seconds(curve: LevelTable, product: float, level: int, backend: str) -> float:
    """Predict the time of set-up and a solution, from that of a product."""
    return curve.set_up_seconds(level, backend) + _PRODUCTS * product


def _within(curve: LevelTable, backend: str, memory_budget: int) -> frozenset[int]:
    """Return the levels that are predicted to keep a budget, of which there has to be one."""
    allowed = frozenset(k for k in range(len(curve)) if curve.keeps(k, backend, memory_budget))
    if not allowed:
        least = curve.least_memory(range(len(curve)), backend)
        raise OptionError(
            f"memory_budget: no level fits {memory_budget} bytes; level {least} needs least, "
            f"{curve.bytes_predicted(least, backend)} bytes"
        )
    return allowed


def _fixed(curve: LevelTable, level: int, budget: int | None, backend: str) -> LevelChoice:
    if not 0 <= level < len(curve):
        raise OptionError(f"level: expected 0..{len(curve) - 1} for this matrix, got {level}")
    if budget is not None and level not in _within(curve, backend, budget):
        raise OptionError(
            f"level: level {level} needs {curve.bytes_predicted(level, backend)} bytes, more than the "
            f"budget of {budget}"
        )
    if backend != "reference" and curve.seconds(level, backend) is None:
        raise OptionError(_unusable(level, backend))
    return LevelChoice(level, f"level {level} was asked for")


def _unusable(level: int, backend: str) -> str:
    return (
        f"level: level {level} has too many row types for the {backend} backend; "
        f"choose {option('level', 'min-time')}, another one, or {option('backend', 'reference')}"
    )


def _size(candidate: CandidateLevel, backend: str) -> int:
    if backend != "reference" and candidate.row_type_bytes is not None:
        return candidate.row_type_bytes
    return candidate.bytes_worst_case
