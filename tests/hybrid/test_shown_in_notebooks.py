"""What objects show of themselves: short texts, and HTML that is whole, escaped, for light and dark."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import hybrid
from hybrid.analysis import scheduler as choice_table
from hybrid.base.notebook import memory_picture, rows_table
from hybrid.checking.answer import Answer
from tests.builders.mdp_texts import SLOW_WAY

QUEUE = """ctmc
const int c;
module queue
  n : [0..c];
  [] n < c -> 2 : (n' = n + 1);
  [] n > 0 -> 3 : (n' = n - 1);
endmodule
"""

SVG = "{http://www.w3.org/2000/svg}"


def whole(shown: Any) -> ElementTree.Element:
    """The HTML of an object as a tree; it sets no colours but that of a dot, on any ground."""
    text = shown._repr_html_()
    assert not re.search(r"background|[^-]color:|<script", text)
    return ElementTree.fromstring(text)


def cells(tree: ElementTree.Element) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


@pytest.fixture(scope="module")
def queue() -> hybrid.Model:
    return hybrid.parse(QUEUE, {"c": 5}, file="<b>&.prism")


@pytest.fixture(scope="module")
def slow_way() -> hybrid.Model:
    return hybrid.parse(SLOW_WAY)


def test_answers(queue: hybrid.Model) -> None:
    answer = hybrid.check(queue, '"full": P=? [ F<=1 n=c ]')
    between = f"certified between {answer.lower!r} and {answer.upper!r}"
    assert repr(answer) == f"<Answer full: P=? [ F<=1 n=c ]: {answer.value!r}, {between}>"
    shown = dict(cells(whole(answer)))
    assert shown["name"] == "full"
    assert shown["property"] == "P=? [ F<=1 n=c ]"
    assert shown["result"].startswith(repr(answer.value))
    assert shown["matrix"].endswith(f"B at level {answer.statistics.level}, engine hybrid")


@pytest.mark.parametrize(
    ("prop", "options", "told"),
    [
        ("P=? [ F n=c ]", {}, "1.0, exact"),
        ("P>0.999 [ F<=1 n=c ]", {}, "False, certified"),
        ("filter(range, P=? [ F<=1 n=c ])", {}, " to 1.0 over 6 states, certified"),
        ("P=? [ F<4 n=9 & n<c ]", {}, "0.0, exact"),
        ("S=? [ n=c ]", {"method": "jor"}, ", estimate"),
        ("P=? [ F m=1 ]", {}, "not answered: "),
    ],
)
def test_results_say_what_is_promised(
    queue: hybrid.Model, prop: str, options: dict[str, str], told: str
) -> None:
    (answer,) = hybrid.check_all(queue, prop, **options)  # type: ignore[arg-type]
    assert told in repr(answer)
    assert len(repr(answer)) < 200
    assert told in dict(cells(whole(answer)))["result"]


def test_interrupted_answers_show_their_bounds(queue: hybrid.Model) -> None:
    found = hybrid.check(queue, "P=? [ F n=c ]")
    known = {name: getattr(found, name) for name in ("name", "property", "statistics", "seconds", "engine")}
    ended = Answer(value=None, lower=0.25, upper=0.5, error="the time is up\nmore", interrupted=True, **known)
    assert repr(ended) == "<Answer P=? [ F n=c ]: the time is up; between 0.25 and 0.5 so far>"


def test_listings_show_their_first_states(queue: hybrid.Model) -> None:
    model = hybrid.parse(QUEUE, {"c": 20})
    tree = whole(hybrid.check(model, "filter(print, P=? [ F<=1 n=c ])"))
    assert [row[0] for row in cells(tree)[-10:]] == [f"(n={n})" for n in range(10)]
    assert "... and 11 more" in "".join(tree.itertext())


def test_curves_and_their_points(slow_way: hybrid.Model) -> None:
    answer = hybrid.check(slow_way, "multi(Pmax=? [ F x=2 ], Pmax=? [ F x=3 ])", scheduler=True)
    assert repr(answer).endswith(": a curve, certified>")
    points = len(answer.several.record()["points"])
    assert repr(answer.several).endswith(f": {points} points>")
    assert repr(answer.several.schedulers) == f"<PointSchedulers of {points} points>"


def test_schedulers(slow_way: hybrid.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = hybrid.check(slow_way, "Pmax=? [ F x=2 ]", scheduler=True).scheduler
    names, numbers = scheduler.actions()
    told = repr(scheduler)
    assert told.startswith("<Scheduler of 4 states: ")
    for place, name in enumerate(names):
        assert f"{name or 'no action'} in {(numbers == place).sum()}" in told
    header, *rows = cells(whole(scheduler))
    assert header == ["x", "action", "layer", "command"]
    assert len(rows) == 4
    assert [row[-1] or None for row in rows] == [scheduler.commands()[0][k] for k in scheduler.commands()[1]]
    listed = hybrid.parse(SLOW_WAY, build="explicit")
    unknown = hybrid.check(listed, "Pmax=? [ F x=2 ]", scheduler=True).scheduler
    assert "the model does not know its commands" in repr(unknown)
    assert "the model does not know its commands" in "".join(whole(unknown).itertext())
    monkeypatch.setattr("hybrid.analysis.scheduler.MOST_TOLD", 3)
    monkeypatch.setattr(choice_table, "MOST_TOLD", 3)
    assert repr(scheduler) == "<Scheduler of 4 states>"
    assert cells(whole(scheduler)) == []


def test_schedulers_with_memory(slow_way: hybrid.Model) -> None:
    scheduler = hybrid.check(slow_way, "Pmax=? [ F<=3 x=2 ]", scheduler=True).scheduler
    memories = len(set(scheduler.memory.tolist()))
    pairs = f"{scheduler.size} pairs of a state and one of {memories} memories"
    assert repr(scheduler).startswith(f"<MemoryScheduler of {pairs}: ")
    header, *rows = cells(whole(scheduler))
    assert header == ["x", "memory", "action", "layer", "next", "command"]
    assert len(rows) == min(10, scheduler.size)


def test_experiments() -> None:
    model = hybrid.parse(QUEUE, {"c": 3})
    runs = hybrid.experiment(model, "const double T; P=? [ F<=T n=c ]", {"T": [1, -1, 2]})
    title, header, *rows = repr(runs).splitlines()
    assert title == "<ExperimentTable, 3 records of P=? [ F<=T n=c ]>"
    assert header.split() == ["T", "value", "lower", "upper", "kind", "error"]
    assert rows[0].split() == [str(runs[0][name]) for name in ("T", "value", "lower", "upper", "kind")]
    assert runs[1]["error"].partition("\n")[0] in rows[1]
    shown = cells(whole(runs))
    assert shown[0] == header.split()
    assert shown[1][1] == repr(runs[0]["value"])
    both = hybrid.experiment(model, "const int T; P=? [ F<=T n=c ]; S=? [ n=c ]", {"T": "1:15"})
    lines = repr(both).splitlines()
    assert lines[1].split()[:2] == ["T", "property"]
    assert len(lines) == 23
    assert lines[-1] == "... and 10 more"
    assert repr(hybrid.ExperimentTable()) == "<ExperimentTable, 0 records>"
    assert cells(whole(hybrid.ExperimentTable())) == []


@pytest.mark.parametrize("representation", ["row-types", "tasks"])
def test_matrices(queue: hybrid.Model, representation: str) -> None:
    matrix = hybrid.inject(queue.transitions, level=2, representation=representation, backend="cpu")
    tree = whole(matrix)
    shown = dict(cells(tree))
    assert shown["shape"] == "6 x 6"
    assert shown["non-zeros"] == "10"
    assert shown["held as"] == representation
    assert shown["level"].startswith("2: ")
    told = "".join(tree.itertext())
    assert f"MemR over {len(matrix.curve)} levels, least " in told
    assert matrix._product is None  # a glance builds nothing


def test_the_picture_of_a_model_has_a_caption(queue: hybrid.Model) -> None:
    tree = whole(queue)
    assert "<b>&.prism" in "".join(tree.itertext())
    caption = tree.findtext(".//figcaption")
    sizes = [c.bytes_worst_case for c in hybrid.inject(queue.transitions).curve.levels]
    least = sizes.index(min(sizes))
    assert caption == f"MemR over {len(sizes)} levels, least {min(sizes):,} B at level {least}"


def test_dots_stand_where_they_are_said_to_stand() -> None:
    tree = ElementTree.fromstring(memory_picture([4000, 1064, 2000], 2))
    assert tree.findtext("figcaption") == "MemR over 3 levels, least 1,064 B at level 1; held at level 2"
    points = tree.find(f".//{SVG}polyline").get("points").split()
    dot = tree.find(f".//{SVG}circle")
    assert points[2] == f"{dot.get('cx')},{dot.get('cy')}"
    heights = [float(point.split(",")[1]) for point in points]
    assert heights[0] < heights[2] < heights[1]  # downwards


def test_cells_are_escaped() -> None:
    tree = ElementTree.fromstring(f"<div>{rows_table(['<a>'], [['<script>&']], 2)}</div>")
    assert cells(tree) == [["<a>"], ["<script>&"]]
    assert "... and 2 more" in "".join(tree.itertext())
