"""`hybrid examples`: what comes with the package, listed and copied."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.examples import SIZES, examples
from tests.source_tree import ROOT

EXAMPLES = ROOT / "examples"


def test_every_example_is_listed_with_a_command() -> None:
    assert sorted(SIZES) == sorted(path.stem for path in EXAMPLES.glob("*.prism"))
    for example in examples():
        assert example.about.endswith(".") and 20 < len(example.about) < 160, example
        assert all((EXAMPLES / file).is_file() for file in example.files)


@pytest.mark.parametrize("name", ["tandem", "coin"])
def test_the_command_of_the_list_answers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["examples", name]) == 0
    command = capsys.readouterr().out.splitlines()[1].strip()
    assert main(["examples", name, "--to", "."]) == 0
    capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    assert "result" in capsys.readouterr().out


def test_copies_are_whole_and_replace_nothing_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "models"
    assert main(["examples", "tandem", "brp", "tandem", "--to", str(folder), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written == [
        str(folder / file) for file in ("tandem.prism", "tandem.props", "brp.prism", "brp.props")
    ]
    for path in map(Path, written):
        assert path.read_bytes() == (EXAMPLES / path.name).read_bytes()
    (folder / "brp.props").write_text("mine")
    (folder / "tandem.prism").unlink()
    assert main(["examples", "tandem", "brp", "--to", str(folder)]) == 2
    assert "there already" in capsys.readouterr().err
    assert (folder / "brp.props").read_text() == "mine" and not (folder / "tandem.prism").exists()
    assert main(["examples", "brp", "--to", str(folder), "--force"]) == 0
    assert (folder / "brp.props").read_bytes() == (EXAMPLES / "brp.props").read_bytes()


def test_json_names_the_folder_and_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert Path(shown["folder"]) == EXAMPLES
    assert [example["name"] for example in shown["examples"]] == list(SIZES)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["kanbam"], "examples: there is no kanbam; did you mean kanban? they are biased_die, brp"),
        (["?"], "examples: there is no ?; they are biased_die, brp"),
        (["brp", "--to", "{file}"], "--to: cannot write to"),
    ],
)
def test_faults(arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main(["examples", *(text.format(file=file) for text in arguments)]) == 2
    caught = capsys.readouterr()
    assert caught.out == "" and caught.err.startswith(f"error: {told}")
