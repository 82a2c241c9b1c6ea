"""Decompositions of explicit graphs on the device: options from text, memory, results on the host."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Any

from gpu_kernels import Device, current_device, device_problem
from gpu_kernels.graph import Graph, MecOptions, SccOptions, VariantError, mec, scc
from hybrid.core.arrays import to_host
from hybrid.errors import OptionError
from hybrid.graphs.arrays import ModelGraph
from hybrid.graphs.decompositions import Decomposition, EndDecomposition
from mtbdd.wording import option

_VECTORS = 16
"""Vectors over the states that a decomposition holds at most."""


def parse_variant(text: str) -> MecOptions:
    """Return the options that a text names.

    Parameters
    ----------
    text : str
        A variant of :class:`gpu_kernels.graph.SccOptions`, then options of it or of
        :class:`gpu_kernels.graph.MecOptions`, as in ``fbt,segment-interval=0,bounded=true``.

    Returns
    -------
    MecOptions
        With the variant ``attractor`` for ``fbt`` ([WKB16] §6), ``auto`` for the others.

    Raises
    ------
    OptionError
        If a name or value does not exist.
    """
    name, *settings = text.split(",")
    known = {f.name: (kind, f) for kind in (SccOptions, MecOptions) for f in fields(kind)}
    own: dict[type, dict[str, Any]] = {SccOptions: {"variant": name}, MecOptions: {}}
    for setting in settings:
        option, _, value = setting.partition("=")
        kind, field = known.get(option.strip().replace("-", "_"), (None, None))
        if kind is None or field is None or not isinstance(field.default, int):
            names = sorted(n.replace("_", "-") for n, (_, f) in known.items() if isinstance(f.default, int))
            raise OptionError(f"variant: expected an option among {', '.join(names)}, got {option!r}")
        own[kind][field.name] = _value(option, value, isinstance(field.default, bool))
    own[MecOptions]["variant"] = "attractor" if name == "fbt" else "auto"
    try:
        return MecOptions(scc=SccOptions(**own[SccOptions]), **own[MecOptions])
    except VariantError as error:
        raise OptionError(str(error)) from None


def _value(option: str, text: str, is_bool: bool) -> bool | int:
    """Read the value of an option."""
    if is_bool and text in ("", "true", "false"):
        return text != "false"
    if not is_bool and text.isascii() and text.isdigit():
        return int(text)
    expected = "true or false" if is_bool else "a number"
    raise OptionError(f"variant: expected {option}={expected}, got {text!r}")


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

    def decompose(self, options: SccOptions | None = None) -> tuple[Decomposition, float]:
        """Return the strongly connected components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        started = time.perf_counter()
        try:
            found = scc(self.device, self.graph, options)
        except VariantError as error:
            raise OptionError(str(error)) from None
        self.device.synchronise()
        seconds = time.perf_counter() - started
        return Decomposition(to_host(found.labels)), seconds

    def mec_decomposition(self, options: MecOptions | None = None) -> tuple[EndDecomposition, float]:
        """Return the maximal end components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        started = time.perf_counter()
        try:
            found = mec(self.device, self.graph, options)
        except VariantError as error:
            raise OptionError(str(error)) from None
        self.device.synchronise()
        seconds = time.perf_counter() - started
        return EndDecomposition(to_host(found.labels), to_host(found.choice_kept)), seconds


def _device_bytes(graph: ModelGraph) -> int:
    """Return the device memory that copying and decomposing takes at most, estimated."""
    m, n, choices = graph.n_transitions, graph.n_states, graph.n_choices
    # Copies, borders of choices and running counts; then words of the graph and its transposed graph.
    copying = m * (graph.targets.itemsize + 25) + 24 * (n + choices)
    return copying + 8 * (2 * m + 3 * n + choices) + 8 * _VECTORS * n
