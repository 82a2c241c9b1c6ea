"""Where runs may end: end components in which nothing more is earned, and what is won by staying there.

A run of any scheduler stays in an end component almost surely from some time on.  Where it pays there for
ever, a reward is infinite: to be refused where more is better, to be avoided where less is.  So schedulers
are left that surely come to an end component with free choices alone and, in it, visit whatever some of the
automata want again and again ([EKVY08]).  To stop there becomes
one more choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.acceptance_sets import AcceptedPart
from hybrid.analysis.multi.memory import ObjectiveProduct
from hybrid.analysis.precomputation import end_components, prob1e
from hybrid.base.errors import PropertyError, UnsupportedError
from hybrid.properties.automata.acceptance import all_accepted
from hybrid.properties.automata.guards import mark_list
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents, model_end_components
from mtbdd.offset.states import StateIndex, index_states, states_from

Vector = NDArray[np.float64]

MOST_REPEATED = 6
"""Objectives with automata that have to meet marks again and again."""


@dataclass(frozen=True, eq=False)
class Endings:
    """The pairs from which runs surely end, by choices that do not give that up, and what they win then.

    Attributes
    ----------
    space : ObjectiveProduct
    pairs : StateIndex
    initial : int
        The first pair's place among them; -1 where another process has it.
    kept : tuple of Node
        For every layer the pairs whose choice may be taken.
    free : Node
        Pairs of end components with free choices alone.
    sets : tuple of (frozenset of int, ndarray of bool, shape (pairs.size,))
        Objectives that staying wins together, and in which pairs, beyond those of `decided`.
    decided : dict of int to ndarray of bool, shape (pairs.size,)
        For the objectives that every end component decides: where they are won.
    """

    space: ObjectiveProduct
    pairs: StateIndex
    initial: int
    kept: tuple[Node, ...]
    free: Node
    sets: tuple[tuple[frozenset[int], NDArray[np.bool_]], ...]
    decided: dict[int, NDArray[np.bool_]]

    @property
    def may_stop(self) -> NDArray[np.bool_]:
        """Where runs may end, shape (pairs.size,)."""
        return self.sets[0][1]

    def at_start(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
        """Return the value of the first pair, the same in all processes."""
        own = float(values[self.initial]) if self.initial >= 0 else 0.0
        return float(self.space.model.communicator.total([own])[0])

    def worth(self, weights: Sequence[float]) -> tuple[Vector, NDArray[np.int64]]:
        """Return what stopping is worth in every pair, and the number of the set it wins.

        Minus infinity where no run may stop.
        """
        best = np.full(self.pairs.size, -np.inf)
        chosen = np.zeros(self.pairs.size, np.int64)
        for number, (won, where) in enumerate(self.sets):
            value = sum(weights[i] for i in won)
            # Of equal ones the later, which may win more: then nothing else is won by visiting everything.
            better = where & (value >= best)
            best[better], chosen[better] = value, number
        for i, where in self.decided.items():
            best = best + weights[i] * where
        return best, chosen

    def missed(self, weights: Sequence[float], sets: NDArray[np.int64]) -> Vector:
        """Return what stopping misses of all weights where it wins some sets; infinity where none may."""
        worst = [sum(weights[i] for i in self.space.conditions if i not in won) for won, _ in self.sets]
        found = np.array(worst, np.float64)[sets]
        for i, where in self.decided.items():
            found = found + weights[i] * ~where
        return np.where(self.sets[0][1], found, np.inf)

    def wins(self, objective: int, place: int, number: int) -> bool:
        """Return whether stopping in a pair, with the number of the set that it wins, wins an objective."""
        decided = self.decided.get(objective)
        return objective in self.sets[number][0] if decided is None else bool(decided[place])

    def components(self, priced: Sequence[int]) -> EndComponents:
        """Return the end components in which some rewards are not earned."""
        return end_components(self.space.model, self.pairs.states, self.unpaid(priced))

    def parts(self, number: int) -> list[AcceptedPart]:
        """Return where runs may stay for ever, for nothing, and win the set of objectives with a number."""
        space = self.space
        unpaid = self.unpaid([i for i in space.rewards if not space.objectives[i].maximise])
        return _winning_parts(space, sorted(self.sets[number][0]), self.pairs.states, unpaid)

    def unpaid(self, priced: Sequence[int]) -> list[Node]:
        """Return for every layer the pairs whose choice is kept and earns nothing of some rewards."""
        return _unpaid(self.space, self.pairs.states, self.kept, priced)


def endings(space: ObjectiveProduct) -> Endings | None:
    """Return where runs may end; None if under every scheduler some least reward is infinite.

    Raises
    ------
    PropertyError
        A greatest reward is infinite.
    UnsupportedError
        Too many automata that look at what happens again and again.
    """
    model = space.model
    costs = [i for i in space.rewards if not space.objectives[i].maximise]
    gains = [i for i in space.rewards if space.objectives[i].maximise]
    enabled = [layer.enabled for layer in model.layers]
    states, kept = model.reachable, enabled
    if costs:
        free = _unpaid(space, states, enabled, costs)
        states = prob1e(model, states, end_components(model, states, free).states)  # lemma: endings
        kept = _staying(space, states)
    ends = end_components(model, states, kept)
    for i in gains:
        _refuse_endless(space, i, ends, states, kept)
    if states & model.initial == model.manager.false:
        return None
    unpaid = _unpaid(space, states, kept, costs)
    free_ends = end_components(model, states, unpaid)
    pairs = index_states(model.manager, states)
    sets = [(frozenset[int](), model.indicator(free_ends.states, pairs))]
    repeated = sorted(space.conditions)
    if len(repeated) > MOST_REPEATED:
        raise UnsupportedError(
            f"multi: expected at most {MOST_REPEATED} objectives about what happens again and again, got "
            f"{len(repeated)}"
        )
    for size in range(1, len(repeated) + 1):
        for won in combinations(repeated, size):
            where = model.manager.disjunction(
                part.states for part in _winning_parts(space, won, states, unpaid)
            )
            if where != model.manager.false:
                sets.append((frozenset(won), model.indicator(where, pairs)))
    decided = {i: model.indicator(where, pairs) for i, where in space.accepted.items()}
    first = np.flatnonzero(model.indicator(model.initial, pairs))
    initial = int(first[0]) if first.size else -1
    return Endings(space, pairs, initial, tuple(kept), free_ends.states, tuple(sets), decided)


def _staying(space: ObjectiveProduct, states: Node) -> list[Node]:
    """Return for every layer the pairs of a set whose choice stays in it."""
    model = space.model
    kept = [layer.enabled & states for layer in model.layers]
    outside = model.reachable & ~states
    if outside != model.manager.false:
        for step in model.choice_relations:
            kept[step.layer] = kept[step.layer] & ~step.before(outside)  # lemma: endings
    return kept


def _unpaid(space: ObjectiveProduct, states: Node, kept: Sequence[Node], priced: Sequence[int]) -> list[Node]:
    """Return for every layer the pairs of a set whose choice is kept and earns nothing of some rewards."""
    model, found = space.model, []
    for layer, own in enumerate(kept):
        rows = index_states(model.manager, own & states)
        paid = np.zeros(rows.size, np.bool_)
        if rows.total:
            for i in priced:
                paid |= space.earned(i, layer, rows) != 0.0
        is_priced = model.communicator.any(paid.any())
        found.append(states_from(model.manager, rows, ~paid) if is_priced else own & states)
    return found


def _refuse_endless(
    space: ObjectiveProduct, objective: int, ends: EndComponents, states: Node, kept: Sequence[Node]
) -> None:
    """Refuse a greatest reward that can be earned for ever."""
    unpaid = _unpaid(space, states, kept, [objective])
    for component in (ends.single, *ends.components):
        for choices, free in zip(component.choices, unpaid, strict=True):
            if choices & ~free != space.model.manager.false:  # lemma: endings
                raise PropertyError(
                    f"multi: {space.objectives[objective].text} can be infinite: there is an end component "
                    "in which it is earned for ever; let the model end, or give steps with C<=k"
                )


def _winning_parts(
    space: ObjectiveProduct, won: Sequence[int], states: Node, unpaid: Sequence[Node]
) -> list[AcceptedPart]:
    """Return the end components with free choices in which some conditions can be met together.

    Those that meet them alike, by the same marks, are one part.
    """
    manager, marks, parts = space.model.manager, space.product.marks, []
    for finite, infinite in all_accepted(space.conditions[i] for i in won).pairs():
        allowed = states & ~manager.disjunction(marks[i] for i in mark_list(finite))
        if allowed == manager.false:
            continue
        ends = model_end_components(space.model, allowed, unpaid)
        part = _meeting(manager.false, ends, [marks[i] for i in mark_list(infinite)])
        if part.states != manager.false:
            parts.append(part)
    return parts


def _meeting(false: Node, found: EndComponents, needed: Sequence[Node]) -> AcceptedPart:
    """Return the end components, as one part, that meet each of some sets."""
    met = found.single.states
    for marked in needed:
        met = met & marked
    choices = [own & met for own in found.single.choices]
    for component in found.components:
        if all(component.states & marked != false for marked in needed):
            met = met | component.states
            choices = [own | more for own, more in zip(choices, component.choices, strict=True)]
    return AcceptedPart(met, tuple(choices), tuple(met & marked for marked in needed))
