"""Several long-run averages against schedulers without memory and their mixtures, in rational numbers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.long_run_choices import BestAverages, EndComponentAverages
from hybrid.analysis.multi import long_run
from hybrid.analysis.multi.memory import Endings, ObjectiveProduct
from hybrid.analysis.multi.weighted_sum import WeightedSumSolver
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.matrix.operators.layer_choices import RewardOf
from hybrid.matrix.space.bounded_solution import UNIT
from tests.builders.models import build_mdp
from tests.builders.random_mdps import random_mdp
from tests.exploring import rounds
from tests.oracles import optima
from tests.oracles.mdps import ExplicitMdp

Point = tuple[Fraction, ...]

SECOND = "\nrewards x=1 : 2; x=2 : 1/3; x=3 : 0.1; [a] true : 1; x=0 : 0.7; endrewards\n"
ASKED = ("R{{1}}{} [ S ]", "R{{2}}{} [ LRA ]", "S{} [ x>=1 ]")


def points(mdp: ExplicitMdp) -> list[Point]:
    """The averages of every scheduler without memory, from the initial state."""
    one, two = (list(optima.rewarded_schedulers(mdp, structure)) for structure in (0, 1))
    inside = optima.states_of(mdp, lambda v: v["x"] >= 1)
    share = [Fraction(s in inside) for s in range(len(mdp.choices))]
    (start,) = optima.states_of(mdp, lambda v: v["x"] == 0)
    return sorted(
        {
            tuple(optima.chain_averages(chain, earned)[start] for earned in (first, second, share))
            for (chain, first), (_, second) in zip(one, two, strict=True)
        }
    )


def best_under(known: Sequence[Point], aim: int, other: int, bound: Fraction) -> Fraction | None:
    """The greatest first value of a mixture whose second one is at least the bound: mixtures of two do."""
    found: list[Fraction] = [p[aim] for p in known if p[other] >= bound]
    for p in known:
        for q in known:
            if p[other] > bound > q[other]:
                share = (bound - q[other]) / (p[other] - q[other])
                found.append(share * p[aim] + (1 - share) * q[aim])
    return max(found, default=None)


class _Case:
    """A random process, which way each objective is better, and its points turned so that more is."""

    def __init__(self, rng: np.random.Generator) -> None:
        text = random_mdp(rng).replace("init true endinit", "init x=0 endinit") + SECOND
        self.model, mdp = build_mdp(text)
        self.maximise = [bool(rng.integers(0, 2)) for _ in ASKED]
        signs = [1 if up else -1 for up in self.maximise]
        self.points = [tuple(s * x for s, x in zip(signs, p, strict=True)) for p in points(mdp)]

    def value(self, i: int) -> str:
        return ASKED[i].format("max=?" if self.maximise[i] else "min=?")

    def bound(self, i: int, turned: Fraction) -> str:
        number = turned if self.maximise[i] else -turned
        relation = ">=" if self.maximise[i] else "<="
        return ASKED[i].format(f"{relation}({number.numerator}/{number.denominator})")


@pytest.mark.parametrize(("aim", "other"), [(0, 1), (1, 0), (2, 0), (1, 2)])
def test_values_under_bounds_are_those_of_mixtures(aim: int, other: int, rng: np.random.Generator) -> None:
    for _ in range(rounds(6)):
        case = _Case(rng)
        least, most = (pick(p[other] for p in case.points) for pick in (min, max))
        bound = least + Fraction(int(rng.integers(0, 9)), 8) * (most - least)
        exact = best_under(case.points, aim, other, bound)
        assert exact is not None
        answer = hybrid.check(
            case.model, f"multi({case.value(aim)}, {case.bound(other, bound)})", throw=False
        )
        if bound == most and answer.error is not None:
            assert "lie on the border" in answer.error
            continue
        exact = exact if case.maximise[aim] else -exact
        assert answer.lower <= exact <= answer.upper
        assert answer.upper - answer.lower <= 1e-5 * max(1, abs(exact))
        beyond = most + Fraction(1, 1000)
        if (beyond if case.maximise[other] else -beyond) >= 0 and (other != 2 or beyond <= 1):
            demands = f"{case.bound(aim, case.points[0][aim])}, {case.bound(other, beyond)}"
            assert hybrid.check(case.model, f"multi({demands})").value is False


@pytest.mark.parametrize("objectives", [(0, 1), (0, 2), (0, 1, 2)])
def test_points_are_reached_and_nothing_lies_beyond(
    objectives: tuple[int, ...], rng: np.random.Generator
) -> None:
    for _ in range(rounds(6)):
        case = _Case(rng)
        answer = hybrid.check(case.model, f"multi({', '.join(case.value(i) for i in objectives)})")
        record = answer.several.record()
        exact = [[p[i] if case.maximise[i] else -p[i] for i in objectives] for p in case.points]
        for half_space in record["half_spaces"]:
            weights = list(map(Fraction, half_space["weights"]))
            assert all(
                sum(w * x for w, x in zip(weights, p, strict=True)) <= half_space["most"] for p in exact
            )
        for point in record["points"]:
            assert any(
                all(low <= x <= high for low, x, high in zip(point["lower"], p, point["upper"], strict=True))
                for p in exact
            )


# lemma: half-space, entry-units, turned
def test_errors_of_sums_are_counted() -> None:
    """A tenth is less than the double next to it, and so is what is taken off for it."""
    for reward, exact in (("0.1", Fraction(1, 10)), ("1/3 + 1/3 + 1/3 - 0.9", Fraction(1, 10))):
        model = hybrid.parse(
            "mdp module m x:[0..1]; [] true -> (x'=1-x); [] true -> true; endmodule\n"
            f"rewards true : {reward}; endrewards rewards x=1 : 0.3; endrewards"
        )
        found = hybrid.check(model, "multi(R{1}min=? [ S ], R{2}max=? [ S ])").several.record()
        for half_space in found["half_spaces"]:
            cost, gain = map(Fraction, half_space["weights"])
            assert cost * exact + gain * Fraction(3, 10) <= half_space["most"] <= cost * exact + 1
        for point in found["points"]:
            assert point["lower"][0] <= exact <= point["upper"][0] <= 0.11


# Going on by [a] leads with 1/2 to a component with the averages 2 of "x" and 1 of "y", or 2 by [d].
BESIDE = """mdp
module m
 s:[0..3] init 0;
 [a] s=0 -> 0.5:(s'=1)+0.5:(s'=3);
 [b] s=0 -> (s'=3);
 [c] s=1 -> (s'=2);
 [d] s=1 -> (s'=2);
 [e] s=2 -> 0.5:(s'=1)+0.5:(s'=2);
 [e] s=3 -> true;
endmodule
rewards "x" [e] s=2 : 3; endrewards
rewards "y" [c] true : 3; [d] true : 6; s=3 : 0.5; endrewards
rewards "c" [a] true : 1; endrewards
rewards "w" [a] true : 1; endrewards
"""
FIVE = 'R{"x"}max=? [ S ], R{"y"}min=? [ S ], R{"c"}min=? [ C ], R{"w"}max=? [ C ], Pmax=? [ F s=1 ]'
GOING, STAYING = (1.0, -0.75, -1.0, 1.0, 0.5), (0.0, -0.5, 0.0, 0.0, 0.0)
OFF = 2.0**-10


WEIGHTS = [
    (1, 0, 0, 0, 0),
    (1, 1, 0, 0, 1),
    (1, 1, 3, 0, 1),
    (0, 1, 0.5, 0, 1),
    (0.5, 1, 1, 1, 1),
    (0, 1, 0, 1, 0),
]


@functools.cache
def _endings() -> Endings:
    several = hybrid.check(hybrid.parse(BESIDE), f"multi({FIVE})", pareto_epsilon=0.99).several
    assert several is not None and several.found.ends is not None
    return several.found.ends


def assert_sum_in_bounds(weights: tuple[float, ...]) -> None:
    """Check the half-space of a sum of the five objectives, and the point."""
    found = WeightedSumSolver(_endings(), CheckOptions.of(), SolveStatistics()).solve(weights)
    exact = max(float(np.dot(weights, values)) for values in (GOING, STAYING))
    assert exact <= found.most <= exact + 0.02
    other = (1.0, -1.25, -1.0, 1.0, 0.5)  # by [d] in place of [c], where that is as good
    low, high = found.point.lower, found.point.upper
    assert any((np.less_equal(low, x) & np.less_equal(x, high)).all() for x in (GOING, other, STAYING))
    assert max(np.subtract(high, low)) < 0.01


# lemma: staying
@pytest.mark.parametrize("weights", WEIGHTS)
def test_sums_allow_for_averages_that_are_not_known_better(
    weights: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    best, average = EndComponentAverages.best, long_run.average_reward

    def loose(self: EndComponentAverages, *given: Any) -> BestAverages:
        found = best(self, *given)
        return replace(found, lower=found.lower * (1.0 - OFF), upper=found.upper * (1.0 + OFF))

    def loose_average(*given: Any) -> tuple[float, float, float]:
        value, lower, upper = average(*given)
        return value, lower - OFF, upper + OFF

    monkeypatch.setattr(EndComponentAverages, "best", loose)
    monkeypatch.setattr(long_run, "average_reward", loose_average)
    assert_sum_in_bounds(weights)


# lemma: staying, entry-units
@pytest.mark.parametrize("weights", WEIGHTS)
def test_sums_allow_for_rewards_of_averages_that_are_off(
    weights: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewards of averages are too small by what they may be off by where more is better, else too great."""
    averaged, units = ObjectiveProduct.averaged, ObjectiveProduct.units

    def off(self: ObjectiveProduct, objective: int) -> RewardOf:
        earned, sign = averaged(self, objective), -1.0 if self.objectives[objective].maximise else 1.0
        return lambda layer, rows: earned(layer, rows) * (1.0 + sign * OFF)

    def units_off(self: ObjectiveProduct, objective: int) -> float:
        return 1.01 * OFF / UNIT if objective in self.averages else units(self, objective)

    monkeypatch.setattr(ObjectiveProduct, "averaged", off)
    monkeypatch.setattr(ObjectiveProduct, "units", units_off)
    assert_sum_in_bounds(weights)


def test_averages_beside_other_objectives() -> None:
    model = hybrid.parse(BESIDE)
    answer = hybrid.check(model, 'multi(R{"x"}max=? [ S ], R{"c"}<=0.75 [ C ], P>=0.125 [ F s=1 ])')
    assert answer.lower <= 0.75 <= answer.upper
    assert answer.upper - answer.lower < 1e-5
    assert hybrid.check(model, 'multi(S>=0.2 [ s=2 ], R{"c"}<=0.5 [ C ])').value is False
    assert hybrid.check(model, 'multi(S>=0.1 [ s=2 ], R{"c"}<=0.5 [ C ], P<=0.4 [ F s=1 ])').value is True
    # Where a cost is to be finite, averages are those of what costs nothing.
    costly = hybrid.parse(BESIDE.replace('"c" [a] true : 1;', '"c" [a] true : 1; [c] true : 1;'))
    answer = hybrid.check(costly, 'multi(R{"y"}min=? [ S ], R{"c"}<=2 [ C ], R{"x"}>=0.5 [ S ])')
    assert answer.lower <= 0.875 <= answer.upper < 0.8751


def test_schedulers_of_points_keep_to_the_class_of_their_averages() -> None:
    model = hybrid.parse(BESIDE)
    asked = ('R{"x"}max=? [ S ]', 'R{"y"}min=? [ S ]', "Pmax=? [ F s=1 ]")
    answer = hybrid.check(model, f"multi({', '.join(asked)})", scheduler=True)
    points = answer.several.record()["points"]
    assert len(points) >= 2
    for scheduler, point in zip(answer.several.schedulers.schedulers, points, strict=True):
        chain = model.with_scheduler(scheduler)
        for text, low, high in zip(asked, point["lower"], point["upper"], strict=True):
            found = hybrid.check(chain, text.replace("max", "").replace("min", ""), epsilon=1e-12)
            assert low <= found.value <= high or (found.lower <= high and low <= found.upper)


def test_what_takes_memory_without_end_has_no_scheduler() -> None:
    model = hybrid.parse("mdp module m x:[0..1]; [] true -> (x'=1-x); [] true -> true; endmodule")
    text = "multi(Smax=? [ x=1 ], P>=0.5 [ G F x=0 ])"
    assert hybrid.check(model, text).lower == 1.0
    with pytest.raises(hybrid.HybridError, match="no scheduler with finite memory"):
        hybrid.check(model, text, scheduler=True)
    assert hybrid.check(model, "multi(Smax=? [ x=1 ], P>=0.5 [ G F x=1 ])", scheduler=True).lower == 1.0
    assert hybrid.check(model, "multi(S>=0.25 [ x=1 ], S>=0.5 [ x=0 ])").value is True


def test_negative_rewards_are_refused() -> None:
    model = hybrid.parse("mdp module m x:[0..1]; [] true -> (x'=1-x); endmodule rewards x=1 : -1; endrewards")
    with pytest.raises(hybrid.HybridError, match="negative"):
        hybrid.check(model, "multi(R{1}max=? [ S ], P>=0.5 [ F x=1 ])")
