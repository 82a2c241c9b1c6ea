"""Which automaton is taken for a formula: our own, Spot's where it is smaller, or that of another program.

An automaton from outside is taken if it has the language of our own: programs have faults, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import shlex
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hybrid.base.components import components_from_bottom
from hybrid.base.errors import InterchangeError, OptionError, PropertyError, UnsupportedError
from hybrid.base.installing import install_command
from hybrid.properties.automata.automaton import (
    Acceptance,
    DeterministicAutomaton,
    all_accepted,
    component_fates,
    mark_list,
    reduced,
)
from hybrid.properties.automata.formulas import (
    FormulaStore,
    LtlFormula,
    formula_text,
    from_path,
    is_always,
    is_finally,
    subformulas,
)
from hybrid.properties.automata.hoa import parse_hoa
from hybrid.properties.automata.translation import translate
from hybrid.properties.parser import parse_path
from hybrid.properties.tree import STATE_OPERATORS
from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.language.expression_parser import to_text
from mtbdd.language.syntax import Binary, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.walk import walk

# Other programs that translate formulas: a command that prints an automaton in the HOA format.

AUTOMATON_TOOLS = ("auto", "own", "spot")
"""Sources of automata that are no commands."""

_PLACE = "%f"
_SECONDS = 600.0
_BYTES = 64 << 20
_SHOWN = 200  # letters of a program's complaint


def program_text(formula: LtlFormula) -> str:
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

    Raises OptionError: the command has no word, or an open quote.
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

    `command`: words as a shell splits them; `%f` in one of them stands for the formula, which otherwise is
    one word more. Raises OptionError: there is no such program. Raises InterchangeError: it fails, takes more
    than ten minutes, or prints more than 64 MiB or what is no text. Raises BudgetError.
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


# Whether two deterministic automata have one language, and a word that distinguishes them.

MOST_TRANSITIONS = 1 << 22
"""Transitions of two automata side by side, up to which they are compared."""
_MOST_MARKS = 62
Ints = NDArray[np.int64]
Word = tuple[list[int], list[int]]


def distinguishing_word(a: DeterministicAutomaton, b: DeterministicAutomaton) -> Word | None:
    """Return a word that one of two automata accepts and the other does not.

    `a`, `b`: over the same propositions in the same order. One search for strongly connected components of
    the pairs of states for every generalised Rabin pair of "a and not b" and of "b and not a". Returns (list
    of int, list of int) or None: letters of a prefix and of what follows again and again; None if the
    automata have one language. Raises UnsupportedError: they are too large to be compared. Raises ValueError:
    their propositions differ.
    """
    if a.propositions != b.propositions:
        raise ValueError(f"expected the same propositions, got {a.propositions} and {b.propositions}")
    if a.n_marks + b.n_marks > _MOST_MARKS:
        raise UnsupportedError(
            f"automata with {a.n_marks} and {b.n_marks} marks are not compared, at most {_MOST_MARKS}"
        )
    pairs = _Pairs(a, b)
    of_b = b.acceptance.changed(lambda atom: Acceptance(atom.kind, atom.mark + a.n_marks))
    for condition in (
        all_accepted((a.acceptance, of_b.negated())),
        all_accepted((of_b, a.acceptance.negated())),
    ):
        for finite, infinite in condition.pairs():
            check_budget()
            found = pairs.word(finite, infinite)
            if found is not None:
                return found
    return None


class _Pairs:
    """The reachable pairs of states of two automata; pair 0 is the first."""

    def __init__(self, a: DeterministicAutomaton, b: DeterministicAutomaton) -> None:
        letters = a.successors.shape[1]
        numbers = {(a.initial, b.initial): 0}
        order = [(a.initial, b.initial)]
        rows: list[list[int]] = []
        for p, q in order:
            if len(order) * letters > MOST_TRANSITIONS:
                raise UnsupportedError(
                    f"automata of {a.n_states} and {b.n_states} states are too large to be compared"
                )
            if len(rows) % 1024 == 0:
                check_budget()
            row = []
            for pair in zip(a.successors[p].tolist(), b.successors[q].tolist(), strict=True):
                number = numbers.setdefault(pair, len(order))
                if number == len(order):
                    order.append(pair)
                row.append(number)
            rows.append(row)
        self._successors: Ints = np.array(rows, np.int64)
        places = np.array(order, np.int64)
        self._marks: Ints = a.marks[places[:, 0]] | b.marks[places[:, 1]] << a.n_marks

    def word(self, finite: int, infinite: int) -> Word | None:
        """Return a word that meets some marks finitely often only, and some others again and again each."""
        n = len(self._successors)
        allowed = self._marks & finite == 0
        kept = np.where(allowed, self._successors, np.arange(n)[:, None])
        components = components_from_bottom(kept.tolist())
        inner = allowed & (components[self._successors] == components[:, None])
        met = np.zeros(int(components.max()) + 1, np.int64)
        cyclic = np.zeros(len(met), np.bool_)
        states, letters = np.nonzero(inner)
        np.bitwise_or.at(met, components[states], self._marks[states, letters])
        cyclic[components[states]] = True
        good = np.flatnonzero(cyclic & (met & infinite == infinite))
        if good.size == 0:
            return None
        inside = components == good[0]
        start, prefix = 0, list[int]()
        if not inside[0]:
            start, prefix = self._path(0, np.ones_like(allowed), inside[self._successors])
        state, loop = start, list[int]()
        within = inner & inside[:, None]
        met_by = [within & (self._marks >> mark & 1 == 1) for mark in mark_list(infinite)]
        for wanted in met_by or [within]:
            state, part = self._path(state, within, wanted)
            loop += part
        if state != start:
            loop += self._path(state, within, within & (self._successors == start))[1]
        return prefix, loop

    def _path(
        self, start: int, allowed: NDArray[np.bool_], wanted: NDArray[np.bool_]
    ) -> tuple[int, list[int]]:
        """Return a shortest path whose last step is a wanted one: where it ends, and its letters."""
        before: dict[int, tuple[int, int]] = {}
        order = [start]
        for state in order:
            for letter in np.flatnonzero(allowed[state]).tolist():
                then = int(self._successors[state, letter])
                if wanted[state, letter]:
                    letters = [letter]
                    while state != start:
                        state, letter = before[state]
                        letters.append(letter)
                    return then, letters[::-1]
                if then not in before and then != start:
                    before[then] = (state, letter)
                    order.append(then)
        raise AssertionError("a wanted step can be reached")


_log = logging.getLogger(__name__)
_PACKAGE = "spottl"  # the distribution; its module is `spot`, as is that of an unrelated distribution `spot`
_MOST_SUBFORMULAS = 200  # of formulas that Spot is asked about, unless it is requested by name


class ChosenAutomaton(Record):
    """An automaton of a formula.

    `automaton`: state 0 is the initial one. `origin`: "own", "spot", or the command. `proven`: whether it is
    our own or has been compared with our own; False where our own is too large.
    """

    automaton: DeterministicAutomaton
    origin: str
    proven: bool


def has_spot() -> bool:
    """Return whether the package `spottl` is installed."""
    if importlib.util.find_spec("spot") is None:
        return False  # what knows of distributions takes long to be loaded
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(_PACKAGE)
    except PackageNotFoundError:
        return False
    return True


def choose_automaton(
    store: FormulaStore, formula: LtlFormula, propositions: Sequence[str], tool: str = "auto"
) -> ChosenAutomaton:
    """Return a deterministic automaton of a formula.

    Parameters
    ----------
    store : FormulaStore
        That has made the formula.
    formula : LtlFormula
    propositions : sequence of str
        Names of the atomic propositions, by number.
    tool : str
        "own"; "spot", from the package `spottl`; "auto", our own, or Spot's where that is installed and has
        fewer states; or a command, see `hybrid.properties.automata.choosing.program_output`.

    Raises
    ------
    UnsupportedError
        The formula is too large for our own translation, and no other is requested.
    OptionError
        There is no such program or package.
    InterchangeError
        The program fails, prints no deterministic automaton, or one of another language than the formula's.
    """
    if tool == "own":
        return ChosenAutomaton(translate(store, formula, propositions), "own", True)
    if tool == "spot" and not has_spot():
        raise OptionError(
            f"automaton tool spot: expected the package spottl, got none; run: {install_command('spottl')}"
        )
    if tool == "auto":
        own = translate(store, formula, propositions)
        if not _may_shrink(own, formula) or not has_spot():
            return ChosenAutomaton(own, "own", True)
        return _smaller(own, formula, propositions)
    text = program_text(formula)
    hoa = _spot_hoa(text, None) if tool == "spot" else program_output(tool, text)
    name = f"automaton tool {command_words(tool)[0]!r}"
    found = _read(hoa, name, formula, propositions)
    try:
        own = translate(store, formula, propositions)
        difference = distinguishing_word(own, found)
    except UnsupportedError as error:
        _log.warning("%s: its automaton is taken unchecked: %s", name, error)
        return ChosenAutomaton(found, tool, False)
    if difference is not None:
        raise InterchangeError(
            f"{name}: expected an automaton of {own.name}, got one that differs on the "
            f"word {_word_text(*difference, found.propositions)}; leave the tool out, and tell its authors"
        )
    return ChosenAutomaton(found, tool, True)


def _may_shrink(own: DeterministicAutomaton, formula: LtlFormula) -> bool:
    """Return whether an automaton need not be the smallest: weak ones are, and those of one state."""
    if own.n_states == 1 or all(fate is not None for fate in component_fates(own)[1]):
        return False
    return len(subformulas(formula)) <= _MOST_SUBFORMULAS


def _smaller(
    own: DeterministicAutomaton, formula: LtlFormula, propositions: Sequence[str]
) -> ChosenAutomaton:
    """Return Spot's automaton if it has fewer states and the same language, else our own."""
    try:
        found = _read(_spot_hoa(program_text(formula), own.n_states), "Spot", formula, propositions)
        if found.n_states < own.n_states:
            if distinguishing_word(own, found) is None:
                return ChosenAutomaton(found, "spot", True)
            _log.warning("Spot's automaton of %s has another language; our own is taken", own.name)
    except (InterchangeError, UnsupportedError) as error:
        _log.info("Spot's automaton is not taken: %s", error)
    return ChosenAutomaton(own, "own", True)


