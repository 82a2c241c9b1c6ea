"""Experiments as pictures: values over one constant, a line for every combination of the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hybrid.base.drawing.figures import (
    check_ending,
    line_style,
    new_figure,
    save_figure,
    shown_text,
    styled,
    whole_ticks,
)
from hybrid.base.errors import OptionError
from mtbdd.base.wording import constants_given

MOST_PANELS = 6
"""Properties of a picture, a panel each."""

_MOST_NAMED = 16  # lines that a legend names
_MAGNITUDES = 1e3  # between the least and the greatest value, from which the axis is logarithmic
_VISIBLE = 2e-3  # of the axis: bounds that are closer are one line with the value
_KEYS = ("property", "value", "lower", "upper", "kind", "error", "states", "seconds")

Record = Mapping[str, Any]


class _Line(NamedTuple):
    """A combination of the other constants: its name and its points, by the constant on the axis."""

    name: str
    points: list[tuple[Any, Record]]


def plot_experiment(
    records: Sequence[Record], path: str | Path, over: str | None = None, title: str = ""
) -> list[str]:
    """Draw the values of an experiment over one of its constants.

    Parameters
    ----------
    records : sequence of dict
        Runs as `hybrid.experiment` returns them: constants by name, `property`, `value`, `lower`, `upper`,
        `error`. Infinite values may be floats or the texts ``"Infinity"`` and ``"-Infinity"``.
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    over : str, optional
        The constant on the axis; default the one with the most values, the first of equals.
    title : str

    Returns
    -------
    list of str
        What was left out, a line a property, as it stands under the panels.

    Raises
    ------
    OptionError
        Another ending, no matplotlib, no record, more than six properties, a constant that there is not or
        that has no numbers.

    Notes
    -----
    Bounds are a band where they are wide enough to be seen. Infinite, missing and truth values are left out.
    """
    check_ending(path)
    if not records:
        raise OptionError("a plot of an experiment needs at least one run")
    properties = list(dict.fromkeys(str(record["property"]) for record in records))
    if len(properties) > MOST_PANELS:
        raise OptionError(f"a plot has at most {MOST_PANELS} properties, got {len(properties)}; choose some")
    axis = axis_constant(records, over)
    figure, panels = new_figure(1.2 + 5.0 * len(properties), 4.4, len(properties))
    notes = []
    with styled():
        for panel, name in zip(panels, properties, strict=True):
            own = [record for record in records if str(record["property"]) == name]
            notes.append(_panel(panel, name, own, axis))
        if title:
            figure.suptitle(shown_text(title), fontsize=10)
    save_figure(figure, path)
    return [note for note in notes if note]


def axis_constant(records: Sequence[Record], over: str | None = None) -> str:
    """Return the constant on the axis: that of this name, else the one with the most values.

    Raises
    ------
    OptionError
        There is no such constant, or it has no numbers.
    """
    names = list(dict.fromkeys(name for record in records for name in record if name not in _KEYS))
    if over is not None and over not in names:
        raise OptionError(f"over: expected one of the constants {', '.join(names) or '(none)'}, got {over!r}")
    values = {name: {record[name] for record in records if name in record} for name in names}
    numbers = [name for name in names if all(_is_number(value) for value in values[name])]
    wanted = [over] if over is not None else numbers
    if not wanted or wanted[0] not in numbers:
        example = constants_given(["N"], "1:10")
        raise OptionError(f"a plot of an experiment needs a constant with numbers, such as {example}")
    return max(wanted, key=lambda name: len(values[name]))


def _panel(panel: Any, name: str, records: Sequence[Record], axis: str) -> str:
    """Draw a property; return what was left out."""
    left_out: Counter[str] = Counter()
    lines = _lines(records, axis)
    drawn = []
    for number, line in enumerate(lines):
        points = []
        for x, record in sorted(line.points, key=lambda point: point[0]):
            reason = _missing(record)
            if reason:
                left_out[reason] += 1
            points.append((x, math.nan if reason else float(record["value"]), *_bounds(record)))
        if any(math.isfinite(point[1]) for point in points):
            drawn.append((number, line.name, points))
    span = _draw(panel, drawn)
    for number, _, points in drawn:
        _band(panel, points, span, line_style(number)["color"])
    if all(isinstance(x, int) for line in lines for x, _ in line.points):
        whole_ticks(panel.xaxis)
    if drawn and all(isinstance(r["value"], int) for r in records if not _missing(r)):
        whole_ticks(panel.yaxis)
    panel.set_xlabel(shown_text(axis))
    panel.set_title(shown_text(name if len(name) <= 60 else f"{name[:59]}…"))
    if 1 < len(drawn) <= _MOST_NAMED or (drawn and drawn[0][1]):
        panel.legend(title=None if len(drawn) <= _MOST_NAMED else f"the first of {len(drawn)} lines")
    note = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    if note:
        note = f"left out: {note}"
        panel.annotate(
            note,
            (0, 0),
            (0, -34),
            "axes fraction",
            "offset points",
            fontsize=7.5,
            va="top",
            annotation_clip=False,
        )
    return f"{name}: {note}" if note else ""


def _draw(panel: Any, drawn: Sequence[tuple[int, str, list[tuple[Any, ...]]]]) -> float:
    """Draw the lines; return the span of their values."""
    values: list[float] = []
    for place, (number, name, points) in enumerate(drawn):
        label = shown_text(name) if place < _MOST_NAMED else None
        x, y = [p[0] for p in points], [p[1] for p in points]
        panel.plot(x, y, label=label or None, **line_style(number))
        values += [value for value in y if math.isfinite(value)]
    if not drawn:
        panel.text(0.5, 0.5, "no finite values", transform=panel.transAxes, ha="center", color="#57606a")
    if not values:
        return 0.0
    if min(values) > 0 and max(values) > _MAGNITUDES * min(values):
        panel.set_yscale("log")
        return min(values)
    return max(values) - min(values) or abs(values[0])


def _band(panel: Any, points: Sequence[tuple[Any, ...]], span: float, color: str) -> None:
    """Draw bounds where they can be told from the value."""
    wide = [upper - lower > _VISIBLE * span for _, _, lower, upper in points]
    if any(wide):
        x, lower, upper = ([point[k] for point in points] for k in (0, 2, 3))
        panel.fill_between(x, lower, upper, color=color, alpha=0.18, linewidth=0)
        middle = [0.5 * (a + b) for a, b in zip(lower, upper, strict=True)]
        half = [0.5 * (b - a) for a, b in zip(lower, upper, strict=True)]
        panel.errorbar(x, middle, half, fmt="none", ecolor=color, elinewidth=1.0, capsize=2.5)


def _lines(records: Sequence[Record], axis: str) -> list[_Line]:
    """Return the records by combinations of the other constants that are not the same in all."""
    names = [name for name in dict.fromkeys(n for r in records for n in r) if name not in (*_KEYS, axis)]
    varying = [name for name in names if len({record.get(name) for record in records}) > 1]
    found: dict[str, _Line] = {}
    for record in records:
        label = ", ".join(f"{name}={_value_text(record.get(name))}" for name in varying)
        found.setdefault(label, _Line(label, [])).points.append((record[axis], record))
    return list(found.values())


def _missing(record: Record) -> str:
    """Return why a record has no point, if it has none."""
    value = record["value"]
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "without an answer" if record.get("error") else "without a value"
    return "" if math.isfinite(float(value)) else "infinite"


def _bounds(record: Record) -> tuple[float, float]:
    """Return finite bounds, or none."""
    lower, upper = (record.get(name) for name in ("lower", "upper"))
    if lower is None or upper is None or isinstance(lower, bool) or isinstance(upper, bool):
        return math.nan, math.nan
    return (
        (float(lower), float(upper)) if math.isfinite(float(upper) - float(lower)) else (math.nan, math.nan)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _value_text(value: Any) -> str:
    return (
        str(value).lower() if isinstance(value, bool) else f"{value:g}" if _is_number(value) else str(value)
    )
