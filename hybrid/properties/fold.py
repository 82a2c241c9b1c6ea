"""Folding of properties: bounds and times become numbers, reward structures get their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hybrid.properties.tree import (
    Cumulative,
    Elapsed,
    Instantaneous,
    Probability,
    Reward,
    RewardBound,
    SteadyState,
    TimeBound,
)
from mtbdd.language.errors import EvaluationError, FaultCollector, listed
from mtbdd.language.fold import Folder
from mtbdd.language.model_syntax import ELAPSED
from mtbdd.language.rounded import doubles_around
from mtbdd.language.scalars import Scalar
from mtbdd.language.syntax import Expression, Literal, ModelType
from mtbdd.language.walk import expression_variables

LEAST_DISCOUNT = 2.0**-50
"""The least discount: times it no entry of a matrix, which is a normal double, underflows to zero."""


class PropertyFolder(Folder):
    """Folds well-typed properties and notes bounds that make no sense.

    Parameters
    ----------
    values, definitions, labels : mapping
        As for `mtbdd.language.fold.Folder`; named properties count as labels.
    structures : sequence of (str or None)
        The names of the model's reward structures.
    kind : ModelType
    faults : FaultCollector
        Takes the faults.

    Attributes
    ----------
    warnings : dict of str to None
        How questions were understood, each once: on a chain `Pmax` is `P`.
    """

    def __init__(
        self,
        values: Mapping[str, Scalar],
        definitions: Mapping[str, Expression],
        labels: Mapping[str, Expression],
        structures: Sequence[str | None],
        kind: ModelType,
        faults: FaultCollector,
    ) -> None:
        super().__init__(values, definitions, labels)
        self._structures, self._kind = structures, kind
        self.warnings: dict[str, None] = {}
        self._faults = faults

    def fold(self, formula: Expression) -> Expression | None:
        """Return the folded formula, None after a fault."""
        before = len(self._faults)
        try:
            folded = self(formula)
        except EvaluationError as error:
            self._faults.extend(error.faults)
            return None
        return folded if len(self._faults) == before else None

    def node(self, e: Expression) -> Expression:
        """Return a folded node that is no binary operator."""
        node = super().node(e)
        if isinstance(node, (Probability, Reward, SteadyState)):
            node = self._of_a_chain(node)
        if isinstance(node, (Probability, SteadyState)):
            self._number(node.threshold, e, "a bound on a probability", 1.0)
        elif isinstance(node, Reward):
            what = "a bound on an expected time" if node.letter == "T" else "a bound on a reward"
            self._number(node.threshold, e, what, None)
            return self._discounted(replace(node, index=self._index(node)))
        elif isinstance(node, RewardBound):
            most = self._number(node.most, e, "a bound on a reward", None)
            if most == 0 and node.is_strict:
                self._faults.add(node.position, "a bound on a reward must leave something, got <0; use <=0")
            return replace(node, index=self._index(node))
        elif isinstance(node, TimeBound):
            self._interval(node, e)
        elif isinstance(node, (Cumulative, Instantaneous)):
            self._number(node.time, e, "a time", None)
        return node

    def _of_a_chain(self, node: Probability | Reward | SteadyState) -> Probability | Reward | SteadyState:
        """Return an operator without its optimum if the model has no choices."""
        if node.optimum is None or self._kind is ModelType.MDP:
            return node
        letter = node.letter
        self.warnings[f"{letter}{node.optimum} is {letter} here: a {self._kind.value} has no choices"] = None
        return replace(node, optimum=None)

    def _number(
        self, e: Expression | None, within: Expression, what: str, most: float | None
    ) -> float | None:
        """Return the value of an expression that must be a constant from 0, None after a fault.

        Faults are reported for the operator `within`: a formula may be expanded in the expression itself.
        """
        if e is None:
            return None
        place = within.position
        if not isinstance(e, Literal):
            names = listed([f"'{n}'" for n in sorted(expression_variables(e))])
            on = f"which depends on the variable {names}" if names else "which is none"
            self._faults.add(place, f"{what} must be a constant, got an expression {on}")
            return None
        value = e.value
        if value < 0 or (most is not None and value > most):
            expected = "at least 0" if most is None else "between 0 and 1"
            self._faults.add(place, f"{what} must be {expected}, got {value}")
            return None
        return value

    def _discounted(self, node: Reward) -> Reward:
        """Return a reward with its discount, wherever it was written, in its place."""
        if isinstance(node.target, Cumulative) and node.target.discount is not None:
            target = replace(node.target, discount=None)
            node = replace(node, discount=node.target.discount, target=target)
        value = self._number(node.discount, node, "a discount", 1.0)
        if value is not None and not (value > 0 and doubles_around(value)[1] < 1):
            self._faults.add(
                node.position, f"a discount must be between 0 and 1, both excluded, got {value}; leave 1 out"
            )
        elif value is not None and doubles_around(value)[0] < LEAST_DISCOUNT:
            self._faults.add(
                node.position,
                f"a discount must be at least {LEAST_DISCOUNT!r}, got {value}: no double would show more "
                "than the first step; write C<=1",
            )
        return node

    def _interval(self, bound: TimeBound, within: Expression) -> None:
        what = "a bound on time"
        lower = self._number(bound.lower, within, what, None)
        upper = lower if bound.upper is bound.lower else self._number(bound.upper, within, what, None)
        if upper is not None and bound.lower is None and bound.upper_strict and upper == 0:
            self._faults.add(bound.position, "a bound on time must leave some time, got <0; use <=0")
        if lower is not None and upper is not None and lower > upper:
            self._faults.add(
                bound.position, f"a time interval must not be empty, got [{lower},{upper}]; swap its ends"
            )

    def _index(self, node: Reward | RewardBound) -> int:
        """Return the place of the reward structure among the model's, from 0."""
        structure = node.structure
        if structure is None:
            return 0
        if isinstance(structure, Elapsed):
            return ELAPSED
        if isinstance(structure, str):
            return self._structures.index(structure)
        if not isinstance(structure, Literal):
            self._faults.add(structure.position, "the number of a reward structure must be a constant")
            return 0
        number = int(structure.value)
        if not 1 <= number <= len(self._structures):
            count = len(self._structures)
            self._faults.add(
                structure.position,
                f"the number of a reward structure must be from 1 to {count}, got {number}",
            )
        return number - 1
