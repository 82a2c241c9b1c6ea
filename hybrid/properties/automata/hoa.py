"""Deterministic automata in the Hanoi omega-automata format, written and read, and as drawings."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.base.graph_drawing import GraphArrow, GraphNode, GraphPicture
from hybrid.properties.automata.automaton import (
    ALL,
    MOST_PROPOSITIONS,
    NONE,
    Acceptance,
    DeterministicAutomaton,
    all_accepted,
    any_accepted,
    edges,
    finitely,
    guard_text,
    infinitely,
    mark_list,
)
from mtbdd.language.tokens import read_source, unknown_byte


def automaton_picture(automaton: DeterministicAutomaton) -> GraphPicture:
    """Return the picture of an automaton: states by their distance from the initial one, of a double line."""
    layers = {automaton.initial: 0}
    order = [automaton.initial]
    arrows = []
    for state in order:
        for target, text in _labelled_edges(automaton, state):
            if target not in layers:
                layers[target] = layers[state] + 1
                order.append(target)
            arrows.append((state, target, text))
    place = {state: number for number, state in enumerate(order)}
    nodes = [GraphNode((str(state),), layers[state], "node", state == automaton.initial) for state in order]
    return GraphPicture(
        nodes,
        [GraphArrow(place[source], place[target], text) for source, target, text in arrows],
        title=f"{automaton.name}: {automaton.acceptance}",
    )


def _labelled_edges(automaton: DeterministicAutomaton, state: int) -> Iterator[tuple[int, str]]:
    """Yield the next states with guards and marks, in braces, as text."""
    for letters, target, marks in edges(automaton, state):
        guard = guard_text(letters, len(automaton.propositions), lambda i: automaton.propositions[i])
        yield target, guard + _braces(marks)


def hoa_text(automaton: DeterministicAutomaton) -> str:
    """Return an automaton in the HOA format ([HOA15]), version 1, with labels and marks on transitions.

    Time: O(n 2**k) for n states and k propositions, and the search for short labels.
    """
    return "\n".join(_lines(automaton)) + "\n"


def _lines(automaton: DeterministicAutomaton) -> Iterator[str]:
    names = "".join(f" {_quoted(name)}" for name in automaton.propositions)
    yield "HOA: v1"
    if automaton.name:
        yield f"name: {_quoted(automaton.name)}"
    yield f"States: {automaton.n_states}"
    yield f"Start: {automaton.initial}"
    yield f"AP: {len(automaton.propositions)}{names}"
    known = {"Inf(0)": "Buchi", "Fin(0)": "co-Buchi", "t": "all", "f": "none"}
    if str(automaton.acceptance) in known:
        yield f"acc-name: {known[str(automaton.acceptance)]}"
    yield f"Acceptance: {automaton.n_marks} {automaton.acceptance}"
    yield "properties: trans-labels explicit-labels trans-acc deterministic complete"
    yield "--BODY--"
    for state in range(automaton.n_states):
        yield f"State: {state}"
        for letters, target, marks in edges(automaton, state):
            label = guard_text(letters, len(automaton.propositions), str)
            yield f"[{label}] {target}{_braces(marks)}"
    yield "--END--"


def _braces(marks: int) -> str:
    return f" {{{' '.join(map(str, mark_list(marks)))}}}" if marks else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# The words of a text in the Hanoi omega-automata format.

_WORD = re.compile(
    r"""(?P<space>\s+) | (?P<comment>/\*) | (?P<section>--(?:BODY|END|ABORT)--)
    | (?P<header>[A-Za-z_][A-Za-z0-9_-]*:) | (?P<alias>@[A-Za-z0-9_-]+) | (?P<version>v1\.1\b)
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<number>[0-9]+) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<sign>[!&|()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_LONGEST = 9  # digits of a number


class HoaTokens:
    """The words of a text, one after another.

    Raises InterchangeError: from all methods: the text does not go on as it should. `kind`: of the word that
    is next: "section", "header", "alias", "version", "name", "number", "string", "sign", or "end". `text`:
    the word itself; of a string what stands between its quotes.
    """

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self._source = text
        self._place = self._start = 0
        self.kind = self.text = ""
        self.advance()

    def advance(self) -> str:
        """Go to the next word; return the one that was next."""
        before = self.text
        while True:
            self._start = self._place
            if self._place == len(self._source):
                self.kind, self.text = "end", ""
                return before
            found = _WORD.match(self._source, self._place)
            unknown = unknown_byte(self._source[self._place] if found is None else found.group())
            if unknown is not None:
                self._start += unknown[0]
                raise self._fault(unknown[1])
            if found is None:
                raise self._fault(f"expected a word of the HOA format, got {self._source[self._place]!r}")
            self._place = found.end()
            self.kind, self.text = str(found.lastgroup), found.group()
            if self.kind == "comment":
                self._skip_comment()
            elif self.kind != "space":
                break
        if self.kind == "string":
            self.text = re.sub(r"\\(.)", r"\1", self.text[1:-1], flags=re.DOTALL)
        return before

    def _skip_comment(self) -> None:
        depth = 1
        while depth:
            found = _COMMENT.search(self._source, self._place)
            if found is None:
                raise self._fault("expected '*/' to close the comment, got the end of the text")
            self._place = found.end()
            depth += 1 if found.group() == "/*" else -1

    def at(self, text: str) -> bool:
        """Return whether a sign or section is next."""
        return self.text == text and self.kind in ("sign", "section", "header")

    def take(self, text: str) -> bool:
        """Step over a sign or section if it is next."""
        if not self.at(text):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        """Step over a sign or section."""
        if not self.take(text):
            self.fail(f"expected '{text}', got {self.shown()}")

    def number(self, what: str, below: int | None = None) -> int:
        """Read a number."""
        if self.kind != "number" or len(self.text) > _LONGEST:
            self.fail(f"expected {what}, a number, got {self.shown()}")
        if below is not None and int(self.text) >= below:
            self.fail(f"expected {what} below {below}, got {self.text}")
        return int(self.advance())

    def string(self, what: str) -> str:
        """Read a text in double quotes."""
        if self.kind != "string":
            self.fail(f"expected {what} in double quotes, got {self.shown()}")
        return self.advance()

    def shown(self) -> str:
        """Return the next word for a message."""
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= 40 else self.text[:37] + "...")

    def fail(self, message: str) -> NoReturn:
        """Raise an error at the next word."""
        raise self._fault(message)

    def _fault(self, message: str) -> InterchangeError:
        line = bisect_right(self._lines, self._start)
        column = self._start - self._lines[line - 1] + 1
        return InterchangeError(f"{self._file}:{line}:{column}: {message}")


