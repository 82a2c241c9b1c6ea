"""Files that a command writes: tried first, replaced when whole; experiments and tables that lose nothing."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.output_file import OutputFile
from hybrid.app.cli.report import Table
from hybrid.base.errors import OptionError
from hybrid.checking.checker import Checker


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_older_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(0o640)
    with OutputFile(str(path), "--csv") as file:
        assert file.temporary.suffix == ".csv"
        file.temporary.write_text("new")
        assert path.read_text() == "old"
        file.publish()
        assert path.read_text() == "new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        file.publish()
    assert names(tmp_path) == ["out.csv"]
    with OutputFile(str(path), "--csv") as file:
        file.temporary.write_text("cut")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out.csv"]


def test_new_files_have_the_mode_of_others(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    with OutputFile(str(tmp_path / "new"), "--csv") as file:
        file.publish()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to("there/out.csv")
    for text in ("first", "second"):
        with OutputFile(str(link), "--csv") as file:
            file.temporary.write_text(text)
            file.publish()
        assert link.is_symlink()
        assert (tmp_path / "there" / "out.csv").read_text() == text


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing/out", "No such file or directory"), (".", "Is a directory"), ("file/out", "Not a directory")],
)
def test_what_cannot_be_written_is_told_at_once(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=f"^--csv: cannot write {tmp_path / path}: {reason}$"):
        OutputFile(str(tmp_path / path), "--csv")
    assert names(tmp_path) == ["file"]


def test_files_without_permission_are_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    # Root may write to anything; so the system's answer is made up.
    monkeypatch.setattr(os, "access", lambda p, mode: False)
    with pytest.raises(OptionError, match="Permission denied"):
        OutputFile(str(path), "--csv")
    assert path.read_text() == "old"


def refuse(*arguments: object, **options: object) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy")


def test_a_file_that_cannot_be_replaced_is_copied_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a file that is mounted by itself into a container."""
    path = tmp_path / "out"
    path.write_text("something older and longer")
    monkeypatch.setattr(Path, "replace", refuse)
    table = Table(str(path), ["N"])
    table.add({"N": 1}, [dict.fromkeys(("name", "property", "value", "lower", "upper", "error"), "x")])
    table.add({"N": 2}, [dict.fromkeys(("name", "property", "value", "lower", "upper", "error"), "y")])
    table.close(complete=True)
    assert path.read_text().splitlines() == [
        "N,name,property,value,lower,upper,error",
        "1,x,x,x,x,x,x",
        "2,y,y,y,y,y,y",
    ]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_takes_no_files_may_have_one_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "open", refuse)
    file = OutputFile.__new__(OutputFile)
    # Files elsewhere are made by other means than the one that is refused.
    monkeypatch.setattr("tempfile.mkstemp", lambda suffix: (os.dup(0), str(elsewhere)))
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.write_text("")
    OutputFile.__init__(file, str(path), "--csv")
    assert file.temporary == elsewhere
    monkeypatch.undo()
    file.temporary.write_text("new")
    file.publish()
    assert path.read_text() == "new"


def test_devices_are_written_to_as_they_are(tmp_path: Path) -> None:
    with OutputFile("/dev/null", "--csv") as file:
        assert file.temporary == Path("/dev/null")
        file.publish()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OptionError, match="--csv: cannot write /dev/full: No space left on device"):
        Table("/dev/full", []).add({}, [])


def test_a_table_without_answers_has_its_columns_if_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    table = Table(str(path), ["N"])
    table.close(complete=False)
    assert names(tmp_path) == []
    table = Table(str(path), ["N"])
    table.close(complete=True)
    assert path.read_text().splitlines() == ["N,name,property,value,lower,upper,error"]


# ------------------------------------------------------------------ the command

POINTS = """
dtmc
const int N;
const double p = 1/N;
module m
  s : [0..N];
  [] s<N -> p : (s'=s+1) + 1-p : (s'=0);
  [] s=N -> true;
endmodule
"""


@pytest.fixture
def points(tmp_path: Path) -> str:
    path = tmp_path / "points.pm"
    path.write_text(POINTS)
    return str(path)


OPTIONS = ("--backend", "reference", "--quiet")


