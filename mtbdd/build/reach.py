"""Fixed points over events: reachable states forward, states that can reach a set backward.

Chaining: a round starts from the states that the last one found (or from all, if that is the smaller
diagram). It adds each event's image at once to the states that the next event starts from, so that it follows
whole chains of events. An event's relation is over the variables that it touches, and is replaced by its
transitive closure where that stays small. A counter then fills in one step instead of one step a value. A
search that still needs many rounds (protocols with long runs) merges events into groups whose closures stay
small. Each group starts only from the states found since its own last turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation

# Searches that leap along a counter: layers of states proved by induction, not found one after another.
#
# A counter divides states into layers, one a value.  Where a search goes from layer to layer, those behind
# its front come to look alike, or alike every second or fourth one.  Then all layers ahead are supposed to
# look like them, and are proved at once: what one step between neighbouring layers leads to, and steps within
# the layer from there, is found for all layers together, from the states that were found or are supposed.  If
# every supposed state is among that, up to some layer, then all of them up to there can be reached, by
# induction on the layers.  The supposition need not be right: what is not proved is not taken, and the search
# goes on.

Bits = tuple[int, ...]
Direction = Callable[[Relation, Node], Node]
"""`Relation.image` for a search forward, `Relation.preimage` for one backward."""

_FEWEST_BITS = 6  # of a counter: shorter ones are passed in as many rounds as a proof takes
_PERIODS = 0, 1, 2  # low bits on which a layer's look may depend
_MOST_ROUNDS = 64  # within the layers, in a proof
_MOST_PROOFS = 3  # that fail, a counter and direction
_LEAST_GAIN = 4  # layers


class Layers(Record):
    """The layers of a counter, numbered in the direction in which a search passes them.

    Attributes
    ----------
    manager : Manager
    bits : tuple of int
        Numbers of the counter's bits, the most significant first.
    is_down : bool
        Whether layers are numbered from the greatest value on down.
    """

    manager: Manager
    bits: Bits
    is_down: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The row bits of the counter."""
        return tuple(self.manager.rows[i] for i in self.bits)

    @property
    def count(self) -> int:
        """Number of layers; some may have no states."""
        return 1 << len(self.bits)

    def at(self, layer: int) -> Node:
        """Return the states of a layer."""
        return self.manager.cube(self.names, self.number(layer))

    def beyond(self, layer: int) -> Node:
        """Return the states of all layers after one."""
        if self.is_down:
            number = self.number(layer)
            return self.manager.at_most(self.names, number - 1) if number else self.manager.false
        return ~self.manager.at_most(self.names, layer)

    def first(self, states: Node) -> int:
        """Return the first layer in which a non-empty set has states."""
        return self._extreme(states, is_last=False)

    def last(self, states: Node) -> int:
        """Return the last layer in which a non-empty set has states."""
        return self._extreme(states, is_last=True)

    def split(self, states: Node, most: float = math.inf) -> dict[int, Node]:
        """Return the states of every layer that has some; of none where the layers' nodes are too many.

        Time: O(layers) conjunctions with a bit.
        """
        manager, parts = self.manager, {0: states} if states != self.manager.false else {}
        for name in self.names:
            bit = manager.bdd.var(name)
            halves = (
                (2 * number + high, part & (bit if high else ~bit))
                for number, part in parts.items()
                for high in (0, 1)
            )
            parts = {number: half for number, half in halves if half != manager.false}
            if most < math.inf and sum(manager.size(part) for part in parts.values()) > most:
                return {}
        return {self.number(number): part for number, part in parts.items()}

    def next_ones(self, is_forward: bool) -> Node:
        """Return the relation of states to those of the next layer, over the counter's bits alone.

        A search backward comes from column bits.
        """
        manager = self.manager
        x, y = manager.rows, manager.columns
        if self.is_down == is_forward:
            x, y = y, x
        ahead, carried = manager.false, manager.true
        for bit in reversed(self.bits):
            low, high = manager.bdd.var(x[bit]), manager.bdd.var(y[bit])
            ahead = manager.bdd.ite(low, high & ahead, (~high & ahead) | (high & carried))
            carried = low & ~high & carried
        return ahead

    def number(self, layer: int) -> int:
        """Return the counter's number in a layer, or the layer of a number."""
        return self.count - 1 - layer if self.is_down else layer

    def _extreme(self, states: Node, is_last: bool) -> int:
        manager = self.manager
        own = frozenset(self.names)
        left = manager.exists([name for name in manager.rows if name not in own], states)
        number = 0
        for name in self.names:
            wanted = is_last != self.is_down
            taken = manager.bdd.let({name: wanted}, left)
            if taken == manager.false:
                wanted, taken = not wanted, manager.bdd.let({name: not wanted}, left)
            number, left = 2 * number + wanted, taken
        return self.number(number)


