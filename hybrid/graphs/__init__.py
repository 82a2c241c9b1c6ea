"""Explicit graphs of models, and their decompositions on the host and on a device."""

from hybrid.graphs.arrays import ModelGraph, choice_actions, graph_bytes, model_graph
from hybrid.graphs.decompositions import (
    Decomposition,
    EndDecomposition,
    decompose,
    decompose_bottom,
    mec_decomposition,
)
from hybrid.graphs.export import to_networkx

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
