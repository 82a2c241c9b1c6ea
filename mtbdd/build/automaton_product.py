"""The product of a model with a deterministic automaton, or with counters, as a symbolic model again.

The automaton's states are the value of one variable more. Its bits stand above the model's: below them the
product's diagrams are pieces of the model's, which states of the automaton share. Or they stand below, where
the states of the automaton with one state of the model come one after another. The automaton reads a state
when it is left. ``(s, q)`` goes to ``(t, delta(q, labels of s))``, so that the marks of its step are a set of
pairs.

Counters count what steps earn, each up to a number of its own, where it stays.  Their bits stand above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from mtbdd.base.records import Record
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.diagram_parts import DiagramReward
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import model_from_diagrams, variable_of_range
from mtbdd.build.reachable import reachable_states
from mtbdd.build.rewards import symbolic_reward
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix, made_of_table
from mtbdd.diagrams.nodes import read_nodes
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import ModelType, ResolvedVariable


class AutomatonMove(Record):
    """A step of a deterministic automaton.

    `guard`: terms, one of which holds: the propositions that are true and those that are false, as bits.
    `target`: the next state. `marks`: as bits.
    """

    guard: tuple[tuple[int, int], ...]
    target: int
    marks: int


class AutomatonProduct(Record):
    """Reachable pairs of a state of the model and one of the automaton.

    Attributes
    ----------
    model : SymbolicModel
        The pairs, with the labels and rewards requested; initial are those of an initial state of the model
        with the automaton in its state 0.
    first : Node
        The pairs with the automaton in its state 0: one a state of the model, in the order of its states.
    marks : tuple of Node
        By mark the pairs in which the automaton's next step has it.
    automaton_states : tuple of Node
        By state of the automaton the pairs with it.
    following : tuple of Node
        By state of the automaton the pairs from which its next step leads there.
    lifted : callable
        Returns for a set of the model's states the pairs of these, reachable or not.
    restored : callable
        Returns for a set of pairs the model's states that are in it with the automaton in its state 0.
    """

    model: SymbolicModel
    first: Node
    marks: tuple[Node, ...]
    automaton_states: tuple[Node, ...]
    following: tuple[Node, ...]
    lifted: Callable[[Node], Node]
    restored: Callable[[Node], Node]

    def within(self, states: Iterable[int]) -> Node:
        """Return the pairs whose automaton is in one of some states."""
        return self.model.manager.disjunction(self.automaton_states[q] for q in states)

    def stepping_into(self, states: Iterable[int]) -> Node:
        """Return the pairs whose automaton is in one of some states after its next step."""
        return self.model.manager.disjunction(self.following[q] for q in states)


def automaton_product(
    model: SymbolicModel,
    propositions: Sequence[Node],
    moves: Sequence[Sequence[AutomatonMove]],
    n_marks: int,
    structures: Sequence[int] = (),
    below: bool = False,
    labels: Mapping[str, Node] | None = None,
    start: Node | None = None,
) -> AutomatonProduct:
    """Return the product of a model with a complete deterministic automaton.

    Parameters
    ----------
    model : SymbolicModel
    propositions : sequence of Node
        Where each of the automaton's propositions holds, over the model's row bits.
    moves : sequence of sequence of AutomatonMove
        By state of the automaton; guards of a state are disjoint and together true.  It starts in state 0.
    n_marks : int
    structures : sequence of int, optional
        Places of the model's reward structures that the product has, in this order: a pair earns what its
        state does.
    below : bool
        Whether the automaton's bits stand below the model's, or above.
    labels : mapping of str to Node, optional
        Sets of the model's states that are labels of the product.
    start : Node, optional
        States of the model to begin in, the initial ones among them; default all.

    Returns
    -------
    AutomatonProduct
        Its pairs are those reachable from states to begin in with the automaton in state 0.  An automaton
        of one state leaves the model as it is, with all of its labels and rewards.

    Raises
    ------
    BuildError
        More pairs than can be numbered, or a reward that is no finite number.

    Notes
    -----
    Time: one call of the package a node of the model's diagrams, one conjunction a layer, one search.
    """
    if len(moves) == 1:
        manager = model.manager
        marked = _marks(model, propositions, [manager.true], moves, n_marks)
        every = (model.reachable,)
        return AutomatonProduct(
            model, *every, tuple(m & model.reachable for m in marked), every, every, _same, _same
        )
    rewards = [symbolic_reward(model, structure) for structure in structures]
    builder = _Builder(model, [len(moves) - 1], below)
    return builder.product(propositions, moves, n_marks, rewards, labels or {}, start)


CountedParts = Mapping[tuple[int, ...], Sequence[SymbolicMatrix]]
"""For what steps add to each counter a matrix a layer."""


class CounterProduct(Record):
    """Reachable states of a model with counters of what has been earned.

    `model`: the states with their counters; the initial ones have counted nothing. `first`: those that have
    counted nothing: one a state of the model, in the order of its states. `lifted`: returns for a set of the
    model's states those with any counters. `counters`: the row bits of each counter. `parts`: the matrices of
    its layers by what steps add that is not counted; empty if all is.
    """

    model: SymbolicModel
    first: Node
    lifted: Callable[[Node], Node]
    counters: tuple[tuple[str, ...], ...]
    parts: CountedParts

    def at_most(self, counter: int, number: int) -> Node:
        """Return where a counter is at most a number."""
        return self.model.manager.at_most(self.counters[counter], number)


def counter_product(
    model: SymbolicModel,
    parts: CountedParts,
    most: Sequence[int],
    structures: Sequence[int] = (),
    labels: Mapping[str, Node] | None = None,
    anywhere: bool = False,
) -> CounterProduct:
    """Return the product of a model with counters that steps increase.

    `parts`: they add up to the model's matrices (`mtbdd.build.reward_split.split_by_rewards`). What they add
    beyond the counters is not counted. `most`: where each counter stays. `structures`, `labels`: what else
    the product has, as of `automaton_product`. `anywhere`: whether counters may have any numbers in the
    initial states, which are then those to begin in. Returns CounterProduct: its states are those reachable
    from any state of the model with counters at 0, or with `anywhere` from the initial states.

    Time: a conjunction for every number and distinct reward, a copy of every part, one search.
    """
    rewards = [symbolic_reward(model, structure) for structure in structures]
    return _Builder(model, most, False).counted(parts, most, rewards, labels or {}, anywhere)


def _same(states: Node) -> Node:
    return states


def _guard(model_true: Node, propositions: Sequence[Node], move: AutomatonMove) -> Node:
    """Return where a guard holds."""
    found = ~model_true
    for positive, negative in move.guard:
        term = model_true
        for i, states in enumerate(propositions):
            if positive >> i & 1:
                term = term & states
            elif negative >> i & 1:
                term = term & ~states
        found = found | term
    return found


def _marks(
    model: SymbolicModel,
    propositions: Sequence[Node],
    cubes: Sequence[Node],
    moves: Sequence[Sequence[AutomatonMove]],
    n_marks: int,
) -> list[Node]:
    """Return by mark where the automaton's next step has it; `cubes` say in which state it is."""
    manager = model.manager
    found: list[list[Node]] = [[] for _ in range(n_marks)]
    for cube, own in zip(cubes, moves, strict=True):
        for move in own:
            if move.marks:
                where = cube & _guard(manager.true, propositions, move)
                for mark in range(n_marks):
                    if move.marks >> mark & 1:
                        found[mark].append(where)
    return [manager.disjunction(nodes) for nodes in found]


