"""The grammar of a property: from text to the property tree."""

from __future__ import annotations

import os
from typing import NoReturn

from hybrid.properties.path_parser import ADDITIVE, COMPARISONS, PATH_BINARY, PATH_UNARY, PathParser
from hybrid.properties.registry import QUANTITIES, is_long_run
from hybrid.properties.tree import (
    AutomatonPath,
    ConditionalPath,
    Divisor,
    Elapsed,
    Filter,
    LongRun,
    MultiObjective,
    Probability,
    Properties,
    Property,
    Quantified,
    Quantile,
    Reward,
    SteadyState,
)
from mtbdd.language.errors import Fault, LanguageError, SyntaxFaultError
from mtbdd.language.syntax import Expression, Literal, Position
from mtbdd.language.tokens import read_source

_ELAPSED = ("T", "Tmin", "Tmax")
_LONG_RUN = ("LRA", "LRAmin", "LRAmax", "Smin", "Smax")
_FILTER_SIGNS = {"+": "sum", "&": "forall", "|": "exists"}


class PropertyParser(PathParser):
    """Reads one property after another; the expression grammar is the models'."""

    # ------------------------------------------------------------------ around P and R

    def multi(self) -> Expression:
        """Read `multi(objective, objective, ...)`."""
        position = self.position()
        self.index += 2
        objectives, texts = [], []
        while True:
            first = self.index
            objectives.append(self.state())
            texts.append(self.source(first, self.index))
            if not self.take(","):
                break
        self.expect(")", "or ',' in multi(...)", "write multi(P>=0.5 [ F a ], R<=3 [ C ])")
        return MultiObjective(position, tuple(objectives), tuple(texts))

    def quantile(self) -> Expression:
        """Read `quantile(min B, P>=p [ ... ])`, or with two bounds `quantile(min M, min N, ...)`."""
        position, advice = self.position(), 'write quantile(min B, P>=p [ F{"x"}<=B states ])'
        self.index += 2
        optimum, name = self._quantile_variable(advice)
        names = [name]
        while self.peek() == "," or self.at("min") or self.at("max"):
            if len(names) == 2 or optimum == "max" or self.at("max"):
                self.refuse(
                    "quantile(...) of several bounds asks for the least pairs: expected two, both with min"
                )
            names.append(self._quantile_variable(advice)[1])
        self.bounded = names
        probability = self.state()
        self.bounded = ()
        self.expect(")", "to close quantile(...)", advice)
        return Quantile(position, optimum, probability, tuple(names))

    def _quantile_variable(self, advice: str) -> tuple[str, str]:
        """Read `min B,`; without a word the least bound is meant."""
        optimum = self.optimum(None) or "min"
        name = self.name("the name of the bound")
        self.expect(",", "after the name of the bound", advice)
        return optimum, name

    def optimum(self, given: str | None) -> str | None:
        """Read `min` or `max`, unless the operator's word said it."""
        if self.at("min") or self.at("max"):
            if given is not None:
                self.fail_expected("'=?' or a bound", "say min or max once")
            self.index += 1
            return self.tokens[self.index - 1]
        return given

    # ------------------------------------------------------------------ properties

    def property(self) -> Property:
        """Read `"name": formula` or `formula`."""
        name = None
        if self.tokens[self.index][:1] == '"' and self.peek() == ":":
            name = self.quoted_name("a property's name")
            self.index += 1
        first, position = self.index, self.position()
        if self.peek() == ":":  # before X, F and others are taken for operators
            self.index += 1
            self._refuse_name(self.tokens[first])
        self.refusals, self.bounded = [], ()
        formula = self.expression()
        if self.at(":"):
            self._refuse_name("name")
        if self.tokens[self.index] in PATH_BINARY - {"R"}:
            self._refusepath()
        text = self.source(first, self.index)
        self.take(";")
        error = LanguageError(self.refusals) if self.refusals else None
        return Property(name, formula, text, position, error)

    def _refuse_name(self, name: str) -> NoReturn:
        """Refuse the colon behind what seems to be a property's name."""
        shown = name if name.isidentifier() else "name"
        self.fail_expected("a property", f'put the name in double quotes, "{shown}": ...')

    # ------------------------------------------------------------------ operators

    def special_operand(self, token: str, position: Position) -> Expression:
        """Read an operator P, S, R or a filter."""
        if self.operators:
            if token in ("P", "Pmin", "Pmax"):
                return self._nested(lambda: self._probability(token[1:] or None, position))
            if token == "S":
                return self._nested(lambda: self._steadystate(None, position))
            if token in ("R", "Rmin", "Rmax"):
                return self._nested(lambda: self._reward(token[1:] or None, position))
            if token == "filter":
                return self._nested(lambda: self._filter(position))
            if token in ("E", "A"):
                return self._nested(lambda: self._quantified(token, position))
            if token in PATH_UNARY or token in PATH_BINARY:
                self._refusepath()
            if token in ("<", "[") and self.peek() == token:
                return self._strategy(token)
        elif token in ("P", "Pmin", "Pmax", "S", "R", "Rmin", "Rmax", "filter"):
            self.fail(f"expected a plain expression, got the operator '{token}'; use it in a property")
        return super().special_operand(token, position)

    def _quantified(self, operator: str, position: Position) -> Expression:
        """Read `E [ path ]` or `A [ path ]`."""
        self.index += 1
        self.expect("[", f"before the path formula of {operator}", f"write {operator} [ path ]")
        path = self.path()
        self.expect("]", f"to close the operator {operator}")
        return Quantified(position, operator, path)

    def _strategy(self, token: str) -> Expression:
        """Read and refuse `<<players>> operator` or `[[players]] operator`."""
        shown, closing = ("<<...>>", ">") if token == "<" else ("[[...]]", "]")
        self.refuse(
            f"the strategy operator {shown} is not supported; for an MDP write Pmax=?, Pmin=?, Rmax=? or "
            "Rmin=?"
        )
        while not (self.at(closing) and self.peek() == closing):
            if self.at(""):
                self.fail_expected(f"'{closing * 2}' to close the strategy operator {shown}")
            self.index += 1
        self.index += 2
        return self._nested(self.operand)

    def operand(self) -> Expression:
        """Read an operand of an expression, the operators T and LRA and `multi(...)` among them."""
        token = self.tokens[self.index]
        if self.operators and token in _ELAPSED and self._is_operator():
            return self._nested(lambda: self._elapsed(self.position()))
        if self.operators and token in _LONG_RUN and self._is_operator():
            given = token.removeprefix("LRA").removeprefix("S") or None
            return self._nested(lambda: self._steadystate(given, self.position()))
        if self.at("multi") and self.peek() == "(" and self.operators:
            return self._nested(self.multi)
        if self.at("quantile") and self.peek() == "(" and self.operators:
            return self._nested(self.quantile)
        return super().operand()

    def _comparison(self, operator: str) -> tuple[str | None, Expression | None]:
        """Read `=?`, or a comparison with a threshold."""
        token = self.tokens[self.index]
        if token == "=":
            self.index += 1
            self.expect(
                "?", f"after '{operator}='", f"write {operator}=? for a value, {operator}>=p for a bound"
            )
            return None, None
        if token in COMPARISONS:
            self.index += 1
            threshold = self.plain(lambda: self.expression(ADDITIVE))
            return token, threshold
        self.fail_expected(f"'=?' or a bound like '>=0.5' after '{operator}'")

    def _probability(self, optimum: str | None, position: Position) -> Expression:
        self.index += 1
        optimum = self.optimum(optimum)
        comparison, threshold = self._comparison("P")
        self.expect("[", "before the path formula of P", "write P=? [ path ]")
        path = self._automaton() if self.at("HOA") and self.peek() == ":" else self._conditional_path()
        result = Probability(position, optimum, comparison, threshold, path)
        return self._closed(result, comparison, "P")

    def _conditional_path(self) -> Expression:
        """Read `path` or `path || path`."""
        position = self.position()
        path = self.path(bars=True)
        if not (self.at("|") and self.peek() == "|"):
            return path
        self.index += 2
        return ConditionalPath(position, path, self.path())

    def _automaton(self) -> Expression:
        """Read `HOA: {"file", "name" <- states, ...}`, the word `HOA` being next."""
        position, advice = self.position(), 'write HOA: {"file.hoa", "name" <- states}'
        self.index += 2
        self.expect("{", "after 'HOA:'", advice)
        file = self.quoted_reference("the name of a file")
        names: list[str] = []
        states = []
        while self.take(","):
            names.append(self.quoted_reference("a proposition of the automaton"))
            if names[-1] in names[:-1]:
                self.fail(f'expected every proposition once, got "{names[-1]}" again', self.index - 1)
            self.expect("<", "after a proposition", advice)
            self.expect("-", "after '<'", advice)
            states.append(self.state())
        self.expect("}", "or ',' after the name of an automaton or a state formula", advice)
        if not self.file.startswith("<"):
            file = os.path.join(os.path.dirname(self.file), file)
        return AutomatonPath(position, file, tuple(names), tuple(states))

    def _steadystate(self, optimum: str | None, position: Position) -> Expression:
        self.index += 1
        optimum = self.optimum(optimum)
        comparison, threshold = self._comparison("S")
        self.expect("[", "before the state formula of S", "write S=? [ states ]")
        states = self.state()
        return self._closed(SteadyState(position, comparison, threshold, states, optimum), comparison, "S")

    def _reward(self, optimum: str | None, position: Position) -> Expression:
        self.index += 1
        structure: str | Expression | None = None
        discount: Expression | None = None
        divisor: Divisor | None = None
        if self.take("{"):
            is_discounted = self._is_discount()
            if not is_discounted:
                structure = self._structure()
                is_discounted = self.take(",")
                if is_discounted and not self._is_discount():
                    self.fail_expected("'discount='", 'write R{"name",discount=0.9}=? [ C ]')
            if is_discounted:
                self.index += 2
                discount = self.plain(self.expression)
            self.expect("}", "after the reward structure", 'write R{"name"}=? [ ... ]')
            slash = self.index
            if self.at("/"):
                divisor = self._divisor()
        optimum = self.optimum(optimum)
        comparison, threshold = self._comparison("R")
        self.expect(
            "[", "before the reward formula of R", "write R=? [ F states ], [ C<=t ], [ I=t ] or [ S ]"
        )
        target = self._target()
        if divisor is not None and isinstance(target, LongRun):
            target = LongRun(target.position, divisor)
        elif divisor is not None:
            self.refuse(
                'the ratio of two rewards is one in the long run, R{"x"}/{"y"}=? [ S ]; ask for each of them',
                slash,
            )
        result = Reward(position, structure, optimum, comparison, threshold, target, discount=discount)
        return self._closed(result, comparison, "R")

    def _structure(self) -> str | Expression:
        """Read the name of a reward structure in quotes, or its number."""
        if self.tokens[self.index][:1] == '"':
            return self.quoted_reference("a reward structure's name")
        return self.plain(self.expression)

    def _divisor(self) -> Divisor:
        """Read `/{"name"}` or `/{number}`."""
        self.index += 1
        position = self.position()
        self.expect("{", "after '/'", 'write R{"x"}/{"y"}=? [ S ]')
        structure = self._structure()
        self.expect("}", "after the reward structure that is divided by", 'write R{"x"}/{"y"}=? [ S ]')
        return Divisor(position, structure)

    def _is_discount(self) -> bool:
        """Return whether `discount=` is next."""
        return self.at("discount") and self.peek() == "="

    def _is_operator(self) -> bool:
        """Return whether T, LRA or the like is an operator here, not a variable or constant of that name.

        `T=?` and `T min` begin no expression, and none ends before a bracket as `T<=x [` does.
        """
        following = self.peek()
        if following in ("min", "max"):
            return self.peek(2) == "=" or self.peek(2) in COMPARISONS
        if following == "=":
            return self.peek(2) == "?"
        if following not in COMPARISONS:
            return False
        first, depth = self.index, self._depth
        before = self.operators, self.paths, self.calls, self.ends_at_bars
        self.index += 2
        try:
            self.plain(lambda: self.expression(ADDITIVE))
            return self.at("[")
        except SyntaxFaultError:
            return False
        finally:
            self.index, self._depth = first, depth
            self.operators, self.paths, self.calls, self.ends_at_bars = before

    def _elapsed(self, position: Position) -> Expression:
        """Read `T=? [ path ]` and its like."""
        given = self.tokens[self.index][1:] or None
        self.index += 1
        optimum = self.optimum(given)
        comparison, threshold = self._comparison("T")
        self.expect("[", "before the path formula of T", "write T=? [ F states ]")
        if self.at("C") or self.at("I") or is_long_run(self):
            self.fail_expected(
                "a path formula", "T counts steps or time until one holds: write T=? [ F states ]"
            )
        result = Reward(position, Elapsed(position), optimum, comparison, threshold, self.path())
        return self._closed(result, comparison, "T")

    def _target(self) -> Expression:
        """Read the target of a reward."""
        position = self.position()
        for quantity in QUANTITIES:
            found = None if quantity.read is None else quantity.read(self, position)
            if found is not None:
                return found
        return self.path()

    def _closed(self, result: Expression, comparison: str | None, operator: str) -> Expression:
        """Read an old filter, `{states}{min}`, and the closing bracket."""
        if self.take("{"):
            states = self.state()
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
        operand = self.state()
        states = self.state() if self.take(",") else None
        self.expect(")", "or ',' in a filter", advice)
        return Filter(position, operator, operand, states)


