"""The level report: memory of every injection level of a matrix or an MDP, and the chosen levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.levels.curve import base_memory_bytes, level_curve
from hybrid.levels.layers import layer_levels
from hybrid.levels.policy import choose_level
from hybrid.levels.table import LevelTable
from mtbdd.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.operators.offers import Offer

__all__ = ["LevelReport", "report_levels"]


@dataclass(frozen=True)
class LevelReport:
    """What the level-selection explorer knows about one matrix, or about the layers of one MDP.

    Attributes
    ----------
    label : str
        Name in plots, for example ``t=5``.
    curve : LevelTable
    base_memory_bytes : int
        MemB: two solution vectors and the diagonal, or the product in its place.
    min_memory, min_time : int
        The two levels of the thesis ([Tealdi13] §5.2.3.2), among those that the backend can use.
    reason : str
        Why the asked-for policy chooses the level it chooses.
    seconds : dict of int to float
        Measured time of a product, by level; empty if nothing was measured.
    """

    label: str
    curve: LevelTable
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
    matrix: OffsetMTBDD | Sequence[Offer],
    label: str = "",
    policy: str | int = "auto",
    backend: str = "cpu",
    seconds: dict[int, float] | None = None,
) -> LevelReport:
    """Return the report of a matrix, or of the choices of a decision process.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of Offer
        A matrix; or choices, of a whole MDP from `hybrid.explorer.model_offers.model_offers`. The layers are
        counted as the backend holds them: in one pass on the gpu, if all have a row for every state, else one
        by one.
    label : str
        Name in plots.
    policy : str or int
        Whose choice the reason explains.
    backend : {"cpu", "gpu", "reference"}
        For which "min-time" is predicted.
    seconds : dict, optional
        Measured times by level (`hybrid.explorer.measure.measure_levels`); "min-time" then is the fastest of
        these.

    Raises
    ------
    ValueError
        If the policy is unknown, its level does not exist or cannot be used; or no choice has a matrix.

    Notes
    -----
    Time: O(nodes log nodes); no path is enumerated.
    """
    curve: LevelTable
    if isinstance(matrix, OffsetMTBDD):
        curve, size = level_curve(matrix), matrix.n_rows
    else:
        curve = layer_levels([o.matrix for o in matrix if o.matrix is not None], backend)
        size = curve.shape[0]
    chosen = choose_level(curve, policy, backend)
    measured = dict(seconds or {})
    reason = chosen.reason
    if measured:
        fastest = min(measured, key=lambda k: (measured[k], k))
        reason = f"level {fastest} was measured to be the fastest, {measured[fastest]:.3g} s a product"
    else:
        fastest = choose_level(curve, "min-time", backend).level
    smallest = choose_level(curve, "min-memory", backend).level
    return LevelReport(label, curve, base_memory_bytes(size), smallest, fastest, reason, measured)
