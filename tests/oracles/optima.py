"""Exact optima by brute force: every memoryless scheduler, or backward induction, with fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.model import SymbolicModel
from tests.oracles import chains as chain_oracles
from tests.oracles.chains import Chain
from tests.oracles.mdps import ExplicitMdp

__all__ = [
    "assert_encloses",
    "averages",
    "best",
    "chain_averages",
    "chain_ratios",
    "checked",
    "persistent",
    "ratios",
    "reachability_rewards",
    "repeated",
    "rewarded_schedulers",
    "shares",
    "states_of",
    "steps_back",
    "total_rewards",
    "until",
]

Exact = Fraction | float
Rewarded = tuple[Chain, list[Fraction]]


def checked(model: SymbolicModel, text: str, **options: Any) -> StateValues | StateTruth:
    """Return the values of a property in all states."""
    properties = resolve_properties(parse_properties(text), model.source, {})
    return Checker(model, CheckOptions.of(**options)).evaluate(properties.properties[0].formula)


def assert_encloses(
    found: StateValues, exact: list[Exact], width: float = 1e-7, absolute: float = 0.0
) -> None:
    """Check that bounds hold the exact values and are close; `width` relative to the value, or `absolute`."""
    assert len(found.values) == len(exact)
    for i, value in enumerate(exact):
        low, high = float(found.lower[i]), float(found.upper[i])
        if value == math.inf:
            assert low == high == math.inf
            continue
        assert Fraction(low) <= value <= Fraction(high), (i, low, high, float(value))
        assert high - low <= max(width * max(float(value), 1e-290), absolute)
        assert low <= float(found.values[i]) <= high


def rewarded_schedulers(mdp: ExplicitMdp, structure: int) -> Iterator[Rewarded]:
    """Yield every memoryless scheduler's chain with what its states earn a step."""
    states = mdp.state_rewards(structure)
    by_action = {a: mdp.choice_rewards(structure, a) for own in mdp.choices for a, _ in own}
    deadlocks = mdp.graph.deadlocks
    for picked in product(*mdp.choices):
        earned = [
            states[s] + (Fraction(0) if s in deadlocks else by_action[action][s])
            for s, (action, _) in enumerate(picked)
        ]
        yield [row for _, row in picked], earned


def best(values: Iterator[list[Exact]] | list[list[Exact]], maximise: bool) -> list[Exact]:
    """Return the elementwise optimum."""
    choose: Callable[..., Exact] = max if maximise else min
    return [choose(column) for column in zip(*values, strict=True)]


def until(mdp: ExplicitMdp, safe: set[int], target: set[int], maximise: bool) -> list[Exact]:
    """Return the optimal probabilities of ``safe U target``."""
    chains = ([row for _, row in picked] for picked in product(*mdp.choices))
    return best([list(chain_oracles.until_probabilities(c, safe, target)) for c in chains], maximise)


def reachability_rewards(mdp: ExplicitMdp, structure: int, target: set[int], maximise: bool) -> list[Exact]:
    """Return the optimal expected rewards until a set is reached."""
    found = [
        chain_oracles.reachability_rewards(chain, earned, target, False)
        for chain, earned in rewarded_schedulers(mdp, structure)
    ]
    return best(found, maximise)


def total_rewards(mdp: ExplicitMdp, structure: int, maximise: bool) -> list[Exact]:
    """Return the optimal expected rewards in all time, none of them negative."""
    found = []
    for chain, earned in rewarded_schedulers(mdp, structure):
        idle = [c for c in chain_oracles.bottom_components(chain) if not any(earned[s] for s in c)]
        target = set().union(*idle) if idle else set()
        found.append(chain_oracles.reachability_rewards(chain, earned, target, False))
    return best(found, maximise)


def averages(mdp: ExplicitMdp, structure: int, maximise: bool) -> list[Exact]:
    """Return the optimal long-run averages of a reward."""
    return best([chain_averages(*of) for of in rewarded_schedulers(mdp, structure)], maximise)


