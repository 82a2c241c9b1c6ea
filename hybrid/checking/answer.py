"""The answer to a property, as an object and as the JSON record of the command line."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hybrid.errors import HybridError
from hybrid.run.work import Work

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import Scheduler


@dataclass(frozen=True)
class Answer:
    """What is known about one property.

    Attributes
    ----------
    name : str or None
        The property's name in its file.
    property : str
        Its text.
    value : float, int, bool or None
        None if it could not be answered, or for a range, whose ends are the bounds; infinite rewards are
        ``math.inf``.
    lower, upper : float, int, bool or None
        Bounds that hold for certain; None where the method gives none.
    error : str or None
        Why there is no value: the message of `fault`.
    statistics : Work
        Iterations, seconds, memory.
    seconds : float
        Wall time of everything done for this property.
    engine : str
    listing : tuple of (str, number or bool)
        States and their values, for filters that show them.
    scheduler : Scheduler or None
        One that attains the value on an MDP, if it was asked for.
    proven : bool
        Whether the answer, a range's ends included, rests on values with bounds alone.
    fault : HybridError or None
        Why there is no value, as it can be raised.
    """

    name: str | None
    property: str
    value: float | int | bool | None
    lower: float | int | bool | None
    upper: float | int | bool | None
    error: str | None
    statistics: Work
    seconds: float
    engine: str
    listing: tuple[tuple[str, float | int | bool], ...] = ()
    scheduler: Scheduler | None = None
    proven: bool = True
    fault: HybridError | None = field(default=None, repr=False, compare=False)

    @builtins.property
    def kind(self) -> str | None:
        """What is promised: "exact", "certified" (by its bounds), "estimate"; None without an answer."""
        if self.error is not None:
            return None
        if not self.proven or (self.value is not None and self.lower is None):
            return "estimate"
        method = self.statistics.method
        if isinstance(self.value, bool):
            return "exact" if method in (None, "exact") else "certified"
        tight = self.value is not None and self.lower == self.upper
        return "exact" if tight or method == "exact" else "certified"

    def record(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        work = self.statistics
        return {
            "name": self.name,
            "property": self.property,
            "value": json_number(self.value),
            "lower": json_number(self.lower),
            "upper": json_number(self.upper),
            "error": self.error,
            "kind": self.kind,
            "residual": json_number(work.component_residual),
            "engine": self.engine,
            "backend": work.backend,
            "backend_reason": work.backend_reason,
            "method": work.method,
            "level": work.level,
            "storage": work.storage,
            "iterations": work.iterations if work.method is not None else None,
            "seconds": self.seconds,
            "seconds_per_iteration": work.seconds / work.iterations if work.iterations else None,
            "base_memory_bytes": work.base_bytes,
            "representation_memory_bytes": work.representation_bytes,
        }


def json_number(value: float | int | bool | None) -> float | int | bool | str | None:
    """Return a value as JSON has it; JSON has no infinities."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
