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
import hybrid.matrix.operators.choice_block_rows as choice_strips
import hybrid.matrix.operators.matrix_block_rows as row_strips
from hybrid.matrix.operators.matrix_block_rows import MatrixBlockRows
from hybrid.solvers.block_rows import ChoiceBlockRow, LinearBlockRow
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Record, run_case

__all__ = ["counted_strips", "run_in_strips", "small_strips"]

_MANY = 1000


@contextmanager
def small_strips(rng: Random) -> Iterator[None]:
    """Let components and block rows of a few states count as large ones do, of a size drawn.

    Small matrices are held at their first levels, which have one group; block rows begin at any.
    """
    strip, share = rng.choice((1, 2, 3, 5, 8)), rng.choice((0.25, 0.5, 0.8))
    limits: dict[Any, dict[str, Any]] = {
        choice_systems: {"_LEAST_STATES": 0},
        choice_strips: {"_STRIP_STATES": strip, "_MOST_SHARE": share},
        row_strips: {"_STRIP_ROWS": strip, "_MOST_SHARE": share},
        csr_components: {"_MAX_SHARE": 1.0},
    }
    for block_rows in (choice_strips, row_strips):
        limits[block_rows] |= {"_LEAST_GROUP": 1, "_DEEPER": 1, "_MOST_STRIPS": _MANY}
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
def counted_strips(counts: Counter[str]) -> Iterator[None]:
    """Count the block rows that are solved, by the name of their class."""
    with ExitStack() as stack:
        for kind in (ChoiceBlockRow, LinearBlockRow):
            stack.enter_context(patch.object(kind, "keep", _counted(kind.keep, counts)))
        yield


def _counted(method: Any, counts: Counter[str]) -> Any:
    def count(self: Any, *arguments: Any, **options: Any) -> Any:
        counts[type(self).__name__] += 1
        return method(self, *arguments, **options)

    return count


def run_in_strips(case: Case) -> Record:
    """Check the properties of a case in block rows and judge the answers."""
    rng = Random(f"{case.seed}/{case.number}/strips")

    def ask(model: SymbolicModel, text: str, **options: Any) -> hybrid.Answer:
        own = {"method": "auto", "backend": "cpu", "representation": "row-types"}
        with small_strips(rng):
            return hybrid.check(model, text, **(options | own))

    return run_case(case, ask)
