"""The oracle of the attack against answers worked out by hand, and the judge against made-up answers."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from random import Random

import pytest

from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.checking.answer import Answer
from tests.attack import balls, linear
from tests.attack.chains import ChainOracle, Window
from tests.attack.disguise import CONSTANTS, disguised
from tests.attack.evaluate import Evaluator, Expected
from tests.attack.families import FAMILIES, KINDS, random_spec
from tests.attack.formulas import Atom, Filtered, Path, Probability, Reward
from tests.attack.judge import judge
from tests.attack.numerals import numeral, weights
from tests.attack.spec import Command, Expanded, Module, RewardItem, Spec
from tests.attack.thresholds import decimal_near

HALF = Fraction(1, 2)
OPTIONS = {"method": "auto", "epsilon": 1e-8, "absolute": False}


def command(state, *updates, action=""):
    return Command(action, (("s", "=", state),), tuple((numeral(p), (("s", t),)) for p, t in updates))


def spec(kind, size, *commands, items=()):
    return Spec(kind, "hand", (Module("m", (("s", 0, size - 1, 0),), commands),), (tuple(items),))


DIE = spec(
    "dtmc", 3, command(0, ("0.5", 1), ("1/3", 2), ("1/6", 0)), command(1, ("1", 1)), command(2, ("1", 2)),
    items=(RewardItem(None, (), numeral("2")),),
)  # fmt: skip


def at(*states):
    return Atom(tuple((("s", "=", s),) for s in states))


def test_text_says_what_is_expanded():
    assert "[] s=0 -> 0.5:(s'=1) + 1/3:(s'=2) + 1/6:(s'=0);" in DIE.text()
    assert Expanded.of(DIE).choices[0][0].row == {1: HALF, 2: Fraction(1, 3), 0: Fraction(1, 6)}


def test_rows_are_divided_by_their_sums():
    model = Expanded.of(spec("dtmc", 2, command(0, ("0.333333", 0), ("0.666666", 1))))
    assert model.choices[0][0].row == {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert model.deadlocks == {1}


def test_modules_multiply_what_they_do_together():
    left = Module("l", (("x", 0, 1, 0),), (Command("a", (), ((numeral("2"), (("x", 1),)),)),))
    right = Module(
        "r", (("y", 0, 1, 0),), (Command("a", (), ((numeral("3"), (("y", 1),)), (numeral("1"), ()))),)
    )
    model = Expanded.of(Spec("ctmc", "hand", (left, right)))
    assert model.states == [(0, 0), (1, 0), (1, 1)]
    assert model.choices[0][0].row == {2: 6, 1: 2}


def test_chain_of_three_states():
    oracle = ChainOracle(Expanded.of(DIE))
    assert oracle.until({0, 1, 2}, {1}, None)[0] == (Fraction(3, 5),) * 2
    assert oracle.until({0, 1, 2}, {1}, Window(Fraction(0), Fraction(2)))[0] == (Fraction(7, 12),) * 2
    assert oracle.until({0}, {1}, Window(Fraction(2), Fraction(2)))[0] == (Fraction(1, 12),) * 2
    assert oracle.reward(0, "F", {1, 2})[0] == (Fraction(12, 5),) * 2
    assert oracle.reward(0, "F", {1})[0] == (math.inf, math.inf)
    assert oracle.reward(0, "C", Fraction(3))[0] == (6, 6)
    assert oracle.steady({1})[0] == (Fraction(3, 5),) * 2


def test_long_run_of_a_cycle_and_of_rates():
    rows = [{1: Fraction(1)}, {2: HALF, 1: HALF}, {0: Fraction(1)}]
    assert linear.long_run(rows, [Fraction(1), Fraction(0), Fraction(0)]) == [Fraction(1, 4)] * 3
    rates = [{1: Fraction(3)}, {0: Fraction(1), 1: Fraction(7)}]
    assert linear.long_run(rates, [Fraction(1), Fraction(0)]) == [Fraction(1, 4)] * 2


def test_losses_that_never_end_have_no_sum():
    rows = [{0: Fraction(1)}, {0: HALF, 2: HALF}, {2: Fraction(1)}]
    assert linear.total(rows, [Fraction(-1), Fraction(1), Fraction(1)], {2}) == [None, None, 0]
    assert linear.total(rows, [Fraction(1), Fraction(1), Fraction(1)], {2}) == [math.inf, math.inf, 0]


@pytest.mark.parametrize("time", ["1e-9", "0.5", "3", "2000"])
def test_exponentials_enclose_the_closed_form(time):
    # Two states, rates 2 and 1: the chain is in state 1 at t with probability 2/3 (1 - exp(-3 t)).
    rows = [{1: Fraction(2)}, {0: Fraction(1)}]
    whole, average, error = balls.exponential(rows, Fraction(time))
    (low, high), _ = balls.times(whole, error, [(Fraction(0),) * 2, (Fraction(1),) * 2])
    assert high - low < Fraction(1, 10**400)
    t = float(time)
    assert float(low) == pytest.approx(-2 / 3 * math.expm1(-3 * t), rel=1e-14)
    (low, _), _ = balls.times(average, error, [(Fraction(0),) * 2, (Fraction(1),) * 2])
    assert float(low) == pytest.approx(2 / 3 * (1 + math.expm1(-3 * t) / (3 * t)), rel=1e-6)


def test_powers_enclose_the_exact_ones():
    rows = [{0: Fraction(1, 3), 1: Fraction(2, 3)}, {0: Fraction(1, 7), 1: Fraction(6, 7)}]
    exact = ChainOracle(Expanded.of(DIE))  # only its steps are used
    exact.rows, exact.every = rows, {0, 1}
    start = [(Fraction(1),) * 2, (Fraction(0),) * 2]
    wanted = exact._steps({0, 1}, set(), start, 30)
    found = balls.times(*balls.power(rows, 30), start)
    for (low, high), (value, _) in zip(found, wanted, strict=True):
        assert low <= value <= high
        assert high - low < Fraction(1, 10**400)


def test_least_and_greatest_values_of_choices():
    commands = [
        command(0, ("0.5", 1), ("0.5", 0)),
        command(0, ("0.9", 0), ("0.1", 2)),
        command(0, ("1", 0)),
    ]
    model = Expanded.of(spec("mdp", 3, *commands, items=(RewardItem(None, (), numeral("1")),)))
    evaluator = Evaluator(model)

    def value(optimum, path):
        return evaluator.property(Probability(optimum, None, None, path)).low

    assert value("max", Path("F", None, at(1))) == 1
    assert value("min", Path("F", None, at(1))) == 0
    assert evaluator.property(Reward("min", None, None, 0, "F", at(1, 2))).low == 2
    assert evaluator.property(Reward("max", None, None, 0, "F", at(1, 2))).low == math.inf


def test_filters_of_exact_values():
    evaluator = Evaluator(Expanded.of(DIE))
    reach = Probability(None, None, None, Path("F", None, at(1)))
    assert evaluator.property(Filtered("avg", reach, at(0, 1))).low == Fraction(4, 5)
    assert evaluator.property(Filtered("range", reach, at(0, 1))).end == (1, 1)
    assert evaluator.states(Filtered("argmax", reach, at(0, 2))) == {0}


def answer(value, lower, upper, error=None):
    return Answer(None, "", value, lower, upper, error, SolveStatistics(), 0.0, "hybrid")


THIRD = Expected("number", Fraction(1, 3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("expected", "given", "verdict"),
    [
        (THIRD, answer(1 / 3, 0.333333333333, 0.333333333334), "right"),
        (THIRD, answer(1 / 3, 1 / 3, 1 / 3), "wrong"),  # the double is not the third
        (THIRD, answer(0.3334, 0.33333333333, 0.33333333334), "wrong"),  # value outside of the bounds
        (THIRD, answer(math.nan, math.nan, math.nan), "wrong"),
        (THIRD, answer(1 / 3, None, None), "wrong"),  # bounds were promised
        (THIRD, answer(0.4, 0.0, 1.0), "wide"),
        (THIRD, answer(None, None, None, "ValueError: boom"), "wrong"),
        (THIRD, answer(None, None, None, "P: the iteration limit was reached before"), "not converged"),
        (Expected("number", math.inf, math.inf), answer(math.inf, math.inf, math.inf), "right"),
        (
            Expected("number", Fraction(10) ** 309, Fraction(10) ** 309),
            answer(math.inf, math.inf, math.inf),
            "wrong",
        ),
        (Expected("number", math.inf, math.inf), answer(1e300, 1e300, 1e300), "wrong"),
        (Expected("truth", truth=True), answer(False, False, False), "wrong"),
        (Expected("truth", truth=True), answer(True, True, True), "right"),
        (
            Expected("truth", truth=True),
            answer(None, None, None, "P>0.5 is unknown at this precision"),
            "unknown",
        ),
        (Expected("count", truth=1), answer(True, True, True), "wrong"),
        (Expected("none"), answer(1.0, 1.0, 1.0), "wrong"),
    ],
)
def test_judge(expected, given, verdict):
    formula = Probability(None, None, None, Path("F", None, at(1)))
    assert judge(expected, given, formula, OPTIONS).kind == verdict


def test_numerals_are_what_they_say():
    rng = Random(5)
    for style in ("dyadic", "decimal", "fraction", "tiny", "long", "rounded", "doubles"):
        for count in (1, 2, 3):
            row = weights(rng, count, style, ("1e-9", "1e-307"))
            whole = sum(w.value for w in row)
            assert abs(whole - 1) < Fraction(9, 10**6)
            assert whole == 1 or style in ("rounded", "doubles")
            for w in row:
                first, *rest = w.text.split("-1")
                assert rest or Fraction(first) == w.value


def test_expressions_are_what_they_stand_for():
    rng = Random(6)
    known = {name: value for name, _, value in CONSTANTS} | {"s": -3, "pow": pow, "max": max}
    for _ in range(200):
        number = numeral(rng.choice(("0.1", "1/3", "0.999", "7", "0.000000001", "0.419372688353671")))
        text = disguised(rng, number, -3).text.split("?")[0]
        if ":" not in text and "s>=" not in text:
            exact = eval(re.sub(r"\d+(\.\d+)?", r"Fraction('\g<0>')", text), {"Fraction": Fraction}, known)
            assert exact == number.value, text


def test_decimals_are_near():
    for value in (
        Fraction(1, 3),
        Fraction(2) * 10**212,
        Fraction(1, 10**330),
        Fraction(99999),
        Fraction(-1, 7),
    ):
        near = decimal_near(value, 15)
        assert abs(near.value - value) <= abs(value) / 10**14
        assert Fraction(near.text) == near.value


def test_every_family_is_drawn():
    rng = Random(11)
    for kind in KINDS:
        for family in FAMILIES:
            for _ in range(3):
                model = Expanded.of(random_spec(rng, kind, family))
                assert all(sum(c.row.values()) == 1 for cs in model.choices for c in cs if kind != "ctmc")
