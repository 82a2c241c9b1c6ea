"""A CUDA graph whose launches keep the priorities of the streams that they were recorded on."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

_USE_NODE_PRIORITY = 8
"""CU_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY; without it all launches have the priority of the replay."""


class RecordedGraph:
    """A graph to launch.

    Parameters
    ----------
    graph : cupy.cuda.graph.Graph
        As captured.

    Notes
    -----
    CuPy passes no flags when it instantiates a graph; the driver is asked for that. Where it refuses, CuPy's
    graph is launched, whose results are the same.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._executable = _instantiated(graph.graph)
        if self._executable is not None:
            weakref.finalize(self, _driver().cuGraphExecDestroy, self._executable)

    def launch(self, stream: Any) -> None:
        """Queue all launches on a stream."""
        if self._executable is None:
            self._graph.launch(stream)
            return
        status = _driver().cuGraphLaunch(self._executable, ctypes.c_void_p(stream.ptr))
        if status != 0:
            raise RuntimeError(f"cuGraphLaunch ended with status {status} of the CUDA driver")


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _instantiated(graph: int) -> ctypes.c_void_p | None:
    """Return an executable graph, or None where the driver makes none."""
    found = ctypes.c_void_p()
    try:
        instantiate = _driver().cuGraphInstantiateWithFlags
    except (OSError, AttributeError):
        return None
    status = instantiate(ctypes.byref(found), ctypes.c_void_p(graph), ctypes.c_ulonglong(_USE_NODE_PRIORITY))
    return found if status == 0 else None
