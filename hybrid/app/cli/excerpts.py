"""The line of a text that a fault is in, with a caret under the column.

The first line of a message stays `file:line:column: message`, on which programs rely; records of answers have
it alone.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
import zlib
from pathlib import Path

from mtbdd.language.errors import LanguageError
from mtbdd.language.tokens import read_source

# Options of PRISM and Storm: those that mean the same here, and what to do in the place of others.

SAME: dict[str, str] = {
    "-const": "--const",
    "-pf, -pctl, -csl": "PROPERTY as text",
    "-prop, -property": "--prop",
    "-epsilon, -e": "--epsilon",
    "-paretoepsilon": "--pareto-epsilon",
    "-absolute, -abs": "--absolute",
    "-relative, -rel": "without --absolute",
    "-exact": "--exact",
    "-maxiters": "--max-iters",
    "-omega": "--omega",
    "-power, -pow": "--method power",
    "-jacobi, -jac": "--method jacobi",
    "-gaussseidel, -gs": "--method gauss-seidel",
    "-jor": "--method jor",
    "-intervaliter, -ii": "--method interval",
    "-hybrid": "--engine hybrid",
    "-sparse, -s": "--engine explicit",
    "-explicit, -ex": "--engine explicit",
    "-mtbdd, -m": "--engine symbolic",
    "-nofixdl": "--no-fix-deadlocks",
}
"""Options of PRISM that `hybrid check` takes, and what they stand for here."""

ELSEWHERE = {
    "absolute": "write --absolute",
    "aroptions": "abstraction refinement is not there: chains and decision processes alone",
    "bgaussseidel, bgs, bpgs, bjor, bsor": "there are no backward sweeps: take --method gauss-seidel",
    "buildchoicelab, buildfull, buildstateval": "it is not needed: all of it is known of every model",
    "config, settings": "settings are not kept: a script keeps options",
    "constants, constdefs": "give constants with --const",
    "counterexample": "critical subsystems are not searched: --witness shows a path of E and A",
    "cuddmaxmem, javamaxmem, cudd:maxmem, sylvan:maxmem": "bound the memory of all parts with --memory",
    "cuddepsilon": "it is not needed: terminals are told apart by their numbers",
    "ctmc, dtmc, mdp": "give the type of files that do not tell it with --type",
    "cvar, propsasmulti": "ask for several objectives with multi(...)",
    "ddlib": "it is not needed: diagrams are CUDD's; --package autoref does without",
    "debug, trace": "set the loggers mtbdd, hybrid and gpu_kernels of Python's logging",
    "dir": "paths are those of the shell: leave it out",
    "eqsolver, gmm++:method, eigen:method": "choose how to solve with --method",
    "expvisittimes": "ask R=? [ C ] with a reward of 1 in the states",
    "explicit-drn, explicit-umb, jani-umb": "give the file itself: hybrid check MODEL.drn",
    "exportadv, exportadvmdp, exportstrat, exportscheduler": "write schedulers with --scheduler FILE",
    "exportbuild": "write models with 'hybrid export MODEL --to FILE...'",
    "exportbsccs, exportmecs, exportsccs": "count them with 'hybrid graph MODEL --scc --mec'",
    "exportcdf": "run an experiment over the bound: --const T=0:1:20 --csv FILE",
    "exportdd": "write diagrams with 'hybrid export MODEL --to FILE.dd'",
    "exportdot, exporttransdot, exporttransdotstates": "draw with 'hybrid export MODEL --to FILE.dot'",
    "exportiterations": "draw the bounds over the iterations with --plot-convergence FILE",
    "exportlabels": "write labels with 'hybrid export MODEL --to FILE.lab'",
    "exportmatlab, exportmrmc, exportrows": "write matrices with 'hybrid export MODEL --to FILE.mtx'",
    "exportmodel": "write models with 'hybrid export MODEL --to FILE...'",
    "exportprism, exportprismconst": "it is not there: the text that was read is the model",
    "exportproplabels": "it is not there: labels of properties files are used, not written",
    "exportresult, exportresults": "write answers with --csv FILE, or --json",
    "exportrewards, exportstaterewards": "write rewards with 'hybrid export MODEL --to FILE.srew'",
    "exportstates": "write states with 'hybrid export MODEL --to FILE.sta'",
    "exporttrans": "write models with 'hybrid export MODEL --to FILE.tra'",
    "exporttransrewards": "write rewards with 'hybrid export MODEL --to FILE.trew'",
    "exportvector": "write the values of all states with --values FILE",
    "fair": "fairness of schedulers is not assumed here: leave it out for optima over all schedulers",
    "fixdl": "it is the default: leave it out",
    "importinitdist": "chains begin in their initial states, each as likely as the others",
    "importlabels": "give labels with --labels FILE",
    "importmodel, importtrans": "give the file itself: hybrid check MODEL.tra",
    "importpepa": "let PRISM write the model with -exportprism, and give that",
    "importstaterewards, staterew": "give rewards of states with --state-rewards FILE",
    "importstates": "give variables' values with --states FILE",
    "importtransrewards, transrew": "give rewards of transitions with --transition-rewards FILE",
    "jani, janiproperty": "JANI is not read: give the model in PRISM's language",
    "javaparams, javastack, ng": "it is not needed: nothing runs on Java",
    "ltl2dasyntax, ltl2datool": "name a translator with --automaton-tool",
    "maxiter": "write --max-iters",
    "minmax:method, native:method": "choose how to solve with --method",
    "help": "'hybrid help check' shows the options",
    "modpoliter, politer, valiter": "value iteration between bounds is the default; --method has others",
    "nofair": "it is the default: leave it out",
    "nofixdl": "write --no-fix-deadlocks",
    "nopre, noprob0, noprob1": "it is not there: bounds rest on what the graph decides",
    "noprobchecks, sumroundoff": "it is not there: rows of probabilities must add up to 1 within 1e-5",
    "nossdetect": "it is not needed: steps are left out only where the bounds say so",
    "o1, o2": "choose the order of variables with --order",
    "param, parametric": "parameters have numbers here: --const p=0.1:0.1:0.9 runs a range of them",
    "pgs, psor, sor": "take --method gauss-seidel with --omega",
    "precision": "write --epsilon",
    "progress": "it is told on terminals: leave it out, or write --quiet for none",
    "prism, explicit": "give the file itself: hybrid check MODEL",
    "ptamethod": "timed automata are not supported",
    "qvbs": "give the set's PRISM models as files",
    "sbl, sbmax, gsl, gsmax": "choose the level with --level",
    "sim": "estimate with 'hybrid simulate MODEL PROPERTY'",
    "simapprox, simmethod, simwidth": "the number of paths decides the width: hybrid simulate --paths K",
    "simconf": "write 'hybrid simulate MODEL PROPERTY --confidence C', which is 1 - x",
    "simpath": "sample paths with 'hybrid simulate MODEL --steps N'",
    "simpathlen": "write 'hybrid simulate MODEL PROPERTY --steps N'",
    "simsamples": "write 'hybrid simulate MODEL PROPERTY --paths K'",
    "sound": "it is the default: answers lie between bounds",
    "statistics": "sizes and times are always printed: leave it out",
    "ss, steadystate": "ask S=? [ states ], or use model.steady_state() in Python",
    "test, testall": "RESULT comments are read over: leave it out",
    "timeout": "write --timeout S",
    "topological": "it is chosen by itself where it promises to be quicker: leave it out",
    "tr, transient": "ask P=? [ F[t,t] states ], or use model.transient(t) in Python",
    "version": "write hybrid --version",
    "verbose, extraddinfo, extrareachinfo": "write --verbose; filter(printall, ...) lists values",
}
"""Options of PRISM and Storm that mean nothing here, without dashes, and what to do."""


def advice_on(option: str) -> str:
    """Return what to do in the place of an option of PRISM or Storm that is none here; otherwise nothing."""
    if not option.startswith("-"):
        return ""
    name = option.partition("=")[0].lstrip("-")
    return next((advice for names, advice in ELSEWHERE.items() if name in names.split(", ")), "")


_WIDTH = 100
"""Characters of a line that are shown."""

_TAB = 4

_LINE_ALONE = re.compile(r"(.+?):([0-9]{1,12}): ")
"""Beginnings of messages about files of states and transitions, which have no column."""

_GOT = re.compile(r", got '([^']+)'")

_LONGEST, _FARTHEST = 1 << 16, 10_000_000
"""Bytes of a line, and lines of a file, beyond which no line is shown."""


class Excerpts:
    """Adds excerpts of the texts that a command line names to messages about them."""

    def __init__(self, options: argparse.Namespace) -> None:
        names = ("model", "property", "const", "formula")
        given = {name: getattr(options, name, None) or "" for name in names}
        self._texts = {
            "<property>": given["property"],
            "<constants>": given["const"],
            "<formula>": given["formula"],
        }
        self._files = {str(path): path for path in (given["model"], given["property"]) if path}
        known = "|".join(map(re.escape, sorted({*self._files, *self._texts}, key=len, reverse=True)))
        self._place = re.compile(rf"(?<!\S)({known}):([0-9]+):([0-9]+): ")

    def added(self, message: str) -> str:
        """Return a message with an excerpt below every line that names a place in one of the texts."""
        lines = []
        for line in message.split("\n"):
            lines.append(line)
            found = self._place.search(line)
            if found is not None:
                indent = " " * (len(line) - len(line.lstrip()))
                excerpt = self._excerpt(found[1], int(found[2]), int(found[3]), line[found.end() :])
                lines += [indent + text for text in excerpt]
            elif (alone := _LINE_ALONE.match(line)) is not None:
                lines += _excerpt_of_file(alone[1], int(alone[2]), line[alone.end() :])
        return "\n".join(lines)

    def _excerpt(self, name: str, line: int, column: int, message: str) -> list[str]:
        lines = self._text(name).split("\n")
        if not 0 < line <= len(lines) or not 0 < column <= len(lines[line - 1]) + 1:
            return []
        text = lines[line - 1].rstrip("\r")
        # The place of a message about a whole file is its beginning.
        if (line, column) == (1, 1) and f"'{_first_word(text)}'" not in message:
            return []
        return _drawn(text, line, column - 1)

    def _text(self, name: str) -> str:
        if name not in self._texts:
            try:
                self._texts[name] = read_source(self._files[name])
            except LanguageError:
                self._texts[name] = ""
        return self._texts[name]


def _excerpt_of_file(path: str, number: int, message: str) -> list[str]:
    """Return the excerpt of a file at a given line, with the faulty words marked."""
    text = _line_of(path, number)
    if text is None:
        return []
    got = _GOT.match(message[message.rfind(", got ") :]) if ", got " in message else None
    places = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(got[1])}(?!\w)", text)] if got else []
    return _drawn(text, number, places[0] if len(places) == 1 else None)


def _line_of(path: str, number: int) -> str | None:
    """Return a line of a file, which may be compressed; None if it is no text or too far down."""
    if not 0 < number <= _FARTHEST:
        return None
    try:
        import gzip

        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for _ in range(number):
                line = file.readline(_LONGEST)
                if len(line) == _LONGEST:
                    return None
        text = line.decode()
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return None if "\0" in text else text.rstrip("\r\n")


def _drawn(text: str, number: int, offset: int | None) -> list[str]:
    """Return a line with its number, and a caret below a character of it."""
    shown, before = _cells(text, offset or 0)
    if not shown.strip():
        return []
    head = f"{number:>5}"
    lines = [f"{head} | {shown}"]
    return lines if offset is None else [*lines, f"{' ' * len(head)} | {' ' * before}^"]


def _first_word(text: str) -> str:
    found = re.match(r'\w+|"[^"]*"|.', text)
    return found[0] if found else ""


def _cells(text: str, offset: int) -> tuple[str, int]:
    """Return a line as it is shown, and the columns before a character of it.

    Tabs become blanks, characters that a terminal obeys become question marks, and of a long line what
    surrounds the character is left.
    """
    head = tail = ""
    if len(text) > _WIDTH:
        begin = max(0, min(offset - _WIDTH // 2, len(text) - _WIDTH))
        head, tail = "..." if begin else "", "..." if begin + _WIDTH < len(text) else ""
        text, offset = text[begin : begin + _WIDTH], offset - begin
    cells, columns, before = [], 0, 0
    for position, character in enumerate(text):
        if position == offset:
            before = columns
        if character == "\t":
            cell = " " * (_TAB - columns % _TAB)
            columns += len(cell)
        elif not character.isprintable():
            cell = "?"
            columns += 1
        else:
            cell = character
            wide = unicodedata.east_asian_width(character) in "WF"
            columns += 0 if unicodedata.combining(character) else 2 if wide else 1
        cells.append(cell)
    if offset >= len(text):
        before = columns
    return head + "".join(cells).rstrip() + tail, len(head) + before
