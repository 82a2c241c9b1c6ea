"""Matrices and rewards against the numbers that the text means."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.exact.reading import ExactModel
from hybrid.matrix.injection.injected import inject_level
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, reward_rates
from mtbdd.language.errors import BuildError
from tests.builders.models import build

UNIT = Fraction(1, 2**53)


def entries(model: SymbolicModel, layer: int) -> dict[tuple[int, int], float]:
    part = inject_level(model.layer_transitions(layer), 0).submatrix(0)
    return {
        (row, column): value
        for row, column, value in zip(
            part.row.tolist(), part.column.tolist(), part.value.tolist(), strict=True
        )
    }


def assert_entries(model: SymbolicModel) -> None:
    """Entries are where the exact ones are, and as close as `entry_units` says."""
    exact = ExactModel(model)
    for number in range(len(model.layers)):
        found = entries(model, number)
        expected = {
            (i, j): p
            for i, (choices, layers) in enumerate(zip(exact.choices, exact.layers, strict=True))
            for choice, layer in zip(choices, layers, strict=True)
            if layer == number
            for j, p in choice.items()
        }
        assert found.keys() == expected.keys()
        for place, value in found.items():
            # Rows of an MDP are divided by their sum where they are used.
            total = sum(p for (i, _), p in found.items() if i == place[0]) if model.is_mdp else 1
            error = abs(Fraction(value) / Fraction(total) - expected[place])
            assert error <= expected[place] * Fraction(model.entry_units + (4 if model.is_mdp else 0)) * UNIT


weights = st.sampled_from(
    ["0.1", "1/3", "0.3-0.2999999", "0.1*(x+1)", "1/(x+y+1)", "0.7-0.2*y+0.1*x", "x*0.1+0.2*y+1e-9",
     "pow(0.3, x+1)", "x>y ? 0.1 : 1/7", "3"]
)  # fmt: skip


@settings(max_examples=25)
@given(st.lists(weights, min_size=1, max_size=3), weights, weights)
def test_rates_are_those_of_the_text(alone: list[str], one: str, other: str) -> None:
    lines = "".join(f"[] x<3 -> {w} : (x'=x+1);" for w in alone)
    model = build(
        f"ctmc module a x : [0..3]; {lines} [s] true -> {one} : (x'=0); endmodule module b y : [0..2]; "
        f"[s] y<2 -> {other} : (y'=y+1) + 0.3 : (y'=0); [] y=2 -> 0.1 : (y'=1); endmodule"
    )
    assert_entries(model)


probabilities = st.sampled_from(["0.1", "1/3", "0.3-0.2999999", "0.1*x", "1/(x+2)", "x/7", "pow(0.3, x+1)"])


@settings(max_examples=25)
@given(st.lists(probabilities, min_size=1, max_size=3), st.sampled_from(["dtmc", "mdp"]))
def test_probabilities_are_those_of_the_text(chosen: list[str], kind: str) -> None:
    lines = "".join(f"[] x<4 -> {p} : (x'=x+1) + 1-({p}) : (x'=0);" for p in chosen)
    model = build(
        f"{kind} module a x : [0..4]; {lines} [] x=4 -> 0.333333:(x'=1) + 0.666666:(x'=4); endmodule"
    )
    assert_entries(model)


def test_cancelling_differences_keep_their_digits() -> None:
    model = build("ctmc module m x : [0..9]; [] x<9 -> 0.3*x - 0.2999999*x + 1e-30 : (x'=x+1); endmodule")
    assert model.entry_units <= 64
    for (i, _), value in entries(model, 0).items():
        if i < 9:
            exact = Fraction(i, 10**7) + Fraction(1, 10**30)
            assert abs(Fraction(value) - exact) <= exact * Fraction(model.entry_units) * UNIT


def test_a_weight_that_is_zero_is_no_transition() -> None:
    model = build(
        "dtmc module m x : [0..2]; [] x=0 -> 0.1*(x+1)+0.2-0.3 : (x'=2) + 1 : (x'=1); "
        "[] x>0 -> true; endmodule"
    )
    assert entries(model, 0).keys() == {(0, 1), (1, 1)}


def test_guards_compare_the_numbers_of_the_text() -> None:
    model = build(
        "dtmc module m x : [0..9]; [] x*0.1 <= 0.3 -> (x'=min(x+1, 9)); [] x*0.1 > 0.3 -> true; endmodule"
    )
    assert model.n_states == 5
    wide = " ".join(f"v{i} : [0..15];" for i in range(5))
    text = f"dtmc module m x : [0..9]; {wide} [] x*0.1 + 0.1*(v0+v1+v2+v3+v4) <= 0.3 -> (x'=min(x+1, 9));"
    assert build(f"{text} [] x*0.1 + 0.1*(v0+v1+v2+v3+v4) > 0.3 -> true; endmodule").n_states == 5


def test_wide_expressions_are_as_exact_as_narrow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """ctmc module m x : [0..6]; y : [0..5];
        [] x<6 -> 0.3*x - 0.2999999*x + pow(y, 2)/7 + 1e-9 : (x'=x+1);
        [] x*0.1 < 0.1*y + 0.3 & y<5 -> (x>y ? 1 : 0.1)*max(0.1, x/3) : (y'=y+1);
        [] true -> 1/(x+y+1) : (x'=floor(x*0.1/0.1)); endmodule"""
    whole = build(text)
    monkeypatch.setattr("mtbdd.build.expressions._GRID_BITS", 0)
    monkeypatch.setattr("mtbdd.build.expressions._LEAF_COMBINATIONS", 1)
    split = build(text)
    assert whole.n_states == split.n_states
    assert_entries(whole)
    assert_entries(split)


# ------------------------------------------------------------------ rewards

ONE = "dtmc module m s : [0..1]; [a] s=0 -> (s'=1); [] s=1 -> true; endmodule "


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("s=0:1e17; s=0:1; s=0:-1e17;", 1.0),
        ("s=0:1e16; s=0:1; [a] s=0:-1e16;", 1.0),
        ("s=0:0.5; [a] s=0:0.25;", 0.75),
        ("s=0:0.1; s=0:0.2; s=0:-0.3;", 0.0),
    ],
)
def test_exact_sums_are_told_exact(items: str, expected: float) -> None:
    model = build(f"{ONE} rewards {items} endrewards")
    rewards, error = enclosed_rewards(model, 0, model.index)
    assert rewards[0] == expected
    assert error is None


@pytest.mark.parametrize(
    "items", ["s=0:1e16; s=0:1;", "s=0:0.1;", "s=0:1/3; [a] s=0:1/3;", "s=0:pow(2,0.5);"]
)
def test_rounded_sums_are_not_told_exact(items: str) -> None:
    model = build(f"{ONE} rewards {items} endrewards")
    rewards, error = enclosed_rewards(model, 0, model.index)
    assert error is not None
    assert 0 < error[0] <= 2 * math.ulp(rewards[0])
    assert error[1] == 0


values = st.sampled_from(["0.1", "1e17", "-1e17", "1", "x*0.1", "1/(x+1)", "-0.3", "0.1*x*x", "x", "1e-20"])


@settings(max_examples=40)
@given(
    st.lists(st.tuples(values, st.booleans()), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(["dtmc", "ctmc"]),
)
def test_rewards_are_within_their_errors(items: list[tuple[str, bool]], wide: bool, kind: str) -> None:
    rows = "".join(f"{'[a] ' * carried} x<3 : {value};" for value, carried in items)
    model = build(
        f"{kind} module m x : [0..3]; [a] x<3 -> 0.33333333:(x'=x+1) + 0.66666666:(x'=0); "
        f"[] true -> 1/3:(x'=0) + 2/3:(x'=x); endmodule rewards {rows} endrewards"
    )
    exact = ExactModel(model)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr("mtbdd.build.rewards._SYMBOLIC_BITS", -1)
        try:
            found, error = enclosed_rewards(model, 0, model.index)
            own, own_error = enclosed_rewards(model, 0, model.index, moves=False)
        except BuildError as refusal:
            assert "cancel" in str(refusal)
            return
    cases = (found, error, [r for (r,) in exact.gains(0)]), (own, own_error, exact.state_rewards(0))
    for rates, bound, expected in cases:
        for i, number in enumerate(expected):
            assert abs(Fraction(rates[i].item()) - number) <= (
                0 if bound is None else Fraction(bound[i].item())
            )
            assert np.sign(rates[i]) == np.sign(number)


def test_rewards_beyond_the_doubles_are_refused() -> None:
    model = build(f"{ONE} rewards s=0:1.5e308; s=0:1.5e308; endrewards")
    with pytest.raises(BuildError, match="less than 1.79e308"):
        reward_rates(model, 0, model.index)


# ------------------------------------------------------------------ units


def assert_units(model: SymbolicModel) -> None:
    """The matrix itself, without shared blocks, is as close as its units say."""
    exact = {(i, j): p for i, (row,) in enumerate(ExactModel(model).choices) for j, p in row.items()}
    units = Fraction(model.layers[0].matrix.units)
    off = [abs(Fraction(value) - exact[place]) / exact[place] for place, value in entries(model, 0).items()]
    assert 0 < max(off) <= units * UNIT
    assert units < 32


def test_products_of_synchronised_commands_count_their_roundings() -> None:
    modules = " ".join(
        f"module m{i} x{i} : [0..1]; [a] true -> {w} : (x{i}'=1-x{i}) + {v} : true; endmodule"
        for i, (w, v) in enumerate([("0.1", "0.3"), ("0.7", "1/3"), ("1.1", "0.9"), ("1/7", "1/9")])
    )
    assert_units(build(f"ctmc {modules}"))


def test_united_values_count_their_distance() -> None:
    model = build(
        "ctmc module m x : [0..2]; [] x=0 -> 1 : (x'=1); [] x=1 -> 1.0000000000000004 : (x'=2); "
        "[] x=2 -> 3 : (x'=0); endmodule"
    )
    assert model.layers[0].matrix.terminals.size == 2
    assert_units(model)


def test_what_is_left_of_large_rewards_carries_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtbdd.build.rewards._SYMBOLIC_BITS", -1)
    model = build(f"{ONE} rewards s=0:1e17; s=0:1; s=0:1e-20; s=0:-1e17; endrewards")
    rewards, error = enclosed_rewards(model, 0, model.index)
    assert error is not None
    assert abs(Fraction(rewards[0].item()) - 1 - Fraction("1e-20")) <= error[0] < 1e-15


# ------------------------------------------------------------------ states that were listed


def as_users_see(model: SymbolicModel) -> list[Any]:
    """What the states of a model offer and earn, in the order of the text, with exact numbers."""
    exact = ExactModel(model)
    order = range(model.n_states) if model.numbering is None else model.numbering.tolist()
    place = {index: number for number, index in enumerate(order)}
    gains = [exact.gains(k) for k in range(len(model.source.rewards))]
    own = [exact.state_rewards(k) for k in range(len(model.source.rewards))]
    found = []
    for i in order:
        offers = [
            (sorted((place[j], p) for j, p in choice.items()), [earned[i][k] for earned in gains])
            for k, choice in enumerate(exact.choices[i])
        ]
        found.append((sorted(offers), [rewards[i] for rewards in own]))
    return found


THIRDS = """
{kind}
formula busy = mod(x, 3) = 0;
label "top" = x=6 & y*0.1 <= 0.1;
module a x : [0..6]; f : bool;
  [] x<6 & (busy | f) -> 1/3 : (x'=x+1) + 0.6 : (f'=!f) + 1/15 : true;
  [go] x<6 & !f -> 0.1*(x+1) : (x'=min(x+2, 6)) + 1-0.1*(x+1) : (x'=0);
endmodule
module b y : [0..2];
  [go] y<2 -> 0.3 : (y'=y+1) + 0.7 : true;
  [go] y>0 -> 2/7 : (y'=0) + 5/7 : true;
  [other] y=2 & x>2 -> (y'=1);
endmodule
{system}
rewards "r" busy : 0.1*x; [go] x>y : 1/3; [] f : 0.7; [other] y=2 : 1/9; "top" : 1/11; endrewards
"""


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
@pytest.mark.parametrize(
    "system", ["", "system a ||| (b {other <- last}) endsystem", "system (a || b) / {go} endsystem"]
)
def test_f1_listed_states_keep_the_numbers_of_the_text(kind: str, system: str) -> None:
    text = THIRDS.format(kind=kind, system=system)
    diagrams = hybrid.parse(text, build="symbolic")
    # In another order the diagram numbers states otherwise than the text does.
    listed = hybrid.parse(text, build="explicit", order="reversed")
    assert listed.given is not None and listed.given.is_listed
    assert as_users_see(listed) == as_users_see(diagrams)


def test_f1_listed_states_without_the_compiled_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.models.exploration.explore.MOST_INSTRUCTIONS", 0)
    text = THIRDS.format(kind="mdp", system="")
    assert as_users_see(hybrid.parse(text, build="explicit")) == as_users_see(
        hybrid.parse(text, build="symbolic")
    )


WALK = """
{kind} module m s:[0..3]; [] s=0 -> 1/3:(s'=1)+0.6:(s'=2)+1/15:(s'=0); [] s=1 -> 0.7:(s'=3)+0.3:(s'=0);
[] s>1 -> true; endmodule rewards "c" s=0 : 0.1; endrewards"""


@pytest.mark.parametrize("order", ["model", "reversed"])
@pytest.mark.parametrize("build", ["auto", "symbolic", "explicit"])
@pytest.mark.parametrize(("kind", "opt"), [("dtmc", ""), ("ctmc", ""), ("mdp", "max")])
def test_f1_exact_answers_and_ties_in_every_build(build: Any, order: Any, kind: str, opt: str) -> None:
    model = hybrid.parse(WALK.format(kind=kind), build=build, order=order)
    assert hybrid.check(model, f"P{opt}=? [ F s=3 ]", exact=True).exact == Fraction(7, 25)
    assert hybrid.check(model, "P>=0.28 [ F s=3 ]").value is True
    assert hybrid.check(model, "P>0.28 [ F s=3 ]").value is False
    assert hybrid.check(model, f'R{{"c"}}{opt}=? [ F s>1 ]', exact=True).exact == Fraction(3, 25)


@pytest.mark.parametrize("order", ["model", "reversed"])
@pytest.mark.parametrize("build", ["symbolic", "explicit"])
def test_f1_the_chain_of_a_scheduler_keeps_the_numbers_of_the_text(build: Any, order: Any) -> None:
    other = 'endmodule rewards "r" s=0 : 0.1; [a] true : 1/3; endrewards rewards'
    text = (
        WALK.format(kind="mdp")
        .replace("[] s=0", "[b] s=0 -> (s'=2); [a] s=0")
        .replace("endmodule rewards", other)
    )
    model = hybrid.parse(text, build=build, order=order)
    scheduler = hybrid.check(model, "Pmax=? [ F s=3 ]", scheduler=True).scheduler
    chain = model.with_scheduler(scheduler)
    assert hybrid.check(chain, "P=? [ F s=3 ]", exact=True).exact == Fraction(7, 25)
    assert hybrid.check(chain, 'R{"r"}=? [ F s>1 ]', exact=True).exact == Fraction(13, 25)
    assert hybrid.check(chain, "P>=0.28 [ F s=3 ]").value is True
