"""Figures in prose: each stands between comments that name its record, its field and its format.

In the source a figure looks like ``<!-- = whole_run.rows[0].wall_seconds .0f -->44<!-- . -->``; a reader of
the page sees ``44``. The expression is evaluated on the records: fields by name, rows by number or by
``["key=value"]`` (also ``!=``, ``<``, ``>``), ``+ - * /`` with numbers, and :data:`FUNCTIONS` over what rows
have under a field. Rows without the field, those with an error for instance, are left out.
"""

from __future__ import annotations

import ast
import operator
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rendering.markdown import Row

__all__ = [
    "FUNCTIONS",
    "MARKER",
    "Difference",
    "FigureError",
    "evaluate",
    "figure_differences",
    "with_figures",
]

Load = Callable[[str], "Row | None"]

MARKER = re.compile(
    r"<!-- = (?P<expression>\S.*?) (?P<format>,?(?:\.\d+)?[dfegs]) -->(?P<text>[^<>\n]*)<!-- \. -->"
)
"""A figure with its comments."""

_OPENING, _CLOSING = "<!-- = ", "<!-- . -->"
_SELECTION = re.compile(r"(?P<key>\w+)(?P<relation>!=|=|<|>)(?P<value>.*)")
_BEGINS_A_LINE = re.compile(r"\s*(?:[-*+]\s+|\d+\.\s+)?<!-- = ")
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": len,
    "geomean": statistics.geometric_mean,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "sum": sum,
}
"""What may be asked of the values of a field over rows."""


class FigureError(ValueError):
    """An expression that no record answers, or comments that are not a pair."""


@dataclass(frozen=True)
class Column:
    """A value for every one of some rows; None where a row has none."""

    rows: list[Row]
    values: list[Any]

    def known(self) -> list[Any]:
        """Return the values that there are."""
        return [value for value in self.values if value is not None]


@dataclass(frozen=True)
class Difference:
    """A line of a page that is not what the records say."""

    line: int
    stands: str
    right: str
    source: str

    def __str__(self) -> str:
        return f"{self.line}: stands {self.stands!r}, {self.source} says {self.right!r}"


