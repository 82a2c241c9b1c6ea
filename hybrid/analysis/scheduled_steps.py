"""Rewards of some steps with a scheduler, which remembers how many of them it has made.

With that number a process has no way back, and what it earns until all steps are made is a reward until a set
is reached, surely: one system, whose best choices are the scheduler.
"""

from __future__ import annotations

import numpy as np

from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices
from hybrid.analysis.memory_scheduler import Counting
from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.rewards import not_negative
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import scaled_bounds
from hybrid.properties.tree import Instantaneous
from mtbdd.base.errors import option
from mtbdd.build.rewards import enclosed_rewards, relative_units
from mtbdd.offset.states import StateIndex, index_states


def scheduled_steps(a: OperatorQuery) -> StateValues:
    """Return the expected reward of the first steps, or of the state after them, of an MDP; with a scheduler.

    Time and memory: those of a reward until a set is reached over the states times the steps; refused beyond
    the iterations that are allowed.
    """
    check_method(a.options)
    structure, time = a.formula.place, int(a.number(a.formula.target.time))
    is_last, most = isinstance(a.formula.target, Instantaneous), a.options.criterion.max_iterations
    # The last state earns what counts when it is left.
    steps = time + is_last
    if steps > most:
        raise UnsupportedError(
            f"a scheduler of {steps} steps remembers as many numbers, and {most} are allowed: raise "
            f"{option('max-iters')}"
        )
    counting = Counting(a.model, {(1,): [layer.matrix for layer in a.model.layers]}, [steps])
    product, pairs = counting.product, counting.product.model
    waiting = pairs.reachable & product.at_most(0, steps - 1) if steps else pairs.manager.false
    unknown, earning = index_states(pairs.manager, waiting), waiting
    if is_last and time:
        earning = waiting & ~product.at_most(0, time - 1)

    units = [0.0]

    def gain(layer: int, rows: StateIndex) -> np.ndarray:
        own, error = enclosed_rewards(pairs, structure, rows, layer, moves=not is_last)
        units.append(relative_units(own, error))
        return not_negative(own) * pairs.indicator(earning, rows)

    found = StateValues.exact(np.zeros(pairs.n_states))
    if unknown.total:
        operator = choice_operator(pairs, unknown, gain, a.maximise, a.options)
        solved = solve_choices(operator, None, a.options, a.work, "rewards of steps", unknown)
        counting.maker.policy(unknown, operator, solved, None)
        solved = scaled_bounds(solved, max(units))  # lemma: entry-units
        found = solved.spread(pairs.indicator(waiting), found.values)
    assert a.maker is not None
    a.maker.remember(counting.finish())
    return a.scope.of_values(found.at(pairs.indicator(product.first)))
