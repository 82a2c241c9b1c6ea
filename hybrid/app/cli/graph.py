"""`hybrid graph`: sizes of a model's graph, its strongly connected and its maximal end components."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpu_kernels import current_device, device_problem
from hybrid.analysis.graphs import Decomposition, ModelGraph, decompose, mec_decomposition, model_graph
from hybrid.analysis.graphs.components import SCC_VARIANTS, DeviceGraph, device_options
from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.check_pictures import draw_model, drawn_file
from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import refuse_overwriting
from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text, counted, seconds_text
from mtbdd.build.model import SymbolicModel
from mtbdd.graph.components import EndComponents, StrongComponents, model_components, model_end_components

Record = dict[str, Any]

_COLUMNS = ("maximum_out_degree", "graph_seconds", "graph_bytes", "transfer_seconds", "scc", "mec")


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, draw, decompose and print; return the exit status."""
    chosen = _backend(options.backend)
    _check_variant(chosen.name, options.variant)
    refuse_overwriting(options)
    with drawn_file(options.plot, "--plot", "a graph") as file:
        model = built_model(options, console)
        if file is not None:
            draw_model(model, file, console)
    both = not (options.scc or options.mec)
    wanted = (both or options.scc, both or options.mec)
    chosen, found = _decompose(model, chosen, options, wanted, console)
    record = model_record(model)
    result: Record = {
        "backend": chosen.name,
        "backend_reason": chosen.reason,
        "variant": options.variant,
        "average_out_degree": record["transitions"] / max(record["states"], 1),
        **found,
    }
    if options.json:
        console.print(json.dumps({"model": record, "graph": result}))
    else:
        console.print(model_text(record))
        console.print()
        console.print(_text(result))
    return 0


class _Place(NamedTuple):
    """The backend of a graph's decomposition, and the reason for it."""

    name: str
    reason: str


def _backend(asked: str) -> _Place:
    """Resolve auto: the device if there is one, else the CPU."""
    problem = device_problem() if asked in ("auto", "gpu") else None
    if asked == "auto" and problem is None:
        return _Place("gpu", f"a device is there, {current_device().name}")
    if asked == "auto":
        return _Place("cpu", f"no GPU: {problem}")
    if problem is not None:
        raise OptionError(f"backend: 'gpu' cannot run here: {problem}; or use 'cpu' or 'symbolic'")
    return _Place(asked, "asked for")


def _decompose(
    model: SymbolicModel,
    chosen: _Place,
    options: argparse.Namespace,
    wanted: tuple[bool, bool],
    console: Console,
) -> tuple[_Place, Record]:
    """Decompose on a backend; auto goes on on the CPU where the graph does not fit on the device."""
    if chosen.name == "symbolic":
        return chosen, _symbolic(model, *wanted)
    if chosen.name == "cpu":
        return chosen, _on_cpu(model, options.variant, wanted, console)
    try:
        return chosen, _on_gpu(model, options.variant, wanted, console)
    except MemoryError as error:
        # A variant that was requested by name exists on the device alone.
        if options.backend != "auto" or options.variant != "auto":
            raise
        chosen = _Place("cpu", f"the device has no room: {error}")
    return chosen, _on_cpu(model, options.variant, wanted, console)


def _check_variant(backend: str, variant: str) -> None:
    """Refuse a variant that the backend does not have, before anything is built."""
    if backend == "gpu":
        device_options(variant)
        return
    offered = SCC_VARIANTS if backend == "cpu" else ("auto",)
    if variant not in offered:
        raise OptionError(
            f"variant: expected {', '.join(offered)} with the backend {backend}, got {variant!r}"
        )


def _on_cpu(model: SymbolicModel, variant: str, wanted: tuple[bool, bool], console: Console) -> Record:
    """Decompose on one thread of the host."""
    # So that times do not hold compilation.
    index = np.array([0, 1], np.int32)
    small = ModelGraph(np.zeros(1, np.int32), index, index, np.zeros(1, np.uint8))
    decompose(small, variant)
    mec_decomposition(small)
    graph, record = _explicit(model, console)

    def timed(work: Callable[[], Decomposition]) -> tuple[Decomposition, float]:
        started = time.perf_counter()
        return work(), time.perf_counter() - started

    found = (
        lambda: timed(lambda: decompose(graph, variant)),
        lambda: timed(lambda: mec_decomposition(graph)),
    )
    return record | _components(found, wanted, console)


