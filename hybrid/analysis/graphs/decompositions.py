"""Strongly connected, bottom and maximal end components of explicit graphs, on the CPU and on a device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.graphs.arrays import ModelGraph
from hybrid.base.arrays import to_host
from hybrid.base.errors import OptionError
from mtbdd.base.errors import option

if TYPE_CHECKING:  # what a device needs is loaded when one is used
    from gpu_kernels import Device
    from gpu_kernels.graph import ComponentOptions, Graph

SCC_VARIANTS = ("auto", "scipy", "tarjan")

_VECTORS = 16
"""Vectors over the states that a decomposition on a device holds at most."""

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """States in components, each named by its least state.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component, -1 for states in none.
    """

    labels: Int64Array

    @cached_property
    def sizes(self) -> Int64Array:
        """Number of states of each component, in the order of their names, shape (count,)."""
        counts = np.bincount(self.labels[self.labels >= 0], minlength=1)
        return counts[counts > 0].astype(np.int64)

    @property
    def count(self) -> int:
        """Number of components."""
        return len(self.sizes)

    @property
    def n_trivial(self) -> int:
        """Number of components of one state."""
        return int(np.count_nonzero(self.sizes == 1))

    @property
    def largest(self) -> int:
        """States of the largest component; 0 if there is none."""
        return int(self.sizes.max(initial=0))


@dataclass(frozen=True, eq=False)
class EndDecomposition(Decomposition):
    """Maximal end components.

    Attributes
    ----------
    choice_kept : ndarray, shape (n_choices,), bool
        The choices that stay in the component of their state.
    """

    choice_kept: NDArray[np.bool_]


def decompose(graph: ModelGraph, variant: str = "auto") -> Decomposition:
    """Return the strongly connected components, all choices' transitions taken together.

    Parameters
    ----------
    graph : ModelGraph
    variant : {"auto", "scipy", "tarjan"}
        SciPy's code on a copy of the graph in which parallel transitions are one, or Tarjan's algorithm
        compiled here on the graph as it is; ``auto`` is ``tarjan``.

    Returns
    -------
    Decomposition

    Raises
    ------
    OptionError
        If the variant is none of these.

    Notes
    -----
    Time: O(states + transitions), on one thread.
    """
    if variant not in SCC_VARIANTS:
        raise OptionError(f"variant: expected one of {', '.join(SCC_VARIANTS)}, got {variant!r}")
    if variant == "scipy":
        return Decomposition(_by_scipy(graph))
    from hybrid.matrix.cpu.graph_kernels import strong_components

    labels = np.empty(graph.n_states, np.int64)
    strong_components(graph.targets, graph.choice_ptr, graph.choice_offsets, labels)
    return Decomposition(labels)


def decompose_bottom(graph: ModelGraph, components: Decomposition | None = None) -> Decomposition:
    """Return the strongly connected components that no transition leaves.

    Parameters
    ----------
    graph : ModelGraph
    components : Decomposition, optional
        The strongly connected components if they are known.

    Returns
    -------
    Decomposition
        States of no such component have the label -1.
    """
    labels = (components or decompose(graph)).labels
    sources = np.repeat(labels, np.diff(graph.offsets))
    left = np.zeros(graph.n_states, np.bool_)
    left[sources[sources != labels[graph.targets]]] = True
    return Decomposition(np.where(left[labels], -1, labels))


def mec_decomposition(graph: ModelGraph) -> EndDecomposition:
    """Return the maximal end components; those of a chain are its bottom components.

    Parameters
    ----------
    graph : ModelGraph

    Returns
    -------
    EndDecomposition

    Notes
    -----
    Time: O(states + transitions) a decomposition of what changed, on one thread; see
    :func:`hybrid.matrix.cpu.graph_kernels.decompose_end_components`.

    References
    ----------
    [WKB16] §2.4.
    """
    from hybrid.matrix.cpu.graph_kernels import decompose_end_components

    labels = np.empty(graph.n_states, np.int64)
    kept = np.empty(graph.n_choices, np.bool_)
    decompose_end_components(graph.targets, graph.choice_ptr, graph.choice_offsets, labels, kept)
    return EndDecomposition(labels, kept)


def _by_scipy(graph: ModelGraph) -> Int64Array:
    """Return the least state of every state's component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graph.n_states
    if n == 0:
        return np.zeros(0, np.int64)
    # SciPy wants values of its own type, and copies what has another.
    values = np.ones(graph.n_transitions)
    # The copy is changed: SciPy's search may not end where two entries have the same row and column.
    matrix = csr_array((values, graph.targets, graph.offsets), shape=(n, n), copy=True)
    matrix.sum_duplicates()
    _, component = connected_components(matrix, directed=True, connection="strong")
    _, first, place = np.unique(component, return_index=True, return_inverse=True)
    return np.asarray(first[place], np.int64)


