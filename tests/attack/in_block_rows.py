"""Cases of the attack whose few states are solved in block rows, as in large models; the same judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import hybrid
import hybrid.analysis.choice_systems as choice_systems
import hybrid.matrix.cpu.csr as csr_components
from hybrid.matrix.operators import choice_block_rows, matrix_block_rows
from hybrid.matrix.operators.matrix_block_rows import MatrixBlockRows
from hybrid.solvers.block_rows import BlockRow
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Record, run_case

__all__ = ["counted_block_rows", "run_in_block_rows", "small_block_rows"]

_MANY = 1000


@contextmanager
def small_block_rows(rng: Random) -> Iterator[None]:
    """Let components and block rows of a few states count as large ones do, of a size drawn.

    Small matrices are held at their first levels, which have one group; block rows begin at any.
    """
    size, share = rng.choice((1, 2, 3, 5, 8)), rng.choice((0.25, 0.5, 0.8))
    limits: dict[Any, dict[str, Any]] = {
        choice_systems: {"_LEAST_STATES": 0},
        choice_block_rows: {"_BLOCK_ROW_STATES": size, "_MOST_SHARE": share},
        matrix_block_rows: {"_BLOCK_ROW_SIZE": size, "_MOST_SHARE": share},
        csr_components: {"_MAX_SHARE": 1.0},
    }
    for module in (choice_block_rows, matrix_block_rows):
        limits[module] |= {"_LEAST_GROUP": 1, "_DEEPER": 1, "_MOST_BLOCK_ROWS": _MANY}
    with ExitStack() as stack:
        for module, values in limits.items():
            for name, value in values.items():
                stack.enter_context(patch.object(module, name, value))
        stack.enter_context(patch.object(MatrixBlockRows, "where_they_pay", _from_any_level(rng)))
        yield


def _from_any_level(rng: Random) -> Any:
    where = MatrixBlockRows.where_they_pay
    return lambda types, k: where(types, rng.randrange(len(types)))


@contextmanager
def counted_block_rows(counts: Counter[str]) -> Iterator[None]:
    """Count the block rows that are solved, of "choices" and of a "chain"."""
    keep = BlockRow.keep

    def counted(self: BlockRow, *arguments: Any) -> None:
        counts["choices" if self.is_lenient else "chain"] += 1
        keep(self, *arguments)

    with patch.object(BlockRow, "keep", counted):
        yield


def run_in_block_rows(case: Case) -> Record:
    """Check the properties of a case in block rows and judge the answers."""
    rng = Random(f"{case.seed}/{case.number}/strips")

    def ask(model: SymbolicModel, text: str, **options: Any) -> hybrid.Answer:
        own = {"method": "auto", "backend": "cpu", "representation": "row-types"}
        with small_block_rows(rng):
            return hybrid.check(model, text, **(options | own))

    return run_case(case, ask)