def _on_gpu(model: SymbolicModel, variant: str, wanted: tuple[bool, bool], console: Console) -> Record:
    """Decompose on the device, after a first run on a small graph that compiles the kernels."""
    chosen = device_options(variant)
    index = np.array([0, 1, 2], np.int32)
    small = DeviceGraph.of(ModelGraph(np.array([1, 0], np.int32), index, index, np.zeros(2, np.uint8)))
    small.decompose(chosen)
    small.mec_decomposition(chosen)
    graph, record = _explicit(model, console)
    console.progress("copying the graph to the device")
    there = DeviceGraph.of(graph)
    found = (lambda: there.decompose(chosen), lambda: there.mec_decomposition(chosen))
    return record | {"transfer_seconds": there.seconds} | _components(found, wanted, console)


def _components(
    found: tuple[Callable[[], tuple[Decomposition, float]], ...], wanted: tuple[bool, bool], console: Console
) -> Record:
    """Decompose in the ways wanted, and return numbers of components with seconds."""
    record: Record = {}
    titles = {"scc": "strongly connected components", "mec": "maximal end components"}
    for (name, title), work, is_wanted in zip(titles.items(), found, wanted, strict=True):
        if is_wanted:
            console.progress(title)
            own, seconds = work()
            record[name] = _counts(own.count, own.n_trivial, own.largest, seconds)
    return record


def _symbolic(model: SymbolicModel, with_scc: bool, with_mec: bool) -> Record:
    """Decompose on sets of states; no graph is written out, so the maximum out-degree is not known."""
    record: Record = dict.fromkeys(_COLUMNS)
    if with_scc:
        started = time.perf_counter()
        components: StrongComponents = model_components(model)
        seconds = time.perf_counter() - started
        record["scc"] = _set_counts(components.sizes, components.n_trivial, seconds)
    if with_mec:
        started = time.perf_counter()
        ends: EndComponents = model_end_components(model)
        seconds = time.perf_counter() - started
        record["mec"] = _set_counts(ends.sizes, ends.n_single, seconds)
    return record


def _explicit(model: SymbolicModel, console: Console) -> tuple[ModelGraph, Record]:
    """Write the graph out and measure it."""
    console.progress("explicit graph")
    started = time.perf_counter()
    graph = model_graph(model)
    seconds = time.perf_counter() - started
    measured = {
        "maximum_out_degree": graph.maximum_out_degree, "graph_seconds": seconds, "graph_bytes": graph.nbytes,
    }  # fmt: skip
    return graph, dict.fromkeys(_COLUMNS) | measured


def _set_counts(sizes: tuple[int, ...], single: int, seconds: float) -> Record:
    """Return numbers of components of several states and of one."""
    largest = max(sizes, default=1 if single else 0)
    return _counts(len(sizes) + single, single, largest, seconds)


def _counts(count: int, trivial: int, largest: int, seconds: float) -> Record:
    """Return numbers of components as they are printed."""
    return {"count": count, "trivial": trivial, "largest": largest, "seconds": seconds}


def _text(result: Record) -> str:
    """Return the plain output: the columns of [WKB16]'s table 2, and times."""
    most = result["maximum_out_degree"]
    lines = [
        f"out-degree   {result['average_out_degree']:.2f} on average, "
        f"{'-' if most is None else format(most, ',')} at most"
    ]
    if result["graph_seconds"] is not None:
        lines.append(
            f"graph        {bytes_text(result['graph_bytes'])} in {seconds_text(result['graph_seconds'])}"
        )
    if result["transfer_seconds"] is not None:
        lines.append(f"transfer     {seconds_text(result['transfer_seconds'])}")
    for name, title in (("scc", "SCCs"), ("mec", "MECs")):
        own = result[name]
        if own is not None:
            lines.append(
                f"{title:<12} {own['count']:,}, {own['trivial']:,} of them trivial, the largest with "
                f"{counted(own['largest'], 'state')}, in {seconds_text(own['seconds'])}"
            )
    lines.append(f"variant      {result['variant']}")
    lines.append(f"backend      {result['backend']}: {result['backend_reason']}")
    return "\n".join(lines)
