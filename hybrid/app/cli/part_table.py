"""The table of `hybrid levels --parts`: what every part holds and receives."""

from __future__ import annotations

from hybrid.base.units import bytes_text
from hybrid.matrix.parts.plan import PartPlan


def part_table(plan: PartPlan) -> str:
    """Return the parts as lines of text, and how they were cut."""
    heads = ("part", "states", "transitions", "work", "a vector", "receives", "halo/own", "pieces", "from")
    rows = [
        (
            str(number + 1),
            f"{part.states:,}",
            f"{part.transitions:,}",
            f"{part.share:.3f}",
            bytes_text(8 * part.states),
            bytes_text(8 * part.received),
            f"{part.received / part.states:.3f}" if part.states else "-",
            f"{part.pieces:,}",
            f"{part.partners}",
        )
        for number, part in enumerate(plan.parts)
    ]
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (heads, *rows)
    ]
    return "\n".join([*lines, "", f"parts: {plan.describe()}"])
