"""Mutations made mechanically change what they say, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.generate import EXPLAINED, draw, explained, mutations_of_file, report, shown
from tests.mutants.mutations import ROOT
from tests.mutants.run import Verdict

SOURCE = """def f(x, y):
    \"\"\"A docstring with 1 + 2.\"\"\"
    if x < y and not y:
        raise ValueError(f"{x + 1}")
    x += 1
    é = min(x * (y + 2), -y)  # é counts two bytes
    return é if y else x.lower
"""


def _made(text: str, folder: Path) -> list[str]:
    (folder / "a.py").write_text(text, encoding="utf-8")
    return [shown(m).removeprefix("a.py: ") for m in mutations_of_file("a.py", folder)]


@pytest.mark.parametrize(
    "expected",
    [
        "if x < y and not y: -> if x <= y and not y:",
        "if x < y and not y: -> if x > y and not y:",
        "if x < y and not y: -> if ((x < y) or (not y)):",
        "if x < y and not y: -> if ((x < y)):",
        "if x < y and not y: -> if x < y and (y):",
        "if x < y and not y: -> if False:",
        "x += 1 -> pass",
        "x += 1 -> x += 2",
        "é = min(x * (y + 2), -y)  # é counts two bytes -> é = max(x * (y + 2), -y)  # é counts two bytes",
        "é = min(x * (y + 2), -y)  # é counts two bytes -> é = min(x / (y + 2), -y)  # é counts two bytes",
        "é = min(x * (y + 2), -y)  # é counts two bytes -> é = min((y + 2), -y)  # é counts two bytes",
        "é = min(x * (y + 2), -y)  # é counts two bytes -> é = min(x * (y - 2), -y)  # é counts two bytes",
        "é = min(x * (y + 2), -y)  # é counts two bytes -> é = min(x * (y + 2), (y))  # é counts two bytes",
        "return é if y else x.lower -> return (x.lower)",
        "return é if y else x.lower -> return é if y else x.upper",
    ],
)
def test_operators_directions_and_terms_are_changed(expected: str, tmp_path: Path) -> None:
    assert expected in _made(SOURCE, tmp_path)


def test_messages_and_docstrings_stay(tmp_path: Path) -> None:
    made = _made(SOURCE, tmp_path)
    assert not [text for text in made if "docstring" in text or "ValueError" in text.partition(" -> ")[0]]
    assert len(set(made)) == len(made)


def test_every_mutation_of_the_sources_applies_and_is_python() -> None:
    files = ["hybrid/checking/certificates/judge.py", "hybrid/analysis/multi/weighted_sum.py"]
    for mutation in draw(files, 40, 1, ()):
        text = (ROOT / mutation.file).read_text(encoding="utf-8")
        assert text.count(mutation.old) == 1
        ast.parse(text.replace(mutation.old, mutation.new))


def test_draws_repeat() -> None:
    files = ["hybrid/checking/certificates/judge.py"]
    assert draw(files, 5, 3, ()) == draw(files, 5, 3, ())
    assert draw(files, 5, 3, ()) != draw(files, 5, 4, ())


def test_survivors_with_a_reason_are_counted_apart() -> None:
    reasons = explained()
    assert all(reasons.values()), f"{EXPLAINED.name}: a line '# reason' stands above what it explains"
    mutations = draw(["hybrid/checking/certificates/judge.py"], 3, 1, ())
    verdicts = [
        Verdict(m.name, m.file, v, 1.0, "", None)
        for m, v in zip(mutations, ("killed", "survived", "killed"), strict=True)
    ]
    figures = report(mutations, verdicts)
    assert figures["killed"] == 2
    assert figures["survived"] == [shown(mutations[1])] or figures["explained"] == 1
