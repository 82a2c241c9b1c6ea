"""Operands of symbolic arithmetic: read into common arrays, and the errors of what is made of them."""

from __future__ import annotations

import numpy as np

from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import compound
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.diagrams.value_nodes import MOST_NODES


def loaded(a: SymbolicMatrix, most_nodes: int = MOST_NODES) -> tuple[ValueDiagrams, int]:
    """Return a function in arrays that may take so many nodes."""
    work = ValueDiagrams(a.manager.index_level, most_nodes)
    return work, work.load(a)


def both_loaded(a: SymbolicMatrix, b: SymbolicMatrix) -> tuple[ValueDiagrams, int, int]:
    """Return two functions of one manager in common arrays."""
    if a.manager is not b.manager:
        raise ValueError(
            "expected functions of one manager, got two managers; "
            "`mtbdd.diagrams.transfer.transferred` moves a set from one to another"
        )
    work, x = loaded(a)
    return work, x, work.load(b)


def one_sign(work: ValueDiagrams, *functions: int) -> bool:
    """Whether all values of some functions are from 0, or all up to 0."""
    values = np.concatenate([work.values(f) for f in functions])
    return not (bool((values < 0).any()) and bool((values > 0).any()))


def sum_units(units: float, bits: int) -> float:
    """Return the units after adding two halves a bit."""
    for _ in range(bits):
        # lemma: entry-units
        units = compound(units, 1.0)
    return units
