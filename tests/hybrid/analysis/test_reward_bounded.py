"""Bounds on rewards, against budgets unfolded by definition in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.reward_bounded import BudgetSweep
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import HybridError, NotExactError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rewarded_choices import RewardedChoices
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.reward_split import split_by_reward
from tests.builders.chain_texts import FALLING_WALK
from tests.builders.known_answers import ON_THE_HOST
from tests.builders.models import build
from tests.builders.random_budgets import DrawnRewards
from tests.exploring import rounds
from tests.oracles.budgets import bounded_until
from tests.oracles.optima import assert_encloses, checked

WAYS = [*ON_THE_HOST, {"backend": "cpu", "representation": "tasks"}]
ON_A_DEVICE: list[dict[str, object]] = [
    {"backend": "gpu"},
    {"backend": "gpu", "engine": "explicit"},
]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(kind, options, marks=marks)
        for k, kind in enumerate(["dtmc", "mdp"])
        for found, marks in ((WAYS[k::2], ()), (ON_A_DEVICE, pytest.mark.gpu))
        for options in found
    ],
    ids=str,
)
def test_random_models(kind: str, options: dict[str, object], rng: np.random.Generator) -> None:
    for number in range(rounds(24)):
        unit = (Fraction(1), Fraction(1, 2), Fraction(3))[number % 3]
        drawn = DrawnRewards(rng, kind, unit)
        is_listed = kind == "mdp" and number % 4 == 0
        model = hybrid.parse(drawn.text, build="explicit") if is_listed else build(drawn.text)
        every = set(range(drawn.n))
        safe = every - {int(rng.integers(0, drawn.n))} if number % 2 else every
        target = {int(rng.integers(0, drawn.n))}
        budget = int(rng.integers(0, 8))
        left = " | ".join(f"s={s}" for s in sorted(safe))
        right = " | ".join(f"s={s}" for s in sorted(target))
        bound = f"<={float(budget * unit)}" if number % 5 else f"<{float((budget + 1) * unit)}"
        spelling = (f'{{"r"}}{bound}', f'{{rew{{"r"}}{bound}}}', f"^{{rew{{1}}{bound}}}")[number % 3]
        for optimum in ("",) if kind == "dtmc" else ("min", "max"):
            exact = bounded_until(drawn.choices, safe, target, budget, optimum != "min")[budget]
            found = checked(model, f"P{optimum}=? [ ({left}) U{spelling} ({right}) ]", **options)
            assert isinstance(found, StateValues)
            assert_encloses(found, exact)
            assert_sharp(found, exact)
            # The complement of the same question.
            turned = {"": "", "min": "max", "max": "min"}[optimum]
            if safe == every:
                other = checked(model, f"P{turned}=? [ G{spelling} !({right}) ]", **options)
                assert isinstance(other, StateValues)
                assert_encloses(other, [1 - v for v in exact], absolute=1e-7)


def assert_sharp(found: StateValues, exact: list[Fraction]) -> None:
    """Check that 0 and 1 are known exactly, and other values known to be neither."""
    for i, value in enumerate(exact):
        low, high = found.lower[i], found.upper[i]
        if value in (0, 1):
            assert low == high == value
            continue
        assert low > 0 or (found.open_lower is not None and found.open_lower[i])
        assert high < 1 or (found.open_upper is not None and found.open_upper[i])


# ------------------------------------------------------------------ by hand

WALK = (
    FALLING_WALK
    + """rewards "steps" s<2 : 1; endrewards
