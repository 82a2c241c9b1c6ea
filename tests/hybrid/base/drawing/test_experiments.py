"""Pictures of experiments and of convergence: what is on the axes, what is left out, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hybrid.base import figures
from hybrid.base.errors import OptionError
from hybrid.base.figures import (
    COLOURS,
    axis_constant,
    line_style,
    plot_convergence,
    plot_experiment,
    shown_text,
)


def record(value: Any, error: str | None = None, width: float = 0.0, **constants: Any) -> dict[str, Any]:
    sides = (
        (None, None) if value is None or isinstance(value, (bool, str)) else (value - width, value + width)
    )
    own = {"property": "p", "value": value, "lower": sides[0], "upper": sides[1], "error": error}
    return {**constants, **own}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are saved, kept to look at; only texts are written."""
    found: list[Any] = []
    own = figures.save_figure

    def kept(figure: Any, path: Path) -> None:
        found.append(figure)
        if path.suffix == ".svg":
            own(figure, path)

    monkeypatch.setattr(figures, "save_figure", kept)
    return found


def test_a_line_for_every_combination_of_the_others(tmp_path: Path, drawn: list[Any]) -> None:
    records = [record(n * 10.0 + k, N=n, K=k, same=3) for k in (1, 2) for n in (3, 1, 2)]
    assert plot_experiment(records, tmp_path / "e.png", title="a $b$") == []
    (axes,) = drawn[0].axes
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == ["K=1", "K=2"]
    assert [line.get_xdata().tolist() for line in lines] == [[1, 2, 3], [1, 2, 3]]
    assert lines[1].get_ydata().tolist() == [12.0, 22.0, 32.0]
    assert axes.get_xlabel() == "N" and axes.get_title() == "p"
    drawn[0].draw_without_rendering()
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    assert not axes.collections


def test_bounds_that_can_be_seen_are_a_band(tmp_path: Path, drawn: list[Any]) -> None:
    for width, seen in ((1e-9, False), (0.3, True)):
        plot_experiment([record(float(n), None, width, N=n) for n in range(1, 5)], tmp_path / "e.png")
        assert bool(drawn[-1].axes[0].collections) == seen


@pytest.mark.parametrize(
    ("value", "error", "reason"),
    [
        (math.inf, None, "1 infinite"),
        ("-Infinity", None, "1 infinite"),
        (None, "too slow", "1 without an answer"),
        (None, None, "1 without a value"),
        (True, None, "1 true or false"),
    ],
)
def test_what_has_no_place_is_left_out_and_said(
    tmp_path: Path, drawn: list[Any], value: Any, error: str | None, reason: str
) -> None:
    records = [record(0.5, N=1), record(value, error, N=2), record(0.75, N=3)]
    assert plot_experiment(records, tmp_path / "e.svg") == [f"p: left out: {reason}"]
    y = drawn[0].axes[0].get_lines()[0].get_ydata().tolist()
    assert y[0] == 0.5 and math.isnan(y[1]) and y[2] == 0.75
    assert f"left out: {reason}" in (tmp_path / "e.svg").read_text(encoding="utf-8")
    assert plot_experiment([record(value, error, N=n) for n in (1, 2)], tmp_path / "e.svg")
    assert "no finite values" in (tmp_path / "e.svg").read_text(encoding="utf-8")


def test_values_of_many_magnitudes_take_a_logarithmic_axis(tmp_path: Path, drawn: list[Any]) -> None:
    for values, scale in (((1e-6, 1e-2), "log"), ((0.0, 1e-2), "linear"), ((0.1, 0.9), "linear")):
        plot_experiment([record(v, N=n) for n, v in enumerate(values)], tmp_path / "e.pdf")
        assert drawn[-1].axes[0].get_yscale() == scale


def test_the_axis_is_the_constant_with_the_most_values() -> None:
    records = [record(1.0, a=a, b=b, c=0.5, d=True) for a in (1, 2) for b in (1, 2, 3)]
    assert axis_constant(records) == "b"
    assert axis_constant(records, "a") == "a"
    for over, message in (("z", r"expected one of the constants a, b, c, d, got 'z'"), ("d", "with numbers")):
        with pytest.raises(OptionError, match=message):
            axis_constant(records, over)


def test_equal_pictures_are_equal_files(tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        paths = [tmp_path / f"{k}.{ending}" for k in (1, 2)]
        for path in paths:
            plot_experiment([record(0.5 * n, N=n) for n in range(3)], path)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_refusals(tmp_path: Path) -> None:
    for records, path, message in (
        ([record(1.0, N=1)], "e.gif", "written as .png, .svg or .pdf, got"),
        ([], "e.png", "at least one run"),
        (
            [{**record(1.0, N=1), "property": str(k)} for k in range(7)],
            "e.png",
            "at most 6 properties, got 7",
        ),
        ([record(1.0, N=1)], "no/e.png", "cannot write the plot"),
    ):
        with pytest.raises(OptionError, match=message):
            plot_experiment(records, tmp_path / path)


def test_names_of_others_are_shown_as_they_are(tmp_path: Path, drawn: list[Any]) -> None:
    assert shown_text("$x$ \x07") == "\\$x\\$ \N{REPLACEMENT CHARACTER}"
    odd = "</text><script> $\\frac{1}{0}$ & \x01 漢"
    plot_experiment(
        [{**record(1.0 * n, N=n), "property": odd} for n in (1, 2)], tmp_path / "e.svg", title=odd
    )
    text = (tmp_path / "e.svg").read_text(encoding="utf-8")
    assert "<script>" not in text and "&lt;script&gt;" in text and "frac{1}{0}" in text


def test_more_lines_than_colours_differ_in_dashes() -> None:
    styles = [line_style(k) for k in range(2 * len(COLOURS))]
    assert len({(style["color"], style["linestyle"]) for style in styles}) == len(styles)


def test_convergence_is_on_a_logarithmic_axis(tmp_path: Path, drawn: list[Any]) -> None:
    plot_convergence(
        [[(1, 1.0), (2, 0.0), (3, 0.1)], [], [(1, math.inf), (4, 0.5)]], tmp_path / "c.png", 1e-3
    )
    (axes,) = drawn[0].axes
    assert axes.get_yscale() == "log"
    first, second, epsilon = axes.get_lines()
    assert (first.get_xdata().tolist(), first.get_ydata().tolist()) == ([1, 3], [1.0, 0.1])
    assert second.get_xdata().tolist() == [4]
    assert list(epsilon.get_ydata()) == [1e-3, 1e-3]
    with pytest.raises(OptionError, match="no convergence to draw"):
        plot_convergence([[(1, 0.0)], []], tmp_path / "c.png")
