"""Choice of the injection level from the level curve."""

from __future__ import annotations

from collections.abc import Iterable

from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text, counted, seconds_text
from hybrid.matrix.levels.table import CandidateLevel, LevelTable
from mtbdd.base.errors import option
from mtbdd.base.records import Record

LEVEL_POLICIES = ("auto", "min-memory", "min-time")

_EQUAL_TIMES = 1.04
"""Times that differ by less than this factor are beyond what the prediction can distinguish."""

_PRODUCTS = 1000
"""Products of a solution, as far as nothing is known of it: most take some hundred, and some far more."""

_FEW_ENTRIES = 1 << 18
"""Entries that NumPy multiplies in one expression, in a quarter of the time that many submatrices take."""

_MOST_TIMES = 1.13
"""Greatest ratio of a product's time to the least one for the sake of a shorter set-up."""


class LevelChoice(Record):
    """The chosen level and why."""

    level: int
    reason: str


def choose_level(
    curve: LevelTable,
    policy: str | int = "auto",
    backend: str = "cpu",
    memory_budget: int | None = None,
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
