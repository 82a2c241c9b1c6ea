"""A check that ends in the midst of an iteration goes on where it was, and comes to the same answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hybrid
import hybrid.analysis.checkpoints.checkpoint as solution_record
from hybrid.matrix.space.swept import SweptSystem
from tests.builders.killing import Killed, Killer
from tests.exploring import each
from tests.source_tree import ROOT

WALK = """dtmc
const int n;
module walk
  x : [0..n] init 20;
  [] x > 0 & x < n -> 0.5 : (x'=x-1) + 0.5 : (x'=x+1);
endmodule
rewards "steps" x > 0 & x < n : 1; endrewards
label "up" = x = n;
"""

QUEUE = """ctmc
module queue
  x : [0..20];
  [] x < 20 -> 1 : (x'=x+1);
  [] x > 0 -> 1.1 : (x'=x-1);
endmodule
rewards "length" true : x; endrewards
"""

CHOICES = """mdp
module walk
  x : [0..16] init 6;
  [up] x > 0 & x < 16 -> 0.5 : (x'=x-1) + 0.5 : (x'=x+1);
  [down] x > 0 & x < 16 -> 0.6 : (x'=x-1) + 0.4 : (x'=x+1);
endmodule
rewards "steps" x > 0 & x < 16 : 1; endrewards
"""

SHORT = WALK.replace("const int n;", "const int n = 24;")

LONG = WALK.replace("const int n;", "const int n = 40;")

TEXTS = {"walk": SHORT, "long": LONG, "queue": QUEUE, "choices": CHOICES}

CASES = [
    ("walk", 'P=? [ F "up" ]', ("auto", "interval", "jacobi", "jor", "power", "gauss-seidel", "bicgstab")),
    ("walk", 'R{"steps"}=? [ F x=0|x=24 ]', ("auto", "interval", "gauss-seidel")),
    ("walk", 'P=? [ F<=1000 "up" ]', ("auto",)),
    ("long", 'P=? [ F "up" ]', ("auto",)),
    ("long", 'R{"steps"}=? [ F x=0|x=40 ]', ("auto",)),
    ("queue", 'R{"length"}=? [ S ]', ("auto", "bicgstab", "jor", "power", "gauss-seidel")),
    ("queue", "P=? [ F<=200 x=20 ]", ("auto",)),
    ("queue", 'R{"length"}=? [ C<=300 ]', ("auto",)),
    ("choices", "Pmax=? [ F x=16 ]", ("auto", "interval", "jacobi")),
    ("choices", 'R{"steps"}min=? [ F x=0|x=16 ]', ("auto",)),
    ("choices", "Pmax=? [ F<=500 x=16 ]", ("auto",)),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solutions are kept however quickly they are found; few equations are iterated, too."""
    monkeypatch.setattr("hybrid.solvers.direct_bounds.FEW", 0)
    monkeypatch.setattr(solution_record, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(solution_record, "_BYTES_PER_SECOND", float("inf"))


def agree(found: hybrid.Answer, expected: hybrid.Answer) -> None:
    """Assert that two answers are one, within their bounds."""
    assert isinstance(found.value, float) and isinstance(expected.value, float)
    assert found.kind == expected.kind
    assert found.value == pytest.approx(expected.value, rel=1e-4)
    if expected.lower is not None and expected.upper is not None:
        assert found.lower is not None and found.upper is not None
        assert found.lower <= expected.upper and expected.lower <= found.upper


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "text", "method", "engine"),
    each(((n, t, m) for n, t, own in CASES for m in own), ["hybrid", "explicit"]),
)
def test_goes_on_where_it_was(name: str, text: str, method: Any, engine: Any, tmp_path: Path) -> None:
    model = hybrid.parse(TEXTS[name])
    given: dict[str, Any] = {"method": method, "engine": engine, "epsilon": 1e-6}
    whole = Killer()
    expected = hybrid.check(model, text, progress=whole, **given)
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_minutes": 1e6} | given
    made = 0
    if whole.looks > 2:
        made = whole.looks // 2
        with pytest.raises(Killed):
            hybrid.check(model, text, progress=Killer(made), **kept)
    rest = Killer()
    agree(hybrid.check(model, text, progress=rest, **kept), expected)
    # The pace is not kept: it takes some looks to be seen again.
    assert rest.looks <= 1.2 * (whole.looks - made) + 8
    # Once more: the solution is there.
    again = Killer()
    found = hybrid.check(model, text, progress=again, **kept)
    agree(found, expected)
    assert again.looks <= 3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("at", [2, pytest.param(11, marks=pytest.mark.nightly), 23])
def test_goes_on_in_the_midst_of_a_krylov_method(at: int, tmp_path: Path) -> None:
    model = hybrid.parse(WALK, constants={"n": 400})
    whole = Killer()
    # By name and with a checkpoint: otherwise so few states are solved exactly at once, or before long.
    text, method = 'P=? [ F "up" ]', "optimistic"
    elsewhere = tmp_path / "whole"
    expected = hybrid.check(
        model, text, method=method, progress=whole, checkpoint=elsewhere, checkpoint_minutes=1e6
    )
    assert expected.value == pytest.approx(0.05)
    assert expected.statistics.products < 20_000  # value iteration takes hundreds of thousands
    kept: dict[str, Any] = {"checkpoint": tmp_path / "kept", "checkpoint_minutes": 1e6}
    at = whole.looks - at
    with pytest.raises(Killed):
        hybrid.check(model, text, method=method, progress=Killer(at), **kept)
    rest = Killer()
    found = hybrid.check(model, text, method=method, progress=rest, **kept)
    agree(found, expected)
    assert found.lower is not None and found.upper is not None and found.lower <= 0.05 <= found.upper


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("share", [0.7, 0.9])
def test_goes_on_in_the_midst_of_sweeps(
    share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long-run averages begin with sweeps on the CPU, and so does the run that goes on."""
    began = []
    own = SweptSystem.idr

    def noted(self: SweptSystem, b: Any, start: Any, *arguments: Any) -> Any:
        began.append(bool(start.any()))
        return own(self, b, start, *arguments)

    monkeypatch.setattr(SweptSystem, "idr", noted)
    model = hybrid.load(ROOT / "examples/tandem.prism", constants={"c": 31})
    text = 'R{"customers"}=? [ S ]'
    given: dict[str, Any] = {"backend": "cpu", "checkpoint": tmp_path, "checkpoint_minutes": 1e6}
    whole, rest = Killer(), Killer()
    expected = hybrid.check(model, text, backend="cpu", progress=whole)
    with pytest.raises(Killed):
        hybrid.check(model, text, progress=Killer(int(share * whole.looks)), **given)
    agree(hybrid.check(model, text, progress=rest, **given), expected)
    assert began == [False, False, True]
    assert rest.looks < whole.looks


@pytest.mark.usefixtures("quick")
def test_one_run_after_another_comes_to_the_end(tmp_path: Path) -> None:
    model = hybrid.parse(WALK, constants={"n": 30})
    kept: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_minutes": 1e6}
    for _ in range(60):
        try:
            found = hybrid.check(model, 'P=? [ F "up" ]', method="interval", progress=Killer(100), **kept)
            break
        except Killed:
            continue
    assert found.lower is not None and found.upper is not None
    assert found.lower <= 2 / 3 <= found.upper <= found.lower * (1 + 1e-7)


@pytest.mark.usefixtures("quick")
def test_more_iterations_go_on(tmp_path: Path) -> None:
    model = hybrid.parse(SHORT)
    given: dict[str, Any] = {"method": "jacobi", "checkpoint": tmp_path}
    found = hybrid.check(model, 'P=? [ F "up" ]', max_iterations=200, throw=False, **given)
    assert found.value is None
    found = hybrid.check(model, 'P=? [ F "up" ]', **given)
    whole = hybrid.check(model, 'P=? [ F "up" ]', method="jacobi")
    assert found.value == whole.value
    assert found.statistics.iterations == whole.statistics.iterations


@pytest.mark.usefixtures("quick")
def test_solutions_of_all_properties_are_kept(tmp_path: Path) -> None:
    model = hybrid.parse(SHORT)
    text = 'P=? [ F "up" ]; R{"steps"}=? [ F x=0|x=24 ]; P>=0.4 [ F P>=0.5 [ F "up" ] ];'
    given: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_minutes": 1e6, "method": "interval"}
    first, again = Killer(), Killer()
    expected = hybrid.check_all(model, text, progress=first, **given)
    found = hybrid.check_all(model, text, progress=again, **given)
    assert [a.value for a in found] == [a.value for a in expected]
    assert first.looks > 300 and again.looks == 0


@pytest.mark.usefixtures("quick")
def test_another_engine_goes_on(tmp_path: Path) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    text = 'R{"throughput"}=? [ S ]'
    given: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_minutes": 1e6, "method": "jor"}
    whole, rest = Killer(), Killer()
    expected = hybrid.check(model, text, method="jor", progress=whole)
    with pytest.raises(Killed):
        hybrid.check(model, text, progress=Killer(whole.looks // 2), **given)
    agree(hybrid.check(model, text, engine="explicit", level="min-memory", progress=rest, **given), expected)
    assert rest.looks < 0.6 * whole.looks


def test_short_solutions_are_not_written(tmp_path: Path) -> None:
    model = hybrid.parse(SHORT)
    hybrid.check(model, 'P=? [ F "up" ]', checkpoint=tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["check.json"]


@pytest.mark.gpu
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "text", "method"),
    [
        ("queue", 'R{"length"}=? [ S ]', "auto"),
        ("queue", 'R{"length"}=? [ S ]', "jor"),
        ("queue", 'R{"length"}=? [ S ]', "bicgstab"),
        ("queue", "P=? [ F<=200 x=20 ]", "auto"),
        ("walk", 'P=? [ F "up" ]', "auto"),
        ("walk", 'P=? [ F "up" ]', "interval"),
        ("choices", "Pmax=? [ F x=16 ]", "auto"),
    ],
)
def test_a_device_goes_on(name: str, text: str, method: Any, tmp_path: Path) -> None:
    model = hybrid.parse(TEXTS[name])
    given: dict[str, Any] = {"method": method, "epsilon": 1e-6}
    kept = {"checkpoint": tmp_path, "checkpoint_minutes": 1e6} | given
    whole = Killer()
    expected = hybrid.check(model, text, progress=whole, backend="gpu", **given)
    if whole.looks > 2:
        with pytest.raises(Killed):
            hybrid.check(model, text, progress=Killer(whole.looks // 2), backend="gpu", **kept)
    agree(hybrid.check(model, text, backend="gpu", **kept), expected)
    # What a device has left, the host goes on with.
    agree(hybrid.check(model, text, backend="cpu", **kept), expected)
