"""Notebook displays of objects: facts, rows and a small curve as HTML.

All text is escaped here.  Colours are those of the text around, so that pages may be light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Facts = Sequence[tuple[str, str]]

_WIDTH, _HEIGHT, _MARGIN = 260, 90, 6
_LEFT = 'style="text-align:left"'


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)


def facts_text(facts: Facts) -> str:
    """Return names and values as lines of text."""
    return "\n".join(f"{name:<12} {value}" for name, value in facts)


def block(kind: str, *parts: str) -> str:
    """Return parts that are HTML as one, of the class ``hybrid-KIND``."""
    return f'<div class="hybrid-{kind}">{"".join(parts)}</div>'


def facts_table(facts: Facts) -> str:
    """Return names and values as a table of two columns."""
    rows = "".join(
        f"<tr><th {_LEFT}>{_escaped(name)}</th><td {_LEFT}>{_escaped(value)}</td></tr>"
        for name, value in facts
    )
    return f"<table>{rows}</table>"


def rows_table(header: Sequence[str], rows: Iterable[Sequence[object]], more: int = 0) -> str:
    """Return rows beneath a header as a table, and how many more there are."""
    head = "".join(f"<th {_LEFT}>{_escaped(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td {_LEFT}>{_escaped(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    )
    rest = paragraph(f"... and {more:,} more") if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def paragraph(text: str) -> str:
    """Return a text as a paragraph."""
    return f"<div {_LEFT}>{_escaped(text)}</div>"


def memory_picture(sizes: Sequence[int], marked: int) -> str:
    """Return MemR by injection level as a small picture, on a logarithmic axis, with a caption.

    `sizes` are bytes of submatrices and tasks in the worst case, at least one; the `marked` level has a dot.
    """
    heights = [math.log10(max(size, 1)) for size in sizes]
    low, span = min(heights), max(max(heights) - min(heights), 1e-9)
    steps = max(len(sizes) - 1, 1)

    def place(level: int) -> tuple[float, float]:
        x = _MARGIN + level * (_WIDTH - 2 * _MARGIN) / steps
        y = _HEIGHT - _MARGIN - (heights[level] - low) * (_HEIGHT - 2 * _MARGIN) / span
        return round(x, 1), round(y, 1)

    points = " ".join("{},{}".format(*place(level)) for level in range(len(sizes)))
    least = min(range(len(sizes)), key=lambda level: (sizes[level], level))
    x, y = place(marked)
    told = f"MemR over {len(sizes)} levels, least {sizes[least]:,} B at level {least}"
    if marked != least:
        told += f"; held at level {marked}"
    title = f"{told}; {min(sizes):,} to {max(sizes):,} bytes at worst"
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img"><title>{_escaped(title)}</title>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<circle cx="{x}" cy="{y}" r="3" fill="#c33"/></svg>'
        f"<figcaption>{_escaped(told)}</figcaption></figure>"
    )
