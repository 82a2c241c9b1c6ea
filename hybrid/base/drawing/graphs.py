"""Small graphs as pictures: nodes in layers and arrows between them, as text of Graphviz or drawn.

Where the program `dot` of Graphviz is installed it draws; else matplotlib does, nodes layer by layer.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hybrid.base.drawing.figures import check_ending
from hybrid.base.drawing.graph_picture import GraphPicture
from hybrid.base.drawing.layered import draw_layered
from hybrid.base.errors import OptionError

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
    """Draw a graph as the ending of the file says.

    Parameters
    ----------
    picture : GraphPicture
    path : path-like
        ``.svg``, ``.png``, ``.pdf``, or ``.dot`` for its text.

    Returns
    -------
    str
        What has drawn it: ``dot``, ``matplotlib``, or ``text``.

    Raises
    ------
    OptionError
        Another ending, neither Graphviz nor matplotlib, or a file that cannot be written.
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
