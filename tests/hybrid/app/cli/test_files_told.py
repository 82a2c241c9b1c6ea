"""Files that were written are told on standard error, a line each; their names say what they hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.base.errors import OptionError
from tests.builders.mdp_texts import SLOW_WAY


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an MDP, in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("slow.nm").write_text(SLOW_WAY)
    return "slow.nm"


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What stands on standard error."""
    assert main(list(arguments)) == status
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "MDP", "Pmax=? [ F x=2 ]", "--backend", "cpu", "--csv", "out.csv"),
        ("check", "MDP", "Pmax=? [ F x=2 ]", "--backend", "cpu", "--values", "out.npz"),
        ("check", "MDP", "Pmax=? [ F x=2 ]", "--backend", "cpu", "--scheduler", "out.json"),
        ("check", "MDP", "Pmax=? [ F x=2 ]", "--backend", "cpu", "--scheduler", "out.csv", "--json"),
        ("check", "walk.pm", "P=? [ F<=5 s=N ]", "--const", "N=2:3,p=0.5", "--plot", "out.svg"),
        (
            "check", "walk.pm", "P=? [ F<=5 s=N ]", "--const", "N=3,p=0.5", "--backend", "cpu",
            "--plot-convergence", "out.svg",
        ),
        ("levels", "walk.pm", "--const", "N=3,p=0.5", "--backend", "cpu", "--plot", "out.html"),
        ("graph", "MDP", "--backend", "symbolic", "--plot", "out.dot"),
        ("info", "walk.pm", "--const", "N=3,p=0.5", "--diagram", "out.dot"),
        ("plot-matrix", "walk.pm", "--const", "N=3,p=0.5", "--output", "out.svg"),
        ("automaton", "G F a", "--plot", "out.dot"),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-3:]),
)  # fmt: skip
def test_each_file_is_told_once(
    walk: str, slow: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    given = [slow if word == "MDP" else word for word in arguments]
    (file,) = (word for word in given if word.startswith("out."))
    lines = told(capsys, *given).splitlines()
    assert [line for line in lines if not line.startswith("warning: ")] == [f"wrote {file}"]
    assert Path(file).stat().st_size
    Path(file).unlink()
    assert told(capsys, *given, "--quiet") == ""
    assert Path(file).stat().st_size


def test_what_standard_output_tells_is_not_told_twice(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    constants = ["--const", "N=3,p=0.5"]
    for command in (
        ["export", walk, *constants, "--to", "m.drn"],
        ["explore", walk, *constants, "--backend", "cpu", "--to", "m.html"],
        ["simulate", walk, *constants, "--to", "m.csv"],
        ["check", walk, "P=? [ F s=N ]", *constants, "--backend", "cpu", "--certificate", "m.cert"],
    ):
        assert main(command) == 0
        out, err = capsys.readouterr()
        assert "wrote" not in err
        (file,) = (word for word in command if word.startswith("m."))
        assert file in out


def test_what_is_not_written_is_not_told(walk: str, slow: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--scheduler", "--values"):
        err = told(capsys, "check", slow, "Pmax=? [ F y=2 ]", option, "no.csv", status=1)
        assert "wrote" not in err
        assert not Path("no.csv").exists()
    assert told(capsys, "check", slow, "Pmax=? [ F x=2 ]", "--backend", "cpu", "--csv", os.devnull) == ""


@pytest.mark.parametrize("option", ["--scheduler", "--values"])
def test_names_say_what_files_hold(slow: str, capsys: pytest.CaptureFixture[str], option: str) -> None:
    ends = ".csv or .json" if option == "--scheduler" else ".csv or .npz"
    err = told(capsys, "check", slow, "Pmax=? [ F x=2 ]", option, "s.txt", status=2)
    assert err == f"error: {option}: expected a file that ends with {ends}, got s.txt\n"
    assert not Path("s.txt").exists()


def test_schedulers_of_the_library_have_the_same_rule(tmp_path: Path) -> None:
    model = hybrid.parse(SLOW_WAY)
    scheduler = hybrid.check(model, "Pmax=? [ F x=2 ]", scheduler=True).scheduler
    several = hybrid.check(model, "multi(P>=0.5 [ F x=2 ], P>=0.1 [ F x=3 ])", scheduler=True).several
    for made in (scheduler, several.schedulers):
        for name in ("s", "s.txt", "s.CSV"):
            with pytest.raises(OptionError, match=r"expected a file that ends with \.csv or \.json"):
                made.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
