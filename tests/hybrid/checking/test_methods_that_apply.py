"""A method that does not apply is an error that names those that do; another one never takes its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.base.errors import OptionError, UnsupportedError
from hybrid.base.option_types import MethodName
from hybrid.models.model import Model
from tests.exploring import pairs

RING = """
ctmc
module m
  s : [0..4] init 0;
  [] s=0 -> 1 : (s'=1) + 2 : (s'=3);
  [] s=1 -> 2 : (s'=2) + 2 : (s'=4);
  [] s=2 | s=4 -> 3 : (s'=s=2 ? 1 : 2);
  [] s=3 -> 1 : true;
endmodule
rewards "r" s=1 : 6; s=3 : 1; endrewards
"""
CHOICES = """
mdp
module m
  s : [0..2] init 0;
  [a] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=0);
  [b] s=0 -> 0.1 : (s'=1) + 0.9 : (s'=2);
  [] s>0 -> true;
endmodule
"""
METHODS = get_args(MethodName)
# What the account calls the method that ran in the long run; None where none applies.
AVERAGES = {
    "auto": "gain",
    "interval": "gain",
    "jacobi": "jacobi",
    "jor": "jor",
    "power": "power",
    "gauss-seidel": "gauss-seidel",
    "optimistic": None,
    "bicgstab": "gain",
}


@pytest.fixture(scope="module")
def ring() -> Model:
    return hybrid.parse(RING)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("prop", "value"), [("S=? [ s=1 ]", 1 / 9), ('R{"r"}=? [ S ]', 4 / 3)])
def test_averages_have_methods_of_their_own(ring: Model, method: Any, prop: str, value: float) -> None:
    answer = hybrid.check(ring, prop, method=method, backend="cpu", throw=False)
    if AVERAGES[method] is None:
        assert answer.value is None and isinstance(answer.fault, OptionError)
        assert answer.error is not None and f"the method {method} solves systems" in answer.error
        assert all(name in answer.error for name, applies in AVERAGES.items() if applies)
        return
    assert answer.value == pytest.approx(value, rel=1e-5)
    # The account of an average in a single component names it.
    one = hybrid.check(hybrid.parse(RING.replace("init 0", "init 1")), prop, method=method, backend="cpu")
    assert one.statistics.method == AVERAGES[method]


@pytest.mark.parametrize("method", METHODS)
def test_systems_have_every_method(ring: Model, method: Any) -> None:
    answer = hybrid.check(ring, "P=? [ F s=3 ]", method=method, backend="cpu")
    assert answer.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("prop", "comes_by", "method", "engine"),
    pairs(
        [
            ("P=? [ F<=1 s=3 ]", "uniformisation"),
            ("P=? [ F[0.5,1] s=3 ]", "uniformisation"),
            ('R{"r"}=? [ C<=1 ]', "uniformisation"),
            ('R{"r"}=? [ I=1 ]', "uniformisation"),
            ("P=? [ X s=3 ]", "steps"),
            ("P=? [ F s=3 ]", None),
        ],
        METHODS,
        ["hybrid", "explicit"],
    ),
)
def test_f16_what_solves_no_system_tells_that_the_method_does_not_apply(
    ring: Model, prop: str, comes_by: str | None, method: Any, engine: Any
) -> None:
    answer = hybrid.check(ring, prop, method=method, backend="cpu", engine=engine)
    if method == "auto" or comes_by is None:
        assert answer.warnings == ()
        return
    (told,) = answer.warnings
    assert f"the method {method} does not apply" in told and told.endswith(comes_by)
    assert answer.record()["warnings"] == [told]
    assert answer.value == hybrid.check(ring, prop, backend="cpu", engine=engine).value


@pytest.mark.parametrize("prop", ["Pmax=? [ F<5 s=1 ]", "Pmin=? [ X s=1 ]"])
def test_f16_windows_of_choices_tell_it_as_well(prop: str) -> None:
    (told,) = hybrid.check(hybrid.parse(CHOICES), prop, method="interval", backend="cpu").warnings
    assert "the method interval does not apply to numbers of steps" in told


def test_f16_the_line_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "ring.prism"
    path.write_text(RING)
    assert main(["check", str(path), "P=? [ F<=1 s=3 ]", "--method", "jacobi", "--backend", "cpu"]) == 0
    assert (
        "warning: P=? [ F<=1 s=3 ]: the method jacobi does not apply to windows of time"
        in capsys.readouterr().err
    )


def test_a_property_without_an_answer_hides_no_other(ring: Model) -> None:
    found = hybrid.check_all(ring, "S=? [ s=1 ]; P=? [ F s=3 ]; S=? [ s<=4 ]", method="optimistic")
    assert [answer.error is None for answer in found] == [False, True, True]


@pytest.mark.parametrize("method", METHODS)
def test_choices_refuse_methods_for_linear_systems(method: Any) -> None:
    answer = hybrid.check(hybrid.parse(CHOICES), "Pmin=? [ F s=2 ]", method=method, throw=False)
    assert answer.value == 0.0  # the graph decides
    answer = hybrid.check(hybrid.parse(CHOICES), "Pmax=? [ F s=1 ]", method=method, throw=False)
    answer = hybrid.check(hybrid.parse(CHOICES), "Pmax=? [ F<5 s=1 ]", method=method, throw=False)
    assert answer.value == pytest.approx(1 - 0.5**4)
    mixed = CHOICES.replace("0.5 : (s'=1) + 0.5 : (s'=0)", "0.5 : (s'=1) + 0.3 : (s'=0) + 0.2 : (s'=2)")
    answer = hybrid.check(hybrid.parse(mixed), "Pmax=? [ F s=1 ]", method=method, throw=False)
    if method in ("jor", "gauss-seidel", "bicgstab"):
        assert isinstance(answer.fault, UnsupportedError) and "choose optimistic" in str(answer.fault)
        return
    assert answer.value == pytest.approx(5 / 7)
    expected = {"auto": "optimistic", "jacobi": "value-iteration", "power": "value-iteration"}
    assert answer.statistics.method == expected.get(method, method)


@pytest.mark.parametrize("method", METHODS)
def test_distributions_refuse_what_they_do_not_take(ring: Model, method: Any) -> None:
    chain = hybrid.parse(RING.replace("init 0", "init 1"))
    if method in ("interval", "optimistic", "bicgstab"):
        with pytest.raises(OptionError, match="jor"):
            chain.steady_state(method=method)
    else:
        assert chain.steady_state(method=method).tolist() == pytest.approx([1 / 3, 4 / 9, 2 / 9])
    if method != "auto":
        with pytest.raises(OptionError, match="leave " + method):
            ring.transient(1.0, method=method)


WALK = """
dtmc
module m
  s : [0..9] init 5;
  [] s>0 & s<9 -> 0.3 : (s'=s-1) + 0.7 : (s'=s+1);
  [] s=0 | s=9 -> true;
endmodule
"""


@pytest.mark.parametrize("absolute", [False, True])
def test_bounds_wider_than_epsilon_come_with_a_sentence(absolute: bool) -> None:
    model = hybrid.parse(WALK)
    for epsilon, is_wide in ((1e-6, False), (1e-15, True)):
        answer = hybrid.check(model, "P=? [ F s=9 ] - P=? [ F<=30 s=9 ]", epsilon=epsilon, absolute=absolute)
        assert answer.lower is not None and answer.upper is not None
        width = (answer.upper - answer.lower) / (1.0 if absolute else answer.upper)
        assert (width > epsilon) is is_wide
        if not is_wide:
            assert answer.warnings == ()
            continue
        (told,) = answer.warnings
        assert "further than epsilon 1e-15" in told and ("of the value" in told) is not absolute
        assert answer.record()["warnings"] == [told]


def test_a_truth_and_a_rational_number_have_no_width() -> None:
    model = hybrid.parse(WALK)
    for prop, exact in (("P>0.5 [ F s=9 ]", False), ("P=? [ F s=9 ]", True)):
        assert hybrid.check(model, prop, epsilon=1e-17, exact=exact).warnings == ()
