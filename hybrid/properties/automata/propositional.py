"""Boolean functions of numbered variables as binary decision diagrams: equal functions are equal numbers."""

from __future__ import annotations

from collections.abc import Callable

FALSE, TRUE = 0, 1


class Functions:
    """Nodes of reduced ordered decision diagrams; a function is the number of its node.

    Used for formulas as functions of their temporal subformulas, which are few; for sets of states there is
    `mtbdd.diagrams.manager`.
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = [(1 << 60, 0, 0), (1 << 60, 1, 1)]
        self._known: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """Return "if variable then high else low", whose variables come after this one."""
        if low == high:
            return low
        key = (variable, low, high)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def parts(self, function: int) -> tuple[int, int, int]:
        """Return the first variable of a function and what is left where it is false, and true."""
        return self._nodes[function]

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """Return "if condition then `then` else `otherwise`".  Time: at most the product of the sizes."""
        if condition == TRUE or then == otherwise:
            return then
        if condition == FALSE:
            return otherwise
        if then == TRUE and otherwise == FALSE:
            return condition
        key = (condition, then, otherwise)
        found = self._choices.get(key)
        if found is None:
            first = min(self._nodes[part][0] for part in key)
            low, high = (
                self.choose(*(self._cofactor(part, first, side) for part in key)) for side in (False, True)
            )
            found = self._choices[key] = self.node(first, low, high)
        return found

    def _cofactor(self, function: int, variable: int, side: bool) -> int:
        own, low, high = self._nodes[function]
        return function if own != variable else high if side else low

    def both(self, a: int, b: int) -> int:
        """Return the conjunction."""
        return self.choose(a, b, FALSE)

    def either(self, a: int, b: int) -> int:
        """Return the disjunction."""
        return self.choose(a, TRUE, b)

    def substituted(self, function: int, value: Callable[[int], int], known: dict[int, int]) -> int:
        """Return a function with other functions in place of its variables.

        Parameters
        ----------
        value : callable
            Returns the function in place of a variable.
        known : dict
            Results so far under the same `value`, kept by the caller.
        """
        if function <= TRUE:
            return function
        found = known.get(function)
        if found is None:
            variable, low, high = self._nodes[function]
            found = known[function] = self.choose(
                value(variable),
                self.substituted(high, value, known),
                self.substituted(low, value, known),
            )
        return found
