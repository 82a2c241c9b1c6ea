"""Streams that are closed, full, or lack characters; limits of memory and of files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from hybrid.__main__ import main
from tests.faults.models import SMALL_ANSWER
from tests.faults.processes import ROOT, run

# The pipe has no reader when the first line is printed.
CLOSED_PIPE = """
import os, sys
read, write = os.pipe()
os.dup2(write, 1)
os.close(read)
from hybrid.__main__ import main
sys.exit(main(sys.argv[1:]))
"""

CHECK = (SMALL_ANSWER, "--backend", "reference")


def test_r5_closed_standard_error_does_not_keep_answers_back(small: str) -> None:
    done = run("check", small, *CHECK, before="exec 2>&-")
    assert done.returncode == 0
    assert "result       0.125" in done.stdout
    done = run("check", small, "P=? [ F nothing ]", before="exec 2>&-")
    assert done.returncode == 1
    assert "not answered" in done.stdout


@pytest.mark.parametrize("streams", ["exec >&-", "exec <&- >&- 2>&-"])
def test_closed_standard_output_is_quiet(small: str, streams: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    done = run("check", small, *CHECK, "--csv", str(table), before=streams)
    told = "" if "2>&-" in streams else f"wrote {table}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", told)
    assert ",0.125," in table.read_text()


@pytest.mark.parametrize("arguments", [["check", "", *CHECK], ["check", "", *CHECK, "--json"], ["man"]])
def test_r10_full_standard_output_is_told(small: str, arguments: list[str]) -> None:
    done = run(*(argument or small for argument in arguments), before="exec >/dev/full")
    assert done.returncode == 2
    assert done.stderr == "error: cannot write to standard output: No space left on device\n"


def test_full_standard_error_is_nobodys_business(small: str) -> None:
    done = run("check", small, "P=? [ F nothing ]", before="exec 2>/dev/full")
    assert done.returncode == 1
    assert "not answered" in done.stdout


def test_a_reader_that_leaves_is_no_error(small: str) -> None:
    done = run("check", small, *CHECK, code=CLOSED_PIPE)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.nightly), "utf-8"])
def test_r11_every_encoding_has_a_spelling(small: str, encoding: str) -> None:
    done = run("levels", small, "--backend", "reference", PYTHONIOENCODING=f"{encoding}:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("instances ≤" in done.stdout) == (encoding == "utf-8")
    assert ("instances <=" in done.stdout) == (encoding != "utf-8")


def test_names_that_no_encoding_has_are_escaped(tmp_path: Path) -> None:
    name = (tmp_path / "small-\udcff.pm").as_posix()
    done = run("info", name, PYTHONIOENCODING="utf-8:strict")
    assert done.returncode == 2
    assert "small-\\udcff.pm" in done.stderr
    assert "Traceback" not in done.stderr


def test_r14_too_little_address_space_is_told_before_it_fills() -> None:
    model = str(ROOT / "examples" / "kanban.prism")
    question = 'R{"throughput"}=? [ S ]'
    done = run("check", model, question, "--const", "t=7", "--quiet", "--json", before="ulimit -v 700000")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    assert result["error"].startswith("out of memory: ")
    assert "are free; choose smaller constants" in result["error"]
    assert "Traceback" not in done.stderr


def test_r12_a_table_on_a_full_disk_keeps_whole_rows_and_the_answers(tmp_path: Path, small: str) -> None:
    table = tmp_path / "table.csv"
    question = "const int k; P=? [ F<=k s=N ]"
    done = run(
        "check", small, question, "--backend", "reference", "--const", "k=1:30", "--csv", str(table),
        before="ulimit -f 1",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"error: --csv: cannot write {table}: File too large\n"
    assert done.stdout.count("result ") == 30
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert 5 <= len(rows) < 30
    assert [row["k"] for row in rows] == [str(k) for k in range(1, len(rows) + 1)]
    assert all(None not in row.values() for row in rows)
    assert table.stat().st_size <= 512


def test_r12_a_faulty_point_of_an_experiment_loses_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, table = tmp_path / "points.prism", tmp_path / "table.csv"
    model.write_text(
        "dtmc const int k; module m s : [0..(k=2?-1:3)]; [] s<2 -> (s'=s+1); [] s>1 -> true; endmodule"
    )
    main(["check", str(model), "P=? [ F s=2 ]", "--const", "k=0:3", "--json", "--csv", str(table)])
    out, err = capsys.readouterr()
    runs = json.loads(out)
    assert [found["constants"]["k"] for found in runs] == [0, 1, 2, 3]
    assert [found["results"][0]["value"] for found in runs] == [1.0, 1.0, None, 1.0]
    with table.open(newline="") as lines:
        assert [row["k"] for row in csv.DictReader(lines)] == ["0", "1", "2", "3"]
    assert "k=2" in err
    assert "Traceback" not in err
