"""Figures of matplotlib (extra `plot`): their colours, axes and files, the same for every picture.

Colours are those of Okabe and Ito, which people with any kind of colour vision distinguish. Lines differ in
their dashes and points as well, so that a print in grey is read, too. The ground is white, never transparent.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from hybrid.base.errors import OptionError
from hybrid.base.installing import install_command
from mtbdd.base.errors import constants_given

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#1b1f24")
"""One a line, in this order; then again with the next of `DASHES`."""

DASHES = ("-", "--", ":", "-.")
POINTS = ("o", "s", "^", "D", "v", "P", "X", "*")

ENDINGS = (".png", ".svg", ".pdf")
"""File formats of figures."""

_DPI = 150
_STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7ea",
    "grid.linewidth": 0.8,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    # Texts stay texts, and equal pictures are equal files.
    "svg.fonttype": "none",
    "svg.hashsalt": "hybrid",
}


def check_ending(path: str | Path, what: str = "a plot", also: tuple[str, ...] = ()) -> None:
    """Refuse a file that is not named as a kind of picture, by OptionError, before any work is done."""
    offered = (*ENDINGS, *also)
    if Path(path).suffix.lower() not in offered:
        raise OptionError(
            f"{what} is written as {', '.join(offered[:-1])} or {offered[-1]}, got {str(path)!r}"
        )


def new_figure(width: float, height: float, panels: int = 1) -> tuple[Any, list[Any]]:
    """Return an empty figure, so many inches wide and high, and its axes side by side; no display is needed.

    Raises OptionError where there is no matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError(
            f"plots need matplotlib, which is not installed; run: {install_command('matplotlib')}"
        ) from None
    with styled():
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        return figure, list(figure.subplots(1, panels, squeeze=False)[0])


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in this style for a while; what the user of matplotlib has set comes back."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def line_style(number: int) -> dict[str, Any]:
    """Return colour, dashes and points of line number 0, 1, ... of a figure."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
        "marker": POINTS[number % len(POINTS)],
    }


def shown_text(text: str) -> str:
    """Return a text of others as matplotlib shows it: a dollar is one, and every character is visible."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown.replace("$", r"\$")


