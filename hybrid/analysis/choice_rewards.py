"""What choices earn, and what the graph decides of optimal expected rewards.

Rewards until a set is reached are infinite where the set is missed with positive probability (Forejt et
al., 2011, section 5).  For the maximum nothing is left then in which a scheduler could stay.  For the
minimum it could in end components, which cost something unless all their choices are free; the free ones
are made one state each, so that staying there for nothing is no answer (Baier et al., CAV 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import choice_operator
from hybrid.analysis.precomputation import end_components, prob1a, prob1e
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import PropertyError
from hybrid.matrix.operators.layer_choices import group_states, leaving_choices
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.matrix.space.choice_problem import Quotient
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units, reward_rates
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents, MaximalEndComponent, model_end_components
from mtbdd.graph.prob01 import backward
from mtbdd.offset.states import StateIndex, index_states, states_from

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RewardSystem:
    """What is left of a reward until a set is reached once the graph has decided what it can.

    Attributes
    ----------
    finite : Node
        States where it is finite.
    unknown : StateIndex
        Those outside of the set.
    allowed : tuple of Node
        For every layer the states whose choice may be taken.
    components : EndComponents or None
        Where a scheduler could stay for nothing; None for a maximum.
    """

    finite: Node
    unknown: StateIndex
    allowed: tuple[Node, ...]
    components: EndComponents | None


def reward_system(model: SymbolicModel, structure: int, target: Node, maximise: bool) -> RewardSystem:
    """Return what the graph decides of a reward until a set is reached, and what it leaves.

    Raises
    ------
    PropertyError
        A reward is negative.
    """
    allowed = tuple(layer.enabled for layer in model.layers)
    if maximise:
        finite = prob1a(model, model.reachable, target)
        unknown = index_states(model.manager, finite & ~target)
        return RewardSystem(finite, unknown, allowed, None)
    finite = prob1e(model, model.reachable, target)
    unknown = index_states(model.manager, finite & ~target)
    if unknown.total == 0:
        return RewardSystem(finite, unknown, allowed, None)
    outside = model.reachable & ~finite
    kept = list(allowed)
    if outside != model.manager.false:
        for step in model.choice_relations:
            kept[step.layer] = kept[step.layer] & ~step.before(outside)
    free = _free_choices(model, structure, unknown, kept)
    return RewardSystem(finite, unknown, tuple(kept), end_components(model, unknown.states, free))


def reward_operator(
    model: SymbolicModel, structure: int, system: RewardSystem, maximise: bool, options: CheckOptions
) -> ChoiceOperator:
    """Return the operator of a reward system with unknown states."""
    allowed = list(system.allowed)
    groups: Quotient | None = None
    if system.components is not None:
        allowed = leaving_choices(model, allowed, system.components)
        groups = group_states(model, system.unknown, system.components)
    return choice_operator(
        model,
        system.unknown,
        allowed,
        lambda layer, rows: choice_rewards(model, structure, layer, rows),
        maximise,
        groups,
        options,
    )


def zero_reward_mecs(model: SymbolicModel, structure: int) -> Node:
    """Return the states where a scheduler may stay for ever and earn nothing."""
    free = _free_choices(model, structure, model.index, [layer.enabled for layer in model.layers])
    return end_components(model, model.reachable, free).states


def greatest_totals(model: SymbolicModel, structure: int) -> tuple[Node, Node]:
    """Return the states whose greatest total reward is infinite, and those where it is to be solved for.

    In the others nothing can be earned.
    """
    manager = model.manager
    paid = paid_choices(model, structure)
    ends = model_end_components(model)

    def earning(c: MaximalEndComponent) -> Node:
        return manager.disjunction(own & p for own, p in zip(c.choices, paid, strict=True))

    # Those of one state come together, each of which stands for itself.
    endless = [earning(ends.single), *(c.states for c in ends.components if earning(c) != manager.false)]
    infinite = backward(model, manager.disjunction(endless))
    return infinite, backward(model, manager.disjunction(paid)) & ~infinite


def paid_choices(model: SymbolicModel, structure: int) -> list[Node]:
    """Return for every layer the states whose choice earns something."""
    free = _free_choices(model, structure, model.index, [layer.enabled for layer in model.layers])
    return [layer.enabled & ~f for layer, f in zip(model.layers, free, strict=True)]


# ------------------------------------------------------------------ choices and what they earn


def choice_rewards(model: SymbolicModel, structure: int, layer: int, rows: StateIndex) -> Vector:
    """Return the reward of a layer's choices, that of the state included."""
    return not_negative(reward_rates(model, structure, rows, layer), model.communicator)


def reward_units(model: SymbolicModel, structure: int) -> float:
    """Return the greatest relative error of any choice's reward, in units of rounding."""
    found = (enclosed_rewards(model, structure, model.index, layer) for layer in range(len(model.layers)))
    # lemma: entry-units
    return model.communicator.greatest(max(relative_units(*enclosed) for enclosed in found))


def not_negative(rewards: Vector, communicator: Communicator = ALONE) -> Vector:
    """Return rewards; refuse negative ones."""
    least = communicator.least(float(rewards.min(initial=0.0)))
    if least < 0:
        raise PropertyError(
            f"R: expected no negative rewards in an MDP, got {least}: bounds on least and "
            "greatest rewards need them to be zero or more; split the structure in gains and losses"
        )
    return rewards


def _free_choices(
    model: SymbolicModel, structure: int, within: StateIndex, allowed: list[Node] | tuple[Node, ...]
) -> list[Node]:
    """Return for every layer the states of a set whose choice is allowed and earns nothing."""
    found = []
    for layer, states in enumerate(allowed):
        rows = index_states(model.manager, states & within.states)
        if rows.total == 0:
            found.append(model.manager.false)
            continue
        earned = choice_rewards(model, structure, layer, rows)
        found.append(states_from(model.manager, rows, earned == 0.0))
    return found