# The header of a text in the Hanoi omega-automata format.

MOST_MARKS = 60
_VERSIONS = ("v1", "v1.1")  # the second, of Spot, has properties that are declared not to hold
_ONCE = ("HOA:", "States:", "Start:", "AP:", "Acceptance:", "acc-name:", "tool:", "name:")
_READ = frozenset((*_ONCE, "Alias:", "properties:"))
Letters = NDArray[np.bool_]
Read = TypeVar("Read")


def _joined(
    tokens: HoaTokens,
    atom: Callable[[], Read],
    both: Callable[[list[Read]], Read],
    either: Callable[[list[Read]], Read],
) -> Read:
    """Read what is joined by `&` and, weaker, by `|`."""
    terms = []
    while True:
        factors = [atom()]
        while tokens.take("&"):
            factors.append(atom())
        terms.append(both(factors))
        if not tokens.take("|"):
            return either(terms)


class LabelReader:
    """Label expressions as sets of letters, arrays of shape (2**k,)."""

    def __init__(self) -> None:
        self.n_propositions: int | None = None
        self.aliases: dict[str, Letters] = {}

    def expression(self, tokens: HoaTokens) -> Letters:
        """Read a label."""
        return _joined(tokens, lambda: self._literal(tokens), np.logical_and.reduce, np.logical_or.reduce)

    def _literal(self, tokens: HoaTokens) -> Letters:
        if self.n_propositions is None:
            tokens.fail("expected the header 'AP:' before a label")
        everything = np.arange(1 << self.n_propositions)
        if tokens.take("!"):
            return ~self._literal(tokens)
        if tokens.take("("):
            found = self.expression(tokens)
            tokens.expect(")")
            return found
        if tokens.kind == "name" and tokens.text in ("t", "f"):
            return np.full(everything.size, tokens.advance() == "t")
        if tokens.kind == "alias":
            if tokens.text not in self.aliases:
                tokens.fail(f"expected an alias that is defined above, got {tokens.shown()}")
            return self.aliases[tokens.advance()]
        number = tokens.number("a proposition, an alias, t, f, '!' or '('", self.n_propositions)
        return (everything >> number & 1).astype(bool)


