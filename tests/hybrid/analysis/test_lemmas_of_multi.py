"""What the numbers of several objectives rest on, lemma by lemma of docs/multi.md."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.choice_systems import ChoiceMatrices
from hybrid.analysis.multi import weighted_sum as weighing_module
from hybrid.analysis.multi.check import MultiObjectiveSolution, explore_curve
from hybrid.analysis.multi.memory import Endings, Objective, ObjectiveProduct
from hybrid.analysis.multi.queries import (
    HalfSpace,
    ObjectiveSearch,
    Proposal,
    SearchResult,
    achievable,
    greatest_value,
    meets,
    mixed,
    rational_shares,
    repaired_mixture,
)
from hybrid.analysis.multi.weighted_sum import Point, WeightedOptimum, WeightedSumSolver
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.checking.multi_objective import MultiObjectiveResult
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import ChoiceOperator
from mtbdd.language.syntax import Literal, Position

Demands = list[Fraction | None]

# ------------------------------------------------------------------ endings

# Going on by [a] costs nothing at once, and with 1/2 something for ever.
ENDLESS = """mdp
module m
 s:[0..3] init 0;
 [a] s=0 -> 0.5:(s'=1)+0.5:(s'=2);
 [b] s=0 -> (s'=3);
 [c] s=1 -> (s'=1);
 [d] s=2 -> true;
 [e] s=3 -> true;
endmodule
rewards "c" [c] true : 1; [b] true : 5; endrewards
rewards "won" [d] false : 1; [a] true : 1; endrewards
label "x" = s=2;
"""


# lemma: endings, outside
def test_choices_that_may_lead_to_endless_costs_are_left_out() -> None:
    model = hybrid.parse(ENDLESS)
    answer = hybrid.check(model, 'multi(R{"c"}min=? [ C ], P>=0 [ F "x" ])')
    assert answer.lower <= 5 <= answer.upper
    assert answer.lower > 4.9
    refused = hybrid.check(model, 'multi(R{"c"}min=? [ C ], P>=0.25 [ F "x" ])', throw=False)
    assert "no scheduler meets the bounds" in (refused.error or "")
    assert hybrid.check(model, 'multi(R{"c"}<=6 [ C ], P>=0.25 [ F "x" ])').value is False


def test_values_are_those_of_the_initial_state_wherever_it_is_numbered() -> None:
    text = ENDLESS.replace("s=3", "s=9").replace("s=0", "s=3").replace("s=9", "s=0")
    text = text.replace("init 0", "init 3").replace("(s'=3)", "(s'=0)")
    answer = hybrid.check(hybrid.parse(text), 'multi(R{"c"}min=? [ C ], P>=0 [ F "x" ])')
    assert 4.9 < answer.lower <= 5 <= answer.upper < 5.1


def test_bounds_far_beyond_all_values_are_met() -> None:
    model = hybrid.parse(ENDLESS)
    answer = hybrid.check(model, 'multi(Pmin=? [ F "x" ], R{"c"}<=1e308 [ C ])')
    assert answer.lower == 0.0
    assert hybrid.check(model, 'multi(R{"c"}<=6 [ C ], R{"won"}>=1e308 [ C ])').value is False


def test_a_least_probability_of_what_happens_again_and_again() -> None:
    model = hybrid.parse(ENDLESS.replace("0.5:(s'=1)+0.5:(s'=2)", "0.25:(s'=1)+0.75:(s'=2)"))
    answer = hybrid.check(model, 'multi(Pmin=? [ G F s=1 ], P>=0.6 [ F "x" ])')
    # To go on is needed with 4/5.
    assert answer.lower <= 0.2 <= answer.upper
    assert answer.upper - answer.lower < 1e-6


# lemma: mixture
@pytest.mark.parametrize(("most", "truth"), [("0.7", False), ("0.75", True)])
def test_bounds_on_least_probabilities(most: str, truth: bool) -> None:
    model = hybrid.parse(ENDLESS.replace("0.5:(s'=1)+0.5:(s'=2)", "0.25:(s'=1)+0.75:(s'=2)"))
    answer = hybrid.check(model, f'multi(P<={most} [ F "x" ], R{{"won"}}>=1 [ C ])')
    assert answer.value is truth


def test_costs_that_cannot_be_kept_finite_meet_no_bound() -> None:
    text = ENDLESS.replace("[b] s=0 -> (s'=3);", "[b] s=0 -> (s'=1);")
    assert hybrid.check(hybrid.parse(text), 'multi(R{"c"}<=1000 [ C ], P>=0 [ F "x" ])').value is False


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("Pmax=? [ F s=1 || F s=2 ]", "conditional probabilities are no objectives"),
        ('R{"c",discount=0.5}min=? [ C ]', "discounted rewards are no objectives"),
        ('R{"c"}min=? [ F s=2 ]', "gathered for ever"),
    ],
)
def test_what_is_no_sum_over_a_run_and_its_end_is_refused(objective: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        hybrid.check(hybrid.parse(ENDLESS), f'multi({objective}, P>=0 [ F "x" ])')


# ------------------------------------------------------------------ doubles from above and below

NUMBERS = [Fraction(n, d) * s for n, d in ((1, 3), (2, 3), (1, 10), (3, 10), (1, 7), (6, 7)) for s in (1, -1)]


@pytest.mark.parametrize("number", [*NUMBERS, Fraction(1, 2), Fraction(0), Fraction(10) ** 400, -(10**400)])
def test_numbers_lie_between_the_doubles_next_to_them(number: Fraction) -> None:
    low, high = rounded_down(Fraction(number)), rounded_up(Fraction(number))
    assert low <= number <= high
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (number in (Fraction(1, 2), 0))


# lemma: turned
@pytest.mark.parametrize("k", range(1, 10))
def test_a_least_probability_is_one_less_the_greatest_of_the_negation(k: int) -> None:
    objective = Objective("P", Literal(Position("", 1, 1), True), None, None, False, None)
    least, greatest = k / 2300, k / 2300 + 1e-17
    lower, upper = objective.shown(least, greatest)
    assert lower <= 1 - Fraction(greatest)
    assert upper >= 1 - Fraction(least)
    assert upper - lower < 1e-15


# ------------------------------------------------------------------ mixtures and half-spaces


class _Polytope:
    """Weighted sums over the corners of a set that is known, in the place of those of a model."""

    def __init__(self, corners: Sequence[tuple[float, ...]]) -> None:
        self.corners = corners

    def solve(self, weights: Sequence[float]) -> WeightedOptimum:
        def worth(corner: Sequence[float]) -> Fraction:
            return sum((Fraction(w) * Fraction(v) for w, v in zip(weights, corner, strict=True)), Fraction(0))

        best = max(self.corners, key=worth)
        point = Point(best, best, np.zeros(1, np.uint16), np.zeros(1, np.uint8))
        return WeightedOptimum(tuple(weights), rounded_up(worth(best)), point)


def _search(corners: Sequence[tuple[float, ...]], begun: bool = True) -> ObjectiveSearch:
    objectives = [Objective(f"x{i}", None, i, None, True, None) for i in range(len(corners[0]))]
    search = ObjectiveSearch(_Polytope(corners), objectives, 1e-6)  # type: ignore[arg-type]
    if begun:
        search.begin()
    return search


def _demands(*values: float | Fraction | None) -> Demands:
    return [None if v is None else Fraction(v) for v in values]


def test_what_lies_beyond_a_half_space_is_known_exactly() -> None:
    # In doubles 0.1 + 0.2 lies beyond 0.3, and 0.1 + 0.7 does not beyond 0.8.
    assert HalfSpace((1.0, 1.0), 0.3).excess(_demands(Fraction(1, 10), Fraction(2, 10))) > 0
    assert HalfSpace((1.0, 1.0), 0.8).excess(_demands(Fraction(1, 10), Fraction(7, 10))) < 0
    assert HalfSpace((1.0, 1.0), 0.5).excess(_demands(Fraction(1, 4), Fraction(1, 4))) == 0
    assert HalfSpace((0.0, 2.0), 1.0).excess(_demands(None, 1)) == 1


def test_objectives_are_measured_by_their_ranges() -> None:
    search = _known([(1.0, 8.0), (3.0, 8.0), (2.0, 8.0)])
    assert search.scale().tolist() == [2.0, 8.0]
    assert _known([(0.0, -3.0), (0.0, 1.0)]).scale().tolist() == [1.0, 4.0]


def test_shares_add_up_to_one_without_slight_ones() -> None:
    shares = rational_shares(np.array([0.1, 0.2, 1e-12, 0.7]))
    assert sum(shares.values()) == 1
    assert set(shares) == {0, 1, 3}
    assert mixed([(1.0, 0.0), (0.0, 1.0), (9.0, 9.0), (0.0, 0.0)], shares) == [shares[0], shares[1]]


def test_a_mixture_meets_demands_at_their_border_and_not_before() -> None:
    third = Fraction(1, 3)
    assert meets([third, Fraction(0)], _demands(third, None))
    assert not meets([third, Fraction(0)], _demands(third, Fraction(1, 10**30)))
    assert not meets([third - Fraction(1, 10**30)], _demands(third))


def test_a_repaired_mixture_is_told_only_if_it_meets_all_demands() -> None:
    points = [(0.25, 0.75), (0.75, 0.25), (0.75, 0.5)]
    near, safe = {0: Fraction(1)}, {2: Fraction(1)}
    assert repaired_mixture(points, near, safe, _demands(0.5, 0.5)) == {0: Fraction(1, 2), 2: Fraction(1, 2)}
    # The first demand asks for more of the other one than the second does, or the other way round.
    far, safe = [(0.25, 0.25), (0.75, 0.75)], {1: Fraction(1)}
    for demands in (_demands(0.5, 0.375), _demands(0.375, 0.5)):
        assert repaired_mixture(far, near, safe, demands) == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    # The other one misses the second demand, and so does what is joined with it.
    assert repaired_mixture(points, near, {1: Fraction(1)}, _demands(0.5, 0.625)) is None
    assert repaired_mixture(points, near, {1: Fraction(1)}, _demands(0.875, 0.125)) is None


SQUARE = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
BORDERS = [Fraction(k, 10) for k in range(1, 10)] + [Fraction(1, 3), Fraction(2, 3)]


@pytest.mark.parametrize("wanted", BORDERS)
def test_the_greatest_value_lies_between_its_bounds(wanted: Fraction) -> None:
    search = _search(SQUARE)
    found = greatest_value(search, 0, _demands(None, wanted))
    assert found.truth is True
    assert found.lower is not None and found.upper is not None
    assert found.lower <= 1 - wanted <= found.upper
    assert found.upper - found.lower < 1e-6
    reached = mixed(search.values, found.shares)
    assert reached[1] >= wanted
    assert found.lower <= reached[0]


@pytest.mark.parametrize("k", range(3, 40, 2))
def test_an_upper_bound_is_no_less_than_what_a_half_space_leaves(k: int) -> None:
    """One half-space, ``k x + y <= 1``, beside a demand of 0: x may be 1 / k, which is no double."""
    search = _search([(1 / k, 0.0), (0.0, 1.0)], begun=False)
    search.points, search.directions = [search.weighing.solve((1.0, 0.0)).point], [(1.0, 0.0)]
    search.half_spaces = [HalfSpace((float(k), 1.0), 1.0), HalfSpace((1.0, 0.0), 1.0)]
    found = greatest_value(search, 0, _demands(None, 0))
    assert found.upper is not None
    assert found.upper >= Fraction(1, k)


def test_half_spaces_of_values_without_a_demand_bound_nothing() -> None:
    search = _search([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    # The points are known less well than the half-spaces.
    search.points = [Point(tuple(0.9 * v for v in p.lower), p.upper, p.policy, p.sets) for p in search.points]
    # x + y <= 1/4 tells nothing of x where y may be less than 0.
    search.half_spaces = [HalfSpace((1.0, 1.0, 0.0), 0.25), *search.half_spaces]
    found = greatest_value(search, 0, _demands(None, None, Fraction(0)))
    assert found.lower is not None and found.upper is not None
    assert found.lower <= 0.9
    assert found.upper >= 1


def test_demands_beyond_a_half_space_are_met_by_no_scheduler() -> None:
    search = _search(SQUARE)
    search.half_spaces.append(HalfSpace((1.0, 1.0), 1.0))
    beyond, border = Fraction(1, 2) + Fraction(1, 10**30), Fraction(1, 2)
    assert achievable(search, _demands(border, beyond)).truth is False
    found = achievable(_search(SQUARE), _demands(border, border))
    assert found.truth is True
    assert meets(mixed(SQUARE[1:] + SQUARE[:1], found.shares), _demands(border, border)) or found.shares
    # A half-space about what nobody has asked for refuses nothing.
    assert achievable(_search(SQUARE), _demands(border, None)).truth is True


def test_demands_that_every_point_meets_leave_room_for_the_others() -> None:
    """No mixture exceeds a third value of 0, which must not make one pass that meets others by rounding."""
    for wanted in (0.85, 0.8, 0.7, 0.5, 0.35):
        search = _search([(0.9, 0.3, 0.0), (0.3, 0.9, 0.0)])
        assert achievable(search, _demands(wanted, 1.2 - wanted - 0.01, 0)).truth is True


def test_mixtures_that_are_proposed_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linear program that errs by a little makes no bound be met."""
    from hybrid.analysis.multi import queries

    short = Proposal(0.0, np.array([0.5 - 1e-8, 0.5 + 1e-8]), np.zeros(2))
    monkeypatch.setattr(queries, "widest_margin", lambda *_: short)
    search = _search([(1.0, 0.0), (0.0, 1.0)])
    search.half_spaces.append(HalfSpace((1.0, 1.0), 1.0))
    assert achievable(search, _demands(0.5, 0.25)).truth is None
    assert achievable(search, _demands(0.25, 0.5)).truth is True
    # On the border of a half-space, which does not refuse it.
    assert achievable(search, _demands(0.5, 0.5)).truth is None


def test_a_value_comes_with_a_mixture_that_meets_the_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proposed for the best value misses the demand by an error of rounding, and is repaired."""
    from hybrid.analysis.multi import queries

    short = Proposal(0.0, np.array([0.5 + 1e-8, 0.5 - 1e-8]), np.zeros(2))
    monkeypatch.setattr(queries, "best_value", lambda *_: short)
    search = _search([(1.0, 0.0), (0.0, 1.0)])
    found = greatest_value(search, 0, _demands(None, 0.5))
    assert found.lower is not None
    assert found.lower <= 0.5
    assert mixed(search.values, found.shares)[1] >= Fraction(1, 2)
    # Where the widest margin errs, too, the mixture that was confirmed is taken.
    widest = queries.widest_margin
    calls: list[int] = []

    def errs(*arguments: Any) -> Proposal:
        calls.append(1)
        return widest(*arguments) if len(calls) == 1 else short

    monkeypatch.setattr(queries, "widest_margin", errs)
    found = greatest_value(search, 0, _demands(None, 0.5))
    assert len(calls) > 1
    assert mixed(search.values, found.shares)[1] >= Fraction(1, 2)


# ------------------------------------------------------------------ curves


Plane = tuple[float, float, float]


def _known(points: Sequence[tuple[float, float]], *half_spaces: Plane) -> ObjectiveSearch:
    """Return what is known: points, and half-spaces by their weights and bounds."""
    search = _search(SQUARE, begun=False)
    search.points = [Point(p, p, np.zeros(1, np.uint16), np.zeros(1, np.uint8)) for p in points]
    search.directions = [(1.0, 1.0)] * len(points)
    search.half_spaces = [HalfSpace((a, b), c) for a, b, c in half_spaces]
    return search


# lemma: corners
@pytest.mark.parametrize("more", [(), ((1.0, 2.0, 5.0),), ((2.0, 1.0, 1.5), (1.0, 1.0, 7.0))])
def test_corners_and_their_distances_are_exact(more: tuple[Plane, ...]) -> None:
    """``x + 2 y <= 1`` and ``2 x + y <= 1`` meet where both are 1 / 3; other half-spaces lie outside."""
    third = Fraction(1, 3)
    for half_spaces in (((1.0, 2.0, 1.0), (2.0, 1.0, 1.0), *more), (*more, (1.0, 2.0, 1.0), (2.0, 1.0, 1.0))):
        curve = explore_curve(_known([(0.0, 0.0)], *half_spaces), 10.0)
        assert curve.certified
        assert curve.corners == ((third, third),)
        assert all(third <= d <= math.nextafter(1 / 3, 1) for d in curve.distances)
        assert third <= curve.reached <= math.nextafter(1 / 3, 1)


def test_distances_are_those_of_the_farthest_corner() -> None:
    search = _known([(0.0, 0.0)], (1.0, 0.0, 0.5), (1.0, 1.0, 0.75), (0.0, 1.0, 0.5))
    curve = explore_curve(search, 10.0)
    assert curve.corners == ((0.5, 0.25), (0.25, 0.5))
    assert curve.distances == (0.5, 0.5)


def test_a_curve_is_explored_until_corners_are_close() -> None:
    search = _search([(1.0, 0.0), (0.75, 0.5), (0.5, 0.75), (0.0, 1.0)])
    curve = explore_curve(search, 1e-6)
    assert curve.reached <= 1e-6
    assert set(search.values) == {(1.0, 0.0), (0.75, 0.5), (0.5, 0.75), (0.0, 1.0)}
    corners = np.array(curve.corners, np.float64)
    np.testing.assert_allclose(corners, [(1.0, 0.0), (0.75, 0.5), (0.5, 0.75), (0.0, 1.0)], atol=1e-12)


@pytest.mark.parametrize("k", range(1, 10))
def test_half_spaces_of_least_probabilities_are_told_rounded_up(k: int) -> None:
    """Of a least probability the weight is taken off the bound, since one less it was maximised."""
    search = _search(SQUARE, begun=False)
    search.half_spaces = [HalfSpace((0.01 * k, 1.0), 0.77)]
    objectives = [Objective("P", Literal(Position("", 1, 1), True), None, None, False, None)]
    objectives.append(Objective("R", None, 0, None, True, None))
    record = MultiObjectiveResult(MultiObjectiveSolution(objectives, SearchResult(search)), None).record()
    (told,) = record["half_spaces"]
    assert told["weights"] == [-0.01 * k, 1.0]
    assert told["most"] >= Fraction(0.77) - Fraction(0.01 * k)
    assert told["most"] < 0.77 - 0.01 * k + 1e-15


# ------------------------------------------------------------------ weighted sums

# Ten tenths, which add up to less than 1 in doubles, and a cost of one half on the way.
TENTHS = """mdp
module m
 s:[0..10];
 [go] s<10 -> (s'=s+1);
 [slow] s=0 -> 0.5:(s'=0)+0.5:(s'=1);
 [end] s=10 -> true;
endmodule
rewards "a" [go] true : 0.1; endrewards
rewards "b" [go] s=1 : 0.5; endrewards
"""
OFF = 2.0**-20  # relative errors that are easily seen


@functools.cache
def _endings(text: str, multi: str) -> Endings:
    several = hybrid.check(hybrid.parse(text), f"multi({multi})").several
    assert several is not None and several.found.ends is not None
    return several.found.ends


def _weighing(text: str = TENTHS, multi: str = 'R{"a"}max=? [ C ], R{"b"}min=? [ C ]') -> WeightedSumSolver:
    """Return what solves the sums of a model's objectives, none of which has been solved."""
    return WeightedSumSolver(_endings(text, multi), CheckOptions.of(), SolveStatistics())


@pytest.fixture
def fresh() -> WeightedSumSolver:
    return _weighing()


class _Careless:
    """An operator with a slack and an underflow of its own, each step of which loses something."""

    def __init__(self, system: ChoiceOperator, slack: float, underflow: float, lost: float) -> None:
        self._system, self.slack, self.underflow, self._lost = system, slack, underflow, lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def improve(self, x: Any, out: Any) -> None:
        self._system.improve(x, out)
        out -= self._lost


def _careless(monkeypatch: pytest.MonkeyPatch, slack: float, underflow: float, lost: float) -> None:
    """Make the next operator of a sum lose something in every step."""
    make: Callable[..., ChoiceOperator] = ChoiceMatrices.system
    made: list[_Careless] = []

    def careless(*arguments: Any, **more: Any) -> Any:
        system = make(*arguments, **more)
        if made:
            return system
        made.append(_Careless(system, slack, underflow, lost))
        return made[0]

    monkeypatch.setattr(ChoiceMatrices, "system", careless)


# Above all, values are at most 1, and gains and costs of a choice at most 0.6.
@pytest.mark.parametrize(
    ("slack", "underflow", "lost"), [(0.0, 0.0, 0.0), (OFF, 0.0, 1.6 * OFF), (0.0, OFF, OFF)]
)
def test_iterates_from_above_stay_above_whatever_a_step_loses(
    fresh: WeightedSumSolver, monkeypatch: pytest.MonkeyPatch, slack: float, underflow: float, lost: float
) -> None:
    _careless(monkeypatch, slack, underflow, lost)
    assert 0.5 <= fresh.solve((1.0, 1.0)).most < 0.51


def test_iterates_from_above_cover_the_products_with_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times 0.1, the weight of a gain that is exact, add up to less in doubles."""
    fresh = _weighing(TENTHS.replace(": 0.1", ": 1"))
    _careless(monkeypatch, 0.0, 0.0, 0.0)
    exact = 10 * Fraction(0.1) - Fraction(1, 2)
    assert exact <= fresh.solve((0.1, 1.0)).most < 0.51


# lemma: half-space, from-above, point
@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize(
    ("weights", "exact"),
    [((1.0, 0.0), 1.0), ((0.0, 1.0), -0.5), ((1.0, 1.0), 0.5), ((1.0, 2.0**-30), 1.0 - 2.0**-31)],
)
def test_bounds_allow_for_rewards_that_are_off(
    fresh: WeightedSumSolver,
    monkeypatch: pytest.MonkeyPatch,
    direction: int,
    weights: tuple[float, float],
    exact: float,
) -> None:
    """Gains and costs that are off by their units change no bound for the worse."""
    earned = ObjectiveProduct.earned
    sign = {0: direction, 1: -direction}  # gains too small and costs too great, or the other way round

    def off(self: ObjectiveProduct, objective: int, *rest: Any) -> Any:
        return earned(self, objective, *rest) * (1.0 + sign[objective] * OFF)

    monkeypatch.setattr(ObjectiveProduct, "earned", off)
    monkeypatch.setattr(ObjectiveProduct, "units", lambda *_: 1.01 * OFF / UNIT)
    found = fresh.solve(weights)
    assert exact <= found.most <= exact + 0.001
    point = found.point
    if weights[0]:
        assert point.lower[0] <= 1.0 <= point.upper[0]
    assert point.lower[1] <= -0.5 <= point.upper[1]
    assert point.upper[1] - point.lower[1] < 1e-5
    assert fresh.schedulers.cost(1, fresh.schedulers.default) >= 0.5


@pytest.mark.parametrize("weight", [0.1 * k for k in range(1, 10)])
@pytest.mark.parametrize("maximise", [True, False])
def test_a_half_space_covers_the_products_with_its_weights(
    weight: float, maximise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solution of the sum as doubles have it: what it is of is off by the roundings of its gains."""
    text = TENTHS.replace("0.1;", "3;").replace(": 0.5", ": 3")
    fresh = _weighing(text)
    exact = Fraction(weight) * (30 if maximise else 3)
    nearest = float(exact)
    # The doubles on either side of the exact value are as good a solution in double precision.
    for value in (nearest, math.nextafter(nearest, 0.0), math.nextafter(nearest, math.inf)):

        def solved(system: ChoiceOperator, *_: Any, value: float = value) -> StateValues:
            return StateValues.exact(np.full(system.size, value))

        monkeypatch.setattr(weighing_module, "solve_choices", solved)
        most = fresh.solve((weight, 0.0) if maximise else (0.0, weight)).most
        assert most >= (exact if maximise else -exact)
        assert most <= float(exact if maximise else -exact) + 1e-12


SURE = """mdp
module m
 s:[0..3];
 [a] s=0 -> 1/3:(s'=1) + 1/3:(s'=2) + 1/3:(s'=3);
 [b] s=0 -> (s'=1);
 [c] s>0 -> true;
endmodule
rewards "c" [a] true : 1; [b] true : 1; endrewards
"""
THREE = 'Pmax=? [ F s=1 ], Pmax=? [ F s>0 ], R{"c"}min=? [ C ]'


@pytest.mark.parametrize("weights", [(0.1, 0.2, 0.0), (0.3, 0.4, 0.0), (0.7, 0.1, 0.0), (0.1, 0.7, 0.0)])
def test_what_is_known_of_probabilities_beforehand_is_no_less_than_their_weights(
    weights: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are sure by one choice, so that the sum of the weights is attained."""
    weighing, known = _weighing(SURE, THREE), []
    solve = weighing_module.solve_choices

    def noted(system: ChoiceOperator, upper_bound: float | None, *rest: Any) -> StateValues:
        known.append(upper_bound)
        return solve(system, upper_bound, *rest)

    monkeypatch.setattr(weighing_module, "solve_choices", noted)
    exact = Fraction(weights[0]) + Fraction(weights[1])
    assert weighing.solve(weights).most >= exact
    assert known[0] is not None
    assert exact <= known[0] <= float(exact) + 1e-14


@pytest.mark.parametrize("k", range(1, 12))
def test_what_is_missed_is_taken_off_exactly(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weighing, weights = _weighing(SURE, THREE), (0.1 * k, 0.3, 1e-3)
    missed = 0.07 * k

    def solved(system: ChoiceOperator, *_: Any) -> StateValues:
        return StateValues.exact(np.full(system.size, missed))

    monkeypatch.setattr(weighing_module, "solve_choices", solved)
    monkeypatch.setattr(weighing_module, "scaled_bounds", lambda found, _: found)
    most = weighing.solve(weights).most
    exact = Fraction(weights[0]) + Fraction(weights[1]) - Fraction(missed)
    assert exact <= most <= float(exact) + 1e-15


def test_sums_of_many_bounds_begin_above_their_exact_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each gain is at most, added up in doubles, may be less than the sum."""
    multi = 'R{"a"}max=? [ C ], R{"a2"}max=? [ C ], R{"a3"}max=? [ C ], R{"b"}min=? [ C ]'
    more = "".join(f'rewards "a{i}" [go] true : 0.1; endrewards\n' for i in (2, 3))
    weighing = _weighing(TENTHS + more, multi)
    first: list[float] = []
    make = ChoiceMatrices.system

    class Noting(_Careless):
        def improve(self, x: Any, out: Any) -> None:
            first.append(float(x.max()))
            super().improve(x, out)

    made: list[Noting] = []

    def noting(*arguments: Any, **more: Any) -> Any:
        system = make(*arguments, **more)
        if made:
            return system
        made.append(Noting(system, 0.0, 0.0, 0.0))
        return made[0]

    monkeypatch.setattr(ChoiceMatrices, "system", noting)
    for weights in ((0.1, 0.1, 0.1, 1.0), (0.1, 0.2, 0.4, 1.0), (0.7, 0.1, 0.3, 1.0), (0.3, 0.6, 0.9, 1.0)):
        made.clear()
        first.clear()
        monkeypatch.setattr(WeightedSumSolver, "_bound", lambda self, _: np.full(self._ends.pairs.size, 1.1))
        weighing.solve(weights)
        assert first[0] >= sum(map(Fraction, weights[:3])) * Fraction(1.1)


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.6, 0.7, 0.9])
def test_iterates_are_cut_where_no_optimum_is(
    fresh: WeightedSumSolver, monkeypatch: pytest.MonkeyPatch, weight: float
) -> None:
    """Steps that lose everything show where they are cut: below what any scheduler pays at most."""
    _careless(monkeypatch, 0.0, 0.0, math.inf)
    cost = 0.3
    monkeypatch.setattr(type(fresh.schedulers), "cost", lambda *_: cost)
    most = fresh.solve((1e-6, weight)).most
    assert most <= -Fraction(weight) * Fraction(cost)
    assert most > -10.0


WAITING = """mdp
module m
 s:[0..1];
 [wait] s=0 -> true;
 [go] s=0 -> (s'=1);
 [end] s=1 -> true;
endmodule
rewards "b" [wait] true : 0.25; [go] true : 0.5; endrewards
"""


def test_policies_that_stay_for_ever_are_completed() -> None:
    weighing = _weighing(WAITING, 'R{"b"}min=? [ C ], Pmax=? [ F s=1 ]')
    schedulers, ends = weighing.schedulers, weighing._ends
    costs = [schedulers.earned(0, layer) for layer in range(schedulers.stop)]
    (wait,) = (i for i, own in enumerate(costs) if own is not None and own.max() == 0.25)
    policy = schedulers.default.copy()
    place = ends.initial
    policy[place] = wait
    completed = schedulers.completed(policy, ends.components([0]))
    assert completed[place] not in (wait, schedulers.stop)
    point = schedulers.evaluated(completed, np.zeros(policy.size, np.int64))
    assert point.lower[0] <= -0.5 <= point.upper[0]
    assert point.lower[1] == 1.0