# Property files and single properties: from text to the property tree.

_DECLARATIONS = ("const", "rate", "prob", "formula", "label")
_OPERATORS = ("P", "Pmin", "Pmax", "S", "R", "Rmin", "Rmax")


class _FileParser(PropertyParser):
    """Reads a text of properties and declarations.

    `keep_faults`: see `parse_properties`.
    """

    def __init__(self, text: str, file: str, keep_faults: bool = False) -> None:
        super().__init__(text, file)
        self.keep_faults = keep_faults
        self._lost: list[Fault] = []  # of declarations: there is no property to tell them

    def properties(self) -> Properties:
        """Read the whole file."""
        constants, formulas, labels, properties = [], [], [], []
        while not self.at(""):
            token, first = self.tokens[self.index], self.index
            try:
                if token in ("const", "rate", "prob"):
                    constants.append(self.plain(self.constant))
                elif token == "formula":
                    formulas.append(self.plain(self.formula))
                elif token == "label":
                    labels.append(self.plain(self.label))
                elif token == ";":
                    self.index += 1
                else:
                    properties.append(self.property())
            except (SyntaxFaultError, RecursionError) as caught:
                if not self.keep_faults:
                    raise
                error = caught if isinstance(caught, SyntaxFaultError) else self.too_deep()
                self._depth, self.operators, self.paths, self.calls = 0, True, False, True
                self.ends_at_bars = False
                if token in _DECLARATIONS:
                    self._lost.extend(error.faults)
                    self._recover(first)
                else:
                    properties.append(self._faulty(first, error))
        if self._lost:
            faults = [fault for p in properties if p.error is not None for fault in p.error.faults]
            raise LanguageError([*self._lost, *faults])
        if not (properties or constants or formulas or labels):
            self.fail_expected("a property", 'write one like P=? [ F "done" ]')
        return Properties(self.file, tuple(constants), tuple(formulas), tuple(labels), tuple(properties))

    # ------------------------------------------------------------------ after a fault

    def _faulty(self, first: int, error: SyntaxFaultError) -> Property:
        """Return the property that begins with a token and has a fault, and step behind it."""
        self.index = first
        name = None
        if self.peek() == ":" and self.tokens[first][:1] == '"':
            name = self.tokens[first].strip('"')
            first += 2
        position = self.position(min(first, len(self.tokens) - 1))
        self._recover(first)
        text = self.source(first, self.index) if self.index > first else ""
        self.take(";")
        return Property(name, Literal(position, True), text, position, error)

    def _recover(self, first: int) -> None:
        """Step to the semicolon behind a token, or to the line that begins a property or a declaration."""
        self.index = first
        line = self.position().line
        while not (self.at("") or self.at(";")):
            self.index += 1
            place = self.position()
            if place.column == 1 and place.line > line and self._begins():
                return

    def _begins(self) -> bool:
        """Return whether the next token, at the beginning of a line, begins something new for sure."""
        token = self.tokens[self.index]
        if token in _DECLARATIONS or token in _OPERATORS or token == "filter":
            return True
        return token[:1] == '"' and self.peek() == ":"


