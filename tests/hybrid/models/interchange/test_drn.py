"""The format DRN, as Storm and PRISM write it, read and written; damaged files are refused by line."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid
from hybrid.models.interchange import ExplicitModel, ExplicitReward, InterchangeError
from hybrid.models.interchange.text.drn import read_drn
from hybrid.models.interchange.text.prism import read_prism_files
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import write_listed
from tests.builders.text_models import assert_same, random_model, renumbered, rows_of
from tests.hybrid.models.interchange.foreign import foreign

MDP = """// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
cost gain
@nr_states
3
@nr_choices
4
@model
state 0 [1, 0] init
//[x=0\t& b=true]
\taction go [0, 2]
\t\t1 : 0.5
\t\t2 : 0.5
\taction __NOLABEL__ [0, 0]
\t\t0 : 1
state 1 [0, 0] "two words" goal
//[x=3\t& b=false]
\taction go [0, 0]
\t\t1 : 1
state 2 [0, 0] goal
//[x=-1\t& b=false]
\taction go [0, 0]
\t\t2 : 1
"""

CTMC = """@type: CTMC
@parameters

@reward_models

@nr_states
2
@model
state 0 !2.5 init
\taction 0
\t\t0 : 1
\t\t1 : 1.5
state 1 !0
\taction 0
"""


def read_text(folder: Path, text: str) -> ExplicitModel:
    path = folder / "m.drn"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return read_drn(path)


def test_drn_reads_all_that_the_format_has(tmp_path: Path) -> None:
    model = read_text(tmp_path, MDP)
    assert model.type is ModelType.MDP and model.choice_starts is not None
    assert model.choice_starts.tolist() == [0, 2, 3, 4]
    assert model.row_starts.tolist() == [0, 2, 3, 4, 5]
    assert model.columns.tolist() == [1, 2, 0, 1, 2]
    assert model.values.tolist() == [0.5, 0.5, 1, 1, 1]
    assert model.actions == ("go",) and model.choice_actions is not None
    assert model.choice_actions.tolist() == [0, -1, 0, 0]
    assert model.initial.tolist() == [True, False, False]
    assert list(model.labels) == ["two words", "goal"]
    assert model.labels["two words"].tolist() == [False, True, False]
    assert model.labels["goal"].tolist() == [False, True, True]
    assert model.valuations["x"].tolist() == [0, 3, -1]
    assert model.valuations["b"].tolist() == [True, False, False]
    assert [(v.low, v.high, v.is_bool) for v in model.variables] == [(-1, 3, False), (0, 1, True)]
    cost, gain = model.rewards
    assert cost.name == "cost" and cost.states is not None and cost.states.tolist() == [1, 0, 0]
    assert gain.states is None and gain.choices is not None and gain.choices.tolist() == [2, 0, 0, 0]
    assert model.places.state(1) == f"{tmp_path}/m.drn:21"
    assert model.places.choice(1) == f"{tmp_path}/m.drn:19"
    assert model.places.entry(2) == f"{tmp_path}/m.drn:20"


def test_drn_truth_values_may_be_names_alone(tmp_path: Path) -> None:
    model = read_text(tmp_path, MDP.replace("b=true", "b").replace("b=false", "!b"))
    assert_same(model, read_text(tmp_path, MDP))


@pytest.mark.parametrize(
    "comment", ["//[x=3]", "// no", "//[x=3\t& b=0]", "//[y=3\t& b=false]", "//[x=\t& b=true]"]
)
def test_drn_comments_that_are_no_valuations_are_comments(tmp_path: Path, comment: str) -> None:
    model = read_text(tmp_path, MDP.replace("//[x=3\t& b=false]", comment))
    assert not model.variables and not model.valuations
    assert len(model.warnings) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("//[x=3\t& b=false]", "//[x=0.5\t& b=false]", ":22: .* got '//\\[x=0.5"),
        ("//[x=3\t& b=false]\n", "", ":21: .* got none below this state"),
        ("//[x=3\t& b=false]", "// a remark", ":22: .* got '// a remark'"),
        ("//[x=3\t& b=false]", "//[y=3\t& b=false]", ":22: .* got other variables"),
        ("//[x=3\t& b=false]", "//[x=3\t& b=7]", ":15: .* got other kinds of values"),
    ],
)
def test_valuations_that_are_not_read_are_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "m.drn").write_text(MDP.replace(old, new))
    (warning,) = hybrid.load(tmp_path / "m.drn").warnings
    assert re.search(rf"m\.drn{told}", warning) and "passed over" in warning
    (tmp_path / "m.drn").write_text(re.sub("//.*", "// a remark", MDP))
    assert not hybrid.load(tmp_path / "m.drn").warnings


def test_drn_numbers_may_be_fractions_and_placeholders(tmp_path: Path) -> None:
    text = CTMC.replace("@nr_states", "@placeholders\n$a : 3/2\n$b : 1/3\n@nr_states")
    model = read_text(tmp_path, text.replace("1 : 1.5", "1 : $a"))
    assert model.values.tolist() == [1.0, 1.5] and model.value_units == 0.0
    other = read_text(tmp_path, text.replace("0 : 1", "0 : $b").replace("!2.5", "!11/6"))
    assert other.values.tolist() == [1 / 3, 1.5] and other.value_units == 1.0


def test_drn_choices_called_by_their_number_have_no_actions(tmp_path: Path) -> None:
    text = MDP.replace("action go", "action 0").replace("action __NOLABEL__", "action 1")
    model = read_text(tmp_path, text)
    assert model.actions == () and model.choice_actions is None
    assert read_text(tmp_path, text.replace("action 1", "action 2")).actions == ("0", "2")


@pytest.mark.parametrize("name", ["tandem3", "coin2"])
def test_drn_of_prism_is_the_same_model_as_its_explicit_files(name: str) -> None:
    model = read_drn(foreign(f"{name}.prism.drn"))
    files = read_prism_files(foreign(f"{name}.tra"))
    assert_same(model, files, but=("variables", "valuations", "labels"))
    assert model.labels.keys() == files.labels.keys() - {"deadlock"}
    for label, mask in model.labels.items():
        assert (mask == files.labels[label]).all()


@pytest.mark.parametrize("name", ["tandem3", "coin2", "kanban1"])
def test_drn_of_storm_is_the_model_of_prism_but_for_the_order_of_states(name: str) -> None:
    storm = read_drn(foreign(f"{name}.storm.drn"))
    prism = read_prism_files(foreign(f"{name}.tra"))
    to = renumbered(storm, prism)
    assert sorted(to.tolist()) == list(range(prism.n_states))
    for k, reward in enumerate(prism.rewards):
        own = [each.name for each in storm.rewards].index(reward.name)
        assert rows_of(storm, to, own) == rows_of(prism, np.arange(prism.n_states), k)
    assert (prism.initial[to] == storm.initial).all()
    for label, mask in storm.labels.items():
        assert (prism.labels[label][to] == mask).all()


@given(st.integers(0, 2**32), st.sampled_from(ModelType), st.integers(0, 3))
def test_drn_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kind: ModelType, n_rewards: int
) -> None:
    model = random_model(np.random.default_rng(seed), kind, n_rewards)
    path = write_listed(model, tmp_path_factory.mktemp("drn") / "m.drn")
    assert_same(read_drn(path), model)


@pytest.mark.parametrize("kind", ModelType)
def test_drn_is_written_in_blocks(tmp_path: Path, kind: ModelType, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(np.random.default_rng(5), kind)
    whole = write_listed(model, tmp_path / "whole.drn").read_bytes()
    monkeypatch.setattr("hybrid.models.interchange.text.writing.ROWS", 4)
    assert write_listed(model, tmp_path / "parts.drn.gz") == tmp_path / "parts.drn.gz"
    assert_same(read_drn(tmp_path / "parts.drn.gz"), model)
    assert write_listed(model, tmp_path / "parts.drn").read_bytes() == whole


def test_drn_states_without_choices_are_written_and_read(tmp_path: Path) -> None:
    text = MDP.replace("\taction go [0, 0]\n\t\t1 : 1\n", "").replace("\n4\n", "\n3\n")
    model = read_text(tmp_path, text)
    assert model.choice_starts is not None and model.choice_starts.tolist() == [0, 2, 2, 3]
    assert_same(read_drn(write_listed(model, tmp_path / "n.drn")), model)


def test_drn_rewards_without_names_get_some_unless_alone(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(2), ModelType.DTMC, 0)
    states = np.ones(model.n_states)
    alone = dataclasses.replace(model, rewards=(ExplicitReward(None, states),))
    assert_same(read_drn(write_listed(alone, tmp_path / "m.drn")), alone)
    named = [ExplicitReward(name, states) for name in (None, "reward0", None)]
    both = read_drn(write_listed(dataclasses.replace(model, rewards=tuple(named)), tmp_path / "m.drn"))
    assert [reward.name for reward in both.rewards] == ["reward1", "reward0", "reward2"]


def test_drn_names_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(2), ModelType.DTMC, 0)
    for label in ('say "yes"', "two\nlines", " edge", ""):
        with pytest.raises(InterchangeError, match="fits the format DRN"):
            write_listed(dataclasses.replace(model, labels={label: model.initial}), tmp_path / "m.drn")
    spaced = dataclasses.replace(model, labels={"two words": model.initial})
    assert_same(read_drn(write_listed(spaced, tmp_path / "m.drn")), spaced)


DAMAGED = {
    "no type": (MDP.replace("@type: MDP\n", ""), 1),
    "another type": (MDP.replace("@type: MDP", "@type: POMDP"), 3),
    "type twice": (MDP.replace("@value_type: double", "@type: MDP"), 4),
    "intervals announced": (MDP.replace("double", "double-interval"), 4),
    "parameters": (MDP.replace("@parameters\n", "@parameters\np q"), 6),
    "unknown key": (MDP.replace("@value_type: double", "@players: 2"), 4),
    "words in the header": (MDP.replace("@value_type: double", "hello"), 4),
    "no model": (MDP.split("@model")[0], 12),
    "no number of states": (MDP.replace("@nr_states\n3\n", ""), 11),
    "number of states in words": (MDP.replace("@nr_states\n3", "@nr_states\nthree"), 10),
    "enormous number of states": (MDP.replace("@nr_states\n3", "@nr_states\n3000000000"), 10),
    "fewer states": (MDP.replace("@nr_states\n3", "@nr_states\n4"), 13),
    "more states": (MDP.replace("@nr_states\n3", "@nr_states\n2"), 25),
    "other choices": (MDP.replace("@nr_choices\n4", "@nr_choices\n5"), 13),
    "states in another order": (MDP.replace("state 1", "state 2"), 21),
    "a state that is no number": (MDP.replace("state 1", "state one"), 21),
    "no bracket closes": (MDP.replace("state 1 [0, 0]", "state 1 [0, 0"), 21),
    "no bracket opens": (MDP.replace("action go [0, 0]\n\t\t1", "action go 0, 0]\n\t\t1"), 23),
    "too few rewards": (MDP.replace("state 1 [0, 0]", "state 1 [0]"), 21),
    "too many rewards": (MDP.replace("state 1 [0, 0]", "state 1 [0, 0, 0]"), 21),
    "rewards that are no numbers": (MDP.replace("state 1 [0, 0]", "state 1 [0, nan]"), 21),
    "rewards with one name twice": (MDP.replace("cost gain", "cost cost"), 8),
    "quotes open": (MDP.replace('"two words"', '"two words'), 21),
    "no init": (MDP.replace(" init", ""), 14),
    "no colon": (MDP.replace("1 : 0.5", "1 0.5"), 17),
    "target out of range": (MDP.replace("1 : 0.5", "3 : 0.5"), 17),
    "negative": (MDP.replace("1 : 0.5", "1 : -0.5"), 17),
    "not a number": (MDP.replace("1 : 0.5", "1 : nan"), 17),
    "no value": (MDP.replace("1 : 0.5", "1 : "), 17),
    "interval": (MDP.replace("1 : 0.5", "1 : [0.1, 0.5]"), 17),
    "unknown placeholder": (
        MDP.replace("@reward_models", "@placeholders\n$x : 1\n@reward_models").replace("1 : 0.5", "1 : $y"),
        19,
    ),
    "placeholder of a function": (
        MDP.replace("@reward_models", "@placeholders\n$x : p+1\n@reward_models"),
        8,
    ),
    "transition above the actions": (MDP.replace("\taction go [0, 2]\n", ""), 13),
    "action above the states": (
        MDP.replace("@model\n", "@model\n\taction x [0, 0]\n").replace("\n4\n", "\n5\n"),
        14,
    ),
    "words": (MDP.replace("\taction __", "\tpraction __"), 19),
    "two actions of a chain": (CTMC.replace("\taction 0\n\t\t0", "\taction 1\n\taction 0\n\t\t0"), 9),
    "no exit rate": (CTMC.replace(" !2.5", ""), 9),
    "another exit rate": (CTMC.replace("!2.5", "!1.0"), 9),
    "rewards without a first one": (CTMC.replace("state 1 !0", "state 1 !0 [1]"), 13),
    "not UTF-8": (MDP.replace("goal", "\udcffgoal"), 21),
    "empty": ("", 1),
}


def test_f5_comments_of_drn_may_hold_any_bytes(tmp_path: Path) -> None:
    model = read_text(tmp_path, MDP)
    assert_same(read_text(tmp_path, "// caf\udce9\n" + MDP.replace("@type", "// \udcff\udc80\n@type")), model)


@pytest.mark.parametrize(("text", "line"), DAMAGED.values(), ids=DAMAGED)
def test_drn_damaged_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(InterchangeError, match=rf"m\.drn:{line}: .*expected"):
        read_text(tmp_path, text)


def test_drn_with_windows_line_ends_and_odd_blanks_is_the_same(tmp_path: Path) -> None:
    model = read_text(tmp_path, MDP)
    odd = MDP.replace("\t\t", "  ").replace(" : ", ":").replace("[0, 0]", "[ 0,0 ]").replace("\t", " ")
    assert_same(read_text(tmp_path, odd.replace("\n", "\r\n")), model)


def test_drn_labels_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = CTMC.replace("!2.5 init", "!2.5 zebra init").replace("state 1 !0", "state 1 !0 apple")
    assert list(read_text(tmp_path, text).labels) == ["zebra", "apple"]


def test_drn_rewards_that_are_fractions_carry_their_rounding(tmp_path: Path) -> None:
    assert {r.units for r in read_text(tmp_path, MDP).rewards} == {0.0}
    for old, new in (("state 0 [1, 0]", "state 0 [1/3, 0]"), ("go [0, 2]", "go [0, 2/3]")):
        rewards = read_text(tmp_path, MDP.replace(old, new)).rewards
        assert max(reward.units for reward in rewards) == 1.0
