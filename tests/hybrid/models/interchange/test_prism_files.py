"""PRISM's explicit files: what is written reads the same; damaged ones are refused by line."""

from __future__ import annotations

import dataclasses
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, InterchangeError, read_model
from hybrid.models.interchange.text.prism import read_pexp, read_prism_files
from mtbdd.base.errors import on_command_line
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import write_listed
from tests.builders.text_models import assert_same, random_model
from tests.hybrid.models.interchange.foreign import foreign

CHAIN = "# Transitions (DTMC)\n3 4\n0 1 0.5\n0 2 0.5\n1 1 1\n2 2 1\n"
MDP = "# Transitions (MDP)\n2 3 4\n0 0 0 0.5 go\n0 0 1 0.5 go\n0 1 1 1\n1 0 1 1\n"


def write_all(model: ExplicitModel, folder: Path, packed: str = "") -> Path:
    write_listed(model, folder / f"m.sta{packed}")
    write_listed(model, folder / f"m.lab{packed}")
    if model.rewards:
        write_listed(model, folder / f"m.srew{packed}")
        write_listed(model, folder / f"m.trew{packed}")
    return write_listed(model, folder / f"m.tra{packed}")


def read_text(folder: Path, tra: str, type: ModelType | None = None, **others: str) -> ExplicitModel:
    for suffix, text in {"tra": tra, **others}.items():
        (folder / f"m.{suffix}").write_text(text)
    return read_prism_files(folder / "m.tra", type=type)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32), st.sampled_from(ModelType), st.integers(0, 3), st.sampled_from(["", ".gz", ".xz"])
)
def test_prism_files_read_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kind: ModelType, n_rewards: int, packed: str
) -> None:
    model = random_model(np.random.default_rng(seed), kind, n_rewards)
    folder = tmp_path_factory.mktemp("files")
    assert_same(read_prism_files(write_all(model, folder, packed)), model)
    assert_same(read_pexp(write_listed(model, folder / f"m.pexp{packed}")), model)


@pytest.mark.parametrize("name", ["tandem3", "coin2", "kanban1"])
def test_prism_files_say_what_the_combined_file_says(name: str) -> None:
    files = read_prism_files(foreign(f"{name}.tra"))
    assert_same(files, read_pexp(foreign(f"{name}.prism.pexp")))


def test_prism_files_of_several_reward_structures_are_found_by_number() -> None:
    model = read_prism_files(foreign("kanban1.tra"))
    names = ["tokens_cell1", "tokens_cell2", "tokens_cell3", "tokens_cell4", "throughput"]
    assert [reward.name for reward in model.rewards] == names
    throughput = model.rewards[4]
    assert throughput.states is None and throughput.choices is not None
    # From state 1 the rate 1 of the rewarded jump is one of 1.9.
    assert throughput.choices[1] == pytest.approx(1 / 1.9, rel=1e-15)
    assert 0 < throughput.units < 100


def test_prism_files_written_again_are_those_of_prism(tmp_path: Path) -> None:
    model = read_prism_files(foreign("coin2.tra"))
    write_all(model, tmp_path)
    for suffix in ("tra", "sta", "srew", "trew"):
        written = (tmp_path / f"m.{suffix}").read_text()
        assert written.rstrip("\n") == foreign(f"coin2.{suffix}").read_text().rstrip("\n")


def test_prism_files_have_places(tmp_path: Path) -> None:
    model = read_text(tmp_path, MDP)
    # Two lines of a comment and counts; state 0 has two choices, the first one with two lines.
    assert model.places.state(0).endswith("m.tra:3")
    assert model.places.choice(0).endswith(":3")
    assert model.places.choice(1).endswith(":5")
    assert model.places.entry(1).endswith(":4")
    assert model.places.state(1).endswith(":6")


def test_prism_files_in_any_order_are_sorted_and_keep_their_places(tmp_path: Path) -> None:
    model = read_text(tmp_path, "# Transitions (DTMC)\n3 4\n2 2 1\n\n0 2 0.5\n1 1 1\n# rest\n0 1 0.5\n")
    assert model.row_starts.tolist() == [0, 2, 3, 4]
    assert model.columns.tolist() == [2, 1, 1, 2]
    assert model.places.entry(1).endswith("m.tra:8")
    assert model.places.state(2).endswith("m.tra:3")


