"""Expressions of the PRISM language: operator precedence parsing.

From weakest to strongest: `?:`, `=>`, `<=>`, `|`, `&`, `!`, `= !=`, `< <= >= >`, `+ -`, `* /`, unary `-`,
`^`.
Binary operators associate to the left, `?:` and `^` to the right; `a^b` is read as `pow(a, b)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mtbdd.language.errors import Fault, SyntaxFaultError
from mtbdd.language.reals import decimal_text, from_text
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    Position,
    Unary,
)
from mtbdd.language.tokens import RESERVED, TokenReader
from mtbdd.language.walk import Walk, children

# Function: least and greatest number of arguments.
FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "min": (1, None),
    "max": (1, None),
    "floor": (1, 1),
    "ceil": (1, 1),
    "round": (1, 1),
    "pow": (2, 2),
    "mod": (2, 2),
    "log": (2, 2),
}

# Precedence of operators.  `?:` has 1; of the unary ones `!` has 6 and `-` has 11.
PRECEDENCE: dict[str, int] = {
    "=>": 2,
    "<=>": 3,
    "|": 4,
    "&": 5,
    "=": 7,
    "!=": 7,
    "<": 8,
    "<=": 8,
    ">": 8,
    ">=": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "^": 12,
}
_CONDITIONAL, _NOT, _ADDITIVE, _NEGATION = 1, 6, 9, 11

# More than in any written text, and few enough for Python's stack.
_DEEPEST = 100
_LARGEST_INT = 2**63 - 1

_DOUBLED = {"&": "'and' is a single '&'", "|": "'or' is a single '|'", "=": "equality is a single '='"}

Result = TypeVar("Result")


class ExpressionParser(TokenReader):
    """Reads expressions; the parsers of models and of properties are built on it."""

    ends_at_bars = False  # whether `||` ends an expression; elsewhere it is a fault

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self._depth = 0

    def run(self, rule: Callable[[], Result]) -> Result:
        """Apply a grammar rule; a text nested too deeply for the stack becomes a fault, too."""
        try:
            return rule()
        except RecursionError:
            raise self.too_deep() from None

    def too_deep(self) -> SyntaxFaultError:
        """Return the fault of a text with too many levels, at the next token."""
        message = f"expected at most {_DEEPEST} levels of nesting, got more; split it with formulas"
        return SyntaxFaultError([Fault(self.position(), message)])

    # ------------------------------------------------------------------ operators

    def expression(self, weakest: int = _CONDITIONAL) -> Expression:
        """Read an expression whose outermost operator binds at least as strongly as `weakest`."""
        tokens = self.tokens
        left = self.operand()
        while True:
            operator = tokens[self.index]
            strength = PRECEDENCE.get(operator, 0)
            if strength < weakest or not strength:
                break
            self.index += 1
            if operator in _DOUBLED and tokens[self.index] == operator:
                if operator == "|" and self.ends_at_bars:
                    self.index -= 1
                    break
                self.fail_expected(f"an operand after '{operator}'", f"in this language {_DOUBLED[operator]}")
            if operator == "^":
                exponent = self._nested(lambda: self.expression(_NEGATION))
                left = Call(left.position, "pow", (left, exponent))
                continue
            left = Binary(left.position, operator, left, self.expression(strength + 1))
        if weakest <= _CONDITIONAL and tokens[self.index] == "?":
            return self._conditional(left)
        return left

    def _conditional(self, condition: Expression) -> Expression:
        """Read `? then : otherwise`, a chain of them in one loop."""
        links = []
        last = condition
        while self.take("?"):
            then = self._nested(self.expression)
            self.expect(":", "between the branches of '?'", "write condition ? value : value")
            links.append((last, then))
            last = self.expression(_CONDITIONAL + 1)
        for test, then in reversed(links):
            last = Conditional(test.position, test, then, last)
        return last

    def _nested(self, rule: Callable[[], Result]) -> Result:
        """Apply a rule one level deeper."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.too_deep()
        result = rule()
        self._depth -= 1
        return result

    # ------------------------------------------------------------------ operands

    def operand(self) -> Expression:
        """Read a literal, a name, a call, an expression in brackets or a unary operator with its operand."""
        index = self.index
        token = self.tokens[index]
        if token.isidentifier() and token not in RESERVED and token.isascii():
            self.index = index + 1
            if self.tokens[index + 1] == "(" and self.may_call(token):
                return self._call(token, self.position(index))
            return Name(self.position(index), token)
        if token and token[0] in "0123456789.":
            literal = self._number(token)
            if literal is not None:
                return literal
        return self._rare_operand(token)

    def may_call(self, name: str) -> bool:
        """Return whether a bracket after this name opens its arguments."""
        return True

    def _rare_operand(self, token: str) -> Expression:
        position = self.position()
        if token == "(":
            self.index += 1
            inner = self._nested(self.bracketed)
            self.expect(")", "to close the bracket opened at " + _place(position))
            return inner
        if token == "!":
            self.index += 1
            return Unary(position, "!", self._nested(lambda: self.expression(_NOT)))
        if token == "-":
            self.index += 1
            return Unary(position, "-", self._nested(lambda: self.expression(_NEGATION)))
        if token in ("true", "false"):
            self.index += 1
            return Literal(position, token == "true")
        if token in ("min", "max"):
            self.index += 1
            if not self.at("("):
                self.fail_expected(f"'(' after the function '{token}'", f"write {token}(a, b)")
            return self._call(token, position)
        if token == "func":
            return self._old_call(position)
        if token[:1] == '"' and len(token) > 1:
            return LabelReference(position, self.quoted_reference("a label's name"))
        return self.special_operand(token, position)

    def bracketed(self) -> Expression:
        """Read the tokens between two brackets."""
        return self.expression()

    def special_operand(self, token: str, position: Position) -> Expression:
        """Read an operand that only some texts have; in a plain expression there is none."""
        if token in RESERVED:
            label = '; the label is written in quotes, "init"' if token == "init" else ""
            self.fail(f"expected an expression, got '{token}', a reserved word that cannot be a name{label}")
        self.fail_expected("an expression")

    def _number(self, token: str) -> Literal | None:
        position = self.position()
        if token.isdigit():
            # Length first: Python refuses to read integers of thousands of digits, zeros in front included.
            digits = token.lstrip("0") or "0"
            if len(digits) > 19 or int(digits) > _LARGEST_INT:
                self.fail(
                    f"expected an integer up to {_LARGEST_INT}, got {self.describe()}; write it as a double"
                )
            value: int | float = int(digits)
        elif token in (".", ".."):
            return None
        else:
            try:
                value = from_text(token)
            except ValueError as fault:
                self.fail(f"expected {fault}, got {self.describe()}")
        self.index += 1
        return Literal(position, value)

    def _call(self, function: str, position: Position) -> Call:
        """Read the arguments, the opening bracket being next."""
        self.index += 1
        return self._arguments(function, position)

    def _old_call(self, position: Position) -> Call:
        """Read `func(name, arguments)`."""
        self.index += 1
        self.expect("(", "after 'func'", "write func(min, a, b), or better min(a, b)")
        function = self.tokens[self.index]
        if function in ("min", "max"):
            self.index += 1
        else:
            function = self.name("the name of a function after 'func('")
        self.expect(",", "after the function's name", "write func(min, a, b), or better min(a, b)")
        return self._arguments(function, position)

    def _arguments(self, function: str, position: Position) -> Call:
        if self.at(")"):
            self.fail(f"expected an argument of '{function}', got ')'")
        arguments = [self._nested(self.bracketed)]
        while self.take(","):
            arguments.append(self._nested(self.bracketed))
        self.expect(")", f"or ',' after an argument of '{function}'")
        return Call(position, function, tuple(arguments))


