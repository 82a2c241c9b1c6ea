"""The examples of docs/simulation.md run and print what the page says."""

from __future__ import annotations

import doctest
import shlex
from pathlib import Path

import pytest

from hybrid.__main__ import main

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/simulation.md").read_text(encoding="utf-8")


def test_python_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(PAGE.replace("```", ""), {}, "simulation.md", None, 0)
    assert len(test.examples) >= 8
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.failures == 0


def test_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    commands = [line for line in PAGE.splitlines() if line.startswith("hybrid ")]
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("path,step,time,action,w1") and "confidence 0.99" in printed