# ------------------------------------------------------------------ on a device


def device_options(variant: str) -> ComponentOptions:
    """Return the options of a variant by its name.

    Parameters
    ----------
    variant : str
        One of :class:`gpu_kernels.graph.ComponentOptions`.

    Returns
    -------
    ComponentOptions

    Raises
    ------
    OptionError
        If there is no such variant; for those of the release before with what to use instead.
    """
    from gpu_kernels.graph import ComponentOptions, VariantError
    from gpu_kernels.graph.fbt import Variant

    name, comma, _ = variant.partition(",")
    if comma:
        raise OptionError(
            f"variant: options after a comma are gone, got {variant!r}; use {', '.join(get_args(Variant))} "
            "(bfbt for fbt,bounded, fb for fbt,trim=false), or in Python gpu_kernels.graph.ComponentOptions"
        )
    if name == "multistep":
        raise OptionError("variant: 'multistep' is gone; use 'auto', which does the same on flat graphs")
    try:
        return ComponentOptions(variant)  # type: ignore[arg-type]
    except VariantError as error:
        raise OptionError(str(error)) from None


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A graph that lies on the device.

    Attributes
    ----------
    device : Device
    graph : Graph
    seconds : float
        What it took to bring it there, checks included.
    """

    device: Device
    graph: Graph
    seconds: float

    @classmethod
    def of(cls, graph: ModelGraph) -> DeviceGraph:
        """Copy a graph to the device in use.

        Raises
        ------
        OptionError
            No device can be used.
        MemoryError
            The graph and the vectors of a decomposition do not fit; with required and available bytes.
        """
        from gpu_kernels import current_device, device_problem
        from gpu_kernels.graph import Graph

        problem = device_problem()
        if problem is not None:
            raise OptionError(f"backend: 'gpu' cannot run here: {problem}; or use 'cpu' or 'symbolic'")
        device = current_device()
        required, available = _device_bytes(graph), device.free_bytes()
        if required > available:
            raise MemoryError(
                f"decomposing {graph.n_transitions} transitions needs {required} bytes on {device.name}, "
                f"{available} are available; use {option('backend', 'cpu', 'symbolic')}"
            )
        started = time.perf_counter()
        copy = Graph.from_arrays(device, graph.offsets, graph.targets, choice_offsets=graph.choice_offsets)
        device.synchronise()
        return cls(device, copy, time.perf_counter() - started)

    def decompose(self, options: ComponentOptions | None = None) -> tuple[Decomposition, float]:
        """Return the strongly connected components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        from gpu_kernels.graph import scc

        found, seconds = self._timed(scc, options)
        return Decomposition(to_host(found.labels)), seconds

    def mec_decomposition(self, options: ComponentOptions | None = None) -> tuple[EndDecomposition, float]:
        """Return the maximal end components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        from gpu_kernels.graph import mec

        found, seconds = self._timed(mec, options)
        return EndDecomposition(to_host(found.labels), to_host(found.choice_kept)), seconds

    def _timed(self, search: Callable[..., Any], options: ComponentOptions | None) -> tuple[Any, float]:
        from gpu_kernels.graph import VariantError

        started = time.perf_counter()
        try:
            found = search(self.device, self.graph, options)
        except VariantError as error:
            raise OptionError(str(error)) from None
        self.device.synchronise()
        return found, time.perf_counter() - started


def _device_bytes(graph: ModelGraph) -> int:
    """Return the device memory that copying and decomposing takes at most, estimated."""
    m, n, choices = graph.n_transitions, graph.n_states, graph.n_choices
    # Copies, borders of choices and running counts; then words of the graph and its transposed graph.
    copying = m * (graph.targets.itemsize + 25) + 24 * (n + choices)
    return copying + 8 * (2 * m + 3 * n + choices) + 8 * _VECTORS * n
