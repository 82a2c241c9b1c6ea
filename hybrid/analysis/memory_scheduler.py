"""Schedulers that remember: what an automaton has read, which of its marks they wait for, or a count.

A scheduler of the pairs of a model's states and memories that forgets everything but the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.accepting_sets import AcceptedPart, AcceptedSets
from hybrid.analysis.scheduler import Scheduler, SchedulerBuilder
from mtbdd.build.automaton_product import (
    AutomatonMove,
    AutomatonProduct,
    CountedParts,
    automaton_product,
    counter_product,
)
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users
from mtbdd.diagrams.manager import Node


@dataclass(frozen=True, eq=False)
class MemoryScheduler(Scheduler):
    """One choice for every reachable pair of a state of an MDP and a memory.

    Attributes
    ----------
    model : SymbolicModel
        The pairs, an MDP with the states' labels and rewards; initial are those of an initial state and the
        memory 0.
    layers : ndarray, shape (n_pairs,), uint16
        The layer of the model whose choice each pair takes, by number of the pair.
    owner : SymbolicModel
        The MDP.
    memory, following : ndarray, shape (n_pairs,), int64
        The memory of a pair, and the one when its state is left.  Runs begin with memory 0.
    """

    owner: SymbolicModel
    memory: NDArray[np.int64]
    following: NDArray[np.int64]
    columns: ClassVar[tuple[str, ...]] = ("memory", "action", "layer", "next", "command")

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record a pair: as `Scheduler.records`, and the `memory` and the `next` one."""
        shown = self.variables()
        for record, memory, then in zip(super().records(), self.memory, self.following, strict=True):
            state = {name: record["state"][name] for name in shown}
            own = {"state": state, "memory": int(memory)}
            own |= {name: record[name] for name in ("action", "layer")}
            yield own | {"next": int(then), "command": record["command"]}

    def variables(self) -> list[str]:
        """Return the names of the state's variables."""
        return [v.name for v in self.owner.encoding.shown]

    def __repr__(self) -> str:
        pairs = f"{self.size:,} pairs of a state and one of {np.unique(self.memory).size:,} memories"
        return f"<MemoryScheduler of {pairs}{self._taken()}>"


@dataclass(frozen=True, eq=False)
class Remembering:
    """The pairs that a scheduler decides on: of the product, and of the mark that it waits for.

    `first` has those with memory 0, in the order of the owner's states, `modes` those that wait for each
    mark. `lifted` returns for a set of the product's pairs those of `pairs`; `memory` and `following` are of
    every pair, in the order of the index.
    """

    owner: SymbolicModel
    pairs: SymbolicModel
    first: Node
    lifted: Callable[[Node], Node]
    modes: tuple[Node, ...]
    memory: NDArray[np.int64]
    following: NDArray[np.int64]

    @classmethod
    def of(
        cls, owner: SymbolicModel, product: AutomatonProduct, regions: Sequence[AcceptedPart]
    ) -> Remembering:
        """Return the pairs of a product and a counter of the sets that are waited for, where it needs one."""
        n_modes = max((len(region.wanted) for region in regions), default=0)
        whole, manager = product.model, product.model.manager
        if n_modes <= 1:
            memory, following = (
                numbers_of(whole, sets) for sets in (product.automaton_states, product.following)
            )
            return cls(owner, whole, product.first, _same, (whole.reachable,), memory, following)
        met = [
            manager.disjunction(r.states & r.wanted[mode % len(r.wanted)] for r in regions if r.wanted)
            for mode in range(n_modes)
        ]
        moves = [
            [
                AutomatonMove(((1 << mode, 0),), (mode + 1) % n_modes, 0),
                AutomatonMove(((0, 1 << mode),), mode, 0),
            ]
            for mode in range(n_modes)
        ]
        return cls.counting(owner, product, met, moves)

    @classmethod
    def counting(
        cls,
        owner: SymbolicModel,
        product: AutomatonProduct,
        propositions: Sequence[Node],
        moves: Sequence[Sequence[AutomatonMove]],
        start: Node | None = None,
    ) -> Remembering:
        """Return the pairs of a product and an automaton that says which mark is waited for."""
        model = product.model
        structures = range(len(model.source.rewards))
        counted = automaton_product(
            model, propositions, moves, 0, structures, labels=labels_of(model), start=start
        )
        whole, lifted, modes = counted.model, counted.lifted, counted.automaton_states
        memory, following = (
            numbers_of(whole, [lifted(states) for states in read]) * len(modes) + numbers_of(whole, own)
            for read, own in ((product.automaton_states, modes), (product.following, counted.following))
        )
        first = lifted(product.first) & counted.first
        return cls(owner, whole, first, lifted, modes, memory, following)

    def finish(self, maker: SchedulerBuilder) -> MemoryScheduler:
        """Return the scheduler of what was chosen for the pairs."""
        memory, following = (for_users(self.pairs, vector) for vector in (self.memory, self.following))
        return MemoryScheduler(self.pairs, maker.finish().layers, self.owner, memory, following)