@dataclass
class HoaHeader:
    """The header of a HOA file."""

    n_states: int | None = None  # if it is given
    initial: int = -1
    propositions: tuple[str, ...] = ()
    labels: LabelReader = field(default_factory=LabelReader)
    n_marks: int = 0  # marks that the text may use
    acceptance: Acceptance = ALL  # with marks of its own for the complements of the text's marks
    # by such a mark the mark of which it is the complement
    complements: dict[int, int] = field(default_factory=dict)
    name: str = ""


def read_hoa_header(tokens: HoaTokens) -> HoaHeader:
    """Read everything before `--BODY--`; `InterchangeError` where it does not follow the format."""
    header = HoaHeader()
    if not tokens.at("HOA:"):
        tokens.fail(f"expected 'HOA: v1' at the beginning, got {tokens.shown()}")
    seen: set[str] = set()
    while tokens.kind == "header":
        key = tokens.text
        if key in _ONCE and key in seen:
            if key == "Start:":
                tokens.fail(
                    "expected one initial state, got another 'Start:': nondeterministic automata are not read"
                )
            tokens.fail(f"expected the header '{key}' once, got it again")
        if key not in _READ and key[0].isupper():
            tokens.fail(f"expected a header of version 1, got '{key}', which may change the meaning")
        seen.add(key)
        tokens.advance()
        _item(key, tokens, header)
    for key in ("Acceptance:", "Start:"):
        if key not in seen:
            tokens.fail(f"expected a header '{key}' before the body, got {tokens.shown()}")
    if header.labels.n_propositions is None:
        header.labels.n_propositions = 0
    if header.n_states is not None and header.initial >= header.n_states:
        tokens.fail(f"expected an initial state below {header.n_states}, got {header.initial}")
    return header


def _item(key: str, tokens: HoaTokens, header: HoaHeader) -> None:
    """Read what follows the name of a header."""
    if key == "HOA:":
        if tokens.text not in _VERSIONS:
            tokens.fail(f"expected version 'v1' or 'v1.1' of the format, got {tokens.shown()}")
        tokens.advance()
    elif key == "States:":
        header.n_states = tokens.number("the number of states")
    elif key == "Start:":
        header.initial = tokens.number("the initial state")
        if tokens.at("&"):
            tokens.fail(
                "expected one initial state, got several joined by '&': alternating automata are not read"
            )
    elif key == "AP:":
        count = tokens.number("the number of propositions")
        if count > MOST_PROPOSITIONS:
            tokens.fail(f"expected at most {MOST_PROPOSITIONS} propositions, got {count}")
        header.propositions = tuple(tokens.string("a proposition") for _ in range(count))
        if len(set(header.propositions)) < count:
            tokens.fail("expected propositions with different names, got one twice")
        header.labels.n_propositions = count
    elif key == "Alias:":
        if tokens.kind != "alias":
            tokens.fail(f"expected an alias, like @a, got {tokens.shown()}")
        alias = tokens.advance()
        if alias in header.labels.aliases:
            tokens.fail(f"expected an alias once, got a second definition of {alias!r}")
        header.labels.aliases[alias] = header.labels.expression(tokens)
    elif key == "Acceptance:":
        header.n_marks = tokens.number("the number of marks")
        if header.n_marks > MOST_MARKS:
            tokens.fail(f"expected at most {MOST_MARKS} marks, got {header.n_marks}")
        header.acceptance = _condition(tokens, header)
    elif key == "name:":
        header.name = tokens.string("a name")
    else:
        # Tokens of headers that are for people or other tools.
        while tokens.kind in ("name", "number", "string") or (key == "properties:" and tokens.at("!")):
            tokens.advance()