class _Way(Record):
    """A counter and a direction: relations to the next layer, and within layers."""

    layers: Layers
    crossing: list[Relation]
    staying: list[Relation]


class Leaps:
    """Leaps of a search along the counters of a model.

    Parameters
    ----------
    counters : sequence of tuple of int
        Bits of the counters, of each the most significant first; short ones are left out.
    relations : sequence of Relation
        What the search steps by.
    direction : callable
        `Relation.image` or `Relation.preimage`.
    inside : Node, optional
        States outside are not taken.

    Attributes
    ----------
    work : int
        Nodes of all the sets that proofs have started steps from so far.
    """

    def __init__(
        self,
        counters: Sequence[Bits],
        relations: Sequence[Relation],
        direction: Direction,
        inside: Node | None,
    ) -> None:
        assert direction in (Relation.image, Relation.preimage)
        self._relations, self._direction, self._inside = relations, direction, inside
        self._counters = sorted((bits for bits in counters if len(bits) >= _FEWEST_BITS), key=len)[::-1]
        self._ways: dict[tuple[Bits, bool], _Way] = {}
        self.work = 0

    def from_states(self, found: Node) -> Node:
        """Return states that some found ones lead to, those included: more, where a leap succeeds.

        Notes
        -----
        Time: some ten relational products with a cube for every counter, and those of a few rounds for one
        along which the found states look alike.
        """
        for bits in self._counters:
            looks: dict[int, Node] = {}
            for is_down in (False, True):
                proved = self._along(self._way(bits, is_down), found, looks)
                if proved is not None:
                    return found | proved
        return found

    def _along(self, way: _Way, found: Node, looks: dict[int, Node]) -> Node | None:
        """Return states beyond a layer that can be reached; None where nothing is gained."""
        if not way.crossing:
            return None
        failed = 0
        for last, alike in _suppositions(way.layers, found, looks):
            supposed = self._taken(way.layers.beyond(last)) & alike & ~found
            if supposed == way.layers.manager.false:
                continue
            proved = self._proved(way, found, last, supposed)
            if proved is not None:
                return proved
            failed += 1
            if failed == _MOST_PROOFS:
                break
        return None

    def running(self) -> Iterator[Layers]:
        """Yield layers of counters, the top one first, in the direction in which most steps by one go."""
        for bits in sorted(self._counters):
            up, down = (self._way(bits, is_down) for is_down in (False, True))
            way = max(up, down, key=self._steps)
            if self._steps(way) >= _FEWEST_LAYERS:
                yield way.layers

    def _steps(self, way: _Way) -> int:
        """Return from how many layers a step to the next one leads."""
        manager, own = way.layers.manager, frozenset(way.layers.names)
        sources = manager.disjunction(relation.sources for relation in way.crossing)
        return len(way.layers.split(manager.exists([n for n in manager.rows if n not in own], sources)))

    def sweep(self, found: Node, pending: Node) -> Sweep | None:
        """Return a search along a counter, from some of the found states, where one pays."""
        most = _SLICED * self._relations[0].manager.size(found)
        for layers in self.running():
            parts = layers.split(pending, most)
            if not parts:
                return None
            if len(parts) >= _FEWEST_LAYERS:
                return Sweep(layers, self._relations, self._direction, self._inside, found, parts)
        return None

    def _taken(self, states: Node) -> Node:
        return states if self._inside is None else states & self._inside

    def _way(self, bits: Bits, is_down: bool) -> _Way:
        if (bits, is_down) not in self._ways:
            layers = Layers(self._relations[0].manager, bits, is_down)
            moving = [r for r in self._relations if not set(bits).isdisjoint(r.bits)]
            next_ones = layers.next_ones(self._direction is Relation.image)
            self._ways[bits, is_down] = _Way(
                layers,
                crossing=_limited(moving, bits, next_ones),
                staying=_limited(self._relations, bits, layers.manager.equal_bits(bits)),
            )
        return self._ways[bits, is_down]

    def _proved(self, way: _Way, found: Node, last: int, supposed: Node) -> Node | None:
        """Return what the found and the supposed states lead to, up to the layer where the proof ends."""
        manager, layers = way.layers.manager, way.layers
        beyond = self._taken(layers.beyond(last))
        sources = found | supposed
        self.work += manager.size(sources) * len(way.crossing)
        reached = manager.disjunction(self._direction(r, sources) for r in way.crossing) & beyond
        frontier = reached
        for _ in range(_MOST_ROUNDS):
            if frontier == manager.false:
                break
            self.work += manager.size(frontier) * len(way.staying)
            seen = frontier
            for relation in way.staying:
                seen = seen | (self._direction(relation, seen) & beyond)
            frontier, reached = seen & ~reached, reached | seen
        missed = supposed & ~reached
        if missed != manager.false:
            # All sources of a layer are proved where none is missed in the layers before it.
            end = layers.first(missed)
            if end - last <= _LEAST_GAIN:
                return None
            reached = reached & ~layers.beyond(end)
        return reached if reached & ~found != manager.false else None


