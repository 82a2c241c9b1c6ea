"""Fixed points over events: reachable states forward, states that can reach a set backward.

Chaining: a round starts from the states that the last one found (or from all, if that is the
smaller diagram) and adds each event's image at once to what the next event starts from, so
that it follows whole chains of events.  An event's relation speaks only of the
variables it touches, and is replaced by its transitive closure where that stays small: a
counter then fills in one step instead of one step a value.  A search that still needs many
rounds (protocols with long runs) merges events into groups whose closures stay small, and has
each group start only from what was found since its own last turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mtbdd.build.leaps import Direction, Leaps
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation

_CLOSURE_GROWTH = 4  # the closure of one event may be this many times larger than its relation
_CLOSURE_FLOOR = 200  # ... or have this many nodes
_CLOSURE_MOST = 10_000  # relations with more nodes are not closed: trying costs more than rounds do
_GROUP_NODES = 2000  # closures of groups may have this many nodes
_PATIENCE = 20  # rounds of single events before events are merged into groups
_FIRST_LEAP = 64  # rounds of groups before a leap is tried; twice as many after every one that fails


def _closed(relation: Relation) -> Relation:
    """Return the relation's closure if it is worth its cost, else the relation."""
    size = relation.manager.size(relation.node)
    if size > _CLOSURE_MOST:
        return relation
    return relation.closure(max(_CLOSURE_FLOOR, _CLOSURE_GROWTH * size)) or relation


def _group(relations: Sequence[Relation]) -> list[Relation]:
    """Unite relations greedily in groups whose closures stay small."""
    groups: list[Relation] = []
    for relation in relations:
        for i, group in enumerate(groups):
            united = group.united(relation)
            small = united.manager.size(united.node) <= _GROUP_NODES
            closed = united.closure(_GROUP_NODES) if small else None
            if closed is not None:
                groups[i] = closed
                break
        else:
            groups.append(relation)
    return groups[::-1]


def fixpoint(
    manager: Manager,
    start: Node,
    relations: Sequence[Relation],
    direction: Direction,
    inside: Node | None = None,
    restrict_sources: bool = False,
    counters: Sequence[tuple[int, ...]] = (),
    progress: Callable[[int], None] | None = None,
) -> Node:
    """Return the states found from `start` by repeated steps.

    Parameters
    ----------
    manager : Manager
    start : Node
        Over row bits.
    relations : sequence of Relation
    direction : callable
        `Relation.after` or `Relation.before`.
    inside : Node, optional
        New states outside this set are dropped.
    restrict_sources : bool
        Steps may only start in `inside`, so that paths must stay in it; otherwise `inside`
        must be closed under the steps or contain whatever they lead to and back.
    counters : sequence of tuple of int
        Bits of variables along which the search may leap, of each the most significant first.
    progress : callable, optional
        Called with the number of rounds done so far.

    Returns
    -------
    Node
        The least fixed point, over row bits; contains `start`.

    Notes
    -----
    Time: one relational product a relation and round.
    """
    found = start
    for done, round_ in enumerate(
        search_rounds(manager, start, relations, direction, inside, restrict_sources, counters), start=1
    ):
        found = round_.found
        if progress is not None:
            progress(done)
    return found


@dataclass(frozen=True)
class Round:
    """How far a search has come.

    Attributes
    ----------
    found : Node
        The states found so far.
    work : int
        Nodes of all the sets that steps have started from so far.
    grouped : bool
        Whether events have been merged into groups.
    """

    found: Node
    work: int
    grouped: bool


def search_rounds(
    manager: Manager,
    start: Node,
    relations: Sequence[Relation],
    direction: Direction,
    inside: Node | None = None,
    restrict_sources: bool = False,
    counters: Sequence[tuple[int, ...]] = (),
) -> Iterator[Round]:
    """Search as `fixpoint` does, and yield after every round; the last round has found all.

    Nothing is yielded where there is nothing to search from.
    """
    if restrict_sources and inside is not None:
        relations = [r.from_states(inside) for r in relations]
        relations = [r for r in relations if r.node != manager.false]
    relations = sorted(relations, key=lambda r: -min(r.bits, default=0))
    relations = [_closed(r) for r in relations]
    found = frontier = start
    rounds = work = 0
    while frontier != manager.false and rounds < _PATIENCE:
        seen = found if manager.size(found) < manager.size(frontier) else frontier
        work += manager.size(seen) * len(relations)
        for relation in relations:
            new = direction(relation, seen)
            seen = seen | (new if inside is None else new & inside)
        frontier = seen & ~found
        found = found | seen
        rounds += 1
        yield Round(found, work, grouped=False)
    if frontier == manager.false:
        return
    relations = _group(relations)
    done = [found & ~frontier] * len(relations)  # what each relation has already started from
    leaps, rounds, next_leap = Leaps(counters, relations, direction, inside), 0, _FIRST_LEAP
    while any(states != found for states in done):
        rounds += 1
        if rounds == next_leap:
            before, further = leaps.work, leaps.from_states(found)
            work += leaps.work - before
            next_leap += rounds if further == found else _FIRST_LEAP
            found = further
        for i, relation in enumerate(relations):
            if done[i] == found:
                continue
            sources, size = _pending(manager, found, done[i])
            work += size
            done[i] = found
            new = direction(relation, sources)
            found = found | (new if inside is None else new & inside)
        yield Round(found, work, grouped=True)


def pending(manager: Manager, found: Node, done: Node) -> Node:
    """Return the states of `found` that are not in `done`, or all of `found` if that diagram is smaller."""
    return _pending(manager, found, done)[0]


def _pending(manager: Manager, found: Node, done: Node) -> tuple[Node, int]:
    """Return what `pending` returns, and its number of nodes."""
    new = found & ~done
    whole, part = manager.size(found), manager.size(new)
    return (found, whole) if whole < part else (new, part)
