"""The level report: memory of every injection level of a matrix or an MDP, and the chosen levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.core.units import bytes_text, seconds_text
from hybrid.explorer.tables import levels_of
from hybrid.levels.curve import base_memory_bytes
from hybrid.levels.policy import choose_level
from hybrid.levels.table import LevelTable
from mtbdd.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.operators.layer_choices import LayerChoices


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
    held : dict of int to int
        Bytes of the representation that the backend holds, by level; empty if nothing was weighed.
    """

    label: str
    curve: LevelTable
    base_memory_bytes: int
    min_memory: int
    min_time: int
    reason: str
    seconds: dict[int, float]
    held: dict[int, int]

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
                "representation_bytes": self.held.get(c.level),
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
    matrix: OffsetMTBDD | Sequence[LayerChoices],
    label: str = "",
    policy: str | int = "auto",
    backend: str = "cpu",
    seconds: dict[int, float] | None = None,
    representation: str = "row-types",
    held: dict[int, int] | None = None,
) -> LevelReport:
    """Return the report of a matrix, or of the choices of a decision process.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or choices, of a whole MDP from `hybrid.explorer.model_choices`. The layers are
        counted as the backend holds them: fused on the gpu, if all have a row for every state, else one
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
    representation : {"row-types", "tasks"}
        How the matrix would be held, see `hybrid.inject`.
    held : dict, optional
        Bytes by level (`hybrid.explorer.weigh.weigh_levels`); "min-memory" then is the level of the fewest.

    Returns
    -------
    LevelReport

    Raises
    ------
    ValueError
        If the policy or the representation is unknown, a level does not exist or cannot be used; or no choice
        has a matrix.

    Notes
    -----
    Time: O(nodes log nodes); no path is enumerated.
    """
    curve = levels_of(matrix, backend, representation)
    size = curve.shape[0]
    chosen = choose_level(curve, policy, backend)
    measured = dict(seconds or {})
    reason = chosen.reason
    if measured:
        fastest = min(measured, key=lambda k: (measured[k], k))
        reason = (
            f"level {fastest} was measured to be the fastest, {seconds_text(measured[fastest])} a product"
        )
    else:
        fastest = choose_level(curve, "min-time", backend).level
    weighed = dict(held or {})
    if weighed:
        smallest = min(weighed, key=lambda k: (weighed[k], list(weighed).index(k)))
        if policy == "min-memory":
            reason = (
                f"level {smallest} needs the least memory, {bytes_text(weighed[smallest])}, of those weighed"
            )
    else:
        smallest = choose_level(curve, "min-memory", backend).level
    return LevelReport(label, curve, base_memory_bytes(size), smallest, fastest, reason, measured, weighed)
