"""Iterations that are spent: the bounds reached are told, and hold; what they leave open is not decided."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.__main__ import main
from hybrid.base.errors import NotConvergedError
from hybrid.solvers import Status
from tests.builders.random_chains import RandomChain
from tests.builders.random_mdps import mdps

SLOW = """dtmc
const int n;
module walk
  x : [0..n] init 1;
  [] x > 0 & x < n -> 0.5 : (x'=x-1) + 0.5 : (x'=x+1);
endmodule
rewards "steps" x > 0 & x < n : 1; endrewards
label "up" = x = n;
"""
QUEUE = """ctmc
module m
x : [0..60];
[] x<60 -> 1 : (x'=x+1);
[] x>0 -> 1.01 : (x'=x-1);
endmodule
"""

METHODS = ("interval", "optimistic")


def held(answer: hybrid.Answer, exact: Fraction | float) -> None:
    """Assert that an answer without a value has bounds that hold, or none."""
    assert answer.value is None
    assert "iteration limit" in (answer.error or "")
    assert isinstance(answer.fault, NotConvergedError)
    if answer.lower is not None:
        assert answer.lower <= exact <= answer.upper
        assert answer.kind == "certified"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [3, 20, 100])
def test_bounds_reached_are_told(method: Any, limit: int) -> None:
    model = hybrid.parse(SLOW, constants={"n": 40})
    answer = hybrid.check(model, 'P=? [ F "up" ]', method=method, max_iterations=limit, throw=False)
    held(answer, Fraction(1, 40))
    assert answer.lower is not None
    assert "so far" in repr(answer)
    record = answer.record()
    assert (record["value"], record["lower"], record["upper"]) == (None, answer.lower, answer.upper)
    assert "interrupted" not in record
    with pytest.raises(NotConvergedError, match="iteration limit"):
        hybrid.check(model, 'P=? [ F "up" ]', method=method, max_iterations=limit)


def test_more_iterations_bring_bounds_closer() -> None:
    model = hybrid.parse(SLOW, constants={"n": 40})
    widths = []
    for limit in (10, 100, 400):
        found = hybrid.check(model, 'P=? [ F "up" ]', method="interval", max_iterations=limit, throw=False)
        assert found.lower is not None
        widths.append(found.upper - found.lower)
    assert widths[0] > widths[1] > widths[2] > 0.0


def test_a_comparison_is_decided_by_them_or_not_at_all() -> None:
    model = hybrid.parse(SLOW, constants={"n": 40})
    options: dict[str, Any] = {"method": "interval", "max_iterations": 100, "throw": False}
    assert hybrid.check(model, 'P<0.9 [ F "up" ]', **options).value is True
    close = hybrid.check(model, 'P<0.02500001 [ F "up" ]', **options)
    assert close.value is None
    assert isinstance(close.fault, NotConvergedError)


def test_states_listed_by_a_filter_are_not_told_half_way() -> None:
    model = hybrid.parse(SLOW, constants={"n": 40})
    asked = 'filter(print, P=? [ F "up" ], x<3)'
    found = hybrid.check(model, asked, method="interval", max_iterations=9, throw=False)
    assert (found.value, found.lower, found.upper) == (None, None, None)
    assert isinstance(found.fault, NotConvergedError)


def test_long_run_averages_are_told_between_bounds() -> None:
    model = hybrid.parse(QUEUE)
    exact = hybrid.check(model, "S=? [ x>30 ]", exact=True).exact
    assert exact is not None
    answer = hybrid.check(model, "S=? [ x>30 ]", method="interval", max_iterations=30, throw=False)
    held(answer, exact)
    assert answer.lower is not None


def settled(model: hybrid.Model, asked: str, method: Any, limit: int) -> None:
    answer = hybrid.check(model, asked, method=method, max_iterations=limit, throw=False)
    # Where no bound could be verified, none is told.
    if isinstance(answer.fault, NotConvergedError) and answer.fault.status is Status.MAX_ITERATIONS:
        exact = hybrid.check(model, asked, exact=True)
        held(answer, exact.value if exact.exact is None else exact.exact)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(METHODS), st.booleans())
def test_bounds_of_random_chains_hold(seed: int, limit: int, method: Any, continuous: bool) -> None:
    rng = np.random.default_rng(seed)
    model = hybrid.parse(RandomChain(rng, continuous).text)
    goal = int(rng.integers(0, 2))
    for text in (f"P=? [ F x={goal} ]", f"R=? [ F x={goal} ]", f"S=? [ x={goal} ]", "R=? [ S ]"):
        settled(model, f"filter(min, {text})", method, limit)


@settings(max_examples=50)
@given(mdps(), st.integers(1, 40), st.sampled_from(METHODS), st.sampled_from(["min", "max"]))
def test_bounds_of_random_decision_processes_hold(text: str, limit: int, method: Any, best: str) -> None:
    model = hybrid.parse(text)
    for question in (f"P{best}=? [ F x=1 ]", f"R{best}=? [ F x=1 ]"):
        settled(model, f"filter(max, {question})", method, limit)


def test_the_command_tells_them_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.prism"
    path.write_text(SLOW, encoding="utf-8")
    command = ["check", str(path), 'P=? [ F "up" ]', "--const", "n=40", "--method", "interval"]
    command += ["--max-iters", "20"]
    assert main(command) == 1
    shown = capsys.readouterr().out
    assert "iteration limit" in shown
    assert "so far" in shown
    assert main([*command, "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["lower"] < 1 / 40 < result["upper"]
    assert result["kind"] == "certified"
