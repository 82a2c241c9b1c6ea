"""Reward structures of a builder as functions of the states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hybrid.errors import ModellingError
from hybrid.modelling.declared import WrittenReward
from hybrid.modelling.translator import PythonExpression, TableTranslator
from mtbdd.choices import ChoiceLayer, ChoicePart
from mtbdd.faults import format_state
from mtbdd.given import GivenReward
from mtbdd.language.errors import listed, suggestion
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.partition import Partition


def given_rewards(
    written: Mapping[str, Sequence[WrittenReward]],
    translator: TableTranslator,
    layers: Sequence[ChoiceLayer],
    found: Node,
    is_mdp: bool,
    divisors: Partition | None,
) -> list[GivenReward]:
    """Return the reward structures.

    Parameters
    ----------
    written : mapping of str to sequence of WrittenReward
    translator : TableTranslator
    layers : sequence of ChoiceLayer
        With their events.
    found : Node
        The reachable states.
    is_mdp : bool
        In an MDP a choice earns its reward once; in a chain a transition earns it as often as its rate says.
    divisors : Partition or None
        What rows of a DTMC are divided by.

    Raises
    ------
    ModellingError
        The reward of a reachable state is not finite; rewards of both signs are added with rounding.
    """
    return [
        _structure(name, items, translator, layers, found, is_mdp, divisors)
        for name, items in written.items()
    ]


def _structure(
    name: str,
    items: Sequence[WrittenReward],
    translator: TableTranslator,
    layers: Sequence[ChoiceLayer],
    found: Node,
    is_mdp: bool,
    divisors: Partition | None,
) -> GivenReward:
    own = [_earned(name, item, translator, found) for item in items if not item.of_transitions]
    states = _function(name, translator, own) if own else None
    choices: list[SymbolicMatrix | None] = []
    for layer in layers:
        earned = []
        for item in items:
            parts = [p for p in layer.parts if p.event is not None and p.action == item.action]
            if not item.of_transitions or not parts:
                continue
            often = [_often(part, found, is_mdp, divisors) for part in parts]
            where = translator.encoding.manager.disjunction(o.support for o in often)
            value = _earned(name, item, translator, where)
            earned += [value.times(o) for o in often]
        choices.append(_function(name, translator, earned) if earned else None)
    return GivenReward(name, states, tuple(choices))


def check_actions_of_rewards(written: Mapping[str, Sequence[WrittenReward]], actions: Sequence[str]) -> None:
    """Refuse a reward of an action that no command has."""
    for name, items in written.items():
        for item in items:
            if item.action is not None and item.action not in actions:
                raise ModellingError(
                    f"{item.position}: reward '{name}': expected an action of some command "
                    f"({listed(list(actions)) or 'there is none'}), got '{item.action}'"
                    f"{suggestion(item.action, actions)}"
                )


def _earned(name: str, item: WrittenReward, translator: TableTranslator, among: Node) -> Partition:
    """Return what an item earns in some states, checked."""
    where = (
        translator.states(PythonExpression.of(item.guard, f"reward '{name}': guard", item.position)) & among
    )
    found = translator.partition(PythonExpression.of(item.value, f"reward '{name}'", item.position), where)
    for value, piece in found:
        if not math.isfinite(value):
            state = format_state(translator.encoding.pick(piece))
            raise ModellingError(
                f"{item.position}: reward '{name}' is {value} in reachable state {state}, expected a finite "
                "number"
            )
    return found.map(float).nonzero()


def _often(part: ChoicePart, found: Node, is_mdp: bool, divisors: Partition | None) -> Partition:
    """Return how often a choice of a part is taken, in a step or, in a CTMC, in a unit of time."""
    assert part.event is not None
    if is_mdp:
        return Partition(part.event.rates.manager, {1.0: part.states})
    exits = part.event.exits.only(found)
    if divisors is None:
        return exits
    if all(divisor == 1 for divisor, _ in divisors):
        return Partition(exits.manager, exits.pieces, exits.units + divisors.units)
    return exits.divided(divisors)


def _function(name: str, translator: TableTranslator, parts: Sequence[Partition]) -> SymbolicMatrix:
    """Return the sum of partitions as a function of the states."""
    total = Partition.total(translator.encoding.manager, parts)
    if total.units == math.inf:
        raise ModellingError(
            f"reward '{name}': expected items of one sign where they add up, got both, which may cancel; "
            "write them as one item"
        )
    return SymbolicMatrix.from_partition(total, unite=False)
