"""Certificates of random models: accepted when they are true, refused as soon as they claim too much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.archive import Certificate
from tests.builders.models import build_mdp
from tests.builders.random_chains import RandomChain
from tests.builders.random_mdps import random_mdp
from tests.exploring import rounds
from tests.hybrid.checking.certificates.helpers import Case, make
from tests.oracles import optima
from tests.oracles.chains import (
    backward_states,
    bottom_components,
    reachability_rewards,
    stationary_distribution,
    until_probabilities,
)

Exact = Sequence[Fraction | float]


def assert_sound(case: Case, exact: Exact, rng: np.random.Generator) -> None:
    """The vectors hold the exact values, and any vector that does not is refused."""
    found = case.verify().finding
    (part,) = case.certificate.parts
    for low, value, high in zip(part.lower.tolist(), exact, part.upper.tolist(), strict=True):
        assert low <= value <= high
        assert low == high or high - low <= 1e-6 * max(1.0, float(value))
    assert found.lower is not None and found.upper is not None
    for _ in range(4):
        state, factor = int(rng.integers(len(exact))), float(rng.choice([1e-15, 1e-9, 1e-3, 0.5]))
        value = exact[state]
        if value != math.inf and rng.random() < 0.5:
            above = np.nextafter(float(value), np.inf)
            claim, name = above + abs(above) * factor + (factor if value == 0 else 0), "lower"
            assert claim > value
        elif value != 0:
            # Also the least claim that is wrong, and a finite value where it is infinite.
            below = np.nextafter(float(value), -np.inf)
            claim, name = 1e300 if value == math.inf else below - abs(below) * factor, "upper"
            assert claim < value
        else:
            continue

        def spoil(c: Certificate, state: int = state, name: str = name, claim: float = claim) -> None:
            getattr(c.parts[0], name)[state] = claim

        with pytest.raises(CertificateError, match="state"):
            case.spoilt(spoil)


CASES = range(rounds(4))


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("continuous", [False, True], ids=["dtmc", "ctmc"])
def test_until_on_chains(continuous: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    chain = RandomChain(rng, continuous)
    everything, target = set(range(chain.size)), {1}
    safe = everything - {0}
    exact = until_probabilities(chain.rates, everything, target)
    assert_sound(make(tmp_path, chain.text, "P=? [ F x=1 ]"), exact, rng)
    exact = until_probabilities(chain.rates, safe, target)
    assert_sound(make(tmp_path, chain.text, "P=? [ x!=0 U x=1 ]"), exact, rng)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("continuous", [False, True], ids=["dtmc", "ctmc"])
def test_rewards_on_chains(continuous: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    chain = RandomChain(rng, continuous)
    exact = reachability_rewards(chain.rates, chain.rewards, {1}, continuous)
    assert_sound(make(tmp_path, chain.text, "R=? [ F x=1 ]"), exact, rng)
    everything = range(chain.size)
    over = set(everything) - backward_states(chain.rates, {s for s in everything if chain.rewards[s] != 0})
    exact = reachability_rewards(chain.rates, chain.rewards, over, continuous)
    assert_sound(make(tmp_path, chain.text, "R=? [ C ]"), exact, rng)


def averages(chain: RandomChain, continuous: bool) -> list[tuple[Any, Fraction]]:
    """The distribution in the long run from every state, and the average reward."""
    spread = [stationary_distribution(chain.rates, {s: Fraction(1)}, continuous) for s in range(chain.size)]
    return [
        (row, sum((p * r for p, r in zip(row, chain.rewards, strict=True)), Fraction(0))) for row in spread
    ]


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("continuous", [False, True], ids=["dtmc", "ctmc"])
def test_averages_on_chains(continuous: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    chain = RandomChain(rng, continuous)
    found = averages(chain, continuous)
    assert_sound(make(tmp_path, chain.text, "R=? [ S ]"), [average for _, average in found], rng)
    case = make(tmp_path, chain.text, "S=? [ x<=1 ]")
    assert_sound(case, [row[0] + row[1] for row, _ in found], rng)
    wide = max(bottom_components(chain.rates), key=len)
    if len(wide) > 1:

        def spoil(c: Certificate) -> None:
            bias = c.parts[0].bias
            assert bias is not None
            bias[min(wide)] += 1.0

        with pytest.raises(CertificateError, match="P h"):
            case.spoilt(spoil)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
def test_optima_on_mdps(maximise: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    text, word = random_mdp(rng), "max" if maximise else "min"
    _, mdp = build_mdp(text)
    everything = set(range(mdp.graph.n_states))
    target = optima.states_of(mdp, lambda v: v["x"] == 1)
    case = make(tmp_path, text, f"P{word}=? [ F x=1 ]")
    assert_sound(case, optima.until(mdp, everything, target, maximise), rng)
    safe = optima.states_of(mdp, lambda v: v["x"] != 0)
    case = make(tmp_path, text, f"P{word}=? [ x!=0 U x=1 ]")
    assert_sound(case, optima.until(mdp, safe, target, maximise), rng)
    case = make(tmp_path, text, f"R{word}=? [ F x=1 ]")
    assert_sound(case, optima.reachability_rewards(mdp, 0, target, maximise), rng)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
def test_next_steps_on_mdps(maximise: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    text, word = random_mdp(rng), "max" if maximise else "min"
    _, mdp = build_mdp(text)
    goal = optima.states_of(mdp, lambda v: v["x"] <= 1)
    start = [Fraction(int(s in goal)) for s in range(mdp.graph.n_states)]
    case = make(tmp_path, text, f"P{word}=? [ X x<=1 ]")
    assert_sound(case, optima.steps_back(mdp, start, 1, maximise), rng)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
def test_averages_on_mdps(maximise: bool, number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    text, word = random_mdp(rng, least=-3 * (number % 2)), "max" if maximise else "min"
    _, mdp = build_mdp(text)
    case = make(tmp_path, text, f"R{word}=? [ S ]")
    assert_sound(case, optima.averages(mdp, 0, maximise), rng)
    inside = optima.states_of(mdp, lambda v: v["x"] <= 1)
    case = make(tmp_path, text, f"S{word}=? [ x<=1 ]")
    assert_sound(case, optima.shares(mdp, inside, maximise), rng)


def test_a_bias_that_shows_one_bound_is_made_to_show_both(tmp_path: Path) -> None:
    """The bias of the best policy shows the upper bound; it is not the least one in states that are left."""
    text = """mdp
