"""Choice of the injection level from the level curve."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.errors import OptionError
from hybrid.levels.table import CandidateLevel, LevelTable

__all__ = ["LEVEL_POLICIES", "LevelChoice", "choose_level", "predicted_seconds", "within_budget"]

LEVEL_POLICIES = ("auto", "min-memory", "min-time")

_REFERENCE_ENTRY_SECONDS = 12e-9
_REFERENCE_BLOCK_SECONDS = 30e-6
_EQUAL_TIMES = 1.04
"""Times that differ by less than this factor are beyond what the prediction can tell apart."""


@dataclass(frozen=True)
class LevelChoice:
    """The chosen level and why."""

    level: int
    reason: str


def predicted_seconds(curve: LevelTable, candidate: CandidateLevel, backend: str) -> float | None:
    """Predict the time of a product at a level; None if the backend cannot or should not use the level.

    The reference backend spends its time on entries and on a Python step for every submatrix. Levels where
    the submatrices together come near to the explicit matrix are left to nobody: the compact form is the
    point.
    """
    if backend == "reference":
        if candidate.submatrix_nonzeros > max(curve.nonzeros // 4, 1 << 16):
            return None
        return curve.nonzeros * _REFERENCE_ENTRY_SECONDS + candidate.nodes * _REFERENCE_BLOCK_SECONDS
    return curve.compiled_seconds(candidate.level, backend)


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
        ``min-memory``: the least bytes in the worst case of the second representation. ``min-time``: the
        least predicted time of a product on the backend. ``auto``: the same as ``min-time``. A number: that
        level.
    backend : str
        ``cpu``, ``gpu`` or ``reference``, for the prediction of time.
    memory_budget : int, optional
        Bytes that the representation may take. Levels above it are not considered; the size counted is the
        row-type form for ``cpu`` and ``gpu``, the worst case of the second form for ``reference``.

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
    allowed = [c for c in curve.levels if within_budget(c, backend, memory_budget)]
    if not allowed:
        least = min(curve.levels, key=lambda c: _size(c, backend))
        raise OptionError(
            f"memory_budget: no level fits {memory_budget} bytes; level {least.level} needs least, "
            f"{_size(least, backend)} bytes"
        )
    within = "" if memory_budget is None else f" among the {len(allowed)} levels within {memory_budget} bytes"
    if isinstance(policy, int):
        return _fixed(curve, policy, allowed, memory_budget, backend)
    if policy == "min-memory":
        usable = [
            c for c in allowed if backend == "reference" or predicted_seconds(curve, c, backend) is not None
        ]
        if not usable:
            raise OptionError(_unusable(allowed[0].level, backend))
        best = min(usable, key=lambda c: (c.bytes_worst_case, c.level))
        return LevelChoice(
            best.level,
            f"level {best.level} needs the least memory in the worst case, {best.bytes_worst_case} bytes"
            f" for {best.nodes} submatrices and at most {best.instances_worst_case} instances{within}",
        )
    if policy not in LEVEL_POLICIES:
        raise OptionError(f"level: expected a number or one of {', '.join(LEVEL_POLICIES)}, got {policy!r}")
    timed = [(t, c) for c in allowed if (t := predicted_seconds(curve, c, backend)) is not None]
    if not timed:
        fallback = min(allowed, key=lambda c: (c.bytes_worst_case, c.level))
        if backend != "reference":
            raise OptionError(_unusable(fallback.level, backend))
        return LevelChoice(
            fallback.level,
            f"level {fallback.level} needs the least memory; no level is compact enough to be timed{within}",
        )
    shortest = min(seconds for seconds, _ in timed)
    near = [(t, c) for t, c in timed if t <= _EQUAL_TIMES * shortest]
    seconds, best = min(near, key=lambda t: (_size(t[1], backend), t[1].level))
    where = " on one thread" if backend == "cpu" else ""
    types = f"{best.row_types} row types and {best.groups} groups, " if backend != "reference" else ""
    return LevelChoice(
        best.level,
        f"level {best.level} has the least predicted time on the {backend} backend: {types}"
        f"{seconds * 1e3:.3g} ms a product{where}{within}",
    )


def within_budget(candidate: CandidateLevel, backend: str, memory_budget: int | None) -> bool:
    """Tell whether a level's representation on a backend keeps a budget of bytes; None is no budget."""
    return memory_budget is None or _size(candidate, backend) <= memory_budget


def _fixed(
    curve: LevelTable, level: int, allowed: list[CandidateLevel], budget: int | None, backend: str
) -> LevelChoice:
    if not 0 <= level < len(curve):
        raise OptionError(f"level: expected 0..{len(curve) - 1} for this matrix, got {level}")
    candidate = curve[level]
    if candidate not in allowed:
        raise OptionError(
            f"level: level {level} needs {_size(candidate, backend)} bytes, more than the budget of {budget}"
        )
    if backend != "reference" and predicted_seconds(curve, candidate, backend) is None:
        raise OptionError(_unusable(level, backend))
    return LevelChoice(level, f"level {level} was asked for")


def _unusable(level: int, backend: str) -> str:
    return (
        f"level: level {level} has too many row types for the {backend} backend; "
        "choose another level, 'min-time', or the reference backend"
    )


def _size(candidate: CandidateLevel, backend: str) -> int:
    if backend != "reference" and candidate.row_type_bytes is not None:
        return candidate.row_type_bytes
    return candidate.bytes_worst_case
