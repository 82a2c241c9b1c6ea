"""From a symbolic matrix to an operator: level and backend chosen, by measurement where that pays."""

from __future__ import annotations

from functools import partial

from hybrid.core.backend import BackendChoice, choose_backend
from hybrid.levels.curve import LevelCurve, level_curve
from hybrid.levels.policy import LevelChoice, choose_level, within_budget
from hybrid.operators.hybrid_matrix import HybridMatrix
from hybrid.operators.representation import MatrixStatistics, Product
from mtbdd.offset import OffsetMTBDD

__all__ = ["HybridMatrix", "MatrixStatistics", "confirm_gpu", "inject", "inject_transposed"]


def inject(
    matrix: OffsetMTBDD,
    level: str | int = "auto",
    backend: str = "auto",
    *,
    memory_budget: int | None = None,
) -> HybridMatrix:
    """Choose a level and a backend for a symbolic matrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix, for example ``model.transitions``.
    level : str or int
        ``auto``, ``min-memory``, ``min-time``, or a level number 0 .. 2n; see
        :func:`hybrid.levels.policy.choose_level`.
    backend : str
        ``auto``, ``cpu``, ``gpu`` or ``reference``; see :func:`hybrid.core.backend.choose_backend`.
    memory_budget : int, optional
        Bytes that the representation may take.

    Returns
    -------
    HybridMatrix
        The operator; its representation is built at the first product, or here where levels are timed.

    Raises
    ------
    ValueError
        If a choice is unknown or impossible.
    TypeError
        If the matrix is not an OffsetMTBDD.
    """
    if not isinstance(matrix, OffsetMTBDD):
        raise TypeError(
            f"matrix: expected an offset-labelled MTBDD (mtbdd.OffsetMTBDD), such as model.transitions, "
            f"got {type(matrix).__name__}"
        )
    engine = choose_backend(backend)
    curve = level_curve(matrix)
    if backend == "auto" and engine.name == "gpu":
        engine = confirm_gpu(curve, engine)
    choice, product = choose_level(curve, level, engine.name, memory_budget), None
    measured = _measure_on_device(curve, level, memory_budget) if engine.name == "gpu" else None
    if measured is not None:
        choice, product = measured
    transposed = partial(inject_transposed, matrix, level, engine.name, memory_budget)
    return HybridMatrix(
        matrix, curve, choice.level, choice.reason, engine.name, engine.reason, transposed, product
    )


def inject_transposed(
    matrix: OffsetMTBDD, level: str | int, backend: str, memory_budget: int | None = None
) -> HybridMatrix:
    """Choose a level for the transposed matrix; see `inject`."""
    return inject(matrix.transpose(), level, backend, memory_budget=memory_budget)


def confirm_gpu(curve: LevelCurve, engine: BackendChoice) -> BackendChoice:
    """Return the CPU instead, with the reason, where the device would be slower or has no room."""
    from gpu_kernels import current_device
    from hybrid.gpu.admission import reason_for_cpu

    reason = reason_for_cpu(current_device(), curve)
    return engine if reason is None else BackendChoice("cpu", reason)


def _measure_on_device(
    curve: LevelCurve, policy: str | int, memory_budget: int | None
) -> tuple[LevelChoice, Product] | None:
    """Choose among the levels that look fastest by timing them, where the matrix is large enough for that."""
    from gpu_kernels import current_device
    from hybrid.levels.probe import PROBE_ENTRIES, probe_levels

    if policy not in ("auto", "min-time") or curve.nonzeros < PROBE_ENTRIES:
        return None
    allowed = frozenset(c.level for c in curve.levels if within_budget(c, "gpu", memory_budget))
    return probe_levels(current_device(), curve, allowed)
