"""Verification of a certificate: the vectors of every operator, then the result for the property."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.archive import PartVectors
from hybrid.checking.certificates.conditions import Average, Condition, Next, Sweep, Total, Until
from hybrid.checking.certificates.states import Places, States, TextSemantics
from hybrid.checking.certificates.transitions import Search, Transitions
from hybrid.properties.tree import Probability, Reward, SteadyState
from mtbdd.language.syntax import Expression, LabelReference, ModelType, RewardStructure

# Structure of a property: its operators, and the expression over their values.

NUMBER_FILTERS = ("min", "max", "range", "avg", "sum", "state")
TRUTH_FILTERS = ("forall", "exists", "count", "state")


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator P, S or R.

    `kind` is "until", "next", "repeated", "reward", "total", "average" or "steady". `maximise` is the optimum
    that the vectors enclose, after all complements, None for a chain; with `complement` the operator's value
    is one less the vectors'. `left` and `right` are operands of the path: those of an until (`left` None: all
    states), the set of X, F and S. `release` is the letter G, W or R of a path operator other than U and F,
    and "!" if `right` is to be negated. `structure` is the place of the reward structure.
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

    `operators` has inner ones first, each once; `value` is the one whose value is requested, None if the
    property is a truth value. `filter` says how the values of several states are put together, None that the
    property is about the initial states; `states` which states a filter is about, None: all reachable ones.
    """

    formula: Expression
    operators: tuple[Operator, ...]
    value: Operator | None
    filter: str | None = None
    states: Expression | None = None


# Rewards in exact numbers, as the sweep wants them: scaled like the rows.


def state_scale(transitions: Transitions) -> Places:
    """Return what a choice's equation is multiplied with: its total weight; 1 in a CTMC."""
    if transitions.kind is ModelType.CTMC:
        return transitions.states.table.full(transitions.state.size, 1)
    return transitions.total


def earnings(transitions: Transitions, structure: RewardStructure) -> Places:
    """Return what every choice earns, times its scale, as places in the table, int32, shape (choices,).

    In a CTMC the reward a unit of time; in a DTMC and an MDP the expected reward of a step, times the sum of
    the choice's weights. A loop given to a deadlock carries no transition reward.
    """
    states, table = transitions.states, transitions.states.table
    scale = state_scale(transitions)
    result = table.full(scale.size, 0)
    for item in structure.items:
        rows = np.flatnonzero(states.truth(item.guard))
        if rows.size == 0:
            continue
        value = table.full(states.size, 0)
        value[rows] = states.places(item.value, rows)
        if not item.is_transition:
            earned = table.multiply(scale, value[transitions.state])
        elif not transitions.is_mdp:
            if item.action not in transitions.exits:
                continue
            earned = table.multiply(transitions.exits[item.action], value)
        else:
            action = -1 if item.action is None else transitions.actions.index(item.action)
            carries = transitions.action == action
            if action < 0:
                carries &= ~transitions.deadlocks[transitions.state]
            one = np.where(carries, np.int32(table.one), np.int32(table.zero))
            earned = table.multiply(table.multiply(scale, one), value[transitions.state])
        result = table.add(result, earned)
    return result


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """A certified result about the initial states, or about those of a filter.

    The `truth` of a property that holds or not, else bounds on the value, over all initial states where there
    are several.
    """

    truth: bool | None
    lower: float | None
    upper: float | None

    def text(self) -> str:
        """Return it in words."""
        if self.truth is not None:
            return "true" if self.truth else "false"
        return f"between {_shown(self.lower)} and {_shown(self.upper)}"

    def record(self) -> dict[str, bool | float | str | None]:
        """Return it as plain JSON values."""
        bounds = ((n, _plain(b)) for n, b in (("lower", self.lower), ("upper", self.upper)))
        return {"truth": self.truth, **dict(bounds)}


def _plain(value: float | None) -> float | str | None:
    """Return a number as JSON has it; JSON has no infinities."""
    if value is None or math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"


def _shown(value: float | None) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else repr(plain)


