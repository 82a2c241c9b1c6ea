"""`hybrid levels --parts`: a table and a record of what every part holds and receives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.command_lines import GIVEN, WALK, refused, run
from tests.source_tree import ROOT

KANBAN = str(ROOT / "examples/kanban.prism")


def test_table_and_record(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run(capsys, "levels", KANBAN, "--const", "t=2", "--parts", "3")
    table = text[text.index("part ") :].splitlines()
    assert table[0].split() == "part states transitions work a vector receives halo/own from".split()
    status, record, _ = run(capsys, "levels", KANBAN, "--const", "t=2", "--parts", "3", "--json")
    assert status == 0
    found = json.loads(record)
    parts = found["parts"]["parts"]
    assert [line.split()[1] for line in table[1:4]] == [f"{part['states']:,}" for part in parts]
    assert sum(part["states"] for part in parts) == found["model"]["states"] == 4600
    assert sum(part["transitions"] for part in parts) == found["model"]["transitions"]
    assert all(part["halo_bytes"] == 8 * part["halo_elements"] > 0 for part in parts)
    assert "parts" not in json.loads(run(capsys, "levels", KANBAN, "--const", "t=1", "--json")[1])


def test_eight_parts_receive_more_than_four(capsys: pytest.CaptureFixture[str]) -> None:
    shares = []
    for count in (4, 8):
        _, record, _ = run(capsys, "levels", KANBAN, "--const", "t=2", "--parts", str(count), "--json")
        parts = json.loads(record)["parts"]["parts"]
        assert len(parts) == count and sum(part["states"] for part in parts) == 4600
        assert all(part["partners"] < count and part["share"] <= 1.25 for part in parts)
        shares.append(max(part["halo_elements"] / part["states"] for part in parts))
    assert 0.0 < shares[0] < shares[1] < count


@pytest.mark.parametrize("parts", ["0", "-1", "two", "65", "99999999999", "²"])
def test_numbers_of_parts(capsys: pytest.CaptureFixture[str], parts: str) -> None:
    assert "a number of parts, 1 to 64" in refused(
        capsys, "levels", KANBAN, "--const", "t=1", f"--parts={parts}"
    )


def test_more_parts_than_states(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "walk.prism"
    model.write_text(WALK)
    status, out, err = run(capsys, "levels", str(model), *GIVEN, "--parts", "5")
    assert (status, out) == (2, "") and "expected 1 .. 4, a part for a state at most, got 5" in err
