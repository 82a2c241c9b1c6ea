"""Files by the ends of their names: models written in every format are read back with the same answers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import pytest

import hybrid
from hybrid.base.errors import OptionError
from hybrid.models.interchange import ExplicitModel, InterchangeError
from hybrid.models.interchange.formats import FORMATS, format_of, targets_of, write_model
from hybrid.models.interchange.write_out import written_out
from hybrid.models.model import Model
from mtbdd.language import LanguageError
from tests.exploring import each
from tests.source_tree import ROOT

WALK = """
dtmc
module walk
  s : [0..4] init 0;
  [] s=0 -> 1/2 : (s'=1) + 0.3 : (s'=2) + 0.2 : (s'=4);
  [back] s=1 -> 1/3 : (s'=0) + 2/3 : (s'=3);
  [] s=2 | s=3 -> true;
endmodule
module flag
  up : bool init false;
  [back] true -> (up'=true);
endmodule
label "goal" = s=3;
label "lost" = s=2 | s=4;
rewards "steps" true : 1; endrewards
rewards "jumps" s=0 : 0.5; [back] true : 2; endrewards
"""
"""A chain of which one state has no successors, with two reward structures."""

ROOM = """
mdp
module room
  x : [-1..3] init 0;
  [left] x>-1 -> 0.9 : (x'=x-1) + 0.1 : true;
  [right] x<3 -> 0.8 : (x'=x+1) + 0.2 : true;
  [] x=0 -> (x'=2);
  [stay] x=3 -> true;
endmodule
label "end" = x=3;
rewards "left" [left] true : 3; endrewards
rewards "time" true : 1; [right] true : 0.25; endrewards
rewards "place" x>0 : x; endrewards
"""
"""A decision process with actions, one of them without a name, and three reward structures."""

CASES: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "walk": ({}, ('P=? [ F "goal" ]', 'P=? [ F "deadlock" ]', 'R{"jumps"}=? [ C<=5 ]',
                  'P=? [ F up & "lost" ]')),
    "room": ({}, ('Pmax=? [ F<=4 "end" ]', 'R{"time"}min=? [ F "end" ]', 'R{"left"}max=? [ C<=6 ]',
                  'R{"place"}min=? [ C<=6 ]')),
    "coin": ({"K": 1}, ('Pmin=? [ F "all_heads" ]', 'R{"steps"}max=? [ F "decided" ]')),
    "kanban": ({"t": 1}, ('R{"throughput"}=? [ S ]', 'R{"throughput"}=? [ C<=2 ]')),
    "herman": ({}, ('filter(max, R{"steps"}=? [ F "stable" ], "init")',)),
    "tandem": ({"c": 2}, ('R{"customers"}=? [ S ]', "P=? [ F<=0.5 sm=2 ]")),
    "brp": ({"N": 2, "MAX": 2}, ("P=? [ F s=5 ]", "P=? [ F s=5 & srep=1 ]")),
}  # fmt: skip
TEXTS = {"walk": WALK, "room": ROOM}
READABLE = [suffix for suffix, found in FORMATS.items() if found.reader is not None]


@cache
def built(name: str, order: str) -> Model:
    constants = CASES[name][0]
    if name in TEXTS:
        return hybrid.parse(TEXTS[name], constants, order=order)
    return hybrid.load(ROOT / "examples" / f"{name}.prism", constants, order=order)


@cache
def answers(name: str) -> list[float]:
    """What the text gives."""
    model = built(name, "model")
    return [hybrid.check(model, text, epsilon=1e-10).value for text in CASES[name][1]]


def written(model: Model, path: Path) -> Path:
    """Write a model, and beside transitions all else that PRISM's files tell."""
    paths = [path]
    if ".tra" in path.name:
        suffixes = [".sta", ".lab", *([".srew", ".trew"] if model.source.rewards else [])]
        paths += [path.with_name(path.name.replace(".tra", suffix)) for suffix in suffixes]
    write_model(model, [target for each in paths for target in targets_of(each, len(model.source.rewards))])
    return path


@pytest.mark.parametrize(
    ("name", "suffix"),
    [*product(TEXTS, READABLE), *each(list(CASES)[len(TEXTS) :], READABLE)],
)
def test_models_come_back_with_the_answers_of_the_text(tmp_path: Path, name: str, suffix: str) -> None:
    """The small models, which have all kinds of parts, meet every format, each example one of them."""
    place = (list(CASES).index(name) + READABLE.index(suffix)) % 4
    order, engine = ("model", "reversed")[place % 2], ("explicit", "hybrid")[place // 2]
    model = built(name, order)
    assert (model.numbering is None) == (order == "model" or name == "room")
    found = hybrid.load(written(model, tmp_path / f"m{suffix}"))
    assert (found.type, found.n_states, found.n_transitions) == (
        model.type, model.n_states, model.n_transitions,
    )  # fmt: skip
    assert {reward.name for reward in found.source.rewards} == {r.name for r in model.source.rewards}
    for text, value in zip(CASES[name][1], answers(name), strict=True):
        got = hybrid.check(found, text, epsilon=1e-10, engine=engine).value
        assert got == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(("name", "suffix"), [*product(["room"], READABLE), ("coin", ".umb")])
def test_actions_and_states_come_back(tmp_path: Path, name: str, suffix: str) -> None:
    """States have the numbers of the file, whatever the order of the diagrams' variables."""
    model = built(name, "reversed")
    given, found = (written_out(m) for m in (model, hybrid.load(written(model, tmp_path / f"m{suffix}"))))
    assert len(set(actions_of(given))) > 8
    assert sorted(actions_of(found)) == sorted(actions_of(given))
    for variable in given.variables:
        assert found.valuations[variable.name].tolist() == given.valuations[variable.name].tolist()
    for label in ("end",) if name == "room" else ("decided", "all_heads"):
        assert found.labels[label].tolist() == given.labels[label].tolist()


def actions_of(model: ExplicitModel) -> list[tuple[int, str, tuple[tuple[int, float], ...]]]:
    """Every choice as its state, its action and its transitions."""
    assert model.choice_actions is not None
    found = []
    for choice, state in enumerate(model.state_of_choice.tolist()):
        own = slice(model.row_starts[choice], model.row_starts[choice + 1])
        row = zip(model.columns[own].tolist(), model.values[own].tolist(), strict=True)
        number = int(model.choice_actions[choice])
        found.append((state, model.actions[number] if number >= 0 else "", tuple(sorted(row))))
    return found


@pytest.mark.parametrize(("suffix", "packing"), each([".tra", ".pexp", ".drn"], [".gz", ".xz"]))
def test_texts_may_be_packed(tmp_path: Path, suffix: str, packing: str) -> None:
    path = written(built("room", "model"), tmp_path / f"m{suffix}{packing}")
    assert path.read_bytes()[:2] == (b"\x1f\x8b" if packing == ".gz" else b"\xfd7")
    if suffix == ".tra":
        numbered = {f"m{k}.{kind}rew{packing}" for k in (1, 2, 3) for kind in "st"}
        assert {each.name for each in tmp_path.iterdir()} == numbered | {
            f"m{end}{packing}" for end in (".tra", ".sta", ".lab")
        }
    found = hybrid.load(path)
    values = [hybrid.check(found, text, epsilon=1e-10).value for text in CASES["room"][1]]
    assert values == pytest.approx(answers("room"), rel=1e-9)


@pytest.mark.parametrize("suffix", [".umb", ".dd"])
def test_formats_with_their_own_packing_are_not_packed_again(tmp_path: Path, suffix: str) -> None:
    for act in (hybrid.load, format_of, lambda path: targets_of(path, 0)):
        with pytest.raises(InterchangeError, match="expected no packing outside the format"):
            act(tmp_path / f"m{suffix}.gz")


def test_formats_are_told_by_the_end_alone() -> None:
    assert format_of("a.tra/b.pm") is None
    assert format_of("m") is None and format_of(".gz") is None and format_of("m.prism.gz") is None
    assert format_of("a.b.tra.gz") is format_of(Path("x.tra")) is FORMATS[".tra"]


@pytest.mark.parametrize("suffix", [*READABLE, ".tra.gz", ".drn.xz"])
def test_missing_files_are_told(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InterchangeError, match=rf"none{suffix}: .*No such file"):
        hybrid.load(tmp_path / f"none{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(InterchangeError, match=rf"folder{suffix}: .*[Ii]s a directory"):
        hybrid.load(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize("suffix", [".sta", ".lab", ".srew", ".trew", ".mtx", ".dot", ".sta.gz"])
def test_files_that_hold_no_model_are_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_text("(x)\n0:(1)\n")
    readable = r"\.tra, \.pexp, \.drn, \.umb, \.dd"
    with pytest.raises(
        InterchangeError, match=rf"expected a file that a model can be read from \({readable}\)"
    ):
        hybrid.load(path)


@pytest.mark.parametrize("suffix", READABLE)
def test_options_of_texts_are_refused_for_files(tmp_path: Path, suffix: str) -> None:
    path = written(built("walk", "model"), tmp_path / f"m{suffix}")
    with pytest.raises(OptionError, match="constants: expected none"):
        hybrid.load(path, {"N": 2})
    assert hybrid.load(path, {"N": 2}, ignore_unknown=True).n_states == built("walk", "model").n_states
    given = written_out(built("walk", "model"))
    for order in ("reversed", "force"):
        if FORMATS[suffix].is_symbolic:
            with pytest.raises(OptionError, match=f"order: expected auto or model .* got '{order}'"):
                hybrid.load(path, order=order)
            continue
        found = written_out(hybrid.load(path, order=order))
        assert found.valuations["s"].tolist() == given.valuations["s"].tolist()
        assert found.labels["lost"].tolist() == given.labels["lost"].tolist()
    assert hybrid.load(path, order="model").n_states == built("walk", "model").n_states


def test_states_without_successors_stay_so_if_the_file_has_no_loop(tmp_path: Path) -> None:
    path = tmp_path / "m.tra"
    path.write_text("# Transitions (DTMC)\n2 1\n0 1 1\n")
    assert hybrid.load(path).n_transitions == 2
    with pytest.raises(LanguageError, match=r"m\.tra:1:1: 1 state has no outgoing transition"):
        hybrid.load(path, fix_deadlocks=False)


def test_numbers_of_reward_files_stand_before_the_suffix() -> None:
    assert [(str(t.path), t.structure) for t in targets_of("a.b/m.srew.gz", 2)] == [
        ("a.b/m1.srew.gz", 0), ("a.b/m2.srew.gz", 1),
    ]  # fmt: skip
    assert [(str(t.path), t.structure) for t in targets_of("m.trew", 1)] == [("m.trew", None)]
    assert [(str(t.path), t.structure) for t in targets_of("m.drn", 2)] == [("m.drn", None)]
    with pytest.raises(InterchangeError, match=r"m\.trew: expected a model with rewards"):
        targets_of("m.trew", 0)
    with pytest.raises(InterchangeError, match=r"expected a name that ends in one of \.tra, \.sta"):
        targets_of("m.prism", 1)


@pytest.mark.parametrize("suffix", [".umb", ".tra", ".mtx", ".dd"])
def test_files_that_cannot_be_written_are_told(tmp_path: Path, suffix: str) -> None:
    (target,) = targets_of(tmp_path / "none" / f"m{suffix}", 0)
    with pytest.raises(InterchangeError, match=rf"m{suffix}.*(cannot be written|No such file)"):
        write_model(built("walk", "model"), [target])


def test_rewards_of_jumps_are_written_out_with_their_errors(tmp_path: Path) -> None:
    """What is earned in a unit of time, over the rate of leaving: neither of them is a double."""
    path = tmp_path / "jumps.prism"
    path.write_text(
        "ctmc module m x : [0..1]; [a] x=0 -> 0.1:(x'=1); [b] x=0 -> 0.2:(x'=1); [] x=1 -> 1:(x'=0); "
        "endmodule\n"
        "rewards [a] true : 0.7; endrewards\n"
    )
    model = hybrid.load(path)
    listed = written_out(model)
    reward = listed.rewards[0]
    assert reward.choices is not None
    state = listed.valuations["x"].tolist().index(0)
    exact = Fraction(7, 10) * Fraction(1, 3)
    told = Fraction(reward.units) / 2**53
    assert abs(Fraction(float(reward.choices[state])) - exact) <= told * exact
    # The quotient is off by what is earned, by the rate, and by its own rounding.
    assert reward.units >= model.exit_units + 2.0
