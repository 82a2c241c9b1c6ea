"""What users give in place of expressions: plain functions, whose parameters name variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybrid.errors import ModellingError
from hybrid.modelling.quantities import FunctionOf, ModelVariable, Quantity, as_quantity
from mtbdd.language.errors import listed, suggestion


def quantity_of(given: Any, variables: Mapping[str, ModelVariable], owner: object, what: str) -> Quantity:
    """Return what a user gave as an expression over a builder's variables.

    Parameters
    ----------
    given : Quantity, number or callable
    variables : mapping of str to ModelVariable
        By name.
    owner : object
        The builder.
    what : str
        What messages begin with.

    Raises
    ------
    ModellingError
        It is something else, a function with a parameter that is no variable, or of another builder.
    """
    if isinstance(given, Quantity) or not callable(given):
        try:
            found = as_quantity(given)
        except ModellingError as error:
            raise ModellingError(f"{what}: {error}") from None
    else:
        found = FunctionOf(given, _parameters(given, variables, what), by_name=True)
    for variable in found.over():
        check_owner(variable, owner, what)
    return found


def check_owner(variable: ModelVariable, owner: object, what: str) -> None:
    """Refuse a variable of another builder."""
    if variable.owner is not owner:
        raise ModellingError(
            f"{what}: expected variables of this builder, got '{variable.name}' of another one; declare it "
            "here"
        )


def function_over(function: Any, over: Sequence[ModelVariable], owner: object, what: str) -> FunctionOf:
    """Return a function of given variables, in the order of its parameters."""
    if not callable(function):
        raise ModellingError(f"{what}: expected a function, got {type(function).__name__}")
    chosen = list(over)
    for variable in chosen:
        if not isinstance(variable, ModelVariable):
            raise ModellingError(f"{what}: over: expected variables, got {type(variable).__name__}")
        check_owner(variable, owner, what)
    return FunctionOf(function, chosen, by_name=False)


def _parameters(
    function: Callable[..., Any], variables: Mapping[str, ModelVariable], what: str
) -> list[ModelVariable]:
    """Return the variables that a function's parameters name; those with defaults may be others."""
    inner = function.pyfunc if isinstance(function, np.vectorize) else function
    try:
        parameters = inspect.signature(inner).parameters.values()
    except (TypeError, ValueError):
        raise ModellingError(
            f"{what}: expected a function whose parameters are known, got {function!r}; name the variables, "
            "`builder.function(f, over=[x, y])`"
        ) from None
    found = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ModellingError(
                f"{what}: expected a function whose parameters are names of variables, got '{parameter}'; "
                "name the variables, `builder.function(f, over=[x, y])`"
            )
        if parameter.name in variables:
            found.append(variables[parameter.name])
        elif parameter.default is parameter.empty:
            raise ModellingError(
                f"{what}: the function has a parameter '{parameter.name}', expected a variable's name: "
                f"{listed(list(variables)) or 'there are none'}{suggestion(parameter.name, variables)}; or "
                "name the variables, `builder.function(f, over=[x, y])`"
            )
    return found
