"""Conditional probabilities of path formulas: P(A and B) / P(B), of chains.

Both are probabilities of a formula of linear temporal logic; their bounds are divided with directed rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hybrid.analysis.path_formulas import path_probabilities
from hybrid.core.directed_rounding import divided
from hybrid.errors import UnsupportedError
from hybrid.properties.tree import ConditionalPath
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.syntax import Binary, Expression
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

_SHARE = 0.25  # of epsilon for each of the two probabilities: the distances of their bounds add up


def conditional_probabilities(
    model: SymbolicModel,
    path: ConditionalPath,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the probability of a path formula under the condition of another one, from every state.

    Parameters
    ----------
    path : ConditionalPath
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.

    Returns
    -------
    StateValues
        NaN where the condition has probability 0.

    Raises
    ------
    UnsupportedError
        The model is an MDP, or a formula is not translated: bounds on time beside other formulas.
    NotConvergedError
    """
    if model.is_mdp:
        raise UnsupportedError(
            "conditional probabilities, P [ path || path ], are not checked on an MDP by this version: they "
            "depend on the scheduler; ask for the chain that a scheduler leaves"
        )
    criterion = replace(options.criterion, epsilon=_SHARE * options.criterion.epsilon)
    finer = replace(options, criterion=criterion)
    both = Binary(path.position, "&", path.path, path.condition)
    condition = path_probabilities(model, path.condition, True, states, finer, work)
    return _quotient(path_probabilities(model, both, True, states, finer, work), condition)


def _quotient(both: StateValues, condition: StateValues) -> StateValues:
    """Return the bounds of ``P(A and B) / P(B)``, the first being no greater than the second."""
    with np.errstate(all="ignore"):
        never = condition.upper == 0.0
        never |= np.isnan(condition.upper) & (condition.values == 0.0)
        values = np.minimum(both.values / condition.values, 1.0)
        lower = divided(both.lower, condition.upper)[0]
        upper = divided(both.upper, condition.lower)[1]
    # Where nothing is known but that the condition is possible.
    upper = np.where((condition.lower == 0.0) & ~np.isnan(lower), 1.0, np.minimum(upper, 1.0))
    values = np.where(np.isnan(values) & ~never, 0.5, values)
    values = np.where(np.isnan(lower) | np.isnan(upper), values, np.clip(values, lower, upper))
    for part in (values, lower, upper):
        part[never] = np.nan
    opened = both.open_lower
    return StateValues(values, lower, upper, None if opened is None else opened & (lower == 0.0))
