"""`check --certificate` and `verify` on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hybrid.__main__ import main
from hybrid.app.cli.progress_monitor import CommandMonitor
from hybrid.checking.certificates.archive import read_certificate, write_certificate
from tests.builders.chain_texts import DIE
from tests.hybrid.checking.certificates.helpers import EXAMPLES

COIN, COIN_PROPERTIES = str(EXAMPLES / "coin.prism"), str(EXAMPLES / "coin.props")


@pytest.fixture
def die(tmp_path: Path) -> str:
    path = tmp_path / "die.prism"
    path.write_text(DIE)
    return str(path)


def certify(model: str, prop: str, file: Path, *options: str) -> int:
    return main(["check", model, prop, "--certificate", str(file), "--quiet", *options])


def test_written_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c"
    options = ["--const", "K=2", "--property", "heads"]
    assert certify(COIN, COIN_PROPERTIES, file, *options) == 0
    assert f"written to {file}" in capsys.readouterr().out
    assert main(["verify", COIN, str(file), "--const", "K=2"]) == 0
    shown = capsys.readouterr().out
    assert 'Pmin=? [ F "all_heads" ]' in shown and "verified     between 0.38281249" in shown
    assert main(["verify", COIN, str(file), "--const", "K=2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["valid"] and record["error"] is None and record["truth"] is None
    assert record["lower"] <= 49 / 128 <= record["upper"]
    assert (record["states"], record["choices"], record["transitions"]) == (272, 400, 492)


def test_the_record_names_the_certificate(
    die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c"
    assert certify(die, "P>=0.1 [ F d=1 ]", file, "--json") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    found = result["certificate"]
    assert found["file"] == str(file) and found["bytes"] == file.stat().st_size


def test_a_tie_that_no_double_shows_has_an_answer_and_no_certificate(
    die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify(die, "P>=1/6 [ F d=1 ]", tmp_path / "c") == 1
    told = capsys.readouterr().out
    assert "result       true" in told and "certificate  none" in told and "does not decide" in told
    assert not (tmp_path / "c").exists()


def test_infinite_values_are_json(die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify(die, 'R{"flips"}=? [ F d=1 ]', tmp_path / "c") == 0
    assert main(["verify", die, str(tmp_path / "c"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["lower"] == record["upper"] == "Infinity"


def test_other_models_constants_and_damage_are_refused(
    die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c"
    assert certify(COIN, 'Pmax=? [ F "all_heads" ]', file, "--const", "K=2") == 0
    capsys.readouterr()
    assert main(["verify", COIN, str(file), "--const", "K=3"]) == 1
    assert "about the constants K=2; given are K=3" in capsys.readouterr().err
    assert main(["verify", COIN, str(file), "--const", "K=2,k=3"]) == 1
    assert "leaves k open" in capsys.readouterr().err
    assert main(["verify", die, str(file)]) == 1
    changed = tmp_path / "coin.prism"
    changed.write_text(Path(COIN).read_text().replace("1/2 :", "0.5 :"))
    assert main(["verify", str(changed), str(file), "--const", "K=2"]) == 1
    assert "digests differ" in capsys.readouterr().err
    found = read_certificate(file)
    found.parts[0].lower = found.parts[0].lower.copy()
    place = int(np.flatnonzero((found.parts[0].lower > 0) & (found.parts[0].lower < 1))[0])
    found.parts[0].lower[place] += 1e-3
    write_certificate(file, found)
    assert main(["verify", COIN, str(file), "--const", "K=2", "--json"]) == 1
    told = capsys.readouterr()
    assert "l <= f(l) does not hold in state (counter=" in told.err
    assert json.loads(told.out)["valid"] is False
    file.write_bytes(b"PK\x03\x04 no more")
    assert main(["verify", COIN, str(file), "--const", "K=2"]) == 1
    assert "expected a certificate" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "missing"), str(file)]) == 1


REFUSED = [
    ("P=? [ F<=5 d=1 ]", "bound on steps or time"),
    ("P=? [ G F G s=7 ]", "LTL"),
    ("P=? [ F (X s=7) ]", "LTL"),
    ('R{"flips"}=? [ C<=3 ]', "up to a time"),
    ('R{"flips"}=? [ I=3 ]', "up to a time"),
    ("filter(first, P=? [ F d=1 ], s<7)", "those with one: min"),
    ("filter(max, P=? [ F d=1 ], s<7) + 1", "arithmetic"),
    ("P=? [ F filter(forall, P>0 [ F d=1 ]) ]", "filter inside"),
    ("(P=? [ F d=1 ]) + 1", "arithmetic"),
    ("P=? [ F (P=? [ X d=1 ]) > 0.5 ]", "arithmetic"),
    ("s=7", "nothing to certify"),
    ("P=? [ s=7 ]", "path operator"),
]


@pytest.mark.parametrize(("prop", "message"), REFUSED)
def test_what_has_no_certificate_is_refused_before_any_work(
    prop: str, message: str, die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify(die, prop, tmp_path / "c") == 2
    told = capsys.readouterr()
    assert message in told.err and told.out == ""
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "jacobi"], "gives no bounds"),
        (["--scheduler", "x.csv"], "--certificate and --scheduler"),
        (["--const", "x=1:3"], "ranges"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], message: str, die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify(die, "P=? [ F d=1 ]", tmp_path / "c", *options) == 2
    assert message in capsys.readouterr().err


def test_one_property_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify(COIN, COIN_PROPERTIES, tmp_path / "c", "--const", "K=2") == 2
    assert "about one property, and 5" in capsys.readouterr().err


def test_files_that_cannot_be_written(die: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify(die, "P=? [ F d=1 ]", tmp_path / "no" / "c") == 2
    assert certify(die, "P=? [ F d=1 ]", tmp_path) == 2
    told = capsys.readouterr()
    assert told.err.count("cannot write") == 2 and told.out == ""


def test_an_iteration_that_is_ended_keeps_its_bounds_and_has_no_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(self: CommandMonitor, iteration: int, difference: float) -> None:
        self.stopped = self.stopped or KeyboardInterrupt()

    monkeypatch.setattr(CommandMonitor, "observe", press)
    file = tmp_path / "c"
    status = main(["check", COIN, COIN_PROPERTIES, "--const", "K=2", "--property", "heads",
                   "--certificate", str(file), "--backend", "reference"])  # fmt: skip
    told = capsys.readouterr()
    assert status == 130 and not file.exists()
    assert re.search(r"between [\d.]+ and \S+ so far", told.out)
    assert "certificate  none: the property is not answered" in told.out
    assert told.err == "error: interrupted\n"