class Judge:
    """Checks the operators of one question, one after the other; `structures` are the model's, as written."""

    def __init__(
        self,
        transitions: Transitions,
        meaning: TextSemantics,
        structures: tuple[RewardStructure, ...],
        question: Question,
    ) -> None:
        self._t, self._meaning, self._structures = transitions, meaning, structures
        self._question, self._top = question, question.formula
        transitions.states.meaning = meaning
        self.sweep, self._search = Sweep(transitions), Search(transitions)
        self._truths: dict[int, Mask] = {}
        initial = np.zeros(transitions.states.size, np.bool_)
        initial[transitions.initial] = True
        self._built_in = {"init": initial, "deadlock": transitions.deadlocks}

    @property
    def states(self) -> States:
        """The listed states."""
        return self._t.states

    def truth(self, formula: Expression) -> Mask:
        """Return where a state formula holds, whose operators have been settled."""
        return self.states.truth(formula, None, self._known)

    def _known(self, e: Expression) -> Mask | None:
        if isinstance(e, LabelReference) and e.name not in self._meaning.labels:
            return self._built_in.get(e.name)
        return self._truths.get(id(e))

    # ------------------------------------------------------------------ operators

    def condition(self, operator: Operator, part: PartVectors | None = None) -> Condition:
        """Return what an operator's vectors have to satisfy; its inner operators have been settled.

        Lemma: again-and-again (docs/certificates.md).
        """
        everywhere = (self.sweep, self._search, operator.maximise)
        size = self.states.size
        right = np.zeros(size, np.bool_) if operator.right is None else self.truth(operator.right)
        if operator.kind == "next":
            return Next(*everywhere, right)
        if operator.kind == "until":
            left = np.ones(size, np.bool_) if operator.left is None else self.truth(operator.left)
            safe, target = {
                "": (left, right),
                "G": (left, ~right),
                "W": (left & ~right, ~left & ~right),
                "R": (~left, ~right),
            }[operator.release]
            return Until(*everywhere, safe, target)
        if operator.kind == "repeated":
            met = ~right if operator.release else right
            # Again and again with certainty: no state can be reached from which the set cannot.
            # lemma: again-and-again
            return Until(*everywhere, np.ones(size, np.bool_), ~self._search.some(~self._search.some(met)))
        earned = self._earned(operator, right)
        if operator.kind == "reward":
            return Total(*everywhere, right, earned)
        if operator.kind == "total":
            earning = self._t.states.table.signs()[earned] != 0
            return Total(*everywhere, ~self._search.some(earning), earned)
        bias = np.zeros(size) if part is None or part.bias is None else part.bias
        return Average(*everywhere, earned, state_scale(self._t), bias)

    def _earned(self, operator: Operator, right: Mask) -> Places:
        """Return what choices earn, scaled."""
        if operator.kind != "steady":
            return earnings(self._t, self._structures[operator.structure])
        table = self.states.table
        inside = np.where(right, np.int32(table.one), np.int32(table.zero))
        return table.multiply(state_scale(self._t), inside[self._t.state])

    def settle(self, operator: Operator, part: PartVectors) -> None:
        """Check an operator's vectors and, if it is compared with a bound, note where it holds.

        Raises CertificateError where an inequality does not hold, or the bounds do not decide the comparison
        in some state.
        """
        condition = self.condition(operator, part)
        if condition.has_bias != (part.bias is not None):
            raise CertificateError(
                f"{condition.name}: expected a vector h for long-run averages, and for them alone"
            )
        if part.bias is not None and not bool(np.isfinite(part.bias).all()):
            raise CertificateError(f"{condition.name}: expected finite numbers in the vector h")
        condition.check(part.lower, part.upper)
        if operator.node.comparison is not None:
            self._truths[id(operator.node)] = self._compared(operator, part)

    def _compared(self, operator: Operator, part: PartVectors) -> Mask:
        """Return where an operator's comparison holds; it has to be decided where that matters.

        Lemma: complement (docs/certificates.md).
        """
        node = operator.node
        if node.threshold is None or node.comparison is None:
            raise CertificateError("a comparison without a bound")
        bound, relation = Fraction(self._meaning.value(node.threshold)), node.comparison
        if operator.complement:
            bound = 1 - bound  # lemma: complement
            relation = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[relation]
        strict = relation in (">", "<=")  # x > b, or its negation x <= b, parts the doubles behind b
        edge = _first_double(bound, strict)
        at_least, below = part.lower >= edge, part.upper < edge  # lemma: comparison
        undecided = ~at_least & ~below
        if node is self._top:
            undecided &= self._scope()
        open_ = np.flatnonzero(undecided)
        if open_.size:
            place = int(open_[0])
            raise CertificateError(
                f"{node.position}: the certificate does not decide the comparison in state "
                f"{self.states.describe(place)}, where the value lies between {float(part.lower[place])!r} "
                f"and {float(part.upper[place])!r}"
            )
        return at_least if relation in (">", ">=") else below

    # ------------------------------------------------------------------ the property

    def _scope(self) -> Mask:
        """Return the states that the property is about; operators in a filter's condition are settled."""
        if self._question.filter is None:
            return self._built_in["init"]
        # The list may hold states that are not reachable, which a filter leaves out.
        found = self._search.forward(self._t.initial)  # lemma: listed-states
        if self._question.states is not None:
            found &= self.truth(self._question.states)
        if not found.any():
            raise CertificateError("no reachable state satisfies the filter's condition")
        if self._question.filter == "state" and int(found.sum()) != 1:
            raise CertificateError(
                "filter(state, ...): expected a condition that one reachable state satisfies"
            )
        return found

    def finding(self, parts: list[PartVectors]) -> Finding:
        """Return what settled operators show about the initial states, or those of a filter."""
        question, scope = self._question, self._scope()
        if question.value is None:
            holds = self.truth(question.formula)[scope]
            if question.filter == "count":
                return Finding(None, float(holds.sum()), float(holds.sum()))
            return Finding(bool(holds.any() if question.filter == "exists" else holds.all()), None, None)
        part = parts[question.operators.index(question.value)]
        lower, upper = part.lower[scope], part.upper[scope]
        if question.value.complement:
            pair = [_one_less(v, -1) for v in upper.tolist()], [_one_less(v, 1) for v in lower.tolist()]
            lower, upper = np.array(pair[0]), np.array(pair[1])  # lemma: complement
        return Finding(None, *_gathered(question.filter, lower, upper))


