"""What a symbolic build cost and produced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BuildStatistics:
    """What the symbolic build cost and produced.

    `choices` is None for chains; in an MDP `mtbdd_nodes` is the sum over the layers' diagrams and
    `terminals` counts the distinct values of all layers.
    """

    seconds: float
    states: int
    choices: int | None
    transitions: int
    mtbdd_nodes: int
    terminals: int
