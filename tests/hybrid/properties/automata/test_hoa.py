"""Automata as text: written and read again, and texts of other tools, good and bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hybrid.base.errors import InterchangeError
from hybrid.base.graph_drawing import GraphArrow
from hybrid.properties.automata.automaton import cubes
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import automaton_picture, hoa_text, parse_hoa, read_hoa
from mtbdd.language.errors import LanguageError
from tests.logic.languages import first_difference
from tests.oracles.lasso_words import random_tree, tree_text


def test_what_is_written_is_read_again(rng: np.random.Generator) -> None:
    for _ in range(150):
        automaton = automaton_of(tree_text(random_tree(rng, int(rng.integers(2, 14)), 3)))
        assert not automaton.marks.max() >> automaton.n_marks
        again = parse_hoa(hoa_text(automaton))
        assert again.propositions == automaton.propositions
        assert (again.initial, again.name) == (automaton.initial, automaton.name)
        np.testing.assert_array_equal(again.successors, automaton.successors)
        np.testing.assert_array_equal(again.marks, automaton.marks)
        assert str(again.acceptance) == str(automaton.acceptance)


def test_marks_that_the_condition_has_lost_are_taken_off() -> None:
    """Two of its marks are equal, which makes the condition simpler and a third mark superfluous."""
    automaton = automaton_of("G ((b R c) U (F b))")
    assert not automaton.marks.max() >> automaton.n_marks
    assert parse_hoa(hoa_text(automaton)).n_states == automaton.n_states


def test_guards_cover_their_letters_and_no_others(rng: np.random.Generator) -> None:
    for k in (0, 1, 3, 5):
        for _ in range(30):
            letters = {x for x in range(1 << k) if rng.random() < 0.6}
            found = cubes(letters, k)
            assert {x for x in range(1 << k) if any(x & p == p and not x & n for p, n in found)} == letters


def test_guards_are_short() -> None:
    assert cubes([0, 1, 2, 3], 2) == [(0, 0)]
    assert sorted(cubes([1, 2, 3], 2)) == [(1, 0), (2, 0)]


def test_f5_comments_of_hoa_may_hold_any_bytes(tmp_path: Path) -> None:
    path, text = tmp_path / "a.hoa", hoa_text(automaton_of("F a")).encode()
    path.write_bytes(b"/* caf\xe9 */" + text)
    assert read_hoa(path).propositions == ("a",)
    path.write_bytes(text.replace(b'"a"', b'"caf\xe9"'))
    line = 1 + text[: text.index(b'"a"')].count(b"\n")
    with pytest.raises(InterchangeError, match=rf"a\.hoa:{line}:\d+: .* got the byte 0xe9"):
        read_hoa(path)


UNTIL = """HOA: v1
tool: "some tool" "1.0"
States: 3
Start: 1
acc-name: Rabin 1
Acceptance: 2 (Fin(0) & Inf(1))
AP: 2 "a" "b"
Alias: @b 1
Alias: @only 0 & !@b
properties: deterministic /* but /* not */ complete */
x-other: 5 "text" word
--BODY--
State: 1 "waiting"
[@b] 0
[@only] 1 {0}
State: [t] 0 {1}
0
State: 2
--END--
"""


def test_a_text_with_aliases_labels_on_states_and_nothing_complete() -> None:
    """`a U b`: waiting in state 1, done in state 0; words that stop go to a state more."""
    automaton = parse_hoa(UNTIL)
    assert (automaton.n_states, automaton.initial, automaton.propositions) == (4, 1, ("a", "b"))
    assert automaton.accepts([1, 1, 2], [0])
    assert automaton.accepts([2], [0])
    assert not automaton.accepts([], [1])
    assert not automaton.accepts([0], [2])
    assert not automaton.accepts([1, 0], [3])


def test_implicit_labels_count_the_first_proposition_fastest() -> None:
    """`F (a & !b)` with acceptance on states."""
    text = """HOA: v1 Start: 0 AP: 2 "a" "b" Acceptance: 1 Inf(0)
    --BODY-- State: 0 0 1 0 0 State: 1 {0} 1 1 1 1 --END--"""
    automaton = parse_hoa(text)
    assert automaton.accepts([1], [0])
    assert not automaton.accepts([2, 3], [0])


def test_complements_of_marks() -> None:
    """`Fin(!0)`: from some time on every step has the mark; `Inf(!0)`: again and again one has not."""
    text = 'HOA: v1 Start: 0 AP: 1 "a" Acceptance: 1 {} --BODY-- State: 0 [0] 0 {{0}} [!0] 0 --END--'
    always = parse_hoa(text.format("Fin(!0)"))
    assert always.accepts([0], [1]) and not always.accepts([0], [1, 0])
    again = parse_hoa(text.format("Inf(!0) | Fin(!0) & f"))
    assert not again.accepts([0], [1]) and again.accepts([0], [1, 0])


def test_an_accepting_everything_text_rejects_words_on_which_it_stops() -> None:
    automaton = parse_hoa('HOA: v1 Start: 0 AP: 1 "a" Acceptance: 0 t --BODY-- State: 0 [0] 0 --END--')
    assert automaton.accepts([], [1]) and not automaton.accepts([1, 0], [1])


HEAD = 'HOA: v1 States: 2 Start: 0 AP: 1 "a" Acceptance: 1 Inf(0) '
BAD = [
    ("", "1:1: expected 'HOA: v1'"),
    ("never { }", "1:1: expected 'HOA: v1' at the beginning, got 'never'"),
    ("HOA: v2", "1:6: expected version 'v1' or 'v1.1' of the format, got 'v2'"),
    ("HOA: v1.2", "expected a word of the HOA format, got '.'"),
    ("HOA: v1 acc-name: !all", "got '!'"),
    ("HOA: v1 --BODY-- --END--", "expected a header 'Acceptance:'"),
    ("HOA: v1 Acceptance: 0 t --BODY-- --END--", "expected a header 'Start:'"),
    ("HOA: v1 Start: 0 Start: 1", "another 'Start:': nondeterministic automata are not read"),
    ("HOA: v1 Start: 0 & 1", "alternating automata are not read"),
    ("HOA: v1 States: 2 States: 3", "the header 'States:' once"),
    ("HOA: v1 Weights: 2", "expected a header of version 1, got 'Weights:'"),
    ("HOA: v1 AP: 13", "at most 12 propositions, got 13"),
    ("HOA: v1 AP: 99999999999999", "expected the number of propositions, a number"),
    ('HOA: v1 AP: 2 "a" "a"', "different names"),
    ('HOA: v1 AP: 2 "a" Start: 0', "expected a proposition in double quotes, got 'Start:'"),
    ("HOA: v1 Acceptance: 61 t", "at most 60 marks, got 61"),
    ("HOA: v1 Acceptance: 1 Inf(1)", "expected a mark below 1, got 1"),
    ("HOA: v1 Acceptance: 1 Inf(0", "expected ')', got the end"),
    ("HOA: v1 Acceptance: 1 inf(0)", "expected an acceptance condition"),
    ("HOA: v1 Acceptance: 1 " + "(" * 100_000, "nested less deeply"),
    ("HOA: v1 Alias: @x 0", "expected the header 'AP:' before a label"),
    ('HOA: v1 AP: 1 "a" Alias: @x @y', "an alias that is defined above"),
    ('HOA: v1 AP: 1 "a" Alias: @x 0 Alias: @x 0', "a second definition of '@x'"),
    ("HOA: v1 /* never closed", "to close the comment"),
    ('HOA: v1 name: "open', "expected a word of the HOA format"),
    ("HOA: v1 States: 1 Start: 4 Acceptance: 0 t --BODY--", "an initial state below 1, got 4"),
    (
        HEAD + "--BODY-- State: 0 [t] 0 [0] 1",
        "two transitions of state 0 for one valuation: nondeterministic",
    ),
    (HEAD + "--BODY-- State: 0 [t] 0&1", "alternating automata are not read"),
    (HEAD + "--BODY-- State: 0 0", "expected 2 transitions without labels, got 1"),
    (HEAD + "--BODY-- State: 0 0 0 0", "expected 2 transitions without labels or a label on each, got more"),
    (HEAD + "--BODY-- State: 0 0 [0] 0", "got a mixture"),
    (HEAD + "--BODY-- State: [0] 0 [0] 0", "got a mixture"),
    (HEAD + "--BODY-- State: 0 [0] 0 0", "label on each"),
    (HEAD + "--BODY-- State: 0 [1] 0", "t, f, '!' or '(' below 1, got 1"),
    (HEAD + "--BODY-- State: 0 [0] 2", "expected the next state below 2, got 2"),
    (HEAD + "--BODY-- State: 2", "expected a state below 2, got 2"),
    (HEAD + "--BODY-- State: 0 {1}", "expected a mark below 1, got 1"),
    (HEAD + "--BODY-- State: 0 State: 0", "a second 'State: 0'"),
    (HEAD + "--BODY-- State: 0 [t] 0 --END--", "expected a line 'State: 1'"),
    (HEAD + "--BODY-- State: 0 [t] 0", "expected 'State:' or '--END--', got the end of the text"),
    (HEAD + "--BODY-- State: 0 --ABORT--", "its writer gave up"),
    (HEAD + "--BODY-- State: 0 State: 1 --END-- HOA: v1", "expected one automaton, got 'HOA:' after its end"),
    ("HOA: v1 Start: 0 Acceptance: 0 t --BODY-- State: 5 5 --END--", "expected a line 'State: 0'"),
    ("HOA: v1 Start: 0 Acceptance: 0 t --BODY-- State: 0 0 State: 5 5 --END--", "without gaps"),
    ("HOA: v1 Start: 0 Acceptance: 0 t --BODY-- State: 0 [" + "!" * 100_000, "nested less deeply"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_texts_are_told(text: str, message: str) -> None:
    with pytest.raises(InterchangeError) as error:
        parse_hoa(text, "bad.hoa")
    assert message in str(error.value)
    assert str(error.value).startswith("bad.hoa:")


def test_texts_cut_anywhere_are_told(rng: np.random.Generator) -> None:
    whole = UNTIL.rstrip()
    for end in range(len(whole) - 1):
        with pytest.raises(InterchangeError):
            parse_hoa(whole[:end])


def test_texts_with_other_characters_are_read_or_told(rng: np.random.Generator) -> None:
    for _ in range(300):
        place = int(rng.integers(len(UNTIL)))
        text = UNTIL[:place] + chr(int(rng.integers(32, 127))) + UNTIL[place + 1 :]
        try:
            parse_hoa(text)
        except InterchangeError:
            pass


FORMS = [("parity max odd", "complete"), ("parity min even", "colored"), ("parity", "sbacc"), ("generic",)]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_spot_writes_is_read(form: tuple[str, ...], rng: np.random.Generator) -> None:
    """Labels on states, transitions or implicit, marks on either, incomplete, both versions of the format."""
    spot = pytest.importorskip("spot", reason="the package spottl is not installed")
    for _ in range(25):
        tree = random_tree(rng, int(rng.integers(2, 9)), 3)
        # Its generic automata of <=> may be wrong.
        text = tree_text(tree).replace("<=>", "<->").replace("=>", "->")
        found = spot.translate(text, "deterministic", *form) if "<->" not in text else None
        if found is None or not spot.is_deterministic(found):
            continue
        for how in ("", "k", "s", "m", "v", "t", "1.1", *(["i"] if spot.is_complete(found) else [])):
            assert first_difference(tree, parse_hoa(found.to_str("hoa", how)), rng, 4) is None


def test_the_later_version_tells_what_does_not_hold() -> None:
    text = (
        'HOA: v1.1 Start: 0 AP: 1 "a" Acceptance: 1 Inf(0) properties: !complete deterministic '
        "--BODY-- State: 0 [0] 0 {0} --END--"
    )
    assert parse_hoa(text).accepts([], [1]) and not parse_hoa(text).accepts([], [0])


def test_files_are_read_as_texts(tmp_path: Path) -> None:
    (tmp_path / "until.hoa").write_text(UNTIL, encoding="utf-8")
    assert read_hoa(tmp_path / "until.hoa").n_states == 4
    with pytest.raises(LanguageError, match="expected a HOA file, but there is no such file"):
        read_hoa(tmp_path / "none.hoa")


def test_drawings_have_every_arrow() -> None:
    picture = automaton_picture(automaton_of("a U b"))
    assert [node.double for node in picture.nodes] == [True, False, False]
    assert len(picture.arrows) == 5
    assert GraphArrow(0, 0, "a&!b") in picture.arrows
