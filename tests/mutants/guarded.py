"""Statements that bounds rest on: each has a marker with its lemma's name, and a mutation.

    python -m tests.mutants.guarded            what is wrong, exit status 1 if anything is
    python -m tests.mutants.guarded --list     every marker with its lemma and its mutations
    python -m tests.mutants.guarded --write    write the lists of statements that still lack a marker

A page names a lemma by an anchor, ``<a id="lemma-NAME"></a>``.  A statement names it in a comment, on one of
its own lines or on the lines above it: ``# lemma: NAME``, or ``# lemma: NAME, OTHER``.  A mutation guards a
marked statement if what it changes lies within the statement's lines.

A lemma has two homes besides: the docstring of a function or class around a statement that it serves says
``Lemma: NAME (docs/PAGE.md)``, and a test stands below ``# lemma: NAME`` whose file a mutation of such a
statement names: the one that fails when the statement is changed.

The rooms of bounds are searched for directed roundings, for arithmetic with errors, units, slacks and
underflow, and for confirmations.  Those without a marker stand in ``unmarked/ROOM.txt``, a line each, which
may only become shorter.  What looks like one of them and is none, because no bound rests on it, stands in
``spared/ROOM.txt``: the reason, `` | `` and the statement.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.mutants.mutations import FOLDER, ROOT, Mutation, read_mutations

PAGES = ("bounds", "averages", "multi", "lumping", "certificates")
TREES = ("hybrid", "mtbdd")
ROOMS = {
    "multi": ("hybrid/analysis/multi/",),
    "analysis": ("hybrid/analysis/",),
    "certificates": ("hybrid/checking/certificates/",),
    "solvers": ("hybrid/solvers/", "hybrid/matrix/space/"),
    "operators": ("hybrid/matrix/operators/",),
    "lumping": ("hybrid/models/lumping/",),
    "checking": ("hybrid/checking/", "hybrid/base/"),
    "linear": ("hybrid/analysis/linear/",),
    "interchange": ("hybrid/models/interchange/",),
    "mtbdd": ("mtbdd/",),
}
"""Files of each room, by how their paths begin; a file belongs to the first that fits."""

OUTSIDE = (
    "hybrid/analysis/checkpoints/",
    "hybrid/analysis/exact/",
    "hybrid/analysis/graphs/",
    "hybrid/analysis/run/",
    "hybrid/base/communicators.py",
    "hybrid/base/disk.py",
    "hybrid/base/figures.py",
    "hybrid/base/graph_drawing.py",
    "hybrid/base/state_values.py",
    "hybrid/checking/simulation/",
)
"""Folders within them that round nothing, or whose numbers are exact or estimates."""

UNMARKED, SPARED = FOLDER / "unmarked", FOLDER / "spared"
LEMMAS = UNMARKED / "lemmas.txt"

ANCHOR = re.compile(r'<a id="lemma-([a-z0-9-]+)"></a>')
MARKER = re.compile(r"#\s*lemma: ([a-z0-9-]+(?:, [a-z0-9-]+)*)\s*$")

TOLD = re.compile(r"^Lemmas?: (.*\.)$", re.MULTILINE)
NAMED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*(?=,| \(docs/)")

_ERROR = re.compile(
    r"(?:^|_)(?:slack|underflow|units?|UNITS?|TINY|TINIEST|SMALLEST|LEAST|error|lost|absolute)$|entry_units"
)
"""Names of errors; plurals such as ``errors`` are lists of messages."""
_DIRECTED = {
    "nextafter", "rounded_up", "rounded_down", "outward", "widened", "scaled_bounds", "sum_slack",
    "ratio_units", "step_slack", "choice_slack", "compound",
}  # fmt: skip
_CONFIRMED = re.compile(r"(?:^|_)(?:confirmed|inductive|proved|verified|verifies|is_clear|unsure)$|^meets$")
_EXTREMES = {"max", "min", "maximum", "minimum"}
_SMALL_POWER = -40  # of two: from here on a constant stands for a rounding


@dataclass(frozen=True)
class Statement:
    """A statement, without the body if it has one.

    Attributes
    ----------
    file : str
    first, last : int
        Lines, from 1.
    text : str
        The first line, without comments.
    """

    file: str
    first: int
    last: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.first}: {self.text}"


@dataclass(frozen=True)
class Marker:
    """A comment that names lemmas, and the statement that it belongs to; None if it stands alone."""

    file: str
    line: int
    lemmas: tuple[str, ...]
    statement: Statement | None


@dataclass(frozen=True)
class Source:
    """What one file has."""

    found: list[Statement]
    markers: list[Marker]


# ------------------------------------------------------------------ what to look for


def is_guarded(statement: ast.stmt) -> bool:
    """Return whether a statement is one that bounds may rest on."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    named = [x for target in targets for x in ast.walk(target)]
    for part in _own_parts(statement):
        if any(_is_rounding(node) for node in ast.walk(part)):
            return True
        if any(_matches(_CONFIRMED, x) for x in named):
            return True
        if any(_matches(_ERROR, x) for x in named) and any(isinstance(x, ast.BinOp) for x in ast.walk(part)):
            return True
    return False


