"""Expected rewards in all time, of which every step leaves a share.

Their equation ``x = opt of (r + d P x)`` has one solution whatever the model's graph, for a step draws any
two candidates nearer by the factor d (Puterman, Markov Decision Processes, section 6.2): any u that a step
does not raise is an upper bound, and no state earns more than the greatest reward over 1 - d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.choice_rewards import choice_rewards, paid_choices, reward_units
from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.systems import solve_linear
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.discount import Discount
from hybrid.matrix.operators.rounding import scaled_bounds
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units
from mtbdd.graph.prob01 import backward
from mtbdd.offset.states import StateIndex, index_states, states_from

if TYPE_CHECKING:
    from numpy.typing import NDArray


def discounted_rewards(a: Asked) -> StateValues:
    """Return the expected discounted reward, of an MDP the least or the greatest.

    The reward of the k-th step counts ``discount**k`` times, k from 0; optimal schedulers forget the past.

    Returns
    -------
    StateValues
        Exact zeros where nothing can be earned.

    Raises
    ------
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    UnsupportedError
        The method has no meaning for choices.
    """
    model, structure, options, work = a.model, a.formula.place, a.options, a.work
    d = Discount.of(a.number(a.formula.discount))
    none = np.zeros(model.index.size)
    if not model.is_mdp:
        return a.scope.of_values(_on_chain(model, structure, d, options, work))
    earning = backward(model, model.manager.disjunction(paid_choices(model, structure)))
    unknown = index_states(model.manager, earning)
    if unknown.total == 0:
        return a.scope.of_values(StateValues.exact(none))
    check_method(options)
    most = [0.0]

    def gain(layer: int, rows: StateIndex) -> NDArray[np.float64]:
        own = choice_rewards(model, structure, layer, rows)
        most.append(float(own.max(initial=0.0)))
        return own

    enabled = [layer.enabled for layer in model.layers]
    operator = choice_operator(model, unknown, enabled, gain, a.maximise, None, options, discount=d)
    greatest = model.communicator.greatest(max(most))
    found = solve_choices(operator, d.bound(greatest), options, work, "discounted rewards", unknown)
    if a.maker is not None:
        a.maker.policy(unknown, operator, found, None)
    found = scaled_bounds(found, reward_units(model, structure))  # lemma: entry-units
    return a.scope.of_values(found.spread(model.indicator(earning), none))


def _on_chain(
    model: SymbolicModel, structure: int, discount: Discount, options: CheckOptions, work: Work
) -> StateValues:
    """Solve the linear system of the states from which something can be earned."""
    rewards, error = enclosed_rewards(model, structure, model.index)
    none = np.zeros(model.index.size)
    earning = backward(model, states_from(model.manager, model.index, rewards != 0))
    maybe = index_states(model.manager, earning)
    if maybe.total == 0:
        return StateValues.exact(none)
    inside, alike = model.indicator(earning), model.communicator
    units = alike.greatest(relative_units(rewards, error))
    most = discount.bound(alike.greatest(float(np.abs(rewards).max(initial=0.0))), units)
    found = solve_linear(
        model, maybe, rewards[inside], most, options, work, "discounted rewards",
        units=units, discount=discount,
    )  # fmt: skip
    return found.on_host().spread(inside, none)
