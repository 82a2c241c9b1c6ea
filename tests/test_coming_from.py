"""The pages for users of other tools name options that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import hybrid
from hybrid.app.cli.arguments import build_parser
from hybrid.app.cli.excerpts import ELSEWHERE, SAME, advice_on
from hybrid.base.errors import HybridError
from hybrid.checking.answer import Answer
from tests.source_tree import ROOT

PAGES = ("from-prism", "from-storm", "shell")


@cache
def options_of(command: str) -> frozenset[str]:
    """The long options that the help of a command names, or that of the program itself."""
    told = ""
    for words in ([command], []):
        call = [sys.executable, "-m", "hybrid", *words, "--help"]
        told += subprocess.run(call, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return frozenset(re.findall(r"(?<![\w-])--[a-z][a-z-]*", told))


def rows(page: str) -> list[list[str]]:
    """The rows of a page's tables, without their heads."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in cells if row[-1] not in ("here", "", "---")]


@pytest.mark.parametrize("page", PAGES)
def test_options_that_are_named_exist(page: str) -> None:
    found = 0
    for row in rows(page):
        # An option is that of the command before it, else of the first that the row names, else of check.
        commands = re.findall(r"`hybrid ([a-z][a-z-]*)", row[-1])
        command = (*commands, "check")[0]
        for named, option in re.findall(r"`hybrid ([a-z][a-z-]*)|(?<![\w-])(--[a-z][a-z-]*)", row[-1]):
            command = named or command
            if option:
                assert option in options_of(command), f"{page}: {row[0]}: hybrid {command} has no {option}"
                found += 1
    assert found > 10


def test_spellings_that_are_called_the_same_are_read() -> None:
    spelt = {name for names in SAME for name in names.split(", ")}
    called = {
        option
        for row in rows("from-prism")
        if row[-1].startswith("the same")
        for option in re.findall(r"`(-[a-z]+)", row[0])
    }
    assert called <= spelt
    assert len(called) > 15


@pytest.mark.parametrize("page", ["from-prism", "from-storm"])
def test_f18_every_option_of_the_left_column_is_read_or_told_what_to_do(page: str) -> None:
    parser = next(a for a in build_parser()._actions if isinstance(a.choices, dict)).choices["check"]
    left = {option for row in rows(page) for option in re.findall(r"`(--?[a-z][\w:+-]*)", row[0])}
    assert len(left) > 40
    assert not [o for o in left if o not in parser._option_string_actions and not advice_on(o)]


def test_f18_advice_names_options_that_exist() -> None:
    names = [name for told in ELSEWHERE for name in told.split(", ")]
    assert len(set(names)) == len(names)
    for advice in ELSEWHERE.values():
        commands = re.findall(r"hybrid ([a-z]+)", advice) or ["check"]
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", advice):
            assert option in options_of(commands[0]), advice


@pytest.mark.parametrize("page", PAGES)
def test_every_row_has_an_answer(page: str) -> None:
    assert len(rows(page)) > 25
    widths = {len(row) for row in rows(page)}
    assert widths <= ({4} if page == "shell" else {1, 2})
    assert all(all(row) for row in rows(page))
    for row in rows(page):
        # What is missing has its reason beside it.
        assert not re.match(r"not (?:there|needed|an option)(?!:)", row[-1]), f"{page}: {row[0]}: say why"


PROPERTY = re.compile(r'(?:[PRTS](?:min|max)?|LRA(?:min|max)?|multi|quantile|filter|"name")\W|<<')


def properties_in(cell: str) -> list[str]:
    """The properties that a cell spells."""
    spans = [span.replace(r"\|", "|") for span in re.findall(r"`([^`]+)`", cell)]
    return [span for span in spans if PROPERTY.match(span)]


MODEL = """{kind}
const double p = 0.25;
module m
  s : [0..4] init 0;
  [] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [] s=1 -> 0.5 : (s'=0) + 0.5 : (s'=3);
  [] s=2 -> 0.9 : (s'=3) + 0.1 : (s'=4);
  {more}
  [] s>2 -> 0.7 : (s'=s) + 0.3 : (s'=7-s);
endmodule
label "goal" = s=3; label "safe" = s!=1; label "up" = s<4; label "a" = s=1; label "b" = s=3;
rewards "cost" s<3 : 2; {earned} endrewards
rewards "risk" s=2 : 1; endrewards"""
MODELS = {
    "dtmc": hybrid.parse(MODEL.format(kind="dtmc", more="", earned="s=4 : 1;")),
    "mdp": hybrid.parse(MODEL.format(kind="mdp", more="[] s=0 -> (s'=2);", earned="")),
}
HOA = """HOA: v1 States: 2 Start: 0 AP: 1 "p0" acc-name: Buchi Acceptance: 1 Inf(0)
--BODY-- State: 0 [0] 1 [!0] 0 State: 1 {0} [t] 1 --END--"""


def asked(text: str) -> Answer:
    """What is answered to a property of a page, of an MDP where it speaks of one."""
    model = MODELS[
        "mdp" if re.search("(?<![a-z])(?:[PRTS]|LRA)(?:min|max)|}(?:min|max)=|^multi", text) else "dtmc"
    ]
    declared = "const int N; " if re.search(r"\bN\b", text) else ""
    return hybrid.check(model, declared + text, {"N": 5} if declared else None, backend="cpu", throw=False)


def fault_of(text: str) -> str | None:
    """What is told of a property that is asked of a model, None if it is answered."""
    try:
        return asked(text).error
    except HybridError as error:
        return str(error)


def test_properties_of_storm_are_answered_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.hoa").write_text(HOA, encoding="utf-8")
    text = (ROOT / "docs/from-storm.md").read_text(encoding="utf-8")
    section = text[text.index("## Properties") : text.index("## Options")]
    same = others = missing = 0
    for row in rows("from-storm"):
        if row[0] not in section or len(row) < 2 or not row[-1]:
            continue
        left, right = map(properties_in, row)
        if row[-1].startswith("not there"):
            assert left and all(map(fault_of, left)), f"{row[0]} is answered"
            missing += 1
            continue
        read = right if not row[-1].startswith("the same") else left + right
        assert read, row
        for text in read:
            assert fault_of(text) is None, f"{text}: {fault_of(text)}"
        if right and row[-1].startswith("the same"):
            # One question spelt in two ways has one answer.
            assert len({asked(text).value for text in read}) == 1, row
        if row[-1].startswith("the same"):
            same += 1
        elif not row[0].startswith("`filter"):
            # What is spelt otherwise here would not be read as it stands.
            assert all(map(fault_of, left)), f"{row[0]} is read as it is"
            others += 1
    assert same > 20 and others == 1 and missing == 1
