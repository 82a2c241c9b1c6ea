"""Signs of inequalities are exact, whatever the numbers are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hybrid.checking.certificates.certified_text import CertifiedText, PropertyText
from hybrid.checking.certificates.conditions import Sweep
from hybrid.checking.certificates.states import RationalTable, distinct_keys
from hybrid.checking.certificates.transitions import Search, Transitions
from tests.builders.random_mdps import random_mdp
from tests.oracles import mdps as mdp_oracles

WEIGHTS = [
    "1/3",
    "0.1",
    "1",
    "1e-170",
    "1e-320",
    "1e200",
    "4.9e-324",
    "1e-400",
    "123456789.123456789123456789",
]
VALUES = [0.0, 1.0, 0.1, 1e-170, 5e-324, 1e-300, 1e300, -0.5, 1 / 3, 0.1 + 2**-56, 1.0 - 2**-53]


def transitions(path: Path, text: str) -> Transitions:
    path.write_text(text)
    subject = CertifiedText(path, {})
    _, meaning, _ = subject.question(
        PropertyText("P>=0 [ X true ]" if "mdp" not in text else "Pmin>=0 [ X true ]", 0, {})
    )
    (variable,) = subject.model.variables
    return subject.transitions(np.arange(variable.high + 1), meaning)


@pytest.mark.parametrize("number", range(10))
def test_signs_are_those_of_rational_arithmetic(
    number: int, rng: np.random.Generator, tmp_path: Path
) -> None:
    n = int(rng.integers(2, 12))
    commands = [
        f"[] x={s} -> " + " + ".join(f"{rng.choice(WEIGHTS)}:(x'={rng.integers(n)})" for _ in range(4)) + ";"
        for s in range(n)
    ]
    t = transitions(tmp_path / "m", f"ctmc module m x:[0..{n - 1}]; {' '.join(commands)} endmodule")
    table = t.states.table
    earned = table.places(Fraction(str(rng.choice(WEIGHTS[2:]))) * int(rng.integers(-1, 2)) for _ in range(n))
    scale = table.places(Fraction(1, 3) if s % 2 else Fraction(1) for s in range(n))
    sweep = Sweep(t)
    for _ in range(20):
        x, center, offset = (rng.choice(VALUES, n) for _ in range(3))
        if rng.random() < 0.5:
            center = x
        if rng.random() < 0.2:
            x = center = np.full(n, x[0])
        exact = []
        for s in range(n):
            total = table.values[earned[s]] - table.values[scale[s]] * Fraction(offset[s])
            for k in range(int(t.begin[s]), int(t.begin[s + 1])):
                total += table.values[t.weight[k]] * (Fraction(x[t.target[k]]) - Fraction(center[s]))
            exact.append((total > 0) - (total < 0))
        assert sweep.signs(x, center, earned, scale, offset).tolist() == exact
    assert sweep.exact > 0


ROUNDED = [
    # 0.1 + 0.2 - 0.3 is greater than 0 in doubles.
    (["0.1:(x'=1)", "0.2:(x'=1)", "0.3:(x'=2)"], 1.0, 0),
    # Products of 2.6e-324 and twice 2.4e-324: in doubles the first is 4.9e-324, the others are 0.
    (["2.6e-162:(x'=1)", "2.4e-162:(x'=2)", "2.4e-162:(x'=2)"], 1e-162, -1),
    # A weight that is no double at all.
    (["1e-400:(x'=1)", "1e-401:(x'=2)"], 1.0, 1),
    (["1e-400:(x'=2)", "1e-401:(x'=1)"], 1e300, -1),
    # The nearest double is 0, and what it leaves out decides.
    (["1e-330:(x'=1)", "1e-100:(x'=2)"], 1e300, -1),
    (["1e-330:(x'=1)", "1e-335:(x'=2)"], 1e300, 1),
    # The nearest doubles are 3, 3 and 5 times the smallest one.
    (["1.26e-323:(x'=1)", "1.26e-323:(x'=1)", "2.6e-323:(x'=2)"], 1e300, -1),
]


# lemma: signs
@pytest.mark.parametrize(("updates", "value", "sign"), ROUNDED)
def test_what_rounding_would_turn_is_decided_exactly(
    updates: list[str], value: float, sign: int, tmp_path: Path
) -> None:
    text = f"ctmc module m x:[0..2]; [] x=0 -> {' + '.join(updates)}; endmodule"
    sweep = Sweep(transitions(tmp_path / "m", text))
    assert sweep.signs(np.array([0.0, value, -value]), np.zeros(3))[0] == sign
    assert sweep.exact == 1


def test_numbers_below_and_above_all_doubles_are_left_to_whole_numbers(tmp_path: Path) -> None:
    """In doubles only the second term is there, and decides; exactly the first is greater."""
    text = "ctmc module m x:[0..2]; [] x=0 -> 1e-330:(x'=1) + 1e-40:(x'=2); endmodule"
    sweep = Sweep(transitions(tmp_path / "m", text))
    assert sweep.signs(np.array([0.0, 1e300, -1.0]), np.zeros(3))[0] == 1
    assert sweep.exact == 1
    table = RationalTable()
    numbers = [Fraction(10) ** -400, Fraction(10) ** 400, Fraction(10) ** -310, Fraction(1, 3), Fraction(0)]
    places = table.places(numbers)
    doubles, awkward = table.doubles()
    assert awkward[places].tolist() == [True, True, True, False, False]
    assert np.isfinite(doubles).all()


def test_infinite_successors_make_the_sum_infinite(tmp_path: Path) -> None:
    text = "ctmc module m x:[0..2]; [] x<2 -> 1:(x'=x+1) + 1:(x'=0); endmodule"
    sweep = Sweep(transitions(tmp_path / "m", text))
    x = np.array([1.0, 2.0, np.inf])
    assert sweep.signs(x, np.array([5.0, 5.0, 0.0]))[:2].tolist() == [-1, 1]


def test_distinct_keys_are_those_that_occur(rng: np.random.Generator) -> None:
    for limit in (5, 10**6, 10**15):
        keys = rng.integers(0, limit, 50)
        found, places = distinct_keys(keys, limit)
        assert found.tolist() == sorted(set(keys.tolist()))
        assert (found[places] == keys).all()


def test_numbers_have_one_place_each() -> None:
    table = RationalTable()
    a = table.places([Fraction(1, 3), Fraction(2), Fraction(0)])
    b = table.places([Fraction(2, 3), Fraction(1, 2), Fraction(5)])
    assert [table.values[p] for p in table.add(a, b)] == [1, Fraction(5, 2), 5]
    assert [table.values[p] for p in table.multiply(a, b)] == [Fraction(2, 9), 1, 0]
    assert table.add(a, b)[0] == table.one
    assert table.multiply(a, b)[2] == table.zero
    assert len(set(table.values)) == len(table.values)


@pytest.mark.parametrize("number", range(8))
def test_searches_are_those_by_definition(number: int, rng: np.random.Generator, tmp_path: Path) -> None:
    text = random_mdp(rng)
    (tmp_path / "m").write_text(text)
    subject = CertifiedText(tmp_path / "m", {})
    mdp = mdp_oracles.explore_mdp(subject.model)
    search = Search(transitions(tmp_path / "m", text))
    everything = set(range(mdp.graph.n_states))

    def states(mask: np.ndarray) -> set[int]:
        return set(np.flatnonzero(mask).tolist())

    for target in ({1}, {0, 1}):
        goal = np.isin(np.arange(len(everything)), list(target))
        assert states(~search.every(goal)) == mdp_oracles.prob0e(mdp, everything, target)
        assert states(~search.some(goal)) == mdp_oracles.prob0a(mdp, everything, target)
        assert states(search.surely(goal)) == mdp_oracles.prob1e(mdp, everything, target)
        missing = search.sources_avoiding(~search.every(goal), goal)
        assert states(~missing) == mdp_oracles.prob1a(mdp, everything, target)
