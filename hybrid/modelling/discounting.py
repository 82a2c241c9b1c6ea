"""Discounted totals as totals until an end that every step reaches with what the discount leaves of 1."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hybrid.errors import ModellingError
from mtbdd.arithmetic import add, scaled
from mtbdd.choices import ChoiceLayer, ChoicePart
from mtbdd.encoding import Encoding
from mtbdd.language.syntax import ModelType
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix

ENDED = "ended"
"""The variable that says whether a discounted model has ended."""


def check_discount(discount: Any, kind: ModelType, names: Sequence[str]) -> float:
    """Return a discount as a double between 0 and 1."""
    try:
        found = float(discount)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not 0 < found < 1:
        raise ModellingError(f"discount: expected a number between 0 and 1, both excluded, got {discount!r}")
    if kind is ModelType.CTMC:
        raise ModellingError("discount: expected a dtmc or an mdp, got a ctmc, whose time has no steps")
    if ENDED in names:
        raise ModellingError(f"discount: adds a variable '{ENDED}'; rename the one that is declared")
    return found


def end_state(encoding: Encoding) -> Node:
    """Return the state that is ended, all other variables at their least values."""
    return encoding.state({v.name: v.high if v.name == ENDED else v.low for v in encoding.variables})


def discounted_layers(
    encoding: Encoding, layers: Sequence[ChoiceLayer], discount: float
) -> list[ChoiceLayer]:
    """Return layers in which every choice ends with probability ``1 - discount``.

    Parameters
    ----------
    encoding : Encoding
        With the variable `ENDED`, which holds nowhere in the layers.
    layers : sequence of ChoiceLayer
        Rows of probabilities.
    discount : float

    Returns
    -------
    list of ChoiceLayer
        The first one has the loop of the state that is ended.

    Notes
    -----
    Time: that of sums of diagrams.
    """
    manager = encoding.manager
    end = end_state(encoding)
    there = manager.to_columns(end)
    rest = 1.0 - discount
    units = 0.0 if Fraction(rest) == 1 - Fraction(discount) else 1.0
    found = []
    for number, layer in enumerate(layers):
        moves = SymbolicMatrix(manager, layer.enabled & there, np.array([rest]), units)
        matrix = add(scaled(layer.matrix, discount), moves)
        enabled, parts = layer.enabled, layer.parts
        if number == 0:
            matrix = add(matrix, SymbolicMatrix(manager, end & there, np.ones(1)))
            enabled, parts = enabled | end, (*parts, ChoicePart(None, end, None))
        found.append(ChoiceLayer(matrix, enabled, parts))
    return found
