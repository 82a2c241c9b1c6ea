"""The code blocks of README and pages: what each is, and how it is run.

The word behind the fence is the language; brackets behind it hold a note: ``(not run: why)``, or
``(file NAME)``, which writes the block to a file for those after it, and compares text with a file that those
before it wrote.
The blocks of a page run one after another in one folder, its Python in one namespace.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.__main__ import main
from hybrid.properties import parse_properties
from mtbdd.language import parse_model
from tests.source_tree import ROOT

_INFO = re.compile(r"(?P<language>[a-z]+)(?: \((?:not run: (?P<reason>[^()]+)|file (?P<file>[\w.]+))\))?")
_NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?(?: (?:[kMG]?B|[mµ]?s)\b)?")
# Lines that say on what machine a command ran.
_MACHINE = ("backend", "built in")


@dataclass(frozen=True)
class Block:
    """A block of a page."""

    page: str
    line: int
    info: str
    text: str
    follows: bool  # whether the block before it stands on the same page, with at most a line of prose between

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def parts(self) -> re.Match[str]:
        found = _INFO.fullmatch(self.info)
        assert found, f"{self.place}: write ```language or ```language (not run: why), not ```{self.info}"
        return found

    @property
    def language(self) -> str:
        return self.parts()["language"]

    @property
    def reason(self) -> str | None:
        return self.parts()["reason"]


def pages() -> list[str]:
    """README and what people read beside it."""
    names = [*ROOT.glob("docs/**/*.md"), *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING"))]
    names += [ROOT / "examples/README.md", ROOT / "benchmarks/README.md"]
    return sorted(str(path.relative_to(ROOT)) for path in names if "generated" not in path.parts)


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, directives of the site left out."""
    found: list[Block] = []
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    begin, last = None, -9
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("```"):
            continue
        if begin is None:
            begin = number
            continue
        info = lines[begin - 1].strip().removeprefix("```")
        if not info.startswith("{"):
            text = "\n".join(lines[begin : number - 1]) + "\n"
            found.append(Block(page, begin, info, text, begin - last <= 4))
            last = number
        begin = None
    assert begin is None, f"{page}:{begin} is not closed"
    return found


def glossary() -> list[str]:
    """The words that the glossary defines, in its order."""
    lines = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| word |", "| --- |"))]
    return [word.strip() for row in rows for word in row.split("|")[1].split(",")]


class Session:
    """What the blocks of one page leave behind: names of Python, and what was printed last."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.printed: str | None = None
        self.exactly = False  # whether what was printed is the same in every run

    def run(self, block: Block) -> None:
        """Run a block, or compare it with what the one before it printed."""
        if block.reason is not None:
            self.printed = None
            return
        file = block.parts()["file"]
        if file and block.language == "text":
            assert Path(file).read_text(encoding="utf-8") == block.text, block.place
        elif file:
            Path(file).write_text(block.text, encoding="utf-8")
        if block.language != "text":
            getattr(self, f"_{block.language}")(block)
        elif not file and self.printed is not None and block.follows:
            assert_shown(block, self.printed, self.exactly)

    def _python(self, block: Block) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.text, block.place, "exec"), self.names)
        self.printed, self.exactly = out.getvalue(), True

    def _pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest(
            block.text, self.names, Path(block.page).name, block.page, block.line
        )
        told: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        result = runner.run(test, out=told.append, clear_globs=False)
        assert not result.failed, "".join(told)
        assert result.attempted, block.place
        # A doctest works on a copy of the names.
        self.names, self.printed = test.globs, None

    def _bash(self, block: Block) -> None:
        out = io.StringIO()
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            program = words[0].removeprefix(".venv/bin/")
            if program == "python":
                subprocess.run(line.replace("python", sys.executable, 1), shell=True, check=True, timeout=60)
                continue
            assert program == "hybrid", f"{block.place}: say why '{line}' is not run: ```bash (not run: why)"
            errors = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                status = main(words[1:])
            assert status == 0, f"{block.place}: {line}\n{errors.getvalue()}"
        self.printed, self.exactly = out.getvalue(), False

    def _ebnf(self, block: Block) -> None:
        self.printed = None  # tests/test_grammar.py holds the rules against the parsers

    def _prism(self, block: Block) -> None:
        if re.search(r"\bmodule\b", block.text):
            parse_model(block.text, block.place)
        else:
            parse_properties(block.text, block.place)
        self.printed = None


def masked(line: str) -> str:
    """A line without its numbers and what stands around it."""
    return " ".join(_NUMBER.sub("#", line).split())


def assert_shown(block: Block, printed: str, exactly: bool) -> None:
    """Find every line of a block among those that were printed, numbers aside unless they never change."""
    if exactly:
        assert block.text == printed, block.place
        return
    there = {masked(line) for line in printed.splitlines()}
    for line in block.text.splitlines():
        if line.strip() and not line.strip().startswith((*_MACHINE, "...")):
            assert masked(line) in there, f"{block.place}: not printed any more: {line}\n{printed}"
