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
from dataclasses import dataclass, replace

from mtbdd.budget import check_budget
from mtbdd.encoding import Encoding
from mtbdd.manager import Node

__all__ = ["Round", "Transition", "fixpoint", "image", "pending", "preimage", "search_rounds"]

_CLOSURE_GROWTH = 4  # the closure of one event may be this many times larger than its relation
_CLOSURE_FLOOR = 200  # ... or have this many nodes
_CLOSURE_MOST = 10_000  # relations with more nodes are not closed: trying costs more than rounds do
_GROUP_NODES = 2000  # closures of groups may have this many nodes
_PATIENCE = 20  # rounds of single events before events are merged into groups

Step = Callable[[Encoding, "Transition", Node], Node]


@dataclass(frozen=True)
class Transition:
    """A relation over all row bits and the column bits of the touched variables."""

    relation: Node
    bits: tuple[int, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def over(cls, encoding: Encoding, bits: Sequence[int], relation: Node) -> Transition:
        """Return the transition of a relation that may change the given bits."""
        manager = encoding.manager
        rows, columns = (tuple(names[i] for i in bits) for names in (manager.rows, manager.columns))
        return cls(relation, tuple(bits), rows, columns)

    @classmethod
    def of(cls, encoding: Encoding, touched: Sequence[str], relation: Node) -> Transition:
        """Return the transition of an event, by the names of the variables it may change."""
        return cls.over(encoding, encoding.bits_of(touched), relation)


def image(encoding: Encoding, transition: Transition, states: Node) -> Node:
    """Return the successors of a set of states under one event."""
    check_budget()
    manager = encoding.manager
    moved = manager.and_exists(states, transition.relation, transition.rows)
    return manager.rename(dict(zip(transition.columns, transition.rows, strict=True)), moved)


def preimage(encoding: Encoding, transition: Transition, states: Node) -> Node:
    """Return the states with a successor in a set under one event."""
    check_budget()
    manager = encoding.manager
    moved = manager.rename(dict(zip(transition.rows, transition.columns, strict=True)), states)
    return manager.and_exists(moved, transition.relation, transition.columns)


def close(encoding: Encoding, transition: Transition, limit: int | None = None) -> Transition | None:
    """Return the transition's closure (any number of repetitions from one on), or None if it grows large.

    Parameters
    ----------
    limit : int, optional
        Largest number of nodes; the default grows with the relation.

    Notes
    -----
    Time: O(log k) relational products for chains of length k.
    """
    manager = encoding.manager
    relation = transition.relation
    if limit is None:
        limit = max(_CLOSURE_FLOOR, _CLOSURE_GROWTH * manager.size(relation))
    spares = tuple(manager.spares[i] for i in transition.bits)
    to_spares = dict(zip(transition.columns, spares, strict=True))
    from_spares = dict(zip(transition.rows, spares, strict=True))
    while True:
        check_budget()
        first, second = manager.rename(to_spares, relation), manager.rename(from_spares, relation)
        squared = relation | manager.and_exists(first, second, spares)
        if squared == relation:
            return replace(transition, relation=relation)
        if manager.size(squared) > limit:
            return None
        relation = squared


def _closed(encoding: Encoding, transition: Transition) -> Transition:
    """Return the transition's closure if it is worth its cost, else the transition."""
    if encoding.manager.size(transition.relation) > _CLOSURE_MOST:
        return transition
    return close(encoding, transition) or transition


def _merge(encoding: Encoding, a: Transition, b: Transition) -> Transition:
    """Return "a or b" over the bits of both."""
    manager = encoding.manager
    bits = sorted({*a.bits, *b.bits})
    parts = (t.relation & manager.equal_bits(i for i in bits if i not in t.bits) for t in (a, b))
    return Transition.over(encoding, bits, manager.disjunction(parts))


def _group(encoding: Encoding, transitions: Sequence[Transition]) -> list[Transition]:
    """Merge transitions greedily into groups whose closures stay small."""
    groups: list[Transition] = []
    for transition in transitions:
        for i, group in enumerate(groups):
            merged = _merge(encoding, group, transition)
            small = encoding.manager.size(merged.relation) <= _GROUP_NODES
            closed = close(encoding, merged, _GROUP_NODES) if small else None
            if closed is not None:
                groups[i] = closed
                break
        else:
            groups.append(transition)
    return groups[::-1]


def fixpoint(
    encoding: Encoding,
    start: Node,
    transitions: Sequence[Transition],
    step: Step,
    inside: Node | None = None,
    restrict_sources: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Node:
    """Return the states found from `start` by repeated steps.

    Parameters
    ----------
    encoding : Encoding
    start : Node
        Over row bits.
    transitions : sequence of Transition
    step : callable
        `image` or `preimage`.
    inside : Node, optional
        New states outside this set are dropped.
    restrict_sources : bool
        Steps may only start in `inside`, so that paths must stay in it; otherwise `inside`
        must be closed under the steps or contain whatever they lead to and back.
    progress : callable, optional
        Called with the number of rounds done so far.

    Returns
    -------
    Node
        The least fixed point, over row bits; contains `start`.

    Notes
    -----
    Time: one relational product a transition and round.
    """
    found = start
    for done, round_ in enumerate(
        search_rounds(encoding, start, transitions, step, inside, restrict_sources), start=1
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
    encoding: Encoding,
    start: Node,
    transitions: Sequence[Transition],
    step: Step,
    inside: Node | None = None,
    restrict_sources: bool = False,
) -> Iterator[Round]:
    """Search as `fixpoint` does, and yield after every round; the last round has found all.

    Nothing is yielded where there is nothing to search from.
    """
    manager = encoding.manager
    if restrict_sources and inside is not None:
        transitions = [replace(t, relation=t.relation & inside) for t in transitions]
        transitions = [t for t in transitions if t.relation != manager.false]
    transitions = sorted(transitions, key=lambda t: -min(t.bits, default=0))
    transitions = [_closed(encoding, t) for t in transitions]
    found = frontier = start
    rounds = work = 0
    while frontier != manager.false and rounds < _PATIENCE:
        seen = found if manager.size(found) < manager.size(frontier) else frontier
        work += manager.size(seen) * len(transitions)
        for transition in transitions:
            new = step(encoding, transition, seen)
            seen = seen | (new if inside is None else new & inside)
        frontier = seen & ~found
        found = found | seen
        rounds += 1
        yield Round(found, work, grouped=False)
    if frontier == manager.false:
        return
    transitions = _group(encoding, transitions)
    done = [found & ~frontier] * len(transitions)  # what each transition has already started from
    while any(states != found for states in done):
        for i, transition in enumerate(transitions):
            if done[i] == found:
                continue
            sources, size = _pending(encoding, found, done[i])
            work += size
            done[i] = found
            new = step(encoding, transition, sources)
            found = found | (new if inside is None else new & inside)
        yield Round(found, work, grouped=True)


def pending(encoding: Encoding, found: Node, done: Node) -> Node:
    """Return the states of `found` that are not in `done`, or all of `found` if that diagram is smaller."""
    return _pending(encoding, found, done)[0]


def _pending(encoding: Encoding, found: Node, done: Node) -> tuple[Node, int]:
    """Return what `pending` returns, and its number of nodes."""
    new = found & ~done
    whole, part = encoding.manager.size(found), encoding.manager.size(new)
    return (found, whole) if whole < part else (new, part)
