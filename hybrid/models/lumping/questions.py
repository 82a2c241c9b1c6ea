"""What a property asks of the states: sets, reward structures, and whether steps are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hybrid.base.errors import UnsupportedError
from hybrid.checking.formulas import is_truth_value
from hybrid.properties import registry
from hybrid.properties.registry import Capability, has_path
from hybrid.properties.tree import (
    STATE_OPERATORS,
    AutomatonPath,
    ConditionalPath,
    Path,
    Reward,
    RewardBound,
)
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.model_syntax import ELAPSED
from mtbdd.language.syntax import Expression, LabelReference, Name
from mtbdd.language.text import short_text
from mtbdd.language.walk import children, map_children, walk

_OPERATORS = (*STATE_OPERATORS, Path, AutomatonPath, ConditionalPath, RewardBound)

STEPS = Capability[bool](lambda e, reason: UnsupportedError(reason), "{} is not supported by the quotient")
"""Of what blocks answer: whether an operator may tell one step of a CTMC from several in a block."""
STEPS.answers(
    *(registry.NOW, registry.STEADY, registry.AVERAGE, registry.DISCOUNTED, registry.CUMULATIVE),
    *(registry.TOTAL, registry.INSTANTANEOUS, registry.ELAPSED_TIME, registry.REACHED),
    *(registry.FILTER, registry.MULTI),
)(lambda e: False)
STEPS.answers(
    *(registry.QUANTIFIED, registry.AUTOMATON, registry.CONDITIONAL, registry.REWARD_BOUNDED),
    *(registry.NEXT, registry.REPEATED, registry.LTL, registry.QUANTILE),
)(lambda e: True)
STEPS.answers(registry.UNTIL, registry.WINDOW)(lambda e: not isinstance(e.path, Path))


@STEPS.answers(registry.COSAFE)
def _of_cosafe(e: Reward) -> bool:
    """Whether a path operator stands in another one, or beside connectives, or counts steps itself."""
    path = e.target
    if not isinstance(path, Path) or path.operator == "X" or isinstance(path.bound, RewardBound):
        return has_path(path)
    return any(part is not None and has_path(part) for part in (path.left, path.right))


@dataclass(frozen=True, eq=False)
class Questions:
    """What a formula asks of the states of a model.

    Attributes
    ----------
    formula : Expression
    conditions : dict of int to Expression
        By identity, its largest parts without operators that speak of the states; all are truth values.
    sets : dict of int to Node
        Where each of them holds.
    labels : dict of str to Node
        Labels that keep their names: those that automata of files may ask for.
    rewards : frozenset of int
        Places of the reward structures.
    keep_loops : bool
        Whether it may matter that a CTMC moves from a state to one that is alike.
    """

    formula: Expression
    conditions: dict[int, Expression]
    sets: dict[int, Node]
    labels: dict[str, Node]
    rewards: frozenset[int]
    keep_loops: bool

    @classmethod
    def of(cls, formula: Expression, model: SymbolicModel) -> Questions:
        """Return what a resolved formula asks.

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
        rewards = {p.index for p in parts if isinstance(p, (Reward, RewardBound)) and p.index is not None}
        return cls(formula, conditions, sets, labels, frozenset(rewards - {ELAPSED}), _counts_steps(parts))

    def asked_of(self, label: Callable[[Node], str]) -> Expression:
        """Return the formula with a label in the place of each condition."""
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
    """Return the largest parts without operators that mention states."""
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
            found[id(part)] = isinstance(part, _OPERATORS) or any(found[id(e)] for e in children(part))
        elif id(part) not in found:
            stack.append((part, True))
            stack.extend((e, False) for e in children(part))
    return found


def _counts_steps(parts: list[Expression]) -> bool:
    """Whether a formula may tell one step of a CTMC from several between states that are alike."""
    operators = [part for part in parts if isinstance(part, STATE_OPERATORS)]
    return any([STEPS.of(part)(part) for part in operators])


def _text(expression: Expression) -> str:
    try:
        return short_text(expression)
    except TypeError:
        return "of the property"
