"""What a picture of a small graph consists of, whoever draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GraphNode:
    """A node: its lines of text, its layer from the top, and what it is.

    Attributes
    ----------
    lines : tuple of str
    layer : int
    kind : {"state", "choice", "node", "terminal", "note"}
    double : bool
        Whether it has a double line, as initial states have.
    marked : bool
        Whether it has the other colour, as states with labels have.
    """

    lines: tuple[str, ...]
    layer: int
    kind: str = "state"
    double: bool = False
    marked: bool = False


@dataclass(frozen=True)
class GraphArrow:
    """An arrow between nodes, by their numbers; dashed for an else edge, without a head into a choice."""

    source: int
    target: int
    label: str = ""
    dashed: bool = False
    head: bool = True


@dataclass(frozen=True)
class GraphPicture:
    """A graph to be drawn.

    Attributes
    ----------
    nodes, arrows : sequence
    ranked : bool
        Whether nodes of one layer have to stand side by side; else layers are a hint for who needs one.
    title : str
    """

    nodes: Sequence[GraphNode]
    arrows: Sequence[GraphArrow]
    ranked: bool = False
    title: str = ""
