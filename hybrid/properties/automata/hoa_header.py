"""The header of a text in the Hanoi omega-automata format."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.properties.automata.acceptance import (
    ALL,
    NONE,
    Acceptance,
    all_accepted,
    any_accepted,
    finitely,
    infinitely,
)
from hybrid.properties.automata.automaton import MOST_PROPOSITIONS
from hybrid.properties.automata.hoa_tokens import HoaTokens

MOST_MARKS = 60
_VERSIONS = ("v1", "v1.1")  # the second, of Spot, has properties that are told not to hold
_ONCE = ("HOA:", "States:", "Start:", "AP:", "Acceptance:", "acc-name:", "tool:", "name:")
_READ = frozenset((*_ONCE, "Alias:", "properties:"))

Letters = NDArray[np.bool_]


class Labels:
    """Label expressions as sets of letters, arrays of shape (2**k,)."""

    def __init__(self) -> None:
        self.n_propositions: int | None = None
        self.aliases: dict[str, Letters] = {}

    def expression(self, tokens: HoaTokens) -> Letters:
        """Read a disjunction."""
        result = self._conjunction(tokens)
        while tokens.take("|"):
            result = result | self._conjunction(tokens)
        return result

    def _conjunction(self, tokens: HoaTokens) -> Letters:
        result = self._literal(tokens)
        while tokens.take("&"):
            result = result & self._literal(tokens)
        return result

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
    """What a header says.

    Attributes
    ----------
    n_states : int or None
        If it is told.
    initial : int
    propositions : tuple of str
    labels : Labels
    n_marks : int
        Marks that the text may use.
    acceptance : Acceptance
        With marks of its own for the complements of the text's marks.
    complements : dict of int to int
        By such a mark the mark whose absence it tells.
    name : str
    """

    n_states: int | None = None
    initial: int = -1
    propositions: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)
    n_marks: int = 0
    acceptance: Acceptance = ALL
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
        # What may stand in headers that are for people or other tools.
        while tokens.kind in ("name", "number", "string") or (key == "properties:" and tokens.at("!")):
            tokens.advance()


def _condition(tokens: HoaTokens, header: HoaHeader) -> Acceptance:
    parts = [_condition_conjunction(tokens, header)]
    while tokens.take("|"):
        parts.append(_condition_conjunction(tokens, header))
    return any_accepted(parts)


def _condition_conjunction(tokens: HoaTokens, header: HoaHeader) -> Acceptance:
    parts = [_condition_atom(tokens, header)]
    while tokens.take("&"):
        parts.append(_condition_atom(tokens, header))
    return all_accepted(parts)


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
