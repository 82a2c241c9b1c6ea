"""The list of mutations follows the sources: a pattern that no longer applies is told, not passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutations import ROOT, Mutation, read_mutations
from tests.mutants.run import Verdict, dependents, selections, summarise

MUTATIONS = read_mutations()


def test_every_mutation_applies_to_the_sources() -> None:
    problems = [p for m in MUTATIONS if (p := m.problem()) is not None]
    assert not problems, "\n".join(problems)


def test_there_are_enough_mutations_over_all_parts() -> None:
    assert len(MUTATIONS) >= 80
    parts = {
        "mtbdd/offset/offset.py",
        "hybrid/matrix/levels/",
        "hybrid/matrix/injection/",
        "hybrid/matrix/cpu/",
        "hybrid/analysis/exact/",
        "gpu_kernels/cuda/",
    }
    for part in parts:
        assert any(m.file.startswith(part) for m in MUTATIONS), part


def test_no_mutation_stands_in_the_list_twice() -> None:
    keys = [(m.file, m.old, m.new) for m in MUTATIONS]
    assert len(set(keys)) == len(keys)


def test_sources_without_a_mutation_pattern_are_told(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text("a = 1\nb = 1\n")
    mutation = Mutation("x-01", "source.py", "a = 1", "a = 2", "all", "a is one", ())
    assert mutation.problem(tmp_path) is None
    mutation.apply(tmp_path)
    assert (tmp_path / "source.py").read_text() == "a = 2\nb = 1\n"
    assert "stands 0 times" in str(mutation.problem(tmp_path))
    twice = Mutation("x-02", "source.py", " = ", " == ", "all", "", ())
    assert "stands 2 times" in str(twice.problem(tmp_path))
    assert "no file" in str(Mutation("x-03", "gone.py", "a", "b", "all", "", ()).problem(tmp_path))
    lost = Mutation("x-04", "source.py", "b = 1", "b = 2", "all", "", ("tests/test_gone.py::test_it",))
    assert "no test" in str(lost.problem(tmp_path))
    (tmp_path / "test_a.py").write_text("@pytest.mark.nightly\n@others\ndef test_b():\n    pass\n")
    for name, told in (("test_b", "is nightly"), ("test_c", "no test")):
        lost = Mutation("x-05", "source.py", "b = 1", "b = 2", "all", "", (f"test_a.py::{name}",))
        assert told in str(lost.problem(tmp_path))


def test_figures_count_what_no_test_can_notice_apart() -> None:
    verdicts = [
        Verdict("a", "f", "killed", 1.0, "", None),
        Verdict("b", "f", "survived", 1.0, "", None),
        Verdict("c", "f", "survived", 1.0, "", "the same"),
        Verdict("d", "f", "error", 1.0, "", None),
    ]
    figures = summarise(verdicts, 4.0)
    assert figures["mutants"] == 4
    assert figures["survived"] == ["b"]
    assert figures["explained"] == ["c"]
    assert figures["errors"] == ["d"]
    assert figures["share"] == pytest.approx(1 / 3, abs=1e-4)


def test_selections_with_options_run_by_themselves() -> None:
    assert selections(("tests/a.py", "tests/b.py -k 'x or y'", "tests/c.py::d")) == [
        ["tests/a.py", "tests/c.py::d"],
        ["tests/b.py", "-k", "x or y"],
    ]


def test_the_root_is_that_of_the_sources() -> None:
    assert (ROOT / "hybrid" / "__init__.py").exists()


def test_compiled_functions_that_call_into_a_mutated_file_are_compiled_anew() -> None:
    found = dependents(ROOT, "hybrid/matrix/cpu/vector_code.py")
    assert {"hybrid/matrix/cpu/kernels.py", "hybrid/matrix/cpu/sweep.py"} <= found
    assert "hybrid/matrix/cpu/graph_kernels.py" not in found
    assert dependents(ROOT, "mtbdd/offset/offset.py") == set()