module m
x : [0..4];
[] x=0 -> 3/7:(x'=4) + 2/7:(x'=1) + 2/7:(x'=3);
[] x=1 -> 3/4:(x'=2) + 1/4:(x'=1);
[] x=2 -> 3/5:(x'=1) + 1/5:(x'=4) + 1/5:(x'=2);
[] x=3 -> (x'=0);
[] x=3 -> (x'=1);
[] x=4 -> 3/6:(x'=3) + 3/6:(x'=0);
[] x=4 -> (x'=2);
[] x=4 -> 1/6:(x'=1) + 3/6:(x'=3) + 2/6:(x'=0);
endmodule
init true endinit
rewards x=0 : 1; x=1 : 1; endrewards"""
    found = make(tmp_path, text, "Rmin=? [ S ]").verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.upper - found.lower <= 1e-8 * found.upper


@pytest.mark.parametrize("prop", ["P=? [ F x=1 ]", "R=? [ F x=1 ]", "R=? [ S ]"])
@pytest.mark.parametrize("continuous", [False, True], ids=["dtmc", "ctmc"])
def test_flipped_bits_are_refused_or_leave_true_bounds(
    continuous: bool, prop: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    chain = RandomChain(rng, continuous)
    if prop.startswith("P"):
        exact: Exact = until_probabilities(chain.rates, set(range(chain.size)), {1})
    elif "F" in prop:
        exact = reachability_rewards(chain.rates, chain.rewards, {1}, continuous)
    else:
        exact = [average for _, average in averages(chain, continuous)]
    assert_flips_are_noticed(make(tmp_path, chain.text, prop), exact, rng)


def test_flipped_bits_of_averages_of_mdps(rng: np.random.Generator, tmp_path: Path) -> None:
    for maximise in (False, True):
        text = random_mdp(rng)
        exact = optima.averages(build_mdp(text)[1], 0, maximise)
        case = make(tmp_path, text, f"R{'max' if maximise else 'min'}=? [ S ]")
        assert_flips_are_noticed(case, exact, rng)


def assert_flips_are_noticed(case: Case, exact: Exact, rng: np.random.Generator) -> None:
    accepted = refused = 0
    for _ in range(rounds(60)):
        kept: list[Certificate] = []

        def flip(c: Certificate, kept: list[Certificate] = kept) -> None:
            part = c.parts[0]
            vectors = [v for v in (part.lower, part.upper, part.bias) if v is not None]
            for _ in range(int(rng.integers(1, 3))):
                bits = vectors[int(rng.integers(len(vectors)))].view(np.uint64)
                bits[rng.integers(bits.size)] ^= np.uint64(1) << np.uint64(rng.integers(64))
            kept.append(c)

        try:
            case.spoilt(flip)
        except CertificateError:
            refused += 1
            continue
        accepted += 1
        part = kept[0].parts[0]
        for low, value, high in zip(part.lower.tolist(), exact, part.upper.tolist(), strict=True):
            assert low <= value <= high
    assert refused > 0