def test_prism_files_with_odd_blanks_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    odd = CHAIN.replace("0 1 0.5", "  0\t1   5e-1  ").replace("\n", "\r\n")
    (tmp_path / "m.tra").write_bytes(odd.encode())
    (tmp_path / "m.lab").write_bytes(b'# Labels\r\n0="init" 1="goal"\r\n 0 : 0 \r\n\r\n2:1\r\n')
    (tmp_path / "m.sta").write_bytes(b"(x,b)\r\n 2:(2, true)\r\n0:(0,false)\r\n1:( 1,false)\r\n")
    model = read_prism_files(tmp_path / "m.tra")
    assert_same(model, read_text(tmp_path / "..", CHAIN), but=("labels", "variables", "valuations"))
    assert model.labels["goal"].tolist() == [False, False, True]
    assert model.valuations["x"].tolist() == [0, 1, 2]
    assert model.valuations["b"].tolist() == [False, False, True]


def test_prism_files_without_labels_begin_in_state_0(tmp_path: Path) -> None:
    assert read_text(tmp_path, CHAIN).initial.tolist() == [True, False, False]


def test_prism_files_without_a_comment_need_the_type_unless_they_have_choices(tmp_path: Path) -> None:
    bare = CHAIN.split("\n", 1)[1]
    with pytest.raises(InterchangeError, match=r"m\.tra:1: .*give the type"):
        read_text(tmp_path, bare)
    assert read_text(tmp_path, bare, ModelType.CTMC).type is ModelType.CTMC
    assert read_text(tmp_path, MDP.split("\n", 1)[1]).type is ModelType.MDP


def test_f8_a_missing_type_is_told_with_the_option(tmp_path: Path) -> None:
    bare = CHAIN.split("\n", 1)[1]
    with pytest.raises(InterchangeError, match=r"give the type of the model, type='dtmc' or 'ctmc'$"):
        read_text(tmp_path, bare)
    with on_command_line(), pytest.raises(InterchangeError, match="give .* --type dtmc or ctmc$"):
        read_text(tmp_path, bare)
    with on_command_line(), pytest.raises(InterchangeError, match="give .* --type mdp, or another file$"):
        read_text(tmp_path, CHAIN.replace("3 4", "3 3 4"))


ADVERSARY = "2 3\n0 0 1 0.5 a\n0 0 0 0.5 a\n1 0 1 1 b\n"


@pytest.mark.parametrize(
    "text",
    [
        ADVERSARY,
        "# Transitions (MDP)\n" + ADVERSARY,
        ADVERSARY.replace("2 3", "2 ?"),
        ADVERSARY.replace("2 3", "2 2 3"),
        ADVERSARY.replace(" a", "").replace(" b", ""),
    ],
)
def test_f8_rows_of_an_mdp_are_read_with_two_counts_too(tmp_path: Path, text: str) -> None:
    model = read_text(tmp_path, text, trew="2 1\n0 0 1 3\n")
    assert model.type is ModelType.MDP
    assert (model.n_states, model.n_choices, model.n_entries) == (2, 2, 3)
    assert sorted(zip(model.columns[:2].tolist(), model.values[:2].tolist(), strict=True)) == [
        (0, 0.5),
        (1, 0.5),
    ]
    assert model.actions == (("a", "b") if " a" in text else ())
    assert model.rewards[0].choices is not None and model.rewards[0].choices.tolist() == [1.5, 0.0]


def test_f8_transitions_need_not_be_counted(tmp_path: Path) -> None:
    assert_same(read_text(tmp_path, CHAIN.replace("3 4", "3 ?")), read_text(tmp_path, CHAIN))
    with pytest.raises(InterchangeError, match=r"m\.tra:1: 4 transitions, .* expected, got 3"):
        read_text(tmp_path, ADVERSARY.replace("2 3", "2 4"))


def test_f8_text_behind_a_state_is_passed_over(tmp_path: Path) -> None:
    sta = STATES.replace("(1,false)", "(1,false) {label} (2,true), 7").replace(
        "(2,true)\n", "(2,true)\t# x\n"
    )
    assert_same(read_text(tmp_path, CHAIN, sta=sta), read_text(tmp_path, CHAIN, sta=STATES))


