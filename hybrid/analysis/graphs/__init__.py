"""Explicit graphs of models, and their decompositions on the host and on a device."""

from hybrid.analysis.graphs.arrays import ModelGraph, choice_actions, graph_bytes, model_graph, to_networkx
from hybrid.analysis.graphs.decompositions import (
    Decomposition,
    EndDecomposition,
    decompose,
    decompose_bottom,
    mec_decomposition,
)

__all__ = [
    "Decomposition",
    "EndDecomposition",
    "ModelGraph",
    "choice_actions",
    "decompose",
    "decompose_bottom",
    "mec_decomposition",
    "graph_bytes",
    "model_graph",
    "to_networkx",
]
