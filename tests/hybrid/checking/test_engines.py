"""The engines and the methods that only some of them have, against values known by hand."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import OptionError
from tests.builders.chain_texts import GAMBLER, STAIRS, load_text
from tests.builders.known_answers import OF_CHAINS
from tests.exploring import each

ENGINES = [("hybrid", "cpu"), ("hybrid", "reference"), ("explicit", "cpu")]


@pytest.mark.parametrize(
    ("text", "prop", "expected", "engine", "backend"),
    each(OF_CHAINS, ENGINES),
)
def test_bounds_contain_the_exact_value(text, prop, expected, engine, backend, tmp_path):
    answer = hybrid.check(load_text(tmp_path, text), prop, engine=engine, backend=backend, throw=False)
    assert answer.error is None
    if expected == math.inf:
        assert (answer.lower, answer.value, answer.upper) == (math.inf,) * 3
        return
    assert Fraction(answer.lower) <= expected <= Fraction(answer.upper)
    assert answer.value == pytest.approx(float(expected), rel=1e-8, abs=1e-15)
    assert answer.upper - answer.lower <= 1e-8 * answer.upper


# A bound inside of another operator needs a method with bounds.
@pytest.mark.parametrize(
    ("text", "prop", "expected", "engine", "backend"),
    each((case for case in OF_CHAINS if "P>=" not in case[1]), ENGINES),
)
def test_gauss_seidel_comes_close(text, prop, expected, engine, backend, tmp_path):
    answer = hybrid.check(
        load_text(tmp_path, text),
        prop,
        engine=engine,
        backend=backend,
        method="gauss-seidel",
        epsilon=1e-12,
        throw=False,
    )
    assert answer.error is None
    assert answer.value == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
    if answer.statistics.method == "gauss-seidel":
        assert (answer.lower, answer.upper) == (None, None)


def test_components_are_solved_one_after_another_where_that_pays(tmp_path):
    model = load_text(tmp_path, STAIRS)
    answer = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit")
    assert answer.statistics.method == "topological"
    assert answer.record()["engine"] == "explicit"
    for other in ("optimistic", "interval"):
        chosen = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit", method=other)
        assert chosen.statistics.method == other
        assert chosen.lower <= answer.upper
        assert answer.lower <= chosen.upper
    ring = hybrid.check(load_text(tmp_path, GAMBLER), "P=? [ F x=goal ]", engine="explicit")
    assert ring.statistics.method == "optimistic"


def test_rewards_of_both_signs_by_components(tmp_path):
    text = STAIRS.replace("s<8 : 1;", "s<3 : 1; s>=3 & s<6 : -1;")
    model = load_text(tmp_path, text)
    one, other = (hybrid.check(model, "R=? [ F s>=8 ]", engine=e) for e in ("explicit", "hybrid"))
    assert one.statistics.method == "topological"
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert one.value == pytest.approx(other.value, rel=1e-7)


@pytest.mark.parametrize("omega", [0.5, 1.3])
def test_relaxed_sweeps_reach_the_same_value(omega, tmp_path):
    model = load_text(tmp_path, GAMBLER)
    options = {"engine": "explicit", "method": "gauss-seidel", "epsilon": 1e-12}
    answer = hybrid.check(model, "P=? [ F x=goal ]", omega=omega, **options)
    assert answer.value == pytest.approx(76 / 211, rel=1e-10)


def test_sweeps_stay_on_the_cpu():
    options = CheckOptions(method="gauss-seidel")
    assert options.matrix_backend().name == "cpu"
    assert CheckOptions(method="gauss-seidel", backend="reference").matrix_backend().name == "reference"
    assert CheckOptions().matrix_backend().is_free


def test_symbolic_vectors_are_refused_with_advice():
    with pytest.raises(OptionError, match="choose hybrid or explicit"):
        CheckOptions(engine="symbolic")


def test_records_are_plain_json(tmp_path):
    answer = hybrid.check(load_text(tmp_path, STAIRS), "P=? [ F s=8 ]", engine="explicit")
    assert json.loads(json.dumps(answer.record()))["method"] == "topological"