def _spot_hoa(text: str, most_states: int | None) -> str:
    """Return Spot's deterministic automaton of a formula in the HOA format."""
    limit = None if most_states is None else f"det-max-states={most_states}"
    with warnings.catch_warnings():
        # SWIG's types warn as they are made; where warnings are errors this ends the process inside of Spot.
        warnings.simplefilter("ignore")
        spot: Any = importlib.import_module("spot")
        found = spot.translate(text, "deterministic", "generic", xargs=limit)
        return str(found.to_str("hoa"))


def _read(hoa: str, source: str, formula: LtlFormula, propositions: Sequence[str]) -> DeterministicAutomaton:
    """Return an automaton over propositions p0, p1, ... as one over all of ours, reduced."""
    found = parse_hoa(hoa, source)
    known = {f"p{i}": i for i in range(len(propositions))}
    foreign = [name for name in found.propositions if name not in known]
    if foreign:
        raise InterchangeError(
            f"{source}: expected propositions among {', '.join(known) or 'none'}, got {foreign[0]!r}"
        )
    letters = np.arange(1 << len(propositions))
    values = [(letters >> known[name] & 1).astype(np.bool_) for name in found.propositions]
    whole = found.reading(propositions, values)
    return replace(reduced(whole), name=formula_text(formula, lambda p: propositions[p]))


