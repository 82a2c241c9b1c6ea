"""Decompositions on the host, from the definitions: what the kernels are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def reference_scc(offsets: Any, targets: Any) -> Labels:
    """Return the least state of each state's strongly connected component.

    Parameters
    ----------
    offsets : array_like, shape (n_states + 1,)
    targets : array_like, shape (n_transitions,)

    Returns
    -------
    ndarray, shape (n_states,), int64

    Notes
    -----
    By SciPy, Tarjan's algorithm on one thread.
    """
    import scipy.sparse

    n = len(offsets) - 1
    if n == 0:
        return np.empty(0, np.int64)
    # On copies: merging works in place, and without it SciPy's search may never end.
    arrays = np.ones(len(targets)), np.array(targets), np.array(offsets)
    graph = scipy.sparse.csr_matrix(arrays, (n, n))
    graph.sum_duplicates()
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    _, first, place = np.unique(component, return_index=True, return_inverse=True)
    return first[place].astype(np.int64)


def reference_mec(offsets: Any, targets: Any, choice_offsets: Any) -> tuple[Labels, NDArray[np.bool_]]:
    """Return maximal end components and the choices that stay inside.

    Parameters
    ----------
    offsets : array_like, shape (n_states + 1,)
    targets : array_like, shape (n_transitions,)
    choice_offsets : array_like, shape (n_choices + 1,)

    Returns
    -------
    labels : ndarray, shape (n_states,), int64
        The least state of the component, -1 for states in none.
    choice_kept : ndarray, shape (n_choices,), bool

    Notes
    -----
    Choices that leave the component of their state are taken away until none does; what then has a choice
    is in an end component. O(n_states) decompositions in the worst case.

    References
    ----------
    [WKB16] §2.3, without attractors: the algorithm that the definition suggests.
    """
    offsets, targets = np.asarray(offsets, np.int64), np.asarray(targets, np.int64)
    choice_offsets = np.asarray(choice_offsets, np.int64)
    n, n_choices = len(offsets) - 1, len(choice_offsets) - 1
    source = np.repeat(np.arange(n), np.diff(offsets))
    choice = np.repeat(np.arange(n_choices), np.diff(choice_offsets))
    state_of = source[choice_offsets[:-1]]
    kept = np.ones(n_choices, np.bool_)
    while True:
        live = kept[choice]
        counts = np.bincount(source[live], minlength=n)
        labels = reference_scc(np.concatenate([[0], np.cumsum(counts)]), targets[live])
        leaves = live & (labels[source] != labels[targets])
        if not leaves.any():
            break
        kept[choice[leaves]] = False
    inside = np.bincount(state_of[kept], minlength=n) > 0
    return np.where(inside, labels, -1), kept