def test_prism_files_take_fractions_to_the_nearest_double(tmp_path: Path) -> None:
    model = read_text(tmp_path, CHAIN.replace("0.5\n0 2 0.5", "1/3\n0 2 2/3"))
    assert model.values[:2].tolist() == [1 / 3, 2 / 3]
    assert model.value_units == 1.0
    halves = read_text(tmp_path, CHAIN.replace("0.5", "1/2"))
    assert halves.values.tolist() == [0.5, 0.5, 1, 1] and halves.value_units == 0.0


def test_prism_files_fold_unequal_rewards_of_transitions(tmp_path: Path) -> None:
    trew = '# Reward structure "r"\n# Transition rewards\n2 3 2\n0 0 1 8\n0 1 1 0.1\n'
    reward = read_text(tmp_path, MDP, trew=trew).rewards[0]
    assert reward.choices is not None and reward.choices.tolist() == [4.0, 0.1, 0.0]
    assert reward.name == "r" and reward.states is None and reward.units > 0


def test_prism_rewards_that_are_fractions_carry_their_rounding(tmp_path: Path) -> None:
    head = "2 3 2\n"
    same = read_text(tmp_path, MDP, trew=head + "0 0 0 1/3\n0 0 1 1/3\n").rewards[0]
    assert same.choices is not None and same.choices[0] == 1 / 3 and 1.0 <= same.units < 1.1
    apart = read_text(tmp_path, MDP, trew=head + "0 0 0 1/3\n0 0 1 1/5\n").rewards[0]
    assert 2.0 < apart.units < 20
    # Where signs meet the sum may be as small as the rounding.
    assert read_text(tmp_path, MDP, trew=head + "0 0 0 1/3\n0 0 1 -1/5\n").rewards[0].units == np.inf
    assert (
        read_text(tmp_path, MDP, srew="2 1\n0 1/3\n", trew=head + "0 0 0 1\n0 0 1 1\n").rewards[0].units
        == 1.0
    )


def test_prism_states_without_transitions_stand_where_they_are_counted(tmp_path: Path) -> None:
    model = read_text(tmp_path, CHAIN.replace("1 1 1\n", "").replace("3 4", "3 3"))
    assert model.row_starts.tolist() == [0, 2, 2, 3]
    assert [model.places.state(k)[-2:] for k in range(3)] == [":3", ":2", ":5"]
    choices = read_text(tmp_path, MDP.replace("1 0 1 1\n", "").replace("2 3 4", "2 2 3"))
    assert choices.choice_starts is not None and choices.choice_starts.tolist() == [0, 2, 2]
    assert [choices.places.state(k)[-2:] for k in range(2)] == [":3", ":2"]


def test_prism_files_of_parallel_transitions_need_all_their_rewards(tmp_path: Path) -> None:
    rates = "# Transitions (CTMC)\n1 2\n0 0 1 a\n0 0 3 b\n"
    both = read_text(tmp_path, rates, trew="1 2\n0 0 4\n0 0 8\n").rewards[0]
    assert both.choices is not None and both.choices.tolist() == [7.0]
    with pytest.raises(InterchangeError, match=r"m\.trew:2: a reward for each of the 2 transitions"):
        read_text(tmp_path, rates, trew="1 1\n0 0 4\n")


