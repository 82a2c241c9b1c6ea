"""A step on several cards, a process and a part of the states each, beside one card that has all states.

Every row is one job of MPI.  In it the first process steps alone, with all states on its card; then all
processes step together, elements going straight to other cards, by NCCL, or by way of the hosts.  Steps are
those of JOR, over all states, as solutions make them: recorded and repeated, but by way of the hosts.  For
the share of the exchange that is hidden the parts of a step are timed by themselves, recorded likewise:
stepping, with what others sent before, and exchanging.  `efficiency` is the time alone by the number of
cards times the time together, `hidden` the share of the exchange that does not make a step longer.  Steps of
decision processes are those of whole answers, with all that goes between them.  With --whole the row is a
whole process for each card instead: `hybrid check --distributed --backend gpu`.  With --explicit every part
of the matrix is written out and multiplied by [BESW10]'s M1, once the elements of others have come, as on its
two cards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any, cast

import numpy as np

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.models import ROOT, example
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records
from benchmarks.programs.processes import launcher
from examples.generate import coin
from gpu_kernels import Mode, Step, TileMatrix, current_device, relax_rows, take_card
from gpu_kernels.explicit import FORMATS
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.base.communicators import mpi_communicator
from hybrid.base.errors import OptionError
from hybrid.base.operands import ArrivingVector
from hybrid.base.option_types import Engine, StorageName
from hybrid.checking.in_parts import part_of
from hybrid.matrix.explicit import explicit_matrix
from hybrid.matrix.gpu.distributed_space import DistributedDeviceSpace, run_distributed
from hybrid.matrix.gpu.halo import ArrivingOnDevice, DeviceHalo, DevicePlace
from hybrid.matrix.gpu.product import DistributedGpuProduct
from hybrid.matrix.gpu.transports import VARIABLE
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.distributed import DistributedMTBDD

MODELS = {
    "kanban t=7": ("kanban", 7),
    "kanban t=10": ("kanban", 10),
    "fms n=10": ("fms", 10),
    "cluster N=512": ("cluster", 512),
    "tandem c=4095": ("tandem", 4095),
    "polling N=20": ("polling", 20),
    "kanban t=4": ("kanban", 4),
}
"""Chains by name: of examples/, and their sizes. The last is one to try the program with."""

DECISIONS = {"coin K=24": (6, 24, 'Pmax=? [ F<=2000 "decided" ]')}
"""Decision processes: coins of so many processes, a constant, and a question that takes so many steps."""

PAPER = {"herman N=15": ("herman", 15), "tandem c=2047": ("tandem", 2047), "cluster N=464": ("cluster", 464)}
"""Those of [BESW10]'s table II, which are what --explicit takes."""

M1: StorageName = "msr"

WAYS = {"straight": "straight to other cards", "NCCL": "by NCCL", "host": "by way of the hosts"}
"""How elements go from card to card."""

CARRIERS = {"straight": "straight", "NCCL": "nccl", "host": "hosts"}
"""The same as values of `HYBRID_CARRIER`."""

_TURNS = 5
_RECORDED = 10
_SHORT = 0.3  # seconds that the steps of a turn take, about


Steps = Callable[[int], None]
"""Makes so many steps."""


class ExplicitPart:
    """A process's rows written out; takes the place of a `DistributedGpuProduct`."""

    def __init__(self, divided: DistributedMTBDD) -> None:
        self._device, rows = current_device(), explicit_matrix(divided, "gpu")
        arrays = rows.row_starts, rows.columns, rows.values
        self.matrix = FORMATS[M1].from_csr(self._device, *arrays, rows.shape[1])

    @cached_property
    def _product(self) -> Any:
        return self._device.xp.empty(self.matrix.shape[0])

    def run_overlapped(self, step: Step, x: ArrivingVector, out: Any) -> None:
        """See `DistributedGpuProduct.run_overlapped`; waits first, for a vector of all elements."""
        whole = x.received()
        if step.mode == Mode.PRODUCT:
            self.matrix.multiply(self._device, whole, out)
            return
        self.matrix.multiply(self._device, whole, self._product)
        relax_rows(self._device, step, x.own, out, product=self._product)


def steps_of(own: SymbolicModel, engine: Engine = "hybrid") -> tuple[Any, Any, Steps]:
    """Return a matrix over a model's states, its exit rates, and what makes steps with them."""
    symbolic = own.submatrix(own.index, own.index, diagonal=False)
    storage = M1 if engine == "explicit" else "auto"
    matrix = build_operator(symbolic, CheckOptions.of(engine, "gpu", storage=storage), True)
    place = matrix.place
    rates = place.compressed(own.exit_rates(own.index.at(place)))
    return matrix, rates, in_space(space_of(matrix), rates)


def in_space(space: VectorSpace, rates: Any) -> Steps:
    """Return what makes steps of JOR in a vector space."""
    steps = space.system(rates, None).relaxation(0.9)
    pair = space.xp.ones(len(rates)), space.xp.ones(len(rates))

    def make(count: int) -> None:
        steps.sweep(pair, 0, count)

    return make


