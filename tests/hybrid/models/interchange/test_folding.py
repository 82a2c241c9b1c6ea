"""Rewards of transitions, folded into those of choices, against rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hybrid.models.interchange.explicit_model import folded


@pytest.mark.parametrize("per_jump", [False, True])
@pytest.mark.parametrize("signs", [False, True])
def test_expected_rewards_lie_within_their_units(
    rng: np.random.Generator, per_jump: bool, signs: bool
) -> None:
    for _ in range(40):
        lengths = rng.integers(0, 6, 8)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(starts[-1])
        values = rng.choice([0.1, 0.3, 1e-8, 2.5], n)
        rewards = rng.choice([0.0, 0.1, 7.3, 1e9] + ([-0.7, -1e9] if signs else []), n)
        expected, units = folded(starts, values, rewards, per_jump)
        for row, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            weights = [Fraction(v) for v in values[begin:end].tolist()]
            earned = [Fraction(r) for r in rewards[begin:end].tolist()]
            exact = sum((w * r for w, r in zip(weights, earned, strict=True)), Fraction(0))
            if per_jump and weights:
                exact /= sum(weights)
            assert abs(Fraction(expected[row]) - exact) <= Fraction(units) * abs(exact) / 2**53


def test_what_is_no_normal_double_has_no_bound() -> None:
    starts = np.array([0, 1])
    assert np.isinf(folded(starts, np.array([1e-200]), np.array([1e-200]), per_jump=False)[1])
    assert folded(starts, np.array([0.5]), np.array([0.0]), per_jump=False)[1] == 0.0
    for values, rewards in (([1e300], [1e300]), ([math.inf], [1.0]), ([0.5], [1.7e308])):
        for per_jump in (False, True):
            pair = np.array([*values, 3.0]), np.array([*rewards, rewards[0]])
            expected, units = folded(np.array([0, 2]), *pair, per_jump)
            assert units == math.inf
            assert np.isfinite(expected).all()
