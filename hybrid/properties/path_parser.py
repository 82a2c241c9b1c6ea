"""Path formulas: temporal operators with their bounds, and what may stand where in a property."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from hybrid.properties.tree import Path, RewardBound, RewardBounds, TimeBound
from mtbdd.language.errors import Fault, SyntaxFaultError
from mtbdd.language.expression_parser import FUNCTIONS, PRECEDENCE
from mtbdd.language.parser import DeclarationParser
from mtbdd.language.syntax import Expression, Name

COMPARISONS = frozenset(("<", "<=", ">", ">="))
ADDITIVE = PRECEDENCE["+"]
PATH_UNARY = frozenset("XFG")
PATH_BINARY = frozenset("UWR")
_WRITTEN_TOGETHER = re.compile("[XFG]{2,}")
_SHORT = 40  # characters of what a message repeats
_CLOSING = {"(": ")", "[": "]", "{": "}"}
Result = TypeVar("Result")


class PathParser(DeclarationParser):
    """Reads path formulas; the parser of properties is built on it.

    Attributes
    ----------
    operators : bool
        Whether P, S, R and filters may stand here.
    paths : bool
        Whether path operators may stand here, in brackets.
    calls : bool
        Whether any name may be called as a function.
    bounded : sequence of str
        Inside of `quantile(...)` the names of the bounds that it asks for.
    ends_at_bars : bool
        Whether a condition may follow, `|| path`: outside of all brackets in P.
    refusals : list of Fault
        What the property being read asks for that is well-formed but not supported.
    """

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.operators = True
        self.paths = False
        self.calls = True
        self.bounded: Sequence[str] = ()
        self.refusals: list[Fault] = []

    def refuse(self, message: str, index: int | None = None) -> None:
        """Note that a property cannot be answered, and read on: other properties may be."""
        self.refusals.append(Fault(self.position(index), message))

    def skip_brackets(self) -> None:
        """Step over a bracket of any kind and everything up to the one that closes it."""
        if self.tokens[self.index] not in _CLOSING:
            self.fail_expected("an opening bracket")
        opened = []
        while True:
            token = self.tokens[self.index]
            if token in _CLOSING:
                opened.append(_CLOSING[token])
            elif opened and token == opened[-1]:
                opened.pop()
            elif not token or token in _CLOSING.values():
                self.fail_expected(f"'{opened[-1]}' to close a bracket")
            self.index += 1
            if not opened:
                return

    # ------------------------------------------------------------------ what may stand where

    def within(
        self, rule: Callable[[], Result], operators: bool, paths: bool, calls: bool = True, bars: bool = False
    ) -> Result:
        """Apply a rule with other nodes allowed."""
        before = self.operators, self.paths, self.calls, self.ends_at_bars
        self.operators, self.paths, self.calls, self.ends_at_bars = operators, paths, calls, bars
        result = rule()
        self.operators, self.paths, self.calls, self.ends_at_bars = before
        return result

    def plain(self, rule: Callable[[], Result]) -> Result:
        """Apply a rule of the model language."""
        return self.within(rule, operators=False, paths=False)

    def state(self) -> Expression:
        """Read a state formula."""
        return self.within(self.expression, operators=True, paths=False)

    def path(self, bars: bool = False) -> Expression:
        """Read a path formula, with `bars` up to `||` if there is one."""
        return self.within(self._path_formula, operators=True, paths=True, bars=bars)

    def bracketed(self) -> Expression:
        """Read what stands between two brackets: a path formula if one surrounds them."""
        if self.ends_at_bars:
            return self.path()
        return self._path_formula() if self.paths else self.expression()

    def may_call(self, name: str) -> bool:
        """Return whether a bracket after this name opens its arguments: not in `F<=T (x=1)`, `GF (x=1)`."""
        return (self.calls and not _WRITTEN_TOGETHER.fullmatch(name)) or name in FUNCTIONS

    def fail_expected(self, expected: str, advice: str = "") -> NoReturn:
        """Raise a syntax fault; for `GF a` with the hint that operators are separated."""
        before, token = self.tokens[max(self.index - 1, 0)], self.tokens[self.index]
        begins = token[:1].isalnum() or token[:1] in ("_", '"', "(") or token == "!"
        if begins and _WRITTEN_TOGETHER.fullmatch(before):
            self.fail(f"unknown operator '{before}'; write {' '.join(before)}", self.index - 1)
        super().fail_expected(expected, advice)

    def _refusepath(self) -> NoReturn:
        token = self.tokens[self.index]
        got = f"expected a state formula, got the path operator '{token}'"
        nested = self._read_ahead() if self.paths and token in PATH_UNARY else ""
        if nested:
            self.fail(f"{got}; write ({nested}), in brackets beside other operators (which makes it LTL)")
        self.fail(
            f"{got}; path formulas stand inside P=? [ ... ], and in brackets beside other operators (which "
            "makes them LTL)"
        )

    def _read_ahead(self) -> str:
        """Return the text of the path formula that begins here, if it is short, and stay here."""
        first, depth = self.index, self._depth
        try:
            self._path_unary()
            text = self.source(first, self.index)
        except SyntaxFaultError:
            text = ""
        self.index, self._depth = first, depth
        return text if len(text) <= _SHORT else ""

    # ------------------------------------------------------------------ paths

    def _path_formula(self) -> Expression:
        """Read `left U right` and its like, or what binds stronger."""
        position = self.position()
        left = self._path_unary()
        operator = self.tokens[self.index]
        if operator not in PATH_BINARY:
            return left
        self.index += 1
        bound = self._bound()
        right = self._path_unary()
        if self.tokens[self.index] in PATH_BINARY:
            self.fail_expected("the end of the path formula", f"put '... {operator} ...' in brackets")
        return Path(position, operator, left, right, bound)

    def _path_unary(self) -> Expression:
        """Read `F right` and its like, or a state formula."""
        position = self.position()
        operator = self.tokens[self.index]
        if operator not in PATH_UNARY:
            return self.expression()
        self.index += 1
        first = self.index
        bound = self._bound()
        if bound is not None and operator == "X":
            self.fail("expected no bound after 'X', which looks one step ahead; use F with a bound", first)
        return Path(position, operator, None, self._nested(self._path_unary), bound)

    def _bound(self) -> TimeBound | RewardBound | RewardBounds | None:
        """Read the bound of a path operator, if there is one."""
        if self.at("{") or self.at("rew") or self.at("^"):
            found = self._reward_bounds()
            if found is not None:
                return found
        position = self.position()
        token = self.tokens[self.index]
        if token == "[":
            self.index += 1
            lower = self.plain(self.expression)
            self.expect(",", "between the ends of a time interval", "write F[a,b]")
            upper = self.plain(self.expression)
            self.expect("]", "after a time interval", "write F[a,b]")
            return TimeBound(position, lower, upper, False, False)
        if token == "=":
            self.index += 1
            time = self.time()
            return TimeBound(position, time, time, False, False)
        if token not in COMPARISONS:
            return None
        self.index += 1
        time = self.time()
        if token[0] == "<":
            return TimeBound(position, None, time, False, token == "<")
        return TimeBound(position, time, None, token == ">", False)

    # ------------------------------------------------------------------ bounds on rewards

    def _reward_bounds(self) -> RewardBound | RewardBounds | None:
        """Read `{"x"}<=b`, `rew{"x"}<=b`, `{rew{"x"}<=b}` or `^{rew{"x"}<=b}`, or options in braces."""
        is_raised = self.at("^") and self.peek() == "{"
        if is_raised or (self.at("{") and self.peek() == "rew"):
            self.index += 2 if is_raised else 1
            found = self._several_bounds()
            self.expect("}", "after a bound on a reward", 'write F{rew{"x"}<=b}')
            return found
        if self._is_structure(0) or (self.at("rew") and self._is_structure(1)):
            return self._several_bounds()
        if self.at("{"):
            self.skip_options()
        return None

    def _is_structure(self, ahead: int) -> bool:
        """Return whether the name or number of a reward structure, in braces, comes so many tokens ahead."""
        tokens, k = self.tokens, self.index + ahead
        if k + 2 >= len(tokens) or tokens[k] != "{" or tokens[k + 2] != "}":
            return False
        return tokens[k + 1][:1] == '"' or self._is_number(k + 1)

    def _is_number(self, index: int) -> bool:
        """Return whether a token is a number."""
        return self.tokens[index][:1].isdigit() or self.tokens[index][:1] == "."

    def _several_bounds(self) -> RewardBound | RewardBounds:
        """Read bounds on rewards with commas between them."""
        position = self.position()
        found = [self._reward_bound()]
        while self.take(","):
            found.append(self._reward_bound())
        if len(found) == 1 and found[0].least is None:
            return found[0]
        return RewardBounds(position, tuple(found))

    def _reward_bound(self) -> RewardBound:
        """Read `{"x"}<=b` or `rew{"x"}<=b`, or the same with `>=`, `=` or `[a,b]` for `<=`."""
        position = self.position()
        structure: str | Expression | None = None
        is_named = self.take("rew")
        if not (is_named and not self.at("{")):
            self.expect("{", "before the reward structure of a bound", 'write F{"x"}<=b')
            if self.tokens[self.index][:1] == '"':
                structure = self.quoted_reference("a reward structure's name")
            elif self._is_number(self.index):
                structure = self.plain(self.expression)
            else:
                self.fail_expected("the name of a reward structure in double quotes, or its number")
            self.expect("}", "after the reward structure of a bound", 'write F{"x"}<=b')
        token = self.tokens[self.index]
        if token == "[":
            self.index += 1
            least = self.plain(self.expression)
            self.expect(",", "between the ends of an interval", 'write F{"x"}[a,b]')
            most = self.plain(self.expression)
            self.expect("]", "after an interval", 'write F{"x"}[a,b]')
            return RewardBound(position, structure, most, False, least=least)
        if token != "=" and token not in COMPARISONS:
            self.fail_expected("'<=' after the reward structure of a bound", 'write F{"x"}<=b')
        self.index += 1
        end = self.time()
        if isinstance(end, Name) and end.name in self.bounded:
            if token != "<=":
                self.refuse(f"the bound that quantile(...) asks for stands behind '<=', got '{token}'")
            return RewardBound(position, structure, None, False, asked=end.name)
        if token == "=":
            return RewardBound(position, structure, end, False, least=end)
        if token[0] == "<":
            return RewardBound(position, structure, end, token == "<")
        return RewardBound(position, structure, None, False, least=end, is_open=token == ">")

    def skip_options(self) -> None:
        """Refuse and step over what newer texts put in braces behind an operator."""
        self.refuse(
            f"options in braces after '{self.tokens[self.index - 1]}' (discounts) are not supported; take "
            'them out (total rewards have discounts, R{"name",discount=0.9}=? [ C ]; a bound on a reward is '
            'written F{"name"}<=b)'
        )
        self.skip_brackets()

    def time(self) -> Expression:
        """Read a time: numbers and names joined by + - * /; what follows without a sign is not part of it."""
        return self.within(lambda: self.expression(ADDITIVE), operators=False, paths=False, calls=False)