def _own_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return a statement without the body and without messages."""
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    if isinstance(statement, ast.For):
        return [statement.iter]
    if isinstance(statement, ast.With):
        return [item.context_expr for item in statement.items]
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
    return [statement] if isinstance(statement, simple) else []


def _is_rounding(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name in _DIRECTED or _matches(_CONFIRMED, node.func):
            return name != "meets" or isinstance(node.func, ast.Name)
        return name in _EXTREMES and any(_has_error(argument) for argument in node.args)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return _is_small_power(node)
        arithmetic = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div))
        return arithmetic and (_has_error(node.left) or _has_error(node.right))
    if isinstance(node, ast.AugAssign):
        return _has_error(node.target) or _has_error(node.value)
    if isinstance(node, ast.Compare):
        ordered = any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        return ordered and _has_error(node)
    return False


def _is_small_power(node: ast.BinOp) -> bool:
    base, power = node.left, node.right
    if not (isinstance(base, ast.Constant) and base.value in (2, 2.0) and isinstance(power, ast.UnaryOp)):
        return False
    return isinstance(power.operand, ast.Constant) and -float(power.operand.value) <= _SMALL_POWER  # type: ignore[arg-type]


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _matches(pattern: re.Pattern[str], node: ast.AST) -> bool:
    return bool(pattern.search(_name(node)))


def _has_error(node: ast.AST) -> bool:
    return any(_matches(_ERROR, x) for x in ast.walk(node))


# ------------------------------------------------------------------ reading


def read_source(text: str, file: str) -> Source:
    """Return what bounds may rest on in a file, and its markers."""
    lines = text.splitlines()
    statements: list[tuple[Statement, ast.stmt]] = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
        first = lines[node.lineno - 1].partition("  #")[0].strip()
        statements.append((Statement(file, node.lineno, max(last, node.lineno), first), node))
    found = sorted((s for s, node in statements if is_guarded(node)), key=lambda s: s.first)
    return Source(found, list(_markers(text, file, [s for s, _ in statements])))


def _markers(text: str, file: str, statements: list[Statement]) -> Iterator[Marker]:
    if "lemma:" not in text:
        return
    begins = {s.first: s for s in sorted(statements, key=lambda s: s.first, reverse=True)}
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = MARKER.search(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line = token.start[0]
        if lines[line - 1].lstrip().startswith("#"):
            below = line
            while below <= len(lines) and lines[below - 1].lstrip().startswith("#"):
                below += 1
            owner = begins.get(below)
        else:
            around = [s for s in statements if s.first <= line <= s.last]
            owner = min(around, key=lambda s: s.last - s.first, default=None)
        yield Marker(file, line, tuple(match[1].split(", ")), owner)


def room_of(file: str) -> str | None:
    """Return the room that a file belongs to; None outside of the rooms of bounds."""
    if file.startswith(OUTSIDE):
        return None
    return next((room for room, starts in ROOMS.items() if file.startswith(starts)), None)


def read_sources(root: Path = ROOT) -> dict[str, Source]:
    """Return what all files have, by their paths; outside of the rooms markers alone."""
    found = {}
    for tree in TREES:
        for path in sorted((root / tree).rglob("*.py")):
            file, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            if room_of(file) is not None or "lemma:" in text:
                source = read_source(text, file)
                found[file] = source if room_of(file) else Source([], source.markers)
    return found


def read_lemmas(root: Path = ROOT) -> dict[str, str]:
    """Return the pages' lemmas, with the page of each.

    Raises
    ------
    ValueError
        Two lemmas have one name.
    """
    found: dict[str, str] = {}
    for page in PAGES:
        for name in ANCHOR.findall((root / "docs" / f"{page}.md").read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"docs/{page}.md: a lemma of docs/{found[name]}.md is called {name}, too")
            found[name] = page
    return found


def changed_lines(mutation: Mutation, text: str) -> tuple[int, int]:
    """Return the first and the last line of what a mutation changes."""
    old, new, head = mutation.old, mutation.new, 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    # A term that is left out begins and ends with what surrounds it.
    core = old[head : len(old) - tail]
    head += len(core) - len(core.lstrip())
    core = core.strip()
    begin = text.index(old) + min(head, len(old) - 1)
    first = text.count("\n", 0, begin) + 1
    return first, first + core.count("\n")


def mutations_of(statement: Statement, mutations: list[Mutation], text: str) -> list[Mutation]:
    """Return the mutations that change a statement."""
    found = []
    for mutation in mutations:
        if text.count(mutation.old) != 1:
            continue  # told by test_mutations.py
        first, last = changed_lines(mutation, text)
        if first <= statement.last and last >= statement.first:
            found.append(mutation)
    return found


# ------------------------------------------------------------------ what is wrong


def unmarked(sources: dict[str, Source]) -> dict[str, list[str]]:
    """Return by room the statements without a marker, those that are spared left out."""
    found: dict[str, list[str]] = {room: [] for room in ROOMS}
    for file, source in sources.items():
        marked = {m.statement for m in source.markers}
        room = room_of(file)
        if room is not None:
            found[room] += [str(s) for s in source.found if s not in marked]
    return {room: _less(own, spared(room)) for room, own in found.items()}


def _less(found: list[str], other: list[str]) -> list[str]:
    """Return what is found more often than in another list, in order."""
    left, rest = Counter(other), []
    for text in found:
        if left[text]:
            left[text] -= 1
        else:
            rest.append(text)
    return rest


def spared(room: str) -> list[str]:
    """Return the statements of a room that no bound rests on.

    Raises
    ------
    ValueError
        A line has no reason.
    """
    path, found = SPARED / f"{room}.txt", []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        reason, bar, text = line.partition(" | ")
        if not (bar and reason.strip()):
            raise ValueError(f"{path.name}: expected the reason, ' | ' and the statement, got {line!r}")
        found.append(text)
    return found


def allowed(room: str) -> list[str]:
    """Return the statements of a room that may lack a marker still."""
    path = UNMARKED / f"{room}.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def problems(
    sources: dict[str, Source], lemmas: dict[str, str], mutations: list[Mutation], root: Path = ROOT
) -> list[str]:
    """Return what is wrong: markers without a lemma or a mutation, lemmas and statements without a marker."""
    found = []
    by_file: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        by_file[mutation.file].append(mutation)
    used: set[str] = set()
    for file, source in sources.items():
        text = (root / file).read_text(encoding="utf-8") if source.markers else ""
        for marker in source.markers:
            used.update(marker.lemmas)
            found += [
                f"{file}:{marker.line}: no page has a lemma {name}; write its name as the anchor in the page "
                f'has it, or add <a id="lemma-{name}"></a> to it'
                for name in marker.lemmas
                if name not in lemmas
            ]
            if marker.statement is None:
                found.append(f"{file}:{marker.line}: the marker belongs to no statement; write it above one")
            elif not mutations_of(marker.statement, by_file[file], text):
                found.append(f"{marker.statement.place}: no mutation changes it; add one to tests/mutants")
    missing = sorted(set(lemmas) - used)
    found += _differences(missing, allowed("lemmas"), LEMMAS, "no statement names the lemma")
    for room, own in unmarked(sources).items():
        path = UNMARKED / f"{room}.txt"
        found += _differences(own, allowed(room), path, "no marker names the lemma that it serves")
    every = {str(s) for source in sources.values() for s in source.found}
    found += [
        f"spared/{room}.txt: take out what is gone or has changed: {text}"
        for room in ROOMS
        for text in spared(room)
        if text not in every
    ]
    return found


def homeless(
    sources: dict[str, Source], lemmas: dict[str, str], mutations: list[Mutation], root: Path = ROOT
) -> list[str]:
    """Return the lemmas that no docstring around their statements names, and those that no test names."""
    told: set[str] = set()
    tested: dict[str, set[str]] = defaultdict(set)
    for file, source in sources.items():
        if not source.markers:
            continue
        text = (root / file).read_text(encoding="utf-8")
        own = [m for m in mutations if m.file == file]
        scopes = [
            (node.lineno, node.end_lineno or node.lineno, _named_lemmas(ast.get_docstring(node) or ""))
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ]
        for marker in source.markers:
            around = set().union(*(named for a, b, named in scopes if a <= marker.line <= b))
            for lemma in marker.lemmas:
                told |= {lemma} & around
                if marker.statement is not None:
                    for mutation in mutations_of(marker.statement, own, text):
                        tested[lemma].update(re.split("::| ", test)[0] for test in mutation.tests)
    marked = {
        lemma: {path for file in places for path in _files(root / file) if lemma in _marked_tests(path)}
        for lemma, places in tested.items()
    }
    return [
        *(
            f"docs/{page}.md: lemma {name}: name it in the docstring of the function that relies on it: "
            f"`Lemma: {name} (docs/{page}.md).`"
            for name, page in lemmas.items()
            if name not in told
        ),
        *(
            f"docs/{page}.md: lemma {name}: write `# lemma: {name}` above a test that a mutation of it names"
            for name, page in lemmas.items()
            if not marked.get(name)
        ),
    ]


def _named_lemmas(docstring: str) -> set[str]:
    return {name for told in TOLD.findall(docstring) for name in NAMED.findall(told)}


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("test_*.py")) if place.is_dir() else [place]


@cache
def _marked_tests(path: Path) -> set[str]:
    """Return the lemmas above the tests of a file."""
    found, waiting = set[str](), set[str]()
    for line in path.read_text(encoding="utf-8").splitlines():
        match = MARKER.match(line.strip())
        if match is not None:
            waiting.update(match[1].split(", "))
        elif line.lstrip().startswith("def test_"):
            found |= waiting
            waiting = set()
    return found


def _differences(found: list[str], known: list[str], path: Path, what: str) -> list[str]:
    """Compare what lacks a marker with a list of what may lack it."""
    name = path.relative_to(ROOT)
    more, less = Counter(found) - Counter(known), Counter(known) - Counter(found)
    return [
        *(f"{text}: {what}; add `# lemma: NAME`, and a mutation" for text in more.elements()),
        *(f"{name}: take out what has a marker now, or has changed: {text}" for text in less.elements()),
    ]


def write_lists(sources: dict[str, Source], lemmas: dict[str, str]) -> None:
    """Write what lacks a marker."""
    UNMARKED.mkdir(exist_ok=True)
    used = {name for s in sources.values() for m in s.markers for name in m.lemmas}
    lists = {**unmarked(sources), "lemmas": sorted(set(lemmas) - used)}
    for room, own in lists.items():
        path = UNMARKED / f"{room}.txt"
        if own:
            path.write_text("".join(f"{text}\n" for text in own), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)


def main() -> int:
    """Read the arguments, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="find statements of bounds that no lemma or mutation guards")
    parser.add_argument("--list", action="store_true", help="list every marker with its mutations")
    parser.add_argument("--write", action="store_true", help="write the lists of what lacks a marker")
    options = parser.parse_args()
    sources, lemmas, mutations = read_sources(), read_lemmas(), read_mutations()
    if options.write:
        write_lists(sources, lemmas)
    if options.list:
        for file, source in sources.items():
            text = (ROOT / file).read_text(encoding="utf-8")
            own = [m for m in mutations if m.file == file]
            for marker in source.markers:
                if marker.statement is not None:
                    names = ", ".join(m.name for m in mutations_of(marker.statement, own, text))
                    print(f"{marker.statement.place}\n    {', '.join(marker.lemmas)}: {names}")
    found = problems(sources, lemmas, mutations)
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
