"""Several objectives of random processes, long-run averages among them, against a linear program.

Values under bounds, bounds, curves with their points and half-spaces, and the chains that the schedulers of
points leave.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hybrid
from hybrid.models.model import Model
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Finding, Record, build
from tests.oracles.several import AskedObjectives, random_small_mdp, small_mdp_text

__all__ = ["run_several"]

_CLOSE = 1e-6  # of the linear program, in doubles
_APART = 0.01  # of bounds from the border of what can be achieved
Ask = Callable[..., tuple[str, Any]]

_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"engine": "explicit"},
    {"method": "optimistic"},
    {"epsilon": 1e-9},
)


def run_several(case: Case) -> Record:
    """Draw a process of the same seed and number in the place of a case, and judge what is found about it."""
    start, number = time.perf_counter(), case.number
    rng = np.random.default_rng([case.seed, number])
    kinds = list(rng.permutation(4)[: int(rng.integers(1, 3))]) + [3]  # up to three, an average among them
    shape = [kinds.count(kind) for kind in range(4)]
    mdp = random_small_mdp(rng, shape[0], shape[1], True, shape[2], shape[3])
    asked = AskedObjectives(rng, mdp)
    text = small_mdp_text(asked.mdp)
    options = _OPTIONS[int(rng.integers(0, len(_OPTIONS)))]
    if case.options["backend"] == "gpu":
        options = options | {"backend": "gpu"}
    record = Record(number, "mdp", "several")

    def note(verdict: str, prop: str, detail: str = "") -> None:
        record.verdicts[verdict] = record.verdicts.get(verdict, 0) + 1
        if detail:
            record.findings.append(Finding(case.seed, number, text, prop, options, verdict, detail))

    try:
        for prop, fault in _judged(rng, asked, build(text), options):
            record.values += 1
            note("wrong" if fault else "right", prop, fault)
    except Exception:
        note("crash", "", traceback.format_exc())
    record.seconds = time.perf_counter() - start
    return record


def _judged(
    rng: np.random.Generator, asked: AskedObjectives, model: SymbolicModel, options: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield questions about a process, each with what is wrong about the answer, empty if nothing is."""

    def ask(*texts: str, **more: Any) -> tuple[str, Any]:
        prop = f"multi({', '.join(texts)})"
        return prop, hybrid.check(model, prop, throw=False, **options, **more)

    if asked.is_endless or asked.is_hopeless:
        prop, answer = ask(*(asked.text(i) for i in range(asked.count)))
        yield prop, "" if "infinite" in (answer.error or "") else f"a reward is infinite: {answer}"
        return
    aim = int(rng.integers(0, asked.count))
    demands = _demands(rng, asked, aim)
    exact = asked.best(aim, demands)
    others = [asked.text(i, bound) for i, bound in demands]
    prop, answer = ask(asked.text(aim), *others)
    value = exact if asked.maximise[aim] else -exact
    yield prop, _value_fault(answer, value)
    if math.isfinite(exact):
        truth = bool(rng.integers(0, 2))
        bound = value + (_APART if truth != asked.maximise[aim] else -_APART)
        if 0.0 <= bound <= asked.most[aim]:
            prop, answer = ask(asked.text(aim, bound), *others)
            yield prop, "" if answer.value is truth else f"expected {truth}: {answer}, {answer.error}"
    if rng.integers(0, 2):
        yield from _curve_judged(asked, model, ask)


def _curve_judged(asked: AskedObjectives, model: SymbolicModel, ask: Ask) -> Iterator[tuple[str, str]]:
    """Yield what is wrong about the half-spaces and points of a curve, and the chains of its schedulers."""
    texts = [asked.text(i) for i in range(asked.count)]
    prop, answer = ask(*texts, scheduler=True)
    if "no scheduler with finite memory" in (answer.error or ""):
        prop, answer = ask(*texts)
    if answer.error is not None:
        yield prop, answer.error
        return
    found = answer.several.record()
    for half_space in found["half_spaces"]:
        weights, most = half_space["weights"], half_space["most"]
        best = asked.optimum(weights)
        is_right = best - 1e-9 <= most <= best + 1e-4 * max(1.0, float(np.abs(weights).sum()))
        yield prop, "" if is_right else f"{half_space}, expected {best}"
    for place, point in enumerate(found["points"]):
        worst = [
            (i, low - _CLOSE if asked.maximise[i] else high + _CLOSE)
            for i, (low, high) in enumerate(zip(point["lower"], point["upper"], strict=True))
        ]
        feasible = asked.optimum(np.zeros(asked.count), worst) > -math.inf
        yield prop, "" if feasible else f"no scheduler reaches {point}"
        if answer.several.schedulers is not None:
            scheduler = answer.several.schedulers.schedulers[place]
            yield prop, _chain_fault(asked, Model.of(model).with_scheduler(scheduler), point)


def _demands(rng: np.random.Generator, asked: AskedObjectives, aim: int) -> list[tuple[int, float]]:
    """Return bounds on other objectives, each between the best and the worst that it may be."""
    demands = []
    for i in range(asked.count):
        sign = 1.0 if asked.maximise[i] else -1.0
        best, least = asked.best(i), -asked.optimum(-sign * np.eye(asked.count)[i])
        least = least if math.isfinite(least) else best - 5.0
        bound = sign * (best - float(rng.uniform(0.05, 0.9)) * (best - least))
        if best - least <= 1e-3 or not 0.0 <= bound <= asked.most[i]:  # it would lie on the border
            bound = 0.0 if asked.maximise[i] else min(asked.most[i], 1000.0)
        if i != aim:
            demands.append((i, bound))
    return demands


def _value_fault(answer: hybrid.Answer, value: float) -> str:
    """Return what is wrong about a value under bounds, which is infinite if no scheduler meets them."""
    if not math.isfinite(value):
        is_right = "no scheduler meets the bounds" in (answer.error or "") or "border" in (answer.error or "")
        return "" if is_right else f"no scheduler meets the bounds: {answer}, {answer.error}"
    if answer.error is not None:
        return f"{answer.error}, expected {value}"
    slack = _CLOSE * max(1.0, abs(value))
    is_right = (
        answer.lower - slack <= value <= answer.upper + slack and answer.upper - answer.lower < 10 * slack
    )
    return "" if is_right else f"{answer.lower}, {answer.upper}, expected {value}"


def _chain_fault(asked: AskedObjectives, chain: Model, point: dict[str, Any]) -> str:
    """Return which objective of a scheduler's chain is worse than its point says, or another average."""
    for i, (low, high) in enumerate(zip(point["lower"], point["upper"], strict=True)):
        found = hybrid.check(chain, asked.alone(i), epsilon=1e-10)
        is_average = asked.alone(i).endswith("[ S ]")
        is_low = found.upper < low and (is_average or asked.maximise[i])
        is_high = found.lower > high and (is_average or not asked.maximise[i])
        if is_low or is_high:
            return f"{asked.alone(i)} of the scheduler's chain is {found}, expected {low}, {high}"
    return ""