class _Builder:
    """Carries a model's diagrams over to a manager with bits more above or below them."""

    def __init__(self, model: SymbolicModel, most: Sequence[int], below: bool) -> None:
        """Add a variable from 0 to each of some numbers."""
        self._model = model
        taken = {v.name for v in model.encoding.variables}
        names: list[str] = []
        for _ in most:
            name = "automaton"
            while name in taken:
                name += "_"
            names.append(name)
            taken.add(name)
        own = [
            variable_of_range(name, 0, number, False, model.source.file)
            for name, number in zip(names, most, strict=True)
        ]
        variables = [
            variable_of_range(v.name, v.low, v.high, v.is_bool, model.source.file)
            for v in model.encoding.variables
        ]
        variables = [*variables, *own] if below else [*own, *variables]
        self._variables: list[ResolvedVariable] = variables
        self.encoding = Encoding(variables, "cudd" if model.manager.is_cudd else "autoref")
        self.manager = self.encoding.manager
        self._own = [tuple(self.encoding.by_name[name].bits) for name in names]
        self._bits = [bit for bits in self._own for bit in bits]
        width = len(self._bits)
        self._shift = 0 if below else width
        old = model.manager
        self.manager.index_bits(len(old.index))
        self._levels = {
            level: level + 3 * (self._shift if level < old.index_level else width)
            for level in range(old.index_level + len(old.index))
        }
        self._tests = {level: self.manager.bdd.var(f"b{new}") for level, new in self._levels.items()}

    def copied(self, node: Node) -> Node:
        """Return a function of the model's manager as one of the product's."""
        return made_of_table(read_nodes(self._model.manager, node), self.manager.bdd, self._tests)

    def restored(self, pairs: Node) -> Node:
        """Return the model's states in pairs with the automaton in its state 0."""
        manager, old = self.manager, self._model.manager.bdd
        own = [manager.rows[i] for i in self._bits]
        states = manager.exists(own, pairs & self._cube(manager.rows, 0))
        tests = {new: old.var(f"b{level}") for level, new in self._levels.items()}
        return made_of_table(read_nodes(manager, states), old, tests)

    def product(
        self,
        propositions: Sequence[Node],
        moves: Sequence[Sequence[AutomatonMove]],
        n_marks: int,
        rewards: Sequence[DiagramReward],
        names: Mapping[str, Node],
        first: Node | None,
    ) -> AutomatonProduct:
        model, manager = self._model, self.manager
        labels = [self.copied(node) for node in propositions]
        before = [self._cube(manager.rows, q) for q in range(len(moves))]
        after = [self._cube(manager.columns, q) for q in range(len(moves))]
        into: list[list[Node]] = [[] for _ in moves]
        for q, own in enumerate(moves):
            for move in own:
                into[move.target].append(before[q] & _guard(manager.true, labels, move))
        following = [manager.disjunction(nodes) for nodes in into]
        step = manager.disjunction(where & then for where, then in zip(following, after, strict=True))
        parts = model.choice_relations if model.is_mdp else model.relations
        if model.given is None and not model.is_mdp and model.deadlocks != model.manager.false:
            parts = (*parts, Relation(model.manager, model.deadlocks, ()))
        relations = [self._relation(part, step) for part in parts]
        start = self.copied(model.reachable if first is None else first) & before[0]
        reachable = reachable_states(self.encoding, start, relations)
        layers = []
        for layer in model.layers:
            node = self.copied(layer.matrix.node) & step & reachable
            matrix = SymbolicMatrix(manager, node, layer.matrix.terminals, layer.matrix.units)
            origins = tuple(self._part(part, reachable) for part in layer.parts)
            enabled = self.copied(layer.enabled) & reachable
            layers.append(ChoiceLayer(matrix, enabled, origins))
        found = self._pairs(start, reachable, layers, relations, names, rewards)
        marked = _marks(found, labels, before, moves, n_marks)
        return AutomatonProduct(
            found,
            start,
            tuple(m & reachable for m in marked),
            tuple(cube & reachable for cube in before),
            tuple(where & reachable for where in following),
            self.copied,
            self.restored,
        )

    def counted(
        self,
        parts: CountedParts,
        most: Sequence[int],
        rewards: Sequence[DiagramReward],
        names: Mapping[str, Node],
        anywhere: bool,
    ) -> CounterProduct:
        model, manager = self._model, self.manager
        entries: dict[tuple[int, ...], list[list[Partition]]] = {}
        for reward, matrices in parts.items():
            step = self._counting(reward[: len(most)], most)
            own = entries.setdefault(reward[len(most) :], [[] for _ in matrices])
            for found, part in zip(own, matrices, strict=True):
                pieces = {v: self.copied(s) & step for v, s in part.partition()}
                found.append(Partition(manager, pieces, part.units))
        # Steps with several rewards may meet in one entry, where a counter stays.
        matrices = [
            SymbolicMatrix.from_partition(Partition.total(manager, [part for own in layer for part in own]))
            for layer in zip(*entries.values(), strict=True)
        ]
        relations = [Relation.whole(manager, matrix.support(), i) for i, matrix in enumerate(matrices)]
        first = self.copied(model.reachable) & self._cube(manager.rows, 0)
        if anywhere:
            first = self.copied(model.initial)
            for bits, end in zip(self._own, most, strict=True):
                first &= manager.at_most([manager.rows[i] for i in bits], end)
        reachable = reachable_states(self.encoding, first, relations)
        layers = [
            ChoiceLayer(
                matrix.only(reachable),
                self.copied(layer.enabled) & reachable,
                tuple(self._part(part, reachable) for part in layer.parts),
            )
            for layer, matrix in zip(model.layers, matrices, strict=True)
        ]
        product = self._pairs(first, reachable, layers, relations, names, rewards)
        counters = tuple(tuple(manager.rows[i] for i in own) for own in self._own)
        split = {
            rest: [SymbolicMatrix.from_partition(Partition.total(manager, p)).only(reachable) for p in own]
            for rest, own in entries.items()
            if rest
        }
        return CounterProduct(product, first, self.copied, counters, split)

    def _pairs(
        self,
        start: Node,
        reachable: Node,
        layers: Sequence[ChoiceLayer],
        relations: Sequence[Relation],
        names: Mapping[str, Node],
        rewards: Sequence[DiagramReward],
    ) -> SymbolicModel:
        """Return the model of the reachable pairs, with some of the model's labels and rewards."""
        return model_from_diagrams(
            self.encoding,
            self._variables,
            self._model.type,
            layers,
            start & self.copied(self._model.initial),
            reachable,
            exits=self._exits(reachable),
            labels={name: self.copied(states) & reachable for name, states in names.items()},
            rewards=[
                DiagramReward(
                    r.name, self._vector(r.states), tuple(self._vector(c) for c in r.choices), r.is_sure
                )
                for r in rewards
            ],
            relations=[relation.from_states(reachable) for relation in relations],
            source=self._model.source.file,
        )

    def _counting(self, reward: Sequence[int], most: Sequence[int]) -> Node:
        """Return how counters go on in a step with a reward for each."""
        manager, found = self.manager, self.manager.true
        for bits, added, end in zip(self._own, reward, most, strict=True):
            rows, columns = ([names[i] for i in bits] for names in (manager.rows, manager.columns))
            found &= manager.disjunction(
                manager.cube(rows, k) & manager.cube(columns, min(k + added, end)) for k in range(end + 1)
            )
        return found

    @overload
    def _vector(self, vector: SymbolicMatrix) -> SymbolicMatrix: ...
    @overload
    def _vector(self, vector: None) -> None: ...
    def _vector(self, vector: SymbolicMatrix | None) -> SymbolicMatrix | None:
        """Return a function of the model's states as one of the pairs, for every state of the automaton."""
        if vector is None:
            return None
        node = self.copied(vector.node)
        return SymbolicMatrix(self.manager, node, np.asarray(vector.terminals), vector.units)

    def _cube(self, names: Sequence[str], state: int) -> Node:
        """Return "the automaton is in a state" over row or column bits."""
        return self.manager.cube([names[i] for i in self._bits], state)

    def _relation(self, part: Relation, step: Node) -> Relation:
        """Return a part of the model's graph with the automaton's steps."""
        bits = tuple(sorted((*self._bits, *(i + self._shift for i in part.bits))))
        return Relation(self.manager, self.copied(part.node) & step, bits, part.layer)

    def _part(self, part: ChoicePart, reachable: Node) -> ChoicePart:
        """Return a layer's part over pairs, with what its probabilities add up to."""
        totals = part.sums
        if totals is not None:
            pieces = {value: self.copied(states) & reachable for value, states in totals}
            totals = Partition(self.manager, pieces, totals.units)
        return ChoicePart(part.action, self.copied(part.states) & reachable, None, totals, part.commands)

    def _exits(self, reachable: Node) -> SymbolicMatrix | list[Partition] | None:
        """Return what rows of a CTMC add up to, and those of a DTMC if that is 1 only roughly."""
        model = self._model
        if model.is_mdp:
            return None
        given = model.given.exits if model.given is not None else None
        if isinstance(given, SymbolicMatrix):
            found = self._vector(given)
            return SymbolicMatrix(self.manager, found.node & reachable, found.terminals, found.units)
        if given is None:
            loops = Partition(model.manager, {1.0: model.deadlocks})
            given = (*(model.event_exits(event) for event in model.events), loops)
        if model.type is ModelType.DTMC and all(value == 1 for part in given for value, _ in part):
            return None
        return [
            Partition(self.manager, {v: self.copied(s) & reachable for v, s in part}, part.units)
            for part in given
        ]
