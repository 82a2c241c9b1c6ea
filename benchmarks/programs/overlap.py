"""Products of several processes that wait for each other first, and that multiply while messages move.

Every row is one job of MPI on this machine, one thread a process, in which forms of a product take turns.  On
a loaded machine the ratios of turns mean more than seconds; its load is in the row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records
from benchmarks.programs.processes import launcher
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import injected
from hybrid.base.communicators.mpi import MpiCommunicator, mpi_communicator
from hybrid.base.halo import ArrivingVector
from hybrid.checking.in_parts import part_of
from hybrid.matrix.operators.hybrid_matrix import DividedMatrix
from mtbdd.offset.divided import DividedMTBDD, places_of

MODELS: dict[str, tuple[str, dict[str, int]]] = {
    "kanban t=5": ("kanban", {"t": 5}),
    "fms n=5": ("fms", {"n": 5}),
    "cluster N=128": ("cluster", {"N": 128}),
    "tandem c=511": ("tandem", {"c": 511}),
    "kanban t=3": ("kanban", {"t": 3}),
    "kanban t=2": ("kanban", {"t": 2}),
}
"""Chains by name."""

TRANSPORTS: dict[str, dict[str, str]] = {
    "shared memory": {},
    "TCP": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "shared memory, progress thread": {"MPIR_CVAR_ASYNC_PROGRESS": "1"},
}
"""How MPICH carries messages between processes of one machine, by name: variables of the environment."""


class TimedVector(ArrivingVector):
    """An arriving vector, and the seconds spent on its messages: in calls between stages, and awaited."""

    def __init__(self, x: ArrivingVector, is_silent: bool = False) -> None:
        super().__init__(x.own, x.whole, x.exchange)
        self.moved = self.awaited = 0.0
        self._is_silent = is_silent

    def advance(self) -> None:
        """See `ArrivingVector.advance`; do nothing if silent."""
        if self._is_silent:
            return
        begin = time.perf_counter()
        super().advance()
        self.moved += time.perf_counter() - begin

    def finish(self) -> None:
        """See `ArrivingVector.finish`."""
        begin = time.perf_counter()
        super().finish()
        self.awaited += time.perf_counter() - begin


def matrix_of(name: str, alike: MpiCommunicator, carries: bool) -> DividedMatrix:
    """Return the own rows of a chain, held for products that wait first or that multiply meanwhile."""
    example, constants = MODELS[name]
    model = hybrid.load(ROOT / f"examples/{example}.prism", constants=dict(constants))
    own = part_of(model, alike)
    alike.carries = carries
    found = injected(own.submatrix(own.index, own.index), CheckOptions(backend="cpu"))
    assert isinstance(found, DividedMatrix)
    return found


def products(name: str, rounds: int, count: int) -> dict[str, Any] | None:
    """Measure in one of the processes; the first one returns what all have found."""
    alike = mpi_communicator()
    plain, staged = matrix_of(name, alike, False), matrix_of(name, alike, True)
    size = staged.shape[0]
    x, out = np.random.default_rng(alike.rank).random(size), np.empty(size)
    spent: list[tuple[float, float]] = []
    silent: list[float] = []

    def apart() -> None:
        with staged.halo.exchange(x) as arriving:
            arriving.finish()
            staged.multiply_arriving(arriving, out)

    def meanwhile() -> None:
        with staged.halo.exchange(x) as arriving:
            staged.multiply_arriving(arriving, out)

    def timed() -> None:
        with staged.halo.exchange(x) as arriving:
            vector = TimedVector(arriving)
            staged.multiply_arriving(vector, out)
        spent.append((vector.moved, vector.awaited))

    def silently() -> None:
        with staged.halo.exchange(x) as arriving:
            vector = TimedVector(arriving, is_silent=True)
            staged.multiply_arriving(vector, out)
        silent.append(vector.awaited)

    divided = staged.symbolic
    assert isinstance(divided, DividedMTBDD)
    outgoing = [x[places_of(runs)] for runs in divided.outgoing]
    incoming = [np.empty(count) for count in divided.incoming]
    forms: dict[str, Callable[[], object]] = {
        "messages": lambda: alike.exchange(outgoing, incoming),
        "waiting": lambda: plain.multiply(x, out),
        "apart": apart,
        "meanwhile": meanwhile,
        "timed": timed,
        "silent": silently,
    }
    times: dict[str, list[float]] = {form: [] for form in forms}
    turns = np.random.default_rng(0)
    for turn in range(-1, rounds):
        for form in turns.permutation(list(forms)).tolist():
            alike.gather([0.0])
            begin = time.perf_counter()
            for _ in range(count):
                forms[form]()
            alike.gather([0.0])
            if turn >= 0:
                times[form].append((time.perf_counter() - begin) / count)
    medians = [*np.median(spent[count:], axis=0), np.median(silent[count:])]
    found = alike.gather([*medians, staged.halo.size])
    if alike.rank:
        return None

    def quartiles(form: str) -> list[float]:
        ratios = np.divide(times["meanwhile"], times[form])
        return [float(q) for q in np.quantile(ratios, [0.25, 0.5, 0.75])]

    moved, awaited, silence, halo = found.max(axis=0).tolist()
    return {
        "halo_bytes": 8 * int(halo),
        **{f"{form}_seconds": float(np.median(seconds)) for form, seconds in times.items()},
        "of_waiting": quartiles("waiting"),
        "of_apart": quartiles("apart"),
        "moved_seconds": moved,
        "awaited_seconds": awaited,
        "silent_awaited_seconds": silence,
    }


def measure(row: dict[str, Any], name: str, transport: str, processes: int, rounds: int, count: int) -> None:
    """Run a job, and fill a row.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    environment = child_environment(HYBRID_NUM_THREADS="1", **TRANSPORTS[transport])
    program = [sys.executable, "-m", "benchmarks.programs.overlap", "--only", name]
    job = [
        launcher(),
        "-n",
        str(processes),
        *program,
        "--worker",
        "--rounds",
        str(rounds),
        "--count",
        str(count),
    ]
    done = subprocess.run(job, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(job)} ended with {done.returncode}: {done.stderr[-500:]}")
    row.update(json.loads(done.stdout))
    row["load"] = os.getloadavg()[0]


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--only", action="append", choices=tuple(MODELS), help="this one; may be repeated")
    arguments.add_argument(
        "--transport", action="append", choices=tuple(TRANSPORTS), help="this one; may be repeated"
    )
    arguments.add_argument("--processes", type=int, default=2, metavar="P", help="how many")
    arguments.add_argument("--rounds", type=int, default=40, metavar="N", help="turns of every form")
    arguments.add_argument("--count", type=int, default=25, metavar="N", help="products of a turn")
    arguments.add_argument("--worker", action="store_true", help="be one of the processes")
    options = arguments.parse_args()
    names = options.only or list(MODELS)
    if options.worker:
        told = products(names[0], options.rounds, options.count)
        if told is not None:
            print(json.dumps(told))
        return
    how = {"processes": options.processes, "rounds": options.rounds, "count": options.count}
    records = Records("overlap", options, **how)
    for transport in options.transport or list(TRANSPORTS)[:2]:
        for name in names:
            records.run({"model": name, "transport": transport}, measure, name, transport, *how.values())
    records.show()


if __name__ == "__main__":
    main()
