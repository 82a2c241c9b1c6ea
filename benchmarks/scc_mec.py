"""Strongly connected and maximal end components: every variant on the card beside one thread of the CPU.

Usage: python benchmarks/scc_mec.py [CASE:SIZE | MODEL[@CONSTANTS] ...] [--variants NAME ...]
       [--repeats R] [--out JSON]

The CPU is SciPy's `connected_components` on a matrix that is there already, and for end components a
compiled reference of this folder. Every time is a median over whole calls, the host's looks at the device
included. `seconds` starts from the lists on the card and makes the transposed graph and the segments anew in
every call; `seconds_with_transfer` starts from NumPy arrays and ends with labels in NumPy. Every answer is
compared with the reference; a variant that differs ends the run. Compilation is left out: each variant is
called once before. A case is a made-up graph of a size, or a model file with its constants. A measurement
repeats until the limit; FBT's other variants are left out of a graph for which the first one takes longer
than that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

sys.path.insert(0, str(Path(__file__).parent))
from mec_reference import compiled_mec
from record import environment

from gpu_kernels import Device, current_device
from gpu_kernels.graph import Graph, MecOptions, SccOptions, mec, reference_scc, scc

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]
"""offsets, targets and choice offsets, int32."""

_FBT = SccOptions(variant="fbt")
SCC_VARIANTS = {
    "auto": SccOptions(),
    "max-id": SccOptions(variant="max-id"),
    "multistep": SccOptions(variant="multistep"),
    "FBT1,7": _FBT,
    "FBT1,0": replace(_FBT, segment_interval=0),
    "FBT1,7-nh": replace(_FBT, combined=False),
    "FBT3,7": replace(_FBT, iterations=3),
    "FBT1,7 every lane": replace(_FBT, aggregate=False),
    "FBT1,7 no transpose": replace(_FBT, transpose=False),
    "BFBT1,7": replace(_FBT, bounded=True),
}
_ATTRACTOR = MecOptions(variant="attractor", scc=_FBT)
MEC_VARIANTS = {
    "auto": MecOptions(),
    "trim, max-id": MecOptions(variant="trim", scc=SccOptions(variant="max-id")),
    "trim, multistep": MecOptions(variant="trim", scc=SccOptions(variant="multistep")),
    "attractor": _ATTRACTOR,
    "attractor, joins": replace(_ATTRACTOR, join_sets=True),
    "attractor, one region": replace(_ATTRACTOR, reuse_regions=False),
    "attractor, BFBT": replace(_ATTRACTOR, scc=replace(_FBT, bounded=True)),
    "attractor, every lane": replace(_ATTRACTOR, scc=replace(_FBT, aggregate=False)),
}


def layers(width: int, rng: np.random.Generator, depth: int = 200, back: float = 0.0) -> Lists:
    """Make layers that lead to the next one, by up to three choices of two targets; the last one loops.

    A share ``back`` of the transitions leads a few layers back, which makes components of all sizes.
    """
    n = width * depth
    n_choices = rng.integers(1, 4, n)
    n_choices[-width:] = 1
    source = np.repeat(np.repeat(np.arange(n), n_choices), 2)
    layer = source // width
    step = np.where(rng.random(len(source)) < back, -rng.integers(0, 4, len(source)), 1)
    targets = np.clip(layer + step, 0, depth - 1) * width + rng.integers(0, width, len(source))
    targets = np.where(layer == depth - 1, source, targets)
    return _lists(n, n_choices, np.full(n_choices.sum(), 2), targets)


def tokens(side: int, rng: np.random.Generator) -> Lists:
    """Make a torus in three dimensions, a choice a direction, some with a coin: one component."""
    n = side**3
    x, y, z = np.unravel_index(np.arange(n), (side,) * 3)
    moves = [
        np.ravel_multi_index(((x + i) % side, (y + j) % side, (z + k) % side), (side,) * 3)
        for i, j, k in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0))
    ]
    order = rng.permutation(n)
    targets = np.stack([moves[0], moves[1], np.arange(n), moves[2], moves[3], np.arange(n), moves[4]], axis=1)
    renamed = np.empty((n, 7), np.int64)
    renamed[order] = order[targets]
    return _lists(n, np.full(n, 5), np.tile([1, 1, 2, 2, 1], n), renamed.ravel())


def walks(count: int, rng: np.random.Generator, length: int = 64) -> Lists:
    """Make random walks on short lines, with a choice to go to a later one: many small components."""
    n = count * length
    state = np.arange(n)
    line, at = state // length, state % length
    left = np.where(at > 0, state - 1, state)
    right = np.where(at < length - 1, state + 1, state)
    later = np.minimum(line + rng.integers(1, 10, n), count - 1) * length + rng.integers(0, length, n)
    return _lists(n, np.full(n, 2), np.tile([2, 1], n), np.stack([left, right, later], axis=1).ravel())


def _lists(n: int, n_choices: np.ndarray, lengths: np.ndarray, targets: np.ndarray) -> Lists:
    choice_offsets = np.concatenate([[0], np.cumsum(lengths)])
    offsets = choice_offsets[np.concatenate([[0], np.cumsum(n_choices)])]
    assert len(offsets) == n + 1 and offsets[-1] == len(targets)
    return offsets.astype(np.int32), targets.astype(np.int32), choice_offsets.astype(np.int32)


CASES: dict[str, Callable[[int, np.random.Generator], Lists]] = {
    "layers": layers,
    "layers_back": lambda width, rng: layers(width, rng, back=0.2),
    "deep_layers": lambda width, rng: layers(width, rng, depth=20_000),
    "tokens": tokens,
    "walks": walks,
}
DEFAULT = ("layers:5000", "layers_back:5000", "deep_layers:50", "tokens:100", "walks:20000")


def model_lists(text: str) -> Lists:
    """Return the graph of ``MODEL@CONSTANTS``."""
    import hybrid
    from hybrid.graphs import model_graph
    from mtbdd.language import parse_constants

    path, _, constants = text.partition("@")
    graph = model_graph(hybrid.load(path, parse_constants(constants)))
    arrays = graph.offsets, graph.targets, graph.choice_offsets
    offsets, targets, choice_offsets = (a.astype(np.int32) for a in arrays)
    return offsets, targets, choice_offsets


def median_seconds(device: Device, work: Callable[[], Any], repeats: int, limit: float) -> float:
    """Return the median time of whole calls, to the end of all work queued."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < limit:
        device.synchronise()
        start = time.perf_counter()
        work()
        device.synchronise()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def host(array: Any) -> np.ndarray:
    """Return a device array as a NumPy array."""
    return array.get() if hasattr(array, "get") else array


