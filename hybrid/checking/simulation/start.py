"""The states in which paths begin."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybrid.base.errors import OptionError
from hybrid.checking.simulation.functions import MISSING, TRUE, condition
from hybrid.checking.simulation.variables import Array, Ints, Variables
from mtbdd.language.errors import Fault, listed, suggestion
from mtbdd.language.faults import BuildError
from mtbdd.language.model_syntax import ResolvedModel

_MOST = 1 << 20
"""Combinations of values that are looked through for those of `init ... endinit`."""


def initial_columns(
    model: ResolvedModel, variables: Variables, given: Mapping[str, bool | int] | None = None
) -> Ints:
    """Return the states in which paths may begin.

    Parameters
    ----------
    model : ResolvedModel
    variables : Variables
        Of the model.
    given : mapping of str to bool or int, optional
        Values of some variables: in place of their initial ones, or, where the model has
        `init ... endinit`, to choose among its states.

    Returns
    -------
    ndarray of int64, shape (variables, k)
        Those of `init ... endinit` in lexicographic order, or the one state of the initial values.

    Raises
    ------
    OptionError
        A given value is none of its variable's, or too many combinations are to be looked through.
    BuildError
        No state satisfies `init ... endinit`, or it has no value somewhere.
    """
    fixed = _checked(variables, given or {})
    if model.initial is None:
        column = [fixed.get(v.name, int(v.initial)) for v in model.variables]
        return np.array(column, dtype=np.int64).reshape(-1, 1)
    open_rows = [row for row, name in enumerate(variables.names) if name not in fixed]
    size = variables.size(open_rows)
    if size > _MOST:
        raise OptionError(
            f"start: expected at most {_MOST:,} combinations of values to look through for init ... endinit, "
            f"got {size:,}; give the values of more variables"
        )
    axes, shape = variables.axes(open_rows)
    states = np.empty((len(variables.names), size), dtype=np.int64)
    for row, name in enumerate(variables.names):
        own: Array = np.asarray(fixed[name] if name in fixed else axes[name], dtype=np.int64)
        states[row] = np.broadcast_to(own, shape).reshape(-1)
    names = {name: variables.typed(row, states[row]) for row, name in enumerate(variables.names)}
    codes = condition(variables, model.initial).over(names, (size,))
    if (codes == MISSING).any():
        state = variables.text(states[:, np.flatnonzero(codes == MISSING)[0]])
        message = f"expected a value in every state, got none in {state}; guard it with a condition"
        raise BuildError([Fault(model.initial.position, message)])
    found = states[:, codes == TRUE]
    if not found.shape[1]:
        message = "no state satisfies init ... endinit: the model has no initial state"
        if fixed:
            raise OptionError("start: no state with these values satisfies init ... endinit")
        raise BuildError([Fault(model.initial.position, message)])
    return found


def _checked(variables: Variables, given: Mapping[str, bool | int]) -> dict[str, int]:
    """Return given values as integers, each one of its variable's."""
    fixed = {}
    for name, value in given.items():
        if name not in variables.place:
            hint = suggestion(name, variables.names)
            raise OptionError(f"start: expected a variable of {listed(variables.names)}, got {name!r}{hint}")
        row = variables.place[name]
        low, high, is_bool = variables.low[row], variables.high[row], variables.is_bool[row]
        kinds = (bool, np.bool_) if is_bool else (int, np.integer)
        if not isinstance(value, kinds) or (not is_bool and isinstance(value, bool)):
            wanted = "true or false" if is_bool else "an integer"
            raise OptionError(f"start: expected {wanted} for {name}, got {value!r}")
        if not low <= value <= high:
            raise OptionError(f"start: expected {name} within {low}..{high}, got {value}")
        fixed[name] = int(value)
    return fixed
