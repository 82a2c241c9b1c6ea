"""Help, the manual and completion, all made from the parser."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from hybrid.__main__ import main
from hybrid.cli.arguments import COMMANDS, parse_arguments
from hybrid.cli.completion import completion
from hybrid.cli.manual import manual_markdown, manual_roff
from hybrid.cli.manual_arguments import SHELLS
from tests.source_tree import ROOT


def test_examples_of_the_help_are_command_lines() -> None:
    for name, command in COMMANDS.items():
        for _, example in command.examples:
            if name in ("completion", "man", "help"):
                continue
            words = shlex.split(example)
            assert words[0] == "hybrid"
            parse_arguments(words[1:])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for arguments in ([name, "--help"], ["help", name]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: hybrid {name}")
        assert ("examples:" in out) == bool(COMMANDS[name].examples)


def test_the_page_is_what_the_parser_tells() -> None:
    page = (ROOT / "docs/command_line.md").read_text(encoding="utf-8")
    assert page == manual_markdown(), "run: hybrid man --markdown > docs/command_line.md"


def test_the_manual_is_roff_that_reads() -> None:
    text = manual_roff()
    assert text.startswith(".TH") and ".SH EXIT STATUS" in text and "\\-\\-const" in text
    if shutil.which("groff") is None:
        pytest.skip("no groff to read the manual with")
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww"], input=text, capture_output=True, text=True, check=True
    )
    assert "warning" not in done.stderr and "hybrid check" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_scripts_of_their_shells(shell: str) -> None:
    text = completion(shell)
    assert all(name in text for name in COMMANDS)
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([program, "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_commands_options_and_values() -> None:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("no bash here")
    # The words as bash hands them to the function of the command.
    asked = {
        "hybrid lev": "levels",
        "hybrid check m.pm --meth": "--method",
        "hybrid check m.pm --method opt": "optimistic",
    }
    for line, expected in asked.items():
        words = line.split(" ")
        script = f"""{completion("bash")}
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}
COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}
name=$(complete -p hybrid | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "$name"; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(
            [program],
            input=script,
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
        assert done.stdout.split() == [expected], done.stderr
