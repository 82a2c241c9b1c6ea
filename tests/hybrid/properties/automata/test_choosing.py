"""Automata of other programs: taken if they say what the formula says."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.base.errors import InterchangeError, OptionError, UnsupportedError
from hybrid.properties.automata import choosing
from hybrid.properties.automata.choosing import automaton_of, program_output, program_text
from hybrid.properties.automata.formulas import FormulaStore
from hybrid.properties.automata.hoa import hoa_text
from mtbdd.base.budget import Budget, BudgetError, spending

WALK = """
dtmc
module m
  x : [0..2] init 0;
  [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);
  [] x=1 -> true;
  [] x=2 -> 0.5:(x'=0) + 0.5:(x'=2);
endmodule
"""
UNTIL = "x<2 U (x=1 & (X x=1))"
"""Its propositions are x<2 and x=1, p0 and p1 for the tool."""


def tool(tmp_path: Path, code: str) -> str:
    """A command that runs some Python."""
    script = tmp_path / "a tool.py"
    script.write_text(code, encoding="utf-8")
    return shlex.join([sys.executable, str(script)])


def printing(tmp_path: Path, formula: str, names: dict[str, str]) -> str:
    """A command that prints our automaton of a formula, whatever it is asked for."""
    text = hoa_text(automaton_of(formula))
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return tool(tmp_path, f"print({text!r})")


def test_formulas_are_written_as_other_programs_read_them() -> None:
    store = FormulaStore()
    a, b = store.literal(0), store.literal(1, True)
    formula = store.any_of((store.always(store.finally_(a)), store.weak(a, store.until(store.next(a), b))))
    assert program_text(formula) == "((G (F p0)) | (p0 W ((X p0) U !p1)))"


def test_the_automaton_of_a_program_is_taken(tmp_path: Path) -> None:
    command = printing(tmp_path, "(a U (b & (X b))) & (F (a | !a))", {"a": "p0", "b": "p1"})
    found = automaton_of("a U (b & (X b))", command)
    assert found.propositions == ("a", "b")
    assert found.accepts([1, 2, 2], [0]) and not found.accepts([1, 2], [0])
    model = hybrid.parse(WALK)
    own = hybrid.check(model, f"P=? [ {UNTIL} ]", backend="cpu", automaton_tool="own")
    answer = hybrid.check(model, f"P=? [ {UNTIL} ]", backend="cpu", automaton_tool=command)
    assert answer.proven and answer.lower <= own.upper and own.lower <= answer.upper
    assert answer.lower <= 0.25 <= answer.upper


def test_the_formula_stands_where_the_command_says(tmp_path: Path) -> None:
    code = 'import sys; print(sys.argv[1:]); raise SystemExit(3 if "p0" in sys.argv[2] else 0)'
    command = tool(tmp_path, code)
    assert program_output(f"{command} --formula=%f -H", "true") == "['--formula=true', '-H']\n"
    assert program_output(f"{command} -f", "(F q; rm -rf .)") == "['-f', '(F q; rm -rf .)']\n"
    with pytest.raises(InterchangeError, match="expected status 0, got 3"):
        program_output(f"{command} -f", "(F p0)")


def test_another_language_is_refused_with_a_word(tmp_path: Path) -> None:
    command = printing(tmp_path, "a W (b & (X b))", {"a": "p0", "b": "p1"})
    with pytest.raises(InterchangeError, match=r"got one that differs on the word cycle\{a&!b\}"):
        automaton_of("a U (b & (X b))", command)
    answer = hybrid.check(hybrid.parse(WALK), f"P=? [ {UNTIL} ]", automaton_tool=command, throw=False)
    assert answer.value is None and "differs on the word" in str(answer.error)


BAD = [
    ("print('never { }')", "expected 'HOA: v1' at the beginning, got 'never'"),
    ("pass", "expected 'HOA: v1' at the beginning, got the end of the text"),
    ("import sys; sys.exit('no such formula')", "expected status 0, got 1: no such formula"),
    ("import sys; sys.stdout.buffer.write(b'\\xff')", "expected text in UTF-8"),
    ("import os; os.kill(os.getpid(), 9)", "expected status 0, got -9"),
    (
        "print('HOA: v1 Start: 0 AP: 1 \"x\" Acceptance: 0 t --BODY-- State: 0 [t] 0 --END--')",
        "expected propositions among p0, p1, got 'x'",
    ),
    (
        "print('HOA: v1 Start: 0 AP: 0 Acceptance: 0 t --BODY-- State: 0 [t] 0 [t] 0 --END--')",
        "1:70: expected a deterministic automaton",
    ),
]


@pytest.mark.parametrize(("code", "message"), BAD)
def test_hostile_output_is_told(code: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InterchangeError) as error:
        automaton_of("a U (b & (X b))", tool(tmp_path, code))
    assert message in str(error.value)


def test_too_much_output_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.properties.automata.choosing._BYTES", 1 << 16)
    with pytest.raises(InterchangeError, match="expected at most 65536 bytes of HOA, got more"):
        program_output(tool(tmp_path, "while True: print('HOA: v1' * 1000)"), "F p0")


def test_the_budget_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    number = tmp_path / "number"
    child = "import time; time.sleep(600)"
    code = (
        f"import pathlib, subprocess, sys, time; own = subprocess.Popen([sys.executable, '-c', {child!r}]); "
        f"pathlib.Path({str(number)!r}).write_text(str(own.pid)); time.sleep(600)"
    )
    for seconds in (0.5, 4.0, 32.0):  # on a machine that is busy it has not begun at first
        with spending(Budget.of(seconds, None)), pytest.raises(BudgetError):
            program_output(tool(tmp_path, code), "F p0")
        if number.exists() and number.read_text():
            break
    child_ended = time.monotonic() + 60
    while is_alive(int(number.read_text())) and time.monotonic() < child_ended:
        time.sleep(0.01)
    assert not is_alive(int(number.read_text()))


def is_alive(process: int) -> bool:
    """Return whether a process runs: one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "expected a command that prints HOA, got nothing"),
        ("no-such-program-for-automata", "expected a program that can be run, got: No such file"),
        ("'open", "expected a command, got"),
    ],
)
def test_what_is_no_command_is_told(command: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        program_output(command, "F p0")
    with pytest.raises(OptionError, match=message):
        hybrid.check(hybrid.parse(WALK), f"P=? [ {UNTIL} ]", automaton_tool=command)


def test_beyond_our_own_limits_the_answer_is_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = printing(tmp_path, "a U (b & (X b))", {"a": "p0", "b": "p1"})
    monkeypatch.setattr("hybrid.properties.automata.translation.MOST_STATES", 2)
    model = hybrid.parse(WALK)
    answer = hybrid.check(model, f"P=? [ {UNTIL} ]", backend="cpu", automaton_tool=command)
    assert answer.value == pytest.approx(0.25) and answer.kind == "estimate"
    with pytest.raises(UnsupportedError, match="more than 2 states"):
        hybrid.check(model, f"P=? [ {UNTIL} ]", backend="cpu", automaton_tool="own")


def test_spot_is_asked_for_by_name_alone_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_PACKAGE", "no-such-distribution-of-automata")
    assert automaton_of("G (F a => b)", "auto").n_states == automaton_of("G (F a => b)").n_states
    with pytest.raises(OptionError, match="got none; run: .* -m pip install spottl"):
        automaton_of("F a", "spot")


# That is G F a, which our translation does not see.
LARGE = "G (!a U (b R (F a)))"


def test_spot_is_taken_where_it_is_smaller() -> None:
    pytest.importorskip("spot", reason="the package spottl is not installed")
    own, chosen = automaton_of(LARGE), automaton_of(LARGE, "auto")
    assert chosen.n_states < own.n_states
    assert automaton_of("a U b", "spot").n_states == 3


def test_f11_warnings_of_spot_are_no_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that warns where SWIG's modules do: as it is imported, and as its types are made."""
    smaller = hoa_text(automaton_of("G F a")).replace('"a"', '"p0"')
    warn = "import warnings\nwarnings.warn('builtin type has no __module__ attribute', DeprecationWarning)\n"
    found = f"class Found:\n    def to_str(self, form):\n        return {smaller!r}\n"
    translate = "def translate(*texts, xargs=None):\n    warnings.warn('made')\n    return Found()\n"
    (tmp_path / "spot.py").write_text(warn + found + translate)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "spot", raising=False)
    monkeypatch.setattr(choosing, "has_spot", lambda: True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert automaton_of("G F a", "spot").n_states == 1
    finally:
        sys.modules.pop("spot", None)


def test_a_wrong_automaton_of_spot_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = hoa_text(automaton_of("F G a")).replace('"a"', '"p0"')
    monkeypatch.setattr(choosing, "has_spot", lambda: True)
    monkeypatch.setattr(choosing, "_spot_hoa", lambda text, most: wrong)
    own = automaton_of(LARGE)
    assert own.n_states > 1
    assert automaton_of(LARGE, "auto").n_states == own.n_states
    with pytest.raises(InterchangeError, match="differs on the word"):
        automaton_of(LARGE, "spot")


def test_the_command_line_takes_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = printing(tmp_path, "F (a & (X b))", {"a": "p0", "b": "p1"})
    assert main(["automaton", "F (a & (X b))", "--automaton-tool", command]) == 0
    assert "States: 3" in capsys.readouterr().out
    assert main(["automaton", "G (a & (X b))", "--automaton-tool", command]) == 1
    assert "differs on the word" in capsys.readouterr().err
    (tmp_path / "walk.prism").write_text(WALK, encoding="utf-8")
    property_ = ["check", str(tmp_path / "walk.prism"), "P=? [ F (x=1 & (X x=0)) ]"]
    assert main([*property_, "--automaton-tool", "no-such-program-for-automata"]) == 1
    assert "can be run" in capsys.readouterr().out