def shares(mdp: ExplicitMdp, states: set[int], maximise: bool) -> list[Exact]:
    """Return the optimal shares of time spent in a set in the long run."""
    inside = [Fraction(s in states) for s in range(len(mdp.choices))]
    chains = ([row for _, row in picked] for picked in product(*mdp.choices))
    return best([chain_averages(chain, inside) for chain in chains], maximise)


def chain_averages(chain: Chain, earned: list[Fraction]) -> list[Exact]:
    """Return the long-run averages of what a chain's states earn, from every state."""
    found: list[Exact] = []
    for start in range(len(chain)):
        spent = chain_oracles.stationary_distribution(chain, {start: Fraction(1)}, False)
        found.append(sum((p * r for p, r in zip(spent, earned, strict=True)), Fraction(0)))
    return found


def ratios(mdp: ExplicitMdp, first: int, second: int, maximise: bool) -> list[Exact] | None:
    """Return the optimal long-run ratios of two rewards; None where the second one's average may be zero."""
    found = []
    pairs = zip(rewarded_schedulers(mdp, first), rewarded_schedulers(mdp, second), strict=True)
    for (chain, earned), (_, spent) in pairs:
        own = chain_ratios(chain, earned, spent)
        if own is None:
            return None
        found.append(own)
    return best(found, maximise)


def chain_ratios(chain: Chain, earned: list[Fraction], spent: list[Fraction]) -> list[Exact] | None:
    """Return what a chain earns in the long run for what it spends: that of each class, weighed; or None."""
    above, below = chain_averages(chain, earned), chain_averages(chain, spent)
    found: list[Exact] = [Fraction(0)] * len(chain)
    for component in chain_oracles.bottom_components(chain):
        state = min(component)
        if below[state] == 0:
            return None
        ways = chain_oracles.until_probabilities(chain, set(range(len(chain))), component)
        found = [x + p * above[state] / below[state] for x, p in zip(found, ways, strict=True)]
    return found


def repeated(mdp: ExplicitMdp, states: set[int], maximise: bool) -> list[Exact]:
    """Return the optimal probabilities of ``G F states``."""
    return _in_the_end(mdp, lambda c: bool(c & states), maximise)


def persistent(mdp: ExplicitMdp, states: set[int], maximise: bool) -> list[Exact]:
    """Return the optimal probabilities of ``F G states``."""
    return _in_the_end(mdp, lambda c: c <= states, maximise)


def _in_the_end(mdp: ExplicitMdp, wanted: Callable[[set[int]], bool], maximise: bool) -> list[Exact]:
    found = []
    everything = set(range(len(mdp.choices)))
    for picked in product(*mdp.choices):
        chain = [row for _, row in picked]
        good = [c for c in chain_oracles.bottom_components(chain) if wanted(c)]
        target = set().union(*good) if good else set()
        found.append(list(chain_oracles.until_probabilities(chain, everything, target)))
    return best(found, maximise)


def steps_back(
    mdp: ExplicitMdp,
    start: list[Fraction],
    steps: int,
    maximise: bool,
    structure: int | None = None,
    frozen: set[int] | None = None,
) -> list[Exact]:
    """Return optimal values a number of steps earlier, by backward induction; `frozen` states keep theirs."""
    choose: Callable[..., Fraction] = max if maximise else min
    gains: dict[str | None, list[Fraction]] = {}
    states = [Fraction(0)] * len(mdp.choices)
    if structure is not None:
        states = mdp.state_rewards(structure)
        gains = {a: mdp.choice_rewards(structure, a) for own in mdp.choices for a, _ in own}
    values = list(start)
    for _ in range(steps):
        values = [
            values[s]
            if frozen and s in frozen
            else choose(
                sum((p * values[t] for t, p in row.items()), Fraction(0))
                + states[s]
                + (gains[action][s] if gains and s not in mdp.graph.deadlocks else 0)
                for action, row in own
            )
            for s, own in enumerate(mdp.choices)
        ]
    return list(values)


def states_of(mdp: ExplicitMdp, wanted: Callable[[Any], bool]) -> set[int]:
    """Return the numbers of the states whose assignment is wanted."""
    return {i for i in range(mdp.graph.n_states) if wanted(mdp.graph.valuation(i))}