def _limited(relations: Sequence[Relation], bits: Bits, limit: Node) -> list[Relation]:
    """Return what relations have in common with one over some bits; those that touch none are kept."""
    found = []
    for relation in relations:
        if not set(bits).isdisjoint(relation.bits):
            all_bits = tuple(sorted({*relation.bits, *bits}))
            relation = replace(relation, node=relation.over_bits(all_bits) & limit, bits=all_bits)
        if relation.node != relation.manager.false:
            found.append(relation)
    return found


def _suppositions(layers: Layers, found: Node, looks: dict[int, Node]) -> Iterator[tuple[int, Node]]:
    """Yield layers that repeat those before them, each with the states that all of them share.

    Behind the front of a search, the nearest first; then after the first layer, since a start set may have
    states in all layers. `looks` keeps what has been examined, by the counter's number.
    """
    manager = layers.manager

    def look(layer: int) -> Node:
        number = layers.number(layer)
        if number not in looks:
            looks[number] = manager.and_exists(found, layers.at(layer), layers.names)
        return looks[number]

    first, front = layers.first(found), layers.last(found)
    steps = [1 << k for k in range((front - first).bit_length())]
    for last in dict.fromkeys([front - step for step in steps] + [first + step for step in steps[::-1]]):
        for low in _PERIODS:
            period = 1 << low
            if last - 2 * period + 1 < first:
                break
            if all(look(last - i) == look(last - i - period) != manager.false for i in range(period)):
                window = manager.disjunction(layers.at(last - i) for i in range(period))
                high = layers.names[: len(layers.names) - low]
                yield last, manager.and_exists(found, window, high)
                break


# Searches that sweep along a counter: all that has come to a layer is taken at once.
#
# Where a counter runs down from many values, a search by rounds visits a layer once for each of them, and
# each round unites sets of all layers.  Layer after layer, in the direction in which the counter runs, one is
# visited once a sweep, and steps touch few layers.  This pays where the layers' diagrams have little in
# common, as below a counter at the top of the order.  Where later sweeps take many times the work of all that
# was before and of the first one, the counter does not order the search, and rounds go on.

_LEAST_WORK = 1 << 19  # nodes that steps have started from before a sweep is thought of; then twice as many
_FEWEST_LAYERS = 16  # that states to start from lie in
_REVISITED = 8  # times the work before and of the first sweep that later ones may take
_SLICED = 4  # times the nodes of all that is found are those of their layers one by one, at most


