"""Statements that bounds rest on name their lemma and have a mutation; every lemma has a statement."""

from __future__ import annotations

import pytest

from tests.mutants.guarded import (
    Statement,
    changed_lines,
    homeless,
    mutations_of,
    problems,
    read_lemmas,
    read_source,
    read_sources,
)
from tests.mutants.mutations import Mutation, read_mutations

TEXT = '''"""A module."""

UNIT = 2.0**-53


def step(x: float, slack: float) -> float:
    """Take a step."""
    # lemma: rounding
    error = x * slack
    if x > slack:
        y = (
            x + error  # lemma: rounding, underflow
        )
    else:
        y = math.nextafter(x, math.inf)
    total = x + y
    # lemma: alone

    return total
'''


def _mutation(old: str, new: str) -> Mutation:
    return Mutation("x-01", "a.py", old, new, "all", "", ())


def test_every_statement_of_the_rooms_of_bounds_is_guarded() -> None:
    """What this tells is to be marked, not to be written into a list: lists may only become shorter."""
    found = problems(read_sources(), read_lemmas(), read_mutations())
    assert not found, "\n".join(found)


def test_every_lemma_is_named_where_it_is_relied_on_and_where_it_is_tested() -> None:
    found = homeless(read_sources(), read_lemmas(), read_mutations())
    assert not found, "\n".join(found)


def test_a_lemma_without_a_home_is_told() -> None:
    found = homeless(read_sources(), {"no-such": "bounds"}, read_mutations())
    assert len(found) == 2 and all("lemma no-such" in text for text in found)


def test_statements_of_bounds_are_found() -> None:
    assert [s.text for s in read_source(TEXT, "hybrid/solvers/a.py").found] == [
        "UNIT = 2.0**-53",
        "error = x * slack",
        "if x > slack:",
        "y = (",
        "y = math.nextafter(x, math.inf)",
    ]


def test_markers_belong_to_statements() -> None:
    markers = read_source(TEXT, "a.py").markers
    assert [(m.lemmas, m.statement and m.statement.text) for m in markers] == [
        (("rounding",), "error = x * slack"),
        (("rounding", "underflow"), "y = ("),
        (("alone",), None),
    ]


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("    error = x * slack\n    if x", "    error = x * 2\n    if x", (9, 9)),
        ("    error = x * slack\n", "", (9, 9)),
        ("    if x > slack:\n        y", "    if x > slack:\n        z", (11, 11)),
        ("    total = x + y\n", "    total = x + y + 1\n", (16, 16)),
    ],
)
def test_mutations_change_the_lines_that_differ(old: str, new: str, lines: tuple[int, int]) -> None:
    assert changed_lines(_mutation(old, new), TEXT) == lines


def test_mutations_of_other_statements_do_not_count() -> None:
    statement = Statement("a.py", 9, 9, "error = x * slack")
    near = _mutation("    if x > slack:", "    if x >= slack:")
    own = _mutation("x * slack", "x")
    assert mutations_of(statement, [near, own], TEXT) == [own]
