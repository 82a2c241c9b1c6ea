"""Messages spell options for their reader; pages and docstrings begin with the thing, in short sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.matrix.space.base import Status
from mtbdd.base.budget import Budget
from mtbdd.base.errors import constants_given, either, on_command_line, option
from tests.sentences import (
    code_texts,
    docstrings,
    is_riddle,
    long_sentences,
    opening_of,
    page_text,
    sentences,
    written_pages,
)
from tests.source_tree import PACKAGES, ROOT, source_files

OPTION = re.compile(r"(?<![-\w%])--[a-z][a-z-]+")
OPEN = "dtmc const int N; const double p; module m s:[0..N]; [] s<N -> p:(s'=s+1) + 1-p:true; endmodule"
RUIN = "dtmc module m s:[0..4] init 2; [] s>0 & s<4 -> 1/2:(s'=s-1) + 1/2:(s'=s+1); endmodule"
STUCK = "dtmc module m s:[0..1]; [] s=0 -> (s'=1); endmodule"


SECTION = re.compile(r"(?:Parameters|Returns|Yields|Raises|Notes|Attributes|References|Examples) ?-{4,}")


@pytest.mark.parametrize("package", PACKAGES)
def test_headers_of_docstrings_stand_on_lines_of_their_own(package: str) -> None:
    found = [str(path) for path in source_files(package) if SECTION.search(path.read_text(encoding="utf-8"))]
    assert not found, found


def spelt_options(source: str) -> list[tuple[int, str]]:
    """Texts with options in them, but for docstrings, the first text of `either`, and records of options."""
    tree, passed = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "either":
            passed |= {id(part) for part in ast.walk(node.args[0])}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "OptionRecord":
            passed |= {id(part) for part in ast.walk(node)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed
        if OPTION.search(node.value)
    ]


def test_no_message_below_the_command_line_spells_an_option() -> None:
    faults, looked_at = [], 0
    for path in (path for package in PACKAGES for path in source_files(package)):
        name = path.relative_to(ROOT)
        if name.as_posix().startswith(("hybrid/app/cli/", "hybrid/__main__.py")):
            continue
        looked_at += 1
        faults += [f"{name}:{line} {text!r}" for line, text in spelt_options(path.read_text("utf-8"))]
    assert looked_at > 300
    assert not faults, "\n".join(faults)


def test_what_the_search_finds() -> None:
    assert spelt_options('x = f"give {n} with --const"') == [(1, " with --const")]
    assert spelt_options('def f():\n    "of --const"\n    return either("--const", "constants")') == []


def test_both_wordings() -> None:
    def said() -> tuple[str, ...]:
        return (
            option("max-iters"),
            option("method", "jacobi", "jor"),
            constants_given(["N", "p"]),
            constants_given(["N"], "1:10"),
            either("there", "here"),
        )

    here = said()
    with on_command_line():
        there = said()
    assert here == (
        "max_iterations",
        "method='jacobi' or 'jor'",
        "constants={'N': VALUE, 'p': VALUE}",
        "constants={'N': '1:10'}",
        "here",
    )
    assert there == (
        "--max-iters", "--method jacobi or jor", "--const N=VALUE,p=VALUE", "--const N=1:10", "there"
    )  # fmt: skip
    assert said() == here


def spent() -> None:
    Budget(1.0, None, -10.0).check()


def too_much() -> None:
    Budget(None, 1, 0.0).check()


@pytest.mark.parametrize(
    ("work", "here", "there"),
    [
        (
            lambda: hybrid.parse(OPEN),
            "give them with constants={'N': VALUE, 'p': VALUE}",
            "give them with --const N=VALUE,p=VALUE",
        ),
        (
            lambda: hybrid.check(hybrid.parse(STUCK), "const int k; P=? [ F<=k s=1 ]"),
            "give it with constants={'k': VALUE}",
            "give it with --const k=VALUE",
        ),
        (
            lambda: hybrid.parse(STUCK, fix_deadlocks=False),
            "build with fix_deadlocks=True",
            "build without --no-fix-deadlocks",
        ),
        (spent, "give more: timeout=2", "give more: --timeout 2"),
        (too_much, "give more: memory=2,", "give more: --memory 2,"),
        (
            lambda: hybrid.check(hybrid.parse(STUCK), "P=? [ F s=1 ]", storage="msr"),
            "choose engine='explicit'",
            "choose --engine explicit",
        ),
        (
            lambda: hybrid.experiment("m.pm", "P=? [ F s=1 ]", {"N": "3:1"}),
            "constants: expected N=FROM:TO",
            "--const: expected N=FROM:TO",
        ),
    ],
)
def test_errors_speak_to_who_asked(work: Callable[[], object], here: str, there: str) -> None:
    with pytest.raises(hybrid.HybridError) as in_library:
        work()
    assert here in str(in_library.value)
    assert not OPTION.search(str(in_library.value))
    with on_command_line(), pytest.raises(hybrid.HybridError) as on_line:
        work()
    assert there in str(on_line.value)


@pytest.mark.parametrize("status", Status)
def test_every_status_has_words_for_both(status: Status) -> None:
    assert not OPTION.search(str(status))
    with on_command_line():
        assert OPTION.search(str(status)) or str(status) == status.value


def test_the_command_line_says_options_and_leaves_none_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.pm").write_text(OPEN)
    assert main(["check", str(tmp_path / "m.pm"), "P=? [ F s=N ]"]) == 2
    assert "give them with --const N=VALUE,p=VALUE" in capsys.readouterr().err
    with pytest.raises(hybrid.LanguageError, match=r"constants=\{'N': VALUE, 'p': VALUE\}"):
        hybrid.load(tmp_path / "m.pm")


def test_answers_that_give_up_say_options_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.pm").write_text(RUIN)
    asked = ["P=? [ F s=4 ]", "--method", "jacobi", "--max-iters", "1", "--backend", "cpu"]
    assert main(["check", str(tmp_path / "m.pm"), *asked]) == 1
    assert "raise --max-iters, choose another --method" in capsys.readouterr().out
    answer = hybrid.check(
        hybrid.parse(RUIN), "P=? [ F s=4 ]", method="jacobi", max_iterations=1, backend="cpu", throw=False
    )
    assert "raise max_iterations, choose another method, or a larger epsilon" in str(answer.error)


# ------------------------------------------------------------------ sentences

SHORT = ("README.md", "SECURITY.md", "docs/index.md")
"""Texts without a sentence of more than 25 words."""

# How many there may be: these numbers only fall. Lower one when fewer are left.
MOST_LONG_ON_PAGES = 249
MOST_LONG_IN_MODULES = 31
MOST_RIDDLES_ON_PAGES = 3
MOST_RIDDLES_IN_CODE = 7
MOST_OPENINGS = {"Module": 0, "ClassDef": 0}
MOST_OPENINGS_IN_CODE = 4


@pytest.mark.parametrize("page", written_pages())
def test_a_page_begins_with_the_thing_itself(page: str) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    first = next(line for line in lines[1:] if line.strip())
    assert opening_of(first) is None, first
    assert not first.startswith(("#", "```", "|", "-")), f"begin with a sentence, not with {first!r}"


@pytest.mark.parametrize("page", SHORT)
def test_sentences_of_the_first_pages_are_short(page: str) -> None:
    assert long_sentences(page_text(page)) == []


def test_long_sentences_of_pages_become_fewer() -> None:
    found = [one for page in written_pages() for one in long_sentences(page_text(page))]
    assert len(found) <= MOST_LONG_ON_PAGES, "make two of the new one; the longest are:\n" + "\n".join(
        sorted(found, key=len)[-5:]
    )


def test_words_that_are_none_of_the_field_become_fewer_on_pages() -> None:
    found = [one for page in written_pages() for one in sentences(page_text(page)) if is_riddle(one)]
    assert len(found) <= MOST_RIDDLES_ON_PAGES, "say it with the field's nouns; the last is:\n" + found[-1]


@pytest.mark.parametrize("kind", MOST_OPENINGS)
def test_docstrings_that_ask_instead_of_naming_the_thing_become_fewer(kind: str) -> None:
    found = [f"{file}: {text.splitlines()[0]}" for file, text in docstrings(kind) if opening_of(text)]
    assert len(found) <= MOST_OPENINGS[kind], "\n".join(found)


def test_docstrings_and_comments_that_ask_become_fewer() -> None:
    """`Whether` names a truth value, and may begin them."""
    found = [
        f"{file}: {text[:80]}" for file, text in code_texts() if opening_of(text) not in (None, "Whether")
    ]
    assert len(found) <= MOST_OPENINGS_IN_CODE, "begin with the thing; the last are:\n" + "\n".join(
        found[-5:]
    )


def test_words_that_are_none_of_the_field_become_fewer_in_code() -> None:
    said = ((file, one) for file, text in code_texts() for one in sentences(text))
    found = [f"{file}: {one}" for file, one in said if is_riddle(one)]
    assert len(found) <= MOST_RIDDLES_IN_CODE, "say it with the field's nouns; the last are:\n" + "\n".join(
        found[-5:]
    )


def test_long_sentences_of_modules_become_fewer() -> None:
    found = [f"{file}: {one}" for file, text in docstrings("Module") for one in long_sentences(text)]
    assert len(found) <= MOST_LONG_IN_MODULES, "\n".join(found[-5:])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two `x.y` three (see [a](b.md)). Four!", 3),
        ("- one\n- two. Three\n\n| four | five `a \\|\\| b` |\n| --- | --- |\n", 5),
        ("About 0.5 of it, e.g. this.", 1),
    ],
)
def test_what_a_sentence_is(text: str, found: int) -> None:
    assert len(list(sentences(text))) == found


def test_what_is_found_in_sentences() -> None:
    words = " ".join(["word"] * 25)
    assert long_sentences(f"A {words}. A{words}.") == [f"A {words}."]
    assert [opening_of(text) for text in ("How it is", "However", "Whether it is")] == [
        "How",
        None,
        "Whether",
    ]
    assert is_riddle("It is told apart") and not is_riddle("It is told.".replace("told", "printed"))
