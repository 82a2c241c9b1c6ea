"""Answers as lines of text."""

from __future__ import annotations

from fractions import Fraction

from hybrid.app.cli.device_hint import shortened_reason
from hybrid.app.cli.objectives import curve_text, point_lines
from hybrid.app.cli.reduction import reduction_text
from hybrid.app.cli.values import value_text
from hybrid.app.cli.witness import witness_lines
from hybrid.base.units import bytes_text, seconds_text
from hybrid.checking.answer import Answer, fraction_text
from hybrid.checking.filters import Range

MAX_LISTED = 1000
"""States that a filter's listing has as text."""

_SHORT = 60
"""Characters of a rational number that text shows; longer ones stand in records."""


def answer_text(answer: Answer) -> str:
    """Return an answer as lines of text."""
    title = f"{answer.name}: {answer.property}" if answer.name else answer.property
    work = answer.statistics
    if answer.error is not None and answer.lower is not None:
        result = f"{answer.error}; between {value_text(answer.lower)} and {value_text(answer.upper)} so far"
    elif answer.error is not None:
        result = "not answered: " + answer.error.replace("\n", "\n  ")
    else:
        result = _result(answer)
    lines = [title, f"  result       {result}"]
    if answer.reduction is not None:
        lines.append(f"  bisimulation {reduction_text(answer.reduction)}")
    if work.method is not None and (work.iterations or work.method != "exact"):
        per = seconds_text(work.seconds / work.iterations if work.iterations else None)
        lines.append(f"  iterations   {work.iterations} in {seconds_text(work.seconds)}, {per} each")
    if work.backend is not None:
        form = "" if work.level is None else f" at level {work.level}"
        if work.storage is not None:
            form = f" written out as {work.storage}" if work.level is None else f"{form} in {work.storage}"
        lines.append(
            f"  memory       vectors {bytes_text(work.base_bytes)}, "
            f"matrix {bytes_text(work.representation_bytes)}{form}"
        )
        if work.disk_bytes is not None:
            lines.append(f"  disk         arrays {bytes_text(work.disk_bytes)} at most, of all that was done")
        lines.append(f"  backend      {work.backend}: {shortened_reason(work)}")
    if work.engine_reason is not None:
        lines.append(f"  engine       {answer.engine}: {work.engine_reason}")
    lines += [f"    {state} = {value_text(value)}" for state, value in answer.listing[:MAX_LISTED]]
    if len(answer.listing) > MAX_LISTED:
        more = len(answer.listing) - MAX_LISTED
        lines.append(f"    ... and {more:,} more: --json and --csv have them all")
    if answer.several is not None:
        lines += point_lines(answer.several.record())
    if answer.witness is not None:
        lines += witness_lines(answer.witness)
    return "\n".join(lines)


def _result(answer: Answer) -> str:
    """Return a value with what is known about its error."""
    work = answer.statistics
    if answer.several is not None and answer.several.is_curve:
        return curve_text(answer.several.record())
    value = value_text(answer.value) if answer.range is None else str(answer.range)
    if answer.kind == "estimate":
        change = work.component_residual
        left = "" if change is None else f"; one more step changes values by up to {100 * change:.2g} %"
        return f"{value}  (estimate, without bounds: {work.method or 'from values without'}{left})"
    if answer.range is not None:
        return f"{value}  {_ends(answer.range)}"
    if isinstance(answer.value, bool):
        return value
    if answer.exact is not None and work.method is not None:
        return f"{value}  (exactly {_fraction(answer.exact)})"
    if answer.lower == answer.upper:
        return f"{value}  (exact: decided on the graph alone)" if work.method is None else f"{value}  (exact)"
    return f"{value}  (between {value_text(answer.lower)} and {value_text(answer.upper)})"


def _ends(found: Range) -> str:
    """Return what is known about the error of a range's ends."""
    if all(end.lower == end.upper for end in (found.least, found.greatest)):
        return "(exact)"
    return f"(all between {value_text(found.least.lower)} and {value_text(found.greatest.upper)})"


def _fraction(value: Fraction) -> str:
    """Return a rational number, or how long it is if it is long."""
    text = fraction_text(value)
    if len(text) <= _SHORT:
        return text
    digits = len(text.partition("/")[2])
    return f"a fraction whose denominator has {digits:,} digits: --json has it"
