"""`hybrid check --plot` and `--plot-convergence`: what is drawn, and what is refused before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hybrid.base.figures as convergence
from hybrid.__main__ import main

MODEL = """dtmc
const int N;
const double p;
module walk
  s : [0..N];
  [] s < N -> p : (s' = s + 1) + 1 - p : (s' = 0);
  [] s = N -> true;
endmodule
"""
REACHED = "R=? [ F s=N ]"
STEPS = MODEL + "rewards true : 1; endrewards\n"


@pytest.fixture
def walk(tmp_path: Path) -> str:
    path = tmp_path / "walk.prism"
    path.write_text(STEPS)
    return str(path)


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_an_experiment_is_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, walk: str, ending: str, start: bytes
) -> None:
    target = tmp_path / f"plot.{ending}"
    status = main(
        ["check", walk, REACHED, "--const", "N=1:3,p=0.25:0.25:0.75", "--plot", str(target), "--json"]
    )
    assert status == 0
    assert len(json.loads(capsys.readouterr().out)) == 9
    assert target.read_bytes().startswith(start)
    if ending == "svg":
        text = target.read_text(encoding="utf-8")
        assert all(f"p={p}" in text for p in ("0.25", "0.5", "0.75")) and ">N<" in text
        assert "R=? [ F s=N ]" in text


def test_the_axis_may_be_chosen_and_what_is_left_out_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, walk: str
) -> None:
    target = tmp_path / "plot.svg"
    arguments = ["check", walk, REACHED, "--const", "N=1:3,p=0:0.5:0.5", "--plot", str(target)]
    assert main([*arguments, "--plot-over", "p"]) == 0
    assert "warning: --plot: R=? [ F s=N ]: left out: 3 infinite" in capsys.readouterr().err
    text = target.read_text(encoding="utf-8")
    assert ">p<" in text and "N=3" in text and "left out: 3 infinite" in text


def test_a_run_that_fails_hides_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, walk: str
) -> None:
    target = tmp_path / "plot.svg"
    assert main(["check", walk, REACHED, "--const", "N=1:3,p=0.5:0.75:1.25", "--plot", str(target)]) == 1
    assert "left out: 3 without an answer" in capsys.readouterr().err
    assert target.exists()


def test_convergence_of_one_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, walk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    own = convergence.plot_convergence
    monkeypatch.setattr(convergence, "plot_convergence", lambda *a: (told.append(a), own(*a)))
    target = tmp_path / "c.png"
    for method, shown in (("interval", "width of the bounds"), ("jacobi", "change of a step")):
        status = main(
            ["check", walk, REACHED, "--const", "N=4,p=0.5", "--plot-convergence", str(target),
             "--method", method, "--epsilon", "1e-6", "--json"]
        )  # fmt: skip
        (result,) = json.loads(capsys.readouterr().out)["results"]
        assert status == 0 and target.read_bytes().startswith(b"\x89PNG")
        solutions, _, epsilon, title, label = told[-1]
        (looks,) = [looks for looks in solutions if looks]
        iterations, differences = zip(*looks, strict=True)
        assert list(iterations) == sorted(set(iterations)) and iterations[-1] <= result["iterations"]
        assert epsilon == 1e-6 and differences[-1] < 1e-3 * differences[0]
        assert label == f"{shown}, relative to the value" and method in title


def test_an_answer_without_iterations_has_no_convergence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, walk: str
) -> None:
    target = tmp_path / "c.png"
    target.write_bytes(b"old")
    status = main(["check", walk, "P>=1 [ F s=N ]", "--const", "N=4,p=1", "--plot-convergence", str(target)])
    told = capsys.readouterr()
    assert status == 2 and "no convergence to draw" in told.err
    assert "true" in told.out and target.read_bytes() == b"old"


WRONG = [
    (["--const", "N=1,p=0.5", "--plot", "e.png"], "--plot draws an experiment"),
    (["--const", "N=1:2,p=0.5", "--plot", "e.gif"], "written as .png, .svg or .pdf, got 'e.gif'"),
    (["--const", "N=1:2,p=0.5", "--plot", "e.png", "--plot-over", "K"], "constants N, p, got 'K'"),
    (["--const", "N=1,p=0.5", "--plot-over", "N"], "give its file with --plot"),
    (["--const", "N=1:2,p=0.5", "--plot-convergence", "c.png"], "--plot-convergence draws one run"),
    (["--const", "N=1,p=0.5", "--plot-convergence", "no/c.png"], "--plot-convergence: cannot write no/c.png"),
    (["--const", "N=1:2,p=0.5", "--plot", "x.svg", "--csv", "x.svg"], "x.svg is what --csv writes as well"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_pictures_are_refused_before_any_work(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    walk: str,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hybrid.app.cli.check.built_model", lambda *_: pytest.fail("built"))
    assert main(["check", walk, REACHED, *arguments]) == 2
    assert message in capsys.readouterr().err
