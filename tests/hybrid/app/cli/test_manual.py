"""Help, the manual and completion, all made from the parser."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from gpu_kernels import FORMATS
from hybrid.__main__ import main
from hybrid.app.cli.arguments import COMMANDS, FIRST_STEPS, SHELLS
from hybrid.app.cli.manual import completion, manual_markdown, manual_roff
from hybrid.base.check_options import STORAGES
from mtbdd.language.limit_defaults import DEFAULT_LIMITS
from mtbdd.language.limits import Limits
from tests.source_tree import ROOT

EXAMPLES = [
    (name, [shlex.split(line) for _, line in command.examples])
    for name, command in COMMANDS.items()
    if command.examples and name not in ("completion", "man", "help")
]


@pytest.mark.parametrize(("name", "lines"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_of_the_help_work(
    name: str,
    lines: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name in ("explore", "plot-matrix"):
        pytest.importorskip("matplotlib")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in lines:
        assert words[0] == "hybrid"
        assert main([*words[1:], "--quiet"]) == 0, capsys.readouterr()


def test_the_first_steps_of_the_overview_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for _, line in FIRST_STEPS:
        assert f"\n  {line}\n" in out
        assert main([*shlex.split(line)[1:], "--quiet"]) == 0, capsys.readouterr()
    assert (tmp_path / "jobs.csv").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for arguments in ([name, "--help"], ["help", name]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: hybrid {name}")
        assert ("examples:" in out) == bool(COMMANDS[name].examples)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_help_names_every_limit_and_storage_and_no_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    words = {word.strip(",") for word in capsys.readouterr().out.split()}
    assert {f"{field.name}={field.default}" for field in fields(Limits)} <= words
    assert {"csr", "auto", *FORMATS} <= words
    # A wheel has no docs.
    assert not any(".md" in word for word in words) and ".md" not in manual_roff()


def test_limits_and_formats_are_what_help_names() -> None:
    assert {field.name: field.default for field in fields(Limits)} == DEFAULT_LIMITS
    assert ("auto", *FORMATS) == STORAGES
    page = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    for name, value in DEFAULT_LIMITS.items():
        assert f"| `{name}` | {value:,} |" in page


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


ASKED: dict[str, str | list[str]] = {
    "hybrid lev": "levels",
    "hybrid check m.pm --meth": "--method",
    "hybrid check m.pm --method opt": "optimistic",
    "hybrid help gr": "graph",
    "hybrid simulate m.pm --li": ["--limit", "--list"],
    "hybrid simulate m.pm --con": ["--confidence", "--const"],
}
"""Lines, and what their last word may become."""


def shell_or_skip(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} here")
    return program


def asked_of(program: str, script: str, **environment: str) -> str:
    """What a shell prints for a script."""
    done = subprocess.run(
        [program, "--no-config"] if program.endswith("fish") else [program],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], "TERM": "vt100", **environment},
    )
    return done.stdout


@pytest.mark.parametrize("line", ASKED)
def test_bash_completes_commands_options_and_values(line: str) -> None:
    # The words as bash hands them to the function of the command.
    words = line.split(" ")
    script = f"""{completion("bash")}
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}
COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}
name=$(complete -p hybrid | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "$name"; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    assert sorted(asked_of(shell_or_skip("bash"), script).split()) == expected_of(line)


@pytest.mark.parametrize("line", ASKED)
def test_fish_completes_commands_options_and_values(line: str, tmp_path: Path) -> None:
    script = f"{completion('fish')}\ncomplete -C {shlex.quote(line)}\n"
    out = asked_of(shell_or_skip("fish"), script, HOME=str(tmp_path))
    assert sorted(entry.split("\t")[0] for entry in out.splitlines()) == expected_of(line)


def test_zsh_completes_commands_options_and_values(tmp_path: Path) -> None:
    program = shell_or_skip("zsh")
    (tmp_path / "hybrid.zsh").write_text(completion("zsh"))
    lines = [line for line in ASKED if len(expected_of(line)) == 1]
    # A terminal in which Tab completes, Ctrl-T notes the line, and Ctrl-U takes it away, once the editor of
    # lines has begun: what is typed before that is the terminal's, where Ctrl-U means something else.
    typed = "\n".join(f"zpty -w -n t {shlex.quote(line)}$'\\t\\x14\\x15'" for line in lines)
    asked_of(
        program,
        f"""zmodload zsh/zpty || exit 0
cd {shlex.quote(str(tmp_path))}
zpty t {shlex.quote(program)} -f -i
zpty -w t 'autoload -Uz compinit; compinit -u -D; source ./hybrid.zsh'
zpty -w t 'note() {{ print -r -- "$BUFFER" >> noted }}; zle -N note; bindkey "^T" note'
zpty -w t 'zle-line-init() {{ : > begun }}; zle -N zle-line-init'
repeat 2000 {{ [[ -e begun ]] && break; sleep 0.01 }}
{typed}
zpty -w t exit
while zpty -r t out; do :; done
""",
        HOME=str(tmp_path),
    )
    noted = (tmp_path / "noted").read_text().splitlines()
    assert [line.split()[-1] for line in noted] == [expected_of(line)[0] for line in lines]


def expected_of(line: str) -> list[str]:
    found = ASKED[line]
    return [found] if isinstance(found, str) else found
