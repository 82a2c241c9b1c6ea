"""Products until bounds meet, with and without Krylov methods between them.

Whole answers under default options, the model built before, each asked twice: the second counts.
`without` keeps optimistic iteration and value iteration of averages as they are; `default` solves
components one by one where there are many, factorises equations that are few or narrow, and lets a Krylov
method look for the bounds, of decision processes by policy iteration, where the pace tells that this is
worth it.  The intervals of both have to meet.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, nullcontext
from unittest.mock import patch

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.models import example_of
from benchmarks.library.records import Records, Row
from hybrid.base.option_types import BackendName
from hybrid.matrix.gpu.device_space import DeviceSystem
from hybrid.matrix.operators.matrix_block_rows import MatrixBlockRows
from hybrid.matrix.space.bellman import BoundAccelerator
from hybrid.matrix.space.host import HostSystem
from hybrid.solvers.direct_bounds import DirectBounds
from hybrid.solvers.forecast import Forecast
from hybrid.solvers.policy_bounds import PolicyBounds

CASES = {
    "kanban t=5": 'R{"throughput"}=? [ S ]',
    "kanban t=4": "P=? [ z4<t U z1=t & y1=0 ]",
    "fms n=6": 'R{"productivity"}=? [ S ]',
    "fms n=5": 'R{"productivity"}=? [ F P1s=n ]',
    "cluster N=128": 'S=? [ "premium" ]',
    "cluster N=64": "P=? [ left_switch_n U left_n=0 ]",
    "tandem c=511": 'R{"customers"}=? [ S ]',
    "tandem c=255": 'R{"customers"}=? [ F sc=c ]',
    "polling N=15": "S=? [ s1=1 & !(s=2 & a=1) ]",
    "polling N=12": "P=? [ !(s=2 & a=1) U (s=1 & a=1) ]",
    "brp N=512,MAX=20": "P=? [ F s=FAILED ]",
    "herman N=11": 'filter(max, R{"steps"}=? [ F "stable" ], "init")',
    "coin N=4,K=4": 'Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]',
    "coin N=3,K=8": 'Pmin=? [ F "all_heads" ]',
    "coin N=4,K=2": 'R{"steps"}max=? [ F "decided" ]',
    "coin N=2,K=24": 'R{"steps"}min=? [ F "decided" ]',
    "relay H=200,M=200": 'R{"power"}min=? [ F "over" ]',
    "relay H=100,M=100": 'Pmin=? [ F "arrived" ]',
}
"""Property by model: long-run averages, until, expected rewards; the last six are decision processes."""


def _untried() -> ExitStack:
    """Return a context without Krylov methods, factors of equations, and components one by one."""
    context = ExitStack()
    context.enter_context(patch.object(Forecast, "is_long", return_value=False))
    for name in ("budget", "is_asked"):
        context.enter_context(patch.object(DirectBounds, name, getattr(BoundAccelerator, name)))
    context.enter_context(patch.object(PolicyBounds, "budget", return_value=0.0))
    for system in (HostSystem, DeviceSystem):
        context.enter_context(patch.object(system, "preconditioner", return_value=None))
    context.enter_context(patch.object(MatrixBlockRows, "where_they_pay", return_value=None))
    return context


def measure(row: Row, spec: str, question: str, backend: BackendName, most: int) -> None:
    """Measure one case with and without."""
    name, _, constants = spec.partition(" ")
    model = example_of(name, constants)
    row.update(states=model.n_states, transitions=model.n_transitions)
    lowest, highest = -math.inf, math.inf
    for kind in ("without", "default"):
        with _untried() if kind == "without" else nullcontext():
            for _ in range(2):
                started = time.perf_counter()
                answer = hybrid.check(model, question, backend=backend, max_iterations=most, throw=False)
                seconds = time.perf_counter() - started
        work = answer.statistics
        row[kind] = {
            "products": work.products or work.iterations,
            "seconds": seconds,
            "iteration_seconds": work.seconds,
            "method": work.method,
            "met": answer.error is None and work.method != "exact",
        }
        if answer.lower is not None and answer.upper is not None:
            row[kind] |= {"lower": answer.lower, "upper": answer.upper}
            lowest, highest = max(lowest, answer.lower), min(highest, answer.upper)
    if lowest > highest:
        raise ArithmeticError("the bounds of the two do not meet")
    if row["without"]["met"] and row["default"]["met"]:
        row["ratio"] = row["default"]["products"] / row["without"]["products"]


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    arguments.add_argument("--backend", choices=("cpu", "gpu"), default="cpu")
    arguments.add_argument("--most", type=int, default=100_000, help="iterations after which a case ends")
    options = arguments.parse_args()
    if options.backend == "gpu":
        require_device("use --backend cpu")
    records = Records("certified_products", options, backend=options.backend, most=options.most)
    for spec, question in CASES.items():
        case = f"{spec}, {question}"
        if options.only and not any(text in case for text in options.only):
            continue
        records.run(
            {"model": spec, "question": question}, measure, spec, question, options.backend, options.most
        )
    records.show()


if __name__ == "__main__":
    main()
