"""The argument that is a property or a file of properties: which of the two it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.__main__ import main
from tests.builders.chain_texts import DIE


@pytest.fixture
def die(tmp_path):
    path = tmp_path / "die.pm"
    path.write_text(DIE)
    return str(path)


def long_property(length: int) -> str:
    """Return a property on one line, true in the same states whatever its length."""
    text = "P=? [ F s=7" + "|s=7" * ((length - 13) // 4)
    return (text + " " * (length - len(text) - 2) + " ]").ljust(length)


@pytest.mark.parametrize("length", [255, 256, 1000, 4095, 4096, 20_000])
def test_a_property_may_be_longer_than_the_name_of_a_file(die, capsys, length):
    text = long_property(length)
    assert len(text) == length
    assert main(["check", die, text, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert result["error"] is None
    assert result["value"] == pytest.approx(1.0, abs=1e-8)


def test_a_long_property_with_slashes_is_no_path(die, capsys):
    text = "P=? [ F s=7 & " + "1/2 < 1 & " * 300 + "true ]"
    assert main(["check", die, text, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["value"] == pytest.approx(1.0, abs=1e-8)


def test_a_file_that_may_not_be_looked_at_is_told_as_one(die, capsys, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    assert main(["check", die, "locked/properties"]) == 2
    assert "expected a properties file" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_property_is_no_folder(die, capsys, text):
    assert main(["check", die, text]) == 2
    assert "<property>:1:1: expected a property" in capsys.readouterr().err
