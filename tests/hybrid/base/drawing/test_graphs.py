"""Pictures of graphs and diagrams: every node and arrow is there, with Graphviz and without."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import hybrid.base.graph_drawing as layered
from hybrid.base.errors import OptionError
from hybrid.base.graph_drawing import (
    GraphArrow,
    GraphNode,
    GraphPicture,
    diagram_picture,
    dot_text,
    draw_graph,
)
from hybrid.models.interchange.write_out import graph_picture
from mtbdd.language.syntax import ModelType
from tests.builders.matrices import from_dense, to_dense
from tests.builders.text_models import random_model

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "dot": b"digraph {"}
HOSTILE = '</text><script>alert(1)</script> "\\N & $x_1$'


def small() -> GraphPicture:
    initial = GraphNode(("s=0", "{init}"), 0, double=True, marked=True)
    nodes = [initial, GraphNode((), 1, "choice"), GraphNode(("s=1",), 2)]
    ends = [(1, 2, "0.5"), (1, 0, "0.5"), (2, 2, "1")]
    arrows = [GraphArrow(0, 1, "go", head=False), *(GraphArrow(*end) for end in ends)]
    return GraphPicture(nodes, arrows, title="small")


@pytest.fixture
def no_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.base.graph_drawing.shutil.which", lambda _: None)


@pytest.mark.parametrize("ending", MAGIC)
@pytest.mark.usefixtures("no_graphviz")
def test_matplotlib_draws_where_there_is_no_graphviz(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"g.{ending}"
    assert draw_graph(small(), path) == ("text" if ending == "dot" else "matplotlib")
    assert path.read_bytes().startswith(MAGIC[ending])
    if ending == "svg":
        text = path.read_text(encoding="utf-8")
        assert all(f">{word}<" in text for word in ("s=0", "{init}", "s=1", "go", "0.5", "small"))


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz on the path: apt-get install graphviz")
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_graphviz_draws_where_it_is(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"g.{ending}"
    assert draw_graph(small(), path) == "dot"
    assert path.read_bytes().startswith(MAGIC[ending])


@pytest.mark.parametrize("program", ["true", "false", "/nowhere/dot"])
def test_a_graphviz_that_fails_hinders_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr("hybrid.base.graph_drawing.shutil.which", lambda _: program)
    assert draw_graph(small(), tmp_path / "g.png") == "matplotlib"


@pytest.mark.parametrize("with_graphviz", [False, True])
def test_names_stay_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_graphviz: bool) -> None:
    if with_graphviz and shutil.which("dot") is None:
        pytest.skip("no Graphviz on the path: apt-get install graphviz")
    if not with_graphviz:
        monkeypatch.setattr("hybrid.base.graph_drawing.shutil.which", lambda _: None)
    odd = GraphPicture([GraphNode((HOSTILE,), 0)], [GraphArrow(0, 0, HOSTILE)], title=HOSTILE)
    draw_graph(odd, tmp_path / "g.svg")
    text = (tmp_path / "g.svg").read_text(encoding="utf-8")
    assert "<script" not in text and text.count("&lt;script") >= 3


@pytest.mark.parametrize("kind", ModelType)
def test_a_model_has_all_states_and_transitions(rng: np.random.Generator, kind: ModelType) -> None:
    for _ in range(10):
        model = random_model(rng, kind)
        picture = graph_picture(model)
        states = [node for node in picture.nodes if node.kind == "state"]
        choices = [node for node in picture.nodes if node.kind == "choice"]
        assert (len(states), len(choices)) == (model.n_states, model.n_choices if model.is_mdp else 0)
        assert [node.double for node in states] == model.initial.tolist()
        labelled = np.any([np.zeros(model.n_states, bool), *model.labels.values()], axis=0)
        assert [node.marked for node in states] == labelled.tolist()
        x = model.valuations["x"].tolist()
        assert all(node.lines[0].startswith(f"x={value}, on=") for node, value in zip(states, x, strict=True))
        ways = [arrow for arrow in picture.arrows if arrow.head]
        assert [(arrow.target, arrow.label) for arrow in ways] == [
            (column, f"{value:.4g}")
            for column, value in zip(model.columns.tolist(), model.values.tolist(), strict=True)
        ]
        assert dot_text(picture).count(" -> ") == len(picture.arrows)


def test_a_diagram_walked_on_its_picture_is_the_matrix() -> None:
    dense = np.array([[0, 3, 6], [0, 3, 4], [5, 0, 4.0]])
    codes = np.array([0, 1, 3])
    matrix = from_dense(dense, codes, codes, 2)
    picture = diagram_picture(matrix, title="figure")
    notes = [node.lines[0] for node in picture.nodes if node.kind == "note"]
    assert notes == ["0: x1", "1: y1", "2: x2", "3: y2", "4: value"]
    found = np.zeros((3, 3))
    (root,) = [k for k, node in enumerate(picture.nodes) if node.layer == 0 and node.kind == "node"]

    def walk(node: int, row: int, column: int) -> None:
        own = picture.nodes[node]
        if own.kind == "terminal":
            found[row, column] += float(own.lines[0])
        for arrow in picture.arrows:
            if arrow.source == node:
                step = 0 if arrow.dashed else int(own.lines[0])
                walk(arrow.target, row + step * (own.layer % 2 == 0), column + step * (own.layer % 2))

    walk(root, 0, 0)
    assert np.array_equal(found, to_dense(matrix)) and np.array_equal(found, dense)
    assert len(re.findall("rank=same", dot_text(picture))) == 5


def test_rows_of_the_layered_drawing_are_the_layers() -> None:
    picture = diagram_picture(from_dense(np.arange(1.0, 17.0).reshape(4, 4)))
    places = layered.layered_places(picture)
    assert [y for _, y in places] == [-node.layer for node in picture.nodes]
    assert len(set(places)) == len(places)
    notes = [place for node, place in zip(picture.nodes, places, strict=True) if node.kind == "note"]
    others = [place for node, place in zip(picture.nodes, places, strict=True) if node.kind != "note"]
    assert all(x < u for x, y in notes for u, v in others if y == v)


def test_what_is_too_large_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    with pytest.raises(OptionError, match="at most 200 nodes, got"):
        diagram_picture(from_dense(rng.random((32, 32))))
    with pytest.raises(OptionError, match=r"written as .png, .svg, .pdf or .dot"):
        draw_graph(small(), tmp_path / "g.gif")
    with pytest.raises(OptionError, match="cannot write"):
        draw_graph(small(), tmp_path / "no" / "g.dot")
