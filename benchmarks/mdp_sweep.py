"""One sweep of value iteration: layers in one pass on the GPU, choices written out on the GPU, the CPU.

Usage: python benchmarks/mdp_sweep.py [--quick] [--large] [--only NAME] [--no-cpu] [--out FILE.json]
                                      [--model "FILE[@CONSTANTS]:TARGET" ...]

A sweep is a step of the least probability to reach a set, with the differences to the last iterate measured.
Every model is measured in one run on one card. Times on the GPU are medians of CUDA event times over recorded
graphs of ten sweeps each, so that neither side pays for launches from the host; the explicit kernel has the
best of several launch shapes. Times on the CPU are medians on all cores. Bytes are those of matrices and
gains; both sides have the same vectors besides. A model given besides the project's own comes with the
states to reach, an expression.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from generate import coin
from record import environment

from gpu_kernels import (
    ChoiceRows,
    ChoiceStep,
    IterationState,
    current_device,
    finish_iteration,
    run_choice_rows,
)
from hybrid.core.arrays import to_host
from hybrid.operators.device_choices import device_choices
from hybrid.operators.explicit_choices import ExplicitChoices
from hybrid.operators.hybrid_choices import hybrid_choices
from hybrid.operators.offers import Offer, choice_flow, choice_slack, offers_of
from hybrid.properties import parse_properties, resolve_properties
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_operator import ChoiceOperator
from mtbdd.build import build_model
from mtbdd.language import parse_constants, parse_model, resolve
from mtbdd.model import SymbolicModel
from mtbdd.states import index_states

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
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
        raise SystemExit(f"--model: expected FILE[@CONSTANTS]:TARGET with a model file, got {text!r}")
    return Case(Path(path).stem, None, parse_constants(constants), target, Path(path))


def offers_for(model: SymbolicModel, target: str) -> tuple[list[Offer], int]:
    """Return the offers of the least probability to reach the target, and the number of unknown states."""
    text = f"Pmin=? [ F {target} ]"
    formula: Any = resolve_properties(parse_properties(text), model.source, {}).properties[0].formula
    goal = model.states(formula.path.right)
    unknown = index_states(model.manager, model.reachable & ~goal)
    columns = index_states(model.manager, goal)
    options = CheckOptions.of(backend="cpu")
    offers = offers_of(
        model,
        unknown,
        [layer.enabled for layer in model.layers],
        lambda layer, rows: choice_flow(model, layer, rows, columns, options),
        maximise=False,
        whole=True,
    )
    return offers, unknown.size


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


def explicit_rows(explicit: ExplicitChoices) -> ChoiceRows:
    """Copy choices written out to the device."""
    return ChoiceRows.on_device(
        current_device(),
        explicit.choice_ptr,
        explicit.offsets,
        explicit.columns,
        explicit.values,
        explicit.gains,
        explicit.layers,
    )


def measure_explicit(rows: ChoiceRows, size: int) -> tuple[float, tuple[int, int]]:
    """Return the seconds of a sweep with choices written out, and the launch shape that is fastest."""
    device = current_device()
    found = []
    for lanes in {*LANES, (rows.state_lanes, rows.choice_lanes)}:
        shaped = replace(rows, state_lanes=lanes[0], choice_lanes=lanes[1])
        state = IterationState.create(device)
        step = ChoiceStep(False, state=state)

        def sweep(x: Any, out: Any, shaped: ChoiceRows = shaped, step: ChoiceStep = step) -> None:
            run_choice_rows(device, shaped, step, x, out)
            assert step.state is not None
            finish_iteration(device, step.state, -1.0, False)

        found.append((event_seconds(sweep, size), lanes))
    return min(found)


def measure(case: Case, with_cpu: bool) -> dict[str, Any]:
    """Measure one case."""
    device = current_device()
    start = time.perf_counter()
    model = load(case)
    built = time.perf_counter() - start
    offers, size = offers_for(model, case.target)
    slack, none = choice_slack(model), None
    start = time.perf_counter()
    system = device_choices(offers, size, False, none, slack, CheckOptions.of(backend="gpu"))
    if system is None:
        raise RuntimeError(f"{case.title}: the layers cannot be laid out as one pass")
    device.synchronise()
    set_up = time.perf_counter() - start
    result: dict[str, Any] = {
        "model": case.title,
        "constants": ",".join(f"{k}={v}" for k, v in case.constants.items()),
        "states": model.n_states,
        "choices": model.n_choices,
        "transitions": model.n_transitions,
        "unknown": size,
        "layers": len(offers),
        "level": system.level,
        "build_seconds": built,
        "set_up_seconds": set_up,
        "seconds": event_seconds(system.improve, size),
        "bytes": system.nbytes + system.operand_bytes,
        "matrix_bytes": system.nbytes,
        "gain_bytes": system.operand_bytes,
        "tuning": repr(system.tuning),
    }
    explicit = ExplicitChoices(offers, size, False, none, slack)
    rows = explicit_rows(explicit)
    seconds, lanes = measure_explicit(rows, size)
    result |= {"explicit_seconds": seconds, "explicit_lanes": lanes, "explicit_bytes": rows.nbytes}
    result["difference"] = _difference(system, rows, size)
    result["speedup"] = seconds / result["seconds"]
    result["bytes_share"] = result["bytes"] / rows.nbytes
    del rows
    if with_cpu:
        result["cpu_explicit_seconds"] = host_seconds(explicit)
        hybrid = hybrid_choices(offers, size, False, none, slack, CheckOptions.of(backend="cpu"))
        result["cpu_hybrid_seconds"] = host_seconds(hybrid)
    return result


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


def table(rows: list[dict[str, Any]]) -> str:
    """Return the results as text."""
    lines = [
        f"{'model':15} {'constants':12} {'states':>10} {'transitions':>12} {'layers':>6} {'level':>5} "
        f"{'ms':>8} {'expl ms':>8} {'faster':>6} {'MB':>8} {'expl MB':>8} {'share %':>7} "
        f"{'CPU ms':>9} {'CPU expl':>9}"
    ]
    for r in rows:
        lines.append(
            f"{r['model']:15} {r['constants']:12} {r['states']:>10} {r['transitions']:>12} {r['layers']:>6} "
            f"{r['level']:>5} {r['seconds'] * 1e3:8.4f} {r['explicit_seconds'] * 1e3:8.4f} "
            f"{r['speedup']:6.2f} "
            f"{r['bytes'] / 1e6:8.2f} {r['explicit_bytes'] / 1e6:8.1f} {100 * r['bytes_share']:7.2f} "
            f"{1e3 * r.get('cpu_hybrid_seconds', float('nan')):9.2f} "
            f"{1e3 * r.get('cpu_explicit_seconds', float('nan')):9.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--large", action="store_true", help="over 10^8 transitions too")
    parser.add_argument("--only", action="append", help="measure this model only; may be repeated")
    parser.add_argument("--no-cpu", action="store_true", help="leave out the times on the CPU")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        type=given_case,
        metavar="FILE[@CONSTANTS]:TARGET",
        help="another model, and the states to reach; may be repeated",
    )
    options = parser.parse_args()
    own = (QUICK if options.quick else CASES) + (LARGE if options.large else ())
    chosen = [case for case in own if not options.only or case.name in options.only]
    rows: list[dict[str, Any]] = []
    for case in [*chosen, *options.model]:
        try:
            rows.append(measure(case, not options.no_cpu))
        except (MemoryError, RuntimeError) as error:
            print(f"{case.title} {case.constants}: {error}", file=sys.stderr, flush=True)
            continue
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
        write(rows, options.out)
    print(table(rows))


def write(rows: list[dict[str, Any]], out: Path | None) -> None:
    """Write the record, after every case."""
    if out is None:
        return
    from gpu_product import device_record

    out.parent.mkdir(parents=True, exist_ok=True)
    record = {"environment": environment(), "device": device_record(), "rows": rows}
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
