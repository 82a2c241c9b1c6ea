"""Random small chains: exact rational answers lie between the bounds, and operators agree."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.check_options import REPRESENTATIONS
from hybrid.base.errors import NotConvergedError
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from hybrid.solvers import Status
from mtbdd.diagrams.manager import Node
from tests.builders.models import build_both
from tests.builders.random_chains import chains, condition
from tests.oracles.chains import (
    bottom_components,
    exact_steps,
    reachability_rewards,
    stationary_distribution,
    until_probabilities,
)

QUICK = settings(max_examples=20)
EPSILON = 1e-9


def values(model, text, **options):
    """Return what a formula is worth in every state."""
    options.setdefault("epsilon", EPSILON)
    checker = Checker(model, CheckOptions.of(**options))
    (prop,) = resolve_properties(parse_properties(text), model.source).properties
    try:
        return checker.evaluate(prop.formula)
    except NotConvergedError as error:
        # Some chains take more than 100,000 iterations; no answer is no wrong one.
        assert error.status is Status.MAX_ITERATIONS
        reject()


def assert_enclosed(found, expected, width=2 * EPSILON, rounding=0.0):
    """Check bounds around exact numbers, and that they are close but for rounding."""
    for lower, value, upper, exact in zip(found.lower, found.values, found.upper, expected, strict=True):
        if exact == math.inf:
            assert (lower, value, upper) == (math.inf,) * 3
            continue
        assert Fraction(float(lower)) <= exact <= Fraction(float(upper))
        assert lower <= value <= upper
        assert upper - lower <= width * upper + rounding


@QUICK
@given(chains(), st.sampled_from(["optimistic", "interval"]), st.sampled_from(REPRESENTATIONS))
def test_until_encloses_the_exact_probability(chain, method, representation):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    asked = f"P=? [ ({condition(safe)}) U ({condition(target)}) ]"
    found = values(model, asked, method=method, representation=representation)
    assert_enclosed(found, until_probabilities(explicit.rates, safe, target))


@QUICK
@given(chains(), st.sampled_from(["optimistic", "interval"]), st.sampled_from(REPRESENTATIONS))
def test_reachability_reward_encloses_the_exact_one(chain, method, representation):
    kind, text, _, target = chain
    model, explicit = build_both(text)
    asked = f"R=? [ F ({condition(target)}) ]"
    found = values(model, asked, method=method, representation=representation)
    assert_enclosed(found, reachability_rewards(explicit.rates, explicit.rewards(0), target, kind == "ctmc"))


@QUICK
@given(chains())
def test_long_run_encloses_the_exact_average(chain):
    kind, text, safe, _ = chain
    model, explicit = build_both(text)
    shares = [
        stationary_distribution(explicit.rates, {i: Fraction(1)}, kind == "ctmc")
        for i in range(explicit.n_states)
    ]
    rewards = explicit.rewards(0)
    average = values(model, "R=? [ S ]")
    # Bounds on averages come no closer than rounding lets them, and that grows with the rates.
    rounding = 1e-13 * float(max(sum(row.values()) for row in explicit.rates))
    exact = [sum(p * r for p, r in zip(row, rewards, strict=True)) for row in shares]
    # Averages, and probabilities from below and from above: each closer than epsilon.
    assert_enclosed(average, exact, 5 * EPSILON, rounding)
    inside = values(model, f"S=? [ {condition(safe)} ]")
    assert_enclosed(inside, [sum(row[i] for i in safe) for row in shares], 5 * EPSILON, rounding)


@QUICK
@given(chains())
def test_total_reward_is_infinite_exactly_where_it_may_go_on(chain):
    kind, text, _, _ = chain
    model, explicit = build_both(text)
    rewards = explicit.rewards(0)
    idle = {i for i in range(explicit.n_states) if not any(rewards[j] for j in _ahead(explicit.rates, i))}
    found = values(model, "R=? [ C ]")
    assert_enclosed(found, reachability_rewards(explicit.rates, rewards, idle, kind == "ctmc"))
    earning = {i for c in bottom_components(explicit.rates) if any(rewards[j] for j in c) for i in c}
    assert all(found.values[i] == math.inf for i in earning)


def _ahead(chain, start):
    found, waiting = set(), [start]
    while waiting:
        state = waiting.pop()
        if state not in found:
            found.add(state)
            waiting += chain[state]
    return found


@QUICK
@given(chains("dtmc"), st.integers(0, 6), st.integers(0, 6))
def test_step_windows_enclose_the_exact_probability(chain, lower, length):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    path = f"({condition(safe)}) U[{lower},{lower + length}] ({condition(target)})"
    found = values(model, f"P=? [ {path} ]")
    assert_enclosed(found, exact_steps(explicit.rates, safe, target, lower, lower + length), 1e-13)


@QUICK
@given(chains("dtmc"), st.integers(0, 8))
def test_step_rewards_enclose_the_exact_ones(chain, steps):
    _, text, _, _ = chain
    model, explicit = build_both(text)
    rewards, x = explicit.rewards(0), [Fraction(0)] * explicit.n_states
    now = list(rewards)
    for _ in range(steps):
        x = [
            r + sum(p * x[j] for j, p in row.items()) for r, row in zip(rewards, explicit.rates, strict=True)
        ]
        now = [sum(p * now[j] for j, p in row.items()) for row in explicit.rates]
    assert_enclosed(values(model, f"R=? [ C<={steps} ]"), x, 1e-13)
    assert_enclosed(values(model, f"R=? [ I={steps} ]"), now, 1e-13)


@QUICK
@given(chains("ctmc"), st.sampled_from([0.0, 1e-3, 0.3, 2.0, 25.0]), st.sampled_from([0.0, 0.1, 3.0]))
def test_time_windows_agree_with_the_matrix_exponential(chain, length, lower):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    rates = explicit.dense()
    np.fill_diagonal(rates, 0.0)

    def generator(states):
        q = rates * np.isin(np.arange(explicit.n_states), list(states))[:, None]
        return q - np.diag(q.sum(axis=1))

    x = expm(generator(safe) * length) @ np.isin(np.arange(explicit.n_states), list(target)).astype(float)
    if lower > 0:
        inside = np.isin(np.arange(explicit.n_states), list(safe)).astype(float)
        x = inside * (expm(generator(safe) * lower) @ (inside * x))
    path = f"({condition(safe)}) U[{lower},{lower + length}] ({condition(target)})"
    found = values(model, f"P=? [ {path} ]")
    np.testing.assert_allclose(found.values, x, rtol=1e-8, atol=1e-11)
    assert (found.lower <= x * (1 + 1e-9) + 1e-11).all()
    assert (found.upper >= x * (1 - 1e-9) - 1e-11).all()
    # Every step of the uniformised chain, made or left out, may be off by some hundred units of rounding.
    steps = 1.02 * float(rates.sum(axis=1).max()) * (lower + length) + 200
    wanted = 2 * EPSILON + steps * 1000 * 2.0**-53
    assert (found.upper - found.lower <= wanted * found.upper + 1e-39).all()


@QUICK
@given(chains("ctmc"), st.sampled_from([1e-3, 0.3, 2.0, 25.0]))
def test_time_rewards_agree_with_the_matrix_exponential(chain, time):
    _, text, _, _ = chain
    model, explicit = build_both(text)
    rates = explicit.dense()
    generator = rates - np.diag(rates.sum(axis=1))
    rewards = np.array([float(r) for r in explicit.rewards(0)])
    n = explicit.n_states
    # The integral of exp(Q s) r is a corner of the exponential of a larger matrix.
    larger = np.zeros((n + 1, n + 1))
    larger[:n, :n], larger[:n, n] = generator, rewards
    integral = expm(larger * time)[:n, n]
    for text, expected in [("C<=", integral), ("I=", expm(generator * time) @ rewards)]:
        found = values(model, f"R=? [ {text}{time} ]")
        np.testing.assert_allclose(found.values, expected, rtol=1e-8, atol=1e-11)
        # The exponential rounds zeros to 1e-17 or so.
        assert (found.lower <= expected * (1 + 1e-9) + 1e-11).all()
        assert (found.upper >= expected * (1 - 1e-9) - 1e-11).all()


@QUICK
@given(chains(), st.integers(1, 5))
def test_operators_agree_with_one_another(chain, steps):
    _, text, safe, target = chain
    model, _ = build_both(text)
    a, b = condition(safe), condition(target)
    pairs = [
        ("G ({b})", "1 - P=? [ F !({b}) ]"),
        ("({a}) W ({b})", "P=? [ ({a}) U ({b}) ] + P=? [ G (({a}) & !({b})) ]"),
        ("({b}) R ({a})", "P=? [ ({a}) W (({a}) & ({b})) ]"),
        ("F ({b})", "P=? [ true U ({b}) ]"),
        ("F<={k} ({b})", "P=? [ true U<={k} ({b}) ]"),
        ("G<={k} ({b})", "1 - P=? [ F<={k} !({b}) ]"),
        ("X ({b})", "1 - P=? [ X !({b}) ]"),
        ("!(F<={k} ({b}))", "P=? [ G<={k} !({b}) ]"),
    ]
    for left, right in pairs:
        one = values(model, f"P=? [ {left.format(a=a, b=b, k=steps)} ]")
        other = values(model, right.format(a=a, b=b, k=steps))
        assert (one.lower <= other.upper).all(), left
        assert (other.lower <= one.upper).all(), left


@QUICK
@given(chains(), st.integers(0, 4))
def test_bounded_until_grows_with_its_bound_up_to_the_unbounded_one(chain, steps):
    _, text, safe, target = chain
    model, _ = build_both(text)
    path = f"({condition(safe)}) U{{}} ({condition(target)})"
    before = values(model, f"P=? [ {path.format(f'<={steps}')} ]")
    after = values(model, f"P=? [ {path.format(f'<={steps + 1}')} ]")
    for_ever = values(model, f"P=? [ {path.format('')} ]")
    assert (before.lower <= after.upper).all()
    assert (after.lower <= for_ever.upper).all()
    assert (for_ever.lower <= for_ever.upper).all()


@QUICK
@given(chains("dtmc"), st.integers(1, 4))
def test_bounded_until_unfolds_into_next(chain, steps):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    path = f"({condition(safe)}) U<={{}} ({condition(target)})"
    whole = values(model, f"P=? [ {path.format(steps)} ]")
    rest = values(model, f"P=? [ {path.format(steps - 1)} ]")
    inside, there = (np.isin(np.arange(explicit.n_states), list(part)) for part in (safe, target))
    unfolded = np.where(there, 1.0, np.where(inside, explicit.dense() @ rest.values, 0.0))
    np.testing.assert_allclose(whole.values, unfolded, rtol=1e-12)


@QUICK
@given(chains(), st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(["0", "0.25", "0.5", "1"]))
def test_thresholds_hold_exactly_where_the_exact_value_says(chain, comparison, threshold):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    exact = until_probabilities(explicit.rates, safe, target)
    found = values(model, f"P{comparison}{threshold} [ ({condition(safe)}) U ({condition(target)}) ]")
    bound = Fraction(threshold)
    for i, p in enumerate(exact):
        truth = {"<": p < bound, "<=": p <= bound, ">": p > bound, ">=": p >= bound}[comparison]
        if found.unknown is not None and found.unknown[i]:
            assert p == bound
        else:
            assert bool(found.values[i]) is truth
            assert found.unproven is None


@pytest.mark.parametrize("seed", range(3))
def test_marked_states_become_sets_again(seed):
    from mtbdd.offset.states import states_from

    rng = np.random.default_rng(1000 + seed)
    text = """
        dtmc module m a : [0..6]; b : [0..9] init 3; c : bool;
        [] true -> 0.2:(a'=mod(a+1,7)) + 0.8:(b'=mod(b*3+a,10)) & (c'=(a>b)); endmodule
    """
    model, _ = build_both(text)
    for density in (0.0, 0.1, 0.5, 0.99, 1.0):
        mask = rng.random(model.n_states) < density
        node: Node = states_from(model.manager, model.index, mask)
        assert np.array_equal(model.indicator(node), mask)
        assert node & ~model.reachable == model.manager.false
    with pytest.raises(ValueError, match="expected shape"):
        states_from(model.manager, model.index, np.ones(3, dtype=bool))
