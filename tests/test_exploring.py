"""Which cases run: pairs of parameters, fewer random cases without a seed, more in the nightly profile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.processes import run_python
from tests.durations import DurationRecorder
from tests.exploring import each, multiply_examples, pairs, rounds, shorten_examples
from tests.source_tree import ROOT


def test_loops_draw_a_third_unless_a_seed_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HYBRID_TEST_SEED", raising=False)
    assert [rounds(count) for count in (1, 8, 30)] == [1, 3, 10]
    monkeypatch.setenv("HYBRID_TEST_SEED", "4")
    assert [rounds(count) for count in (1, 8, 30)] == [1, 8, 30]


def test_each_value_is_in_some_case() -> None:
    assert [case.values for case in each("abc", [(1, 2), (3, 4)])] == [("a", 1, 2), ("b", 3, 4), ("c", 1, 2)]
    (case,) = each([pytest.param(len, id="length", marks=pytest.mark.gpu)], [7])
    assert (case.values, case.id, [mark.name for mark in case.marks]) == ((len, 7), "length-7", ["gpu"])


def test_each_value_meets_each_of_every_other_parameter() -> None:
    lists = ["ab", range(3), "xyz", [False, True]]
    found = [case.values for case in pairs(*lists)]
    assert len(set(found)) == len(found) < 2 * 3 * 3 * 2 / 3
    for i, first in enumerate(lists):
        for j, second in enumerate(lists[:i]):
            assert {(case[i], case[j]) for case in found} == {(a, b) for a in first for b in second}
    assert sorted(case.values for case in pairs("ab", "xy")) == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
        ("b", "y"),
    ]


def test_tests_with_settings_of_their_own_draw_more_or_fewer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    @settings(max_examples=7, database=None)
    @given(st.integers(0, 10**9))
    def few(number: int) -> None:
        drawn.append(number)

    def count() -> int:
        drawn.clear()
        few()
        return len(drawn)

    monkeypatch.setenv("HYBRID_TEST_SEED", "4")
    shorten_examples(few)
    assert count() == 7
    monkeypatch.delenv("HYBRID_TEST_SEED")
    shorten_examples(few)
    assert count() == 3
    multiply_examples(few, 5)
    assert count() == 15


def test_durations_are_kept_and_shown_beside_those_before(tmp_path: Path) -> None:
    path, lines = tmp_path / "build" / "durations.json", list[str]()
    reporter = SimpleNamespace(line=lines.append, section=lines.append)
    for seconds in (2.0, 3.0):
        recorder = DurationRecorder(path)
        for name in ("tests/a.py::test_1", "tests/a.py::test_2", "tests/b.py::test_3"):
            for used in (0.25, seconds):
                recorder.pytest_runtest_logreport(SimpleNamespace(nodeid=name, processor_seconds=used))
        recorder.pytest_terminal_summary(reporter, SimpleNamespace())
    kept = json.loads(path.read_text())
    assert (
        kept["files"] == {"tests/a.py": 6.5, "tests/b.py": 3.25}
        and kept["tests"]["tests/b.py::test_3"] == 3.25
    )
    assert "slowest files: 10 processor seconds in all" in lines
    assert "    6.5 s tests/a.py (was 4.5 s)" in lines


@pytest.mark.nightly
def test_what_is_marked_nightly_has_a_seed() -> None:
    assert os.environ.get("HYBRID_TEST_SEED")


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({"CI": "true"}, [], "found 50 False NoneType"),
        ({}, ["--hypothesis-profile=nightly"], "found 1500 False DirectoryBasedExampleDatabase"),
    ],
    ids=["under CI", "nightly"],
)
def test_the_profile_multiplies_examples_and_keeps_the_database(
    variables: dict[str, str], options: list[str], expected: str
) -> None:
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
    found = run_python("-c", code, "--collect-only", "-q", *options, test, env=environment)
    assert found.returncode == 0, found.stdout + found.stderr
    assert expected in found.stdout


def test_tests_without_their_device_are_left_out_unless_it_is_required(tmp_path: Path) -> None:
    case = tmp_path / "test_case.py"
    case.write_text("import pytest\n\n\n@pytest.mark.gpu\ndef test_it(): ...\n", encoding="utf-8")
    command = "-m pytest -q --collect-only -p tests.conftest -c pyproject.toml".split()
    command += ["--rootdir", str(ROOT), str(case)]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    for variables, status in (({}, 5), ({"HYBRID_REQUIRE_GPU": "1"}, 0)):
        found = run_python(*command, env=hidden | variables)
        assert found.returncode == status, found.stdout[-2000:]