class Counting:
    """The states with counters that a scheduler decides on which counts; a `maker` collects the choices.

    A memory is the number of the only counter. Of several the last one's units are 1, and those of each
    before it as many as the next one has numbers.

    Parameters
    ----------
    owner : SymbolicModel
    parts : mapping
        What steps add, as for `mtbdd.build.automaton_product.counter_product`.
    most : sequence of int
        Where each counter stays.
    """

    def __init__(self, owner: SymbolicModel, parts: CountedParts, most: Sequence[int]) -> None:
        structures = range(len(owner.source.rewards))
        self.product = counter_product(owner, parts, most, structures, labels_of(owner))
        self.maker = SchedulerBuilder(self.product.model)
        self._owner, self._parts, self._most = owner, parts, most

    def finish(self) -> MemoryScheduler:
        """Return the scheduler of what was chosen."""
        owner, pairs, lifted = self._owner, self.product.model, self.product.lifted
        layers, chosen = self.maker.finish().layers, self.maker.chosen
        counted = [number_of_bits(pairs, bits) for bits in self.product.counters]
        after = [own.copy() for own in counted]
        for earned, matrices in self._parts.items():
            # A choice earns the same on all of its branches.
            rows = [owner.manager.exists(owner.manager.columns, matrix.support()) for matrix in matrices]
            earning = pairs.manager.disjunction(
                own & lifted(states) for own, states in zip(chosen, rows, strict=True)
            )
            inside = pairs.indicator(earning)
            for numbers, added, end in zip(after, earned, self._most, strict=True):
                numbers[inside] = np.minimum(numbers[inside] + added, end)
        sizes = [end + 1 for end in self._most]
        memory, following = (
            for_users(pairs, np.ravel_multi_index(tuple(own), sizes)) for own in (counted, after)
        )
        return MemoryScheduler(pairs, layers, owner, memory, following)


def regions_of(found: AcceptedSets) -> list[AcceptedPart]:
    """Return the accepted parts, each less what earlier ones have, with the sets that the whole part wants.

    From a region a run stays in it and meets its sets, or enters an earlier one for good.
    """
    taken, regions = found.certain, []
    for part in found.parts:
        states = part.states & ~taken
        regions.append(AcceptedPart(states, tuple(own & states for own in part.choices), part.wanted))
        taken = taken | part.states
    return regions


def stay_accepted(maker: SchedulerBuilder, remembering: Remembering, regions: Sequence[AcceptedPart]) -> None:
    """Choose within regions: stay, and go to the set that is waited for."""
    lifted = remembering.lifted
    for region in regions:
        within = lifted(region.states) & remembering.pairs.reachable
        allowed = [lifted(own) & within for own in region.choices]
        for mode, here in enumerate(remembering.modes if region.wanted else ()):
            goal = lifted(region.wanted[mode % len(region.wanted)]) & here
            maker.take([own & goal for own in allowed])
            maker.route(goal, within & here, allowed)
        maker.take(allowed)


def labels_of(model: SymbolicModel) -> dict[str, Node]:
    """Return where the labels of a model hold, "deadlock" among them."""
    return {"deadlock": model.deadlocks} | {
        label.name: model.states(label.expression) for label in model.source.labels
    }


def _same(states: Node) -> Node:
    return states


def number_of_bits(model: SymbolicModel, bits: Sequence[str]) -> NDArray[np.int64]:
    """Return the number that row bits, the highest first, are in each state of a model, by index."""
    found = np.zeros(model.n_states, np.int64)
    for bit in bits:
        found = 2 * found + model.indicator(model.reachable & model.manager.cube([bit], 1))
    return found


def numbers_of(model: SymbolicModel, sets: Sequence[Node]) -> NDArray[np.int64]:
    """Return the number of the set that each state of a model is in, by index."""
    found = np.zeros(model.n_states, np.int64)
    for number, states in enumerate(sets):
        found[model.indicator(states)] = number
    return found
