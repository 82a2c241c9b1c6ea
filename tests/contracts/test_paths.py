"""One question has one answer on every path: by default, written out, exactly, from a list, on a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import use_device
from tests.exploring import each, pairs
from tests.gpu_kernels.host_device import HostDevice

PATHS: dict[str, dict[str, Any]] = {
    "cpu": {"backend": "cpu"},
    "explicit engine": {"engine": "explicit", "backend": "cpu"},
    "reference": {"backend": "reference"},
    "exact": {"exact": True},
    "listed": {"build": "explicit", "backend": "cpu"},
    "listed, exact": {"build": "explicit", "exact": True},
    "device": {"backend": "gpu"},
    "quotient": {"bisimulation": True, "backend": "cpu"},
}

WALK = """dtmc
module m s:[0..3];
  [] s=0 -> 1/3:(s'=1)+0.6:(s'=2)+1/15:(s'=0);
  [] s=1 -> 0.7:(s'=3)+0.3:(s'=0);
  [] s>1 -> true;
endmodule"""
FORK = """dtmc
module m s:[0..2]; [] s=0 -> 0.25:(s'=1)+0.75:(s'=2); [] s>0 -> true; endmodule
rewards "r" s=0 : 3; endrewards
rewards "kept" s=1 : 8; endrewards"""

LOSS = """dtmc
module t s:[0..2];
  [] s=0 -> 0.8:(s'=1)+0.2:(s'=2);
  [] s=1 -> 0.8:(s'=0)+0.2:(s'=2);
  [] s=2 -> true;
endmodule
rewards "loss" s<2 : -7; endrewards
rewards "both" s=0 : 6; s=1 : -5; endrewards
rewards "endless" s=1 : -1; s=2 : 1; endrewards"""

NEAR = """dtmc
module m s:[0..2];
  [] s=0 -> {}:(s'=1) + {}:(s'=2);
  [] s>0 -> true;
endmodule"""

COIN = """dtmc
module m s:[0..2];
  [] s=0 -> 0.5:(s'=0) + 0.5:(s'=1);
  [] s=1 -> (s'=2);
  [] s=2 -> true;
endmodule
rewards "a" s=0 : 3; s=1 : 1; endrewards"""


@dataclass(frozen=True)
class Case:
    """A question, what is right, and what the answer comes with."""

    text: str
    prop: str
    right: Fraction | bool | float
    warning: str = ""
    rational: bool = True  # whether exact answers have it
    cancels: bool = False  # paths that bound gains and losses apart may warn of a distance beyond epsilon


def scattered(size: int) -> tuple[str, Fraction]:
    """A walk that the automatic build lists, a command a state, and how likely it comes to the end."""
    lines, reach = [], {size - 2: Fraction(1), size - 1: Fraction(0)}
    for i in reversed(range(size - 2)):
        ahead = [i + 1 + (number * (i + 17)) % (size - 2 - i) for number in (7919, 104729)]
        reach[i] = Fraction(3, 10) * reach[ahead[0]] + Fraction(3, 5) * reach[ahead[1]]
        lines.append(f"[] at={i} -> 0.3:(at'={ahead[0]}) + 0.6:(at'={ahead[1]}) + 0.1:(at'={size - 1});")
    body = "\n".join([f"at : [0..{size - 1}];", *lines, f"[] at>={size - 2} -> true;"])
    return f'dtmc\nmodule walk\n{body}\nendmodule\nlabel "end" = at={size - 2};', reach[0]


SCATTERED, COMES_TO_THE_END = scattered(1200)


CASES = {
    "f1 states that are listed": Case(SCATTERED, 'P=? [ F "end" ]', COMES_TO_THE_END),
    "f1 a sum of fractions": Case(WALK, "P=? [ F s=3 ]", Fraction(7, 25)),
    "f1 a tie": Case(WALK, "P>=0.28 [ F s=3 ]", True),
    "f1 a strict tie": Case(WALK, "P>0.28 [ F s=3 ]", False),
    "f10 LRA": Case(FORK, "LRA=? [ s=1 ]", Fraction(1, 4)),
    "f10 LRA of a reward": Case(FORK, 'R{"kept"}=? [ LRA ]', Fraction(2)),
    "f10 LRA with a bound": Case(FORK, "LRA>=0.25 [ s=1 ]", True),
    "f10 LRA of a continuous chain": Case(FORK.replace("dtmc", "ctmc"), 'R{"kept"}=? [ LRA ]', Fraction(2)),
    "f10 LRAmax on a chain": Case(FORK, "LRAmax=? [ s=1 ]", Fraction(1, 4), "Smax is S here"),
    "f10 Smin on a chain": Case(FORK, "Smin=? [ s=1 ]", Fraction(1, 4), "Smin is S here"),
    "f10 S min on a chain": Case(FORK, "S min=? [ s=1 ]", Fraction(1, 4), "Smin is S here"),
    "f3 a negative total": Case(LOSS, 'R{"loss"}=? [ C ]', Fraction(-35)),
    "f3 a total of both signs": Case(LOSS, 'R{"both"}=? [ C ]', Fraction(50, 9), cancels=True),
    "f3 a negative reward until": Case(LOSS, 'R{"loss"}=? [ F s=2 ]', Fraction(-35)),
    "f3 a bound on a negative total": Case(LOSS, 'R{"loss"}>=0 [ C ]', False),
    "f12 just above 1": Case(NEAR.format("0.00001", "1"), "P=? [ F s=1 ]", Fraction(1, 100001)),
    "f12 just below 1": Case(NEAR.format("0.00001", "0.99998"), "P=? [ F s=1 ]", Fraction(1, 99999)),
    "f12 three thirds of five digits": Case(
        NEAR.format("0.33333", "0.33333 + 0.33333"), "P=? [ F s=1 ]", Fraction(1, 3)
    ),
    "f12 by the state": Case(NEAR.format("0.00001*(s+1)", "1-0.5*s"), "P=? [ F s=1 ]", Fraction(1, 100001)),
    "f25 X true": Case(COIN, 'R{"a"}=? [ X true ]', Fraction(3), rational=False),
    "f25 X of a label that holds everywhere": Case(COIN, 'R{"a"}=? [ X s>=0 ]', Fraction(3), rational=False),
    "f25 X X true": Case(COIN, 'R{"a"}=? [ X X true ]', Fraction(5), rational=False),
    "f25 steps before an until": Case(COIN, 'R{"a"}=? [ (X X true) U s=1 ]', Fraction(7), rational=False),
    "f25 an until that holds at once": Case(
        COIN, 'R{"a"}=? [ (X X true) U s=0 ]', Fraction(0), rational=False
    ),
    "f25 F as ever": Case(COIN, 'R{"a"}=? [ F s=1 ]', Fraction(6)),
    "f25 U as ever": Case(COIN, 'R{"a"}=? [ s=0 U s=1 ]', Fraction(6), rational=False),
    "f25 a least reward": Case(
        COIN.replace("dtmc", "mdp"), 'R{"a"}min=? [ X true ]', Fraction(3), rational=False
    ),
    "f25 an expected time": Case(COIN, "T=? [ X X true ]", Fraction(2), rational=False),
    "f2 Pmax": Case(FORK, "Pmax=? [ F s=1 ]", Fraction(1, 4), "Pmax is P here: a dtmc has no choices"),
    "f2 Pmin of a window": Case(FORK, "Pmin=? [ F<=3 s=1 ]", Fraction(1, 4), "Pmin is P here"),
    "f2 Pmax of a step": Case(FORK, "Pmax=? [ X s=1 ]", Fraction(1, 4), "Pmax is P here"),
    "f2 Tmin": Case(FORK, "Tmin=? [ F s>0 ]", Fraction(1), "Tmin is T here"),
    "f2 Rmax": Case(FORK, 'R{"r"}max=? [ F s>0 ]', Fraction(3), "Rmax is R here"),
    "f2 a comparison": Case(FORK, "Pmax<=0.25 [ F s=1 ]", True, "Pmax is P here"),
    "f2 in a filter": Case(FORK, "filter(max, Pmin=? [ F s=1 ], s=0)", Fraction(1, 4), "Pmin is P here"),
    "f2 nested": Case(FORK, "P=? [ F Pmin>=1 [ X s=2 ] ]", Fraction(3, 4), "Pmin is P here"),
    "f2 a quantile": Case(
        FORK, 'quantile(min B, Pmax>=0.25 [ F{"r"}<=B s=1 ])', Fraction(3), "Pmax is P here", False
    ),
    "f2 of a continuous chain": Case(
        FORK.replace("dtmc", "ctmc"), "Pmax=? [ F s=1 ]", Fraction(1, 4), "a ctmc has no choices"
    ),
    "f2 linear temporal logic": Case(
        FORK, "Pmax=? [ (F G s=1) | (F G s=2 & s=1) ]", Fraction(1, 4), "Pmax is P here", rational=False
    ),
    "f2 under a condition": Case(
        FORK, "Pmin=? [ F s=1 || F s>0 ]", Fraction(1, 4), "Pmin is P here", rational=False
    ),
}


def on_paths(names: Iterable[str]) -> list[Any]:
    """Questions with paths: the first one of a fault with all, each other one with two; the rest by night."""
    cases: list[Any] = []
    met: dict[str, int] = {}
    for name in names:
        fault = name.split()[0]
        turn = met[fault] = met.get(fault, -1) + 1
        for k, (path, options) in enumerate(PATHS.items()):
            if options.get("exact") and name in CASES and not CASES[name].rational:
                continue
            drawn = turn == 0 or (k - 2 * turn) % len(PATHS) < 2
            cases.append(pytest.param(name, path, marks=() if drawn else pytest.mark.nightly))
    return cases


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    options = PATHS[request.param]
    with use_device(HostDevice()) if options.get("backend") == "gpu" else nullcontext():
        yield dict(options)


def test_f1_the_automatic_build_lists_the_scattered_walk() -> None:
    given = hybrid.parse(SCATTERED).given
    assert given is not None and given.is_listed


@pytest.mark.parametrize(("name", "path"), on_paths(CASES), indirect=["path"])
def test_the_answer_is_the_same_on_every_path(name: str, path: dict[str, Any]) -> None:
    case = CASES[name]
    model = hybrid.parse(case.text, build=path.pop("build", "auto"))
    answer = hybrid.check(model, case.prop, epsilon=1e-7, **path)
    assert_right(answer, case.right)
    told = [w for w in answer.warnings if not (case.cancels and "a difference of much greater numbers" in w)]
    assert case.warning in "; ".join(told) if case.warning else not told


def test_a_total_that_is_no_number_is_told_on_every_path(path: dict[str, Any]) -> None:
    model = hybrid.parse(LOSS, build=path.pop("build", "auto"))
    with pytest.raises(hybrid.HybridError, match="need not add up to anything"):
        hybrid.check(model, 'R{"endless"}=? [ C ]', **path)


AVERAGES: dict[str, Fraction | bool] = {
    "Smax=? [ s=1 ]": Fraction(1, 3),
    "LRAmin=? [ s=1 ]": Fraction(1, 8),
    "LRA>=0.2 [ s=1 ]": False,
    "LRAmax>=0.3 [ s=1 ]": True,
    'R{"kept"}max=? [ LRA ]': Fraction(8, 3),
    'R{"kept"}min=? [ S ]': Fraction(1),
    "filter(min, Smax=? [ s=1 ])": Fraction(0),
    "Pmax=? [ F LRAmax>=0.5 [ s=1 ] ]": Fraction(1, 3),
}
CHOICES = FORK.replace("dtmc", "mdp").replace(
    "[] s>0 -> true;",
    "[] s=0 -> 1/3:(s'=1)+2/3:(s'=2); [] s=1 -> (s'=3); [] s=1 -> (s'=1); [] s=3 -> (s'=1); [] s=2 -> true;",
)


@pytest.mark.parametrize(("prop", "path"), each(AVERAGES, PATHS), indirect=["path"])
def test_f10_the_long_run_of_choices_is_the_same_on_every_path(prop: str, path: dict[str, Any]) -> None:
    text = CHOICES.replace("[0..2]", "[0..3]")
    model = hybrid.parse(text, build=path.pop("build", "auto"))
    assert_right(hybrid.check(model, prop, epsilon=1e-7, **path), AVERAGES[prop])


@pytest.mark.parametrize("prop", ["S=? [ s=1 ]", "LRA=? [ s=1 ]", 'R{"kept"}=? [ S ]', 'R{"kept"}=? [ LRA ]'])
def test_f10_the_long_run_of_choices_has_one_value_for_every_scheduler(prop: str) -> None:
    model = hybrid.parse(FORK.replace("dtmc", "mdp"))
    with pytest.raises(hybrid.LanguageError, match="has no single value on an MDP"):
        hybrid.check(model, prop)


@pytest.mark.parametrize(
    ("weights", "taken", "kind", "build"),
    pairs(
        [
            (("0.00001", "1"), True),
            (("0.0000100001", "1"), False),
            (("0.99", "0.00999"), True),
            (("0.99", "0.0099899999"), False),
            (("1/3", "2/3 + 1e-5"), True),
            (("1/3", "2/3 + 1e-5 + 1e-25"), False),
            (("(s+1)/3", "(s+2)/3 - 1e-5"), True),
            (("(s+1)/3", "(s+2)/3 - 1e-5 - 1e-25"), False),
        ],
        ["dtmc", "mdp"],
        ["symbolic", "explicit", "without the compiled search"],
    ),
)
def test_f12_the_tolerance_of_sums_is_that_of_the_text(
    weights: tuple[str, str], taken: bool, kind: str, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = NEAR.format(*weights).replace("dtmc", kind)
    if build.startswith("without"):
        monkeypatch.setattr("hybrid.models.exploration.explore.MOST_INSTRUCTIONS", 0)
        build = "explicit"
    if taken:
        assert hybrid.parse(text, build=build).n_states == 3
    else:
        with pytest.raises(hybrid.HybridError, match="probabilities of a command add up to"):
            hybrid.parse(text, build=build)


@pytest.mark.parametrize(
    ("other", "taken"), [(1.0, True), (0.99998, True), (1.000001, False), (0.999979, False)]
)
def test_f12_arrays_and_models_of_python_have_the_same_tolerance(other: float, taken: bool) -> None:
    written = hybrid.ModelBuilder("dtmc")
    s = written.variable("s", 0, 2)
    written.module("m").command(s == 0, updates=[(0.00001, {s: 1}), (other, {s: 2})])
    matrix = np.array([[0.0, 0.00001, other], [0, 1, 0], [0, 0, 1]])
    for make in (written.build, lambda: hybrid.from_scipy(matrix)):
        if taken:
            assert make().n_states == 3
        else:
            with pytest.raises(hybrid.HybridError, match="add up to"):
                make()


def test_f10_a_variable_may_be_called_lra() -> None:
    model = hybrid.parse('dtmc module m LRA:[0..2]; [] LRA<2 -> (LRA\'=LRA+1); endmodule label "e" = LRA=2;')
    assert hybrid.check(model, "P=? [ F LRA=2 ]", backend="reference").value == 1
    assert hybrid.check(model, "P=? [ F LRA>=1 & LRA<=2 ]", backend="reference").value == 1


def assert_right(answer: Any, right: Fraction | bool | float) -> None:
    """The right value is told exactly, or within bounds that are close."""
    if isinstance(right, bool) or not math.isfinite(right):
        assert answer.value == right
    elif answer.exact is not None:
        assert answer.exact == right
    else:
        assert answer.lower <= right <= answer.upper
        assert answer.upper - answer.lower <= 1e-6 * max(abs(right), 1)
