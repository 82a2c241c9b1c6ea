"""Blocks against refinement by definition, in rational numbers, and the residues that they are found with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.exact.reading import ExactModel
from hybrid.base.errors import UnsupportedError
from hybrid.models.lumping import quotient_by_sets as quotient
from hybrid.models.lumping.partition import PRIME, meant_by, residues, simplest_between
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_diagram
from tests.builders.blown_up import blown_up
from tests.builders.random_chains import RandomChain, chains
from tests.builders.random_mdps import mdps
from tests.exploring import rounds
from tests.oracles.lumping import coarsest_partition


def blocks_by_definition(
    model: hybrid.Model, label: str | None, rewards: bool, skip_own: bool = False
) -> list[int]:
    """Return the blocks of a small model by index."""
    numbers = ExactModel(model)
    inside = np.zeros(model.n_states, dtype=bool)
    if label is not None:
        inside = for_diagram(model, model.labels[label])
    own = [Fraction(0)] * model.n_states
    moved = [[Fraction(0)] * len(choices) for choices in numbers.choices]
    if rewards:
        own = numbers.state_rewards(0)
        moved = [[e - g for e in all_] for all_, g in zip(numbers.gains(0), own, strict=True)]
    if model.is_mdp:
        classes = list(zip(inside.tolist(), own, strict=True))
    else:
        classes = list(zip(inside.tolist(), own, [e for (e,) in moved], strict=True))
        moved = [[Fraction(0)] for _ in moved]
    choices = [list(zip(e, rows, strict=True)) for e, rows in zip(moved, numbers.choices, strict=True)]
    return coarsest_partition(choices, classes, skip_own)


def numbered(blocks: np.ndarray) -> list[int]:
    places: dict[int, int] = {}
    return [places.setdefault(b, len(places)) for b in blocks.tolist()]


def assert_coarsest(text: str, label: str | None = None, rewards: bool = False, loops: bool = True) -> int:
    model = hybrid.parse(text)
    where = {own.name: own.expression for own in model.source.labels}
    sets = [] if label is None else [SymbolicModel.states(model, where[label])]
    skip_own = model.type.value == "ctmc" and not loops
    known = blocks_by_definition(model, label, rewards, skip_own)
    for listed, form in ((1 << 62, "list"), (0, "diagrams")):
        found = quotient(model, sets, [0] if rewards else [], keep_loops=loops, listed=listed)
        assert numbered(found.block_of) == known
        assert found.reduction.blocks == found.model.n_states
        assert found.reduction.made_from == form
    return found.model.n_states


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_partition_of_blown_up_models(rng: np.random.Generator, kind: str) -> None:
    smaller = 0
    for _ in range(rounds(12)):
        built = blown_up(rng, kind)
        for rewards in (False, True):
            count = assert_coarsest(built.text, "goal", rewards, loops=bool(rng.integers(2)))
            smaller += count < len(built.block_of)
    assert smaller


@settings(max_examples=60)
@given(chains(), st.booleans(), st.booleans())
def test_partition_of_random_chains(drawn: tuple, rewards: bool, loops: bool) -> None:
    assert_coarsest(drawn[1], None, rewards, loops)


@settings(max_examples=60)
@given(mdps(), st.booleans())
def test_partition_of_random_mdps(text: str, rewards: bool) -> None:
    assert_coarsest(text, None, rewards)


@pytest.mark.parametrize("continuous", [False, True])
def test_partition_of_chains_with_rewards(rng: np.random.Generator, continuous: bool) -> None:
    for _ in range(rounds(20)):
        assert_coarsest(RandomChain(rng, continuous).text, None, True, bool(rng.integers(2)))


def test_partition_takes_as_many_rounds_as_a_line_is_long() -> None:
    text = (
        "dtmc module m x:[0..40] init 0; y:[0..1] init 0; [] x<40 -> 0.5:(x'=x+1)&(y'=0)+0.5:(x'=x+1)&(y'=1);"
        ' [] x=40 -> true; endmodule label "end" = x=40;'
    )
    assert assert_coarsest(text, "end") == 41


def test_partition_tells_numbers_apart_that_differ_in_the_ninth_digit() -> None:
    text = (
        "dtmc module m x:[0..4]; [] x=0 -> 0.3:(x'=2)+0.7:(x'=3); [] x=1 -> {}+{}:(x'=3); [] x>1 -> true; "
        'endmodule init true endinit label "a" = x=2;'
    )
    assert assert_coarsest(text.format("0.300000001:(x'=2)", "0.699999999"), "a") == 4
    assert assert_coarsest(text.format("0.1:(x'=2)+0.2:(x'=2)", "0.7"), "a") == 3


def test_partition_knows_that_a_tenth_and_two_are_three() -> None:
    text = (
        "ctmc module m x:[0..3]; [] x=0 -> {}; [] x=1 -> {}; [] x>1 -> 2:(x'=0); "
        'endmodule init true endinit label "a" = x>1;'
    )
    assert assert_coarsest(text.format("0.1:(x'=2)+0.2:(x'=3)", "0.3:(x'=3)"), "a") == 2
    assert assert_coarsest(text.format("0.1:(x'=2)+0.2:(x'=3)", "0.30000001:(x'=3)"), "a") == 3


@given(st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=60), st.integers(0, 60))
def test_simplest_between_is_the_fraction_of_the_least_denominator(low: Fraction, parts: int) -> None:
    high = low + Fraction(parts, 100)
    found = simplest_between(low, high)
    assert low <= found <= high
    least = next(q for q in range(1, 101) if -(-low.numerator * q // low.denominator) <= high * q)
    assert found.denominator == least


@pytest.mark.parametrize(
    ("value", "meant"),
    [(0.1, Fraction(1, 10)), (1 / 3, Fraction(1, 3)), (-2.5e-7, Fraction(-1, 4_000_000)), (0.0, Fraction(0))],
)
def test_meant_by_a_double_is_the_fraction_that_people_write(value: float, meant: Fraction) -> None:
    assert meant_by(value, 1.0) == meant


# lemma: simplest-fractions
@pytest.mark.parametrize("units", [1.0, 5.0, 2.0**20])
def test_meant_by_a_double_is_within_its_error(units: float, rng: np.random.Generator) -> None:
    for value in [0.1 * (1 + 2.0**-45), *rng.random(20).tolist(), *(-rng.random(20)).tolist()]:
        exact = Fraction(value)
        assert abs(meant_by(value, units) - exact) <= abs(exact) * Fraction(units) / 2**53
    assert meant_by(0.1 * (1 + 2.0**-45), 5.0) != Fraction(1, 10)


def test_meant_by_an_exact_double_is_that_double() -> None:
    assert meant_by(0.1, 0.0) == Fraction(0.1)


def test_residues_of_tenths_add_up_as_tenths_do() -> None:
    one, two, three = residues(np.array([0.1, 0.2, 0.3]), 1.0).tolist()
    assert 0.1 + 0.2 != 0.3
    assert (one + two) % PRIME == three
    one, two, three = residues(np.array([0.1, 0.2, 0.3]), 0.0).tolist()
    assert (one + two) % PRIME != three


def test_residues_of_many_numbers_are_those_of_their_doubles(rng: np.random.Generator) -> None:
    values = np.append(np.unique(rng.random(20_001)), 0.1)
    found = residues(values, 4.0)
    exact = Fraction(0.1)
    assert int(found[-1]) * exact.denominator % PRIME == exact.numerator % PRIME


def test_residues_refuse_what_is_not_finite() -> None:
    with pytest.raises(UnsupportedError, match="finite"):
        residues(np.array([1.0, np.inf]), 1.0)