def parse_properties(text: str, file: str = "<properties>", keep_faults: bool = False) -> Properties:
    """Read a properties file, or a single property.

    Parameters
    ----------
    text : str
        Properties, each ended by an optional semicolon, and declarations of constants, formulas and labels.
    file : str
        Name of the text, for positions.
    keep_faults : bool
        Leave a property that does not follow the grammar in the result, with its `error` set, instead of
        raising.  Reading goes on behind the next semicolon, or at the next line that begins with an operator,
        a declaration or a name and a colon.

    Returns
    -------
    Properties
        Names are not looked up, types are not checked; `hybrid.properties.resolve.resolve_properties`
        does this.

    Raises
    ------
    SyntaxFaultError
        At the first place that does not follow the grammar.
    LanguageError
        If faults are kept: with those of declarations and of properties, if a declaration has any.

    Notes
    -----
    As in PRISM a property extends as far as it can: one beginning with `-` needs a semicolon before it.
    Time: O(length of the text).
    """
    parser = _FileParser(text, file, keep_faults)
    return parser.run(parser.properties)


def load_properties(path: str | os.PathLike[str], keep_faults: bool = False) -> Properties:
    """Read a properties file.

    Parameters
    ----------
    path : path-like
        A text file, UTF-8.
    keep_faults : bool
        As for `parse_properties`.

    Returns
    -------
    Properties
        As from `parse_properties`.

    Raises
    ------
    SourceError
        If the file cannot be read as text.
    LanguageError
        As from `parse_properties`.
    """
    return parse_properties(read_source(path, "properties"), os.fspath(path), keep_faults)


# A path formula alone, as `hybrid automaton` takes it.


def parse_path(text: str, file: str = "<formula>") -> Expression:
    """Read a path formula.

    `file`: name of the text, for positions. Returns Expression: names are not looked up, types are not
    checked. Raises LanguageError: the text is no path formula, or uses what is not supported.
    """
    parser = PropertyParser(text, file)
    found = parser.run(parser.path)
    if not parser.at(""):
        parser.fail_expected("the end of the formula")
    if parser.refusals:
        raise LanguageError(parser.refusals)
    return found
