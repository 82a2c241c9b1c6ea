"""Models built for their questions: states that settle all of them keep no successors but themselves.

A path formula such as ``F a`` is decided in the states of `a`. What follows there changes no probability and
no reward up to `a`. Where every question has such states, and is asked of the initial states alone, the
reachable states behind them need not be found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hybrid.properties.tree import (
    Filter,
    Path,
    Probability,
    Quantified,
    Reward,
    RewardBound,
    RewardBounds,
    TimeBound,
)
from mtbdd.language.syntax import (
    Binary,
    Call,
    Command,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    ResolvedModel,
    Unary,
    Update,
)
from mtbdd.language.walk import Interner, children, substitute, walk

_OF_STATES = (Binary, Call, Conditional, LabelReference, Literal, Name, Unary)
"""Nodes of state formulas without operators."""

_INITIAL = "init"


def settled_states(source: ResolvedModel, formulas: Iterable[Expression]) -> Expression | None:
    """Return the states that settle every question that is asked of the initial states.

    `formulas`: resolved properties. Returns Expression or None: over the variables; None where some question
    is settled nowhere, or is about other states. Time: O(size of the formulas).
    """
    found = [_settled(formula) for formula in formulas]
    if not found or any(settled is None for settled in found):
        return None
    known = {f'"{label.name}"': label.expression for label in source.labels}
    numbers, every = Interner(), dict[int, Expression]()
    for settled in found:
        assert settled is not None
        expanded = substitute(settled, known)
        if numbers.has_labels(expanded):
            return None  # built-in labels distinguish states that the whole model has
        every.setdefault(numbers.number(expanded), expanded)
    together, *others = every.values()
    for other in others:
        together = Binary(other.position, "&", together, other)
    return together


def is_settled_in(source: ResolvedModel, settled: Expression | None) -> bool:
    """Return whether a model's commands end in these states, and in no others."""
    if source.settled is None or settled is None:
        return source.settled is settled
    numbers = Interner()
    return numbers.number(source.settled) == numbers.number(settled)


def ended_in(source: ResolvedModel, settled: Expression | None) -> ResolvedModel:
    """Return a model whose commands end in some states, which loop; the model itself for None.

    From the initial states formulas that are settled there have the values that they have in `source`: a path
    is followed up to the first such state. Time: O(commands).
    """
    if settled is None or not source.modules:
        return source
    goes_on = Unary(settled.position, "!", settled)
    modules = [
        replace(module, commands=tuple(_guarded(command, goes_on) for command in module.commands))
        for module in source.modules
    ]
    stays = Command(None, settled, (Update(None, (), settled.position),), settled.position)
    modules[0] = replace(modules[0], commands=(*modules[0].commands, stays))
    return replace(source, modules=tuple(modules), settled=settled)


def _guarded(command: Command, condition: Expression) -> Command:
    return replace(command, guard=Binary(command.position, "&", command.guard, condition))


def _settled(formula: Expression) -> Expression | None:
    """Return the states in which a property asked of initial states needs no successors; None if unknown."""
    if isinstance(formula, Filter):
        states = formula.states
        is_initial = isinstance(states, LabelReference) and states.name == _INITIAL
        return _settled(formula.operand) if is_initial else None
    if isinstance(formula, (Probability, Quantified)):
        return _settled_path(formula.path)
    if isinstance(formula, Reward):
        target = formula.target
        is_reached = isinstance(target, Path) and target.operator == "F"
        return _settled_path(target) if is_reached else None
    if not isinstance(formula, _OF_STATES):
        return None
    settled: Expression | None = None
    for part in children(formula):
        if _is_of_states(part):
            continue
        own = _settled(part)
        if own is None:
            return None
        settled = own if settled is None else Binary(own.position, "&", settled, own)
    return settled


def _settled_path(path: Expression) -> Expression | None:
    """Return the states in which a path formula is decided."""
    if not isinstance(path, Path) or not _is_from_now_on(path.bound):
        return None
    left, right = path.left, path.right
    if not _is_of_states(right) or (left is not None and not _is_of_states(left)):
        return None
    if path.operator == "F":
        return right
    if path.operator == "G":
        return Unary(right.position, "!", right)
    if left is None or path.operator not in "UWR":
        return None
    if path.operator == "R":
        return Binary(left.position, "|", left, Unary(right.position, "!", right))
    return Binary(left.position, "|", right, Unary(left.position, "!", left))


def _is_from_now_on(bound: TimeBound | RewardBound | RewardBounds | None) -> bool:
    """Return whether a bound, if any, has no lower end: a state that decides the formula does so at once."""
    if isinstance(bound, RewardBounds):
        return all(own.least is None for own in bound.bounds)
    return bound is None or isinstance(bound, RewardBound) or bound.lower is None


def _is_of_states(formula: Expression) -> bool:
    return all(isinstance(node, _OF_STATES) for node in walk(formula))
