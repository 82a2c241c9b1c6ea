"""A model's matrices split by what a step earns: exact rewards as whole multiples of one unit.

Paths with a bound on a reward need every entry's own reward, where expected rewards need but their averages.
In a chain's text the reward of a transition is that of its command. So one row, and one entry of it, may be
split among several rewards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mtbdd.base.errors import HybridError, option
from mtbdd.build.build import assemble
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import carriers_of, item_amounts
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language.syntax import ModelType

MOST_REWARDS = 1000
"""Distinct rewards of one step that a split may have; each takes a matrix of its own."""


class RewardSplitError(HybridError, NotImplementedError):
    """Rewards that no bound can be put on: negative, not known exactly, of time, or averages alone."""


@dataclass(frozen=True, eq=False)
class RewardSplit:
    """The matrices of a model by reward.

    `structure`: position among the model's reward structures. `unit`: the greatest number that all rewards
    are multiples of; 1 if nothing is earned. `parts`: for every reward, in units and ascending, a matrix a
    layer: the entries that earn it. They add up to the layer's matrix.
    """

    structure: int
    unit: Fraction
    parts: dict[int, tuple[SymbolicMatrix, ...]]


@dataclass(frozen=True, eq=False)
class JointSplit:
    """The matrices of a model by several rewards at once; `RewardSplit` for the meaning of attributes.

    `parts` has for the rewards of a step, one of each structure in units of its own, a matrix a layer.
    """

    units: tuple[Fraction, ...]
    parts: dict[tuple[int, ...], tuple[SymbolicMatrix, ...]]


def split_by_reward(model: SymbolicModel, structure: int) -> RewardSplit:
    """Return a model's matrices split by what a step from a state earns, state reward included.

    Parameters and faults are those of `split_by_rewards`, for one structure.
    """
    found = split_by_rewards(model, [structure])
    return RewardSplit(structure, found.units[0], {reward: part for (reward,), part in found.parts.items()})


def split_by_rewards(model: SymbolicModel, structures: Sequence[int]) -> JointSplit:
    """Return a model's matrices split by what a step from a state earns of some structures at once.

    `model`: in a CTMC moves earn, regardless of time. `structures`: positions among the model's reward
    structures. Raises RewardSplitError: a reward is negative or irrational, or there are more than
    `MOST_REWARDS`; state rewards of a CTMC, which are earned over time; transition rewards of a model without
    a text, which are averages.

    Time: an assembly of the matrix for every distinct reward of a chain with transition rewards, otherwise
    one conjunction for every reward and layer.
    """
    states = [_of_states(model, structure) for structure in structures]
    if model.type is ModelType.CTMC and any(reward for own in states for reward, _ in own):
        raise RewardSplitError(
            "a bound on a reward that states of a CTMC earn over time is not supported: only rewards of "
            "transitions are counted there; ask for the expected reward, or give transitions the reward"
        )
    given = model.given is not None
    items = () if given else [i for s in structures for i in model.source.rewards[s].items]
    moves = any(item.is_transition for item in items)
    pairs = list(zip(structures, states, strict=True))
    together = _together(states)
    by_reward: dict[Rewards, list[SymbolicMatrix]] = {}
    if moves and not model.is_mdp:
        by_action = {
            e.action: _together([_of_action(model, s, e.action, own) for s, own in pairs])
            for e in model.events
        }
        for reward in _rewards([*by_action.values(), together]):
            by_reward[reward] = [_part_of_chain(model, reward, by_action, together)]
    else:
        earned = [
            _together([_of_choices(model, s, layer, own) for s, own in pairs])
            for layer in range(len(model.layers))
        ]
        for reward in _rewards(earned):
            by_reward[reward] = [
                layer.matrix.only(own.pieces.get(reward, model.manager.false))
                for layer, own in zip(model.layers, earned, strict=True)
            ]
    units = tuple(_unit(own) for own in zip(*by_reward, strict=True))
    parts = {
        tuple(int(r / unit) for r, unit in zip(reward, units, strict=True)): tuple(by_reward[reward])
        for reward in sorted(by_reward)
    }
    return JointSplit(units, parts)


Rewards = tuple[Fraction, ...]


def _together(parts: Sequence[Partition]) -> Partition:
    """Return several functions of the same states as one, whose values are tuples."""
    found, *rest = [part.map(lambda value: (value,)) for part in parts]
    for part in rest:
        found = found.combine(part, lambda a, b: a + b)
    return found


def _rewards(parts: Sequence[Partition]) -> set[Rewards]:
    """Return the distinct rewards of functions of the states."""
    found = {reward for part in parts for reward in part.pieces}
    least = min((min(reward) for reward in found), default=Fraction(0))
    if least < 0:
        raise RewardSplitError(
            f"a bound on a reward needs rewards of at least 0, got {float(least)}: split the structure "
            "in gains and losses, and bound one of them"
        )
    if len(found) > MOST_REWARDS:
        raise RewardSplitError(
            f"a bound on a reward needs few distinct rewards of a step, at most {MOST_REWARDS}, got "
            f"{len(found)}: round them to a common unit"
        )
    return found


def _unit(rewards: Iterable[Fraction]) -> Fraction:
    """Return the greatest number that all rewards are multiples of."""
    earning = [r for r in rewards if r]
    if not earning:
        return Fraction(1)
    below = math.lcm(*(r.denominator for r in earning))
    return Fraction(math.gcd(*(int(r * below) for r in earning)), below)


def _of_states(model: SymbolicModel, structure: int) -> Partition:
    """Return what states earn a step, in all reachable states."""
    manager = model.manager
    if model.given is not None:
        reward = model.given.rewards[structure]
        if not reward.is_sure and any(
            own is not None and own.node != manager.false for own in reward.choices
        ):
            where, advice = "models from files and arrays", "give them to states"
            if model.given.is_listed:
                where, advice = "a chain whose states are listed", f"choose {option('build', 'symbolic')}"
            raise RewardSplitError(
                "a bound on a reward of transitions needs commands in the PRISM language: in "
                f"{where} these rewards are averages over the transitions of a choice; {advice}"
            )
        known = Partition(manager) if reward.states is None else _rational(reward.states)
        return _everywhere(model, known, model.reachable)
    always = Partition(manager, {1: model.reachable})
    items = [item for item in model.source.rewards[structure].items if not item.is_transition]
    return _exact(model, [item_amounts(model, item, always) for item in items], model.reachable)


def _of_choices(model: SymbolicModel, structure: int, layer: int, states: Partition) -> Partition:
    """Return what a layer's choices earn with their states, where the layer has a choice."""
    enabled = model.layers[layer].enabled
    if model.given is not None:
        own = model.given.rewards[structure].choices[layer]
        earned = Partition(model.manager) if own is None else _rational(own)
        earned = _everywhere(model, earned, enabled)
        return states.only(enabled).combine(earned, lambda a, b: a + b)
    if not model.is_mdp:
        return states.only(enabled)
    amounts = [
        item_amounts(model, item, often)
        for item in model.source.rewards[structure].items
        if item.is_transition
        for action, often in carriers_of(model, structure, layer)
        if action == item.action
    ]
    return states.only(enabled).combine(_exact(model, amounts, enabled), lambda a, b: a + b)


