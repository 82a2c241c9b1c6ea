"""The level report: memory of every injection level of a matrix, the chosen levels, measured times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.levels.choice import choose_level, predicted_seconds
from hybrid.levels.curve import LevelCurve, base_memory_bytes, level_curve
from mtbdd.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix import HybridMatrix

__all__ = ["LevelReport", "measure_levels", "report_levels"]

_MEASURED_SECONDS = 0.3  # a level is timed for about so long
_HOPELESS = 30.0  # levels predicted to be so many times slower than the best are not timed


@dataclass(frozen=True)
class LevelReport:
    """What the level-selection explorer knows about one matrix.

    Attributes
    ----------
    label : str
        Name in plots, for example ``t=5``.
    curve : LevelCurve
    base_memory_bytes : int
        MemB: two solution vectors and the diagonal.
    min_memory, min_time : int
        The two levels of the thesis (003, section 5.2.3.2).
    reason : str
        Why the asked-for policy chooses the level it chooses.
    seconds : dict of int to float
        Measured time of a product, by level; empty if nothing was measured.
    """

    label: str
    curve: LevelCurve
    base_memory_bytes: int
    min_memory: int
    min_time: int
    reason: str
    seconds: dict[int, float]

    def record(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        levels = [
            {
                "level": c.level,
                "nodes": c.nodes,
                "paths": c.paths,
                "submatrix_nonzeros": c.submatrix_nonzeros,
                "instances_worst_case": c.instances_worst_case,
                "bytes_worst_case": c.bytes_worst_case,
                "row_type_bytes": c.row_type_bytes,
                "seconds_per_product": self.seconds.get(c.level),
            }
            for c in self.curve.levels
        ]
        return {
            "base_memory_bytes": self.base_memory_bytes,
            "levels": levels,
            "min_memory": self.min_memory,
            "min_time": self.min_time,
            "reason": self.reason,
        }


def report_levels(
    matrix: OffsetMTBDD,
    label: str = "",
    policy: str | int = "auto",
    backend: str = "cpu",
    seconds: dict[int, float] | None = None,
) -> LevelReport:
    """Return the report of a matrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
    label : str
        Name in plots.
    policy : str or int
        Whose choice the reason explains.
    backend : {"cpu", "gpu", "reference"}
        For which "min-time" is predicted.
    seconds : dict, optional
        Measured times by level (`measure_levels`); "min-time" then is the fastest of these.

    Notes
    -----
    Time: O(nodes log nodes); no path is enumerated.
    """
    curve = level_curve(matrix)
    chosen = choose_level(curve, policy, backend)
    measured = dict(seconds or {})
    reason = chosen.reason
    if measured:
        fastest = min(measured, key=lambda k: (measured[k], k))
        reason = f"level {fastest} was measured to be the fastest, {measured[fastest]:.3g} s a product"
    else:
        fastest = choose_level(curve, "min-time", backend).level
    base = base_memory_bytes(matrix.n_rows)
    return LevelReport(label, curve, base, curve.min_memory, fastest, reason, measured)


def measure_levels(
    matrix: OffsetMTBDD, backend: str = "cpu", progress: Callable[[str], None] | None = None
) -> dict[int, float]:
    """Time a product at every level that fits in memory and is not hopelessly slow on the backend.

    Vectors lie where the backend has them; on a device some products are queued between two looks.

    Returns
    -------
    dict of int to float
        Median seconds a product, by level.

    Raises
    ------
    MemoryError
        Not even the two vectors fit in the free memory.
    """
    from hybrid.operator import inject

    free = free_memory_bytes()
    vectors = 8 * (matrix.n_rows + matrix.n_columns)
    if vectors > free:
        raise MemoryError(f"two vectors need {vectors} bytes, {free} are free")
    curve = level_curve(matrix)
    predicted = [(predicted_seconds(curve, c, backend), c) for c in curve.levels]
    limit = _HOPELESS * min((s for s, _ in predicted if s is not None), default=0.0)
    x = np.random.default_rng(20).random(matrix.n_columns)
    found: dict[int, float] = {}
    for seconds, candidate in predicted:
        if seconds is None or seconds > limit:
            continue
        # Without a device the submatrices are expanded in the host's memory.
        if backend != "gpu" and vectors + 3 * candidate.bytes_worst_case > free:
            continue
        if progress is not None:
            progress(f"measuring level {candidate.level}")
        try:
            found[candidate.level] = _seconds_per_product(
                inject(matrix, level=candidate.level, backend=backend), x
            )
        except MemoryError:
            # The device has no room for this level; others may be smaller.
            continue
    return found


def _seconds_per_product(operator: HybridMatrix, x: NDArray[np.float64]) -> float:
    """Return the median time of a product after a first one, which builds the representation."""
    space = operator.workspace()
    vector, out = space.vector(x), space.xp.empty(operator.shape[0])

    def products() -> None:
        for _ in range(space.stride):
            space.multiply(vector, out)
        space.read(out[:1])

    products()
    return _time(products) / space.stride


def _time(call: Callable[[], object]) -> float:
    """Return the median seconds of a call, repeated for a while."""
    times: list[float] = []
    end = time.perf_counter() + _MEASURED_SECONDS
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def free_memory_bytes() -> int:
    """Return the memory that can be had without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 1 << 62
