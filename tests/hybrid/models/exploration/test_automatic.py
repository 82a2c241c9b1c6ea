"""The choice between diagrams of the commands and a list of the states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hybrid
import hybrid.models.exploration as automatic
from hybrid.__main__ import main
from hybrid.models.model import Model
from mtbdd.build.build import build_model
from mtbdd.build.order import EffortError, watched
from mtbdd.language import LanguageError, load_model, parse_model, resolve
from mtbdd.language.limits import Limits
from tests.builders.flat_texts import epidemic, gate, opinions, oscillators
from tests.source_tree import ROOT

EXAMPLES = {
    "biased_die": {"N": 9, "first": 2},
    "brp": {"N": 16, "MAX": 2},
    "cluster": {"N": 8},
    "coin": {"K": 4},
    "disk": {"Q": 20},
    "fms": {"n": 2},
    "herman": {},
    "jobs": {"N": 4},
    "kanban": {"t": 2},
    "polling": {},
    "quick_sort": {"limit": 9},
    "relay": {"H": 3, "M": 2},
    "tandem": {"c": 31},
    "teams": {},
    "wakeup": {"K": 2},
}
FLAT: dict[str, tuple[str, dict[str, Any], str]] = {
    "oscillators": (oscillators(4, 5), {"mu": 0.1, "level": 1.0}, 'R{"energy"}=? [ F "synchronised" ]'),
    "gate": (gate(1, 2), {}, 'P=? [ F<=20 "high" ]'),
    "opinions": (opinions(40), {}, 'R{"doubt"}=? [ F "agreed" ]'),
    "epidemic": (epidemic(6), {}, 'R{"cost"}min=? [ F "over" ]'),
}


def is_listed(model: Model) -> bool:
    return model.given is not None and model.given.is_listed


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_far_from_being_listed(name: str) -> None:
    work = [0.0]

    def told(microseconds: float) -> None:
        work[0] += microseconds

    with watched(told):
        build_model(resolve(load_model(str(ROOT / f"examples/{name}.prism")), EXAMPLES[name] or None))
    assert 0 < work[0] < 0.5 * automatic._CHEAP
    model = hybrid.load(ROOT / f"examples/{name}.prism", EXAMPLES[name])
    assert model.given is None and not any("listing" in warning for warning in model.warnings)


@pytest.mark.parametrize("name", FLAT)
def test_costly_commands_of_few_states_are_listed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, constants, question = FLAT[name]
    diagrams = hybrid.parse(text, constants, build="symbolic")
    monkeypatch.setattr(automatic, "_CHEAP", 1e4)  # these are small, so that diagrams are there to compare
    listed = hybrid.parse(text, constants)
    assert is_listed(listed) and not is_listed(diagrams)
    assert "built by listing" in listed.warnings[0] and "build='symbolic'" in listed.warnings[0]
    assert (listed.n_states, listed.n_transitions) == (diagrams.n_states, diagrams.n_transitions)
    assert (listed.state_table() == diagrams.state_table()).all()
    one, other = (hybrid.check(model, question) for model in (diagrams, listed))
    assert one.kind == other.kind
    assert one.lower <= other.upper and other.lower <= one.upper
    assert other.value == pytest.approx(one.value, rel=1e-6)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("true : 1e17/3; true : -1e17/3;", "a normal double of known sign, got none in state"),
        ("[] true : 1.7e308;", "less than 1.79e308 in a unit of time, got more in state"),
    ],
)
def test_states_that_make_no_model_leave_it_to_diagrams(
    items: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Diagrams tell of a reward that cancels, or of one beyond the doubles, once it is asked for."""
    text, constants, question = FLAT["gate"]
    text += f'rewards "nothing" {items} endrewards'
    with pytest.raises(LanguageError, match=message):
        hybrid.parse(text, constants, build="explicit")
    monkeypatch.setattr(automatic, "_CHEAP", 1e4)
    model = hybrid.parse(text, constants)
    assert not is_listed(model)
    assert hybrid.check(model, question).kind == "certified"


def test_many_states_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends with its share, and diagrams are made as if there had been none."""
    monkeypatch.setattr(automatic, "_CHEAP", 1e3)
    monkeypatch.setattr(automatic, "_SHARE", 1e-9)
    seen: list[str] = []
    text = (ROOT / "examples/kanban.prism").read_text()
    model = hybrid.parse(text, {"t": 2}, progress=seen.append)
    assert model.given is None and model.n_states == 4600
    assert "exploring states beside" in seen


def test_limits_of_diagrams_do_not_refuse_what_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    text, limits = opinions(50), Limits(table_steps=1 << 14)
    with pytest.raises(EffortError, match="table_steps"):
        hybrid.parse(text, build="symbolic", limits=limits)
    model = hybrid.parse(text, limits=limits)
    assert is_listed(model) and model.n_states == hybrid.parse(text).n_states
    monkeypatch.setattr(automatic, "_LAST", 100)
    with pytest.raises(EffortError, match="table_steps"):
        hybrid.parse(text, limits=limits)


def test_all_faults_are_told_as_diagrams_tell_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "_CHEAP", 0.0)
    text = "dtmc module m x:[0..2]; [] x<2 -> 0.5:(x'=x+1); [] x=2 -> (x'=x+1); endmodule"
    with pytest.raises(LanguageError) as caught:
        hybrid.parse(text)
    assert "add up to" in str(caught.value) and "outside its range" in str(caught.value)
    wide = "dtmc module m x:[0..9223372036854775806]; [] x<2 -> (x'=2); endmodule"  # none for the search
    assert hybrid.parse(wide).n_states == 2


def test_a_watch_ends_with_its_block() -> None:
    work: list[float] = []
    source = resolve(parse_model("ctmc module m x:[0..9]; [] x<9 -> x+1:(x'=x+1); endmodule"), None)
    with watched(work.append):
        model = build_model(source)
    told = len(work)
    assert told > 0 and min(work) > 0
    model.states(source.modules[0].commands[0].guard)
    build_model(source)
    assert len(work) == told


@pytest.mark.parametrize(
    ("build", "told"), [("auto", "explicit"), ("symbolic", "symbolic"), ("explicit", "explicit")]
)
def test_the_command_says_how_the_model_was_built(
    build: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic, "_CHEAP", 1e4)
    path = tmp_path / "opinions.prism"
    path.write_text(opinions(12))
    assert main(["check", str(path), "P=? [ F x=n ]", "--json", "--build", build]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["model"]["build"] == told
    assert ("built by listing its 90 states" in captured.err) is (build == "auto")
    listed = tmp_path / "m.drn"
    hybrid.export(hybrid.load(path), listed)
    assert main(["info", str(listed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["build"] is None
