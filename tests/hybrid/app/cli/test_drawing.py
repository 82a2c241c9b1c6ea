"""`hybrid graph --plot` and `hybrid info --diagram`: pictures of small models, messages for large ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.__main__ import main

FIGURE = """ctmc
module figure
  a : [0..1];
  b : [0..1];
  [] a = 0 & b = 0 -> 3 : (b' = 1) + 6 : (a' = 1) & (b' = 1);
  [] a = 0 & b = 1 -> 3 : true + 4 : (a' = 1);
  [] a = 1 & b = 1 -> 5 : (a' = 0) & (b' = 0) + 4 : true;
endmodule
label "both" = a = 1 & b = 1;
"""


@pytest.fixture
def figure(tmp_path: Path) -> str:
    path = tmp_path / "figure.prism"
    path.write_text(FIGURE)
    return str(path)


def test_the_graph_of_a_small_model(capsys: pytest.CaptureFixture[str], tmp_path: Path, figure: str) -> None:
    target = tmp_path / "g.dot"
    assert main(["graph", figure, "--backend", "cpu", "--plot", str(target)]) == 0
    assert "SCCs" in capsys.readouterr().out
    text = target.read_text()
    assert '"a=0, b=0"' in text and '"a=1, b=1\\n{both}"' in text and text.count("peripheries=2") == 1
    assert sorted(line.split('"')[1] for line in text.splitlines() if "->" in line) == list("334456")
    assert "figure.prism" in text


def test_the_diagram_of_a_chain(capsys: pytest.CaptureFixture[str], tmp_path: Path, figure: str) -> None:
    target = tmp_path / "d.dot"
    assert main(["info", figure, "--order", "model", "--diagram", str(target)]) == 0
    assert "offset-labelled 15 nodes" in capsys.readouterr().out
    text = target.read_text()
    names = ["0: a", "1: a'", "2: b", "3: b'", "4: value"]
    assert all(f'label="{name}", shape=plaintext' in text for name in names)
    assert text.count("shape=circle") == 11 and text.count("shape=box") == 4


def test_bits_have_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model, target = tmp_path / "m.prism", tmp_path / "d.dot"
    model.write_text("dtmc module m s:[0..2]; [] s<2 -> (s'=s+1); [] s=2 -> true; endmodule")
    assert main(["info", str(model), "--diagram", str(target)]) == 0
    assert all(f'"{name}"' in target.read_text() for name in ("0: s bit 1", "1: s' bit 1", "3: s' bit 0"))
    capsys.readouterr()


def test_large_models_and_mdps_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, examples_folder: Path
) -> None:
    target = tmp_path / "g.svg"
    for command, name, constant, message in (
        ("graph", "tandem", "c=15", "at most 200 states, got 496"),
        ("info", "kanban", "t=2", "at most 200 nodes, got"),
        ("info", "coin", "K=1", "expected a dtmc or ctmc"),
    ):
        option = "--plot" if command == "graph" else "--diagram"
        arguments = [command, str(examples_folder / f"{name}.prism"), "--const", constant, option]
        assert main([*arguments, str(target)]) == 2
        assert message in capsys.readouterr().err
        assert not target.exists()


@pytest.mark.parametrize(("command", "option"), [("graph", "--plot"), ("info", "--diagram")])
def test_wrong_files_are_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, figure: str, command: str, option: str
) -> None:
    for name, message in (
        ("g.gif", "written as .png, .svg, .pdf or .dot"),
        ("no/g.svg", f"{option}: cannot write"),
        ("figure.prism", "is the model as well"),
    ):
        assert main([command, figure, option, str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