def _gathered(
    name: str | None, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the bounds of what a filter makes of values."""
    if name in ("min", "max"):
        choose = np.min if name == "min" else np.max
        return float(choose(lower)), float(choose(upper))
    if name in ("sum", "avg"):
        count = 1 if name == "sum" else lower.size
        return _total(lower, count, -1), _total(upper, count, 1)  # lemma: arithmetic
    return float(lower.min()), float(upper.max())


def _total(values: NDArray[np.float64], count: int, direction: int) -> float:
    """Return a sum divided by a count, rounded down (-1) or up (1)."""
    if not bool(np.isfinite(values).all()):
        return math.inf
    return _rounded(sum(map(Fraction, values.tolist()), Fraction(0)) / count, direction)


def _rounded(exact: Fraction, direction: int) -> float:
    """Return the next double below (-1) or above (1) a number, or the number."""
    try:
        found = float(exact)
    except OverflowError:
        found = math.inf if exact > 0 else -math.inf
        return math.nextafter(found, 0.0) if (exact > 0) != (direction > 0) else found  # lemma: arithmetic
    if (Fraction(found) - exact) * direction < 0:  # lemma: arithmetic
        found = math.nextafter(found, math.inf * direction)  # lemma: arithmetic
    return found


def _first_double(bound: Fraction, strict: bool) -> float:
    """Return the least double that is at least a number, or greater than it.

    Lemma: comparison (docs/bounds.md).
    """
    value = float(bound)
    enough = Fraction(value) > bound if strict else Fraction(value) >= bound  # lemma: comparison
    return value if enough else math.nextafter(value, math.inf)  # lemma: comparison


def _one_less(value: float, direction: int) -> float:
    """Return one less a probability, rounded down (-1) or up (1)."""
    return min(max(_rounded(1 - Fraction(value), direction), 0.0), 1.0)  # lemma: complement
