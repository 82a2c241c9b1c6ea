"""Codes of states: they come back, sort as the text orders states, and are found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.checking.simulation.functions import Variables
from hybrid.models.exploration.explore import KnownStates, StateCodes
from mtbdd.language import parse_model, resolve


def variables_of(ranges: list[tuple[int, int]]) -> Variables:
    lines = [f"v{i}:[{low}..{high}];" for i, (low, high) in enumerate(ranges)]
    return Variables(resolve(parse_model(f"dtmc module m {' '.join(lines)} endmodule", "m"), {}))


RANGES = st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**40)).map(lambda t: (t[0], t[0] + t[1]))


@given(ranges=st.lists(RANGES, min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_codes_come_back_and_ascend_with_the_states(ranges: list[tuple[int, int]], seed: int) -> None:
    codes = StateCodes(variables_of(ranges))
    rng = np.random.default_rng(seed)
    states = np.array([rng.integers(low, high, 30, endpoint=True) for low, high in ranges])
    states[:, 0], states[:, 1] = [low for low, _ in ranges], [high for _, high in ranges]
    found = codes.of(states)
    assert (codes.states(found) == states).all()
    order = np.lexsort(states[::-1])
    assert (codes.states(np.sort(found)) == states[:, order]).all()


@pytest.mark.parametrize("width", [1, 5])
def test_known_states_are_found_again(rng: np.random.Generator, width: int) -> None:
    codes, known = StateCodes(variables_of([(0, 2**30)] * width)), KnownStates()
    seen: set[tuple[int, ...]] = set()
    for _ in range(40):
        states = rng.integers(0, 6, (width, int(rng.integers(1, 50))))
        own = set(map(tuple, states.T.tolist()))
        new = known.add_new(codes.of(states))
        assert [tuple(c) for c in codes.states(new).T.tolist()] == sorted(own - seen)
        seen |= own
        assert known.size == len(seen)
    assert [tuple(c) for c in codes.states(known.all()).T.tolist()] == sorted(seen)
