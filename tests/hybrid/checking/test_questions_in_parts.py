"""Questions that need more than products in parts: conditions, told states, budgets, several objectives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.multi.weighted_sum import WeightedSumSolver
from hybrid.analysis.reward_bounded import BudgetSweep
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.checking import filters
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.checking.filters import gathered
from hybrid.checking.in_parts import in_parts, options_of_parts
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import split_by_reward
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import states_from
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.mdp_texts import LOOPING_CHOICES
from tests.builders.models import build
from tests.builders.random_budgets import DrawnRewards
from tests.exploring import each, rounds
from tests.oracles.budgets import bounded_until
from tests.oracles.lasso_words import random_tree, tree_text
from tests.oracles.ltl import chain_probabilities
from tests.oracles.optima import assert_encloses
from tests.oracles.several import random_small_mdp, small_mdp_text

PARTS = (2, 3, 2, 3, 7)

WALK = """
ctmc
const int n = 6;
module walk
  y : [0..1] init 0;
  x : [0..n] init 1;
  [] x<n -> 1.5 : (x'=x+1);
  [] x>0 -> 1 : (x'=x-1);
  [] y=0 -> 0.5 : (y'=1);
endmodule
rewards "up" [] x<n : 1; [] x>3 : 2; endrewards
"""

LOOPS = f"""{LOOPING_CHOICES}
rewards "steps" x<8 : 1; endrewards
rewards "some" [] x=3 : 1; [] x=7 : 2; [] x=1 : 3; endrewards
rewards "none" x>11 : 1; endrewards
"""

_WITHOUT_VALUES = re.compile(r"0\.\d+")

Owners = tuple[tuple[Node, ...], np.ndarray]


def dealt(model: SymbolicModel, parts: int, rng: np.random.Generator) -> Owners:
    """Return who owns which states, drawn at random, and the part of every state."""
    parts = min(parts, model.n_states)
    part = rng.integers(parts, size=model.n_states)
    return tuple(states_from(model.manager, model.index, part == p) for p in range(parts)), part


def answer_of(
    model: SymbolicModel, text: str, owners: Sequence[Node] | None = None, **options: Any
) -> Answer:
    """Return the answer of one part, or of parts that own these states; the same in all of them."""
    (prop,) = resolve_properties(parse_properties(text), model.source).properties
    chosen = CheckOptions.of(**options)
    if owners is None:
        return Checker(model, chosen).answer(prop)
    return in_parts(
        model, len(owners), lambda own: Checker(own, options_of_parts(chosen)).answer(prop), tuple(owners)
    )


def values_of(model: SymbolicModel, text: str, dealing: Owners, **options: Any) -> StateValues:
    """Return the values of all states, found in parts."""
    (prop,) = resolve_properties(parse_properties(text), model.source).properties
    chosen = options_of_parts(CheckOptions.of(**options))

    def run(own: SymbolicModel) -> StateValues:
        found = Checker(own, chosen).every_state(prop.formula)
        together = gathered(own.communicator, found, np.arange(found.values.size))
        assert isinstance(together, StateValues)
        return together

    owners, part = dealing
    return in_parts(model, len(owners), run, owners).at(np.argsort(np.argsort(part, kind="stable")))


def same(one: Answer, many: Answer) -> bool:
    """Whether answers agree within their bounds, and list the same states in the same order."""
    if one.error is not None or many.error is not None:
        return _WITHOUT_VALUES.sub("", str(one.error)) == _WITHOUT_VALUES.sub("", str(many.error))
    if [state for state, _ in one.listing] != [state for state, _ in many.listing]:
        return False
    if any(abs(float(a) - float(b)) > 1e-6 for (_, a), (_, b) in zip(one.listing, many.listing, strict=True)):
        return False
    if isinstance(one.value, bool) or one.lower is None or many.lower is None:
        return one.value == many.value
    assert one.upper is not None and many.upper is not None
    return max(one.lower, many.lower) <= min(one.upper, many.upper)


# ------------------------------------------------------------------ conditions


@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_conditions_of_random_chains(kind: str, rng: np.random.Generator) -> None:
    between = number = 0
    while number < rounds(6):
        labelled = random_labelled(rng, kind)
        trees = [random_tree(rng, int(rng.integers(2, 5)), 3) for _ in range(2)]
        both = chain_probabilities(labelled.rows, labelled.letters, ("&", *trees))
        given = chain_probabilities(labelled.rows, labelled.letters, trees[1])
        if not any(0 < p < q for p, q in zip(both, given, strict=True)):
            continue
        number += 1
        model = build(labelled.text())
        owners, _ = dealt(model, PARTS[number % len(PARTS)], rng)
        path, condition = (tree_text(tree, LABELS) for tree in trees)
        for s, (p, q) in enumerate(zip(both, given, strict=True)):
            text = f"filter(state, P=? [ ({path}) || ({condition}) ], s={s})"
            found = answer_of(model, text, owners, backend="cpu")
            if q == 0:
                assert found.error is not None and "condition after '||' has probability 0" in found.error
                continue
            assert found.error is None and found.lower is not None and found.upper is not None
            assert Fraction(found.lower) <= p / q <= Fraction(found.upper) and found.proven
            between += 0 < p / q < 1
    assert between


# ------------------------------------------------------------------ filters that tell states

VALUE = "P=? [ F<=1 x=n ]"
FILTERS = [
    f"filter(print, {VALUE})", f"filter(printall, {VALUE}, x>1)", f"filter(argmin, {VALUE}, x<n & y=1)",
    f"filter(argmax, {VALUE})", f"filter(first, {VALUE}, x>2)", f"filter(state, {VALUE}, x=2 & y=1)",
    f"filter(state, {VALUE}, x>2)", "filter(print, x>9)", "filter(print, x=2)",
    "filter(first, P>0.5 [ F<=1 x=n ], x>1)", "filter(first, x, x>9)", "filter(print, P<0.01 [ F<=1 x=n ])",
    "filter(printall, P>0.01 [ F<=1 x=n ], x>2)", "filter(print, x, x<3)",
    "filter(sum, filter(first, x, x>2) + x, x<4)",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "order"),
    each(FILTERS, ["model", "auto"]),
)
def test_filters_that_tell_states(text: str, order: Any, rng: np.random.Generator) -> None:
    model = hybrid.parse(WALK, order=order)
    one = answer_of(model, text)
    parts = PARTS[FILTERS.index(text) % len(PARTS)]
    if order == "model":
        many = answer_of(model, text, dealt(model, parts, rng)[0])
    else:
        many = hybrid.check(model, text, ranks=parts, throw=False)
    assert same(one, many), (parts, one.value, many.value, one.error, many.error)


def test_a_long_listing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "MOST_LISTED", 3)
    model = build(WALK)
    assert len(hybrid.check(model, "filter(print, x, x=2)", ranks=2).listing) == 2
    for operator in ("print", "printall", "argmax"):
        with pytest.raises(
            UnsupportedError, match=rf"filter\({operator}, ...\) lists \d+ states .* 3 at most"
        ):
            hybrid.check(model, f"filter({operator}, x>2 ? 1 : 0, x>1)", ranks=2)


# ------------------------------------------------------------------ bounds on rewards


@pytest.mark.parametrize(("kind", "method"), each(["dtmc", "mdp"], ["optimistic", "interval"]))
def test_budgets_of_random_models(kind: str, method: Any, rng: np.random.Generator) -> None:
    for number in range(rounds(9)):
        drawn = DrawnRewards(rng, kind, Fraction(1))
        model = build(drawn.text)
        target, budget = {int(rng.integers(0, drawn.n))}, int(rng.integers(0, 6))
        safe = set(range(drawn.n)) - {int(rng.integers(0, drawn.n))}
        left, right = (" | ".join(f"s={s}" for s in sorted(own)) for own in (safe, target))
        for optimum in ("",) if kind == "dtmc" else ("min", "max"):
            exact = bounded_until(drawn.choices, safe, target, budget, optimum != "min")[budget]
            dealing = dealt(model, PARTS[number % len(PARTS)], rng)
            text = f'P{optimum}=? [ ({left}) U{{"r"}}<={budget} ({right}) ]'
            found = values_of(model, text, dealing, backend="cpu", method=method)
            assert_encloses(found, exact)


BUDGETS = [
    (WALK, 'P=? [ F{"up"}<=9 x=n ]'), (WALK, 'P=? [ x>0 U{"up"}<=9 x=n ]'), (WALK, 'P=? [ G{"up"}<=9 x<n ]'),
    (WALK, 'quantile(min B, P>=0.3 [ F{"up"}<=B x=n ])'), (WALK, 'quantile(max B, P<0.3 [ F{"up"}<=B x=n ])'),
    (WALK, 'quantile(min B, P>=0.99999 [ x>0 U{"up"}<=B x=n ])'),
    *((LOOPS, f'P{optimum}=? [ F{{"{name}"}}<=5 {target} ]')
      for optimum in ("min", "max") for name in ("steps", "some", "none") for target in ("x=9", "x>=9")),
    *((LOOPS, f'quantile(min B, P{optimum}>=0.3 [ F{{"{name}"}}<=B x>=9 ])')
      for optimum in ("min", "max") for name in ("steps", "some", "none")),
    (LOOPS, 'quantile(max B, Pmax<=0.3 [ F{"some"}<=B x=9 ])'),
]  # fmt: skip


def compared(source: str, text: str, turn: int, rng: np.random.Generator) -> tuple[Answer, Answer]:
    """Return the answer of one part and that of several, others at every turn, which must be the same."""
    model, parts = build(source), PARTS[turn % len(PARTS)]
    one, many = answer_of(model, text), answer_of(model, text, dealt(model, parts, rng)[0])
    assert same(one, many), (parts, one.value, many.value, one.error, many.error)
    return one, many


@pytest.mark.parametrize(("source", "text"), BUDGETS[1::2])
def test_budgets_and_quantiles_of_examples(source: str, text: str, rng: np.random.Generator) -> None:
    compared(source, text, BUDGETS.index((source, text)), rng)


def test_budgets_have_vectors_of_own_states_alone() -> None:
    model = build(WALK)
    target = model.states(resolve_properties(parse_properties("x=n"), model.source).properties[0].formula)

    def held(own: SymbolicModel) -> list[int]:
        split, options = split_by_reward(own, 0), options_of_parts(CheckOptions())
        sweep = BudgetSweep(own, split, own.reachable, target, False, options, SolveStatistics(), 1e-6)
        sweep.advance()
        sizes = own.index.size, sweep.values().values.size, sweep._window[0].lower.size
        return own.communicator.gather(sizes).astype(int).reshape(-1).tolist()

    part = np.arange(14) // 5
    owners = tuple(states_from(model.manager, model.index, part == p) for p in range(3))
    sizes = np.reshape(in_parts(model, 3, held, owners), (3, 3))
    assert sizes[:, 0].tolist() == sizes[:, 1].tolist() == [5, 5, 4]
    assert (sizes[:, 2] <= sizes[:, 0]).all() and sizes[:, 2].sum() == 12


def test_quantiles_of_random_models(rng: np.random.Generator) -> None:
    values = set()
    for number in range(rounds(12)):
        model = build(DrawnRewards(rng, "mdp", Fraction(1), initial=0).text)
        target = model.n_states - 1
        text = f'quantile(min B, P{("min", "max")[number % 2]}>=0.41 [ F{{"r"}}<=B s={target} ])'
        one, many = (
            answer_of(model, text),
            answer_of(model, text, dealt(model, PARTS[number % len(PARTS)], rng)[0]),
        )
        assert same(one, many), (one.value, many.value, one.error, many.error)
        values.add(one.value)
    assert len(values - {None, np.inf}) > 1, values


# ------------------------------------------------------------------ several objectives

RETRIES = """
mdp
module m
  x : [0..5] init 0;
  [] x<4 -> 0.9 : (x'=x+1) + 0.1 : (x'=0);
  [] x<4 -> 0.5 : (x'=x+1) + 0.5 : (x'=4);
  [] x=2 -> 0.7 : (x'=5) + 0.3 : (x'=3);
  [] x>=4 -> true;
endmodule
rewards "cost" [] x<4 : 1; endrewards
rewards "win" x=2 : 2; x=3 : 1; endrewards
"""

SEVERAL = [
    (LOOPS, 'multi(Pmax=? [ F x=9 ], R{"steps"}<=6 [ C ])'),
    (LOOPS, "multi(P>=0.2 [ F x=9 ], P>=0.5 [ F x=10 ])"),
    (LOOPS, "multi(P>=0.3 [ F x=9 ], P>=0.7 [ F x=10 ])"),
    (LOOPS, "multi(Pmax=? [ F x=9 ], Pmax=? [ F x=11 ])"),
    (LOOPS, 'multi(Pmax=? [ F x=9 ], R{"steps"}min=? [ C ])'),
    (LOOPS, "multi(Pmax=? [ G F x=4 ], P>=0.3 [ F x=10 ])"),
    (LOOPS, "multi(Pmax=? [ (F x=5) & (F x=10) ], P>=0.1 [ F x=9 ])"),
    (LOOPS, 'multi(R{"some"}min=? [ C ], R{"steps"}min=? [ C ])'),
    (LOOPS, 'multi(R{"steps"}max=? [ C ], P>=0.1 [ F x=9 ])'),
    (LOOPS, 'multi(R{"steps"}max=? [ C<=5 ], P>=0.1 [ F x=9 ])'),
    (RETRIES, 'multi(R{"cost"}min=? [ C ], R{"win"}max=? [ C ])'),
    (RETRIES, 'multi(R{"cost"}<=5 [ C ], R{"win"}max=? [ C ])'),
    (RETRIES, 'multi(R{"cost"}<=5 [ C ], R{"win"}>=4 [ C ])'),
    (RETRIES, 'multi(R{"win"}max=? [ C ], P>=0.5 [ F x=5 ])'),
    (RETRIES, 'multi(R{"cost"}min=? [ C ], P>=0.5 [ F x=5 ], R{"win"}>=3 [ C ])'),
]  # fmt: skip


def no_point_is_beyond(one: Answer, many: Answer) -> bool:
    """Whether what one search has reached lies within what the other one says can be."""
    assert one.several is not None and many.several is not None
    points, bounds = one.several.found.found.search, many.several.found.found.search
    assert points is not None and bounds is not None
    return all(
        np.dot(point.lower, half.weights) <= half.most + 1e-12
        for point in points.points
        for half in bounds.half_spaces
    )


@pytest.mark.parametrize(("source", "text"), SEVERAL[::3])
def test_several_objectives_of_examples(source: str, text: str, rng: np.random.Generator) -> None:
    one, many = compared(source, text, SEVERAL.index((source, text)), rng)
    if one.several is not None and one.several.found.found.search is not None:
        assert no_point_is_beyond(one, many) and no_point_is_beyond(many, one)


def test_several_objectives_of_random_models(rng: np.random.Generator) -> None:
    shapes, answered, number = [(2, 0, False), (1, 1, False), (0, 2, False), (1, 2, True)], 0, 0
    while answered < rounds(8):
        n_targets, n_rewards, counted = shapes[number % 4]
        mdp = random_small_mdp(rng, n_targets, n_rewards, counted)
        model = build(small_mdp_text(mdp))
        asked = [f'P{rng.choice(("min", "max"))}=? [ F "t{i}" ]' for i in range(n_targets)]
        for j, steps in enumerate(mdp.steps):
            within = "" if steps is None else f"<={steps}"
            asked.append(f'R{{"r{j}"}}{rng.choice(("min", "max"))}=? [ C{within} ]')
        text = f"multi({', '.join(asked)})"
        one, many = (
            answer_of(model, text),
            answer_of(model, text, dealt(model, PARTS[number % len(PARTS)], rng)[0]),
        )
        number += 1
        assert same(one, many), (text, one.value, many.value, one.error, many.error)
        if one.several is not None and one.several.found.found.search is not None:
            assert no_point_is_beyond(one, many) and no_point_is_beyond(many, one)
            answered += 1


def test_every_part_adds_what_rounding_may_cost_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    start = WeightedSumSolver._start

    def noted(weighing: WeightedSumSolver, *arguments: Any) -> Any:
        found = start(weighing, *arguments)
        told.append(found[2])
        return found

    monkeypatch.setattr(WeightedSumSolver, "_start", noted)
    model = build(RETRIES)
    owners = tuple(states_from(model.manager, model.index, np.arange(6) // 4 == p) for p in range(2))
    found = answer_of(model, 'multi(R{"cost"}min=? [ C ], R{"win"}max=? [ C ])', owners)
    assert found.error is None and told
    assert all(count % 2 == 0 for count in Counter(told).values())
