"""What a model says of itself: a block of text, and the same as HTML with its level curve as a picture."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from hybrid.levels.curve import level_curve
from hybrid.levels.layers import layer_curve
from hybrid.levels.table import LevelTable

if TYPE_CHECKING:
    from mtbdd.encoding import EncodedVariable
    from mtbdd.model import SymbolicModel

_MOST_NODES = 200_000  # beyond, the curve takes longer than a glance
_MOST_VARIABLES = 12  # beyond, the others are counted
_WIDTH, _HEIGHT, _MARGIN = 260, 90, 6


def text_of(model: SymbolicModel) -> str:
    """Return a model's type, sizes and variables as a block of text."""
    return "\n".join(f"{name:<12} {value}" for name, value in _facts(model))


def html_of(model: SymbolicModel) -> str:
    """Return the same as HTML, with the memory of every injection level as a small picture.

    All text of the model is escaped.  Large diagrams have no picture.
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in _facts(model)
    )
    return f'<div class="hybrid-model"><table>{rows}</table>{_picture(model)}</div>'


def _facts(model: SymbolicModel) -> list[tuple[str, str]]:
    """Return what there is to say, by name."""
    found = model.statistics
    facts = [("model", f"{model.type.value}, {model.source.file}")]
    constants = ", ".join(f"{k}={_plain(v)}" for k, v in model.source.constants.items())
    if constants:
        facts.append(("constants", constants))
    facts.append(("states", f"{found.states:,}"))
    if found.choices is not None:
        facts.append(("choices", f"{found.choices:,}"))
    facts.append(("transitions", f"{found.transitions:,}"))
    facts.append(("variables", _variables(model.encoding.shown)))
    for name, known in (
        ("labels", [label.name for label in model.source.labels]),
        ("rewards", [str(n if r.name is None else r.name) for n, r in enumerate(model.source.rewards)]),
    ):
        if known:
            facts.append((name, ", ".join(known)))
    facts.append(("MTBDD", f"{found.mtbdd_nodes:,} nodes, {found.terminals:,} terminals"))
    return facts


def _variables(variables: tuple[EncodedVariable, ...]) -> str:
    """Return variables with their ranges, the first of many."""
    shown = [f"{v.name}: bool" if v.is_bool else f"{v.name}: {v.low}..{v.high}" for v in variables]
    more = len(shown) - _MOST_VARIABLES
    return ", ".join(shown[:_MOST_VARIABLES]) + (f" and {more} more" if more > 0 else "")


def _plain(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _picture(model: SymbolicModel) -> str:
    """Return the level curve as SVG: bytes of the second representation by level, on a logarithmic axis."""
    matrices = [model.layer_transitions(k) for k in range(len(model.layers))]
    if not matrices[0].n_levels or sum(sum(matrix.nodes) for matrix in matrices) > _MOST_NODES:
        return ""
    curve: LevelTable = layer_curve(matrices) if model.is_mdp else level_curve(matrices[0])
    sizes = [candidate.bytes_worst_case for candidate in curve.levels]
    heights = [math.log10(max(size, 1)) for size in sizes]
    low, span = min(heights), max(max(heights) - min(heights), 1e-9)
    steps = max(len(sizes) - 1, 1)

    def place(level: int) -> tuple[float, float]:
        x = _MARGIN + level * (_WIDTH - 2 * _MARGIN) / steps
        y = _HEIGHT - _MARGIN - (heights[level] - low) * (_HEIGHT - 2 * _MARGIN) / span
        return round(x, 1), round(y, 1)

    points = " ".join("{},{}".format(*place(level)) for level in range(len(sizes)))
    least = curve.min_memory
    x, y = place(least)
    title = (
        f"memory of {len(sizes)} injection levels, {min(sizes):,} to {max(sizes):,} bytes at worst; "
        f"least at level {least}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f"<title>{html.escape(title)}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<circle cx="{x}" cy="{y}" r="3" fill="#c33"/></svg>'
    )