def _condition(tokens: HoaTokens, header: HoaHeader) -> Acceptance:
    return _joined(tokens, lambda: _condition_atom(tokens, header), all_accepted, any_accepted)


def _condition_atom(tokens: HoaTokens, header: HoaHeader) -> Acceptance:
    if tokens.take("("):
        found = _condition(tokens, header)
        tokens.expect(")")
        return found
    if tokens.kind != "name" or tokens.text not in ("t", "f", "Inf", "Fin"):
        tokens.fail(
            f"expected an acceptance condition, Inf(...), Fin(...), t, f or '(', got {tokens.shown()}"
        )
    kind = tokens.advance()
    if kind in ("t", "f"):
        return ALL if kind == "t" else NONE
    tokens.expect("(")
    absent = tokens.take("!")
    mark = tokens.number("a mark", header.n_marks)
    tokens.expect(")")
    if absent:
        by_mark = {old: new for new, old in header.complements.items()}
        new = by_mark.get(mark, header.n_marks + len(header.complements))
        if new > MOST_MARKS:
            tokens.fail(f"expected at most {MOST_MARKS} marks with complements, got more")
        header.complements[new] = mark
        mark = new
    return infinitely(mark) if kind == "Inf" else finitely(mark)


_MOST_TRANSITIONS = 1 << 24


def read_hoa(path: str | os.PathLike[str]) -> DeterministicAutomaton:
    """Read a file, see `parse_hoa`; `SourceError` if it cannot be read as text."""
    return parse_hoa(read_source(path, "HOA"), os.fspath(path))


def parse_hoa(text: str, file: str = "<automaton>") -> DeterministicAutomaton:
    """Read one deterministic automaton in the HOA format, version 1 ([HOA15]) or 1.1.

    `text`: with acceptance on states or transitions, labels on states or transitions or implicit ones,
    aliases. `file`: name of the text, for messages. Returns DeterministicAutomaton: words on which the text's
    automaton stops are rejected: they lead to a state more. Raises InterchangeError: the text does not follow
    the format, or holds what is not read: alternation, nondeterminism, several automata, more than 12
    propositions, 60 marks or 2**24 transitions. The message has line and column.

    Time: O(length of the text + n 2**k) for n states and k propositions.
    """
    tokens = HoaTokens(text, file)
    try:
        header = read_hoa_header(tokens)
        return _Body(tokens, header).read()
    except RecursionError:
        raise InterchangeError(f"{file}: expected expressions nested less deeply") from None


