"""Explicit graphs of models, and their decompositions on the host and on a device."""

from hybrid.analysis.graphs.components import (
    Decomposition,
    EndDecomposition,
    ModelGraph,
    choice_actions,
    decompose,
    decompose_bottom,
    graph_bytes,
    mec_decomposition,
    model_graph,
    to_networkx,
)

__all__ = [
    "Decomposition", "EndDecomposition", "ModelGraph", "choice_actions", "decompose", "decompose_bottom",
    "mec_decomposition", "graph_bytes", "model_graph", "to_networkx",
]  # fmt: skip
