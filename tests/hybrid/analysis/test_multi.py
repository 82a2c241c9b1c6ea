"""Several objectives against a linear program over how often choices are taken, on random MDPs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.checking.answer import Answer
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.several import AskedObjectives, random_small_mdp, small_mdp_text

CLOSE = 1e-6


class _Asked(AskedObjectives):
    """Objectives of a random MDP, which a model answers."""

    def __init__(self, rng: np.random.Generator, n_targets: int, n_rewards: int, counted: bool) -> None:
        super().__init__(rng, random_small_mdp(rng, n_targets, n_rewards, counted))
        self.model = build(small_mdp_text(self.mdp))

    def check(self, text: str, **options: Any) -> Answer:
        return hybrid.check(self.model, f"multi({text})", throw=False, **options)


SHAPES = [(2, 0, False), (1, 1, False), (0, 2, False), (2, 1, True), (1, 2, True), (3, 0, False)]


def shapes(first: int) -> list[Any]:
    """Every shape; `make test` has every other one."""
    marks = ((), (pytest.mark.nightly,))
    return [pytest.param(*shape, marks=marks[(k - first) % 2]) for k, shape in enumerate(SHAPES)]


@pytest.mark.parametrize(("n_targets", "n_rewards", "counted"), shapes(1))
def test_bounds_and_values(rng: np.random.Generator, n_targets: int, n_rewards: int, counted: bool) -> None:
    answered = 0
    for _ in range(60):  # many have no finite answer
        if answered == rounds(6):
            break
        asked = _Asked(rng, n_targets, n_rewards, counted)
        others = list(range(1, len(asked.maximise)))
        plain = asked.check(", ".join([asked.text(0), *(asked.text(i) for i in others)]))
        if asked.is_endless:
            assert "can be infinite" in (plain.error or "")
            continue
        if asked.is_hopeless:
            assert "infinite" in (plain.error or "")  # or of a greatest reward, whose end components remain
            continue
        answered += 1
        # Demands between what each other objective may be at best and what it is where the first is best.
        demands, narrow = [], False
        for i in others:
            sign = 1.0 if asked.maximise[i] else -1.0
            best = asked.best(i)
            least = -asked.program.best(-sign * np.eye(len(asked.maximise))[i])
            least = least if math.isfinite(least) else best - 5.0
            bound = best - float(rng.uniform(0.05, 0.9)) * (best - least)
            demands.append((i, sign * bound))
            narrow |= best - least < 1e-3  # the bound would lie on the border
        if any(b < 0.0 or (i < n_targets and b > 1.0) for i, b in demands) or narrow:
            continue
        texts = [asked.text(i, b) for i, b in demands]
        exact = asked.best(0, demands)
        found = asked.check(", ".join([asked.text(0), *texts]))
        if exact == -math.inf:
            assert "no scheduler meets the bounds" in (found.error or "")
            assert asked.check(", ".join(texts)).value is False
            continue
        assert found.error is None, found.error
        value = exact if asked.maximise[0] else -exact
        slack = CLOSE * max(1.0, abs(value))
        assert found.lower - slack <= value <= found.upper + slack
        assert found.upper - found.lower < slack
        for offset, truth in ((-0.01, True), (0.01, False)):
            bound = value + (offset if asked.maximise[0] else -offset)
            if bound >= 0.0 and (n_targets == 0 or bound <= 1.0):
                assert asked.check(", ".join([asked.text(0, bound), *texts])).value is truth
    assert answered > 1


@pytest.mark.parametrize(("n_targets", "n_rewards", "counted"), shapes(0))
def test_curves(rng: np.random.Generator, n_targets: int, n_rewards: int, counted: bool) -> None:
    for _ in range(rounds(6)):
        asked = _Asked(rng, n_targets, n_rewards, counted)
        count = len(asked.maximise)
        found = asked.check(", ".join(asked.text(i) for i in range(count)))
        if asked.is_endless or asked.is_hopeless:
            assert found.error is not None
            continue
        record = found.record()["multi"]
        signs = np.where(asked.maximise, 1.0, -1.0)
        for point in record["points"]:
            worst = [
                low if up else high
                for up, low, high in zip(asked.maximise, point["lower"], point["upper"], strict=True)
            ]
            demands = [
                (i, ">=" if up else "<=", w - CLOSE * s)
                for i, (up, w, s) in enumerate(zip(asked.maximise, worst, signs, strict=True))
            ]
            assert asked.program.best(np.zeros(count), demands) > -math.inf
        for half_space in record["half_spaces"]:
            assert asked.program.best(half_space["weights"]) <= half_space["most"] + 1e-9
        # No direction leads further above the points than the distances told.
        lower = np.array(
            [
                [
                    low if up else high
                    for up, low, high in zip(asked.maximise, p["lower"], p["upper"], strict=True)
                ]
                for p in record["points"]
            ]
        )
        distances = np.array(record["distances"])
        for _ in range(6):
            weights = rng.random(count) * signs
            exact = asked.program.best(weights)
            assert exact <= (lower @ weights).max() + np.abs(weights) @ distances + CLOSE
        spread = lower.max(axis=0) - lower.min(axis=0)
        assert (distances <= 2e-3 * np.maximum(spread, np.abs(lower).max(axis=0)) + CLOSE).all()


@pytest.mark.parametrize(
    "options", [{"backend": "reference"}, {"engine": "explicit"}, {"method": "interval"}, {"level": 0}]
)
def test_engines_and_methods(rng: np.random.Generator, options: dict[str, Any]) -> None:
    tried = 0
    while tried < rounds(3):
        asked = _Asked(rng, 1, 1, False)
        if asked.is_endless or asked.is_hopeless:
            continue
        tried += 1
        for i in range(2):
            # A reward keeps those of all runs finite, asked for or bounded.
            demands = [] if i or asked.maximise[1] else [(1, 1000.0)]
            texts = [asked.text(i), *(asked.text(k, b) for k, b in demands)]
            found = asked.check(", ".join(texts), **options)
            value = asked.best(i, demands) * (1.0 if asked.maximise[i] else -1.0)
            assert found.lower - CLOSE <= value <= found.upper + CLOSE
            assert found.upper - found.lower < CLOSE * max(1.0, abs(value))
