"""Strongly connected and maximal end components on the device ([WKB16]).

The graph of a model is put on the device by :meth:`Graph.from_arrays`. Components of :func:`scc` and
:func:`mec` have the numbers of their least states, so that all variants return equal arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_kernels.graph.fbt import ComponentOptions, VariantError
from gpu_kernels.graph.format import Graph, Part, part_of
from gpu_kernels.graph.mec import MecResult, attractor, mec
from gpu_kernels.graph.scc import ComponentResult, scc

__all__ = [
    "ComponentOptions", "ComponentResult", "Graph", "MecResult", "Part", "VariantError", "attractor", "mec",
    "part_of", "scc",
]  # fmt: skip

_GONE = {
    "MecOptions": "ComponentOptions, whose published variants have attractors",
    "SccOptions": "ComponentOptions",
    "reference_mec": "hybrid.analysis.graphs.mec_decomposition",
    "reference_scc": "hybrid.analysis.graphs.decompose",
}
"""Names of the release before, and what to use instead."""

if not TYPE_CHECKING:  # type checkers report names that are not among those above

    def __getattr__(name: str) -> object:
        """Say what to use instead of a name that is gone."""
        if name in _GONE:  # `from ... import` shows the words of this error alone
            raise ImportError(f"gpu_kernels.graph.{name} is gone; use {_GONE[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
