"""Reward structures as functions of the states."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.amounts import Amount
from mtbdd.diagrams.arithmetic import add
from mtbdd.language.faults import BuildError, format_state
from mtbdd.build.given import GivenReward
from mtbdd.language.errors import Fault
from mtbdd.language.model_syntax import RewardItem
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.partition import Partition
from mtbdd.build.real_partitions import RealPartitions
from mtbdd.build.rewards import carriers_of, enclosed_action_rewards, enclosed_rewards, relative_units
from mtbdd.offset.states import StateIndex
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.diagrams.value_operations import ZERO

_LISTED = 1 << 20  # states up to which rewards are worked out state by state
_MOST_SHARE = 2.0**-10  # relative error of a reward; sums that cancel further tell nothing

Vector = NDArray[np.float64]


def symbolic_reward(model: SymbolicModel, structure: int) -> GivenReward:
    """Return a reward structure as diagrams: what states earn, and the choice of every layer.

    Parameters
    ----------
    model : SymbolicModel
    structure : int
        Position among the model's reward structures.

    Raises
    ------
    BuildError
        A reward of a reachable state is not a finite number, or sums of both signs cancel too far.
    LanguageError
        In a model with more than a million states: an item takes more values than the limits allow.

    Notes
    -----
    Time: up to a million states, O(states) for every item and bit; beyond, one set for every value that an
    item takes.
    """
    if model.given is not None:
        return model.given.rewards[structure]
    items = model.source.rewards[structure].items
    listed = model.n_states <= _LISTED
    states: SymbolicMatrix | None = None
    if any(not item.is_transition for item in items):
        everywhere = [(None, Partition(model.manager, {1: model.reachable}))]
        if listed:
            states = _from_vectors(model, *enclosed_rewards(model, structure, model.index, 0, moves=False))
        else:
            states = _summed(model, structure, everywhere, moves=False)
    choices: list[SymbolicMatrix | None] = [None] * len(model.layers)
    if any(item.is_transition for item in items):
        for number in range(len(model.layers)):
            if listed:
                found = enclosed_action_rewards(model, structure, model.index, number)
                choices[number] = _from_vectors(model, *found)
            else:
                carriers = carriers_of(model, structure, number)
                choices[number] = _summed(model, structure, carriers, moves=True)
    return GivenReward(model.source.rewards[structure].name, states, tuple(choices))


# ------------------------------------------------------------------ state by state


def _from_vectors(model: SymbolicModel, values: Vector, error: Vector | None) -> SymbolicMatrix:
    """Return the function of the reachable states that takes some values, off by some error."""
    work = ValueDiagrams(model.manager.index_level)
    root = from_vector(work, model.index, values)
    return work.store(model.manager, root, relative_units(values, error))


def from_vector(work: ValueDiagrams, index: StateIndex, values: Vector) -> int:
    """Return the function of row bits that takes given values in the states of a set, and 0 elsewhere.

    Parameters
    ----------
    work : ValueDiagrams
    index : StateIndex
    values : ndarray of float64, shape (index.size,)

    Notes
    -----
    Time: O(states) a bit; memory: two bytes a state and bit.
    """
    if not index.size:
        return ZERO
    node = np.zeros(1, dtype=np.int64)
    present: list[NDArray[np.bool_]] = []
    for bit in range(index.n_bits):
        children = np.stack([index.low[bit][node], index.high[bit][node]], axis=1).reshape(-1)
        present.append(children >= 0)
        node = children[present[-1]].astype(np.int64)
    # Every path that is left is a state, in index order.
    found = work.leaves(values)
    for bit in reversed(range(index.n_bits)):
        ids = np.zeros(present[bit].size, dtype=np.int64)
        ids[present[bit]] = found
        found = work.nodes(3 * bit, ids[::2], ids[1::2])
    return int(found[0])


# ------------------------------------------------------------------ value by value


def _summed(
    model: SymbolicModel, structure: int, carriers: Sequence[tuple[str | None, Partition]], moves: bool
) -> SymbolicMatrix:
    """Return the sum of state rewards, or of transition rewards times how often their action is taken."""
    parts = [
        item_amounts(model, item, often)
        for item in model.source.rewards[structure].items
        if item.is_transition == moves
        for action, often in carriers
        if not moves or action == item.action
    ]
    signs = {amount.value > 0 for part in parts for amount, _ in part if amount.value}
    if len(signs) < 2:  # sums of doubles of one sign lose a unit each
        terms = [_doubles(model, structure, part) for part in parts]
        nothing = SymbolicMatrix(model.manager, model.manager.false, np.zeros(0))
        return functools.reduce(add, terms) if terms else nothing
    return _doubles(model, structure, Partition.total(model.manager, parts))


def item_amounts(model: SymbolicModel, item: RewardItem, often: Partition) -> Partition:
    """Return what an item earns in every state, times how often it is taken there."""
    often = often.only(model.reachable).nonzero()
    model.translator.require_value(item.guard, often.support)
    states = model.translator.states(item.guard) & often.support
    value = RealPartitions(model.translator).of(item.value).only(states)
    for number, where in value:
        if isinstance(number, float) or (isinstance(number, Fraction) and abs(number) > sys.float_info.max):
            state = format_state(model.encoding.pick(where))
            got = number if isinstance(number, float) else math.inf
            message = f"the reward is {got} in state {state}, expected a finite number"
            raise BuildError([Fault(item.position, message)])
    return often.combine(value.map(Amount.of), Amount.of_carrier(often.units))


def _doubles(model: SymbolicModel, structure: int, total: Partition) -> SymbolicMatrix:
    """Return amounts as doubles."""
    units = 0.0
    for amount, where in total:
        if amount.double == 0 and amount.distance == 0:
            continue
        share = amount.distance / abs(amount.double) if amount.double else math.inf
        if not math.isfinite(amount.double) or not share < _MOST_SHARE:
            state = format_state(model.encoding.pick(where))
            message = f"expected rewards that add up to a normal double, got {amount.double} in state {state}"
            raise BuildError([Fault(model.source.rewards[structure].position, message)])
        units = max(units, share * 2.0**53 * (1 + 2.0**-40))  # lemma: entry-units
    return SymbolicMatrix.from_partition(total.map(lambda amount: amount.double, units), unite=False)