DAMAGED = {
    "target out of range": (CHAIN.replace("2 2 1", "2 3 1"), 6),
    "state out of range": (CHAIN.replace("2 2 1", "9 2 1"), 6),
    "missing field": (CHAIN.replace("1 1 1", "1 1"), 5),
    "extra field": (CHAIN.replace("1 1 1", "1 1 1 a b"), 5),
    "number as action": (CHAIN.replace("1 1 1", "1 1 1 7"), 5),
    "more transitions than announced": (CHAIN.replace("3 4", "3 3"), 2),
    "fewer transitions than announced": (CHAIN.replace("3 4", "3 5"), 2),
    "not a number": (CHAIN.replace("1 1 1", "1 1 nan"), 5),
    "infinite": (CHAIN.replace("1 1 1", "1 1 1e999"), 5),
    "negative": (CHAIN.replace("1 1 1", "1 1 -1"), 5),
    "negative state": (CHAIN.replace("1 1 1", "1 -1 1"), 5),
    "words for numbers": (CHAIN.replace("1 1 1", "1 one 1"), 5),
    "a decimal for a state": (CHAIN.replace("1 1 1", "1.0 1 1"), 5),
    "a state beyond 64 bits": (CHAIN.replace("1 1 1", "99999999999999999999 1 1"), 5),
    "underscores": (CHAIN.replace("1 1 1", "1 1 1_0"), 5),
    "interval": (CHAIN.replace("1 1 1", "1 1 [0.5,1]"), 5),
    "zero denominator": (CHAIN.replace("1 1 1", "1 1 1/0"), 5),
    "enormous count of states": (CHAIN.replace("3 4", "3000000000000 4"), 2),
    "count beyond 64 bits": (CHAIN.replace("3 4", "3 99999999999999999999"), 2),
    "no states": (CHAIN.replace("3 4", "0 4"), 2),
    "words for counts": (CHAIN.replace("3 4", "three 4"), 2),
    "empty": ("", 1),
    "comments only": ("# Transitions (DTMC)\n\n", 2),
    "other model": (CHAIN.replace("DTMC", "POMDP"), 1),
    "observations": ("1 1 1 1\n0 0 0 1 0\n", 1),
    "zero byte": (CHAIN.replace("1 1 1", "1 1 \0"), 5),
    "carriage return": (CHAIN.replace("1 1 1", "1 1 1\r2 1 1"), 5),
    "not UTF-8": (CHAIN.replace("1 1 1", "1 1 1 \udcff"), 5),
    "digits of another script": (CHAIN.replace("1 1 1", "1 1 ١"), 5),
    "gap in choices": (MDP.replace("0 1 1 1", "0 2 1 1"), 5),
    "two actions of a choice": (MDP.replace("0 0 1 0.5 go", "0 0 1 0.5 run"), 4),
    "counts of an MDP for a chain": (CHAIN.replace("3 4", "3 3 4"), 2),
    "other choices than announced": (MDP.replace("2 3 4", "2 4 4"), 2),
    "negative choice": (MDP.replace("0 1 1 1", "0 -1 1 1"), 5),
}


@pytest.mark.parametrize(("text", "line"), DAMAGED.values(), ids=DAMAGED)
def test_prism_transitions_damaged_are_refused_with_their_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "m.tra"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InterchangeError, match=rf"m\.tra:{line}: ") as fault:
        read_prism_files(path)
    assert "expected" in str(fault.value) and ";" in str(fault.value)


LABELS = '# Labels\n0="init" 1="goal"\n0: 0\n2: 1\n'
STATES = "# States\n(x,b)\n0:(0,true)\n1:(1,false)\n2:(2,true)\n"
SREW = '# Reward structure "r"\n# State rewards\n3 2\n0 1\n1 2\n'
TREW = '# Reward structure "r"\n# Transition rewards\n3 1\n0 1 2\n'

NEIGHBOURS = {
    "label unknown": ("lab", LABELS.replace("2: 1", "2: 2"), 4),
    "labels of another size": ("lab", LABELS.replace("2: 1", "3: 1"), 4),
    "label twice": ("lab", LABELS.replace("goal", "init"), 2),
    "label numbers with a gap": ("lab", LABELS.replace("1=", "2="), 2),
    "no init": ("lab", LABELS.replace("init", "done"), 2),
    "init nowhere": ("lab", LABELS.replace("0: 0\n", ""), 2),
    "no colon": ("lab", LABELS.replace("2: 1", "2 1"), 4),
    "colon behind a label": ("lab", LABELS.replace("2: 1", "2 1: 0"), 4),
    "no label names": ("lab", "# Labels\n", 1),
    "states of another size": ("sta", STATES.replace("2:(2,true)\n", ""), 4),
    "too many states": ("sta", STATES + "3:(3,true)\n", 6),
    "state twice": ("sta", STATES.replace("2:", "1:"), 5),
    "missing value": ("sta", STATES.replace("(1,false)", "(1)"), 4),
    "unbalanced bracket": ("sta", STATES.replace("(1,false)", "(1,false"), 4),
    "two brackets": ("sta", STATES.replace("(1,false)", "((1,false)"), 4),
    "no brackets around names": ("sta", STATES.replace("(x,b)", "x,b"), 2),
    "variable twice": ("sta", STATES.replace("(x,b)", "(x,x)"), 2),
    "number for a truth value": ("sta", STATES.replace("(1,false)", "(1,0)"), 4),
    "words for values": ("sta", STATES.replace("(1,false)", "(1,tree)"), 4),
    "rewards of another size": ("srew", SREW.replace("3 2", "4 2"), 3),
    "rewards of no state": ("srew", SREW.replace("1 2", "3 2"), 5),
    "rewards twice": ("srew", SREW.replace("1 2\n", "0 2\n"), 5),
    "fewer rewards": ("srew", SREW.replace("3 2", "3 3"), 3),
    "rewards that are no numbers": ("srew", SREW.replace("1 2", "1 nan"), 5),
    "the other kind of rewards": ("srew", TREW, 1),
    "rewards of no transition": ("trew", TREW.replace("0 1 2", "0 0 2"), 4),
    "rewards of transitions twice": ("trew", TREW.replace("3 1", "3 2") + "0 1 2\n", 4),
    "rewards of an MDP": ("trew", TREW.replace("3 1", "3 3 1"), 3),
}


