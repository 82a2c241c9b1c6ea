"""`hybrid export`: files written, JSON, what is refused, and older files that stay."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from tests.builders.chain_texts import DIE

LINE = """
ctmc
module line
  n : [0..3] init 0;
  [enter] n<3 -> 2 : (n'=n+1);
  [] n>0 -> 3 : (n'=n-1);
endmodule
label "full" = n=3;
rewards "jobs" true : n; endrewards
rewards "entries" [enter] true : 1; endrewards
"""

ALL = [
    "tra",
    "sta",
    "lab",
    "srew",
    "trew",
    "pexp",
    "drn",
    "umb",
    "mtx",
    "dot",
    "dd",
    "drn.gz",
    "tra.xz",
]


@pytest.fixture
def line(tmp_path: Path) -> str:
    path = tmp_path / "model" / "line.sm"
    path.parent.mkdir()
    path.write_text(LINE)
    return str(path)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def export(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["export", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_all_formats_at_once(capsys: pytest.CaptureFixture[str], line: str, out: Path) -> None:
    status, text, err = export(capsys, line, "--to", *(out / f"m.{suffix}" for suffix in ALL))
    assert status == 0, err
    # Of two reward structures each has files of its own.
    wanted = [s for s in ALL if "rew" not in s] + ["srew", "trew"]
    files = [f"m.{s}" for s in ALL if "rew" not in s] + [f"m{k}.{s}rew" for k in (1, 2) for s in "st"]
    assert len(wanted) == len(ALL) and names(out) == sorted(files)
    assert sorted(Path(row.split("  ")[0]).name for row in text.splitlines()) == sorted(files)
    for name in files:
        assert (out / name).stat().st_size > 0
    want = hybrid.check(hybrid.load(line), 'R{"entries"}=? [ S ]').value
    for suffix in ("tra", "pexp", "drn", "umb", "dd", "drn.gz"):
        model = hybrid.load(out / f"m.{suffix}")
        assert hybrid.check(model, 'R{"entries"}=? [ S ]').value == pytest.approx(want, rel=1e-7)
    assert '"entries"' in (out / "m2.trew").read_text() and '"jobs"' in (out / "m1.trew").read_text()


def test_json_tells_the_model_and_the_files(capsys: pytest.CaptureFixture[str], line: str, out: Path) -> None:
    status, text, err = export(capsys, line, "--to", out / "m.trew", out / "m.umb", "--json", "--quiet")
    assert (status, err) == (0, "")
    record = json.loads(text)
    assert set(record) == {"model", "files"}
    assert (record["model"]["type"], record["model"]["states"]) == ("ctmc", 4)
    assert record["files"] == [
        {"file": str(out / name), "bytes": (out / name).stat().st_size}
        for name in ("m1.trew", "m2.trew", "m.umb")
    ]


def test_constants_and_deadlocks_are_those_of_the_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, out: Path
) -> None:
    path = tmp_path / "m.pm"
    path.write_text("dtmc const int N; module m x : [0..N]; [] x<N -> (x'=x+1); endmodule")
    status, _, err = export(capsys, path, "--const", "N=3", "--to", out / "m.tra")
    assert status == 0 and "1 state has no outgoing transition" in err
    assert (out / "m.tra").read_text().splitlines()[1] == "4 4"
    before = names(out)
    status, _, err = export(capsys, path, "--const", "N=3", "--no-fix-deadlocks", "--to", out / "n.tra")
    assert status == 2 and "no outgoing transition" in err
    status, _, err = export(capsys, path, "--to", out / "n.tra")
    assert status == 2 and "N" in err
    assert names(out) == before


def test_orders_number_states_alike(capsys: pytest.CaptureFixture[str], out: Path) -> None:
    model = Path(__file__).parents[4] / "examples" / "coin.prism"
    for order in ("model", "reversed"):
        files = [out / f"{order}.{suffix}" for suffix in ("tra", "sta", "lab")]
        assert export(capsys, model, "--const", "K=1", "--order", order, "--to", *files)[0] == 0
    for suffix in ("sta", "lab"):
        assert (out / f"model.{suffix}").read_bytes() == (out / f"reversed.{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["m.xyz", "m", "m.prism", "m.umb.gz", "m.dd.xz"])
def test_names_of_no_format_are_refused_before_building(
    capsys: pytest.CaptureFixture[str], line: str, out: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.app.cli.export.built_model", lambda *_: pytest.fail("the model was built"))
    status, text, err = export(capsys, line, "--to", out / "good.tra", out / name)
    assert (status, text) == (2, "") and name in err and "expected" in err
    assert names(out) == []


def test_folders_that_are_missing_are_told_before_building(
    capsys: pytest.CaptureFixture[str], line: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.app.cli.export.built_model", lambda *_: pytest.fail("the model was built"))
    (out / "folder.tra").mkdir()
    for path in (out / "none" / "m.tra", out / "folder.tra"):
        status, _, err = export(capsys, line, "--to", path)
        assert status == 2 and f"--to: cannot write {path}" in err
    assert names(out) == ["folder.tra"]


@pytest.mark.parametrize("suffix", ["srew", "trew.gz"])
def test_models_without_rewards_have_no_files_of_rewards(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, out: Path, suffix: str
) -> None:
    path = tmp_path / "die.pm"
    path.write_text(DIE.split("rewards")[0])
    status, _, err = export(capsys, path, "--to", out / "m.tra", out / f"m.{suffix}")
    assert status == 2 and f"m.{suffix}: expected a model with rewards, got one without; leave it out" in err
    assert names(out) == []


def test_older_files_stay_if_a_later_one_fails(
    capsys: pytest.CaptureFixture[str], line: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.models.interchange.write_out._MOST_DOT", 3)
    for name in ("m.tra", "m.umb", "m.dot"):
        (out / name).write_text("old")
    arguments = (line, "--to", out / "m.tra", out / "m.umb", out / "m.dot", out / "new.drn")
    status, text, err = export(capsys, *arguments)
    assert (status, text) == (2, "") and "write another format, or give --force" in err
    assert names(out) == ["m.dot", "m.tra", "m.umb"]
    assert {(out / name).read_text() for name in names(out)} == {"old"}
    assert export(capsys, *arguments, "--force")[0] == 0
    assert names(out) == ["m.dot", "m.tra", "m.umb", "new.drn"]
    assert b"old" not in {(out / name).read_bytes() for name in names(out)}


def test_models_that_do_not_fit_are_refused_unless_forced(
    capsys: pytest.CaptureFixture[str], line: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.models.interchange.write_out.free_memory_bytes", lambda: 10)
    (out / "m.tra").write_text("old")
    status, text, err = export(capsys, line, "--to", out / "m.tra", out / "m.dd")
    assert (status, text) == (1, "")
    assert "written out, the model has 4 states and 6 transitions and needs" in err and "10 are free" in err
    assert "write a symbolic file, --to FILE.dd, or give --force" in err and "hybrid.inject" not in err
    assert names(out) == ["m.tra"] and (out / "m.tra").read_text() == "old"
    # Diagrams need no arrays.
    assert export(capsys, line, "--to", out / "m.dd")[0] == 0
    assert export(capsys, line, "--to", out / "m.tra", "--force")[0] == 0
    assert (out / "m.tra").read_text().startswith("# Transitions (CTMC)\n4 6\n")


def test_options_of_texts_are_refused_for_files(
    capsys: pytest.CaptureFixture[str], line: str, out: Path
) -> None:
    assert export(capsys, line, "--to", out / "m.umb", out / "m.dd", "--quiet")[0] == 0
    for arguments, told in (
        (("m.umb", "--const", "N=3"), "constants: expected none"),
        (("m.dd", "--order", "reversed"), "order: expected auto or model"),
    ):
        status, _, err = export(capsys, out / arguments[0], *arguments[1:], "--to", out / "n.tra")
        assert status == 2 and told in err
    status, _, err = export(capsys, out / "none.umb", "--to", out / "n.tra")
    assert status == 2 and "none.umb: cannot be read: No such file" in err
    status, _, err = export(capsys, out / "m.sta", "--to", out / "n.tra")
    assert status == 2 and "expected a file that a model can be read from" in err
    # From one format to another, also onto the file itself.
    assert export(capsys, out / "m.umb", "--to", out / "m.umb", out / "n.drn", "--quiet")[0] == 0
    assert hybrid.load(out / "m.umb").n_states == hybrid.load(out / "n.drn").n_states == 4


@pytest.mark.parametrize("suffix", ["tra", "umb", "dd"])
def test_replaced_files_keep_their_mode_and_links_stay(
    capsys: pytest.CaptureFixture[str], line: str, out: Path, suffix: str
) -> None:
    (out / f"there.{suffix}").write_text("old")
    (out / f"there.{suffix}").chmod(0o640)
    (out / f"link.{suffix}").symlink_to(f"there.{suffix}")
    assert export(capsys, line, "--to", out / f"link.{suffix}")[0] == 0
    assert (out / f"link.{suffix}").is_symlink()
    assert stat.S_IMODE((out / f"there.{suffix}").stat().st_mode) == 0o640
    assert hybrid.load(out / f"there.{suffix}").n_states == 4


def test_pipes_are_written_to(capsys: pytest.CaptureFixture[str], line: str, out: Path) -> None:
    pipe = out / "m.tra"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    assert export(capsys, line, "--to", pipe)[0] == 0
    reader.join(timeout=120)
    assert found and found[0].startswith("# Transitions (CTMC)\n4 6\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode) and names(out) == ["m.tra"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("suffix", ["tra", "umb", "dd"])
def test_a_full_disk_is_told(capsys: pytest.CaptureFixture[str], line: str, out: Path, suffix: str) -> None:
    (out / f"m.{suffix}").symlink_to("/dev/full")
    status, _, err = export(capsys, line, "--to", out / f"m.{suffix}")
    assert status == 2 and f"m.{suffix}" in err and "No space left" in err
