"""Other programs that translate formulas: a command that prints an automaton in the HOA format."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from typing import BinaryIO

from hybrid.base.errors import InterchangeError, OptionError
from hybrid.properties.automata.formulas import Formula, is_always, is_finally
from mtbdd.base.budget import check_budget

AUTOMATON_TOOLS = ("auto", "own", "spot")
"""Sources of automata that are no commands."""

_PLACE = "%f"
_SECONDS = 600.0
_BYTES = 64 << 20
_SHOWN = 200  # letters of a program's complaint


def program_text(formula: Formula) -> str:
    """Return a formula as other programs write it: F, G, X, U, W, !, &, |, propositions p0, p1, ..."""
    if formula.kind in ("true", "false"):
        return formula.kind
    if formula.kind == "literal":
        return ("!" if formula.negated else "") + f"p{formula.proposition}"
    parts = [program_text(part) for part in formula.parts]
    if is_always(formula):
        return f"(G {parts[0]})"
    if is_finally(formula):
        return f"(F {parts[1]})"
    if formula.kind == "X":
        return f"(X {parts[0]})"
    sign = {"and": " & ", "or": " | ", "U": " U ", "W": " W "}[formula.kind]
    return "(" + sign.join(parts) + ")"


def command_words(command: str) -> list[str]:
    """Return the words of a command; one of them holds `%f`, the place of the formula.

    Raises
    ------
    OptionError
        The command has no word, or an open quote.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise OptionError(f"automaton tool: expected a command, got {command!r} ({error})") from None
    if not words:
        raise OptionError("automaton tool: expected a command that prints HOA, got nothing")
    return words if any(_PLACE in word for word in words) else [*words, _PLACE]


def program_output(command: str, formula: str) -> str:
    """Run a command on a formula, without a shell, and return what it prints.

    Parameters
    ----------
    command : str
        Words as a shell splits them; `%f` in one of them stands for the formula, which otherwise is one word
        more.
    formula : str

    Raises
    ------
    OptionError
        There is no such program.
    InterchangeError
        It fails, takes more than ten minutes, or prints more than 64 MiB or what is no text.
    BudgetError
    """
    words = [word.replace(_PLACE, formula) for word in command_words(command)]
    name = f"automaton tool {words[0]!r}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints, start_new_session=True
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise OptionError(f"{name}: expected a program that can be run, got: {reason}") from None
        try:
            _wait(process, output, complaints, name)
        finally:
            _end(process)
        if process.returncode:
            raise InterchangeError(
                f"{name}: expected status 0, got {process.returncode}{_complaint(complaints)}"
            )
        output.seek(0)
        try:
            return output.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise InterchangeError(
                f"{name}: expected text in UTF-8, got byte {error.start} of none"
            ) from None


def _wait(process: subprocess.Popen[bytes], output: BinaryIO, complaints: BinaryIO, name: str) -> None:
    """Wait for the end of a program that keeps to its limits."""
    started, pause = time.monotonic(), 0.001
    while True:
        printed = max(os.fstat(file.fileno()).st_size for file in (output, complaints))
        if printed > _BYTES:
            raise InterchangeError(f"{name}: expected at most {_BYTES} bytes of HOA, got more")
        if process.poll() is not None:
            return
        if time.monotonic() - started > _SECONDS:
            raise InterchangeError(f"{name}: expected an automaton within {_SECONDS:g} s, got none")
        check_budget()
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _complaint(file: BinaryIO) -> str:
    """Return the first line that a program has complained with."""
    file.seek(0)
    lines = file.read(4 * _SHOWN).decode("utf-8", "replace").strip().splitlines()
    return f": {lines[0][:_SHOWN]}" if lines else ""
