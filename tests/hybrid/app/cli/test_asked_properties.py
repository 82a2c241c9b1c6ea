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
def test_r1_a_property_may_be_longer_than_the_name_of_a_file(die, capsys, length):
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


TWICE = '"a": P=? [ F s=7 ];\n"a": P=? [ G s=7 ];\n"b": P=? [ G s= ];\n"c": S=? [ s=7 ];\n'


@pytest.fixture
def twice(die, monkeypatch):
    folder = Path(die).parent
    monkeypatch.chdir(folder)
    (folder / "die.props").write_text(TWICE)
    return "die.props"


def test_lists_mark_what_cannot_be_asked(twice, capsys):
    assert main(["check", "die.pm", twice, "--list"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        '1  "a": P=? [ F s=7 ]',
        '2  "a": P=? [ G s=7 ]  (fault)',
        '3  "b": P=? [ G s= ]  (fault)',
        '4  "c": S=? [ s=7 ]',
    ]
    assert "die.props:2:6: property 'a' is declared a second time, first as property at 1:6" in err
    assert "die.props:3:17: expected an expression, got ']'" in err
    assert main(["check", "die.pm", twice, "--list", "--json"]) == 1
    records = json.loads(capsys.readouterr().out)["properties"]
    assert [record["error"] is None for record in records] == [True, False, False, True]
    assert records[1]["error"].startswith("die.props:2:6: property 'a' is declared a second time")


def test_lists_and_checks_find_the_same_faults(twice, capsys):
    assert main(["check", "die.pm", twice, "--list", "--json"]) == 1
    listed = [record["error"] for record in json.loads(capsys.readouterr().out)["properties"]]
    assert main(["check", "die.pm", twice, "--json", "--quiet"]) == 1
    assert [result["error"] for result in json.loads(capsys.readouterr().out)["results"]] == listed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "die.props", "--list"], "the model comes first: hybrid check MODEL die.props"),
        (["check", "die.props"], "stand behind the model: hybrid check MODEL die.props"),
        (["levels", "die.props"], "stand behind the model: hybrid check MODEL die.props"),
        (["check", "die.props", "die.pm"], "the model comes first: hybrid check die.pm die.props"),
        (["simulate", "die.props", "die.pm"], "the model comes first: hybrid simulate die.pm die.props"),
        (["check", "die.pm", "die.props", "--prop", "d"], "a name of a, b, c, got 'd'"),
    ],
)
def test_files_that_changed_places(twice, capsys, arguments, told):
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_name_of_a_property_in_the_file_beside_the_model(twice, capsys):
    assert main(["check", "die.pm", "c", "--quiet"]) == 1
    told = capsys.readouterr().out
    assert "die.props has a property of this name: hybrid check die.pm die.props --prop c" in told
    assert main(["check", "die.pm", "nothing", "--quiet"]) == 1
    assert "there is no file nothing either" in capsys.readouterr().out
