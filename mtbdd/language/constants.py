"""Constants given from outside: reading them from text, and checking them against declarations."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from mtbdd.language.errors import EvaluationError, FaultCollector, listed, suggestion
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.reals import LONGEST, Rounded, as_double, from_real, from_text
from mtbdd.language.scalars import INT_LIMIT, Folder, Scalar
from mtbdd.language.syntax import Constant, Literal, Position, Type
from mtbdd.language.types import TypeChecker

Ignored = bool | Collection[str]
"""Which constants may be given that are not declared."""

_SHOWN = 60  # characters of a value that are shown
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def parse_constants(text: str) -> dict[str, Scalar]:
    """Read constants as given on a command line.

    Parameters
    ----------
    text : str
        `NAME=VALUE,NAME=VALUE,...`; a value is an integer, a double, true or false, or an expression of such,
        like `1/2`.  Blanks around names and values are skipped; an empty text gives no constants.

    Returns
    -------
    dict of str to bool, int or float
        In the order of the text.

    Raises
    ------
    LanguageError
        With every item at fault; the column counts within the text.

    Examples
    --------
    >>> parse_constants("N=4, K=5/2, flag=true")
    {'N': 4, 'K': 2.5, 'flag': True}
    """
    faults = FaultCollector()
    result: dict[str, Scalar] = {}
    column = 1
    for item in constant_items(text):
        position = Position("<constants>", 1, column + len(item) - len(item.lstrip()))
        column += len(item) + 1
        name, sign, value_text = (part.strip() for part in item.partition("="))
        if not item.strip():
            faults.add(position, "expected NAME=VALUE, got nothing between two commas; take one comma out")
        elif not _NAME.fullmatch(name) or not sign:
            faults.add(position, f"expected NAME=VALUE, got '{item.strip()}'; write it like N=4")
        elif name in result:
            faults.add(position, f"constant '{name}' is given twice; keep one value")
        else:
            try:
                result[name] = constant_value(value_text)
            except ValueError as error:
                advice = "; give one value, ranges are not supported" if is_range(value_text) else ""
                faults.add(position, f"{str(error).replace('@', name, 1)}{advice}")
    faults.raise_if_any()
    return result


def constant_items(text: str) -> list[str]:
    """Return the parts between the commas of a list of constants; commas in brackets are their values'."""
    items, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if sign == "," and depth <= 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]] if text.strip() else []


def is_range(value: str) -> bool:
    """Return whether the text of a constant's value is a range, ``2:10``, and no condition, ``a ? b : c``."""
    return ":" in value and "?" not in value


def constant_value(text: str) -> Scalar:
    """Return the value of a constant that is given as text: a literal, or an expression of literals.

    Raises ValueError: there is none; the message says what was expected, `@` standing for the constant's
    name.

    Examples
    --------
    >>> constant_value("3"), constant_value("1."), constant_value("1/4"), constant_value("max(1, 2)")
    (3, 1.0, 0.25, 2)
    """
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    reason = ""
    try:
        if _INT.fullmatch(text) and -INT_LIMIT <= int(text) < INT_LIMIT:
            return int(text)
        if _DOUBLE.fullmatch(text) and not _INT.fullmatch(text):
            return from_text(text)
        faults = FaultCollector()
        expression = parse_expression(text.removeprefix("+"))
        if TypeChecker({}, faults)(expression) is not None:
            value = Folder({}, {})(expression)
            if isinstance(value, Literal):
                return value.value
    except EvaluationError as error:
        reason = f": {error.faults[0].message}"
    except ValueError:
        pass
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    raise ValueError(
        "expected an integer, a double, an expression of them like 1/2, true or false for '@', got "
        f"'{shown}'{reason}"
    )


def is_ignored(name: str, ignored: Ignored) -> bool:
    """Return whether a constant that is not declared is passed over: all of them, or those of some names."""
    return ignored if isinstance(ignored, bool) else name in ignored


def type_of_given(value: object) -> Type | None:
    """Return the type that a value would give a constant, None if it would give it none."""
    found = _read(value)
    if type(found).__name__ in ("bool", "bool_"):
        return Type.BOOL
    if isinstance(found, Integral):
        return Type.INT
    return Type.DOUBLE if isinstance(found, (Real, Decimal)) else None


def check_given(
    given: Mapping[str, object],
    declared: Iterable[Constant],
    known_names: Iterable[str],
    file: str,
    faults: FaultCollector,
    ignore_unknown: Ignored = False,
) -> dict[str, Scalar]:
    """Return the given constants with values of their declared types.

    Parameters
    ----------
    given : mapping of str to bool, int, float, Fraction, Decimal or str
        numpy's numbers are taken, too.  A float stands for the shortest decimal that rounds to it, as Python
        shows it: 0.1 is one tenth, like 0.1 in a text.  Text is read as on a command line.
    declared : iterable of Constant
        The declarations.
    known_names : iterable of str
        Other constants that may be given, declared elsewhere.
    file : str
        Where the declarations stand.
    faults : FaultCollector
        Takes a fault for each value of a wrong type, each constant that has a value already and, unless
        ignored, each constant that is not declared.
    ignore_unknown : bool or collection of str
        Pass over constants that are not declared, all or those of these names.

    Returns
    -------
    dict of str to bool, int or float
        Ints given for doubles are floats.
    """
    constants = {constant.name: constant for constant in declared}
    others = frozenset(known_names)
    result: dict[str, Scalar] = {}
    unknown = []
    for name, value in given.items():
        constant = constants.get(name)
        if constant is None:
            if name not in others and not is_ignored(name, ignore_unknown):
                unknown.append(name)
        elif constant.value is not None:
            faults.add(
                constant.position,
                f"constant '{name}' has a value here, so none can be given, got {value}; take the value "
                "out of the text, or do not give one",
            )
        else:
            converted = _converted(_read(value), constant.type)
            if converted is None:
                shown = str(value).lower() if isinstance(value, bool) else repr(value)
                faults.add(
                    constant.position, f"constant '{name}' must be {_VALUES[constant.type]}, got {shown}"
                )
            else:
                result[name] = converted
    if unknown:
        open_names = [c.name for c in constants.values() if c.value is None] + sorted(others)
        known = f"known are {listed(open_names)}" if open_names else "no constant is left open here"
        for name in unknown:
            hint = suggestion(str(name), open_names)
            faults.add(Position(file, 1, 1), f"unknown constant '{name}' was given{hint}; {known}")
    return result


_VALUES = {Type.INT: "an int of 64 bits", Type.DOUBLE: "a finite number", Type.BOOL: "true or false"}


def _read(value: object) -> object:
    """Return what a text stands for, itself if it stands for nothing, and other values as they are."""
    try:
        return constant_value(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _converted(value: object, type_: Type) -> Scalar | None:
    """Return a value as the declared type, None if it does not fit."""
    # A bool is an int for Python, and numpy's bool is no number at all.
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value) if type_ is Type.BOOL else None
    if type_ is Type.BOOL:
        return None
    if isinstance(value, Integral):
        number = int(value)
        if not -INT_LIMIT <= number < INT_LIMIT:
            return None
        return as_double(number) if type_ is Type.DOUBLE else number
    if type_ is not Type.DOUBLE or not isinstance(value, (Real, Decimal)) or not math.isfinite(value):
        return None
    if isinstance(value, Decimal):
        value = Fraction(value) if abs(value.adjusted()) <= 10 * LONGEST else math.inf
    if isinstance(value, Rounded):
        return value
    double = from_real(Fraction(value)) if isinstance(value, Rational) else from_text(repr(float(value)))
    return double if math.isfinite(double) else None
