"""The commands that a scheduler takes: enabled in the state, of its action, and the ones that it moves by."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.__main__ import main
from hybrid.analysis.scheduler import Scheduler
from mtbdd.build.state_order import for_users
from mtbdd.language.evaluate import evaluate
from tests.builders.random_mdps import mdps

ALIKE = """mdp
module one
  x : [0..3];
  [] x = 0 -> (x' = 1);
  [] x = 0 -> (x' = 2);
  [] x = 0 -> 1/2 : (x' = 1) + 1/2 : (x' = 3);
endmodule
"""

RENAMED = """mdp
module one
  x : [0..2];
  [] x < 2 -> (x' = x + 1);
  [both] x = 2 -> true;
endmodule
module two = one [x = y] endmodule
"""


MANY = """mdp
module one
  x : [0..2];
  [go] x < 2 -> (x' = x + 1);
  [go] x > 0 -> 1/2 : (x' = x - 1) + 1/2 : true;
  [] x = 1 -> (x' = 2);
endmodule
module two
  y : [0..2];
  [] y < 2 -> (y' = y + 1);
  [go] y > 0 -> (y' = 0);
  [go] y = 2 -> (y' = 1);
endmodule
"""


def told(scheduler: Scheduler) -> list[str | None]:
    texts, numbers = scheduler.commands()
    return [texts[k] for k in numbers.tolist()]


@pytest.mark.parametrize("build", ["symbolic", "explicit"])
@pytest.mark.parametrize("order", ["model", "reversed"])
def test_choices_without_an_action_are_told_apart(order: str, build: str) -> None:
    model = hybrid.parse(ALIKE, order=order, build=build)
    for target, place in ((1, "4:3"), (2, "5:3"), (3, "6:3")):
        answer = hybrid.check(model, f"Pmax=? [ F x={target} ]", scheduler=True)
        assert told(answer.scheduler) == [f"{place} x = 0", None, None, None]  # the others are deadlocks


@pytest.mark.parametrize("build", ["symbolic", "explicit"])
def test_modules_by_renaming_share_a_line_and_have_their_own_guards(tmp_path: Path, build: str) -> None:
    model = hybrid.parse(RENAMED, build=build)
    scheduler = hybrid.check(model, "Pmax=? [ x<1 U y=2 ]", scheduler=True).scheduler
    first, *_, last = told(scheduler)
    assert first == "4:3 y < 2"
    assert last == "5:3 x = 2; 5:3 y = 2"
    scheduler.write(tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["x", "y", "action", "layer", "command"]
    assert [row["command"] for row in rows] == told(scheduler)
    scheduler.write(tmp_path / "s.json")
    records = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert [record["command"] for record in records] == told(scheduler)


@settings(max_examples=12)
@given(text=mdps(), maximise=st.booleans(), build=st.sampled_from(["symbolic", "explicit"]))
def test_guards_of_what_is_told_hold(text: str, maximise: bool, build: str) -> None:
    model = hybrid.parse(text, build=build)
    word = "max" if maximise else "min"
    for prop in (f"filter(max, P{word}=? [ F x=1 ])", f"filter(max, P{word}=? [ F<=2 x=1 ])"):
        scheduler = hybrid.check(model, prop, scheduler=True).scheduler
        known = {
            f"{c.position.line}:{c.position.column}": c
            for m in hybrid.parse(text).source.modules
            for c in m.commands
        }
        names, actions = scheduler.actions()
        states = scheduler.model.describe(range(scheduler.model.n_states))
        assert scheduler.model.numbering is None
        for state, number, commands in zip(states, actions.tolist(), told(scheduler), strict=True):
            for one in [] if commands is None else commands.split("; "):
                command = known[one.split(" ")[0]]
                assert command.action == names[number]
                assert evaluate(command.guard, state) is True


def test_memory_keeps_the_commands(tmp_path: Path) -> None:
    model = hybrid.parse(RENAMED)
    scheduler = hybrid.check(model, "Pmax=? [ F<=3 x+y=3 ]", scheduler=True).scheduler
    found = told(scheduler)
    assert {"4:3 x < 2", "4:3 y < 2"} & set(found)
    scheduler.write(tmp_path / "s.json")
    for record, text in zip(json.loads((tmp_path / "s.json").read_text()), found, strict=True):
        assert record["command"] == text
        assert record["memory"] >= 0


@pytest.mark.parametrize("order", ["model", "reversed"])
def test_every_way_of_many_choices_is_told(order: str) -> None:
    """A scheduler of a listed model takes each layer in turn; what is told of it is what diagrams tell."""
    listed = hybrid.parse(MANY, build="explicit", order=order)
    symbolic = hybrid.parse(MANY)
    by_states: list[dict[str, set[str | None]]] = []
    for model in (listed, symbolic):
        ways: dict[str, set[str | None]] = {}
        states = [str(state) for state in model.state_table().tolist()]
        for number, layer in enumerate(model.layers):
            layers = np.full(model.n_states, number, np.uint16)
            texts, places = Scheduler(model, layers).commands()
            enabled = for_users(model, model.indicator(layer.enabled))
            for state, place, has in zip(states, places.tolist(), enabled.tolist(), strict=True):
                if has:
                    ways.setdefault(state, set()).add(texts[place])
        by_states.append(ways)
    assert by_states[0] == by_states[1]
    told_of_one = {"4:3 x < 2; 11:3 y > 0", "5:3 x > 0; 11:3 y > 0", "6:3 x = 1", "10:3 y < 2"}
    assert by_states[0]["(1, 1)"] == told_of_one


def test_listed_models_do_not_know(tmp_path: Path) -> None:
    (tmp_path / "m.pm").write_text(RENAMED)
    assert main(["export", str(tmp_path / "m.pm"), "--to", str(tmp_path / "m.drn"), "--quiet"]) == 0
    for model in (hybrid.load(tmp_path / "m.drn"), hybrid.parse(RENAMED, build="explicit")):
        scheduler = hybrid.check(model, 'Pmax=? [ X "init" ]', scheduler=True).scheduler
        assert set(told(scheduler)) == {None}
        scheduler.write(tmp_path / "s.csv")
        header, row, *_ = (tmp_path / "s.csv").read_text().splitlines()
        assert header.endswith(",command")
        assert row.endswith(",")


def test_commands_in_python_are_told_by_file_and_line() -> None:
    m = hybrid.ModelBuilder("mdp")
    x = m.variable("x", 0, 2)
    m.command(x == 0, {x: 1})
    m.command(x == 0, {x: 2})
    model = m.build()
    first, second = (
        told(hybrid.check(model, f"Pmax=? [ F x={target} ]", scheduler=True).scheduler)[0]
        for target in (1, 2)
    )
    file, _, line = str(first).rpartition(":")
    assert file == Path(__file__).name
    assert second == f"{file}:{int(line) + 1}"


def test_parts_say_in_short_what_they_are() -> None:
    model = hybrid.parse(RENAMED)
    parts = [repr(part) for layer in model.layers for part in layer.parts]
    assert "<ChoicePart without an action, commands at 4:3>" in parts
    assert "<ChoicePart of the action 'both', commands at 5:3, 5:3>" in parts
    assert repr(model.layers[0]).startswith(
        f"<ChoiceLayer of {len(model.layers[0].parts)} parts: <ChoicePart"
    )
    listed = hybrid.parse(RENAMED, build="explicit")
    assert repr(listed.layers[0].parts[0]).endswith(", of no known command>")
