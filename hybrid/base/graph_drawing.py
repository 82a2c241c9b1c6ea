"""Small graphs as pictures: nodes in layers and arrows between them, as text of Graphviz or drawn.

Where the program `dot` of Graphviz is installed it draws; else matplotlib does, nodes layer by layer.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.base.errors import OptionError
from hybrid.base.figures import check_ending, new_figure, save_figure, shown_text, styled
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD

# Parts of a picture of a small graph, for every format.


class GraphNode(Record):
    """A node: its lines of text, its layer from the top, and what it is.

    `kind` is "state", "choice", "node", "terminal" or "note". A node has a `double` line as initial states
    have, and is `marked` by the other colour as states with labels are.
    """

    lines: tuple[str, ...]
    layer: int
    kind: str = "state"
    double: bool = False
    marked: bool = False


class GraphArrow(Record):
    """An arrow between nodes, by their numbers; dashed for an else edge, without a head into a choice."""

    source: int
    target: int
    label: str = ""
    dashed: bool = False
    head: bool = True


class GraphPicture(Record):
    """A graph to be drawn.

    `ranked` says whether nodes of one layer have to stand side by side; else layers are a hint for who needs
    one.
    """

    nodes: Sequence[GraphNode]
    arrows: Sequence[GraphArrow]
    ranked: bool = False
    title: str = ""


# Small offset-labelled MTBDDs as pictures: nodes by level with offsets, terminals with values.

MOST_NODES = 200
"""Nodes of a diagram that a picture can show."""


def diagram_picture(matrix: OffsetMTBDD, bits: Sequence[str] = (), title: str = "") -> GraphPicture:
    """Return the picture of an offset-labelled MTBDD.

    `bits` are names of the 2n levels, by default x1, y1, x2, y2, ... A node is a circle with its offset, the
    number of rows or columns below its else edge. Else edges are dashed; then edges, which add the offset,
    are not. Edges to zero are left out. On the left stands the level with its bit. Raises OptionError where
    the diagram has more than 200 nodes.
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


# Graphs drawn by matplotlib, for machines without Graphviz: nodes in layers, ordered to cross few arrows.

Place = tuple[float, float]

_SWEEPS = 8  # over the layers, down and up
_MOST_PIXELS = 8000  # a side
_BOXES = {
    "state": "round,pad=0.45,rounding_size=0.8",
    "node": "circle,pad=0.35",
    "terminal": "square,pad=0.35",
    "note": "square,pad=0.35",
}
_FILL = {"state": "#eaf2fb", "node": "#eaf2fb", "terminal": "#fff3d6", "note": "none", "choice": "#0072b2"}
_LINE = {"state": "#0072b2", "node": "#0072b2", "terminal": "#b26f00", "note": "none", "choice": "#0072b2"}


def draw_layered(picture: GraphPicture, path: str | Path) -> None:
    """Draw a graph with matplotlib; see :func:`hybrid.base.graph_drawing.draw_graph`.

    Raises OptionError without matplotlib, or for a file that cannot be written.
    """
    places = layered_places(picture)
    width = max((x for x, _ in places), default=0.0) + 1.0
    height = 1.0 - min((y for _, y in places), default=0.0)
    lines = max((len(node.lines) for node in picture.nodes), default=1)
    text = max((len(line) for node in picture.nodes for line in node.lines if node.kind != "note"), default=1)
    figure, (axes,) = new_figure(1.0 + (0.75 + 0.075 * text) * width, 0.6 + (0.7 + 0.16 * lines) * height)
    with styled():
        axes.set_axis_off()
        axes.set_xlim(-0.8, width - 0.2)
        axes.set_ylim(0.2 - height, 0.8)
        if picture.title:
            axes.set_title(shown_text(picture.title))
        outlines = [_node(axes, node, x, y) for node, (x, y) in zip(picture.nodes, places, strict=True)]
        # Matplotlib places the outline of a text only when it draws it.
        figure.draw_without_rendering()
        for arrow, bend in zip(picture.arrows, _bends(picture, places), strict=True):
            _arrow(axes, arrow, places, outlines, bend)
    inches = max(figure.get_size_inches())
    save_figure(figure, path, dpi=max(40, min(150, int(_MOST_PIXELS / inches))))


