"""Small offset-labelled MTBDDs as pictures: nodes by level with offsets, terminals with values."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.base.drawing.graph_picture import GraphArrow, GraphNode, GraphPicture
from hybrid.base.errors import OptionError
from mtbdd.offset.offset import OffsetMTBDD

MOST_NODES = 200
"""Nodes of a diagram that a picture can show."""


def diagram_picture(matrix: OffsetMTBDD, bits: Sequence[str] = (), title: str = "") -> GraphPicture:
    """Return the picture of an offset-labelled MTBDD.

    Parameters
    ----------
    matrix : OffsetMTBDD
    bits : sequence of str
        Names of the 2n levels; default x1, y1, x2, y2, ...
    title : str

    Returns
    -------
    GraphPicture
        A node is a circle with its offset, the number of rows or columns below its else edge. Else edges are
        dashed; then edges, which add the offset, are not. Edges to zero are left out. On the left stands
        the level with its bit.

    Raises
    ------
    OptionError
        The diagram has more than 200 nodes.
    """
    size = sum(matrix.nodes)
    if size > MOST_NODES:
        raise OptionError(
            f"a picture of a diagram shows at most {MOST_NODES} nodes, got {size}; choose smaller constants"
        )
    names = list(bits) or [f"{'xy'[k % 2]}{k // 2 + 1}" for k in range(matrix.n_levels)]
    nodes = [GraphNode((f"{k}: {name}",), k, "note") for k, name in enumerate(names)]
    nodes.append(GraphNode((f"{matrix.n_levels}: value",), matrix.n_levels, "note"))
    first = []
    for k, level in enumerate(matrix.levels):
        first.append(len(nodes))
        nodes += [GraphNode((f"{offset}",), k, "node") for offset in level.offset.tolist()]
    first.append(len(nodes))
    nodes += [
        GraphNode((f"{value:.6g}",), matrix.n_levels, "terminal") for value in matrix.terminals.tolist()
    ]
    arrows = []
    for k, level in enumerate(matrix.levels):
        for children, is_else in ((level.low, True), (level.high, False)):
            arrows += [
                GraphArrow(first[k] + node, first[k + 1] + child, dashed=is_else)
                for node, child in enumerate(children.tolist())
                if child >= 0
            ]
    return GraphPicture(nodes, arrows, ranked=True, title=title)
