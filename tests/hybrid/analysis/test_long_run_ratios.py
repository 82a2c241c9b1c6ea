"""Long-run ratios of two rewards: against every scheduler's chains in fractions, by hand, and refusals."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import use_device
from hybrid.analysis import long_run_ratios
from hybrid.analysis.long_run_ratios import _off_by, _quotient
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.state_values import StateValues
from hybrid.matrix.space.base import Criterion
from tests.builders.models import build
from tests.builders.random_mdps import random_mdp
from tests.exploring import each, rounds
from tests.gpu_kernels.host_device import HostDevice
from tests.oracles.mdps import explore_mdp, schedulers
from tests.oracles.optima import assert_encloses, checked, ratios

RATIO = "R{{1}}/{{2}}{}=? [ S ]"


def with_costs(text: str, rng: np.random.Generator) -> str:
    """Return a model with a second reward, of few states in some cases."""
    most = int(rng.integers(1, 4))
    costs = [f"x={s} : {int(rng.integers(0, most + 1))}/7;" for s in range(5)]
    if rng.random() < 0.8:
        costs.append("true : 1/3;")
    return f'{text}rewards "cost" {" ".join(costs)} [a] true : 2; endrewards'


# lemma: ratios
@pytest.mark.parametrize("kind", ["mdp", "dtmc"])
def test_random_models(kind: str, rng: np.random.Generator) -> None:
    number = 0
    while number < rounds(12):
        text = with_costs(random_mdp(rng), rng).replace("mdp", kind, 1)
        model = build(text)
        process = explore_mdp(model.source)
        if kind == "dtmc" and any(len(own) > 1 for own in process.choices):
            continue
        if sum(1 for _ in schedulers(process)) > 50:
            continue
        number += 1
        options: dict[str, Any] = [{}, {"engine": "explicit"}, {"method": "interval"}][number % 3]
        for word in ("min", "max") if kind == "mdp" else ("",):
            exact = ratios(process, 0, 1, word == "max")
            asked = RATIO.format(word)
            if exact is None:
                for exactly in (False, True):
                    answer = hybrid.check(model, asked, exact=exactly, throw=False)
                    assert "long-run average is not positive" in str(answer.error)
                continue
            found = checked(model, asked, backend="cpu", **options)
            assert isinstance(found, StateValues)
            assert_encloses(found, exact, 1e-6)
            assert all(
                (low == high == 0.0) == (value == 0)
                for low, high, value in zip(found.lower, found.upper, exact, strict=True)
            )
            every = f"filter(sum, {asked})"
            assert hybrid.check(model, every, exact=True).exact == sum(exact)


# ------------------------------------------------------------------ by hand

WAY = """{kind} module m x:[0..4];
  [a] x=0 -> 1/2:(x'=1) + 1/2:(x'=2); [b] x=0 -> (x'=1);
  [] x=1 -> (x'=0);
  [c] x=2 -> (x'=0); [d] x=2 -> 1/2:(x'=3) + 1/2:(x'=4);
  [e] x=3 -> (x'=3); [f] x=3 -> (x'=4); [] x=4 -> (x'=3); [g] x=4 -> (x'=4);
endmodule
rewards "gain" x=0 : 1; x=1 : 3; [c] true : 7; x=3 : 2; x=4 : 5; endrewards
rewards "cost" x=1 : 2; x=2 : 1; [c] true : 1; x>2 : 1; endrewards
rewards "none" x=0 : 1; endrewards"""
CHAIN = """{kind} module m x:[0..3];
  [] x=0 -> 1/2:(x'=1) + 1/2:(x'=2); [] x=1 -> 1/2:(x'=3) + 1/2:(x'=1); [] x=3 -> (x'=1); [] x=2 -> true;
endmodule
rewards "gain" x=1 : 1; x=3 : -5; x=2 : 1/3; endrewards
rewards "cost" x=1 : 2; x=2 : 3; [] x=3 : 1; endrewards"""
KNOWN: list[tuple[str, str, Fraction | bool]] = [
    ("mdp", 'R{"gain"}/{"cost"}min=? [ S ]', Fraction(2)),
    ("mdp", 'Rmax{1}/{2}=? [ LRA ]', Fraction(5)),
    ("mdp", 'R{"gain"}/{"cost"}max>=5 [ S ]', True),
    ("mdp", 'R{"gain"}/{"cost"}>2 [ S ]', False),
    ("mdp", 'filter(max, R{"cost"}/{"gain"}max=? [ S ], x<3)', Fraction(1, 2)),
    ("dtmc", 'R{"gain"}/{"cost"}=? [ S ]', (Fraction(1, 9) - Fraction(3, 5)) / 2),
    ("ctmc", 'R{"gain"}/{"cost"}=? [ S ]', (Fraction(1, 9) - Fraction(3, 5)) / 2),
    ("dtmc", '1 + filter(min, R{1}/{2}=? [ S ], x=1)', Fraction(2, 5)),
]  # fmt: skip
WAYS: list[dict[str, Any]] = [{"engine": "explicit"}, {"exact": True}]
CASES = [*each(KNOWN, [{}]), *each(KNOWN, WAYS), (*KNOWN[0], {"backend": "gpu"})]


@pytest.mark.parametrize(("kind", "prop", "right", "options"), CASES, ids=str)
def test_values_by_hand(kind: str, prop: str, right: Fraction | bool, options: dict[str, Any]) -> None:
    model = hybrid.parse((WAY if kind == "mdp" else CHAIN).format(kind=kind))
    with use_device(HostDevice()):
        answer = hybrid.check(model, prop, **options)
    if isinstance(right, bool):
        assert answer.value is right
        return
    assert answer.lower <= right <= answer.upper
    assert answer.upper - answer.lower <= 1e-6


@pytest.mark.parametrize("word", ["min", "max"])
def test_the_chain_of_a_scheduler_has_its_ratio(word: str, rng: np.random.Generator) -> None:
    made = 0
    while made < rounds(9):
        model = hybrid.parse(with_costs(random_mdp(rng), rng))
        asked = f"filter(min, {RATIO.format(word)}, x=0)"
        answer = hybrid.check(model, asked, scheduler=True, throw=False)
        if answer.error is not None:
            assert "is not positive" in str(answer.error)
            continue
        made += 1
        chain = model.with_scheduler(answer.scheduler)
        found = hybrid.check(chain, f"filter(min, {RATIO.format('')}, x=0)", exact=True)
        assert answer.lower <= found.exact <= answer.upper


def test_what_the_graph_tells_is_exact() -> None:
    text = WAY.format(kind="mdp") + '\nrewards "some" x=2 : 1; [c] true : 1; endrewards'
    for prop, right in {
        'R{"some"}/{"gain"}min=? [ S ]': 0.0,
        'filter(max, R{"some"}/{"cost"}max=? [ S ], x>2)': 0.0,
    }.items():
        answer = hybrid.check(hybrid.parse(text), prop)
        assert (answer.lower, answer.value, answer.upper) == (right,) * 3


def test_estimates_have_no_bounds() -> None:
    answer = hybrid.check(hybrid.parse(CHAIN.format(kind="ctmc")), "R{1}/{2}=? [ S ]", method="jor")
    assert answer.lower is None and answer.value == pytest.approx(-11 / 45)
    answer = hybrid.check(hybrid.parse(WAY.format(kind="mdp")), "R{1}/{2}max=? [ S ]", method="jacobi")
    assert answer.lower is None and answer.value == pytest.approx(5.0)


def test_huge_and_tiny_rewards() -> None:
    """A class of states that are left as rarely as some cost more, and the other way."""
    text = """mdp module m x:[0..1];
      [] x=0 -> 1e-9:(x'=1) + 1-1e-9:true; [] x=0 -> 1e-6:(x'=1) + 1-1e-6:true;
      [] x=1 -> 1e-9:(x'=0) + 1-1e-9:true;
    endmodule rewards x=0 : {}; x=1 : {}; endrewards rewards x=0 : {}; x=1 : {}; endrewards"""
    for word, *numbers in [
        ("min", "1e9", "1e-9", "1e-9", "1"),
        ("max", "1e-200", "1e-190", "1e-100", "0"),
        ("max", "0", "3e150", "1e-3", "1e90"),
    ]:
        model = hybrid.parse(text.format(*numbers))
        exact = hybrid.check(model, RATIO.format(word), exact=True).exact
        answer = hybrid.check(model, RATIO.format(word))
        assert answer.lower <= exact <= answer.upper
        assert answer.upper - answer.lower <= 1e-6 * answer.upper


def test_rewards_below_normal_doubles() -> None:
    text = """mdp module m s : [0..1];
      [a] s=0 -> 1/2:(s'=1) + 1/2:true;
      [b] s=0 -> (s'=1);
      [] s=1 -> (s'=0);
    endmodule
    rewards "tiny" true : 1e-315; endrewards
    rewards "one" true : 1; endrewards"""
    model = hybrid.parse(text)
    for prop, exact in (
        ('R{"tiny"}/{"one"}max=? [ S ]', Fraction(1, 10**315)),
        ('R{"tiny"}/{"tiny"}min=? [ S ]', 1),
    ):
        answer = hybrid.check(model, prop)
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper), prop


@pytest.mark.parametrize(
    ("kind", "prop", "options", "message"),
    [
        ("mdp", 'R{"gain"}/{"none"}max=? [ S ]', {}, "as in an end component"),
        ("dtmc", 'R{"cost"}/{"gain"}=? [ S ]', {}, "as in a bottom component"),
        ("mdp", "R{1}/{2}max=? [ S ]", {"ranks": 2}, "not found in parts by this version"),
        ("mdp", "R{1}/{2}max=? [ S ]", {"engine": "symbolic"}, "not answered by the engine symbolic"),
        ("mdp", "multi(R{1}/{2}max=? [ S ], Pmax=? [ F x=1 ])", {}, "ratios of rewards are no objectives"),
    ],
)
def test_refusals(kind: str, prop: str, options: dict[str, Any], message: str) -> None:
    model = hybrid.parse((WAY if kind == "mdp" else CHAIN).format(kind=kind))
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(model, prop, **options)


def test_the_quotient_keeps_both_rewards() -> None:
    model = hybrid.parse(CHAIN.format(kind="dtmc"))
    answer = hybrid.check(model, "R{1}/{2}=? [ S ]", bisimulation=True)
    assert answer.lower <= Fraction(-11, 45) <= answer.upper


# ------------------------------------------------------------------ what bounds rest on


# lemma: ratios
def test_quotients_of_averages_are_rounded_outward() -> None:
    for above in ((1.0, 1.0, 1.0), (-1.0, -1.0, -1.0), (0.1, -0.3, 0.7), (2.0, 1.0, 3.0), (-2.0, -3.0, -1.0)):
        for below in ((3.0, 3.0, 3.0), (7.0, 5.0, 9.0), (0.1, 0.1, 0.3)):
            value, lower, upper = _quotient(above, below)
            for a in map(Fraction, above):
                for b in map(Fraction, below):
                    assert Fraction(lower) <= a / b <= Fraction(upper)
            assert lower <= value <= upper
    assert _quotient((3.0,) * 3, (2.0,) * 3) == (1.5, 1.5, 1.5)


# lemma: ratios
def test_ratios_allow_for_what_rewards_are_off_by() -> None:
    one = np.array([0.7])
    for x, y in ((0.0, 2.0**26), (2.0**40, 0.0), (2.0**50, 2.0**51)):
        found = _off_by(StateValues(one, one, one), x, y)
        own, other = (Fraction(units) / 2**53 for units in (x, y))
        assert Fraction(found.lower[0]) <= Fraction(0.7) * (1 - own) / (1 + other)
        assert Fraction(found.upper[0]) >= Fraction(0.7) * (1 + own) / (1 - other)
    assert np.isinf(_off_by(StateValues(one, one, one), 0.0, 2.0**53).upper[0])


class Known(long_run_ratios._EndComponentRatios):
    """A search in one component whose policies have known averages of both rewards."""

    def __init__(
        self, policies: list[tuple[float, float]], maximise: bool, epsilon: float, rounds: int
    ) -> None:
        self._policies, self._left = policies, rounds
        self._maximise, self._choosing, self._below = maximise, False, lambda *_: None
        self._options = SimpleNamespace(criterion=Criterion(epsilon))  # type: ignore[assignment]

    def _open(self, is_open: Any) -> Any:
        return None, np.zeros(1, np.int64), SimpleNamespace(system=lambda *_: None)

    def _iterated(self, operator: Any, *_: Any) -> Any:
        spent = min(b for _, b in self._policies)
        return SimpleNamespace(lower=np.array([spent]), upper=np.array([1.0625 * spent]))

    def _best_at(self, x: Any, most: Any, low: Any, high: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            return np.full(1, -np.inf), np.full(1, np.inf), True
        values = [Fraction(a) - Fraction(float(x[0])) * Fraction(b) for a, b in self._policies]
        best = (max if self._maximise else min)(values)
        return np.array([rounded_down(best)]), np.array([rounded_up(best)]), False


# lemma: ratios
@pytest.mark.parametrize("maximise", [False, True])
def test_bounds_at_any_number_are_bounds_on_the_ratio(maximise: bool, rng: np.random.Generator) -> None:
    for number in range(rounds(120)):
        policies = [(float(rng.uniform(0.1, 1)), float(rng.uniform(0.2, 3))) for _ in range(3)]
        exact = [Fraction(a) / Fraction(b) for a, b in policies]
        right = (max if maximise else min)(exact)
        known = Known(policies, maximise, (0.3, 1e-9)[number % 2], number % 7)
        most = max(a for a, _ in policies)
        # What choices spend differs as much as averages, or more.
        low = 0.0 if number % 3 else min(b for _, b in policies)
        high = max(b for _, b in policies)
        found = known._search(np.ones(1, np.bool_), np.array([most]), np.array([low]), np.array([high]))
        assert Fraction(found[0][0]) <= right <= Fraction(found[1][0])


def iterated(gain: Any, _: Any, least: Any, most: Any, criterion: Criterion) -> Any:
    """Return what the one choice of a component is worth as its average."""
    earned = gain(0, SimpleNamespace(states=None))
    assert least <= earned <= most
    return SimpleNamespace(lower=earned, upper=earned, bias=None, status=None)


# lemma: ratios
def test_rounding_of_what_choices_are_worth_is_allowed_for(rng: np.random.Generator) -> None:
    for number in range(rounds(600)):
        most, high, x = (np.array([float(10.0 ** rng.uniform(-3, 3))]) for _ in range(3))
        a, b = most * (number % 3 != 0), high * (number % 3 != 1)
        search = object.__new__(long_run_ratios._EndComponentRatios)
        search.__dict__.update(
            _options=SimpleNamespace(criterion=Criterion()), _maximise=True, _component=np.zeros(1, np.int64),
            _index=None, _below=lambda *_, b=b: b, _above=lambda *_, a=a: a, _iterated=iterated,
            _model=SimpleNamespace(indicator=lambda *_: np.ones(1, np.bool_)),
            _matrices=SimpleNamespace(system=lambda gain, *_: gain),
        )  # fmt: skip
        least, greatest, _ = search._best_at(x, most, 0.5 * high, high)
        exact = Fraction(float(a[0])) - Fraction(float(x[0])) * Fraction(float(b[0]))
        assert Fraction(float(least[0])) <= exact <= Fraction(float(greatest[0]))
