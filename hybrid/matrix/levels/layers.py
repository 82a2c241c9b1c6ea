"""Level curves of the layers of a decision process, counted in the form in which an engine holds them.

All layers have one injection level. Held one by one, as on the CPU, they cost the sum of what each costs;
laid out fused, as on a device, they are one matrix, whose row types have the submatrices of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.base.errors import OptionError
from hybrid.matrix.levels.curve import LevelCurve, candidate_levels, level_curve
from hybrid.matrix.levels.table import CandidateLevel, LevelTable, Weight, sum_levels, total_known
from mtbdd.offset.offset import OffsetMTBDD


@dataclass(frozen=True, eq=False)
class LayerCurve(LevelTable):
    """All candidate levels of layers that are held and multiplied one by one.

    Attributes
    ----------
    shape, nonzeros
        See `LevelTable`; levels are sums over the layers.
    curves : tuple of LevelCurve
        One a layer.
    """

    curves: tuple[LevelCurve, ...]

    @property
    def form(self) -> str:
        """See `LevelTable.form`."""
        return f"sums over {len(self.curves)} layers of choices, held one by one"

    def __len__(self) -> int:
        return len(self.curves[0])

    def seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of the products with all layers; see `LevelTable.seconds`."""
        if backend == "reference":
            return self._reference_seconds(level)
        return total_known(curve.seconds(level, backend) for curve in self.curves)

    def least_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.least_seconds`."""
        return sum(curve.least_seconds(level, backend) for curve in self.curves)

    def set_up_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.set_up_seconds`."""
        return sum(curve.set_up_seconds(level, backend) for curve in self.curves)

    def weights(self, backend: str) -> list[Weight]:
        """See `LevelTable.weights`; levels that all layers can use."""
        layers = [{weight.level: weight for weight in curve.weights(backend)} for curve in self.curves]
        usable = [k for k in range(len(self)) if all(k in own for own in layers)]
        return [
            Weight(sum(own[k].items for own in layers), k, sum(own[k].least_bytes for own in layers))
            for k in usable
        ]

    def _candidate(self, level: int) -> CandidateLevel:
        return sum_levels([curve[level] for curve in self.curves])


def layer_curve(matrices: Sequence[OffsetMTBDD]) -> LayerCurve:
    """Compute the memory of every level of some layers, held one by one.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        At least one; with the same columns, over the same bits. A layer may have fewer rows than columns.

    Returns
    -------
    LayerCurve
        2n + 1 candidates.

    Raises
    ------
    ValueError
        If there is no matrix, or the matrices do not belong together.
    OverflowError
        If a number of paths or non-zeros of a layer does not fit 63 bits.

    Notes
    -----
    Time: that of :func:`hybrid.matrix.levels.curve.level_curve` for every layer.
    """
    _check_layers(matrices)
    curves = tuple(level_curve(matrix) for matrix in matrices)
    size = matrices[0].n_columns
    return LayerCurve((size, size), sum(curve.nonzeros for curve in curves), curves)


def least_instance_bytes(matrices: Sequence[OffsetMTBDD]) -> int:
    """Return the least bytes that all layers take, in the worst case, in submatrices and instances.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        As for `layer_curve`.

    Raises
    ------
    ValueError, OverflowError
        As `layer_curve`.

    Notes
    -----
    Time: O(nodes); no row types are sought.
    """
    _check_layers(matrices)
    layers = [candidate_levels(matrix) for matrix in matrices]
    sums = (sum(level.bytes_worst_case for level in levels) for levels in zip(*layers, strict=True))
    least: int = min(sums)
    return least


def layer_levels(matrices: Sequence[OffsetMTBDD], backend: str) -> LevelTable:
    """Compute the memory of every level of the layers of a decision process, as a backend holds them.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        As for `layer_curve`.
    backend : {"cpu", "gpu", "reference"}

    Returns
    -------
    LevelTable
        On the gpu those of all layers fused, if every layer has a row for every state and the layers
        are not too many; else those of layers one by one.
    """
    if backend == "gpu":
        from hybrid.matrix.levels.curve import MOST_LAYERS, stacked_curve
        from mtbdd.offset.divided import stack_layers

        _check_layers(matrices)
        if len(matrices) <= MOST_LAYERS and all(m.n_rows == m.n_columns for m in matrices):
            return stacked_curve(stack_layers(dict(enumerate(matrices)), len(matrices)))
    return layer_curve(matrices)


def _check_layers(matrices: Sequence[OffsetMTBDD]) -> None:
    """Refuse matrices that are not the layers of one process."""
    if not matrices:
        raise OptionError("matrices: expected at least one layer, got none")
    found = sorted({(m.n_columns, m.n_levels) for m in matrices})
    if len(found) > 1:
        raise ValueError(f"matrices: expected the same columns and levels in every layer, got {found}")
