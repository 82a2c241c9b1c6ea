"""Products of parts that take rows without elements of others by themselves have the bits of one product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hybrid
import hybrid.base.operands as halo
import hybrid.matrix.cpu.staged_product as stages
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.communicators import ThreadCommunicator
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.cpu.product import CpuProduct
from hybrid.matrix.cpu.task_product import CpuTaskProduct
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from mtbdd.build.model import SymbolicModel
from tests.builders.part_questions import dealt
from tests.source_tree import ROOT

SPOILT = 1e6  # what is not copied makes a result that is wrong, and a number
CASES: list[tuple[str, dict[str, Any], Any, int]] = [
    ("brp", {"N": 16, "MAX": 2}, "row-types", 1),
    ("fms", {"n": 2}, "row-types", 2),
    ("kanban", {"t": 2}, "row-types", 3),
    ("tandem", {"c": 63}, "row-types", 4),
    ("tandem", {"c": 63}, "tasks", 7),
]


@pytest.mark.parametrize(("name", "constants", "representation", "parts"), CASES)
def test_products_and_steps_have_the_bits_of_one_product(
    name: str,
    constants: dict[str, Any],
    representation: Any,
    parts: int,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=constants)
    read_in_place: list[int] = []

    def room(*shape: int) -> NDArray[np.float64]:
        return np.full(shape, SPOILT)

    def results(own: SymbolicModel) -> list[list[float]]:
        symbolic = own.submatrix(own.index, own.index)
        level = max(symbolic.n_levels - 6, 0)  # groups of few rows, some of which need nothing of others
        matrix = build_operator(
            symbolic, CheckOptions(backend="cpu", representation=representation, level=level)
        )
        assert isinstance(matrix, DistributedMatrix)
        x, out = np.random.default_rng(own.index.size).random(own.index.size), np.empty(own.index.size)
        found = [matrix.row_sums().tolist(), matrix.multiply(x).tolist()]
        for b in (None, x):
            found.append(list(matrix.jacobi_step(x, out, b, 1.0 + x, 0.9)))
            found.append(out.tolist())
            x = out.copy()
        if isinstance(matrix.matrix, HybridMatrix) and isinstance(
            matrix.matrix.product, CpuProduct | CpuTaskProduct
        ):
            read_in_place.append(own.index.size - int(np.diff(matrix.matrix.product.stretches).sum()))
        return found

    monkeypatch.setattr(halo, "aligned_empty", room)
    monkeypatch.setattr(stages, "_LEAST_TERMS", 1)
    monkeypatch.setattr(stages, "_BLOCK", 4)
    owners = dealt(model, parts, rng)
    wanted = in_parts(model, parts, results, owners)
    # Parts in threads take all rows together, processes do not.
    monkeypatch.setattr(ThreadCommunicator, "carries", True)
    assert in_parts(model, parts, results, owners) == wanted
    assert sum(read_in_place[parts:]) > 0
