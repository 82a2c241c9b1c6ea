"""Schedulers: the chain that one leaves has the value that was claimed, in every state."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.scheduler import Scheduler
from mtbdd.build.rewards import reward_rates
from tests.builders.mdp_texts import SLOW_WAY, WAITING_ROOM
from tests.builders.models import build_mdp
from tests.builders.random_mdps import mdps
from tests.oracles import chains as chain_oracles
from tests.oracles import optima
from tests.oracles.chains import Chain

ENGINES = [{"engine": "hybrid", "backend": "cpu"}, {"engine": "explicit"}]


def _chain(scheduler: Scheduler) -> Chain:
    """Return the chain as fractions; all probabilities of the models here are small ones."""
    matrix = scheduler.chain()
    rows = []
    for s in range(matrix.shape[0]):
        own = slice(int(matrix.row_starts[s]), int(matrix.row_starts[s + 1]))
        pairs = zip(matrix.columns[own].tolist(), matrix.values[own].tolist(), strict=True)
        rows.append({t: Fraction(p).limit_denominator(1000) for t, p in pairs})
        assert sum(rows[-1].values()) == 1
    return rows


@pytest.mark.parametrize("options", ENGINES, ids=str)
@settings(max_examples=20)
@given(text=mdps(), maximise=st.booleans())
def test_until(options: dict[str, str], text: str, maximise: bool) -> None:
    model, mdp = build_mdp(text)
    word = "max" if maximise else "min"
    answer = hybrid.check(model, f"filter(max, P{word}=? [ x!=2 U x=1 ])", scheduler=True, **options)
    safe, target = (optima.states_of(mdp, f) for f in (lambda v: v["x"] != 2, lambda v: v["x"] == 1))
    assert answer.scheduler is not None
    own = chain_oracles.until_probabilities(_chain(answer.scheduler), safe, target)
    for value, exact in zip(own, optima.until(mdp, safe, target, maximise), strict=True):
        assert abs(value - exact) < 1e-6


@pytest.mark.parametrize("options", ENGINES, ids=str)
@settings(max_examples=20)
@given(text=mdps(), maximise=st.booleans())
def test_rewards(options: dict[str, str], text: str, maximise: bool) -> None:
    model, mdp = build_mdp(text)
    word = "max" if maximise else "min"
    answer = hybrid.check(model, f"filter(max, R{word}=? [ F x=1 ])", scheduler=True, **options)
    target = optima.states_of(mdp, lambda v: v["x"] == 1)
    scheduler = answer.scheduler
    assert scheduler is not None
    earned = [reward_rates(model, 0, model.index, k) for k in range(len(model.layers))]
    gains = [Fraction(float(earned[k][s])) for s, k in enumerate(scheduler.layers.tolist())]
    own = chain_oracles.reachability_rewards(_chain(scheduler), gains, target, False)
    for value, exact in zip(own, optima.reachability_rewards(mdp, 0, target, maximise), strict=True):
        assert value == exact or abs(value - exact) < 1e-5 * max(1, exact)


def test_waiting_costs_nothing_but_leads_nowhere(tmp_path: Path) -> None:
    model, _ = build_mdp(WAITING_ROOM)
    answer = hybrid.check(model, "Rmin=? [ F x=3 ]", scheduler=True)
    assert answer.lower <= 5 <= answer.upper
    assert answer.scheduler is not None
    names, numbers = answer.scheduler.actions()
    assert [names[n] for n in numbers[:2]] == ["walk", "out"]
    file = tmp_path / "scheduler.csv"
    answer.scheduler.write(file)
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["action"] for row in rows[:2]] == ["walk", "out"]
    assert [row["x"] for row in rows] == [str(i) for i in range(4)]


def test_the_slow_way_is_the_better_one() -> None:
    model, _ = build_mdp(SLOW_WAY)
    answer = hybrid.check(model, "Pmax=? [ F x=2 ]", scheduler=True)
    assert answer.scheduler is not None
    names, numbers = answer.scheduler.actions()
    assert names[numbers[0]] == "slow"
    fast = hybrid.check(model, "Pmin=? [ F x=2 ]", scheduler=True)
    assert fast.scheduler is not None
    names, numbers = fast.scheduler.actions()
    assert names[numbers[0]] == "fast"


def test_no_scheduler_by_name() -> None:
    model, _ = build_mdp(SLOW_WAY)
    answer = hybrid.check(model, "x=2", scheduler=True, throw=False)
    assert answer.value is None
    assert "P, S and R on an MDP" in str(answer.error)
    assert answer.scheduler is None
    assert hybrid.check(model, "x=2", throw=False).error is None


def test_infinite_rewards_have_a_scheduler_that_misses() -> None:
    model, mdp = build_mdp(WAITING_ROOM)
    answer = hybrid.check(model, "Rmax=? [ F x=3 ]", scheduler=True)
    assert answer.value == math.inf
    assert answer.scheduler is not None
    target = optima.states_of(mdp, lambda v: v["x"] == 3)
    everything = set(range(mdp.graph.n_states))
    own = chain_oracles.until_probabilities(_chain(answer.scheduler), everything, target)
    assert own[0] < 1
