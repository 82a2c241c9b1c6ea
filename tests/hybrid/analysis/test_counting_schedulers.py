"""Schedulers that count steps or rewards: followed exactly, they have values within the bounds told."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from tests.builders.models import build_mdp
from tests.builders.random_budgets import DrawnRewards
from tests.builders.random_mdps import mdps
from tests.builders.two_rewards import BOUNDS, PATHS, TwoRewards, filled
from tests.exploring import rounds
from tests.oracles import optima
from tests.oracles.budgets import Choice, bounded_until

OPTIONS: list[dict[str, Any]] = [{}, {"engine": "explicit"}, {"backend": "reference", "method": "interval"}]


def attained(model: hybrid.Model, prop: str, exact: list[Any], **options: Any) -> hybrid.Answer:
    """Check a question's values, and those of its scheduler's chain; all states are initial."""
    answer = hybrid.check(model, prop, scheduler=True, values=True, **options)
    chain = model.with_scheduler(answer.scheduler)
    assert chain.type.value == "dtmc"
    own = hybrid.check(chain, prop.replace("min", "").replace("max", ""), values=True)
    left = [bounds[chain.labels["init"]] for bounds in (own.lower_values, own.upper_values)]
    for value, low, high, *of_chain in zip(
        exact, answer.lower_values, answer.upper_values, *left, strict=True
    ):
        if value == math.inf:
            assert low == of_chain[0] == math.inf
            continue
        assert Fraction(low) <= value <= Fraction(high), prop
        for a, b in ((low, high), of_chain):
            assert b - a <= 1e-6 * max(float(value), 1.0)
        assert of_chain[0] <= high and low <= of_chain[1], prop
    return answer


def followed(drawn: DrawnRewards, scheduler: hybrid.MemoryScheduler) -> tuple[list[list[Choice]], list[int]]:
    """Return the chain that a table of a scheduler tells of, and where its runs begin, by state."""
    rows = list(scheduler.records())
    place = {(row["state"]["s"], row["memory"]): number for number, row in enumerate(rows)}
    chain = []
    for row in rows:
        choice = drawn.choices[row["state"]["s"]][int(row["action"][1:])]
        chain.append([[(p, reward, place[t, row["next"]]) for p, reward, t in choice]])
    return chain, [place[s, 0] for s in range(drawn.n)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_bounds_on_a_reward(options: dict[str, Any], rng: np.random.Generator) -> None:
    between = 0
    for number in range(rounds(8)):
        unit = (Fraction(1), Fraction(3, 2))[number % 2]
        drawn = DrawnRewards(rng, "mdp", unit)
        model, budget, last = hybrid.parse(drawn.text), int(rng.integers(0, 6)), drawn.n - 1
        for word in ("min", "max"):
            exact = bounded_until(drawn.choices, set(range(drawn.n)), {last}, budget, word == "max")[budget]
            turned = {"min": "max", "max": "min"}[word]
            for prop, is_reached in (
                (f'P{word}=? [ F{{"r"}}<={budget * unit} s={last} ]', True),
                (f'P{word}=? [ F{{rew{{"r"}}<{(budget + 1) * unit}}} s={last} ]', True),
                (f'P{turned}=? [ G{{"r"}}<={budget * unit} s!={last} ]', False),
            ):
                told = exact if is_reached else [1 - value for value in exact]
                answer = attained(model, prop, told, **options)
                chain, first = followed(drawn, answer.scheduler)
                ends = {k for k, row in enumerate(answer.scheduler.records()) if row["state"]["s"] == last}
                own = bounded_until(chain, set(range(len(chain))), ends, budget, True)[budget]
                for s, low, high in zip(first, answer.lower_values, answer.upper_values, strict=True):
                    assert Fraction(low) <= (own[s] if is_reached else 1 - own[s]) <= Fraction(high)
            between += sum(0 < value < 1 for value in exact)
    assert between


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rewards_of_steps_followed(options: dict[str, Any], rng: np.random.Generator) -> None:
    for _ in range(rounds(8)):
        drawn = DrawnRewards(rng, "mdp", Fraction(1))
        model, steps = hybrid.parse(drawn.text), int(rng.integers(0, 6))
        for word in ("min", "max"):
            exact = _earned(drawn.choices, steps, word == "max")
            answer = attained(model, f'R{{"r"}}{word}=? [ C<={steps} ]', exact, **options)
            chain, first = followed(drawn, answer.scheduler)
            own = _earned(chain, steps, True)
            for s, low, high in zip(first, answer.lower_values, answer.upper_values, strict=True):
                assert Fraction(low) <= own[s] <= Fraction(high)


def _earned(choices: list[list[Choice]], steps: int, maximise: bool) -> list[Fraction]:
    """Return what is earned in some steps, backwards."""
    best, found = max if maximise else min, [Fraction(0)] * len(choices)
    for _ in range(steps):
        found = [best(sum(p * (r + found[t]) for p, r, t in choice) for choice in own) for own in choices]
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=8)
@given(text=mdps(), steps=st.integers(0, 5), maximise=st.booleans())
def test_rewards_of_steps(options: dict[str, Any], text: str, steps: int, maximise: bool) -> None:
    model, (_, mdp) = hybrid.parse(text), build_mdp(text)
    word, none = "max" if maximise else "min", [Fraction(0)] * mdp.graph.n_states
    exact = optima.steps_back(mdp, none, steps, maximise, 0)
    found = attained(model, f"R{word}=? [ C<={steps} ]", exact, **options).scheduler
    assert set(found.memory.tolist()) == set(range(steps + 1))
    assert found.following.tolist() == [min(k + 1, steps) for k in found.memory.tolist()]
    exact = optima.steps_back(mdp, mdp.state_rewards(0), steps, maximise)
    attained(model, f"R{word}=? [ I={steps} ]", exact, **options)


@settings(max_examples=25)
@given(text=mdps(), maximise=st.booleans())
def test_rewards_in_total(text: str, maximise: bool) -> None:
    """What is earned in all takes no memory."""
    model, (_, mdp) = hybrid.parse(text), build_mdp(text)
    exact = optima.total_rewards(mdp, 0, maximise)
    answer = attained(model, f"R{'max' if maximise else 'min'}=? [ C ]", exact)
    assert not isinstance(answer.scheduler, hybrid.MemoryScheduler)


def test_bounds_on_several_rewards(rng: np.random.Generator) -> None:
    between = 0
    while between < rounds(6):
        drawn = TwoRewards(rng, "mdp", (Fraction(1, 2), Fraction(3)))
        model, counting = hybrid.parse(drawn.text), hybrid.parse(drawn.counting)
        kept = [(str(rng.choice(list(BOUNDS))), int(rng.integers(1, 5))) for _ in "xy"]
        bounds = [drawn.bound(i, *of) for i, of in enumerate(kept)]
        shown = ",".join(f'{{"{name}"}}{own}' for name, (own, _) in zip("xy", bounds, strict=True))
        target, safe = f"s={int(rng.integers(0, drawn.n))}", f"s!={int(rng.integers(0, drawn.n))}"
        path = str(rng.choice(list(PATHS)))
        asked = filled(path, shown, target, safe)
        counted = PATHS[path].format(" & ".join(own for _, own in bounds), target, safe)
        for word in ("min", "max"):
            exact = hybrid.check(counting, f"P{word}=? [ {counted} ]", exact=True).exact
            answer = hybrid.check(model, f"P{word}=? [ {asked} ]", scheduler=True)
            left = hybrid.check(model.with_scheduler(answer.scheduler), f"P=? [ {asked} ]")
            assert answer.lower <= exact <= answer.upper
            assert left.lower <= answer.upper and answer.lower <= left.upper
            between += 0 < exact < 1


FORMS = ("F{} {}", "{2} U{} {}", "G{} {2}", "{2} W{} {}", "!({2} R{} {})")


@pytest.mark.parametrize("form", FORMS)
def test_windows(form: str, rng: np.random.Generator) -> None:
    for _ in range(rounds(2)):
        drawn = TwoRewards(rng, "mdp", (Fraction(1), Fraction(1)))
        model = hybrid.parse(drawn.text)
        target, safe = f"s={int(rng.integers(0, drawn.n))}", f"s!={int(rng.integers(0, drawn.n))}"
        a, b = sorted(rng.integers(0, 5, size=2).tolist())
        for window in (f"<={b}", f"<{b + 1}", f">={a}", f">{a}", f"={b}", f"[{a},{b}]"):
            asked = filled(form, window, target, safe)
            for word in ("min", "max"):
                exact = hybrid.check(model, f"P{word}=? [ {asked} ]", exact=True).exact
                answer = hybrid.check(model, f"P{word}=? [ {asked} ]", scheduler=True)
                left = hybrid.check(model.with_scheduler(answer.scheduler), f"P=? [ {asked} ]")
                assert answer.lower <= exact <= answer.upper, asked
                assert left.lower <= answer.upper and answer.lower <= left.upper, asked


# Four units are enough to try one's luck once, and then the way that is nearly sure.
LUCK = """mdp module m s : [0..2];
  [luck] s=0 -> 1/2:(s'=1) + 1/2:true;
  [sure] s=0 -> 9/10:(s'=1) + 1/10:(s'=2);
  [] s>0 -> true;
endmodule
rewards "cost" [luck] true : {0}; [sure] true : 3*{0}; endrewards
rewards "late" s=0 : 1; endrewards"""


@pytest.mark.parametrize(("unit", "asked"), [("1", 'F{"cost"}<=4 s=1'), ("0.1", 'F{"cost"}<0.5 s=1')])
def test_a_table_by_hand(unit: str, asked: str, tmp_path: Path) -> None:
    model = hybrid.parse(LUCK.format(unit))
    answer = hybrid.check(model, f"Pmax=? [ {asked} ]", scheduler=True)
    assert answer.lower <= Fraction(19, 20) <= answer.upper
    answer.scheduler.write(tmp_path / "luck.csv")
    lines = (tmp_path / "luck.csv").read_text(encoding="utf-8").splitlines()
    rules = {(row["s"], row["memory"]): (row["action"], row["next"]) for row in csv.DictReader(lines)}
    assert rules["0", "0"] == ("luck", "1") and rules["0", "1"] == ("sure", "4")
    chain = model.with_scheduler(answer.scheduler)
    if unit == "1":
        assert hybrid.check(chain, f"P=? [ {asked} ]").value == pytest.approx(0.95, rel=1e-12)
        # What is left can be asked further.
        assert hybrid.check(chain, 'R{"late"}=? [ C ]').lower > 1
    else:
        with pytest.raises(hybrid.HybridError, match="known exactly"):
            hybrid.check(chain, f"P=? [ {asked} ]")


@pytest.mark.parametrize(
    ("prop", "message"),
    [
        ('R{"cost"}max=? [ C<=101 ]', "of 101 steps"),
        ("Pmax=? [ F<=200 s=1 ]", "with 202 numbers"),
        ('Pmax=? [ F{"cost"}<=100 s=1 ]', "with 102 numbers, 102 for every state, and 100 are allowed"),
    ],
)
def test_what_takes_too_much_memory(prop: str, message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(hybrid.parse(LUCK.format(1)), prop, scheduler=True, max_iterations=100)
