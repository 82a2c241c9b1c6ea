"""Properties of small MDPs with answers worked out by hand; refusals by name; what an answer records."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest

import hybrid
from mtbdd.language.errors import LanguageError
from tests.builders.known_answers import OF_MDPS
from tests.builders.mdp_texts import COINS, SLOW_WAY
from tests.builders.models import build

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


SYSTEMS = [
    {"engine": "hybrid", "backend": "cpu"},
    {"engine": "hybrid", "backend": "reference", "level": 0},
    {"engine": "hybrid", "backend": "cpu", "method": "interval", "level": "min-time"},
    {"engine": "explicit"},
    {"engine": "explicit", "method": "interval", "absolute": True},
    {"engine": "hybrid", "backend": "cpu", "absolute": True},
]


MODELS = dict(zip(["coins", "rooms", "wait", "slow"], sorted({text for text, _, _ in OF_MDPS}), strict=True))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(MODELS[name], options, id=f"{name}-{options}")
        for k, options in enumerate(SYSTEMS)
        for name in list(MODELS)[k % 2 :: 2]
    ],
)
def test_values(text: str, options: dict[str, object]) -> None:
    model = build(text)
    for own, prop, exact in OF_MDPS:
        if own != text:
            continue
        answer = hybrid.check(model, prop, **options, throw=False)
        assert answer.error is None, (prop, answer.error)
        assert answer.lower is not None and answer.upper is not None and answer.value is not None
        if exact == math.inf:
            assert answer.value == answer.lower == answer.upper == math.inf, prop
            continue
        # Thirds and their like are not doubles: the bounds hold the answer for the doubles of the text.
        slack = 0 if text != COINS else Fraction(1, 10**15)
        assert Fraction(answer.lower) - slack <= exact <= Fraction(answer.upper) + slack, prop
        assert answer.upper - answer.lower <= 1e-7, prop
        assert answer.lower <= answer.value <= answer.upper


@pytest.mark.parametrize("method", ["jacobi", "power"])
@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
def test_estimates_have_no_bounds(method: str, engine: str) -> None:
    answer = hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", method=method, engine=engine, backend="cpu")
    assert answer.lower is None and answer.upper is None
    assert answer.value == pytest.approx(0.6, rel=1e-6)
    assert answer.statistics.method == "value-iteration"


@pytest.mark.parametrize(
    ("prop", "expected"),
    [
        ("P>=0.2 [ F x=2 ]", True),
        ("P>=0.3 [ F x=2 ]", False),
        ("P<=0.61 [ F x=2 ]", True),
        ("P<0.5 [ F x=2 ]", False),
        ("Pmax>=0.5 [ F x=2 ]", True),
        ("Pmin>=0.5 [ F x=2 ]", False),
        ('R{"tries"}<1.5 [ F x>=2 ]', False),
        ('R{"tries"}>0.5 [ F x>=2 ]', True),
        ("P>=1 [ F x>=2 ]", True),
        ("P>0 [ F x=2 ]", True),
        ("P<1 [ F x=2 ]", True),
    ],
)
def test_bounds_speak_of_all_schedulers(prop: str, expected: bool) -> None:
    assert hybrid.check(build(SLOW_WAY), prop, backend="cpu").value is expected


def test_operators_nest_and_filters_see_all_states() -> None:
    model = build(SLOW_WAY)
    nested = hybrid.check(model, "Pmax=? [ F P>=1 [ X x=0 ] ]", backend="cpu")
    assert nested.lower <= 0.5 <= nested.upper
    both = hybrid.check(model, 'filter(avg, R{"tries"}max=? [ F x>=2 ], x<2)', backend="cpu")
    assert both.lower <= 2.0 <= both.upper
    difference = hybrid.check(model, "Pmax=? [ F x=2 ] - Pmin=? [ F x=2 ]", backend="cpu")
    assert difference.lower <= 0.35 <= difference.upper


@pytest.mark.parametrize(
    ("prop", "options", "part"),
    [
        ("Smax=? [ x=2 ]", {"method": "bicgstab"}, "choose optimistic, interval"),
        ("Pmax=? [ F x=2 ]", {"method": "bicgstab"}, "choose optimistic, interval"),
        ("Pmax=? [ F x=2 ]", {"method": "gauss-seidel"}, "choose optimistic, interval"),
        ('R{"tries"}max=? [ G (X x=2) ]', {}, "R: expected a co-safe formula"),
        (
            "Pmax=? [ F x=2 ]",
            {"max_iterations": 3, "method": "optimistic"},
            "the iteration limit was reached",
        ),
    ],
)
def test_refusals(prop: str, options: dict[str, object], part: str) -> None:
    answer = hybrid.check(build(SLOW_WAY), prop, **{"backend": "cpu", **options}, throw=False)
    assert answer.value is None
    assert part in str(answer.error)


@pytest.mark.parametrize(
    ("prop", "part"),
    [
        ("P=? [ F x=2 ]", "write Pmin=? or Pmax=?"),
        ('R{"tries"}=? [ F x=2 ]', "write Rmin=? or Rmax=?"),
        ("S=? [ x=2 ]", "write Smin=? or Smax=?"),
    ],
)
def test_f21_a_value_without_min_or_max_is_wrong_usage(prop: str, part: str) -> None:
    with pytest.raises(LanguageError, match=re.escape(part)) as caught:
        hybrid.check(build(SLOW_WAY), prop, throw=False)
    assert caught.value.is_usage


def test_negative_rewards_are_refused() -> None:
    model = build("mdp module m x : [0..1]; [] x=0 -> (x'=1); endmodule rewards x=0 : -1; endrewards")
    for prop in ("Rmax=? [ F x=1 ]", "Rmin=? [ F x=1 ]", "Rmax=? [ C<=2 ]", "Rmin=? [ C ]"):
        assert "negative rewards" in str(hybrid.check(model, prop, backend="cpu", throw=False).error)


def test_the_record_sums_over_the_layers() -> None:
    model = build(SLOW_WAY)
    answer = hybrid.check(model, "Pmax=? [ F x=2 ]", backend="cpu", level=2)
    record = json.loads(json.dumps(answer.record()))
    assert record["method"] == "optimistic"
    assert record["level"] == 2
    assert record["iterations"] > 0
    assert record["base_memory_bytes"] > 0
    assert record["representation_memory_bytes"] > 0
    explicit = hybrid.check(model, "Pmax=? [ F x=2 ]", engine="explicit").record()
    assert explicit["level"] is None
    assert explicit["representation_memory_bytes"] > 0


def test_several_initial_states() -> None:
    model = build(SLOW_WAY.replace("endmodule", "endmodule init x!=1 endinit"))
    answer = hybrid.check(model, 'filter(max, Pmin=? [ F x=2 ], "init")', backend="cpu")
    assert answer.value == 1.0


def test_a_chain_has_repeated_reachability_too() -> None:
    chain = build(
        """dtmc module m x : [0..4]; [] x=0 -> 0.25:(x'=1) + 0.25:(x'=3) + 0.5:(x'=0);
        [] x=1 -> (x'=2); [] x=2 -> (x'=1); [] x=3 -> 0.5:(x'=3) + 0.5:(x'=4); [] x=4 -> true; endmodule"""
    )
    for prop, exact in (
        ("P=? [ G F x=2 ]", 0.5),
        ("P=? [ F G x>=1 ]", 1.0),
        ("P=? [ F G x=2 ]", 0.0),
        ("P=? [ G F x=3 ]", 0.0),
        ("P=? [ F G x>=3 ]", 0.5),
    ):
        answer = hybrid.check(chain, prop, backend="cpu", throw=False)
        assert answer.error is None
        assert answer.lower <= exact <= answer.upper
    assert hybrid.check(chain, "P>=0.5 [ G F x=2 ]", backend="cpu", throw=False).value is True
    assert hybrid.check(chain, "P>0.5 [ F G x>=3 ]", backend="cpu", throw=False).value is False