def measure(
    device: Device, name: str, lists: Lists, variants: list[str] | None, repeats: int, limit: float
) -> dict[str, Any]:
    """Time every variant on one graph, beside the CPU, and compare the answers."""
    offsets, targets, choice_offsets = lists
    degrees = np.diff(offsets)
    ones = np.ones(len(targets))  # float64, which SciPy takes as it is
    arrays = ones, targets.copy(), offsets.copy()
    matrix = scipy.sparse.csr_matrix(arrays, (len(degrees), len(degrees)))
    # Choices of a state may share a successor; SciPy's search may never end on such a row.
    matrix.sum_duplicates()
    scipy_seconds = median_seconds(
        device, lambda: connected_components(matrix, True, "strong"), repeats, limit
    )
    components = reference_scc(offsets, targets)
    compiled_mec(*lists)
    mec_seconds = median_seconds(device, lambda: compiled_mec(*lists), repeats, limit)
    mecs, kept = compiled_mec(*lists)
    names, sizes = np.unique(components, return_counts=True)
    record: dict[str, Any] = {
        "name": name, "states": len(degrees), "choices": len(choice_offsets) - 1, "transitions": len(targets),
        "average_out": float(degrees.mean()), "maximum_out": int(degrees.max()), "sccs": len(names),
        "trivial_sccs": int((sizes == 1).sum()), "mecs": len(np.unique(mecs[mecs >= 0])),
        "scipy_seconds": scipy_seconds, "compiled_mec_seconds": mec_seconds, "scc": {}, "mec": {},
    }  # fmt: skip
    graph = Graph.from_arrays(device, offsets, targets, choice_offsets=choice_offsets)

    expected: dict[str, tuple[np.ndarray, ...]] = {"scc": (components,), "mec": (mecs, kept)}

    def call(kind: str, options: Any, on_card: bool) -> tuple[Any, ...]:
        own = graph if on_card else Graph.from_arrays(device, offsets, targets, choice_offsets=choice_offsets)
        if kind == "scc":
            answer: tuple[Any, ...] = (scc(device, own, options).labels,)
        else:
            result = mec(device, own, options)
            answer = (result.labels, result.choice_kept)
        return answer if on_card else tuple(host(array) for array in answer)

    for kind, table, cpu in (("scc", SCC_VARIANTS, scipy_seconds), ("mec", MEC_VARIANTS, mec_seconds)):
        slow = False
        for variant, options in table.items():
            published = "BFBT" in variant or "FBT" in variant or "attractor" in variant
            if (variants and variant not in variants) or (published and slow):
                continue
            call(kind, options, False)
            start = time.perf_counter()
            answer = call(kind, options, False)
            slow |= published and time.perf_counter() - start > limit
            if not all(np.array_equal(a, b) for a, b in zip(answer, expected[kind], strict=True)):
                raise SystemExit(f"{name}: {kind} by {variant!r} differs from the reference")
            run = scc(device, graph, options) if kind == "scc" else mec(device, graph, options)
            seconds = median_seconds(device, lambda k=kind, o=options: call(k, o, True), repeats, limit)
            whole = median_seconds(device, lambda k=kind, o=options: call(k, o, False), repeats, limit)
            record[kind][variant] = {
                "variant": run.variant, "rounds": run.rounds, "seconds": seconds,
                "seconds_with_transfer": whole, "times_faster": cpu / seconds,
                "times_faster_with_transfer": cpu / whole,
            }  # fmt: skip
            print(
                f"{name:18s} {kind} {variant:22s} {1e3 * seconds:9.3f} ms, moved {1e3 * whole:9.3f} ms, "
                f"CPU {1e3 * cpu:9.3f} ms: {cpu / seconds:.2f} and {cpu / whole:.2f} times",
                flush=True,
            )
    return record


def main() -> None:
    """Run the cases asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cases",
        nargs="*",
        default=DEFAULT,
        help=f"MODEL[@CONSTANTS], or CASE:SIZE, CASE one of {', '.join(CASES)}",
    )
    parser.add_argument("--variants", nargs="+", help="names of variants; all of them if not given")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for the repeats of one measurement")
    parser.add_argument("--seed", type=int, default=20260)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = current_device()
    records = []
    for case in arguments.cases:
        kind, _, size = case.partition(":")
        if kind in CASES:
            name, lists = case, CASES[kind](int(size), np.random.default_rng(arguments.seed))
        else:
            name, lists = Path(case).name, model_lists(case)
        records.append(measure(device, name, lists, arguments.variants, arguments.repeats, arguments.limit))
        if arguments.out:
            record = {
                "environment": environment(),
                "device": device.name,
                "seed": arguments.seed,
                "cases": records,
            }
            arguments.out.write_text(json.dumps(record | {"cases": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
