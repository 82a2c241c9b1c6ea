"""Which engine suits a model: diagrams above blocks, or the matrix written out."""

from __future__ import annotations

from dataclasses import replace

from hybrid.analysis.run.options import CheckOptions
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel

_NODES = 0.25
"""Nodes an entry from which on a diagram saves too little: one takes 16 bytes, an entry written out 12."""

_ENTRY_BYTES, _ROW_BYTES = 12, 8

_SHARE = 0.5
"""Of the free memory that a matrix written out may take."""


def saves_little(nodes: int, entries: int) -> bool:
    """Whether the diagram of a matrix with so many entries is about as large as their list."""
    return nodes >= _NODES * entries


def with_engine(options: CheckOptions, model: SymbolicModel) -> tuple[CheckOptions, str | None]:
    """Return the options with an engine chosen where that was left open, and why.

    Returns
    -------
    options : CheckOptions
    reason : str or None
        None where an engine was asked for.

    Notes
    -----
    The diagram of the transitions tells: lists of states without structure have about as many nodes as
    transitions, and then blocks of them are no smaller than the matrix, and take longer to find.
    Time: O(levels), once the model is numbered.
    """
    if options.engine != "auto":
        return options, None
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    entries = sum(matrix.n_entries for matrix in matrices)
    nodes = sum(level.low.size for matrix in matrices for level in matrix.levels)
    ratio = nodes / max(entries, 1)
    told = f"the diagram has {ratio:.2g} nodes a transition"
    needed = _ENTRY_BYTES * entries + _ROW_BYTES * sum(matrix.n_rows for matrix in matrices)
    if not saves_little(nodes, entries):
        return replace(options, engine="hybrid"), f"{told}, and saves memory"
    if options.backend == "reference" or options.representation != "row-types":
        return replace(options, engine="hybrid"), "what was asked for besides is its alone"
    if needed > _SHARE * free_memory_bytes():
        return replace(options, engine="hybrid"), f"{told}, but there is no room for a list of {entries:,}"
    return replace(options, engine="explicit"), f"{told}, and saves little"