def layered_places(picture: GraphPicture) -> list[Place]:
    """Return the position of every node: one row a layer, ordered by the mean position of its neighbours.

    Time: O(sweeps * (nodes log nodes + arrows)).
    """
    layers: dict[int, list[int]] = {}
    for number, node in enumerate(picture.nodes):
        layers.setdefault(node.layer, []).append(number)
    near: dict[int, list[int]] = {number: [] for number in range(len(picture.nodes))}
    for arrow in picture.arrows:
        if arrow.source != arrow.target:
            near[arrow.source].append(arrow.target)
            near[arrow.target].append(arrow.source)
    widest = max((len(own) for own in layers.values()), default=1)
    x = {n: _spread(k, len(own), widest) for own in layers.values() for k, n in enumerate(own)}
    for sweep in range(_SWEEPS):
        for layer in sorted(layers, reverse=bool(sweep % 2)):
            own = layers[layer]
            means = {n: sum(x[m] for m in near[n]) / len(near[n]) if near[n] else x[n] for n in own}
            # A note stays where it is, at the left of its layer.
            own.sort(key=lambda n: (picture.nodes[n].kind != "note", means[n], n))
            x.update({n: _spread(k, len(own), widest) for k, n in enumerate(own)})
    rows = {layer: -float(k) for k, layer in enumerate(sorted(layers))}
    for own in layers.values():
        if picture.nodes[own[0]].kind == "note":
            x[own[0]] = 0.0
    return [(x[n], rows[node.layer]) for n, node in enumerate(picture.nodes)]


def _spread(place: int, count: int, widest: int) -> float:
    """Return x of node `place` of `count`, spread over the width of the widest layer."""
    return (place + 0.5) * widest / count - 0.5


def _node(axes: Any, node: GraphNode, x: float, y: float) -> Any:
    """Draw a node, and return its outline."""
    if node.kind == "choice":
        (point,) = axes.plot([x], [y], "o", color=_LINE["choice"], markersize=4, zorder=3)
        return point
    kind = "terminal" if node.marked else node.kind
    box = {
        "boxstyle": _BOXES[node.kind],
        "facecolor": _FILL[kind],
        "edgecolor": _LINE[kind],
        "linewidth": 1.0,
    }
    text = "\n".join(map(shown_text, node.lines))
    style = {"ha": "center", "va": "center", "fontsize": 8.5, "zorder": 3}
    color = "#57606a" if node.kind == "note" else "#1b1f24"
    outer = None
    if node.double:
        wide = {**box, "boxstyle": "round,pad=0.65,rounding_size=1.0"}
        outer = axes.text(x, y, text, color=color, bbox=wide, **style).get_bbox_patch()
    inner = axes.text(x, y, text, color=color, bbox=box, **style).get_bbox_patch()
    return outer or inner


