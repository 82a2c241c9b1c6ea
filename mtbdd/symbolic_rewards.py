"""Reward structures as functions of the states, without a vector of all states."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

from mtbdd.amounts import Amount
from mtbdd.faults import BuildError, format_state
from mtbdd.given import GivenReward
from mtbdd.language.errors import Fault
from mtbdd.language.model_syntax import RewardItem
from mtbdd.matrix import SymbolicMatrix
from mtbdd.model import SymbolicModel
from mtbdd.partition import Partition
from mtbdd.real_partitions import RealPartitions
from mtbdd.rewards import carriers_of

_MOST_SHARE = 2.0**-10  # relative error of a reward; sums that cancel further tell nothing


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
        A reward of a reachable state is not a finite number, or it is too small or too large for doubles.

    Notes
    -----
    Sums are exact and then rounded once.  Time: one set for every value that an item takes; an item over many
    bits takes many.
    """
    if model.given is not None:
        return model.given.rewards[structure]
    items = model.source.rewards[structure].items
    stays = [
        _amounts(model, item, Partition(model.manager, {1: model.reachable}))
        for item in items
        if not item.is_transition
    ]
    choices: list[SymbolicMatrix | None] = []
    for number in range(len(model.layers)):
        carriers = carriers_of(model, structure, number)
        moves = [
            _amounts(model, item, often)
            for item in items
            if item.is_transition
            for action, often in carriers
            if action == item.action
        ]
        choices.append(_total(model, structure, moves) if moves else None)
    name = model.source.rewards[structure].name
    return GivenReward(name, _total(model, structure, stays) if stays else None, tuple(choices))


def _amounts(model: SymbolicModel, item: RewardItem, often: Partition) -> Partition:
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


def _total(model: SymbolicModel, structure: int, parts: Sequence[Partition]) -> SymbolicMatrix:
    """Return the sum of amounts as doubles."""
    total = Partition.total(model.manager, parts)
    units = 0.0
    for amount, where in total:
        if amount.double == 0 and amount.distance == 0:
            continue
        share = amount.distance / abs(amount.double) if amount.double else math.inf
        if not math.isfinite(amount.double) or not share < _MOST_SHARE:
            state = format_state(model.encoding.pick(where))
            message = f"expected rewards that add up to a normal double, got {amount.double} in state {state}"
            raise BuildError([Fault(model.source.rewards[structure].position, message)])
        units = max(units, share * 2.0**53 * (1 + 2.0**-40))
    doubles = total.map(lambda amount: amount.double, units)
    return SymbolicMatrix.from_partition(doubles, unite=False)
