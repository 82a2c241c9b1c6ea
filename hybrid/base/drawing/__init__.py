"""Drawings in one style, and their files: figures by matplotlib, graphs by Graphviz.

Names are imported when first used, so that a command that draws nothing loads nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtbdd.base.lazy_loading import lazy_names

_FIGURES = (
    *("MOST_PANELS", "axis_constant", "check_ending", "new_figure"),
    *("plot_convergence", "plot_experiment", "plot_pareto"),
)
_GRAPHS = ("GraphPicture", "diagram_picture", "draw_graph")

if TYPE_CHECKING:
    from hybrid.base.drawing.figures import MOST_PANELS as MOST_PANELS
    from hybrid.base.drawing.figures import axis_constant as axis_constant
    from hybrid.base.drawing.figures import check_ending as check_ending
    from hybrid.base.drawing.figures import new_figure as new_figure
    from hybrid.base.drawing.figures import plot_convergence as plot_convergence
    from hybrid.base.drawing.figures import plot_experiment as plot_experiment
    from hybrid.base.drawing.figures import plot_pareto as plot_pareto
    from hybrid.base.drawing.graphs import GraphPicture as GraphPicture
    from hybrid.base.drawing.graphs import diagram_picture as diagram_picture
    from hybrid.base.drawing.graphs import draw_graph as draw_graph
else:  # type checkers have the imports above
    __getattr__ = lazy_names(__name__, {"figures": _FIGURES, "graphs": _GRAPHS})