def seconds(work: Callable[[int], None], agree: Callable[[float], float]) -> float:
    """Return the median time of a step, over turns of many; the slowest process's.

    Parameters
    ----------
    work : callable
        Makes so many steps.
    agree : callable
        Returns the greatest number of all processes; they wait for each other.
    """
    device = current_device()

    def turn(number: int) -> float:
        device.synchronise()
        agree(0.0)
        begin = time.perf_counter()
        work(number)
        device.synchronise()
        return agree((time.perf_counter() - begin) / number)

    turn(20)  # compiled, and recorded
    turn(20)
    count = max(20, min(2000, int(_SHORT / turn(20)) // 20 * 20))
    return float(np.median([turn(count) for _ in range(_TURNS)]))


def decision_job(name: str, ways: list[str]) -> dict[str, Any] | None:
    """Measure steps of a decision process within whole answers, as one of the processes."""
    from mpi4py import MPI

    size, constant, text = DECISIONS[name]
    alike = mpi_communicator()
    take_card(alike.local_rank()[0])
    model = hybrid.parse(coin(size), constants={"K": constant})
    found: dict[str, Any] = {"states": model.n_states, "transitions": model.n_transitions}
    if alike.rank == 0:
        answers = [hybrid.check(model, text, backend="gpu") for _ in range(2)]  # the second one is warm
        found["level"] = answers[1].statistics.level
        found["alone_seconds"] = _step_seconds(answers[1])
        _let_go()
    alike.gather([0.0])
    for way in ways:
        if way != "straight":
            continue
        answers = [hybrid.check(model, text, backend="gpu", ranks=MPI.COMM_WORLD) for _ in range(2)]
        own = alike.greatest(_step_seconds(answers[1]))
        reason = str(answers[1].statistics.backend_reason)
        if WAYS[way] not in reason:
            found[f"no {way}"] = reason
        elif alike.rank == 0:
            efficiency = found["alone_seconds"] / alike.size / own
            found[way] = {"seconds": own, "efficiency": efficiency, "reason": reason}
    return found if alike.rank == 0 else None


def _step_seconds(answer: Any) -> float:
    return float(answer.statistics.seconds / answer.statistics.iterations)


def job(name: str, ways: list[str], engine: Engine = "hybrid") -> dict[str, Any] | None:
    """Measure a model as one of the processes; the first one returns what was found."""
    if name in DECISIONS:
        return decision_job(name, ways)
    alike = mpi_communicator()
    take_card(alike.local_rank()[0])
    model = example(*(MODELS | PAPER)[name])
    found: dict[str, Any] = {"states": model.n_states, "transitions": model.n_transitions}
    if alike.rank == 0:
        found["level"], found["alone_seconds"] = _alone(model, engine)
    alike.gather([0.0])
    own = part_of(model, alike)
    for way in ways:
        alike.links, os.environ[VARIABLE] = None, CARRIERS[way]  # the first exchange looks for it
        begin = time.perf_counter()
        try:
            measured = _together(own, engine)
        except OptionError as missing:  # in all processes
            found[f"no {way}"] = str(missing)
            continue
        finally:
            _let_go()
        parts, numbers = alike.gather([float(n) for n in measured[0]]), measured[1]
        if alike.rank == 0:
            found["own"], found["received"], found["early_items"], found["items"] = parts.T.tolist()
            numbers["efficiency"] = found["alone_seconds"] / alike.size / numbers["seconds"]
            found[way] = numbers | {"set_up_seconds": time.perf_counter() - begin}
    return found if alike.rank == 0 else None


def _alone(model: SymbolicModel, engine: Engine) -> tuple[int | None, float]:
    """Return the level and the seconds of a step on one card."""
    matrix, _, make = steps_of(model, engine)
    found = seconds(make, lambda own: own)
    level = matrix.level
    del matrix, make
    _let_go()
    return level, found


def explicit_steps(own: SymbolicModel) -> tuple[ExplicitPart, DeviceHalo, Any, Steps]:
    """Return a process's rows written out, who sends what, their exit rates, and what makes steps."""
    divided, device = own.submatrix(own.index, own.index, diagonal=False), current_device()
    assert isinstance(divided, DistributedMTBDD)
    product, halo = ExplicitPart(divided), DeviceHalo(device, divided)
    run = run_distributed(device, cast(DistributedGpuProduct, product), halo)
    space = DistributedDeviceSpace(device, run, own.communicator, halo.host_waits)
    rates = DevicePlace(device).compressed(own.exit_rates(own.index.at(DevicePlace(device))))
    return product, halo, rates, in_space(space, rates)


def _together(own: SymbolicModel, engine: Engine) -> tuple[tuple[int, ...], dict[str, float]]:
    """Return sizes of the own part and seconds of a step."""
    alike = own.communicator
    product: ExplicitPart | DistributedGpuProduct
    if engine == "explicit":
        product, halo, rates, make = explicit_steps(own)
    else:
        matrix, rates, make = steps_of(own)
        assert isinstance(matrix, DistributedMatrix) and matrix.matrix is not None
        held = matrix.matrix.product
        assert isinstance(matrix.halo, DeviceHalo) and isinstance(held, DistributedGpuProduct)
        product, halo = held, matrix.halo

    def run(step: Step, x: Any, out: Any) -> None:
        if halo.aside is not None:
            halo.aside.begin()
        join = None if halo.aside is None else halo.aside.join
        product.run_overlapped(step, ArrivingOnDevice(x, halo, join), out)

    x = halo.ones().own

    def exchange() -> None:
        for _ in range(_RECORDED):
            halo.exchange(x).finish()

    exchange()
    repeated = exchange if halo.host_waits else current_device().record(exchange)

    def exchanges(number: int) -> None:
        for _ in range(number // _RECORDED):
            repeated()

    silent = in_space(DistributedDeviceSpace(current_device(), run, alike, False), rates)
    together, stepping, exchanging = (seconds(w, alike.greatest) for w in (make, silent, exchanges))
    numbers = {
        "seconds": together,
        "stepping_seconds": stepping,
        "exchanging_seconds": exchanging,
        "hidden": (stepping + exchanging - together) / exchanging,
    }
    tiles = product.matrix
    early, items = (tiles.early or 0, len(tiles.items)) if isinstance(tiles, TileMatrix) else (0, 0)
    return (own.index.size, halo.size, early, items), numbers


def _let_go() -> None:
    current_device().xp.get_default_memory_pool().free_all_blocks()


def run_job(cards: int, *command: str) -> str:
    """Start a command as so many processes, and return what they print.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    # Open MPI asks for these where the user of a container is root; MPICH has no such question.
    environment = child_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    line = [launcher(), "-n", str(cards), *command]
    done = subprocess.run(line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, line))} ended with {done.returncode}")
    return done.stdout


def measure(row: dict[str, Any], name: str, cards: int, more: list[str]) -> None:
    """Fill a row with what a job finds."""
    program = [sys.executable, "-m", "benchmarks.programs.cards", "--worker", "--only", name]
    text = run_job(cards, *program, *more)
    # What starts the processes may print, too.
    found = [line for line in text.splitlines() if line.startswith("{")]
    row.update(json.loads(found[-1]), load=os.getloadavg()[0])


def measure_whole(row: dict[str, Any], cards: int, arguments: list[str]) -> None:
    """Fill a row with a whole run of the command line."""
    begin = time.perf_counter()
    printed = run_job(cards, sys.executable, "-m", "hybrid", *arguments)
    row["wall_seconds"] = time.perf_counter() - begin
    model, (result,) = json.loads(printed).values()
    row.update(
        states=model["states"],
        transitions=model["transitions"],
        model_build_seconds=model["build_seconds"],
        check_seconds=result["seconds"],
    )
    names = ("value", "lower", "upper", "backend", "backend_reason", "method", "level", "iterations")
    row.update({n: result.get(n) for n in (*names, "seconds_per_iteration", "base_memory_bytes")})


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument(
        "--only", action="append", choices=(*MODELS, *PAPER, *DECISIONS), help="this one; may be repeated"
    )
    arguments.add_argument("--cards", type=int, default=2, metavar="P", help="processes, a card each")
    arguments.add_argument(
        "--way", action="append", choices=tuple(WAYS), help="of the elements; may be repeated; else all"
    )
    arguments.add_argument("--explicit", action="store_true", help="parts written out, by [BESW10]'s M1")
    arguments.add_argument("--worker", action="store_true", help="be one of the processes")
    arguments.add_argument(
        "--whole", action="append", metavar="TEXT", help="arguments of `hybrid check`; may be repeated"
    )
    options = arguments.parse_args()
    if options.worker:
        found = job(options.only[0], options.way or list(WAYS), "explicit" if options.explicit else "hybrid")
        if found is not None:
            print(json.dumps(found))
        return
    require_device("there is nothing to try without one")
    records = Records("cards", options, cards=options.cards)
    for text in options.whole or []:
        command = ["check", *text.split(), "--distributed", "--backend", "gpu", "--json"]
        records.run({"command": " ".join(["hybrid", *command])}, measure_whole, options.cards, command)
    usual = [*PAPER] if options.explicit else [*list(MODELS)[:-1], *DECISIONS]
    for name in options.only or ([] if options.whole else usual):
        ways = [f"--way={way}" for way in options.way or []]
        engine = ["--explicit"] if options.explicit else []
        identity = {"model": name} | ({"engine": "explicit"} if engine else {})
        records.run(identity, measure, name, options.cards, [*engine, *ways])
    records.show()


if __name__ == "__main__":
    main()
