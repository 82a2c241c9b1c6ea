"""Schedulers that remember: what an automaton has read, and which of its marks they wait for.

A scheduler of the pairs of a model's states and memories that forgets everything but the pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.acceptance_sets import AcceptedSets
from hybrid.analysis.scheduler import Scheduler, SchedulerMaker
from mtbdd.build.automaton_product import AutomatonMove, AutomatonProduct, automaton_product
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users
from mtbdd.diagrams.manager import Node

_PART = 1 << 14  # pairs written together


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
        texts, numbers = self.commands()
        for place, (state, memory, action, layer, then) in enumerate(self.pairs()):
            yield {
                "state": state,
                "memory": memory,
                "action": action,
                "layer": layer,
                "next": then,
                "command": texts[numbers[place]],
            }

    def variables(self) -> list[str]:
        """Return the names of the state's variables."""
        return [v.name for v in self.owner.encoding.shown]

    def __repr__(self) -> str:
        pairs = f"{self.size:,} pairs of a state and one of {np.unique(self.memory).size:,} memories"
        return f"<MemoryScheduler of {pairs}{self._taken()}>"

    def pairs(self) -> Iterator[tuple[dict[str, bool | int], int, str | None, int, int]]:
        """Yield every pair in the order of its number: state, memory, action, layer, next memory."""
        names, actions = self.actions()
        shown = self.variables()
        for begin in range(0, self.model.n_states, _PART):
            numbers = np.arange(begin, min(begin + _PART, self.model.n_states))
            places = numbers if self.model.numbering is None else self.model.numbering[numbers]
            told = zip(
                self.model.describe(places),
                self.memory[numbers].tolist(),
                actions[numbers].tolist(),
                self.layers[numbers].tolist(),
                self.following[numbers].tolist(),
                strict=True,
            )
            for pair, memory, action, layer, then in told:
                yield {name: pair[name] for name in shown}, memory, names[action], layer, then


@dataclass(frozen=True, eq=False)
class Remembering:
    """The pairs that a scheduler decides on: of the product, and of the mark that it waits for.

    Attributes
    ----------
    owner : SymbolicModel
    pairs : SymbolicModel
    first : Node
        Those with memory 0, in the order of the owner's states.
    lifted : callable
        Returns for a set of the product's pairs those of `pairs`.
    modes : tuple of Node
        By the number of the mark that is waited for.
    memory, following : ndarray of int64
        Of every pair, in the order of the index.
    """

    owner: SymbolicModel
    pairs: SymbolicModel
    first: Node
    lifted: Callable[[Node], Node]
    modes: tuple[Node, ...]
    memory: NDArray[np.int64]
    following: NDArray[np.int64]

    @classmethod
    def of(cls, owner: SymbolicModel, product: AutomatonProduct, regions: Sequence[Region]) -> Remembering:
        """Return the pairs of a product and a counter of the sets that are waited for, where it needs one."""
        n_modes = max((len(region.wanted) for region in regions), default=0)
        if n_modes <= 1:
            whole, first = product.model, product.first
            lifted: Callable[[Node], Node] = _same
            modes: tuple[Node, ...] = (whole.reachable,)
            next_mode = np.zeros(whole.n_states, np.int64)
        else:
            manager = product.model.manager
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
            structures = range(len(product.model.source.rewards))
            counted = automaton_product(
                product.model, met, moves, 0, structures, labels=labels_of(product.model)
            )
            whole, lifted, modes = counted.model, counted.lifted, counted.automaton_states
            first = counted.lifted(product.first) & counted.first
            next_mode = numbers_of(whole, counted.following)
        read = [lifted(states) for states in product.automaton_states]
        then = [lifted(states) for states in product.following]
        return cls(
            owner,
            whole,
            first,
            lifted,
            modes,
            numbers_of(whole, read) * len(modes) + numbers_of(whole, modes),
            numbers_of(whole, then) * len(modes) + next_mode,
        )

    def finish(self, maker: SchedulerMaker) -> MemoryScheduler:
        """Return the scheduler of what was chosen for the pairs."""
        memory, following = (for_users(self.pairs, vector) for vector in (self.memory, self.following))
        return MemoryScheduler(self.pairs, maker.finish().layers, self.owner, memory, following)


@dataclass(frozen=True, eq=False)
class Region:
    """An accepted part, less what earlier ones have.

    Attributes
    ----------
    states : Node
    choices : tuple of Node
        For every layer the pairs whose choice stays in the whole part.
    wanted : tuple of Node
        Sets of the whole part that are to be met again and again.
    """

    states: Node
    choices: tuple[Node, ...]
    wanted: tuple[Node, ...]


def regions_of(found: AcceptedSets) -> list[Region]:
    """Return the accepted parts without what they share.

    From a region a run stays in it and meets its sets, or enters an earlier one for good.
    """
    taken, regions = found.certain, []
    for part in found.parts:
        states = part.states & ~taken
        regions.append(Region(states, tuple(own & states for own in part.choices), part.wanted))
        taken = taken | part.states
    return regions


def stay_accepted(maker: SchedulerMaker, remembering: Remembering, regions: Sequence[Region]) -> None:
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


def numbers_of(model: SymbolicModel, sets: Sequence[Node]) -> NDArray[np.int64]:
    """Return the number of the set that each state of a model is in, by index."""
    found = np.zeros(model.n_states, np.int64)
    for number, states in enumerate(sets):
        found[model.indicator(states)] = number
    return found
