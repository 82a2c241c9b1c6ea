"""Reading deterministic automata in the Hanoi omega-automata format."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.properties.automata.acceptance import Acceptance, all_accepted, finitely
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.hoa_header import HoaHeader, read_hoa_header
from hybrid.properties.automata.hoa_tokens import HoaTokens
from mtbdd.language.sources import read_source

_MOST_TRANSITIONS = 1 << 24


def read_hoa(path: str | os.PathLike[str]) -> DeterministicAutomaton:
    """Read a file, see `parse_hoa`; `SourceError` if it cannot be read as text."""
    return parse_hoa(read_source(path, "HOA"), os.fspath(path))


def parse_hoa(text: str, file: str = "<automaton>") -> DeterministicAutomaton:
    """Read one deterministic automaton in the HOA format, version 1 ([HOA15]) or 1.1.

    Parameters
    ----------
    text : str
        With acceptance on states or transitions, labels on states or transitions or implicit ones, aliases.
    file : str
        Name of the text, for messages.

    Returns
    -------
    DeterministicAutomaton
        Words on which the text's automaton stops are rejected: they lead to a state more.

    Raises
    ------
    InterchangeError
        The text does not follow the format, or holds what is not read: alternation, nondeterminism,
        several automata, more than 12 propositions, 60 marks or 2**24 transitions.  The message has line and
        column.

    Notes
    -----
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