def _word_text(prefix: list[int], loop: list[int], names: Sequence[str]) -> str:
    """Return a word as text: the propositions that hold, letter by letter, what repeats in braces."""

    def letter(x: int) -> str:
        return "&".join(names[i] if x >> i & 1 else f"!{names[i]}" for i in range(len(names))) or "true"

    return "; ".join([*map(letter, prefix), f"cycle{{{'; '.join(map(letter, loop))}}}"])


# Formulas of linear temporal logic as text, in the property language.

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def automaton_of(text: str, tool: str = "own") -> DeterministicAutomaton:
    """Return a deterministic automaton for a formula.

    Parameters
    ----------
    text : str
        A path formula of the property language, such as ``G ("request" => (F "answer"))``.  Names, labels and
        comparisons are its atomic propositions.
    tool : str
        Who translates, see `hybrid.properties.automata.choosing.choose_automaton`.

    Returns
    -------
    DeterministicAutomaton
        Its propositions in the order of the text, labels without their quotes.

    Raises
    ------
    LanguageError
        The text is no formula.
    PropertyError
        It holds operators P, S, R or filters, which need a model.
    UnsupportedError
        It is too large to be translated.
    OptionError, InterchangeError
        There is no such tool, or it fails.
    """
    path = parse_path(text, "<formula>")
    store = FormulaStore()
    names: dict[str, int] = {}

    def proposition(part: Expression) -> LtlFormula | None:
        if isinstance(part, (Literal, Unary)) or (
            isinstance(part, Binary) and part.operator in ("&", "|", "=>", "<=>")
        ):
            return None
        if any(isinstance(e, STATE_OPERATORS) for e in walk(part)):
            raise PropertyError(
                "formula: expected atomic propositions (names, labels, comparisons), got an operator P, S, R "
                "or a filter, which needs a model"
            )
        if isinstance(part, Binary) and part.operator not in _COMPARISONS:
            raise PropertyError(f"formula: expected a proposition, true or false, got {to_text(part)!r}")
        name = part.name if isinstance(part, (Name, LabelReference)) else to_text(part)
        return store.literal(names.setdefault(name, len(names)))

    found = from_path(path, store, proposition)
    return choose_automaton(store, found, list(names), tool).automaton