def evaluate(expression: str, load: Load) -> Any:
    """Return what an expression says on the records.

    Parameters
    ----------
    expression : str
    load : callable
        Returns a record by its name, always the same object; None if there is none.

    Raises
    ------
    FigureError
        If it is not an expression as described above, or a record, row or field is not there.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
        if not any(isinstance(node, ast.Attribute | ast.Subscript) for node in ast.walk(tree)):
            raise FigureError("expected a field of a record, as in whole_run.rows[0].wall_seconds")
        return _scalar(_value(tree, load))
    except (SyntaxError, TypeError, ZeroDivisionError, statistics.StatisticsError) as error:
        raise FigureError(f"{expression}: {error}") from None
    except FigureError as error:
        raise FigureError(f"{expression}: {error}") from None


def _value(node: ast.expr, load: Load) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            record = load(name)
            if record is None:
                raise FigureError(f"there is no record {name}")
            return record
        case ast.Attribute(value=inner, attr=key):
            return _field(_value(inner, load), key)
        case ast.Subscript(value=inner, slice=ast.Constant(value=str(key))):
            return _chosen(_value(inner, load), key)
        case ast.Subscript(value=inner, slice=index):
            return _at(_value(inner, load), ast.literal_eval(index))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _combined(_OPERATIONS[type(op)], _value(left, load), _value(right, load))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            values = _alone(_value(argument, load))
            return FUNCTIONS[name](values.known() if isinstance(values, Column) else values)
    raise FigureError(f"expected fields, rows, numbers, + - * / or {', '.join(FUNCTIONS)}")


def _field(value: Any, key: str) -> Any:
    """Return a field: of a row, or of each row that has it."""
    if isinstance(value, dict):
        if key not in value:
            raise FigureError(f"no field {key}; there are {', '.join(value)}")
        return value[key]
    rows = value.rows if isinstance(value, Column) else value
    within = value.values if isinstance(value, Column) else value
    if not isinstance(within, list) or not all(isinstance(row, dict | None) for row in within):
        raise FigureError(f"no field {key} of a {type(value).__name__}")
    found = Column(rows, [None if row is None else row.get(key) for row in within])
    if not found.known():
        raise FigureError(f"no row has a field {key}")
    return found


def _chosen(value: Any, selection: str) -> Any:
    """Return the field of that name, or the rows for which a relation holds."""
    value, parts = _alone(value), _SELECTION.fullmatch(selection)
    if parts is None:
        return _field(value, selection)
    if not isinstance(value, list):
        raise FigureError(f"no rows to choose from by {selection}")
    rows = [row for row in value if _holds(row, **parts.groupdict())]
    if not rows:
        raise FigureError(f"no row with {selection}")
    return rows


def _holds(row: Row, key: str, relation: str, value: str) -> bool:
    there: Any = row.get(key)
    if isinstance(there, dict):
        there = ",".join(f"{name}={number}" for name, number in there.items())
    if relation in "<>":
        return there is not None and (there < float(value) if relation == "<" else there > float(value))
    return (str(there) == value) is (relation == "=")


def _at(value: Any, index: Any) -> Any:
    value = _alone(value)
    if not isinstance(value, list) or not isinstance(index, int):
        raise FigureError(f"no row {index}")
    try:
        return value[index]
    except IndexError:
        raise FigureError(f"no row {index}; there are {len(value)}") from None


def _combined(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return what an operation makes of two numbers, or of a column and a number or column, row by row."""
    left, right = _alone(left), _alone(right)
    columns = [side for side in (left, right) if isinstance(side, Column)]
    if len(columns) == 2 and [id(row) for row in left.rows] != [id(row) for row in right.rows]:
        raise FigureError("expected columns of the same rows")
    if not columns:
        return operation(left, right)
    rows = columns[0].rows
    first, second = (
        side.values if isinstance(side, Column) else [side] * len(rows) for side in (left, right)
    )
    pairs = zip(first, second, strict=True)
    return Column(rows, [None if a is None or b is None else operation(a, b) for a, b in pairs])


def _alone(value: Any) -> Any:
    """Return what a row that was chosen alone has."""
    return value.values[0] if isinstance(value, Column) and len(value.values) == 1 else value


def _scalar(value: Any) -> Any:
    """Return a value that is one number or text."""
    value = _alone(value)
    if not isinstance(value, int | float | str):
        what = f"{len(value.values)} values" if isinstance(value, Column) else f"a {type(value).__name__}"
        raise FigureError(f"expected one number, got {what}; choose a row, or take min, max, geomean")
    return value


# ------------------------------------------------------------------ pages


def with_figures(text: str, load: Load) -> str:
    """Return a page with its figures made anew.

    Raises
    ------
    FigureError
        As :func:`evaluate` does, and for comments that are broken, or begin a line, which is then HTML.
    """
    _check_comments(text)
    return MARKER.sub(lambda found: _replaced(found, _shown(found, load)), text)


def figure_differences(text: str, load: Load) -> Iterator[Difference]:
    """Yield the figures of a page that are not what the records say."""
    for found in MARKER.finditer(text):
        right = _shown(found, load)
        if right != found["text"]:
            line = text.count("\n", 0, found.start()) + 1
            yield Difference(line, found["text"], right, found["expression"])


def _replaced(found: re.Match[str], right: str) -> str:
    return f"{_OPENING}{found['expression']} {found['format']} -->{right}{_CLOSING}"


def _shown(found: re.Match[str], load: Load) -> str:
    value = evaluate(found["expression"], load)
    try:
        return format(value, found["format"])
    except ValueError as error:
        raise FigureError(f"{found['expression']}: {error}, for {value!r}") from None


def _check_comments(text: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if _BEGINS_A_LINE.match(line):
            raise FigureError(
                f"line {number}: a figure begins the line, which is then HTML; move a word before it"
            )
        whole = len(MARKER.findall(line))
        if line.count(_OPENING) != whole or line.count(_CLOSING) != whole:
            raise FigureError(f"line {number}: expected <!-- = FIELD FORMAT -->figure<!-- . --> on one line")