def _of_action(model: SymbolicModel, structure: int, action: str | None, states: Partition) -> Partition:
    """Return what a chain's commands of an action earn with the state, wherever they may be taken."""
    taken = model.manager.disjunction(
        event.exits.support & model.reachable for event in model.events if event.action == action
    )
    often = Partition(model.manager, {1: taken})
    items = [i for i in model.source.rewards[structure].items if i.is_transition and i.action == action]
    earned = _exact(model, [item_amounts(model, item, often) for item in items], taken)
    return states.only(taken).combine(earned, lambda a, b: a + b)


def _part_of_chain(
    model: SymbolicModel, reward: Rewards, by_action: dict[str | None, Partition], states: Partition
) -> SymbolicMatrix:
    """Return the entries of a chain whose commands earn a reward."""
    false = model.manager.false
    events = []
    for event in model.events:
        where = by_action[event.action].pieces.get(reward, false)
        rates = event.rates.only(where)
        if len(rates):
            events.append(replace(event, rates=rates))
    loops = model.deadlocks & states.pieces.get(reward, false)
    return assemble(model.encoding, events, model.reachable, loops, model.divisors)


def _exact(model: SymbolicModel, parts: Sequence[Partition], within: Node) -> Partition:
    """Return the sum of amounts over a set of states, 0 elsewhere in it, as rational numbers."""
    total = Partition.total(model.manager, parts)
    if any(amount.error for amount, _ in total):
        raise RewardSplitError(
            "a bound on a reward needs rewards that are rational numbers, written so that they are known "
            "exactly: take square roots, powers and logarithms out of the structure"
        )
    return _everywhere(model, total.map(lambda amount: amount.value), within)


def _everywhere(model: SymbolicModel, known: Partition, within: Node) -> Partition:
    """Return a function of some states with 0 in all others of a set."""
    known = known.only(within)
    rest = within & ~known.support
    return Partition.united(model.manager, [*known, (Fraction(0), rest)])


def _rational(vector: SymbolicMatrix) -> Partition:
    """Return a function of the states by rational value.

    Raises RewardSplitError: its doubles may be off.
    """
    if vector.units:
        raise RewardSplitError(
            "a bound on a reward needs rewards that are known exactly, and those of this model are rounded: "
            "give them as whole numbers"
        )
    return vector.partition().map(Fraction)
