"""The nightly profile: more examples of every test, whatever its settings, and another seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exploring import half, halve_examples, multiply_examples, rounds, some_of, taken_in_turn
from tests.source_tree import ROOT


def test_loops_draw_a_share_unless_a_seed_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRID_TEST_SEED", raising=False)
    assert [rounds(count) for count in (1, 8, 30)] == [1, 3, 10]
    assert [half(count) for count in (1, 7, 30)] == [1, 4, 15]
    monkeypatch.setenv("HYBRID_TEST_SEED", "4")
    assert [rounds(count) for count in (1, 8, 30)] == [half(count) for count in (1, 8, 30)] == [1, 8, 30]


def test_values_are_taken_in_turn_unless_a_seed_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRID_TEST_SEED", raising=False)
    taken = [taken_in_turn("abcde", turn) for turn in range(5)]
    assert taken[0] == ["a", "c"] and sorted(sum(taken, [])) == list("aabbccddee")
    assert (taken_in_turn("ab", 1, 1), taken_in_turn("ab", 1)) == (["b"], ["b", "a"])
    assert (some_of("abcde", 2), some_of("abcde", 3, 1)) == (["a", "c", "e"], ["b", "e"])
    monkeypatch.setenv("HYBRID_TEST_SEED", "4")
    assert taken_in_turn("abcde", 3) == some_of("abcde", 3) == list("abcde")


def test_tests_with_settings_of_their_own_draw_more_too() -> None:
    drawn: list[int] = []

    @settings(max_examples=7, database=None)
    @given(st.integers(0, 10**9))
    def few(number: int) -> None:
        drawn.append(number)

    few()
    once = len(drawn)
    multiply_examples(few, 5)
    few()
    assert once == 7
    assert len(drawn) - once == 35


def test_tests_with_settings_of_their_own_draw_half_unless_a_seed_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    @settings(max_examples=7, database=None)
    @given(st.integers(0, 10**9))
    def few(number: int) -> None:
        drawn.append(number)

    monkeypatch.setenv("HYBRID_TEST_SEED", "4")
    halve_examples(few)
    few()
    assert len(drawn) == 7
    monkeypatch.delenv("HYBRID_TEST_SEED")
    halve_examples(few)
    few()
    assert len(drawn) == 7 + 4


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("number", "name"), [(0, "a"), (1, "b"), (2, "c")])
@pytest.mark.parametrize("flag", [False, True])
def test_a_product_has_its_diagonal_unless_a_seed_is_asked_for(number: int, name: str, flag: bool) -> None:
    assert number % 2 == flag or os.environ.get("HYBRID_TEST_SEED")


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}], ids=["at a desk", "under CI"])
def test_the_profile_multiplies_examples_and_keeps_the_database(variables: dict[str, str]) -> None:
    """A process of its own collects one test, and tells the settings that it would run with."""
    code = (
        "import pytest, sys\n"
        "class Tell:\n"
        "    def pytest_collection_finish(self, session):\n"
        "        (item, *_) = session.items\n"
        "        own = item.function._hypothesis_internal_use_settings\n"
        "        print('found', own.max_examples, own.derandomize, type(own.database).__name__)\n"
        "sys.exit(pytest.main(sys.argv[1:], plugins=[Tell()]))\n"
    )
    test = "tests/mtbdd/language/test_fuzz.py::test_fuzz_unicode"
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "HYBRID_TEST_SEED")} | variables
    for options, expected in (
        ([], "found 75 False NoneType"),
        (["--hypothesis-profile=nightly"], "found 1500 False DirectoryBasedExampleDatabase"),
    ):
        found = subprocess.run(
            [sys.executable, "-c", code, "--collect-only", "-q", *options, test], env=environment,
            cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout + found.stderr
        assert expected in found.stdout
