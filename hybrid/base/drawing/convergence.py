"""How iterations converge, as a picture: what is compared with epsilon, over the iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hybrid.base.drawing.figures import (
    check_ending,
    line_style,
    new_figure,
    save_figure,
    shown_text,
    styled,
    whole_ticks,
)
from hybrid.base.errors import OptionError

_MOST_NAMED = 10
_FEW = 40  # looks that are drawn as points, too


def plot_convergence(
    solutions: Sequence[Sequence[tuple[int, float]]],
    path: str | Path,
    epsilon: float | None = None,
    title: str = "",
    ylabel: str = "difference compared with epsilon",
) -> None:
    """Draw differences over iterations on a logarithmic axis, a line a solution.

    Parameters
    ----------
    solutions : sequence of sequence of (int, float)
        `solutions` of a `hybrid.solvers.trace.Trace`; those without a look at them are left out.
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    epsilon : float, optional
        Drawn as a line.
    title, ylabel : str

    Raises
    ------
    OptionError
        Another ending, no matplotlib, or nothing was iterated.
    """
    check_ending(path)
    drawn = [[(k, d) for k, d in own if 0 < d < math.inf] for own in solutions]
    drawn = [own for own in drawn if own]
    if not drawn:
        raise OptionError("there is no convergence to draw: no iteration was needed, or it ended at once")
    figure, (axes,) = new_figure(7.0, 4.4)
    with styled():
        for number, own in enumerate(drawn):
            style = line_style(number)
            if len(own) > _FEW:
                style["marker"] = None
            label = f"solution {number + 1}" if 1 < len(drawn) and number < _MOST_NAMED else None
            axes.plot([k for k, _ in own], [d for _, d in own], label=label, **style)
        if epsilon is not None:
            axes.axhline(
                epsilon, color="#57606a", linestyle="--", linewidth=1.0, label=f"epsilon {epsilon:g}"
            )
        axes.set_yscale("log")
        whole_ticks(axes.xaxis)
        axes.set_xlabel("iteration")
        axes.set_ylabel(ylabel)
        axes.set_title(shown_text(title if len(title) <= 90 else f"{title[:89]}…"))
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    save_figure(figure, path)
