"""Answers about several objectives, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST_POINTS = 100
"""Points of a curve that are printed."""


def curve_text(record: Mapping[str, Any]) -> str:
    """Return what a curve is known by, in words."""
    count = len(record["points"])
    points = f"{count} point{'' if count == 1 else 's'}"
    told = ", ".join(f"{d:.2g}" for d in record["distances"])
    kind = "" if record["distances_kind"] == "certified" else " (an estimate)"
    reached, asked = record["pareto_distance"], record["pareto_epsilon"]
    # Linear programs in doubles say when to stop.
    short = f"; precision {reached:.2g}, not {asked:g} as asked" if reached > asked * (1 + 1e-6) else ""
    return f"a curve: {points}; nothing lies further beyond their mixtures than {told}{kind}{short}"


def point_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the points that an answer rests on: a mixture's with their shares, a curve's all."""
    points = list(enumerate(record["points"], start=1))
    if "corners" not in record:
        points = [(number, point) for number, point in points if point["share"]]
    if not points:
        return
    yield "  points       " + "; ".join(record["objectives"])
    for number, point in points[:MOST_POINTS]:
        values = ", ".join(
            f"{0.5 * (low + high):.10g}" for low, high in zip(point["lower"], point["upper"], strict=True)
        )
        share = "" if point["share"] is None else f"  with probability {point['share']:.10g}"
        yield f"    {number}  ({values}){share}"
    if len(points) > MOST_POINTS:
        yield f"    ... and {len(points) - MOST_POINTS:,} more: --json and --csv have them all"
