"""The answers of an experiment on a terminal: a row an answer, as soon as it is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from hybrid.app.cli.console import Screen, value_text
from hybrid.base.units import seconds_text
from hybrid.checking.answer import Answer
from hybrid.properties import Property
from mtbdd.language import parse_constants

if TYPE_CHECKING:
    from rich.text import Text

_VALUE, _ERROR, _SECONDS, _STATES = 23, 11, 8, 14
_MOST = 40  # columns of a property's text


class _RunColumn(NamedTuple):
    """A column, and whether its cells stand at the left, not at the right."""

    name: str
    width: int
    is_left: bool = False


class RunTable:
    """Columns: constants that vary, the property where there are several, states, value, error and time.

    Column widths are fixed beforehand, so that rows can be printed one by one; states,
    time and error are left out where they do not fit.
    """

    def __init__(self, screen: Screen, combinations: Sequence[str], asked: Sequence[Property]) -> None:
        self._screen = screen
        runs = [{name: _plain(v) for name, v in parse_constants(text).items()} for text in combinations]
        self._given = runs[0]
        self._varying = [name for name in runs[0] if len({run[name] for run in runs}) > 1]
        self._columns = [
            _RunColumn(name, max(len(name), *(len(run[name]) for run in runs))) for name in self._varying
        ]
        self._names_properties = len(asked) > 1
        if self._names_properties:
            widest = max(len(_title(p)) for p in asked)
            self._columns.append(_RunColumn("property", min(max(widest, len("property")), _MOST), True))
        self._columns += [
            _RunColumn("states", _STATES),
            _RunColumn("value", _VALUE, True),
            _RunColumn("error", _ERROR, True),
            _RunColumn("time", _SECONDS),
        ]
        for name in ("states", "time", "error"):
            if sum(c.width + 2 for c in self._columns) - 2 > screen.width:
                self._columns = [c for c in self._columns if c.name != name]

    def head(self, record: Mapping[str, Any]) -> str:
        """Return a line about the model of all runs, given its record, and the names of the columns."""
        known = {name: _plain(value) for name, value in record["constants"].items()} | self._given
        same = ", ".join(f"{name}={value}" for name, value in known.items() if name not in self._varying)
        title = f"{record['file']} ({record['type']})" + (f"  {same}" if same else "")
        return f"{self._screen.drawn(title)}\n{self._row({c.name: c.name for c in self._columns}, 'bold')}"

    def row(self, constants: Mapping[str, Any], states: int | None, answer: Answer) -> str:
        """Return the row of an answer; an error message is shown in full."""
        cells = {name: _plain(constants[name]) for name in self._varying}
        cells["property"] = _title(answer)
        cells["states"] = "" if states is None else f"{states:,}"
        cells["time"] = seconds_text(answer.seconds)
        if answer.error is not None and answer.lower is None:
            return self._row(cells | {"value": f"not answered: {answer.error}"}, "red", cut="value")
        if answer.error is not None:
            text = f"{answer.error}; between {value_text(answer.lower)} and {value_text(answer.upper)} so far"
            return self._row(cells | {"value": text}, "magenta", cut="value")
        if answer.range is not None:
            return self._row(cells | {"value": str(answer.range)}, cut="value")
        return self._row(cells | {"value": value_text(answer.value), "error": _error(answer)})

    def _row(self, cells: Mapping[str, str], style: str = "", cut: str | None = None) -> str:
        """Return cells side by side; the cell of the column `cut` is whole, and the last one."""
        from rich.cells import cell_len, set_cell_size
        from rich.text import Text

        line = Text(style=style)
        for column in self._columns:
            text = cells[column.name]
            if column.name == cut:
                line.append(text)
                break
            if cell_len(text) > column.width and column.name == "property":
                text = set_cell_size(text, column.width - 1) + "…"
            room = " " * max(column.width - cell_len(text), 0)
            line.append(f"{text}{room}  " if column.is_left else f"{room}{text}  ", _STYLES.get(column.name))
        line.rstrip()
        return self._drawn(line, cut is None)

    def _drawn(self, line: Text, is_cut: bool) -> str:
        line.no_wrap, line.overflow = is_cut, "ellipsis" if is_cut else "fold"
        return self._screen.drawn(line)


_STYLES = {"states": "dim", "error": "dim", "time": "dim"}


def _title(of: Property | Answer) -> str:
    """Return a property's name, or its text."""
    text = of.text if isinstance(of, Property) else of.property
    return of.name or " ".join(text.split())


def _error(answer: Answer) -> str:
    """Return the error bound of a value, rounded up."""
    value, lower, upper = answer.value, answer.lower, answer.upper
    if answer.kind == "estimate":
        return "estimate"
    if answer.kind == "exact":
        return "exact"
    if isinstance(value, bool) or value is None or lower is None or upper is None:
        return ""
    off = max(float(upper) - float(value), float(value) - float(lower))
    up = Context(prec=2, rounding=ROUND_CEILING)
    return f"± {up.create_decimal(Decimal(math.nextafter(off, math.inf))):.1e}"


def _plain(value: bool | int | float) -> str:
    """Return a constant as the language writes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}"
