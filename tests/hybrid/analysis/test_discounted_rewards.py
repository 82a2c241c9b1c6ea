"""Discounted rewards, by definition: linear systems of fractions, over all schedulers without memory."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError, PropertyError
from hybrid.matrix.operators.rounding import Discount
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.language import LanguageError
from mtbdd.language.reals import from_text
from tests.builders.known_answers import ON_THE_HOST
from tests.builders.labelled import LabelledModel, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.chains import solve_exactly
from tests.oracles.optima import assert_encloses, checked

ON_A_DEVICE: list[dict[str, object]] = [
    {"backend": "gpu"},
]


def discounted(
    labelled: LabelledModel, earned: list[Fraction], moved: list[Fraction], d: Fraction
) -> dict[str, list[Fraction]]:
    """Least and greatest discounted rewards from every state; the k-th choice of a state earns `moved[k]`."""
    n, found = labelled.n_states, []
    for picked in product(*(range(len(own)) for own in labelled.choices)):
        rows = [labelled.choices[s][k] for s, k in enumerate(picked)]
        matrix = [[Fraction(s == t) - d * rows[s].get(t, Fraction(0)) for t in range(n)] for s in range(n)]
        found.append(solve_exactly(matrix, [earned[s] + moved[k] for s, k in enumerate(picked)]))
    columns = list(zip(*found, strict=True))
    return {"min": [min(column) for column in columns], "max": [max(column) for column in columns]}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(kind, options, marks=marks)
        for k, kind in enumerate(["dtmc", "mdp"])
        for found, marks in ((ON_THE_HOST[k::2], ()), (ON_A_DEVICE, pytest.mark.gpu))
        for options in found
    ],
    ids=str,
)
def test_random_models(kind: str, options: dict[str, object], rng: np.random.Generator) -> None:
    for number in range(rounds(12)):
        labelled = random_labelled(rng, kind)
        d = Fraction(("0.9", "0.5", "0.99", "0.1")[number % 4])
        lowest = -3 if kind == "dtmc" and number % 3 == 0 else 0
        earned = [Fraction(int(r), 2) for r in rng.integers(lowest, 3, size=labelled.n_states)]
        moved = [Fraction(int(r), 4) for r in rng.integers(0, 3, size=3)] if number % 2 else [Fraction(0)] * 3
        items = [f"s={s} : {r};" for s, r in enumerate(earned)] + [
            f"[c{k}] true : {r};" for k, r in enumerate(moved[: max(map(len, labelled.choices))])
        ]
        model = build(labelled.text("\n".join(['rewards "r"', *items, "endrewards"])))
        written = (f'R{{"r",discount={float(d)}}}', f'R{{"r"}}#[ Cdiscount={float(d)} ]')[number % 2]
        for optimum, values in discounted(labelled, earned, moved, d).items():
            asked = f"{optimum}=?" if kind == "mdp" else "=?"
            text = written.replace("#", asked) if "#" in written else f"{written}{asked} [ C ]"
            found = checked(model, text, **options)
            if min(earned) >= 0:
                assert_encloses(found, values)
            else:
                close = 1e-7 * max(map(abs, earned)) / (1 - d)
                for low, high, value in zip(found.lower, found.upper, values, strict=True):
                    assert Fraction(low) <= value <= Fraction(high) and high - low <= close


LOOPS = """
{}
module m
  x : [0..2] init 0;
  [go] x=0 -> 0.999:(x'=0) + 0.001:(x'=1);
  [go] x=1 -> (x'=1);
  [go] x=2 -> (x'=0);
endmodule
rewards "r" x=1 : 0.1; endrewards
rewards "all" true : 1; endrewards
rewards "none" true : 0; endrewards
const double d = 0.999;
"""


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("dtmc", {}),
        ("dtmc", {"backend": "reference", "level": 0}),
        ("dtmc", {"method": "interval"}),
        ("mdp", {}),
        ("mdp", {"engine": "explicit"}),
        pytest.param("dtmc", {"backend": "gpu"}, marks=pytest.mark.gpu),
        pytest.param("mdp", {"backend": "gpu"}, marks=pytest.mark.gpu),
    ],
    ids=str,
)
def test_loops_and_discounts_near_one_keep_their_digits(kind: str, options: dict[str, object]) -> None:
    model, d = build(LOOPS.format(kind)), Fraction(999, 1000)
    stay = Fraction(1, 10) / (1 - d)
    exact = d * Fraction(1, 1000) * stay / (1 - d * Fraction(999, 1000))
    letter = "R{}max=?" if kind == "mdp" else "R{}=?"
    for structure, value in (('{"r",discount=d}', exact), ('{"all",discount=d}', 1 / (1 - d))):
        text = letter.format(structure) + " [ C ]"
        answer = hybrid.check(model, text, **{"backend": "cpu", **options})
        assert Fraction(answer.lower) <= value <= Fraction(answer.upper) and answer.proven
        assert answer.upper - answer.lower <= 1e-7 * value
    answer = hybrid.check(model, letter.format('{"none",discount=d}') + " [ C ]", backend="cpu")
    assert answer.lower == answer.value == answer.upper == 0


def test_the_rest_of_a_discount_has_its_own_digits() -> None:
    found = Discount.of(from_text("0.99999999999999"))
    assert abs(Fraction(found.rest) / Fraction(1, 10**14) - 1) <= Fraction(1, 2**52)
    assert found.bound(1.0) >= 10**14 and found.bound(1.0) <= 1.000001e14


REPAIR = """
mdp
module m
  x : [0..2] init 0;
  [run] x<2 -> 0.5:(x'=x+1) + 0.5:true;
  [run] x=2 -> true;
  [repair] x>0 -> (x'=0);
endmodule
rewards [run] true : 4*x; [repair] true : 5; endrewards
"""


def test_a_scheduler_attains_the_least_cost() -> None:
    model = build(REPAIR)
    answer = hybrid.check(model, "R{discount=0.9}min=? [ C ]", scheduler=True, backend="cpu")
    assert answer.scheduler is not None
    names, taken = answer.scheduler.actions()
    at_two = int(np.flatnonzero([s["x"] == 2 for s in model.describe(np.arange(3))])[0])
    assert names[taken[at_two]] == "repair"


def test_comparisons_and_nesting() -> None:
    model = build(LOOPS.format("dtmc"))
    assert hybrid.check(model, 'R{"all",discount=0.5}<=2.01 [ C ]', backend="cpu").value is True
    assert hybrid.check(model, 'P=? [ F R{"r",discount=0.5}>0.15 [ C ] ]', backend="cpu").value == 1
    assert hybrid.check(model, 'R{"all",discount=1/3}=? [ C ] * 2', backend="cpu").upper >= 3


@pytest.mark.parametrize(
    ("kind", "prop", "message"),
    [
        ("dtmc", 'R{"r",discount=1}=? [ C ]', "between 0 and 1, both excluded"),
        ("dtmc", 'R{"r",discount=0}=? [ C ]', "between 0 and 1, both excluded"),
        ("dtmc", 'R{"r",discount=1.5}=? [ C ]', "between 0 and 1"),
        ("mdp", 'R{"r",discount=1e-16}min=? [ C ]', "at least 8.881784197001252e-16, got 1e-16"),
        ("dtmc", 'R{"r",discount=x}=? [ C ]', "a discount must be a constant"),
        ("dtmc", 'R{"r",discount=true}=? [ C ]', "a discount"),
        ("dtmc", 'R{"r",discount=0.9}=? [ F x=1 ]', "a discount goes with the reward in all time"),
        ("dtmc", 'R{"r",discount=0.9}=? [ C<=4 ]', "a discount goes with the reward in all time"),
        ("dtmc", 'R{"r",discount=0.9}=? [ Cdiscount=0.9 ]', "given twice"),
        ("dtmc", 'R{"r",x=0.9}=? [ C ]', "discount="),
        ("dtmc", 'R{"r" discount=0.9}=? [ C ]', "expected '}' after the reward structure, got 'discount'"),
        ("ctmc", 'R{"r",discount=0.9}=? [ C ]', "a discount goes with steps, and a CTMC has none"),
        ("mdp", 'R{"r",discount=0.9}=? [ C ]', "write Rmin=? or Rmax=?"),
        (
            "mdp",
            'multi(R{"r",discount=0.9}max=? [ C ], P>=0.1 [ F x=1 ])',
            "discounted rewards are no objectives",
        ),
        ("mdp", "multi(Tmin=? [ F x=1 ], P>=0.1 [ F x=1 ])", "are no objectives"),
    ],
)
def test_refusals(kind: str, prop: str, message: str) -> None:
    with pytest.raises((LanguageError, HybridError)) as caught:
        hybrid.check(build(LOOPS.format(kind)), prop, backend="cpu")
    assert message in str(caught.value)


def test_rewards_below_zero_of_a_decision_process_are_refused() -> None:
    text = LOOPS.format("mdp").replace("x=1 : 0.1", "x=1 : -0.1")
    with pytest.raises(HybridError, match="no negative rewards"):
        hybrid.check(build(text), 'R{"r",discount=0.9}max=? [ C ]', backend="cpu")


def test_both_spellings_are_one_formula() -> None:
    model = build(LOOPS.format("dtmc")).source
    one, other = (
        resolve_properties(parse_properties(text), model).properties[0].formula
        for text in ('R{"r",discount=0.9}=? [ C ]', 'R{"r"}=? [ Cdiscount=0.9 ]')
    )
    assert one == other and math.isclose(one.discount.value, 0.9)


@pytest.mark.parametrize(("kind", "small"), [("dtmc", "1e-250"), ("mdp", "1e-290")])
def test_the_least_discount_takes_no_entry_for_zero(kind: str, small: str) -> None:
    text = (
        f"{kind} module m s : [0..2]; [] s=0 -> {small} : (s'=1) + 1-{small} : (s'=2); endmodule "
        'rewards "r" s=1 : 5; endrewards'
    )
    optimum = "max" if kind == "mdp" else ""
    found = checked(build(text), f'R{{"r",discount=1e-15}}{optimum}=? [ C ]', backend="cpu")
    exact = 5 * Fraction(small) * Fraction("1e-15")
    assert Fraction(found.lower[0]) <= exact <= Fraction(found.upper[0])
    assert found.upper[0] > 0


def test_what_the_discount_makes_too_large_for_doubles_is_refused() -> None:
    text = 'dtmc module m s : [0..1]; [] s=0 -> (s\'=1); endmodule rewards "r" s=1 : 3e300; endrewards'
    with pytest.raises(PropertyError, match="less than 1.79e308.*divided by the discount 1e-12"):
        hybrid.check(build(text), 'R{"r",discount=1e-12}=? [ C ]', backend="cpu")
    assert hybrid.check(build(text), 'R{"r",discount=0.5}=? [ C ]', backend="cpu").upper >= 3e300


SMALL_STEPS = """
mdp
module m
  s : [0..2];
  [] s=0 -> 1e-307 : (s'=2) + 1-1e-307 : (s'=0);
  [] s=1 -> 2e-307 : (s'=2) + 1-2e-307 : (s'=1);
  [] s=0 -> (s'=1);
  [] s=2 -> true;
endmodule
rewards "r" s=2 : 2e30; endrewards
"""
"""Discounts times these probabilities are next to the least doubles, values are not."""


@pytest.mark.parametrize("options", [{}, {"engine": "explicit"}, {"backend": "reference"}], ids=str)
@pytest.mark.parametrize("d", ["1e-5", "1e-9", "1e-12"])
def test_products_of_discounts_and_probabilities_may_lose_digits(d: str, options: dict[str, object]) -> None:
    """Found by the attack: written out, these products were said to be off by a rounding alone."""
    model = build(SMALL_STEPS)
    discount, reward = Fraction(d), Fraction(2 * 10**30)
    rest = 1 - discount * (1 - Fraction(2, 10**307))
    exact = discount * Fraction(2, 10**307) * (reward / (1 - discount)) / rest
    prop = f'filter(state, R{{"r",discount={d}}}max=? [ C ], s=1)'
    answer = hybrid.check(model, prop, throw=False, **options)
    if d == "1e-12" and options == {"engine": "explicit"}:
        assert "too small a double to be written out" in str(answer.error)
        return
    assert answer.error is None
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-2 * answer.lower
