"""Pareto curves as pictures: what schedulers reach, and beyond what nothing can be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from hybrid.base.drawing.figures import COLOURS, check_ending, new_figure, save_figure, shown_text, styled
from hybrid.base.errors import OptionError

MOST_DRAWN = 3
"""Objectives of a picture: a curve for two, a panel for each pair of three."""


def plot_pareto(record: Mapping[str, Any], path: str | Path, title: str = "") -> None:
    """Draw the points of a curve, mixtures between them, and the corners of what is not excluded.

    Parameters
    ----------
    record : mapping
        `record()["multi"]` of an answer: `objectives`, `maximise`, `points` with `lower` and `upper`,
        `corners`.
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    title : str

    Raises
    ------
    OptionError
        Another ending, no matplotlib, or another number of objectives.
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