def _place(position: Position) -> str:
    """Return line and column, for a second place in a message."""
    return f"{position.line}:{position.column}"


def parse_expression(text: str, file: str = "<expression>") -> Expression:
    """Read one expression.

    Parameters
    ----------
    text : str
        The expression, nothing behind it but blanks and comments.
    file : str
        Name of the text, for positions.

    Returns
    -------
    Expression
        Names not looked up, types not checked.

    Raises
    ------
    SyntaxFaultError
        At the first place where the text is no expression.
    """
    parser = ExpressionParser(text, file)
    expression = parser.run(parser.expression)
    if not parser.at(""):
        parser.fail_expected("an operator or the end of the expression")
    return expression


# Expressions as text in the PRISM language, with no more brackets than needed.

_CONDITIONAL, _NOT, _NEGATION, _OPERAND = 1, 6, 11, 12
_TIGHT = frozenset(("*", "/"))
_SHOWN = 200  # nodes of an expression that a message shows


def value_text(value: bool | int | float) -> str:
    """Return a value as it is written in the PRISM language."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def to_text(expression: Expression) -> str:
    """Return an expression in the PRISM language.

    Parameters
    ----------
    expression : Expression
        A plain expression, resolved or not.

    Returns
    -------
    str
        Text that parses to an equal expression (a negative literal comes back as a negation).

    Raises
    ------
    TypeError
        For a node that is no plain expression.
    """
    return _Text({})(expression)[0]  # nothing is kept: texts of a long chain would be as many as long


def short_text(expression: Expression) -> str:
    """Return an expression for a message: its text, or three dots if it has more than 200 nodes.

    Time: O(1), also where the expression written out is exponentially larger than it is in memory.
    """
    stack, count = [expression], 0
    while stack:
        count += 1
        if count > _SHOWN:
            return "..."
        stack += children(stack.pop())
    return to_text(expression)


class _Text(Walk[tuple[str, int]]):
    """Texts with the precedence of their outermost operators."""

    def binary(self, e: Binary, left: tuple[str, int]) -> tuple[str, int]:
        own = PRECEDENCE[e.operator]
        space = "" if e.operator in _TIGHT else " "
        before = left[0] if left[1] >= own else f"({left[0]})"
        return f"{before}{space}{e.operator}{space}{self._bracketed(e.right, own + 1)}", own

    def _bracketed(self, e: Expression, least: int) -> str:
        text, strength = self(e)
        return text if strength >= least else f"({text})"

    def node(self, e: Expression) -> tuple[str, int]:
        if isinstance(e, Literal):
            text = decimal_text(e.value) if isinstance(e.value, float) else value_text(e.value)
            return text, _NEGATION if text.startswith("-") else _OPERAND
        if isinstance(e, Name):
            return e.name, _OPERAND
        if isinstance(e, Unary):
            own = _NOT if e.operator == "!" else _NEGATION
            return e.operator + self._bracketed(e.operand, own), own
        if isinstance(e, Conditional):
            parts = []
            last: Expression = e
            while isinstance(last, Conditional):
                condition = self._bracketed(last.condition, _CONDITIONAL + 1)
                parts.append(f"{condition} ? {self._bracketed(last.then, _CONDITIONAL + 1)} : ")
                last = last.otherwise
            return "".join(parts) + self(last)[0], _CONDITIONAL
        if isinstance(e, Call):
            return f"{e.function}({', '.join(self(a)[0] for a in e.arguments)})", _OPERAND
        if isinstance(e, LabelReference):
            return f'"{e.name}"', _OPERAND
        raise TypeError(
            f"expected a plain expression, got {type(e).__name__}; property operators have no text here"
        )
