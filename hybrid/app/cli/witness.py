"""A path that shows an answer, as lines of text."""

from __future__ import annotations

from hybrid.analysis.quantified import Witness
from mtbdd.language.faults import format_state

MOST = 1000
"""States of a path that are printed."""


def witness_lines(witness: Witness) -> list[str]:
    """Return a path as lines, a state each; of very long ones the beginning and the end."""
    shown = "why it holds" if witness.holds else "why it does not hold"
    states = [f"    {number}  {format_state(state)}" for number, state in enumerate(witness.states)]
    if len(states) > MOST:
        left = len(states) - MOST
        states[MOST // 2 : -MOST // 2] = [f"    ... {left:,} more states: --json has them all"]
    if witness.loop is not None:
        states.append(f"    and from there to state {witness.loop} again")
    return [f"  path         {shown}", *states]
