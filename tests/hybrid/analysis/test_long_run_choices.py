"""Long-run averages of decision processes: cases by hand, what they rest on, schedulers, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import use_device
from hybrid.analysis import long_run_choices
from hybrid.analysis.exact import averages
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.state_values import StateValues
from hybrid.solvers import component_averages
from tests.builders.mdp_texts import PAIRS
from tests.exploring import each, pairs
from tests.gpu_kernels.host_device import HostDevice

# Components that are worth leaving, or passed through, on the way to a better one that is surely reached.
WAY = """mdp module m x:[0..6];
  [go] x=0 -> 0.5:(x'=0)+0.5:(x'=1); [stay] x=0 -> (x'=2);
  [] x=2 -> (x'=0);
  [on] x=1 -> 0.2:(x'=4)+0.8:(x'=1); [back] x=1 -> (x'=0);
  [a] x=4 -> (x'=5); [] x=5 -> (x'=4); [rest] x=4 -> (x'=6); [] x=6 -> (x'=6); [away] x=6 -> (x'=0);
endmodule rewards x=0 : 2; x=6 : 4; x=5 : 7; [away] true : 90; endrewards"""
KNOWN: dict[str, Fraction | bool] = {
    'Smax=? [ "up" ]': Fraction(28, 39),  # a half of 10/13 and of 2/3
    'Smin=? [ "up" ]': Fraction(1, 2),
    "LRAmin=? [ x=1 ]": Fraction(0),
    'R{"r"}max=? [ S ]': Fraction(293, 195),  # a half of (1 + 3 * 10/3) / (13/3), and of 0.7 * 2/3
    'R{"r"}min=? [ LRA ]': Fraction(7, 20),
    'LRAmax>=28/39 [ "up" ]': True,
    'LRAmax>28/39 [ "up" ]': False,
    'S<=0.7 [ "up" ]': False,
    'filter(max, Smax=? [ "up" ])': Fraction(10, 13),
    'filter(count, Smax>0.7 [ "up" ])': Fraction(3),
    'Pmin=? [ F Smax<0.7 [ "up" ] ]': Fraction(1, 2),
    'Smax=? [ "up" ] - Smin=? [ "up" ]': Fraction(17, 78),
}


OTHER_WAYS: list[dict[str, Any]] = [{"engine": "explicit"}, {"method": "interval"}, {"exact": True}]


@pytest.mark.parametrize(("prop", "options"), [*each(KNOWN, [{}]), *each(KNOWN, OTHER_WAYS)])
def test_values_by_hand(prop: str, options: dict[str, Any]) -> None:
    assert_as_by_hand(prop, options)


ON_DEVICE: list[dict[str, Any]] = [{"backend": "gpu"}, {"backend": "gpu", "engine": "explicit"}]


@pytest.mark.parametrize(("prop", "options"), each(KNOWN, ON_DEVICE))
def test_values_by_hand_on_a_device(prop: str, options: dict[str, Any]) -> None:
    with use_device(HostDevice()):
        answer = assert_as_by_hand(prop, options)
    assert answer.statistics.backend == "gpu"


def assert_as_by_hand(prop: str, options: dict[str, Any]) -> hybrid.Answer:
    answer, right = hybrid.check(hybrid.parse(PAIRS), prop, **options), KNOWN[prop]
    if isinstance(right, bool):
        assert answer.value is right
        return answer
    assert answer.lower <= right <= answer.upper
    assert answer.upper - answer.lower <= 1e-6
    if options.get("exact") and "filter" not in prop and " - " not in prop:
        assert answer.exact == right
    return answer


@pytest.mark.parametrize("text", [PAIRS, WAY], ids=["pairs", "way"])
@pytest.mark.parametrize("place", [0, -1], ids=["first", "last"])
def test_exact_policies_are_improved_from_any_first_one(
    place: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.parse(text)
    for prop in ("Smax=? [ x=2 ]", "Smin=? [ x>=2 ]", "Rmax=? [ S ]", "Rmin=? [ S ]"):
        found = hybrid.check(model, f"filter(sum, {prop})", exact=True).exact
        with monkeypatch.context() as patch:
            patch.setattr(averages, "_approximate", lambda choices, _: [place % len(own) for own in choices])
            assert hybrid.check(model, f"filter(sum, {prop})", exact=True).exact == found
        bounded = hybrid.check(model, f"filter(sum, {prop})")
        assert bounded.lower <= found <= bounded.upper


def test_what_the_graph_tells_is_exact() -> None:
    model = hybrid.parse(PAIRS)
    for prop, right in {
        "Smax=? [ x>0 ]": 1.0, "Smin=? [ x>0 ]": 1.0, "Smax=? [ x=0 ]": 0.0, "LRAmin=? [ x=1 | x=2 ]": 0.0,
        "filter(max, LRAmax=? [ x=1 | x=2 ])": 1.0,
    }.items():  # fmt: skip
        answer = hybrid.check(model, prop)
        assert (answer.lower, answer.value, answer.upper) == (right,) * 3, prop


CHAINS = {
    "turning": "[] x=0 -> (x'=1); [] x=1 -> (x'=2); [] x=2 -> 0.25:(x'=0)+0.75:(x'=1);",
    "two classes": """[] x=0 -> 0.25:(x'=1)+0.75:(x'=2);
        [] x=1 -> (x'=3); [] x=3 -> 0.1:(x'=1)+0.9:(x'=3); [] x=2 -> true;""",
}


@pytest.mark.parametrize("options", [{}, {"engine": "explicit"}, {"exact": True}], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_as_a_process_has_the_chain_s_averages(name: str, options: dict[str, Any]) -> None:
    text = f"module m x:[0..3];\n{CHAINS[name]}\nendmodule rewards x=1 : 5; [] x=3 : 2; endrewards"
    chain, process = (hybrid.parse(f"{kind}\n{text}") for kind in ("dtmc", "mdp"))
    for of_chain, of_process in (("S=? [ x=1 ]", "S{}=? [ x=1 ]"), ("R=? [ S ]", "R{}=? [ LRA ]")):
        found = hybrid.check(chain, of_chain, **options)
        for word in ("min", "max"):
            answer = hybrid.check(process, of_process.format(word), **options)
            np.testing.assert_allclose(answer.values, found.values, atol=1e-7)
            assert answer.exact == found.exact


@pytest.mark.parametrize("options", [{}, ON_DEVICE[0]], ids=str)
@pytest.mark.parametrize(
    "prop", ['Smax=? [ "up" ]', 'Smin=? [ "up" ]', 'R{"r"}max=? [ S ]', 'R{"r"}min=? [ S ]']
)
def test_the_chain_of_a_scheduler_has_its_average(prop: str, options: dict[str, Any]) -> None:
    model = hybrid.parse(PAIRS)
    with use_device(HostDevice()):
        answer = hybrid.check(model, prop, scheduler=True, **options)
    chain = model.with_scheduler(answer.scheduler)
    found = hybrid.check(chain, prop.replace("min", "").replace("max", ""), exact=True)
    assert answer.lower <= found.exact <= answer.upper


@pytest.mark.parametrize(
    ("prop", "right"), [("Rmax=? [ S ]", None), ("Rmin=? [ S ]", None), ("Smax=? [ x=6 ]", 1)]
)
def test_schedulers_leave_components_for_better_ones(prop: str, right: int | None) -> None:
    model = hybrid.parse(WAY)
    exact = hybrid.check(model, prop, exact=True).exact
    answer = hybrid.check(model, prop, scheduler=True)
    assert answer.lower <= exact <= answer.upper and right in (None, exact)
    chain = model.with_scheduler(answer.scheduler)
    found = hybrid.check(chain, prop.replace("min", "").replace("max", ""), exact=True)
    assert answer.lower <= found.exact <= answer.upper


def lowered(text: str, by: str) -> str:
    """The text of a process whose choices all earn so much less."""
    return text.replace("x=2 : 3;", f"x=2 : 3; true : -{by};").replace("x=0 : 2;", f"x=0 : 2; true : -{by};")


BELOW: list[dict[str, Any]] = [
    {}, {"engine": "explicit"}, {"method": "interval"}, {"absolute": True}, {"ranks": 2}, {"exact": True},
    *ON_DEVICE,
]  # fmt: skip


# lemma: averages-below-zero
@pytest.mark.parametrize(("text", "by", "options"), pairs((PAIRS, WAY), ("1/3", "9"), BELOW))
def test_averages_are_less_by_what_rewards_are_less_by(text: str, by: str, options: dict[str, Any]) -> None:
    model, other = hybrid.parse(text), hybrid.parse(lowered(text, by))
    for prop in ("Rmax=? [ S ]", "Rmin=? [ LRA ]"):
        right = hybrid.check(model, prop, exact=True).exact - Fraction(by)
        with use_device(HostDevice()):
            answer = hybrid.check(other, prop, **options)
        assert answer.lower <= right <= answer.upper
        assert answer.upper - answer.lower <= 1e-6 * float(1 + abs(right))
        if options.get("exact"):
            assert answer.exact == right
        if not options:
            word, edge = prop[:4], math.nextafter(answer.upper, math.inf)
            assert hybrid.check(other, f"{word}<={edge!r} [ S ]").value is True
            assert hybrid.check(other, f"{word}<{float(right) - 1e-3!r} [ S ]").value is False
            found = hybrid.check(other, prop, scheduler=True)
            chain = other.with_scheduler(found.scheduler)
            own = hybrid.check(chain, "R=? [ S ]", exact=True).exact
            assert found.lower <= own <= found.upper


@pytest.mark.parametrize("ask", ["min", "max"])
def test_bounds_on_both_sides_of_an_average_of_zero_have_no_relative_width(ask: str) -> None:
    """The warning of a division by zero would be an error."""
    text = """mdp module m s : [0..2] init 0;
    [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2); [a] s=1 -> (s'=0); [b] s=1 -> (s'=0); [] s=2 -> (s'=0); endmodule
    rewards "r" s=1 : 1; s=2 : -1; endrewards"""
    found = hybrid.check(hybrid.parse(text), f'R{{"r"}}{ask}=? [ S ]', backend="cpu")
    assert -1e-9 < found.lower <= 0 <= found.upper < 1e-9


def test_what_the_graph_tells_of_rewards_below_zero_is_exact() -> None:
    model = hybrid.parse(
        """mdp module m x:[0..1]; [] x=0 -> true; [] x=0 -> (x'=1); [] x=1 -> true; endmodule
        rewards x=0 : -0.3; x=1 : -0.7; endrewards"""
    )
    for prop, right in {"Rmax=? [ S ]": -0.3, "Rmin=? [ S ]": -0.7}.items():
        answer = hybrid.check(model, prop)
        assert (answer.value, answer.lower <= right <= answer.upper) == (right, True)
        assert answer.upper - answer.lower <= 1e-15


@pytest.mark.parametrize("prop", ['R{"a"}/{"b"}max=? [ S ]', 'multi(R{"a"}max=? [ S ], R{"b"}<=2 [ S ])'])
def test_ratios_and_several_objectives_refuse_rewards_below_zero(prop: str) -> None:
    model = hybrid.parse(
        """mdp module m x:[0..1]; [] true -> (x'=1-x); endmodule
        rewards "a" x=0 : -1; endrewards rewards "b" true : 1; endrewards"""
    )
    with pytest.raises(hybrid.HybridError, match="ask for an average alone, or add a number to the rewards"):
        hybrid.check(model, prop)


def test_rewards_further_apart_than_doubles_are_refused() -> None:
    model = hybrid.parse(
        """mdp module m x:[0..1]; [] true -> (x'=1-x); endmodule
        rewards x=0 : -1.5e308; x=1 : 1e308; endrewards"""
    )
    with pytest.raises(hybrid.HybridError, match="less than 1.79e308"):
        hybrid.check(model, "Rmax=? [ S ]")


# lemma: averages-below-zero
@pytest.mark.parametrize("word", ["min", "max"])
def test_what_is_lost_by_adding_to_rewards_is_taken_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Averages of what is really earned are told: their bounds are off by rounding alone."""

    def told(self: Any, operator: Any, component: Any, least: Any, *_: Any) -> Any:
        gains = operator.zeros()
        operator.improve(operator.zeros(), gains)
        mean = float(gains.mean())  # of two states in turn
        assert mean == sum(map(Fraction, gains.tolist())) / 2
        bounds = np.full(1, mean)
        return SimpleNamespace(lower=bounds, upper=bounds, bias=gains)

    monkeypatch.setattr(long_run_choices.EndComponentAverages, "_iterated", told)
    rng = np.random.default_rng(5)
    for _ in range(20):
        low, high = -float(rng.random()), float(rng.random() * 10.0 ** rng.integers(-3, 4))
        model = hybrid.parse(
            f"""mdp module m x:[0..1]; [] true -> (x'=1-x); endmodule
            rewards x=0 : {low!r}; x=1 : {high!r}; endrewards"""
        )
        ends = long_run_choices.EndComponentAverages(model, CheckOptions.of(), SolveStatistics())
        best = ends.best(long_run_choices.rewards_of_choices(model, 0), word == "max", False)
        assert best.lower[0] <= (Fraction(low) + Fraction(high)) / 2 <= best.upper[0]
        assert best.upper[0] - best.lower[0] <= 1e-14 * max(high, 1.0)


# lemma: averages-below-zero
@pytest.mark.parametrize("word", ["min", "max"])
def test_what_is_lost_on_the_way_to_components_is_taken_off(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each state is worth what its component is told to have: bounds are off by rounding alone."""
    model = hybrid.parse(
        """mdp module m x:[0..2]; [] x=0 -> 0.5:(x'=1)+0.5:(x'=2); [] x>0 -> true; endmodule
        init x>0 endinit rewards true : 1; endrewards"""
    )
    averages = long_run_choices.EndComponentAverages(model, CheckOptions.of(), SolveStatistics())
    ends = averages.ends
    rng = np.random.default_rng(5)

    given = None

    def told(self: Any, bounds: Any, top: Any, sure: Any, end: float, is_safe: bool) -> StateValues:
        worth = np.where(model.indicator(sure), end, ends.spread(bounds, 0.0))
        assert worth.min() >= 0.0
        return StateValues.exact(worth if given is None else np.full(worth.size, given))

    monkeypatch.setattr(long_run_choices._Averages, "_solved", told)
    alike = averages.best(lambda _, rows: np.ones(rows.size), True, False)
    nothing, every = model.manager.false, model.reachable
    for k in range(40):
        numbers = rng.uniform(-1.0, 1.0, 2) * 10.0 ** rng.integers(-6, 6, 2)
        lower, upper = (numbers, numbers) if k % 2 else (numbers - 0.25 * abs(numbers), numbers)
        best = replace(alike, lower=lower, upper=upper)
        own = long_run_choices._Averages(best, word == "max", CheckOptions.of(), SolveStatistics(), None)
        least, highest = lower.min(), upper.max()
        given = None
        found = own._between(nothing, nothing, highest, least, highest)
        assert (found.lower <= ends.spread(lower, 0.0)).all()
        assert (found.upper >= ends.spread(upper, 0.0)).all()
        found = own._between(every, every, highest, least, highest)
        assert (found.lower <= highest).all() and (found.upper >= highest).all()
        given = float(rng.random())
        right = Fraction(given) + min(Fraction(least), 0)
        found = own._between(nothing, nothing, highest, least, highest)
        assert Fraction(found.lower[0]) <= right <= Fraction(found.upper[0])


# States of a component in several parts, components of one state, parts without any, and ways that meet.
@pytest.mark.parametrize(
    ("ranks", "text", "options"),
    each(
        [(2, PAIRS), (3, WAY), (5, PAIRS)], [{}, {"method": "interval"}, {"method": "jacobi"}, ON_DEVICE[0]]
    ),
)
def test_averages_in_parts(ranks: int, text: str, options: dict[str, Any]) -> None:
    model = hybrid.parse(text)
    for prop in ("Smax=? [ x=2 ]", "Smin=? [ x>=2 ]", "Rmax=? [ S ]", "filter(sum, Rmin=? [ LRA ])"):
        right = hybrid.check(model, prop, exact=True).exact
        with use_device(HostDevice()):
            answer = hybrid.check(model, prop, ranks=ranks, **options)
        if options.get("method") == "jacobi":
            assert answer.lower is None and answer.value == pytest.approx(float(right), abs=1e-6)
        else:
            assert answer.lower <= right <= answer.upper <= answer.lower + 1e-6, prop


QUEUE = """mdp module queue x : [0..{most}]; fast : bool init false;
  [] true -> 0.4:(x'=min(x+1, {most}))&(fast'=false) + 0.6:(x'=max(x-1, 0))&(fast'=false);
  [] true -> 0.4:(x'=min(x+1, {most}))&(fast'=true) + 0.6:(x'=max(x-2, 0))&(fast'=true);
endmodule rewards true : x; fast : 1; endrewards"""


@pytest.mark.parametrize("word", ["min", "max"])
@pytest.mark.parametrize("most", [100, 900])
def test_policies_of_long_queues_are_held_at_states_that_are_visited(most: int, word: str) -> None:
    """A full queue is seen once in 10^80 steps or so: times until then have no digits."""
    model = hybrid.parse(QUEUE.format(most=most))
    right = hybrid.check(hybrid.parse(QUEUE.format(most=60)), f"R{word}=? [ S ]", exact=True).exact
    answer = hybrid.check(model, f"R{word}=? [ S ]", backend="reference")
    assert answer.lower - 1e-6 <= right <= answer.upper + 1e-6
    assert answer.upper - answer.lower <= 1e-6
    assert answer.statistics.iterations <= 150


def test_other_places_are_refused_by_name() -> None:
    model = hybrid.parse(PAIRS)
    for prop in ('R{"r"}/{"r"}max=? [ S ]', 'multi(R{"r"}max=? [ S ], Smax=? [ "up" ])'):
        with pytest.raises(
            hybrid.HybridError, match="not found in parts by this version: choose one process"
        ):
            hybrid.check(model, prop, ranks=2)


def test_a_device_that_nobody_asked_for_is_left_alone() -> None:
    model = hybrid.parse(PAIRS)
    with use_device(HostDevice()):
        answer = hybrid.check(model, 'Smax=? [ "up" ]')
    assert answer.lower <= Fraction(28, 39) <= answer.upper
    assert answer.statistics.backend == "cpu"


# ------------------------------------------------------------------ what bounds rest on


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Value iteration alone, so that averages have bounds as wide as epsilon allows for."""
    monkeypatch.setattr(component_averages, "CHEAP_ROWS", -1)
    monkeypatch.setattr(component_averages, "nanoseconds_to_write", lambda *_: float("inf"))


SLOW = """mdp module m x:[0..5];
  [] x=0 -> 0.3:(x'=1)+0.7:(x'=3); [] x=0 -> 0.5:(x'=1)+0.5:(x'=3);
  [] x=1 -> 0.01:(x'=2)+0.99:(x'=1); [] x=2 -> 0.03:(x'=1)+0.97:(x'=2);
  [] x=3 -> 0.02:(x'=4)+0.98:(x'=3); [] x=4 -> 0.01:(x'=3)+0.99:(x'=4);
endmodule rewards {rewards} endrewards"""


# lemma: end-component-averages
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("word", ["min", "max"])
@pytest.mark.parametrize("rewards", ["x=1 : 8; x=4 : 3;", "x=2 : 900; x=4 : 0.02;", "x=2 : 0.02; x=3 : 900;"])
@pytest.mark.usefixtures("slowly")
def test_bounds_of_averages_are_carried_on(rewards: str, word: str, absolute: bool) -> None:
    """Averages are known to some per cent: what is made of their middles, or of one bound, is off as far."""
    model = hybrid.parse(SLOW.format(rewards=rewards))
    right = hybrid.check(model, f"R{word}=? [ S ]", exact=True).exact
    wide = 0
    for epsilon in (0.3, 0.2, 0.1, 0.05, 0.01):
        answer = hybrid.check(
            model, f"R{word}=? [ S ]", epsilon=epsilon, absolute=absolute, engine="explicit"
        )
        assert answer.lower <= right <= answer.upper
        wide += answer.upper - answer.lower > 1e-3 * epsilon
        assert answer.upper - answer.lower <= epsilon * (1.0 if absolute else answer.upper)
    assert wide


# lemma: end-component-averages
def test_a_component_counts_as_decided_only_where_its_best_choices_stay() -> None:
    """The greatest reward is earned once in a while, so that it is no average; the least likewise."""
    model = hybrid.parse(
        """mdp module m x:[0..2]; [] x=0 -> (x'=1); [] x=0 -> (x'=2); [] x>0 -> (x'=0); endmodule
        rewards x=0 : 3; x=1 : 5; x=2 : 1; endrewards"""
    )
    assert hybrid.check(model, "Rmax=? [ S ]").value == pytest.approx(4.0)
    assert hybrid.check(model, "Rmin=? [ S ]").value == pytest.approx(2.0)


def test_states_that_surely_reach_the_best_component_have_its_average() -> None:
    model = hybrid.parse(WAY)
    answer = hybrid.check(model, "Smax=? [ x=6 ]")
    assert (answer.lower, answer.upper) == (1.0, 1.0)
    assert long_run_choices._SHARE == 0.5


def test_many_states_take_as_few_steps_as_factors_pay() -> None:
    """A long queue with two speeds, of which the fast one costs: equations are factorised."""
    n = 600
    model = hybrid.parse(
        f"""mdp module q x:[0..{n}];
        [slow] x>0 & x<{n} -> 0.4:(x'=x+1)+0.35:(x'=x-1)+0.25:true;
        [fast] x>0 & x<{n} -> 0.4:(x'=x+1)+0.45:(x'=x-1)+0.15:true;
        [] x=0 -> 0.4:(x'=1)+0.6:true; [] x={n} -> 0.4:(x'=x-1)+0.6:true;
        endmodule rewards true : x; [fast] true : 5; endrewards"""
    )
    for word in ("min", "max"):
        answer = hybrid.check(model, f"R{word}=? [ S ]")
        assert answer.upper - answer.lower <= 1e-6 * answer.upper
    exact = hybrid.check(model, "Rmax=? [ S ]", exact=True).exact  # which takes as long as a hundred others
    assert answer.lower <= exact <= answer.upper


@pytest.mark.parametrize("less", [0, 2])
def test_averages_near_zero_are_told_as_close_as_doubles_allow(less: int) -> None:
    """A queue that is hardly ever empty; epsilon of an average near zero is out of reach."""
    model = hybrid.parse(
        f"""mdp module q x:[0..99] init 99;
        [] x>0 & x<99 -> 0.3:(x'=x-1)+0.7:(x'=x+1); [] x=0 -> (x'=1); [] x=99 -> 0.3:(x'=98)+0.7:true;
        [] x=50 -> 0.4:(x'=49)+0.6:(x'=51);
        endmodule rewards x=0 : {1 - less}; endrewards"""
    )
    for word in ("min", "max"):
        exact = hybrid.check(model, f"R{word}=? [ S ]", exact=True).exact
        assert abs(exact) < 1e-30
        answer = hybrid.check(model, f"R{word}=? [ S ]", method="interval")
        assert answer.lower <= exact <= answer.upper
        assert 0.0 < answer.upper - answer.lower <= 1e-8
