"""Measured times by injection level: of a matrix's product, and of a decision process's step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.app.explorer.report import levels_of
from hybrid.base.option_types import BackendName, Representation
from hybrid.matrix.levels.table import LevelTable
from hybrid.matrix.space.choice_operator import ChoiceProblem
from mtbdd.base.memory import free_memory_bytes
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.operators.layer_choices import LayerChoices
    from hybrid.matrix.space.choice_operator import ChoiceOperator

Work = tuple[Callable[[], object], int]
"""Something to time, and how many products or steps it makes."""

_MEASURED_SECONDS = 0.3  # a level is timed for about so long
_HOPELESS = 30.0  # levels predicted to be so many times slower than the best are not timed


def measure_levels(
    matrix: OffsetMTBDD | Sequence[LayerChoices],
    backend: BackendName = "cpu",
    progress: Callable[[str], None] | None = None,
    representation: Representation = "row-types",
) -> dict[int, float]:
    """Time a product at every level that fits in memory and is not hopelessly slow on the backend.

    Vectors lie where the backend has them; on a device some products are queued between two checks.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or the choices of a decision process (`hybrid.app.explorer.model_choices`), of which a step
        is timed as an engine makes it: the products with all layers, and the best of them.
    backend : {"cpu", "gpu", "reference"}
    progress : callable, optional
        Called with a line of text at each level.
    representation : {"row-types", "tasks"}
        How the matrix is held, see `hybrid.inject`.

    Returns
    -------
    dict of int to float
        Median seconds a product, by level.

    Raises
    ------
    MemoryError
        Not even the vectors fit in the free memory.
    """
    curve = levels_of(matrix, backend, representation)
    if isinstance(matrix, OffsetMTBDD):
        vectors = 8 * (matrix.n_rows + matrix.n_columns)
        work_at = partial(_products, matrix, backend, representation)
        return _measured(curve, vectors, backend, work_at, progress)
    # Two iterates and a product, and for every layer a code or a place a row.
    vectors = 24 * curve.shape[0] + sum(5 * len(o.gain) for o in matrix)
    work_at = partial(_steps, matrix, curve.shape[0], backend, representation)
    return _measured(curve, vectors, backend, work_at, progress)


def _measured(
    curve: LevelTable,
    vectors: int,
    backend: str,
    work_at: Callable[[int], Work],
    progress: Callable[[str], None] | None,
) -> dict[int, float]:
    """Return the median seconds by level."""
    free = free_memory_bytes()
    if vectors > free:
        raise MemoryError(f"the vectors of a product need {vectors} bytes, {free} are free")
    predicted = [(curve.seconds(c.level, backend), c) for c in curve.levels]
    limit = _HOPELESS * min((s for s, _ in predicted if s is not None), default=0.0)
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
            call, count = work_at(candidate.level)
            found[candidate.level] = _time(call) / count
        except MemoryError:
            # The device has no room for this level; others may be smaller.
            continue
    return found


def _products(matrix: OffsetMTBDD, backend: BackendName, representation: Representation, level: int) -> Work:
    """Return products with a matrix at a level."""
    from hybrid.matrix.operators.inject import inject

    operator = inject(matrix, level, backend, representation=representation)
    space = operator.vector_space()
    x, out = space.vector(_random(operator.shape[1])), space.xp.empty(operator.shape[0])

    def products() -> None:
        for _ in range(space.stride):
            space.multiply(x, out)
        space.read(out[:1])

    return products, space.stride


def _steps(
    layer_choices: Sequence[LayerChoices],
    size: int,
    backend: BackendName,
    representation: Representation,
    level: int,
) -> Work:
    """Return steps over choices at a level."""
    system = _system(list(layer_choices), size, level, backend, representation)
    space = system.space
    x, out = space.vector(_random(size)), space.xp.empty(size)

    def steps() -> None:
        for _ in range(space.stride):
            system.improve(x, out)
        space.read(system.changes)

    return steps, space.stride


def _system(
    layer_choices: list[LayerChoices],
    size: int,
    level: int,
    backend: BackendName,
    representation: Representation,
) -> ChoiceOperator:
    """Return the operator that an engine would build: fused on a device if that can be laid out."""
    from hybrid.analysis.run.options import CheckOptions
    from hybrid.matrix.operators.device_choices import device_choices
    from hybrid.matrix.operators.hybrid_choices import hybrid_choices

    engine = CheckOptions.of(backend=backend, level=level, representation=representation).matrix_backend()
    row_types = representation == "row-types"
    found = (
        device_choices(layer_choices, ChoiceProblem(size, True, None, 0.0), engine, level)
        if row_types
        else None
    )
    return (
        hybrid_choices(layer_choices, ChoiceProblem(size, True, None, 0.0), engine, level, representation)
        if found is None
        else found
    )


def _random(size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(20).random(size)


def _time(call: Callable[[], object]) -> float:
    """Return the median seconds of a call, repeated for a while after a first one, which builds things."""
    call()
    times: list[float] = []
    end = time.perf_counter() + _MEASURED_SECONDS
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
