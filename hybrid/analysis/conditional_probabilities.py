"""Conditional probabilities of path formulas: P(A and B) / P(B), of chains.

Both are probabilities of a formula of linear temporal logic; their bounds are divided with directed rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybrid.analysis.operator_values import Asked, operator_values
from hybrid.base.directed_rounding import divided
from hybrid.base.state_values import StateValues
from hybrid.properties.tree import Probability
from mtbdd.language.syntax import Binary, Expression

_SHARE = 0.25  # of epsilon for each of the two probabilities: the distances of their bounds add up


def conditional_probabilities(a: Asked) -> StateValues:
    """Return the probability of a path formula of a chain under the condition of another one.

    Returns
    -------
    StateValues
        NaN where the condition has probability 0.

    Raises
    ------
    UnsupportedError
        A formula is not translated: bounds on time beside other formulas.
    NotConvergedError
    """
    path = a.path
    finer = replace(a.options, epsilon=_SHARE * a.options.epsilon)

    def probability(path: Expression) -> StateValues:
        asked = Probability(path.position, None, None, None, path)
        return operator_values(a.model, asked, a.states, finer, a.work)

    condition = probability(path.condition)
    both = probability(Binary(path.position, "&", path.path, path.condition))
    return a.scope.of_values(_quotient(both, condition))


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
