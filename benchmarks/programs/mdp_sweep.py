"""One sweep of value iteration: fused layers on the GPU, choices written out on the GPU, the CPU.

A sweep is a step of the least probability to reach a set, with the differences to the last iterate
measured. Every model is measured in one run on one card. Times on the GPU are medians of CUDA event times
over recorded graphs of ten sweeps each, so that neither side pays for launches from the host; the explicit
kernels, by a sum a choice ([BESW10]'s M1) and by a segmented scan (its M2), have the best of several launch
shapes. Times on the CPU are medians on all cores. Bytes are those of matrices and gains; all sides have the
same vectors besides. A model given besides the project's own comes with the states to reach, an expression.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.models import EXAMPLES
from benchmarks.library.records import Records, Row
from examples.generate import coin
from gpu_kernels import (
    ChoiceRows,
    ChoiceStep,
    IterationState,
    current_device,
    finish_iteration,
    run_choice_rows,
)
from hybrid.analysis.choice_systems import choice_flow
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.arrays import to_host
from hybrid.base.option_types import LevelOption
from hybrid.matrix.operators.device_choices import DeviceChoices, device_choices
from hybrid.matrix.operators.explicit_choices import ExplicitChoices, write_choices
from hybrid.matrix.operators.hybrid_choices import hybrid_choices
from hybrid.matrix.operators.layer_choices import LayerChoices, choice_slack, layer_choices_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.language import parse_constants, parse_model, resolve
from mtbdd.offset.states import index_states

RECORDED = 10
REPEATS = 15
CPU_REPEATS = 3
LANES = ((1, 1), (2, 1), (4, 1), (8, 1), (4, 2), (8, 2))


@dataclass(frozen=True)
class Case:
    """A model with its constants, and the states to reach: a label in quotes or an expression."""

    name: str
    size: int | None
    constants: dict[str, Any]
    target: str
    path: Path | None = None

    @property
    def title(self) -> str:
        """Name with the size."""
        return self.name if self.size is None else f"{self.name}{self.size}"


CASES = (
    Case("coin", 6, {"K": 4}, '"decided"'),
    Case("coin", 6, {"K": 8}, '"decided"'),
    Case("coin", 6, {"K": 24}, '"decided"'),
    Case("relay", None, {"H": 2000, "M": 500}, '"over"'),
)
LARGE = (Case("coin", 8, {"K": 1}, '"decided"'),)
QUICK = (Case("coin", 2, {"K": 2}, '"decided"'), Case("relay", None, {"H": 8, "M": 3}, '"over"'))


def load(case: Case) -> SymbolicModel:
    """Build the model of a case."""
    path = case.path or EXAMPLES / f"{case.name}.prism"
    text = path.read_text() if case.size is None else coin(case.size)
    return build_model(resolve(parse_model(text), dict(case.constants)))


def given_case(text: str) -> Case:
    """Return the case of ``FILE[@CONSTANTS]:TARGET``."""
    head, colon, target = text.partition(":")
    path, _, constants = head.partition("@")
    if not colon or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"expected FILE[@CONSTANTS]:TARGET with a model file, got {text!r}")
    return Case(Path(path).stem, None, parse_constants(constants), target, Path(path))


def offers_for(model: SymbolicModel, target: str) -> tuple[list[LayerChoices], int]:
    """Return the offers of the least probability to reach the target, and the number of unknown states."""
    text = f"Pmin=? [ F {target} ]"
    formula: Any = resolve_properties(parse_properties(text), model.source, {}).properties[0].formula
    goal = model.states(formula.path.right)
    unknown = index_states(model.manager, model.reachable & ~goal)
    columns = index_states(model.manager, goal)
    options = CheckOptions.of(backend="cpu")
    layer_choices = layer_choices_of(
        model,
        unknown,
        [layer.enabled for layer in model.layers],
        lambda layer, rows: choice_flow(model, layer, rows, columns, options),
        maximise=False,
        whole=True,
    )
    return layer_choices, unknown.size


def event_seconds(sweep: Callable[[Any, Any], None], size: int) -> float:
    """Return the seconds of one sweep on the device."""
    device = current_device()
    pair = device.xp.zeros(size), device.xp.zeros(size)

    def sweeps() -> None:
        for k in range(RECORDED):
            sweep(pair[k % 2], pair[1 - k % 2])

    sweeps()
    return device.seconds(device.record(sweeps), REPEATS) / RECORDED


def host_seconds(system: ChoiceOperator) -> float:
    """Return the seconds of one sweep on the host."""
    x, out = system.zeros(), system.zeros()
    system.improve(x, out)
    times = []
    for _ in range(CPU_REPEATS):
        start = time.perf_counter()
        system.improve(x, out)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_explicit(rows: ChoiceRows, size: int) -> tuple[float, tuple[int, int]]:
    """Return the seconds of a sweep with choices written out, and the launch shape that is fastest."""
    device = current_device()
    found = []
    shapes = {*LANES, (rows.state_lanes, rows.choice_lanes)}
    # The sums of a scan are made: one thread a choice takes them.
    for lanes in sorted(shape for shape in shapes if rows.plan is None or shape[1] == 1):
        shaped = replace(rows, state_lanes=lanes[0], choice_lanes=lanes[1])
        state = IterationState.create(device)
        step = ChoiceStep(False, state=state)

        def sweep(x: Any, out: Any, shaped: ChoiceRows = shaped, step: ChoiceStep = step) -> None:
            run_choice_rows(device, shaped, step, x, out)
            assert step.state is not None
            finish_iteration(device, step.state, -1.0, False)

        found.append((event_seconds(sweep, size), lanes))
    return min(found)


def lay_out(
    case: Case, layer_choices: list[LayerChoices], problem: ChoiceProblem, level: LevelOption
) -> tuple[DeviceChoices, float]:
    """Return the fused layers of a case at the level that a policy chooses, and the seconds that it took."""
    start = time.perf_counter()
    system = device_choices(layer_choices, problem, CheckOptions.of(backend="gpu").matrix_backend(), level)
    if system is None:
        raise RuntimeError(f"{case.title}: the layers cannot be laid out to be fused")
    current_device().synchronise()
    return system, time.perf_counter() - start


def measure(result: Row, case: Case, with_cpu: bool) -> None:
    """Measure one case."""
    device = current_device()
    start = time.perf_counter()
    model = load(case)
    built = time.perf_counter() - start
    layer_choices, size = offers_for(model, case.target)
    problem = ChoiceProblem(size, False, None, choice_slack(model))
    system, set_up = lay_out(case, layer_choices, problem, "min-time")
    result |= {
        "target": case.target,
        "states": model.n_states,
        "choices": model.n_choices,
        "transitions": model.n_transitions,
        "unknown": size,
        "layers": len(layer_choices),
        "level": system.level,
        "build_seconds": built,
        "set_up_seconds": set_up,
        "seconds": event_seconds(system.improve, size),
        "bytes": system.nbytes + system.operand_bytes,
        "matrix_bytes": system.nbytes,
        "gain_bytes": system.operand_bytes,
        "tuning": repr(system.tuning),
    }
    predicted, predicted_set_up = lay_out(case, layer_choices, problem, "auto")
    result |= {
        "predicted_level": predicted.level,
        "predicted_set_up_seconds": predicted_set_up,
        "predicted_seconds": event_seconds(predicted.improve, size),
    }
    explicit = ExplicitChoices(write_choices(layer_choices, problem.size), problem)
    rows = explicit.rows.to_device(device)
    seconds, lanes = measure_explicit(rows, size)
    result |= {"explicit_seconds": seconds, "explicit_lanes": lanes, "explicit_bytes": rows.nbytes}
    result["difference"] = _difference(system, rows, size)
    result["speedup"] = seconds / result["seconds"]
    result["bytes_share"] = result["bytes"] / rows.nbytes
    scanned = rows.scanned(device)
    seconds, lanes = measure_explicit(scanned, size)
    result |= {"scan_seconds": seconds, "scan_lanes": lanes, "scan_bytes": scanned.nbytes}
    result["scan_difference"] = _difference(system, scanned, size)
    del rows, scanned
    if with_cpu:
        result["cpu_explicit_seconds"] = host_seconds(explicit)
        hybrid = hybrid_choices(layer_choices, problem, CheckOptions.of(backend="cpu").matrix_backend())
        result["cpu_hybrid_seconds"] = host_seconds(hybrid)


def _difference(system: ChoiceOperator, rows: ChoiceRows, size: int) -> float:
    """Return how far the two sweeps are apart, relative, for an arbitrary vector."""
    device = current_device()
    x = device.xp.asarray(np.random.default_rng(2718).random(size))
    mine, theirs = device.xp.empty(size), device.xp.empty(size)
    system.improve(x, mine)
    run_choice_rows(device, rows, ChoiceStep(False), x, theirs)
    a, b = to_host(mine), to_host(theirs)
    same = (a == b) | (np.abs(a - b) <= 1e-12 * np.abs(b))
    if not same.all():
        raise RuntimeError(f"{int((~same).sum())} of {size} states differ by more than 1e-12")
    finite = np.isfinite(b) & (b != 0)
    return float((np.abs(a - b)[finite] / np.abs(b[finite])).max(initial=0.0))


def main() -> None:
    """Run and write the record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument("--large", action="store_true", help="over 10^8 transitions too")
    arguments.add_argument("--no-cpu", action="store_true", help="leave out the times on the CPU")
    arguments.add_argument(
        "--model",
        action="append",
        default=[],
        type=given_case,
        metavar="FILE[@CONSTANTS]:TARGET",
        help="another model, and the states to reach; may be repeated",
    )
    options = arguments.parse_args()
    require_device()
    own = (QUICK if options.quick else CASES) + (LARGE if options.large else ())
    chosen = [case for case in own if not options.only or case.name in options.only]
    records = Records("mdp_sweep", options)
    for case in [*chosen, *options.model]:
        identity = {"model": case.title, "constants": ",".join(f"{k}={v}" for k, v in case.constants.items())}
        records.run(identity, measure, case, not options.no_cpu)
    records.show()


if __name__ == "__main__":
    main()
