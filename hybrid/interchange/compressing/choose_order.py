"""The variable order of a model whose transitions came as a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid.errors import OptionError
from hybrid.interchange.compressing.moves import Moves, ValueSets
from hybrid.interchange.compressing.state_columns import StateColumns
from mtbdd.order import ORDERS, Order, force_order, total_span

_GAIN = 0.8  # another order is tried if its span is at most this share of the source's


def candidate_orders(
    columns: StateColumns, moves: Moves | None, values: Sequence[ValueSets], order: Order
) -> list[list[int]]:
    """Return orders of the variables, by their places in the source; the smallest matrix is to be kept.

    Parameters
    ----------
    columns : StateColumns
    moves : Moves or None
    values : sequence of ValueSets
        See `hybrid.interchange.compressing.moves.value_sets`; empty without moves.
    order : {"auto", "model", "reversed", "force"}, or tuple of str
        "model" is the source's. "force" is the heuristic's: every move ties the variables that it changes and
        those that it depends on. "auto" tries it if it draws them together by a fifth. A tuple has the names
        of all variables as they follow each other.

    Raises
    ------
    OptionError
        Another name.

    Notes
    -----
    Some tools write all booleans first, far from the variables that they go with. Time: that of
    `mtbdd.order.force_order`.
    """
    names = [v.name for v in columns.variables]
    given = list(range(len(names)))
    if isinstance(order, tuple):
        return [[names.index(name) for name in order]]
    if order not in ("auto", *ORDERS):
        raise OptionError(f"order: expected auto, {', '.join(ORDERS)}; got {order!r}")
    if order == "reversed":
        return [given[::-1]]
    if order == "model" or moves is None or len(names) < 3:
        return [given]
    edges = _edges(names, moves, values)
    best = force_order(names, edges)
    span, own = total_span(names, edges), total_span(best, edges)
    place = {name: k for k, name in enumerate(names)}
    other = [place[name] for name in best]
    if order == "force":
        return [other if own < span else given]
    return [given, other] if own <= _GAIN * span else [given]


def _edges(names: Sequence[str], moves: Moves, values: Sequence[ValueSets]) -> list[frozenset[str]]:
    """Return the variables that belong together: those that a move changes, or whose values it depends on."""
    tied = moves.changes != 0
    for number, keys in enumerate(values):
        own = np.array(keys, dtype=np.uint64).reshape(-1, 2)
        # The values of all sources together: sets of values, or least and greatest ones.
        whole = [np.bitwise_or.reduce(own[:, 0]), 0]
        if bool(own[:, 1].any()):
            whole = [own[:, 0].min(), own[:, 1].max()]
        tied[:, number] |= (own != np.array(whole, dtype=np.uint64)).any(axis=1)
    edges = [frozenset(names[k] for k in np.flatnonzero(row).tolist()) for row in tied]
    return [edge for edge in edges if len(edge) > 1]