def test_a_point_that_cannot_be_built_does_not_hide_the_others(
    tmp_path: Path, points: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "out.csv"
    arguments = ["check", points, "P=? [ X s=1 ]", "--const", "N=-1:2", *OPTIONS, "--csv", str(table)]
    assert main([*arguments, "--json"]) == 1
    out, err = capsys.readouterr()
    runs = json.loads(out)
    assert [run["constants"]["N"] for run in runs] == [-1, 0, 1, 2]
    assert [run["results"][0]["value"] for run in runs] == [None, None, 1.0, 0.5]
    assert [run["model"] is None for run in runs] == [True, True, False, False]
    for run, line in zip(runs, table.read_text().splitlines()[1:], strict=True):
        assert line.startswith(f"{run['constants']['N']},,P=? [ X s=1 ],")
    assert err.startswith("error: N=-1: ")
    assert "error: N=0: " in err
    assert main(arguments) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("#")] == [
        "# N=1",
        "# N=2",
    ]


def test_what_is_wrong_at_all_points_is_told_once_and_is_wrong_usage(
    tmp_path: Path, points: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "out.csv"
    table.write_text("old")
    arguments = ["check", points, "P=? [ X s=1 ]", "--const", "N=-3:-1", *OPTIONS, "--csv", str(table)]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("error: ") == 1
    assert table.read_text() == "old"


def test_files_are_tried_before_the_model_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing" / "out")
    for command, option in (
        (["check", "nothing.pm", "P=? [ X s=1 ]"], "--csv"),
        (["check", "nothing.pm", "P=? [ X s=1 ]"], "--scheduler"),
        (["levels", "nothing.pm"], "--plot"),
        (["plot-matrix", "nothing.pm"], "--output"),
    ):
        file = f"{missing}.csv" if option == "--scheduler" else f"{missing}.png"
        assert main([*command, option, file]) == 2
        assert capsys.readouterr().err == (
            f"error: {option}: cannot write {file}: No such file or directory\n"
        )


def test_a_property_without_room_leaves_the_others(
    points: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Checker.answer

    def narrow(self: Checker, prop: object) -> object:
        if "X s=1" in getattr(prop, "text", ""):
            raise MemoryError("a vector needs more")
        return answer(self, prop)  # type: ignore[arg-type]

    monkeypatch.setattr(Checker, "answer", narrow)
    text = "P=? [ X s=0 ]; P=? [ X s=1 ]; P=? [ F<=2 s=2 ]"
    assert main(["check", points, text, "--const", "N=2", *OPTIONS, "--json"]) == 1
    results = json.loads(capsys.readouterr().out)["results"]
    assert [r["value"] for r in results] == [0.5, None, 0.25]
    assert results[1]["error"] == "out of memory: a vector needs more"


def test_answers_are_told_when_they_are_found(
    points: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, seen = Checker.answer, []

    def listening(self: Checker, prop: object) -> object:
        seen.append(capsys.readouterr().out)
        return answer(self, prop)  # type: ignore[arg-type]

    monkeypatch.setattr(Checker, "answer", listening)
    assert main(["check", points, "P=? [ X s=0 ]; P=? [ X s=1 ]", "--const", "N=2", *OPTIONS]) == 0
    assert seen[0].startswith("model ")
    assert "result " not in seen[0]
    assert "P=? [ X s=0 ]\n  result       0.5" in seen[1]
    assert "P=? [ X s=1 ]\n  result       0.5" in capsys.readouterr().out


def test_a_scheduler_that_cannot_be_written_leaves_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.nm"
    path.write_text("mdp module m s:[0..1]; [a] s=0 -> (s'=1); [b] true -> (s'=s); endmodule")
    monkeypatch.setattr("hybrid.analysis.scheduler.Scheduler.write", refuse)
    file = tmp_path / "scheduler.csv"
    file.write_text("old")
    assert main(["check", str(path), "Pmax=? [ F s=1 ]", "--scheduler", str(file), *OPTIONS]) == 2
    out, err = capsys.readouterr()
    assert "result       1.0" in out
    assert err == f"error: --scheduler: cannot write {file}: Device or resource busy\n"
    assert file.read_text() == "old"
    assert names(tmp_path) == ["m.nm", "scheduler.csv"]
