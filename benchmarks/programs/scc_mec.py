"""Strongly connected and maximal end components: every variant on the card beside one thread of the CPU.

The CPU is the faster of SciPy's `connected_components`, on a matrix that is there already, and of a compiled
Tarjan; for end components it is a compiled reference of this folder.  Every time is a median over whole
calls, the host's looks at the device included.  `seconds` starts from the lists on the card and makes the
transposed graph and the segments anew in every call; `seconds_with_transfer` starts from NumPy arrays and
ends with labels in NumPy.  Every answer is compared with the reference; a variant that differs ends the row.
Compilation is left out: each variant is called once before.

A case is a model file with its constants: examples by default, and with `--models` the models of `MODELS`
that the folder has.  FBTi,u takes i search steps a launch and the segment interval u; with i = 1 no
states are kept in shared memory, which the paper writes as 0.  A measurement repeats until the limit.  Where
the first of the published variants takes longer than that, or the time of the whole run is over, the rest is
left out, and the record says so.  It is written after every case.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

import hybrid
from benchmarks.library.arguments import existing, parser
from benchmarks.library.device import require_device
from benchmarks.library.mec_reference import compiled_mec, compiled_scc
from benchmarks.library.models import EXAMPLES
from benchmarks.library.records import Records, Row
from gpu_kernels import Device, current_device
from gpu_kernels.graph import ComponentOptions, ComponentResult, Graph, MecResult, mec, scc
from hybrid.analysis.graphs import model_graph
from mtbdd.language import parse_constants

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]
"""offsets, targets and choice offsets, int32."""

_FBT = ComponentOptions("fbt")
SCC_VARIANTS = {
    "auto": ComponentOptions(),
    "max-id": ComponentOptions("max-id"),
    "FBT1,7": _FBT,
    "FBT1,1": replace(_FBT, segment_interval=1),
    "FBT1,1-nh": replace(_FBT, segment_interval=1, combined=False),
    "FBT3,1": replace(_FBT, segment_interval=1, iterations=3),
    "FBT3,7": replace(_FBT, iterations=3),
    "FBT1,7 no transpose": replace(_FBT, transpose=False),
    "BFBT1,7": ComponentOptions("bfbt"),
}
MEC_VARIANTS = {
    "auto": ComponentOptions(),
    "trim, max-id": ComponentOptions("max-id"),
    "attractor": _FBT,
    "attractor, every lane": replace(_FBT, aggregate=False),
    "attractor, joins": replace(_FBT, join_sets=True),
    "attractor, BFBT": ComponentOptions("bfbt"),
}
PUBLISHED = ("FBT1,7", "attractor")
"""The first published variant of each kind: where it is too slow, its variations are left out."""


DEFAULT = ("coin.prism@K=24", "relay.prism@H=2000,M=500", "tandem.prism@c=1023")
"""Examples."""

MODELS = (
    "mdp/firewire/firewire.nm@delay=36",
    "mdp/zeroconf/zeroconf.nm@reset=false,N=20,K=4",
    "mdp/csma/csma4_2.nm",
    "mdp/csma/csma3_4.nm",
    "mdp/wlan/wlan5.nm@COL=0",
    "mdp/zeroconf/zeroconf.nm@reset=false,N=20,K=8",
    "mdp/phil/phil-nofair6.nm",
    "mdp/consensus/coin6.nm@K=2",
    "tandem/tandem.sm@c=1023",
    "mdp/leader_async/leader7.nm",
    "mdp/dining_crypt/dining_crypt8.nm",
    "mdp/wlan/wlan6.nm@COL=0",
    "mdp/consensus/coin6.nm@K=4",
    "mdp/dining_crypt/dining_crypt9.nm",
    "mdp/phil/phil-nofair7.nm",
)
"""Models below a folder, those with fewer transitions first."""


def model_lists(text: str) -> Lists:
    """Return the graph of ``MODEL@CONSTANTS``."""
    path, _, constants = text.partition("@")
    graph = model_graph(hybrid.load(path, parse_constants(constants)))
    arrays = graph.offsets, graph.targets, graph.choice_offsets
    offsets, targets, choice_offsets = (a.astype(np.int32) for a in arrays)
    return offsets, targets, choice_offsets


def median_seconds(device: Device, work: Callable[[], Any], repeats: int, limit: float) -> float:
    """Return the median time of whole calls, to the end of all work queued."""
    times: list[float] = []
    while not times or (len(times) < repeats and sum(times) < limit):
        device.synchronise()
        start = time.perf_counter()
        work()
        device.synchronise()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def host(array: Any) -> np.ndarray:
    """Return a device array as a NumPy array."""
    return np.asarray(array.get() if hasattr(array, "get") else array)


class Measurement:
    """One graph, on the host and on the card, with the answers that are right.

    Parameters
    ----------
    device : Device
    lists : tuple of ndarray
    repeats : int
    limit : float
        Seconds for the repeats of one measurement.
    end : float
        Time of `time.monotonic` after which nothing is begun.
    """

    def __init__(self, device: Device, lists: Lists, repeats: int, limit: float, end: float) -> None:
        self.device, self.lists = device, lists
        self.repeats, self.limit, self.end = repeats, limit, end
        self.graph: Graph | None = None
        self.expected: dict[str, tuple[np.ndarray, ...]] = {}
        self.cpu_seconds: dict[str, float] = {}

    def seconds(self, work: Callable[[], Any]) -> float:
        """Return the median time of a call."""
        return median_seconds(self.device, work, self.repeats, self.limit)

    def on_the_cpu(self) -> dict[str, Any]:
        """Decompose on one thread of the host, and return sizes, counts and times."""
        offsets, targets, choice_offsets = self.lists
        degrees = np.diff(offsets)
        ones = np.ones(len(targets))  # float64, which SciPy takes as it is
        matrix = scipy.sparse.csr_matrix((ones, targets.copy(), offsets.copy()), (len(degrees), len(degrees)))
        # Choices of a state may share a successor; SciPy's search may never end on such a row.
        matrix.sum_duplicates()
        scipy_seconds = self.seconds(lambda: connected_components(matrix, True, "strong"))
        components = _least(connected_components(matrix, True, "strong")[1])
        if not np.array_equal(_least(compiled_scc(offsets, targets)), components):
            raise RuntimeError("compiled Tarjan differs from SciPy")
        tarjan_seconds = self.seconds(lambda: compiled_scc(offsets, targets))
        mecs, kept = compiled_mec(*self.lists)
        mec_seconds = self.seconds(lambda: compiled_mec(*self.lists))
        names, sizes = np.unique(components, return_counts=True)
        self.expected = {"scc": (components,), "mec": (mecs, kept)}
        self.cpu_seconds = {"scc": min(scipy_seconds, tarjan_seconds), "mec": mec_seconds}
        return {
            "states": len(degrees), "choices": len(choice_offsets) - 1, "transitions": len(targets),
            "average_out": float(degrees.mean()), "maximum_out": int(degrees.max()), "sccs": len(names),
            "trivial_sccs": int((sizes == 1).sum()), "largest_scc": int(sizes.max()),
            "mecs": len(np.unique(mecs[mecs >= 0])), "scipy_seconds": scipy_seconds,
            "tarjan_seconds": tarjan_seconds, "compiled_mec_seconds": mec_seconds,
        }  # fmt: skip

    def call(self, kind: str, options: Any, on_card: bool) -> tuple[Any, ...]:
        """Decompose on the card; from lists there, or from the host and back."""
        if self.graph is None or not on_card:
            offsets, targets, choice_offsets = self.lists
            own = Graph.from_arrays(self.device, offsets, targets, choice_offsets=choice_offsets)
        else:
            own = self.graph
        if kind == "scc":
            answer: tuple[Any, ...] = (scc(self.device, own, options).labels,)
        else:
            result = mec(self.device, own, options)
            answer = (result.labels, result.choice_kept)
        return answer if on_card else tuple(host(array) for array in answer)

    def variant(self, kind: str, name: str, options: Any) -> dict[str, Any]:
        """Time one variant, and compare its answer."""
        self.call(kind, options, False)
        start = time.perf_counter()
        answer = self.call(kind, options, False)
        first = time.perf_counter() - start
        if not all(np.array_equal(a, b) for a, b in zip(answer, self.expected[kind], strict=True)):
            raise RuntimeError(f"{kind} by {name!r} differs from the reference")
        if self.graph is None:
            offsets, targets, choice_offsets = self.lists
            self.graph = Graph.from_arrays(self.device, offsets, targets, choice_offsets=choice_offsets)
        decompose = scc if kind == "scc" else mec
        run: ComponentResult | MecResult = decompose(self.device, self.graph, options)
        seconds = self.seconds(lambda: self.call(kind, options, True))
        # One call that took longer than the limit is enough.
        whole = first if first > self.limit else self.seconds(lambda: self.call(kind, options, False))
        cpu = self.cpu_seconds[kind]
        taken = run.variant if isinstance(run, ComponentResult) else options.variant
        return {
            "variant": taken, "rounds": run.rounds, "seconds": seconds,
            "seconds_with_transfer": whole, "times_faster": cpu / seconds,
            "times_faster_with_transfer": cpu / whole,
        }  # fmt: skip


def measure(record: Row, measurement: Measurement, variants: list[str] | None) -> None:
    """Time every variant on one graph, beside the CPU, and compare the answers."""
    record |= {**measurement.on_the_cpu(), "scc": {}, "mec": {}}
    for kind, table in (("scc", SCC_VARIANTS), ("mec", MEC_VARIANTS)):
        reason = None
        for variant, options in table.items():
            if variants and variant not in variants:
                continue
            is_published = "FBT" in variant or "attractor" in variant
            if time.monotonic() > measurement.end:
                reason, is_published = "the time of the run was over", True
            if reason is not None and is_published:
                record[kind][variant] = {"skipped": reason}
                continue
            run = measurement.variant(kind, variant, options)
            record[kind][variant] = run
            if variant in PUBLISHED and run["seconds"] > measurement.limit:
                reason = f"{variant} took {run['seconds']:.1f} s"


def _least(component: np.ndarray) -> np.ndarray:
    """Name components by their least states."""
    _, first, place = np.unique(component, return_index=True, return_inverse=True)
    return first[place]


def cases_of(options: argparse.Namespace) -> list[str]:
    """Return the cases asked for, else the examples and the models that the folder has."""
    if options.cases:
        return list(options.cases)
    found = [str(EXAMPLES / case) for case in DEFAULT]
    for model in MODELS if options.models is not None else ():
        if (options.models / model.partition("@")[0]).is_file():
            found.append(str(options.models / model))
        else:
            print(f"{model}: no such file, left out", flush=True)
    return found


def run(options: argparse.Namespace, device: Device) -> Records:
    """Measure all cases."""
    records = Records("scc_mec", options, limit=options.limit, repeats=options.repeats)
    end = time.monotonic() + records.seconds_left

    def fill(row: Row, case: str) -> None:
        measurement = Measurement(device, model_lists(case), options.repeats, options.limit, end)
        measure(row, measurement, options.variants)

    for case in cases_of(options):
        records.run({"name": Path(case).name}, fill, case)
    records.show()
    return records


def main() -> None:
    """Run the cases asked for."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("cases", nargs="*", metavar="MODEL[@CONSTANTS]")
    arguments.add_argument(
        "--models", type=existing, metavar="FOLDER", help="of the models measured by default"
    )
    arguments.add_argument(
        "--variants", nargs="+", help="names of variants, as 'FBT1,1-nh'; all of them if not given"
    )
    arguments.add_argument("--repeats", type=int, default=7)
    arguments.add_argument("--limit", type=float, default=5.0, help="seconds for repeats of one thing")
    options = arguments.parse_args()
    require_device()
    run(options, current_device())


if __name__ == "__main__":
    main()
