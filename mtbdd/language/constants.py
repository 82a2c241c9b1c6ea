"""Constants given from outside: reading them from text, and checking them against declarations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from mtbdd.language.errors import FaultCollector, listed, suggestion
from mtbdd.language.model_syntax import Constant
from mtbdd.language.rounded import LONGEST, Rounded, as_double, from_real, from_text
from mtbdd.language.scalars import INT_LIMIT, Scalar
from mtbdd.language.syntax import Position, Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE = re.compile(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?")


def parse_constants(text: str) -> dict[str, Scalar]:
    """Read constants as given on a command line.

    Parameters
    ----------
    text : str
        `NAME=VALUE,NAME=VALUE,...`; a value is an integer, a double or true/false.  Blanks around names
        and values are skipped; an empty text gives no constants.

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
    >>> parse_constants("N=4, K=2.5, flag=true")
    {'N': 4, 'K': 2.5, 'flag': True}
    """
    faults = FaultCollector()
    result: dict[str, Scalar] = {}
    column = 1
    for item in text.split(",") if text.strip() else ():
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
            value = _value(value_text)
            if value is None:
                advice = "; give one value, ranges are not supported" if ":" in value_text else ""
                faults.add(
                    position,
                    f"expected an integer, a double, true or false for '{name}', got '{value_text}'{advice}",
                )
            else:
                result[name] = value
    faults.raise_if_any()
    return result


def _value(text: str) -> Scalar | None:
    """Return the value that a text stands for, None if it stands for none."""
    if text in ("true", "false"):
        return text == "true"
    if _INT.fullmatch(text):
        number = int(text)
        return number if -INT_LIMIT <= number < INT_LIMIT else None
    if _DOUBLE.fullmatch(text):
        try:
            return from_text(text)
        except ValueError:
            return None
    return None


def check_given(
    given: Mapping[str, object],
    declared: Iterable[Constant],
    known_names: Iterable[str],
    file: str,
    faults: FaultCollector,
    ignore_unknown: bool = False,
) -> dict[str, Scalar]:
    """Return the given constants with values of their declared types.

    Parameters
    ----------
    given : mapping of str to bool, int, float, Fraction or Decimal
        numpy's numbers are taken, too.  A float stands for the shortest decimal that rounds to it, as Python
        shows it: 0.1 is one tenth, like 0.1 in a text.
    declared : iterable of Constant
        The declarations.
    known_names : iterable of str
        Other constants that may be given, declared elsewhere.
    file : str
        Where the declarations stand.
    faults : FaultCollector
        Takes a fault for each value of a wrong type, each constant that has a value already and, unless
        ignored, each constant that is not declared.
    ignore_unknown : bool
        Pass over constants that are not declared.

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
            if name not in others:
                unknown.append(name)
        elif constant.value is not None:
            faults.add(
                constant.position,
                f"constant '{name}' has a value here, so none can be given, got {value}; take the value "
                "out of the text, or do not give one",
            )
        else:
            converted = _converted(value, constant.type)
            if converted is None:
                shown = str(value).lower() if isinstance(value, bool) else repr(value)
                faults.add(
                    constant.position,
                    f"constant '{name}' must be {_VALUES[constant.type]}, got {shown}",
                )
            else:
                result[name] = converted
    if unknown and not ignore_unknown:
        open_names = [c.name for c in constants.values() if c.value is None] + sorted(others)
        known = f"known are {listed(open_names)}" if open_names else "no constant is left open here"
        for name in unknown:
            hint = suggestion(str(name), open_names)
            faults.add(Position(file, 1, 1), f"unknown constant '{name}' was given{hint}; {known}")
    return result


_VALUES = {Type.INT: "an int of 64 bits", Type.DOUBLE: "a finite number", Type.BOOL: "true or false"}


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
