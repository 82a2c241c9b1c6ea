"""Strongly connected and maximal end components on the device ([WKB16]), with references on the host.

The graph of a model is put on the device by :meth:`Graph.from_arrays`; :func:`scc` and :func:`mec` name
components by their least states, so that the answers of all variants are equal arrays.
"""

from __future__ import annotations

from gpu_kernels.graph.attractor import attractor
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.mec import mec
from gpu_kernels.graph.options import MecOptions, SccOptions, VariantError
from gpu_kernels.graph.part import Part, part_of
from gpu_kernels.graph.reference import reference_mec, reference_scc
from gpu_kernels.graph.result import ComponentResult, MecResult
from gpu_kernels.graph.scc import scc

__all__ = [
    "ComponentResult",
    "Graph",
    "MecOptions",
    "MecResult",
    "Part",
    "SccOptions",
    "attractor",
    "mec",
    "part_of",
    "reference_mec",
    "reference_scc",
    "scc",
    "VariantError",
]