class Sweep:
    """A search that takes states layer by layer of one counter.

    Parameters
    ----------
    layers : Layers
    relations : sequence of Relation
    direction : callable
        `Relation.image` or `Relation.preimage`.
    inside : Node, optional
        States outside are not taken.
    found : Node
        The states found so far.
    pending : dict
        Those among them to step from, by layer.

    Attributes
    ----------
    work : int
        Nodes of all the sets that steps have started from so far.
    pending : dict
        What is left to step from, by layer.
    """

    def __init__(
        self,
        layers: Layers,
        relations: Sequence[Relation],
        direction: Direction,
        inside: Node | None,
        found: Node,
        pending: dict[int, Node],
    ) -> None:
        self.layers, self._relations, self._direction, self._inside = layers, relations, direction, inside
        self.found = found
        self.work = 0
        self.pending = pending

    def rounds(self) -> Iterator[Node]:
        """Search to the end, and yield what is found after every sweep."""
        manager, passed = self.layers.manager, -1
        while self.pending:
            layer = min(self.pending)
            if layer < passed:
                yield self.found
            passed, states = layer, self.pending.pop(layer)
            self.work += manager.size(states) * len(self._relations)
            for relation in self._relations:
                new = self._direction(relation, states)
                if self._inside is not None:
                    new = new & self._inside
                new = new & ~self.found
                if new == manager.false:
                    continue
                self.found = self.found | new
                for number, part in self.layers.split(new).items():
                    before = self.pending.get(number)
                    self.pending[number] = part if before is None else before | part
        yield self.found


_CLOSURE_GROWTH = 4  # the closure of one event may be this many times larger than its relation
_CLOSURE_FLOOR = 200  # ... or have this many nodes
_CLOSURE_MOST = 10_000  # relations with more nodes are not closed: trying costs more than rounds do
_GROUP_NODES = 2000  # closures of groups may have this many nodes
_PATIENCE = 20  # rounds of single events before events are merged into groups
_PATIENCE_EACH = 5  # ... or as many for each event, whose closures take as long, while rounds are short
_SHORT = 1 << 18  # nodes that steps have started from up to which all rounds together count as short
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
        `Relation.image` or `Relation.preimage`.
    inside : Node, optional
        New states outside this set are dropped.
    restrict_sources : bool
        Steps may only start in `inside`, so that paths must stay in it; otherwise `inside`
        must be closed under the steps or contain all successors that lead back.
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


class Round(Record):
    """Progress of a search.

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
    if start == manager.false:
        return
    if restrict_sources and inside is not None:
        relations = [r.from_states(inside) for r in relations]
        relations = [r for r in relations if r.node != manager.false]
    relations = sorted(relations, key=lambda r: -min(r.bits, default=0))
    relations = [_closed(r) for r in relations]
    found = frontier = start
    rounds = work = 0
    patience = max(_PATIENCE, _PATIENCE_EACH * len(relations))
    while frontier != manager.false and rounds < (patience if work < _SHORT else _PATIENCE):
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
    next_sweep = max(_LEAST_WORK, work)
    while any(states != found for states in done):
        rounds += 1
        if rounds == next_leap:
            before, further = leaps.work, leaps.from_states(found)
            work += leaps.work - before
            next_leap += rounds if further == found else _FIRST_LEAP
            found = further
        if work >= next_sweep:
            next_sweep = work + work // 4
            sweep = leaps.sweep(found, manager.disjunction(found & ~states for states in done))
            if sweep is not None:
                first = None
                for found in sweep.rounds():
                    yield Round(found, work + sweep.work, grouped=True)
                    first = sweep.work if first is None else first
                    if sweep.work - first > _REVISITED * (work + first):
                        break
                if not sweep.pending:
                    return
                work += sweep.work
                next_sweep = 2 * work
                done = [found & ~manager.disjunction(sweep.pending.values())] * len(relations)
        # Counted once a round: every count walks all nodes.
        whole = manager.size(found)
        for i, relation in enumerate(relations):
            if done[i] == found:
                continue
            sources, size = _pending(manager, found, done[i], whole)
            work += size
            done[i] = found
            new = direction(relation, sources)
            found = found | (new if inside is None else new & inside)
        yield Round(found, work, grouped=True)


def _pending(manager: Manager, found: Node, done: Node, whole: int) -> tuple[Node, int]:
    """Return the states not done, or all found if these have fewer nodes, about `whole`; and the nodes."""
    new = found & ~done
    part = manager.size(new)
    return (found, whole) if whole < part else (new, part)
