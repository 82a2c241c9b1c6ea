"""The EBNF of docs/grammar.md as a machine: it makes texts, and recognises them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from mtbdd.language.tokens import RESERVED, TokenReader
from tests.pages import blocks_of

# A node: ("text", tokens), ("name", rule), ("all", nodes), ("any", nodes), ("maybe", node), ("many", node).
Node = tuple[str, Any]
_TOKEN = re.compile(r"""'[^']+'|"'"|[A-Za-z]+|[][(){}|=;]""")
_NAME = re.compile(r"[A-Za-z_]\w*")
# What the page says in words.
WORDS = frozenset(("NAME", "QUOTED", "TEXT", "NUMBER"))
ASKED = [("multi", "("), ("quantile", "(")]
"""Names that are none where a bracket follows."""


def cut(text: str) -> tuple[str, ...]:
    """The tokens of a text as the parsers cut it."""
    return tuple(TokenReader(text, "<text>").tokens[:-1])


def rules() -> dict[str, Node]:
    """The rules of the page."""
    found: dict[str, Node] = {}
    for block in blocks_of("docs/grammar.md"):
        if block.language == "ebnf":
            tokens = _TOKEN.findall(block.text)
            while tokens:
                name, equals = tokens.pop(0), tokens.pop(0)
                assert equals == "=" and name not in found, name
                found[name] = _choice(tokens)
                assert tokens.pop(0) == ";", name
    return found


def _choice(tokens: list[str]) -> Node:
    options = [_sequence(tokens)]
    while tokens[0] == "|":
        tokens.pop(0)
        options.append(_sequence(tokens))
    return options[0] if len(options) == 1 else ("any", tuple(options))


def _sequence(tokens: list[str]) -> Node:
    items = []
    while tokens[0] not in ("|", ")", "]", "}", ";"):
        token = tokens.pop(0)
        if token in ("(", "[", "{"):
            inner = _choice(tokens)
            assert tokens.pop(0) == {"(": ")", "[": "]", "{": "}"}[token]
            items.append(inner if token == "(" else ("maybe" if token == "[" else "many", inner))
        elif token[0] in "'\"":
            items.append(("text", cut(token[1:-1])))
        else:
            items.append(("name", token))
    return items[0] if len(items) == 1 else ("all", tuple(items))


class Grammar:
    """Makes texts of a rule, and says whether a text is one of it."""

    def __init__(self) -> None:
        self.rules = rules()
        self.sizes = dict.fromkeys(self.rules, float("inf"))
        for _ in self.rules:
            self.sizes = {name: self.size(node) for name, node in self.rules.items()}

    def words(self) -> set[str]:
        """All words and signs that rules have in quotes."""

        def walk(node: Node) -> set[str]:
            kind, what = node
            if kind == "text":
                return set(what)
            if kind == "name":
                return set()
            return set().union(*map(walk, what)) if kind in ("all", "any") else walk(what)

        return set().union(*map(walk, self.rules.values()))

    def make(self, rule: str, rng: np.random.Generator, depth: int = 9) -> list[str]:
        """The tokens of a random text; every name in it is a new one."""
        names = iter(range(1, 10**6))

        def grow(node: Node, left: int) -> list[str]:
            kind, what = node
            if kind == "text":
                return list(what)
            if kind == "name":
                if what == "NAME":
                    return [f"n{next(names)}"]
                if what == "TEXT":
                    return [f'"file {next(names)}.hoa"']
                if what == "QUOTED":
                    return [f'"{rng.choice(["", " "])}q{next(names)}{rng.choice(["", "  "])}"']
                if what == "NUMBER":
                    return [str(rng.choice(["0", "1", "42", "0.5", ".25", "1e-3", "2.5E+2"]))]
                return grow(self.rules[what], left - 1)
            if kind == "all":
                return [token for item in what for token in grow(item, left)]
            if kind == "any":
                chosen = what if left > 0 else [min(what, key=self.size)]
                return grow(chosen[rng.integers(len(chosen))], left)
            times = 0 if left <= 0 else int(rng.integers(2 if kind == "maybe" else 3))
            return [token for _ in range(times) for token in grow(what, left)]

        return grow(("name", rule), depth)

    def size(self, node: Node) -> float:
        """The fewest tokens that a node can have."""
        kind, what = node
        if kind == "name":
            return 1 if what in WORDS else self.sizes[what]
        if kind in ("all", "any"):
            return (sum if kind == "all" else min)(map(self.size, what))
        return len(what) if kind == "text" else 0

    def accepts(self, rule: str, tokens: tuple[str, ...]) -> bool:
        """Whether a text is one of a rule; all ways to read it are tried."""
        # Where a node may end that begins at a place; by identity, for the hash of a node would walk it.
        known: dict[tuple[int, int], frozenset[int]] = {}

        def ends(node: Node, at: int) -> frozenset[int]:
            key = (id(node), at)
            if key not in known:
                known[key] = frozenset(search(node, at))
            return known[key]

        def after(node: Node, places: Iterable[int]) -> set[int]:
            return {end for place in places for end in ends(node, place)}

        def search(node: Node, at: int) -> Iterable[int]:
            kind, what = node
            if kind == "text":
                return [at + len(what)] if tokens[at : at + len(what)] == what else []
            if kind == "name" and what in WORDS:
                fits = at < len(tokens) and is_a(what, tokens[at]) and tokens[at : at + 2] not in ASKED
                return [at + 1] if fits else []
            if kind == "name":
                return ends(self.rules[what], at)
            if kind == "all":
                places = {at}
                for item in what:
                    places = after(item, places)
                return places
            if kind == "any":
                return {end for item in what for end in ends(item, at)}
            if kind == "maybe":
                return ends(what, at) | {at}
            reached, fresh = {at}, {at}
            while fresh:
                fresh = after(what, fresh) - reached
                reached |= fresh
            return reached

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)
        try:
            return len(tokens) in ends(("name", rule), 0)
        finally:
            sys.setrecursionlimit(before)


def is_a(kind: str, token: str) -> bool:
    """Whether a token is a name, a quoted name, a quoted text or a number."""
    if kind == "NAME":
        return bool(_NAME.fullmatch(token)) and token not in RESERVED
    if kind == "TEXT":
        return len(token) > 2 and token[0] == '"' and bool(token[1:-1].strip())
    if kind == "QUOTED":
        return len(token) > 2 and token[0] == token[-1] == '"' and bool(_NAME.fullmatch(token[1:-1].strip()))
    return token[0] in "0123456789." and token not in (".", "..")
