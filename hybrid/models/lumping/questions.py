"""Data that a property needs of the states: sets, reward structures, and whether it counts steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import OptionError, UnsupportedError
from hybrid.checking.formulas import is_truth_value
from hybrid.properties import registry
from hybrid.properties.registry import Capability, has_path
from hybrid.properties.tree import (
    OPERATORS,
    STATE_OPERATORS,
    AutomatonPath,
    Divisor,
    Filter,
    Path,
    Reward,
    RewardBound,
    RewardBounds,
)
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.expression_parser import short_text
from mtbdd.language.model_syntax import ELAPSED
from mtbdd.language.syntax import Expression, LabelReference, Name
from mtbdd.language.walk import children, map_children, walk
from mtbdd.offset.states import index_states

STEPS = Capability[bool](lambda e, reason: UnsupportedError(reason), "{} is not supported by the quotient")
"""Operators that quotients answer: whether one may distinguish one step of a CTMC from several in a block."""
STEPS.answers(
    *(registry.NOW, registry.STEADY, registry.AVERAGE, registry.RATIO, registry.DISCOUNTED),
    *(registry.CUMULATIVE, registry.TOTAL, registry.INSTANTANEOUS, registry.ELAPSED_TIME, registry.REACHED),
    *(registry.FILTER, registry.MULTI),
)(lambda e: False)
STEPS.answers(
    *(registry.QUANTIFIED, registry.AUTOMATON, registry.CONDITIONAL, registry.REWARD_BOUNDED),
    registry.REWARDS_BOUNDED,
    *(registry.NEXT, registry.REPEATED, registry.LTL, registry.QUANTILE),
)(lambda e: True)
STEPS.answers(registry.UNTIL, registry.WINDOW)(lambda e: not isinstance(e.path, Path))


@STEPS.answers(registry.COSAFE)
def _of_cosafe(e: Reward) -> bool:
    """Return whether a path operator stands in another one, or beside connectives, or counts steps itself."""
    path = e.target
    if (
        not isinstance(path, Path)
        or path.operator == "X"
        or isinstance(path.bound, (RewardBound, RewardBounds))
    ):
        return has_path(path)
    return any(part is not None and has_path(part) for part in (path.left, path.right))


@dataclass(frozen=True, eq=False)
class Questions:
    """Conditions, labels and rewards of a formula, with the sets of states where they hold."""

    formula: Expression
    # by identity, its largest parts without operators that speak of the states; all are truth values
    conditions: dict[int, Expression]
    sets: dict[int, Node]  # where each of them holds
    labels: dict[str, Node]  # labels that keep their names: those that automata of files may ask for
    rewards: frozenset[int]  # places of the reward structures
    keep_loops: bool  # whether it may matter that a CTMC moves from a state to one that is alike

    @classmethod
    def of(cls, formula: Expression, model: SymbolicModel) -> Questions:
        """Return the questions of a resolved formula.

        Raises
        ------
        UnsupportedError
            It has a number that depends on variables.
        EvaluationError
            A condition has no value in some reachable state.
        """
        conditions = {id(e): e for e in _conditions(formula)}
        for condition in conditions.values():
            if not is_truth_value(condition, model):
                raise UnsupportedError(
                    f"the number {_text(condition)} depends on the state, and blocks are told apart by "
                    "conditions and rewards alone: make a reward structure of it, or check without the "
                    "quotient"
                )
        sets = {place: model.states(condition) for place, condition in conditions.items()}
        parts = list(walk(formula))
        labels: dict[str, Node] = {}
        if any(isinstance(part, AutomatonPath) for part in parts):
            labels = {label.name: model.states(label.expression) for label in model.source.labels}
            labels |= {"init": model.initial, "deadlock": model.deadlocks}
        rewards = {
            p.index for p in parts if isinstance(p, (Reward, RewardBound, Divisor)) and p.index is not None
        }
        return cls(formula, conditions, sets, labels, frozenset(rewards - {ELAPSED}), _counts_steps(parts))

    def with_labels(self, label: Callable[[Node], str]) -> Expression:
        """Return the formula with a label for each condition."""
        return self._replaced(self.formula, label, {})

    def _replaced(
        self, e: Expression, label: Callable[[Node], str], known: dict[int, Expression]
    ) -> Expression:
        if id(e) in self.conditions:
            return LabelReference(e.position, label(self.sets[id(e)]))
        if id(e) not in known:
            known[id(e)] = map_children(e, lambda part: self._replaced(part, label, known))
        return known[id(e)]


def _conditions(formula: Expression) -> list[Expression]:
    """Return the largest subformulas without operators that mention states."""
    holds = _holding_operators(formula)
    found, stack, seen = [], [formula], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if holds[id(part)]:
            stack.extend(children(part))
        elif any(isinstance(own, (Name, LabelReference)) for own in walk(part)):
            found.append(part)
    return found


def _holding_operators(formula: Expression) -> dict[int, bool]:
    """Return of every part, by identity, whether it is or holds an operator of properties."""
    found: dict[int, bool] = {}
    stack = [(formula, False)]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            found[id(part)] = isinstance(part, OPERATORS) or any(found[id(e)] for e in children(part))
        elif id(part) not in found:
            stack.append((part, True))
            stack.extend((e, False) for e in children(part))
    return found


def _counts_steps(parts: list[Expression]) -> bool:
    """Return whether a formula may distinguish one step of a CTMC from several between bisimilar states."""
    operators = [part for part in parts if isinstance(part, STATE_OPERATORS)]
    return any([STEPS.of(part)(part) for part in operators])


def _text(expression: Expression) -> str:
    try:
        return short_text(expression)
    except TypeError:
        return "of the property"


# Refusals of questions about the states inside of blocks.

_REFUSED = {
    "count": "how many states there are",
    "sum": "how many states have a value",
    "avg": "how many states have a value",
    "first": "the order of the states",
    "argmin": "which states they are",
    "argmax": "which states they are",
    "print": "which states they are",
    "printall": "which states they are",
}
"""Filters whose result on blocks differs, with the reason."""


def refuse_with_quotient(
    options: CheckOptions,
    *,
    scheduler: bool = False,
    witness: bool = False,
    certificate: bool = False,
    parts: bool = False,
) -> None:
    """Refuse options about the states of the model, which a quotient does not have."""
    refused = {
        option("scheduler"): (scheduler, "a scheduler chooses in states"),
        option("witness"): (witness, "a witness is a path of states"),
        option("certificate"): (certificate, "a certificate speaks of all states"),
        option("exact"): (options.exact, "the numbers of blocks are known as doubles"),
        "states shared by processes": (parts, "the list of transitions is that of one process"),
    }
    for name, (is_asked, why) in refused.items():
        if is_asked:
            raise OptionError(f"{option('bisimulation')}: {why}: leave it or {name} out")


def refuse_filters(model: SymbolicModel, questions: Questions) -> None:
    """Refuse filters whose result is not that of the blocks."""
    for part in walk(questions.formula):
        if not isinstance(part, Filter):
            continue
        name = f"filter({part.operator}, ...)"
        if part.operator in _REFUSED:
            raise UnsupportedError(
                f"{name} depends on {_REFUSED[part.operator]}, which blocks do not tell: ask for min, max, "
                f"range, forall or exists, or leave {option('bisimulation')} out"
            )
        if part.operator == "state" and not _is_single_state(model, part, questions):
            raise UnsupportedError(
                f"{name} wants a condition that one state satisfies, and blocks do not tell how many do: "
                f"ask for min or max, or leave {option('bisimulation')} out"
            )


def _is_single_state(model: SymbolicModel, part: Filter, questions: Questions) -> bool:
    """Return whether a filter's condition is known to hold in one state."""
    states = None if part.states is None else questions.sets.get(id(part.states))
    return states is not None and index_states(model.manager, states).size == 1
