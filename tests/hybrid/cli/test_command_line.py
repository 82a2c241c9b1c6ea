"""The command line that hands expect: any order, repeated constants, standard input, places, spellings."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.cli.arguments import COMMANDS, parse_arguments
from hybrid.cli.completion import completion
from hybrid.cli.manual import manual_markdown, manual_roff
from hybrid.cli.manual_arguments import SHELLS
from hybrid.cli.prism_options import SAME, advice_on
from hybrid.cpu.threads import thread_count
from hybrid.errors import OptionError
from tests.source_tree import ROOT

WALK = """dtmc
const int N;
const double p;
module walk
  s : [0..N];
  [] s<N -> p : (s'=s+1) + 1-p : (s'=0);
  [] s=N -> true;
endmodule
label "end" = s=N;
"""
PROPERTIES = 'P=? [ F<=2 s=2 ];\n"named": P=? [ F "end" ];\nP=? [ F<=1 s=1 ]\n'
GIVEN = ["--const", "N=3,p=0.5"]


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("walk.pm").write_text(WALK)
    Path("walk.props").write_text(PROPERTIES)
    return "walk.pm"


Run = tuple[int, str, str]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Run:
    status = main([arguments[0], "--quiet", *arguments[1:]])
    out, err = capsys.readouterr()
    return status, out, err


def values(found: Run) -> list[float]:
    """The values of a run with --json."""
    assert found[0] == 0, found[2]
    return [result["value"] for result in json.loads(found[1])["results"]]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is told by a run with wrong usage."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 2
    return capsys.readouterr().err


# ------------------------------------------------------------------ order, constants, standard input


@pytest.mark.parametrize(
    "line",
    [
        "check walk.pm 'P=? [ F<=1 s=1 ]' --const N=3,p=0.5 --json",
        "check walk.pm --const N=3,p=0.5 'P=? [ F<=1 s=1 ]' --json",
        "check --json --const N=3,p=0.5 walk.pm 'P=? [ F<=1 s=1 ]'",
        "check --const N=3 walk.pm --json 'P=? [ F<=1 s=1 ]' --const p=0.5",
        "check -const N=3,p=0.5 walk.pm -pf 'P=? [ F<=1 s=1 ]' --json",
        "check --json --const N=3,p=0.5 -- walk.pm 'P=? [ F<=1 s=1 ]'",
    ],
)
def test_options_and_positions_stand_in_any_order(
    walk: str, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert values(run(capsys, *shlex.split(line))) == [0.5]


def test_what_follows_two_dashes_is_a_position(capsys: pytest.CaptureFixture[str]) -> None:
    found = parse_arguments(["check", "--json", "--", "-model.pm", "--list"])
    assert (found.model, found.property, found.list) == ("-model.pm", "--list", False)
    assert "unrecognized arguments: c" in refused(capsys, "check", "a", "b", "c")


def test_constants_given_twice_are_a_fault(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "check", walk, "P=? [ F s=1 ]", "--const", "N=3,p=0.5", "--const", "N=4")
    assert status == 2 and "N" in err and "twice" in err


@pytest.mark.parametrize("command", ["check", "info", "levels", "graph", "simulate"])
def test_a_model_may_come_on_standard_input(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WALK.encode())))
    status, out, err = run(capsys, command, "-", *GIVEN)
    assert status == 0 and out and not err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"dtmc module")))
    status, _, err = run(capsys, command, "-")
    assert status == 2 and "<stdin>:1:" in err


def test_properties_may_come_on_standard_input(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROPERTIES.encode())))
    assert values(run(capsys, "check", walk, "-", *GIVEN, "--json")) == [0.25, 1.0, 0.5]
    assert "standard input is one text" in refused(capsys, "check", "-", "-")


# ------------------------------------------------------------------ which properties


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (["--prop", "1"], [0.25]),
        (["-prop", "3"], [0.5]),
        (["--prop", "named"], [1.0]),
        (["--prop", "3,1"], [0.5, 0.25]),
        (["--property", "0"], [0.25]),
        (["--property", "2", "--prop", "2"], [0.5, 1.0]),
    ],
)
def test_places_count_from_one_or_from_zero(
    walk: str, capsys: pytest.CaptureFixture[str], chosen: list[str], expected: list[float]
) -> None:
    assert values(run(capsys, "check", walk, "walk.props", *GIVEN, *chosen, "--json")) == expected


def test_places_that_do_not_exist_are_refused(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "check", walk, "walk.props", *GIVEN, "--prop", "4")
    assert status == 2 and "--prop: expected a place from 1 to 3, or a name of named, got 4" in err
    assert "--property counts from 0" in refused(capsys, "check", walk, "walk.props", "--prop", "0")


def test_properties_are_listed_without_a_model(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", "nothing.pm", "walk.props", "--list")
    assert status == 0
    assert out.splitlines() == [
        "1  P=? [ F<=2 s=2 ]",
        '2  "named": P=? [ F "end" ]',
        "3  P=? [ F<=1 s=1 ]",
    ]
    status, out, _ = run(capsys, "check", "nothing.pm", "walk.props", "--list", "--prop", "named", "--json")
    assert json.loads(out)["properties"][0] == {
        "number": 2, "name": "named", "property": 'P=? [ F "end" ]', "error": None,
    }  # fmt: skip
    assert run(capsys, "check", walk, "--list")[0] == 2


# ------------------------------------------------------------------ faults


def test_a_fault_hides_no_other_property(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'P=? [ F s=1 ];\nP=? [ F s= ];\n"x": P=? [ G (s<2 ];\nP=? [ F q=1 ];\nP=? [ F<=1 s=1 ]\n'
    Path("bad.props").write_text(text)
    status, out, _ = run(capsys, "check", walk, "bad.props", *GIVEN, "--json")
    results = json.loads(out)["results"]
    assert status == 1
    assert [result["value"] for result in results] == [1.0, None, None, None, 0.5]
    places = ["bad.props:2:12:", "bad.props:3:19:", "bad.props:4:9:"]
    assert all(place in results[1 + k]["error"] for k, place in enumerate(places))
    status, out, _ = run(capsys, "check", walk, "bad.props", *GIVEN)
    assert "      2 | P=? [ F s= ];\n        |            ^\n" in out


def test_declarations_with_faults_end_the_command(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.props").write_text("const int = 3;\nP=? [ F s= ];\nP=? [ F s=1 ]\n")
    status, _, err = run(capsys, "check", walk, "bad.props", *GIVEN)
    assert status == 2 and "bad.props:1:11:" in err and "bad.props:2:12:" in err


@pytest.mark.parametrize("declared", ["const int N = 3;", "const int N;"])
def test_constants_of_both_files_are_told_as_such(
    walk: str, capsys: pytest.CaptureFixture[str], declared: str
) -> None:
    Path("both.props").write_text(f"{declared} P=? [ F s=N ]")
    status, _, err = run(capsys, "check", walk, "both.props", *GIVEN)
    assert status == 2 and "constant 'N' is declared in the model walk.pm, too" in err
    assert "without a value" not in err
    # What the model misses besides is told as before.
    status, _, err = run(capsys, "check", walk, "both.props", "--const", "N=3")
    assert status == 2 and "constants without a value" in err


def test_faults_show_the_line_of_the_text(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.pm").write_text(WALK.replace("s<N ->", "s<<N ->").replace("  []", "\t[]"))
    status, _, err = run(capsys, "check", "bad.pm", *GIVEN)
    message, line, caret = err.splitlines()
    assert status == 2 and message.startswith("error: bad.pm:6:")
    column = int(message.split(":")[3])
    shown = line.index("|") + 2
    # A tab is shown as blanks up to a multiple of four.
    assert line[shown:].startswith("    [] s<<N ->")
    assert caret.index("^") == shown + column - 1 + 3


def test_terminals_are_not_driven_by_texts(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "check", walk, "P=? [ F \x1b[31m ]", *GIVEN)
    assert status == 2 and "\x1b" not in out + err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "walk.pmm"], "a model file, but there is no such file; did you mean 'walk.pm'?"),
        (["check", "walk.pm", "walk.prop"], "did you mean 'walk.props'?"),
        (["check", "walk.pm", "walks.txt"], "walks.txt:1:1: expected a properties file, but there is no"),
        (["info", "walk.umb"], "walk.umb: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_misspelt_files_are_told_as_such(
    walk: str, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2 and told in err


def test_misspelt_options_are_told_with_the_nearest(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "check", walk, "--metod", "jor")
    assert "unrecognized arguments: --metod jor; did you mean '--method'?" in told
    assert "write answers with --csv" in refused(capsys, "check", walk, "-exportresults", "x.csv")
    assert advice_on("-sim").startswith("; estimate with") and not advice_on("sim")


# ------------------------------------------------------------------ PRISM's spellings


@pytest.mark.parametrize(
    ("spelt", "name", "value"),
    [
        ("-epsilon 1e-3", "epsilon", 1e-3),
        ("-abs", "absolute", True),
        ("--absolute -relative", "absolute", False),
        ("-maxiters 7", "max_iters", 7),
        ("-jor -omega 0.8", "omega", 0.8),
        ("-jor", "method", "jor"),
        ("-gaussseidel", "method", "gauss-seidel"),
        ("-intervaliter", "method", "interval"),
        ("-ii", "method", "interval"),
        ("-gs", "method", "gauss-seidel"),
        ("-sparse", "engine", "explicit"),
        ("-ex", "engine", "explicit"),
        ("-hybrid", "engine", "hybrid"),
        ("-m", "engine", "symbolic"),
        ("-nofixdl", "no_fix_deadlocks", True),
        ("-const N=2 -const p=1", "const", "N=2,p=1"),
        ("-pctl true", "property", "true"),
        ("-property 2", "chosen", [1]),
    ],
)
def test_spellings_of_prism(spelt: str, name: str, value: object) -> None:
    assert getattr(parse_arguments(["check", "m.pm", *spelt.split()]), name) == value


def test_every_spelling_that_is_told_is_taken() -> None:
    for names in SAME:
        for name in names.split(", "):
            takes = name in (
                "-const",
                "-pf",
                "-pctl",
                "-csl",
                "-prop",
                "-property",
                "-epsilon",
                "-maxiters",
                "-omega",
            )
            parse_arguments(["check", "m.pm", name, *(["1"] if takes else [])])


# ------------------------------------------------------------------ threads, packages, versions


def test_threads_are_those_asked_for(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr("hybrid.cli.info.run", lambda *_: seen.append(thread_count()) or 0)
    monkeypatch.delenv("HYBRID_NUM_THREADS", raising=False)
    before = thread_count()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    run(capsys, "info", walk, "--threads", "3")
    monkeypatch.setenv("HYBRID_NUM_THREADS", "5")
    run(capsys, "info", walk)
    run(capsys, "info", walk, "--threads", "2")
    assert seen == [3, 5, 2]
    monkeypatch.setenv("HYBRID_NUM_THREADS", "many")
    status, _, err = run(capsys, "info", walk)
    assert status == 2 and "HYBRID_NUM_THREADS: expected a whole number from 1 to 1024, got 'many'" in err
    with pytest.raises(OptionError, match="HYBRID_NUM_THREADS"):
        thread_count()
    monkeypatch.delenv("HYBRID_NUM_THREADS")
    assert thread_count() == before
    assert "expected a whole number from 1 to 1024, got '0'" in refused(
        capsys, "info", walk, "--threads", "0"
    )


def test_packages_give_the_same_answers(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("auto", "autoref"):
        found = run(capsys, "check", walk, "walk.props", *GIVEN, "--package", package, "--json")
        assert values(found) == [0.25, 1.0, 0.5]


def test_versions_say_what_works_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert main(["--version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == lines
    assert list(lines) == ["hybrid", "python", "dd", "numpy", "scipy", "numba", "cupy", "device"]
    assert "CUDD" in lines["dd"]
    assert "--json stands behind the command" in refused(capsys, "--json", "info", "m.pm")


# ------------------------------------------------------------------ help, manual, completion


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