def whole_ticks(axis: Any) -> None:
    """Let an axis of whole numbers have ticks at whole numbers alone."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def save_figure(figure: Any, path: str | Path, dpi: int = _DPI) -> None:
    """Write a figure as the ending of the file says, with so many pixels an inch.

    Raises OptionError for another ending, or a file that cannot be written.
    """
    check_ending(path)
    ending = Path(path).suffix.lower()[1:]
    # No date and no version of a program, so that the same picture is the same file.
    unnamed: dict[str, dict[str, None]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    drawing = io.BytesIO()
    with styled(), warnings.catch_warnings():
        # Characters that the font lacks become boxes, without a warning.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(drawing, format=ending, dpi=dpi, metadata=unnamed[ending])
    try:
        Path(path).write_bytes(drawing.getvalue())
    except OSError as error:
        raise OptionError(f"cannot write the plot {str(path)!r}: {error.strerror}") from None


# Convergence as a picture: the quantity compared with epsilon, over the iterations.

_MOST_NAMED = 10
_FEW = 40  # measurements that are drawn as points, too


def plot_convergence(
    solutions: Sequence[Sequence[tuple[int, float]]],
    path: str | Path,
    epsilon: float | None = None,
    title: str = "",
    ylabel: str = "difference compared with epsilon",
) -> None:
    """Draw differences over iterations on a logarithmic axis, a line a solution, and epsilon as one.

    `solutions` are those of a `hybrid.solvers.iteration.Trace`; those that were not measured are left out.
    The file is ``.png``, ``.svg`` or ``.pdf``. Raises OptionError for another ending, without matplotlib, or
    where nothing was iterated.
    """
    check_ending(path)
    drawn = [[(k, d) for k, d in own if 0 < d < math.inf] for own in solutions]
    drawn = [own for own in drawn if own]
    if not drawn:
        raise OptionError("there is no convergence to draw: no iteration was needed, or it ended at once")
    figure, (axes,) = new_figure(7.0, 4.4)
    with styled():
        for number, own in enumerate(drawn):
            style = line_style(number)
            if len(own) > _FEW:
                style["marker"] = None
            label = f"solution {number + 1}" if 1 < len(drawn) and number < _MOST_NAMED else None
            axes.plot([k for k, _ in own], [d for _, d in own], label=label, **style)
        if epsilon is not None:
            axes.axhline(
                epsilon, color="#57606a", linestyle="--", linewidth=1.0, label=f"epsilon {epsilon:g}"
            )
        axes.set_yscale("log")
        whole_ticks(axes.xaxis)
        axes.set_xlabel("iteration")
        axes.set_ylabel(ylabel)
        axes.set_title(shown_text(title if len(title) <= 90 else f"{title[:89]}…"))
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    save_figure(figure, path)


# Pareto curves as pictures: what schedulers reach, and beyond what nothing can be reached.

MOST_DRAWN = 3
"""Objectives of a picture: a curve for two, a panel for each pair of three."""


def plot_pareto(record: Mapping[str, Any], path: str | Path, title: str = "") -> None:
    """Draw the points of a curve, mixtures between them, and the corners of what is not excluded.

    The record is `record()["multi"]` of an answer: `objectives`, `maximise`, `points` with `lower` and
    `upper`, `corners`. The file is ``.png``, ``.svg`` or ``.pdf``. Raises OptionError for another ending,
    without matplotlib, or for another number of objectives.
    """
    check_ending(path)
    names = record["objectives"]
    if not 2 <= len(names) <= MOST_DRAWN:
        raise OptionError(f"a Pareto curve is drawn of 2 or {MOST_DRAWN} objectives, got {len(names)}")
    pairs = list(combinations(range(len(names)), 2))
    figure, panels = new_figure(6.4 if len(pairs) == 1 else 4.2 * len(pairs), 4.4, len(pairs))
    with styled():
        for axes, (i, j) in zip(panels, pairs, strict=True):
            points = [_middle(point, i, j) for point in record["points"]]
            corners = [(corner[i], corner[j]) for corner in record["corners"]]
            if len(names) == 2:
                axes.plot(
                    *_columns(frontier(points, record["maximise"])), color=COLOURS[0],
                    label="mixtures of schedulers",
                )  # fmt: skip
                axes.plot(
                    *_columns(corners), color=COLOURS[1], linestyle="--", linewidth=1.0, marker="x",
                    label="nothing beyond",
                )  # fmt: skip
            else:
                axes.plot(*_columns(corners), "x", color=COLOURS[1], label="corners: nothing beyond")
            axes.plot(*_columns(points), "o", color=COLOURS[0], label="schedulers")
            axes.set_xlabel(shown_text(_short(names[i])))
            axes.set_ylabel(shown_text(_short(names[j])))
        panels[0].legend()
        panels[0].set_title(shown_text(_short(title, 90)))
    save_figure(figure, path)


Place = tuple[float, float]


def _middle(point: Mapping[str, Any], i: int, j: int) -> Place:
    """Return a point between its bounds."""
    lower, upper = point["lower"], point["upper"]
    return 0.5 * (lower[i] + upper[i]), 0.5 * (lower[j] + upper[j])


def frontier(places: Sequence[Place], maximise: Sequence[bool]) -> list[Place]:
    """Return the places that no mixture of others is better than in both, in order of the first."""
    a, b = (1.0 if up else -1.0 for up in maximise)
    kept: list[Place] = []
    for x, y in sorted({(a * x, b * y) for x, y in places}, reverse=True):
        while len(kept) > 1 and _turn(kept[-2], kept[-1], (x, y)) <= 0.0:
            kept.pop()
        if not kept or y > kept[-1][1]:
            kept.append((x, y))
    return sorted((a * x, b * y) for x, y in kept)


def _turn(first: Place, second: Place, third: Place) -> float:
    """Return a positive number if three places turn left."""
    (a, b), (c, d), (e, f) = first, second, third
    return (c - a) * (f - b) - (d - b) * (e - a)


def _columns(places: Sequence[Place]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Experiments as pictures: values over one constant, a line for every combination of the others.

MOST_PANELS = 6
"""Properties of a picture, a panel each."""

_MOST_LEGEND_LINES = 16  # lines that a legend names
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

    Returns what was left out, a line a property. Records are runs as `hybrid.experiment` returns them:
    constants by name, `property`, `value`, `lower`, `upper`, `error`; infinite values may be floats or the
    texts ``"Infinity"`` and ``"-Infinity"``. The file is ``.png``, ``.svg`` or ``.pdf``. `over` is the
    constant on the axis, by default the one with the most values, the first of equals. Bounds are a band
    where they are wide enough to be seen; infinite, missing and truth values are left out, as it stands under
    the panels. Raises OptionError for another ending, without matplotlib, for no record, more than six
    properties, or a constant that there is not or that has no numbers.
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

    Raises OptionError where there is no such constant, or it has no numbers.
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
    if 1 < len(drawn) <= _MOST_LEGEND_LINES or (drawn and drawn[0][1]):
        panel.legend(title=None if len(drawn) <= _MOST_LEGEND_LINES else f"the first of {len(drawn)} lines")
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
        label = shown_text(name) if place < _MOST_LEGEND_LINES else None
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
    """Draw bounds where they can be distinguished from the value."""
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
