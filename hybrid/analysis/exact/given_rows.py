"""The rows and rewards of a model without a text, as the rational numbers that its doubles are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hybrid.base.errors import NotExactError
from hybrid.matrix.explicit.extract import explicit_matrix
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.convert import offset_label
from mtbdd.offset.vectors import expand

Row = dict[int, Fraction]

_MOST_TERMINALS = 2_000
_ROUNDED = "numbers of the source were divided, multiplied or united, and are known as doubles only"


def given_rows(model: SymbolicModel, layer: int) -> dict[int, Row]:
    """Return the rows of a layer's matrix: successor -> probability or rate.

    Raises
    ------
    NotExactError
        The matrix has rounded entries, or thousands of values.

    Notes
    -----
    Entries of one value at a time: blocks that are stored up to a scale lose nothing so. Time: O(entries),
    and some milliseconds a value.
    """
    matrix = model.layers[layer].matrix
    if matrix.units:
        raise NotExactError(_ROUNDED)
    if len(matrix.terminals) > _MOST_TERMINALS:
        raise NotExactError(f"{len(matrix.terminals)} different numbers are too many for exact solution")
    manager, rows = model.manager, dict[int, Row]()
    for number, value in enumerate(matrix.terminals.tolist()):
        cube = manager.cube(matrix.index_bits, number)
        support = manager.exists(matrix.index_bits, matrix.node & cube)
        ones = offset_label(SymbolicMatrix(manager, support, np.ones(1)), model.index, model.index)
        found = explicit_matrix(ones)
        lengths = np.diff(found.row_starts)
        sources = np.repeat(np.arange(model.n_states), lengths).tolist()
        for i, j in zip(sources, found.columns.tolist(), strict=True):
            rows.setdefault(i, {})[j] = Fraction(value)
    return rows


def given_gains(model: SymbolicModel, structure: int, layer: int | None) -> list[Fraction]:
    """Return what states earn by themselves, or (with a layer) by their choice in it.

    Raises
    ------
    NotExactError
        The rewards are rounded.
    """
    assert model.given is not None
    reward = model.given.rewards[structure]
    own = reward.states if layer is None else reward.choices[layer]
    if own is None:
        return [Fraction(0)] * model.n_states
    if own.units:
        raise NotExactError(_ROUNDED)
    return [Fraction(value) for value in expand(own, model.index).tolist()]
