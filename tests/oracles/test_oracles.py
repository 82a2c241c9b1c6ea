"""The oracles themselves, on chains whose answers are known in closed form."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mtbdd.language import parse_model, resolve
from tests.oracles import chains as oracles
from tests.oracles.expressions import OracleFaultError
from tests.oracles.models import ExplicitModel, explore, mtbdd_size

THIRD = Fraction(1, 3)


def explicit(text: str) -> ExplicitModel:
    return explore(resolve(parse_model(text)))


def gambler(n: int) -> list[dict[int, Fraction]]:
    """Win with probability 1/3, until broke (0) or rich (n)."""
    steps = [{i + 1: THIRD, i - 1: 2 * THIRD} for i in range(1, n)]
    return [{0: Fraction(1)}, *steps, {n: Fraction(1)}]


def test_oracle_solves_the_gamblers_ruin() -> None:
    n, everything = 6, set(range(7))
    chain = gambler(n)
    rich = oracles.until_probabilities(chain, everything, {n})
    assert rich == [Fraction(2**i - 1, 2**n - 1) for i in range(n + 1)]
    assert oracles.prob0(chain, everything, {n}) == {0}
    assert oracles.prob1(chain, everything, {n}) == {n}
    assert oracles.prob1(chain, everything, {0, n}) == everything
    assert oracles.prob0(chain, {4, 5}, {n}) == {0, 1, 2, 3}
    assert oracles.bottom_components(chain) == [{0}, {n}]
    assert oracles.until_probabilities(chain, {4, 5}, {n})[5] == THIRD / (1 - 2 * THIRD * THIRD)
    long_run = oracles.stationary_distribution(chain, {3: Fraction(1)}, continuous=False)
    assert (long_run[0], long_run[n]) == (1 - rich[3], rich[3]) and sum(long_run) == 1
    steps = oracles.reachability_rewards(chain, [Fraction(1)] * (n + 1), {0, n}, continuous=False)
    # Optional stopping: the drift is -1/3 a step.
    assert steps == [3 * (i - n * rich[i]) for i in range(n + 1)]
    assert oracles.reachability_rewards(chain, [Fraction(1)] * (n + 1), {0}, continuous=False)[1] == math.inf


def test_oracle_solves_the_queue() -> None:
    """M/M/1/K: geometric stationary distribution, rates normalised by the exit rates."""
    model = explicit("ctmc module q x : [0..5]; [] x<5 -> 1:(x'=x+1); [] x>0 -> 2:(x'=x-1); endmodule")
    assert oracles.bottom_components(model.rates) == [set(range(6))]
    weights = [Fraction(1, 2**i) for i in range(6)]
    expected = [w / sum(weights) for w in weights]
    assert oracles.stationary_distribution(model.rates, {2: Fraction(1)}, continuous=True) == expected
    # From 1, with time as the reward: h1 = 1/3 + h2/3, up to h5 = 1/2 + h4.
    times = oracles.reachability_rewards(model.rates, [Fraction(1)] * 6, {0}, continuous=True)
    assert times[0] == 0 and times[5] == Fraction(1, 2) + times[4]
    assert times[1] == THIRD + THIRD * times[2]
    embedded = oracles.until_probabilities(model.rates, set(range(6)), {5})
    assert embedded == [1] * 6
    assert oracles.until_probabilities(model.rates, {1, 2, 3, 4}, {5})[1] == Fraction(1, 31)


def test_oracle_weighs_components_by_their_probability() -> None:
    half = Fraction(1, 2)
    chain = [{1: THIRD, 2: 2 * THIRD}, {3: Fraction(1)}, {2: Fraction(1)}, {1: half, 3: half}]
    assert oracles.bottom_components(chain) == [{1, 3}, {2}]
    result = oracles.stationary_distribution(chain, {0: Fraction(1)}, continuous=False)
    assert result == [0, Fraction(1, 9), Fraction(2, 3), Fraction(2, 9)]
    mixed = oracles.stationary_distribution(chain, {0: half, 2: half}, continuous=False)
    assert mixed[2] == half + half * Fraction(2, 3)


def test_oracle_elimination_solves_and_refuses(rng: np.random.Generator) -> None:
    matrix = [[Fraction(int(x)) for x in row] for row in rng.integers(-3, 4, (5, 5))]
    for i in range(5):
        matrix[i][i] += 20
    solution = [Fraction(int(x), 7) for x in rng.integers(-9, 9, 5)]
    right = [sum(a * x for a, x in zip(row, solution, strict=True)) for row in matrix]
    assert oracles.solve_exactly(matrix, right) == solution
    swapped = [[Fraction(0), Fraction(1)], [Fraction(2), Fraction(0)]]
    assert oracles.solve_exactly(swapped, [Fraction(3), Fraction(4)]) == [2, 3]
    with pytest.raises(ZeroDivisionError, match="singular"):
        oracles.solve_exactly([[Fraction(1), Fraction(2)], [Fraction(2), Fraction(4)]], [Fraction(1)] * 2)


def test_oracle_multiplies_synchronised_rates_and_adds_overlaps() -> None:
    model = explicit(
        """ctmc module m x : bool; [a] !x -> 2:(x'=true) + 3:true; [] !x -> 0.5:(x'=true); endmodule
        module n y : bool; [a] true -> 1/7:(y'=true); endmodule
        rewards [a] true : 10; [] true : 1; endrewards"""
    )
    assert model.states == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert model.rates[0] == {1: Fraction(3, 7), 2: Fraction(1, 2), 3: Fraction(2, 7)}
    assert model.rates[1] == {1: Fraction(3, 7), 3: Fraction(1, 2) + Fraction(2, 7)}
    assert model.deadlocks == {2, 3} and model.rates[2] == {2: 1}
    assert model.rewards(0) == [Fraction(50, 7) + Fraction(1, 2)] * 2 + [0, 0]


def test_oracle_chooses_uniformly_in_a_dtmc() -> None:
    model = explicit(
        """dtmc module m x : [0..2]; [a] x=0 -> (x'=1); [a] x=0 -> (x'=2);
        [] x=0 -> 0.5:(x'=1) + 0.5:true; endmodule
        module n [a] true -> true; endmodule"""
    )
    assert model.rates[0] == {0: THIRD / 2, 1: THIRD / 2 + THIRD, 2: THIRD}


def test_oracle_refuses_faults() -> None:
    for text in (
        "dtmc module m x : [0..1]; [] true -> (x'=x+1); endmodule",
        "dtmc module m x : [0..1]; [] true -> 0.5:(x'=0); endmodule",
        "ctmc module m x : [0..1]; [] true -> -1:(x'=0); endmodule",
        "ctmc module m x : [0..1]; [] true -> 1:(x'=0); endmodule init x>1 endinit",
    ):
        with pytest.raises(OracleFaultError):
            explicit(text)
    source = resolve(parse_model("ctmc module m x : [0..1]; [] x=0 -> 1:(x'=1); endmodule"))
    assert explore(source).deadlocks == {1}
    with pytest.raises(OracleFaultError, match="deadlock"):
        explore(source, fix_deadlocks=False)


def test_oracle_counts_nodes_of_known_diagrams() -> None:
    assert mtbdd_size(np.zeros((4, 4))) == (1, 1)
    assert mtbdd_size(np.full((1, 1), 2.0)) == (1, 1)
    for bits in range(1, 5):
        assert mtbdd_size(np.eye(1 << bits)) == (3 * bits + 2, 2)
    assert mtbdd_size(np.array([[1.0, 1.0], [2.0, 2.0]])) == (3, 2)
    assert mtbdd_size(np.array([[1.0, 2.0], [1.0, 2.0]])) == (3, 2)
    assert mtbdd_size(np.array([[1.0, 2.0], [3.0, 4.0]])) == (7, 4)
