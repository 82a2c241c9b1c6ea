"""What a property asks for: its operators, and how their values are put together."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.properties.tree import Probability, Reward, SteadyState
from mtbdd.language.syntax import Expression

NUMBER_FILTERS = ("min", "max", "range", "avg", "sum", "state")
TRUTH_FILTERS = ("forall", "exists", "count", "state")


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator P, S or R.

    Attributes
    ----------
    node : Probability, SteadyState or Reward
    kind : {"until", "next", "repeated", "reward", "total", "average", "steady"}
    maximise : bool or None
        The optimum that the vectors enclose, after all complements; None for a chain.
    complement : bool
        Whether the operator's value is one less the vectors'.
    left, right : Expression or None
        Operands of the path: those of an until (`left` None: all states), the set of X, F and S.
    release : str
        For a path operator other than U and F, its letter: G, W or R; "!" if `right` is to be negated.
    structure : int
        Place of the reward structure.
    """

    node: Probability | SteadyState | Reward
    kind: str
    maximise: bool | None
    complement: bool = False
    left: Expression | None = None
    right: Expression | None = None
    release: str = ""
    structure: int = 0


@dataclass(frozen=True, eq=False)
class Question:
    """A property.

    Attributes
    ----------
    formula : Expression
    operators : tuple of Operator
        Inner ones first; each stands once.
    value : Operator or None
        The operator whose value is asked for; None if the property is a truth value.
    filter : str or None
        How the values of several states are put together; None: the property is about the initial states.
    states : Expression or None
        Which states a filter is about; None: all reachable ones.
    """

    formula: Expression
    operators: tuple[Operator, ...]
    value: Operator | None
    filter: str | None = None
    states: Expression | None = None
