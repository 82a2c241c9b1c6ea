"""Distributions of rewards until a set is reached, against budgets unfolded by definition in fractions."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.analysis.run.statistics import SolveStatistics
from tests.builders.models import build
from tests.builders.random_budgets import DrawnRewards
from tests.exploring import rounds
from tests.oracles.budgets import bounded_until

WALK = """dtmc module m s : [0..3];
  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [] s=1 -> 1/3:(s'=2) + 2/3:(s'=0);
  [] s=2 -> 1/2:(s'=0) + 1/2:(s'=3);
  [] s=3 -> true;
endmodule
rewards "a" s=0 : 1; s=2 : 1/2; endrewards"""
ASKED = 'R{"a"}=? [ F s=3 ]'


def test_random_chains(rng: np.random.Generator) -> None:
    known = 0
    while known < rounds(6):
        unit = (Fraction(1), Fraction(1, 2), Fraction(3))[known % 3]
        drawn = DrawnRewards(rng, "dtmc", unit, initial=0)
        model, target = build(drawn.text), int(rng.integers(1, drawn.n))
        asked = f'R{{"r"}}=? [ F s={target} ]'
        found = hybrid.distribution(model, asked, tail=1e-4, backend="cpu")
        step = found.unit / unit
        if len(found.lower) * step > 60 or step.denominator > 1:
            continue
        every, last = set(range(drawn.n)), int(step) * (len(found.lower) - 1)
        exact = [own[0] for own in bounded_until(drawn.choices, every, {target}, last, True)][:: int(step)]
        unit = found.unit
        for k, value in enumerate(exact):
            assert Fraction(found.lower[k]) <= value <= Fraction(found.upper[k])
            low, high = (part[k] for part in found.masses)
            assert Fraction(low) <= value - (exact[k - 1] if k else 0) <= Fraction(high)
        mean = hybrid.check(model, asked, exact=True, throw=False).exact
        assert (mean is None) == bool(np.isinf(found.mean[1]))
        if mean is None or mean == 0:
            continue
        known += 1
        for level in (0.0, 0.25, 0.5, 0.9):
            if exact[-1] <= level:
                continue
            place = next(k for k, value in enumerate(exact) if value >= Fraction(level))
            if level:
                early, late = map(Fraction, found.quantile(level))
                assert early <= place * unit <= late
            # The quantiles up to the level, taken off the mean.
            earned, before = Fraction(0), Fraction(0)
            for k, value in enumerate(exact[: place + 1]):
                earned += k * unit * (min(value, Fraction(level)) - min(before, Fraction(level)))
                before = value
            right = (mean - earned) / (1 - Fraction(level))
            low, high = found.tail_mean(level)
            assert Fraction(low) <= right <= Fraction(high)
            assert high - low <= 1e-5 * high


def made(lower: list[float], upper: list[float], mean: tuple[float, float]) -> hybrid.Distribution:
    """Return a distribution with wide bounds."""
    reached = (lower[-1], 1.0)
    return hybrid.Distribution(
        "", Fraction(1, 3), np.array(lower), np.array(upper), reached, mean, SolveStatistics()
    )


def test_wide_bounds_hold_for_all_between(rng: np.random.Generator) -> None:
    for _ in range(rounds(60)):
        middle = np.sort(rng.uniform(0.0, 1.0, size=5))
        middle[-1] = 1.0
        width = rng.uniform(0.0, 0.1)
        lower = np.maximum(middle - width, 0.0)
        lower[-1] = 1.0 - 1e-3
        exact = [Fraction(float(p)) for p in middle]
        masses = [p - q for p, q in zip(exact, [Fraction(0), *exact[:-1]], strict=True)]
        mean = sum(Fraction(k, 3) * p for k, p in enumerate(masses))
        found = made(
            lower.tolist(),
            np.minimum(middle + width, 1.0).tolist(),
            (float(mean) * 0.999, float(mean) * 1.001),
        )
        for k, mass in enumerate(masses):
            assert Fraction(found.masses[0][k]) <= mass <= Fraction(found.masses[1][k])
        for level in (Fraction(1, 4), Fraction(1, 2), Fraction(7, 8)):
            place = next(k for k, p in enumerate(exact) if p >= level)
            low, high = found.quantile(float(level))
            assert Fraction(low) <= Fraction(place, 3) <= Fraction(high)
            beyond = sum(Fraction(k - place, 3) * p for k, p in enumerate(masses) if k > place)
            right = Fraction(place, 3) + beyond / (1 - level)
            low, high = found.tail_mean(float(level))
            assert Fraction(low) <= right <= Fraction(high)


def test_by_hand() -> None:
    found = hybrid.distribution(hybrid.parse(WALK), ASKED)
    assert found.unit == Fraction(1, 2) and found.reached == (1.0, 1.0)
    assert found.lower[3] == pytest.approx(1 / 3) and found.lower[2] == found.upper[2] == 0.0
    assert found.mean[0] <= 4 <= found.mean[1]
    assert found.quantile(0.3) == (1.5, 1.5) and found.quantile(0.9) == (8.0, 8.0)
    assert found.quantile(1.0) == (float(found.rewards[-1]) + 0.5, np.inf)
    assert "units of 1/2" in repr(found)


def test_a_set_that_may_be_missed() -> None:
    text = WALK.replace("1/2:(s'=0) + 1/2:(s'=3)", "1/2:(s'=2) + 1/4:(s'=3) + 1/4:(s'=1)").replace(
        "[] s=1 -> 1/3:(s'=2) + 2/3:(s'=0)", "[] s=1 -> true"
    )
    found = hybrid.distribution(hybrid.parse(text), ASKED)
    assert found.mean == (np.inf, np.inf) and found.reached[0] <= 0.25 <= found.reached[1]
    assert found.quantile(0.9) == (np.inf, np.inf) and found.tail_mean(0.1) == (np.inf, np.inf)
    assert found.quantile(0.125)[0] == 1.5


def test_a_set_that_earns_nothing() -> None:
    found = hybrid.distribution(hybrid.parse(WALK), 'R{"a"}=? [ F s=0 ]')
    assert found.lower.tolist() == [1.0] and found.tail_mean(0.9) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "prop", "options", "message"),
    [
        (WALK, "P=? [ F s=3 ]", {}, "expected one property R"),
        (WALK, 'R{"a"}<=3 [ F s=3 ]', {}, "without a bound"),
        (WALK, 'R{"a"}=? [ C ]', {}, "expected one property R"),
        (WALK, ASKED, {"method": "jacobi"}, "gives no bounds"),
        (WALK, ASKED, {"tail": 0.0}, "tail: expected a probability"),
        (WALK.replace("dtmc", "ctmc"), ASKED, {}, "states of a CTMC earn over time"),
        (WALK.replace("dtmc", "mdp"), ASKED.replace("=?", "max=?"), {}, "an MDP has one for every scheduler"),
        (WALK + " init s<2 endinit", ASKED, {}, "expected one initial state, got 2"),
    ],
)
def test_refusals(text: str, prop: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.distribution(hybrid.parse(text), prop, **options)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = tmp_path / "walk.prism", tmp_path / "walk.csv"
    model.write_text(WALK)
    shared = ["distribution", str(model), ASKED, "--quantiles", "0.3,0.9", "--tail-means", "0.5"]
    assert main([*shared, "--csv", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "up to 0.9    8" in shown and "beyond 0.5   6.111" in shown and "more: --csv FILE" in shown
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert rows[3]["reward"] == "1.5" and float(rows[3]["at_most_lower"]) == pytest.approx(1 / 3)
    assert main([*shared, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["distribution"]
    assert found["unit"] == "1/2" and found["quantiles"][1] == {"probability": 0.9, "bounds": [8.0, 8.0]}
    assert len(found["rewards"]) == len(found["lower"]) == len(rows)
    assert main(["distribution", str(model), "P=? [ F s=3 ]"]) == 1
    assert "expected one property R" in capsys.readouterr().err


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = hybrid.distribution(hybrid.parse(WALK), ASKED)
    found.plot(tmp_path / "walk.svg")
    assert "</svg>" in (tmp_path / "walk.svg").read_text()