class _Body:
    """Reads what stands between `--BODY--` and `--END--`."""

    def __init__(self, tokens: HoaTokens, header: HoaHeader) -> None:
        self._tokens, self._header = tokens, header
        self._n_letters = 1 << len(header.propositions)
        self._rows: dict[int, NDArray[np.int64]] = {}
        self._marks: dict[int, NDArray[np.int64]] = {}
        self._targets = {header.initial}

    def read(self) -> DeterministicAutomaton:
        tokens = self._tokens
        tokens.expect("--BODY--")
        while tokens.at("State:"):
            self._state()
        if tokens.at("--ABORT--"):
            tokens.fail("expected a whole automaton, got '--ABORT--': its writer gave up")
        if not tokens.at("--END--"):
            tokens.fail(f"expected 'State:' or '--END--', got {tokens.shown()}")
        declared = self._header.n_states
        missing = (self._targets | set(range(declared or 0))) - self._rows.keys()
        if missing:
            tokens.fail(f"expected a line 'State: {min(missing)}', got none; define every state")
        n = max(self._rows) + 1
        if len(self._rows) < n:
            tokens.fail(f"expected states numbered from 0 without gaps, got {len(self._rows)} up to {n - 1}")
        tokens.advance()
        if tokens.kind != "end":
            tokens.fail(f"expected one automaton, got {tokens.shown()} after its end; split the file")
        return self._automaton(n)

    def _automaton(self, n: int) -> DeterministicAutomaton:
        """Return the automaton, complete and with plain marks."""
        successors = np.stack([self._rows[i] for i in range(n)])
        marks = np.stack([self._marks[i] for i in range(n)])
        acceptance = self._header.acceptance
        for new, old in self._header.complements.items():
            marks |= (~(marks >> old) & 1) << new
        missing = successors < 0
        if missing.any():
            acceptance, lost = _rejecting(acceptance)
            successors = np.vstack((np.where(missing, n, successors), np.full((1, self._n_letters), n)))
            marks = np.vstack((np.where(missing, lost, marks), np.full((1, self._n_letters), lost)))
        return DeterministicAutomaton(
            self._header.propositions,
            self._header.initial,
            successors.astype(np.int64),
            marks.astype(np.int64),
            acceptance,
            self._header.name,
        )

    def _state(self) -> None:
        """Read a state and its transitions."""
        tokens = self._tokens
        tokens.expect("State:")
        label = self._label()
        state = tokens.number("a state", self._header.n_states)
        if state in self._rows:
            tokens.fail(f"expected every state once, got a second 'State: {state}'")
        if (len(self._rows) + 1) * self._n_letters > _MOST_TRANSITIONS:
            tokens.fail(
                f"expected at most {_MOST_TRANSITIONS} transitions, one a state and valuation, got more"
            )
        if tokens.kind == "string":
            tokens.advance()
        own = self._signature()
        row = self._rows[state] = np.full(self._n_letters, -1, np.int64)
        marks = self._marks[state] = np.zeros(self._n_letters, np.int64)
        implicit = 0
        labelled = False
        while tokens.at("[") or tokens.kind == "number":
            given = self._label()
            if given is not None and (label is not None or implicit):
                tokens.fail("expected labels on the state, on all its transitions or nowhere, got a mixture")
            labelled |= given is not None
            letters = label if given is None else given
            if letters is None:
                if labelled or implicit == self._n_letters:
                    tokens.fail(
                        f"expected {self._n_letters} transitions without labels or a label on each, got more"
                    )
                letters = np.arange(self._n_letters) == implicit
                implicit += 1
            target = tokens.number("the next state", self._header.n_states)
            if tokens.at("&"):
                tokens.fail(
                    "expected a deterministic automaton, got universal branching ('&' between states): "
                    "alternating automata are not read; translate it first"
                )
            if (row[letters] >= 0).any():
                tokens.fail(
                    f"expected a deterministic automaton, got two transitions of state {state} for one "
                    "valuation: nondeterministic automata are not read; determinise it first"
                )
            row[letters] = target
            marks[letters] = own | self._signature()
            self._targets.add(target)
        if implicit and implicit != self._n_letters:
            tokens.fail(f"expected {self._n_letters} transitions without labels, got {implicit}")

    def _signature(self) -> int:
        """Read marks in braces, if there are any."""
        found = 0
        if self._tokens.take("{"):
            while not self._tokens.take("}"):
                found |= 1 << self._tokens.number("a mark", self._header.n_marks)
        return found

    def _label(self) -> NDArray[np.bool_] | None:
        """Read a label in brackets, if there is one, as the set of its letters."""
        if not self._tokens.take("["):
            return None
        found = self._header.labels.expression(self._tokens)
        self._tokens.expect("]")
        return found


def _rejecting(acceptance: Acceptance) -> tuple[Acceptance, int]:
    """Return marks that are rejected if met for ever; the condition gets one if it has none."""
    pairs = acceptance.negated().pairs()
    if pairs:
        return acceptance, pairs[0][1]
    new = acceptance.marks.bit_length()
    return all_accepted((acceptance, finitely(new))), 1 << new
