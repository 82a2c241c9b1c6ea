"""Property files and single properties: from text to the property tree."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from hybrid.properties.tree import (
    Cumulative,
    Filter,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Properties,
    Property,
    Reward,
    SteadyState,
    TimeBound,
)
from mtbdd.language.expression_parser import FUNCTIONS, PRECEDENCE
from mtbdd.language.parser import DeclarationParser
from mtbdd.language.sources import read_source
from mtbdd.language.syntax import Expression, Position

__all__ = ["load_properties", "parse_properties"]

_COMPARISONS = frozenset(("<", "<=", ">", ">="))
_ADDITIVE = PRECEDENCE["+"]
_FILTER_SIGNS = {"+": "sum", "&": "forall", "|": "exists"}
_PATH_UNARY = frozenset("XFG")
_PATH_BINARY = frozenset("UWR")

Result = TypeVar("Result")


class _PropertyParser(DeclarationParser):
    """Reads properties; the expression grammar is the models'."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        # What may stand here: the operators P, S, R and filters; path operators; calls of any function.
        self._operators = True
        self._paths = False
        self._calls = True

    def properties(self) -> Properties:
        """Read the whole file."""
        constants, formulas, labels, properties = [], [], [], []
        while not self.at(""):
            token = self.tokens[self.index]
            if token in ("const", "rate", "prob"):
                constants.append(self._plain(self.constant))
            elif token == "formula":
                formulas.append(self._plain(self.formula))
            elif token == "label":
                labels.append(self._plain(self.label))
            elif token == ";":
                self.index += 1
            else:
                properties.append(self._property())
        if not (properties or constants or formulas or labels):
            self.fail_expected("a property", 'write one like P=? [ F "done" ]')
        return Properties(self.file, tuple(constants), tuple(formulas), tuple(labels), tuple(properties))

    def _property(self) -> Property:
        """Read `"name": formula` or `formula`."""
        name = None
        if self.tokens[self.index][:1] == '"' and self.peek() == ":":
            name = self.quoted_name("a property's name")
            self.index += 1
        first, position = self.index, self.position()
        formula = self.expression()
        if self.at(":") and self.index == first + 1:
            self.fail_expected("a property", f'put the name in double quotes, "{self.tokens[first]}": ...')
        if self.tokens[self.index] in _PATH_BINARY - {"R"}:
            self._refuse_path()
        text = self.source(first, self.index)
        self.take(";")
        return Property(name, formula, text, position)

    # ------------------------------------------------------------------ what may stand where

    def _within(self, rule: Callable[[], Result], operators: bool, paths: bool, calls: bool = True) -> Result:
        """Apply a rule with other nodes allowed."""
        before = self._operators, self._paths, self._calls
        self._operators, self._paths, self._calls = operators, paths, calls
        result = rule()
        self._operators, self._paths, self._calls = before
        return result

    def _plain(self, rule: Callable[[], Result]) -> Result:
        """Apply a rule of the model language."""
        return self._within(rule, operators=False, paths=False)

    def _state(self) -> Expression:
        """Read a state formula."""
        return self._within(self.expression, operators=True, paths=False)

    def _path(self) -> Expression:
        """Read a path formula."""
        return self._within(self._path_formula, operators=True, paths=True)

    def bracketed(self) -> Expression:
        """Read what stands between two brackets: a path formula if one surrounds them."""
        return self._path_formula() if self._paths else self.expression()

    def may_call(self, name: str) -> bool:
        """Return whether a bracket after this name opens its arguments: not in `F<=T (x=1)`."""
        return self._calls or name in FUNCTIONS

    # ------------------------------------------------------------------ operators

    def special_operand(self, token: str, position: Position) -> Expression:
        """Read an operator P, S, R or a filter."""
        if self._operators:
            if token in ("P", "Pmin", "Pmax"):
                return self._nested(lambda: self._probability(token[1:] or None, position))
            if token == "S":
                return self._nested(lambda: self._steady_state(position))
            if token in ("R", "Rmin", "Rmax"):
                return self._nested(lambda: self._reward(token[1:] or None, position))
            if token == "filter":
                return self._nested(lambda: self._filter(position))
            if token in ("E", "A"):
                instead = "P>0 [ path ]" if token == "E" else "P>=1 [ path ]"
                self.fail(f"the CTL operator '{token}' is not supported; {instead} says nearly the same")
            if token in _PATH_UNARY or token in _PATH_BINARY:
                self._refuse_path()
        elif token in ("P", "Pmin", "Pmax", "S", "R", "Rmin", "Rmax", "filter"):
            self.fail(f"expected a plain expression, got the operator '{token}'; use it in a property")
        return super().special_operand(token, position)

    def _refuse_path(self) -> None:
        token = self.tokens[self.index]
        self.fail(
            f"expected a state formula, got the path operator '{token}'; "
            "path formulas stand inside P=? [ ... ], and beside other operators in brackets"
        )

    def _optimum(self, given: str | None) -> str | None:
        """Read `min` or `max`, unless the operator's word said it."""
        if self.at("min") or self.at("max"):
            if given is not None:
                self.fail_expected("'=?' or a bound", "say min or max once")
            self.index += 1
            return self.tokens[self.index - 1]
        return given

    def _comparison(self, operator: str) -> tuple[str | None, Expression | None]:
        """Read `=?`, or a comparison with a threshold."""
        token = self.tokens[self.index]
        if token == "=":
            self.index += 1
            self.expect(
                "?", f"after '{operator}='", f"write {operator}=? for a value, {operator}>=p for a bound"
            )
            return None, None
        if token in _COMPARISONS:
            self.index += 1
            threshold = self._plain(lambda: self.expression(_ADDITIVE))
            return token, threshold
        self.fail_expected(f"'=?' or a bound like '>=0.5' after '{operator}'")

    def _probability(self, optimum: str | None, position: Position) -> Expression:
        self.index += 1
        optimum = self._optimum(optimum)
        comparison, threshold = self._comparison("P")
        self.expect("[", "before the path formula of P", "write P=? [ path ]")
        path = self._path()
        result = Probability(position, optimum, comparison, threshold, path)
        return self._closed(result, comparison, "P")

    def _steady_state(self, position: Position) -> Expression:
        self.index += 1
        comparison, threshold = self._comparison("S")
        self.expect("[", "before the state formula of S", "write S=? [ states ]")
        states = self._state()
        return self._closed(SteadyState(position, comparison, threshold, states), comparison, "S")

    def _reward(self, optimum: str | None, position: Position) -> Expression:
        self.index += 1
        structure: str | Expression | None = None
        if self.take("{"):
            if self.tokens[self.index][:1] == '"':
                structure = self.quoted_name("a reward structure's name")
            else:
                structure = self._plain(self.expression)
            self.expect("}", "after the reward structure", 'write R{"name"}=? [ ... ]')
        optimum = self._optimum(optimum)
        comparison, threshold = self._comparison("R")
        self.expect(
            "[", "before the reward formula of R", "write R=? [ F states ], [ C<=t ], [ I=t ] or [ S ]"
        )
        target = self._target()
        result = Reward(position, structure, optimum, comparison, threshold, target)
        return self._closed(result, comparison, "R")

    def _target(self) -> Expression:
        """Read what a reward is asked for."""
        position = self.position()
        if self.at("S") and self.peek() in ("]", "{"):
            self.index += 1
            return LongRun(position)
        if self.take("C"):
            time = self._time() if self.take("<=") else None
            if time is None and not (self.at("]") or self.at("{")):
                self.fail_expected("'<=' or ']' after 'C'", "write C<=t, or C for the total reward")
            return Cumulative(position, time)
        if self.take("I"):
            self.expect("=", "after 'I'", "write I=t")
            return Instantaneous(position, self._time())
        return self._path()

    def _closed(self, result: Expression, comparison: str | None, operator: str) -> Expression:
        """Read an old filter, `{states}{min}`, and the closing bracket."""
        if self.take("{"):
            states = self._state()
            self.expect("}", "after the states of a filter")
            extremes = set()
            while self.take("{"):
                if not (self.at("min") or self.at("max")):
                    self.fail_expected("min or max", f"write {operator}=? [ ... {{states}}{{min}} ]")
                extremes.add(self.tokens[self.index])
                self.index += 1
                self.expect("}", "after min or max")
            chosen = extremes.pop() if len(extremes) == 1 else "range" if extremes else "state"
            result = Filter(result.position, chosen if comparison is None else "forall", result, states)
        self.expect("]", f"to close the operator {operator}")
        return result

    def _filter(self, position: Position) -> Expression:
        """Read `filter(operator, operand, states)`."""
        self.index += 1
        advice = "write filter(operator, property, states)"
        self.expect("(", "after 'filter'", advice)
        token = self.tokens[self.index]
        if token in _FILTER_SIGNS or token in ("min", "max"):
            self.index += 1
            operator = _FILTER_SIGNS.get(token, token)
        else:
            operator = self.name("a filter's operator, like min or forall,")
        self.expect(",", "after a filter's operator", advice)
        operand = self._state()
        states = self._state() if self.take(",") else None
        self.expect(")", "or ',' in a filter", advice)
        return Filter(position, operator, operand, states)

    # ------------------------------------------------------------------ paths

    def _path_formula(self) -> Expression:
        """Read `left U right` and its like, or what binds stronger."""
        position = self.position()
        left = self._path_unary()
        operator = self.tokens[self.index]
        if operator not in _PATH_BINARY:
            return left
        self.index += 1
        bound = self._bound()
        right = self._path_unary()
        if self.tokens[self.index] in _PATH_BINARY:
            self.fail_expected("the end of the path formula", f"put '... {operator} ...' in brackets")
        return Path(position, operator, left, right, bound)

    def _path_unary(self) -> Expression:
        """Read `F right` and its like, or a state formula."""
        position = self.position()
        operator = self.tokens[self.index]
        if operator not in _PATH_UNARY:
            return self.expression()
        self.index += 1
        bound = self._bound()
        if bound is not None and operator == "X":
            self.fail(
                "expected no bound after 'X', which looks one step ahead; use F with a bound", self.index - 1
            )
        return Path(position, operator, None, self._nested(self._path_unary), bound)

    def _bound(self) -> TimeBound | None:
        """Read the bound of a path operator, if there is one."""
        position = self.position()
        token = self.tokens[self.index]
        if token == "[":
            self.index += 1
            lower = self._plain(self.expression)
            self.expect(",", "between the ends of a time interval", "write F[a,b]")
            upper = self._plain(self.expression)
            self.expect("]", "after a time interval", "write F[a,b]")
            return TimeBound(position, lower, upper, False, False)
        if token == "=":
            self.index += 1
            time = self._time()
            return TimeBound(position, time, time, False, False)
        if token not in _COMPARISONS:
            return None
        self.index += 1
        time = self._time()
        if token[0] == "<":
            return TimeBound(position, None, time, False, token == "<")
        return TimeBound(position, time, None, token == ">", False)

    def _time(self) -> Expression:
        """Read a time: numbers and names joined by + - * /, before whatever follows without a sign between."""
        return self._within(lambda: self.expression(_ADDITIVE), operators=False, paths=False, calls=False)


def parse_properties(text: str, file: str = "<properties>") -> Properties:
    """Read a properties file, or a single property.

    Parameters
    ----------
    text : str
        Properties, each ended by an optional semicolon, and declarations of constants, formulas and labels.
    file : str
        Name of the text, for positions.

    Returns
    -------
    Properties
        Names are not looked up, types are not checked; `hybrid.properties.resolve.resolve_properties`
        does this.

    Raises
    ------
    SyntaxFaultError
        At the first place that does not follow the grammar.

    Notes
    -----
    As in PRISM a property extends as far as it can, so that one beginning with `-` needs a semicolon before it.
    Time: O(length of the text).
    """
    parser = _PropertyParser(text, file)
    return parser.run(parser.properties)


def load_properties(path: str | os.PathLike[str]) -> Properties:
    """Read a properties file.

    Parameters
    ----------
    path : path-like
        A text file, UTF-8.

    Returns
    -------
    Properties
        As from `parse_properties`.

    Raises
    ------
    SourceError
        If the file cannot be read as text.
    SyntaxFaultError
        As from `parse_properties`.
    """
    return parse_properties(read_source(path, "properties"), os.fspath(path))
