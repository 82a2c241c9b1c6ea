"""Reachable states: on sets of states, or state by state where sets do not pay.

A symbolic search costs about a unit of work for every node of the sets that it starts steps from, a
search state by state about one for every state.  Where the first has done much work and has still found far
fewer states than that, the second takes over for as many states as bound its work by a multiple of what is
spent already; should it not end there, the first goes on, and so in turn with growing
bounds.  No model costs more than a multiple of the better of both.  All bounds are counts, none a
time, so that every run does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.build.reach import search_rounds
from mtbdd.diagrams.relation import Relation
from mtbdd.build.state_search import StateSearch, can_list
from mtbdd.offset.states import index_states

_TRIAL = 1 << 17  # work by which a search on sets is judged, once it has merged events
_THIN = 4  # states are thinly spread where that work is this many times the states it found
_SHARE = 8.0  # states that may be listed for every unit of work done so far
_GROWTH = 4  # from one turn to the next
_MOST_STATES = 1 << 24  # listed: half a GiB


def reachable_states(
    encoding: Encoding,
    initial: Node,
    relations: Sequence[Relation],
    progress: Callable[[str], None] | None = None,
) -> Node:
    """Return the states reachable from some states, those included.

    Parameters
    ----------
    encoding : Encoding
    initial : Node
        Over row bits.
    relations : sequence of Relation
    progress : callable, optional
        Called with a line of text after every round.

    Notes
    -----
    Time: one relational product a relation and round (see `mtbdd.build.reach.fixpoint`), or one walk through
    the relations' diagrams a state (see `mtbdd.build.state_search`).
    """
    say = progress or (lambda text: None)
    found, trial = initial, _TRIAL
    before: tuple[int, int] | None = None  # work and states when events were merged
    listed: StateSearch | None = None
    for number, round_ in enumerate(
        search_rounds(encoding.manager, initial, relations, Relation.after, counters=encoding.counters),
        start=1,
    ):
        found = round_.found
        say(f"reachable states, round {number}")
        if not round_.grouped:
            continue
        if before is None:
            before = round_.work, _count(encoding, found)
        work = round_.work - before[0]
        if work < trial:
            continue
        trial = _GROWTH * work
        limit = min(int(_SHARE * round_.work), _MOST_STATES)
        if _THIN * (_count(encoding, found) - before[1]) > work or not can_list(encoding):
            continue
        if listed is None:
            if before[1] > limit:
                continue
            listed = StateSearch(encoding, initial, relations)
        say("reachable states, one by one")
        if listed.advance(limit):
            return listed.states()
    return found


def _count(encoding: Encoding, states: Node) -> int:
    """Return the number of states of a set."""
    return index_states(encoding.manager, states).size