rewards "moves" [go] true : 1/10; endrewards
rewards "never" s=3 : 5; endrewards
rewards "less" s=0 : -1; endrewards
rewards "root" s=0 : pow(2,0.5); endrewards
"""
)


@pytest.mark.parametrize(
    ("bound", "exact"),
    [
        ('{"steps"}<=0', "0"),
        ('{"steps"}<=1.99', "0"),
        ('{"steps"}<=2', "1/4"),
        ('{"steps"}<3', "1/4"),
        ('{"steps"}<=3', "3/8"),
        ('{"moves"}<=0.2', "1/4"),
        ('{"moves"}<0.3', "1/4"),
        ('{"moves"}<=0.3', "3/8"),
        ('{"never"}<=0', "4/9"),
        ('{"steps"}<=99999', "4/9"),
    ],
)
def test_the_ends_of_bounds_are_exact_numbers(bound: str, exact: str) -> None:
    found = checked(build(WALK), f"P=? [ F{bound} s=2 ]", backend="cpu")
    assert isinstance(found, StateValues)
    assert_encloses(found.at(slice(0, 1)), [Fraction(exact)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('P=? [ F{"less"}<=3 s=2 ]', "rewards of at least 0, got -1.0"),
        ('P=? [ F{"root"}<=3 s=2 ]', "rational numbers"),
        ('P=? [ F{"steps"}<=100000 s=2 ]', "takes 100001 sweeps over the matrix, .* 100000 are allowed"),
        ('P=? [ F{"moves"}<=1e9 s=2 ]', "units of 1/10 takes 10000000001 sweeps"),
        ('P=? [ F{"steps"}<=2 s=2 || F s=2 ]', "stands on a path operator of its own"),
        ('P=? [ (F{"steps"}<=2 s=2) & (G s<3) ]', "stands on a path operator of its own"),
        ('R{"steps"}=? [ F{"steps"}<=2 s=2 ]', "stands on a path operator of its own"),
        ('A [ F{"steps"}<=2 s=2 ]', "take no bounds on rewards"),
    ],
)
def test_what_no_bound_can_be_put_on_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(HybridError, match=message):
        checked(build(WALK), text, backend="cpu")


def test_methods_without_bounds_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="the method jacobi gives no bounds"):
        checked(build(WALK), 'P=? [ F{"steps"}<=2 s=2 ]', method="jacobi")


def test_a_ctmc_earns_by_transitions_alone() -> None:
    text = WALK.replace("dtmc", "ctmc").replace("1/2:(s'=s+1)", "4:(s'=s+1)").replace("1/4", "2")
    model = build(text)
    found = checked(model, 'P=? [ F{"moves"}<=0.3 s=2 ]', backend="cpu")
    assert isinstance(found, StateValues)
    assert_encloses(found.at(slice(0, 1)), [Fraction(3, 8)])
    with pytest.raises(HybridError, match="states of a CTMC earn over time"):
        checked(model, 'P=? [ F{"steps"}<=2 s=2 ]', backend="cpu")


def test_transition_rewards_of_a_model_without_a_text_are_refused() -> None:
    matrix = np.array([[0.5, 0.5], [0.0, 1.0]])
    model = hybrid.from_scipy(matrix, type="dtmc", initial=0, labels={"a": [1]}, rewards={"x": [1.0, 0.0]})
    answer = hybrid.check(model, 'P=? [ F{"x"}<=2 "a" ]')
    assert answer.lower <= 0.75 <= answer.upper and answer.upper - answer.lower < 1e-9


def test_transition_rewards_of_a_chain_whose_states_are_listed_are_refused() -> None:
    with pytest.raises(HybridError, match="whose states are listed .* choose build='symbolic'"):
        checked(hybrid.parse(WALK, build="explicit"), 'P=? [ F{"moves"}<=0.3 s=2 ]')


# lemma: end-components
def test_free_end_components_are_no_way_to_wait() -> None:
    """Between 0 and 1 a scheduler may go round for nothing: the greatest leaves, the least stays."""
    text = """
    mdp
    module m s : [0..3];
      [a] s=0 -> (s'=1);
      [b] s=1 -> (s'=0);
      [c] s=1 -> 1/3:(s'=2) + 2/3:(s'=3);
      [d] s=0 -> 1/2:(s'=2) + 1/2:(s'=0);
      [e] s>1 -> true;
    endmodule
    rewards "r" [d] true : 1; endrewards
    """
    model = build(text)
    for budget, best in [(0, "1/3"), (1, "2/3"), (2, "5/6")]:
        found = checked(model, f'Pmax=? [ F{{"r"}}<={budget} s=2 ]', backend="cpu")
        assert isinstance(found, StateValues)
        assert_encloses(found.at(slice(0, 2)), [Fraction(best)] * 2)
        least = checked(model, f'Pmin=? [ F{{"r"}}<={budget} s=2 ]', backend="cpu")
        assert isinstance(least, StateValues)
        assert_encloses(least.at(slice(0, 2)), [Fraction(0)] * 2)


def test_tiny_probabilities_are_not_lost() -> None:
    text = """
    dtmc
    module m s : [0..2];
      [] s=0 -> 1e-300:(s'=1) + 1-1e-300:true;
      [] s=1 -> 1e-300:(s'=2) + 1-1e-300:(s'=1);
    endmodule
    rewards "r" s<2 : 1; endrewards
    """
    model = build(text)
    found = checked(model, 'P=? [ F{"r"}<=5 s=2 ]', backend="cpu")
    assert isinstance(found, StateValues)
    assert found.lower[0] == 0 and 0 < found.upper[0] < 1e-290 and found.open_lower is not None
    (truth,) = {bool(checked(model, 'P>0 [ F{"r"}<=5 s=2 ]', backend="cpu").values[0])}
    assert truth
    nothing = checked(model, 'P=? [ F{"r"}<=1 s=2 ]', backend="cpu")
    assert nothing.values[0] == nothing.upper[0] == 0


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('P>=0.25 [ F{"steps"}<=2 s=2 ]', True),
        ('P>0.25 [ F{"steps"}<=2 s=2 ]', False),
        ('P<=0.75 [ G{"moves"}<=0.2 s!=2 ]', True),
        ('P<0.75 [ G{"moves"}<=0.2 s!=2 ]', False),
        ('P>=0.375 [ s<2 U{"steps"}<4 s=2 ]', True),
    ],
)
def test_ties_are_decided_in_rational_numbers(text: str, holds: bool) -> None:
    answer = hybrid.check(hybrid.parse(WALK), text, backend="cpu")
    assert answer.value is holds and answer.kind == "exact"


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_exact_values_of_random_models(kind: str, rng: np.random.Generator) -> None:
    met = 0
    for _ in range(rounds(30)):
        drawn = DrawnRewards(rng, kind, Fraction(1, 2))
        model = build(drawn.text)
        goal, budget = int(rng.integers(0, drawn.n)), int(rng.integers(0, 6))
        every = set(range(drawn.n))
        for optimum in ("",) if kind == "dtmc" else ("min", "max"):
            exact = bounded_until(drawn.choices, every, {goal}, budget, optimum != "min")[budget]
            text = f'P{optimum}=? [ F{{"r"}}<={budget / 2} s={goal} ]'
            resolved = resolve_properties(parse_properties(text), model.source, {}).properties[0].formula
            try:
                assert ExactFormulas(model, model.states).values(resolved) == exact
                met += 1
            except NotExactError:
                # Rows of chains that earn several rewards; a process is never refused.
                assert kind == "dtmc"
    assert met


def test_upper_bounds_of_a_budget_come_from_upper_bounds_of_lesser_ones() -> None:
    """A precision so coarse that every budget loses a digit: what is lost adds up over ten of them."""
    text = """
    dtmc
    module m s : [0..2];
      [] s=0 -> 8/10:true + 19/100:(s'=1) + 1/100:(s'=2);
      [] s=1 -> 9/10:(s'=0) + 1/10:(s'=1);
      [] s=2 -> true;
    endmodule
    rewards "r" s=1 : 1; endrewards
    """
    model = build(text)
    path = parse_properties('P=? [ F{"r"}<=9 s=2 ]')
    formula = resolve_properties(path, model.source, {}).properties[0].formula
    exact, target = ExactFormulas(model, model.states).values(formula), formula.path.right
    sweep = BudgetSweep(
        model, split_by_reward(model, 0), model.reachable, model.states(target), True,
        CheckOptions.of(backend="cpu", method="interval"), SolveStatistics(), 0.4,
    )  # fmt: skip
    for _ in range(10):
        sweep.advance()
    found = sweep.values()
    assert all(
        Fraction(float(low)) <= value <= Fraction(float(high))
        for low, high, value in zip(found.lower, found.upper, exact, strict=True)
    )
    assert found.upper[0] > found.lower[0]


# ------------------------------------------------------------------ errors of a budget, one by one


def budgets_of(text: str) -> BudgetSweep:
    """Budgets of reaching the last state."""
    model = build(text)
    goal = parse_properties('P=? [ F "goal" ]')
    formula = resolve_properties(goal, model.source, {}).properties[0].formula
    target = model.states(formula.path.right)
    split = split_by_reward(model, 0)
    return BudgetSweep(
        model, split, model.reachable, target, True, CheckOptions.of(backend="cpu"), SolveStatistics(), 1e-9
    )


def taken_gains(monkeypatch: pytest.MonkeyPatch, sweep: BudgetSweep, state: int) -> tuple[Fraction, Fraction]:
    """What a state's choice is told to be worth at once, at least and at most, in the next budget."""
    told: list[float] = []
    set_rewards = RewardedChoices.set_rewards

    def keep(operator: RewardedChoices, gains: list[np.ndarray]) -> None:
        told.append(float(gains[0][state]))
        set_rewards(operator, gains)

    with monkeypatch.context() as patch:
        patch.setattr(RewardedChoices, "set_rewards", keep)
        sweep.advance()
    return Fraction(min(told[-2:])), Fraction(max(told[-2:]))


TWICE = """dtmc
module m s : [0..3];
  [] s=0 -> {p}:(s'=1) + 1-{p}:(s'=3);
  [] s=1 -> {q}:(s'=2) + 1-{q}:(s'=3);
  [] s>1 -> true;
endmodule
label "goal" = s=2;
rewards s<2 : 1; endrewards
"""


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ("0.7", "0.1"),
        ("0.9", "0.7"),
        ("0.3", "0.9"),
        ("0.6", "0.7"),
        ("1e-162", "3.7e-162"),
        ("1e-162", "2e-162"),
    ],
)
def test_gains_of_a_budget_lie_between_those_told(monkeypatch: pytest.MonkeyPatch, p: str, q: str) -> None:
    """Decimals and their products are rounded; those below the least double are lost or become it."""
    sweep = budgets_of(TWICE.format(p=p, q=q))
    sweep.advance()
    for state, exact in ((1, Fraction(q)), (0, Fraction(p) * Fraction(q))):
        low, high = taken_gains(monkeypatch, sweep, state)
        assert low <= exact <= high


FREE = """dtmc
module m s : [0..6];
  [] s<4 -> {p}:(s'=s+1) + 1-{p}:(s'=6);
  [] s=4 -> {q}:(s'=5) + 1-{q}:(s'=6);
  [] s>4 -> true;
endmodule
label "goal" = s=5;
rewards s=4 : 1; endrewards
"""


# lemma: directed-steps
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["up", "down"])
def test_steps_without_reward_may_each_be_off_by_their_slack(
    monkeypatch: pytest.MonkeyPatch, sign: float
) -> None:
    """Every step is rounded as far as its slack allows for, always in one direction."""
    sweep = budgets_of(FREE.format(p="0.5", q="0.5"))
    improve = RewardedChoices.improve

    def rough(operator: RewardedChoices, x: np.ndarray, out: np.ndarray, *more: float) -> None:
        improve(operator, x, out, *more)
        out *= 1.0 + 0.99 * sign * operator.slack

    monkeypatch.setattr(RewardedChoices, "improve", rough)
    for _ in range(2):
        sweep.advance()
    found = sweep.values()
    assert Fraction(float(found.lower[0])) <= Fraction(1, 32) <= Fraction(float(found.upper[0]))
    assert found.upper[0] - found.lower[0] < 1e-11


@pytest.mark.parametrize("part", ["3.7", "2"])
def test_steps_without_reward_may_underflow(part: str) -> None:
    """What is gained is a number as others; what steps make of it is a part of the least double."""
    sweep = budgets_of(FREE.format(p="1e-11", q=part + "e-280"))
    for _ in range(2):
        sweep.advance()
    found, exact = sweep.values(), Fraction(part) * Fraction(1, 10**324)
    assert found.upper[4] > found.lower[4] > 0.0
    assert Fraction(float(found.lower[0])) <= exact <= Fraction(float(found.upper[0]))