@pytest.mark.parametrize(("suffix", "text", "line"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_prism_neighbours_damaged_are_refused_with_their_line(
    tmp_path: Path, suffix: str, text: str, line: int
) -> None:
    read_text(tmp_path, CHAIN, lab=LABELS, sta=STATES, srew=SREW, trew=TREW)
    (tmp_path / f"m.{suffix}").write_text(text)
    with pytest.raises(InterchangeError, match=rf"m\.{suffix}:{line}: .*expected"):
        read_prism_files(tmp_path / "m.tra")


def test_prism_choices_of_rewards_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InterchangeError, match=r"m\.trew:2: one of the 1 choices of state 1 expected, got 1"):
        read_text(tmp_path, MDP, trew="2 3 1\n1 1 1 5\n")
    with pytest.raises(InterchangeError, match=r"m\.trew:1: 3 choices expected, got 4"):
        read_text(tmp_path, MDP, trew="2 4 1\n1 0 1 5\n")


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_prism_files_cut_or_too_large_when_compressed_are_refused(
    tmp_path: Path, suffix: str, pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pack((CHAIN + "# \n" * 100_000).encode())
    path = tmp_path / f"m.tra.{suffix}"
    path.write_bytes(whole)
    assert read_prism_files(path).n_states == 3
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InterchangeError, match=rf"m\.tra\.{suffix}:\d+: a whole compressed file expected"):
        read_prism_files(path)
    path.write_bytes(whole)
    monkeypatch.setattr("hybrid.models.interchange.text.source.SMALL", 50_000)
    monkeypatch.setattr("hybrid.models.interchange.text.source.free_memory_bytes", lambda: 800_000)
    with pytest.raises(InterchangeError, match="a text of at most 100000 bytes expected"):
        read_prism_files(path)


def test_prism_files_missing_or_not_writable_are_told(tmp_path: Path) -> None:
    with pytest.raises(InterchangeError, match=r"m\.tra: cannot be read: No such file"):
        read_model(tmp_path / "m.tra")
    model = read_text(tmp_path, CHAIN)
    with pytest.raises(InterchangeError, match=r"n\.lab: cannot be read: No such file.*check the path"):
        read_model(tmp_path / "m.tra", lab=tmp_path / "n.lab")
    with pytest.raises(InterchangeError, match=r"x\.tra: cannot be written"):
        write_listed(model, tmp_path / "none" / "x.tra")
    with pytest.raises(InterchangeError, match="expected a model with rewards, got one without"):
        write_listed(model, tmp_path / "x.srew")


def test_prism_rewards_of_two_models_that_share_names_are_not_guessed(tmp_path: Path) -> None:
    read_text(tmp_path, CHAIN)
    (tmp_path / "m1.tra").write_text(CHAIN)
    (tmp_path / "m1.srew").write_text(SREW)
    with pytest.raises(InterchangeError, match="give the files of rewards by name"):
        read_prism_files(tmp_path / "m.tra")
    assert len(read_prism_files(tmp_path / "m.tra", srew=[tmp_path / "m1.srew"]).rewards) == 1
    assert len(read_prism_files(tmp_path / "m1.tra").rewards) == 1


def test_prism_names_that_prism_does_not_read_are_refused(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(1), ModelType.DTMC)
    renamed = dataclasses.replace(model, labels={"a b": model.initial})
    with pytest.raises(InterchangeError, match="the label 'a b'"):
        write_listed(renamed, tmp_path / "m.lab")
    assert not list(tmp_path.iterdir())


def test_prism_reading_goes_on_in_the_next_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.models.interchange.text.source.CHUNK", 20)
    monkeypatch.setattr("hybrid.models.interchange.text.writing.ROWS", 3)
    model = random_model(np.random.default_rng(7), ModelType.MDP)
    assert_same(read_prism_files(write_all(model, tmp_path)), model)
    (tmp_path / "bad.tra").write_text(CHAIN.replace("2 2 1", "2 2 x"))
    with pytest.raises(InterchangeError, match=r"bad\.tra:6: "):
        read_prism_files(tmp_path / "bad.tra")
    (tmp_path / "long.tra").write_text(CHAIN.replace("2 2 1", "2 2 1" + 100 * "0"))
    with pytest.raises(InterchangeError, match=r"long\.tra:\d+: lines of at most 60 bytes"):
        read_prism_files(tmp_path / "long.tra")


def test_prism_expected_rewards_are_off_as_their_probabilities_are(tmp_path: Path) -> None:
    head = "2 3 2\n0 0 0 8\n0 0 1 0.1\n"
    decimals = read_text(tmp_path, MDP, trew=head).rewards[0]
    fractions = read_text(tmp_path, MDP.replace("0 0.5", "0 1/3").replace("1 0.5", "1 2/3"), trew=head)
    assert fractions.value_units == 1.0
    assert fractions.rewards[0].units >= decimals.units + 2.0


TABLES = """# Transitions (DTMC)
2 2
0 1 1
1 1 1

# States
(s)
0:(0)
1:(7)

# Labels
0="init" 1="deadlock" 2="end"
0: 0
1: 2

# Reward structure
# State rewards
2 1
0 3

# Reward structure
# Transition rewards
2 0
"""


def test_pexp_reads_all_sections_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    path.write_text(TABLES)
    model = read_pexp(path)
    assert model.valuations["s"].tolist() == [0, 7]
    assert model.labels["end"].tolist() == [False, True] and not model.labels["deadlock"].any()
    (reward,) = model.rewards
    assert reward.name is None and reward.choices is None
    assert reward.states is not None and reward.states.tolist() == [3, 0]
    sections = TABLES.split("\n\n")
    path.write_text("\n\n".join([sections[0], *sections[1:][::-1]]) + "\n")
    assert_same(read_pexp(path), model)


def test_pexp_may_be_a_table_of_transitions_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    path.write_text(TABLES.split("\n\n")[0].split("\n", 1)[1])
    model = read_pexp(path, type=ModelType.DTMC)
    assert model.initial.tolist() == [True, False] and not model.variables and not model.rewards


def test_pexp_tells_lines_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "m.pexp"
    for old, new, line in [
        ("1:(7)", "1:(x)", 9),
        ("1: 2\n", "1: 5\n", 14),
        ("0 3\n", "0 three\n", 19),
        ("2 0\n", "2 1\n", 23),
        ("# Labels", "# States", 11),
        ("# State rewards", "# Some rewards", 17),
        ("# Labels", "# Observations", 11),
    ]:
        assert old in TABLES
        path.write_text(TABLES.replace(old, new))
        with pytest.raises(InterchangeError, match=rf"m\.pexp:{line}: .*expected"):
            read_pexp(path)
    path.write_text(TABLES)
    assert read_pexp(path).places.entry(1).endswith("m.pexp:4")


def test_pexp_written_again_is_that_of_prism(tmp_path: Path) -> None:
    for name in ("tandem3", "coin2"):
        path = foreign(f"{name}.prism.pexp")
        theirs = path.read_text().rstrip("\n").split("\n")
        mine = write_listed(read_pexp(path), tmp_path / "m.pexp").read_text()
        written = mine.rstrip("\n").split("\n")
        # Chains lose the names of their actions.
        assert written == [line.removesuffix(" route") for line in theirs]


def test_pexp_without_variables_has_no_states(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(3), ModelType.MDP)
    bare = dataclasses.replace(model, variables=(), valuations={})
    path = write_listed(bare, tmp_path / "m.pexp")
    assert "# States" not in path.read_text()
    assert_same(read_pexp(path), bare)
