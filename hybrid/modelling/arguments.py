"""What users give for expressions and updates, read into what is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hybrid.errors import ModellingError
from hybrid.modelling.declared import WrittenUpdate
from hybrid.modelling.functions import check_owner, quantity_of
from hybrid.modelling.quantities import ModelVariable, Quantity
from mtbdd.language.syntax import ModelType

GivenExpression = Quantity | Callable[..., Any] | float
GivenUpdate = Mapping[ModelVariable, GivenExpression]


@dataclass(frozen=True)
class ArgumentReader:
    """Reads the arguments of a builder's methods.

    Attributes
    ----------
    kind : ModelType
    variables : dict of str to ModelVariable
        Those declared so far.
    owner : object
        The builder.
    """

    kind: ModelType
    variables: dict[str, ModelVariable]
    owner: object

    def quantity(self, given: Any, what: str) -> Quantity:
        """Return an argument as an expression; messages begin with `what`."""
        return quantity_of(given, self.variables, self.owner, what)

    def written_update(self, weight: Any, assigned: Any, what: str) -> WrittenUpdate:
        """Return an update of a command, checked."""
        if not isinstance(assigned, Mapping):
            raise ModellingError(f"{what}: expected a mapping of variables to new values, got {assigned!r}")
        found = []
        for variable, value in assigned.items():
            if not isinstance(variable, ModelVariable):
                raise ModellingError(f"{what}: expected variables as keys of an update, got {variable!r}")
            check_owner(variable, self.owner, what)
            found.append((variable, self.quantity(value, f"{what}: {variable.name}'")))
        return WrittenUpdate(
            None if weight is None else self.quantity(weight, f"{what}: weight"), tuple(found)
        )