def _arrow(axes: Any, arrow: GraphArrow, places: list[Place], outlines: list[Any], bend: float) -> None:
    """Draw an arrow between the outlines of two nodes, or a loop above one."""
    (x, y), (u, v) = places[arrow.source], places[arrow.target]
    style = {
        "arrowstyle": "-|>" if arrow.head else "-",
        "color": "#57606a",
        "linestyle": "--" if arrow.dashed else "-",
        "linewidth": 1.0,
        "shrinkA": 1,
        "shrinkB": 1,
    }
    if arrow.source == arrow.target:
        style |= {"connectionstyle": "arc3,rad=-1.7", "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (x + 0.22, y + 0.17), (x + 0.02, y + 0.17), arrowprops=style, zorder=1)
        at = (x + 0.12, y + 0.42)
    else:
        ends = ((name, outlines[n]) for name, n in (("patchA", arrow.source), ("patchB", arrow.target)))
        # A choice is a point: an arrow begins in its middle.
        style |= {name: outline for name, outline in ends if hasattr(outline, "get_boxstyle")}
        style["connectionstyle"] = f"arc3,rad={bend}"
        axes.annotate("", (u, v), (x, y), arrowprops=style, zorder=1)
        at = (0.55 * x + 0.45 * u + bend * 0.5 * (v - y), 0.55 * y + 0.45 * v - bend * 0.5 * (u - x))
    if arrow.label:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        axes.text(*at, shown_text(arrow.label), fontsize=7.5, ha="center", va="center", bbox=box, zorder=2)


def _bends(picture: GraphPicture, places: list[Place]) -> list[float]:
    """Return the bend of every arrow: 0 but for reverse or parallel arrows and those that pass nodes."""
    beside: dict[tuple[int, int], int] = {}
    there = {(arrow.source, arrow.target) for arrow in picture.arrows}
    bends = []
    for arrow in picture.arrows:
        ends = (arrow.source, arrow.target)
        (x, y), (u, v) = places[arrow.source], places[arrow.target]
        place = beside[ends] = beside.get(ends, -1) + 1
        is_passing = y == v and abs(x - u) > 1.5 or abs(y - v) > 1.5
        own = 0.18 if ends[::-1] in there else 0.3 if is_passing else 0.0
        bends.append(own - 0.25 * place)
    return bends


_SECONDS = 60.0  # that `dot` may take
_SHAPES = {"state": "box", "choice": "point", "node": "circle", "terminal": "box", "note": "plaintext"}
_STYLES = {
    "state": 'style="rounded,filled", fillcolor="#eaf2fb", color="#0072b2"',
    "marked": 'style="rounded,filled", fillcolor="#fff3d6", color="#b26f00"',
    "choice": 'width=0.09, color="#0072b2"',
    "node": 'style=filled, fillcolor="#eaf2fb", color="#0072b2", fixedsize=false, margin=0.03',
    "terminal": 'style=filled, fillcolor="#fff3d6", color="#b26f00", margin="0.08,0.04", width=0.5',
    "note": 'fontcolor="#57606a"',
}


def draw_graph(picture: GraphPicture, path: str | Path) -> str:
    """Draw a graph as the ending of the file says: ``.svg``, ``.png``, ``.pdf``, or ``.dot`` for its text.

    Returns what has drawn it: ``dot``, ``matplotlib``, or ``text``. Raises OptionError for another ending,
    where there is neither Graphviz nor matplotlib, or for a file that cannot be written.
    """
    check_ending(path, "a graph", also=(".dot",))
    target = Path(path)
    ending = target.suffix.lower()[1:]
    drawn: bytes | None = dot_text(picture).encode()
    by = "text" if ending == "dot" else "dot"
    if ending != "dot":
        drawn = _by_graphviz(dot_text(picture), ending)
    if drawn is None:
        draw_layered(picture, path)
        return "matplotlib"
    try:
        target.write_bytes(drawn)
    except OSError as error:
        raise OptionError(f"cannot write the picture {str(path)!r}: {error.strerror}") from None
    return by


def dot_text(picture: GraphPicture) -> str:
    """Return a graph in Graphviz's language."""
    lines = [
        "digraph {",
        "  graph [labelloc=t, fontname=Helvetica, fontsize=12, bgcolor=white];",
        f"  label={quoted([picture.title])};",
        "  node [fontname=Helvetica, fontsize=11];",
        '  edge [fontname=Helvetica, fontsize=10, color="#57606a", arrowsize=0.7];',
    ]
    for number, node in enumerate(picture.nodes):
        style = _STYLES["marked" if node.marked else node.kind]
        double = ", peripheries=2" if node.double else ""
        label = '""' if node.kind == "choice" else quoted(node.lines)
        lines.append(f"  n{number} [label={label}, shape={_SHAPES[node.kind]}, {style}{double}];")
    if picture.ranked:
        lines += _ranks(picture)
    for arrow in picture.arrows:
        parts = [f"label={quoted([arrow.label])}"] if arrow.label else []
        parts += ["style=dashed"] if arrow.dashed else []
        parts += [] if arrow.head else ["dir=none"]
        style = f" [{', '.join(parts)}]" if parts else ""
        lines.append(f"  n{arrow.source} -> n{arrow.target}{style};")
    return "\n".join([*lines, "}", ""])


def _ranks(picture: GraphPicture) -> list[str]:
    """Return what keeps nodes of a layer side by side, and notes below each other."""
    layers: dict[int, list[int]] = {}
    for number, node in enumerate(picture.nodes):
        layers.setdefault(node.layer, []).append(number)
    lines = [f"  {{ rank=same; {' '.join(f'n{n};' for n in own)} }}" for _, own in sorted(layers.items())]
    notes = [n for _, own in sorted(layers.items()) for n in own if picture.nodes[n].kind == "note"]
    return lines + [f"  n{a} -> n{b} [style=invis];" for a, b in zip(notes, notes[1:], strict=False)]


def quoted(lines: Sequence[str]) -> str:
    """Return lines as a text of Graphviz."""
    safe = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(safe) + '"'


def _by_graphviz(text: str, ending: str) -> bytes | None:
    """Return the picture that Graphviz draws; None if it is not there or cannot."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"-T{ending}"], input=text.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and done.stdout else None
