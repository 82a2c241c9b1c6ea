"""Types of expressions, by PRISM's rules.

An int may stand where a double is wanted, never the other way round; booleans and numbers do not mix. The
operators `/` and `log` give doubles, `floor`, `ceil` and `round` give ints. Other arithmetic gives an int
exactly when all operands are ints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mtbdd.language.errors import FaultCollector, listed, suggestion
from mtbdd.language.expression_parser import FUNCTIONS, short_text
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    Type,
    Unary,
)
from mtbdd.language.walk import Walk

_LOGIC = frozenset(("&", "|", "=>", "<=>"))
_ORDER = frozenset(("<", "<=", ">", ">="))
_NUMBERS = frozenset((Type.INT, Type.DOUBLE))


def type_of_value(value: bool | int | float) -> Type:
    """Return the type of a constant's value."""
    if isinstance(value, bool):
        return Type.BOOL
    return Type.INT if isinstance(value, int) else Type.DOUBLE


class TypeChecker(Walk[Type | None]):
    """Finds the type of expressions, None after a fault in them, and records type faults.

    `types`: the type of every name; None for a name whose own definition is at fault, so that no consequences
    are reported. `faults`: takes the faults. `labels`: the labels that may be mentioned in quotes; by default
    none may.
    """

    def __init__(
        self,
        types: Mapping[str, Type | None],
        faults: FaultCollector,
        labels: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.types = types
        self.faults = faults
        self.labels = labels

    def expect(self, expression: Expression, wanted: Type, what: str, advice: str = "") -> bool:
        """Check an expression that must have a certain type, an int being a double, too."""
        found = self(expression)
        return self.fits(expression, found, wanted, what, advice)

    def fits(
        self, expression: Expression, found: Type | None, wanted: Type, what: str, advice: str = ""
    ) -> bool:
        """Compare the type found for an expression with the one wanted; note a fault if it does not fit."""
        if found is None:
            return False
        if found is wanted or (wanted is Type.DOUBLE and found is Type.INT):
            return True
        if not advice:
            if wanted is Type.INT and found is Type.DOUBLE:
                advice = "use floor, ceil or round"
            elif wanted is Type.BOOL:
                advice = "compare it with something"
            else:
                advice = "use condition ? 1 : 0 for a number" if found is Type.BOOL else ""
        name = "number" if wanted is Type.DOUBLE else wanted.value
        self._add(
            expression, f"{what} must be {_article(name)}, got {self._shown(expression, found)}", advice
        )
        return False

    def _add(self, expression: Expression, message: str, advice: str = "") -> None:
        self.faults.add(expression.position, f"{message}; {advice}" if advice else message)

    # ------------------------------------------------------------------ kinds of node

    def node(self, e: Expression) -> Type | None:
        """Return the type of a node that is no binary operator."""
        if isinstance(e, Literal):
            return type_of_value(e.value)
        if isinstance(e, Name):
            return self._name(e)
        if isinstance(e, Unary):
            return self._unary(e)
        if isinstance(e, Conditional):
            return self._conditional(e)
        if isinstance(e, Call):
            return self._call(e)
        if isinstance(e, LabelReference):
            return self.label(e)
        return self.special(e)

    def special(self, expression: Expression) -> Type | None:
        """Return the type of a node that is no plain expression; here there are none."""
        self._add(expression, f"expected an expression, got {type(expression).__name__}")
        return None

    def text(self, expression: Expression) -> str:
        """Return an expression for a message."""
        return short_text(expression)

    def _shown(self, expression: Expression, found: Type) -> str:
        text = self.text(expression)
        return f"{_article(found.value)} '{text if len(text) <= 40 else text[:37] + '...'}'"

    def _name(self, e: Name) -> Type | None:
        try:
            return self.types[e.name]
        except KeyError:
            pass
        if self.labels is not None and e.name in self.labels:
            self._add(e, f"unknown name '{e.name}'; a label is written in quotes", f'write "{e.name}"')
            return None
        hint = suggestion(e.name, self.types) or "; declare it as a constant, a formula or a variable"
        self._add(e, f"unknown name '{e.name}'{hint}")
        return None

    def label(self, e: LabelReference) -> Type | None:
        """Return the type of a label in quotes."""
        if self.labels is None:
            self._add(
                e, f'the label "{e.name}" cannot be used here', "write its expression, or make it a formula"
            )
        elif e.name in self.labels:
            return Type.BOOL
        else:
            known = [f'"{name}"' for name in sorted(self.labels)]
            hint = suggestion(e.name, self.labels) or f"; known are {listed(known)}"
            self._add(e, f'unknown label "{e.name}"{hint}')
        return None

    def _unary(self, e: Unary) -> Type | None:
        found = self(e.operand)
        if e.operator == "!":
            return Type.BOOL if self.fits(e.operand, found, Type.BOOL, "the operand of '!'") else None
        return found if self.fits(e.operand, found, Type.DOUBLE, "the operand of '-'") else None

    def binary(self, e: Binary, left: Type | None) -> Type | None:
        """Return the type of a binary operator, given that of its left operand."""
        right = self(e.right)
        operator = e.operator
        if operator not in ("=", "!="):
            wanted, result = Type.DOUBLE, Type.BOOL
            if operator in _LOGIC:
                wanted = Type.BOOL
            elif operator not in _ORDER:
                result = Type.DOUBLE
            fits_left = self.fits(e.left, left, wanted, f"the left operand of '{operator}'")
            if not (self.fits(e.right, right, wanted, f"the right operand of '{operator}'") and fits_left):
                return None
            if result is Type.DOUBLE and operator != "/" and left is Type.INT and right is Type.INT:
                return Type.INT
            return result
        if left is None or right is None:
            return None
        if (left is Type.BOOL) != (right is Type.BOOL):
            self._add(
                e.right,
                f"'{operator}' must compare two numbers or two bools, got {self._shown(e.left, left)} and "
                f"{self._shown(e.right, right)}",
            )
            return None
        return Type.BOOL

    def _conditional(self, e: Conditional) -> Type | None:
        # A chain of conditions leans to the right; it is walked in a loop.
        branches: list[tuple[Expression, Type | None]] = []
        sound = True
        last: Expression = e
        while isinstance(last, Conditional):
            sound = self.expect(last.condition, Type.BOOL, "the condition of '?'") and sound
            branches.append((last.then, self(last.then)))
            last = last.otherwise
        branches.append((last, self(last)))
        known = [(branch, found) for branch, found in branches if found is not None]
        if not sound or len(known) < len(branches):
            return None
        first, kind = known[0]
        for branch, found in known[1:]:
            if (found is Type.BOOL) != (kind is Type.BOOL):
                self._add(
                    branch,
                    f"the branches of '?' must both be numbers or both be bool, got "
                    f"{self._shown(first, kind)} and {self._shown(branch, found)}",
                )
                return None
        return Type.DOUBLE if any(found is Type.DOUBLE for _, found in known) else kind

    def _call(self, e: Call) -> Type | None:
        arguments = [self(argument) for argument in e.arguments]
        if e.function not in FUNCTIONS:
            hint = suggestion(e.function, [*FUNCTIONS, "filter"]) or f"; known are {', '.join(FUNCTIONS)}"
            self._add(e, f"unknown function '{e.function}'{hint}")
            return None
        least, most = FUNCTIONS[e.function]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = f"{least}" if most == least else f"at least {least}"
            plural = "" if wanted == "1" else "s"
            self._add(e, f"'{e.function}' takes {wanted} argument{plural}, got {len(arguments)}")
            return None
        wanted_type = Type.INT if e.function == "mod" else Type.DOUBLE
        what = f"an argument of '{e.function}'"
        fits = [
            self.fits(argument, found, wanted_type, what)
            for argument, found in zip(e.arguments, arguments, strict=True)
        ]
        if not all(fits):
            return None
        if e.function in ("floor", "ceil", "round", "mod"):
            return Type.INT
        if e.function == "log":
            return Type.DOUBLE
        return Type.INT if all(found is Type.INT for found in arguments) else Type.DOUBLE


def _article(name: str) -> str:
    return f"an {name}" if name == "int" else f"a {name}"


def expression_type(expression: Expression, types: Mapping[str, Type]) -> Type:
    """Return the type of an expression.

    Parameters
    ----------
    expression : Expression
        A plain expression; labels are not allowed.
    types : mapping of str to Type
        The type of every name in it.

    Returns
    -------
    Type

    Raises
    ------
    LanguageError
        With every unknown name and every operand of a wrong type.

    Notes
    -----
    Time: O(size of the expression).
    """
    faults = FaultCollector()
    found = TypeChecker(types, faults)(expression)
    faults.raise_if_any()
    if found is None:
        raise TypeError("expected a type for every name, got None for one of them")
    return found


def is_double(expression: Expression, name_is_double: Callable[[str], bool]) -> bool:
    """Return whether a well-typed expression is a double.

    `expression`: checked before. `name_is_double`: whether a name is a double. Time: O(distinct objects in
    the expression).
    """
    stack = [expression]
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if isinstance(e, Literal):
            if isinstance(e.value, float):
                return True
        elif isinstance(e, Name):
            if name_is_double(e.name):
                return True
        elif isinstance(e, Unary):
            stack.append(e.operand)
        elif isinstance(e, Binary):
            if e.operator == "/":
                return True
            if e.operator in ("+", "-", "*"):
                stack += (e.left, e.right)
        elif isinstance(e, Conditional):
            stack += (e.then, e.otherwise)
        elif isinstance(e, Call):
            if e.function == "log":
                return True
            if e.function in ("min", "max", "pow"):
                stack.extend(e.arguments)
    return False
