"""Properties as monitors: which of them sample paths can answer, and how."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from hybrid.errors import UnsupportedError
from hybrid.properties.tree import (
    STATE_OPERATORS,
    AutomatonPath,
    ConditionalPath,
    Cumulative,
    Elapsed,
    Filter,
    Instantaneous,
    Path,
    Probability,
    Reward,
    RewardBound,
    SteadyState,
)
from hybrid.simulation.earnings import Earnings
from hybrid.simulation.functions import MISSING, TRUE, condition
from hybrid.simulation.monitors import (
    AtMoment,
    Bools,
    FirstMonitor,
    Formula,
    Gathered,
    Moment,
    Monitor,
    NextMonitor,
    UntilMonitor,
)
from hybrid.simulation.rules import Rules
from hybrid.simulation.variables import Columns, Ints
from mtbdd.faults import BuildError
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import Fault
from mtbdd.language.syntax import Expression, LabelReference, Literal, ModelType, Unary
from mtbdd.language.walk import expression_variables, walk

_OFFERED = (
    "estimates are offered for P=? [ ... ] with X, F, G, U, W or R over state formulas, and for "
    "R=? [ F ... ], R=? [ C<=t ] and R=? [ I=t ], of DTMCs and CTMCs"
)


@dataclass(frozen=True)
class WatchedQuestion:
    """A property that sample paths can answer.

    Attributes
    ----------
    monitor : callable
        Returns a monitor for a walk of so many paths.
    is_reward : bool
    is_complement : bool
        Whether the probability asked for is that of the paths that the monitor sees fail.
    """

    monitor: Callable[[int], Monitor]
    is_reward: bool
    is_complement: bool = False


def refuse_choices(kind: ModelType) -> None:
    """Refuse to estimate anything of a decision process, before its properties are looked at."""
    if kind is ModelType.MDP:
        _refuse("got an MDP, in which a scheduler decides what is asked for")


def question(rules: Rules, formula: Expression, initial: Ints) -> WatchedQuestion:
    """Return what is to be watched to estimate a property.

    Parameters
    ----------
    rules : Rules
    formula : Expression
        Resolved.
    initial : ndarray of int64, shape (variables, k)
        The initial states, which the label "init" means.

    Raises
    ------
    UnsupportedError
        The property cannot be estimated from sample paths here.
    """
    if isinstance(formula, (Probability, Reward)) and formula.comparison is not None:
        _refuse("got a comparison; ask for the number with =?")
    if isinstance(formula, Probability):
        return _of_path(rules, formula.path, initial, False)
    if isinstance(formula, Reward):
        return _of_reward(rules, formula, initial)
    if isinstance(formula, SteadyState):
        _refuse("got S, which no finite path shows")
    _refuse("got a filter" if isinstance(formula, Filter) else "got something else")


def _of_path(rules: Rules, path: Expression, initial: Ints, complement: bool) -> WatchedQuestion:
    """Return the question of a path formula."""
    if isinstance(path, Unary) and path.operator == "!" and _has_paths(path.operand):
        return _of_path(rules, path.operand, initial, not complement)
    if isinstance(path, AutomatonPath):
        _refuse("got an automaton")
    if isinstance(path, ConditionalPath):
        _refuse("got a conditional probability; ask for those of 'path & condition' and of the condition")
    if not isinstance(path, Path):
        now = FirstMonitor(_states(rules, path, initial))
        return WatchedQuestion(lambda count: now, False, complement)
    right = _states(rules, path.right, initial)
    left = _everywhere if path.left is None else _states(rules, path.left, initial)
    if path.operator == "X":
        if path.bound is not None:
            _refuse("got X with a bound")
        after = NextMonitor(right)
        return WatchedQuestion(lambda count: after, False, complement)
    lower, upper, is_strict = _window(path, rules.type is ModelType.CTMC)
    safe, goal, turned = {
        "U": (left, right, False),
        "F": (_everywhere, right, False),
        "G": (_everywhere, _not(right), True),
        "W": (_both(left, _not(right)), _both(_not(left), _not(right)), True),
        "R": (_not(left), _not(right), True),
    }[path.operator]
    until = UntilMonitor(safe, goal, lower, upper, is_strict, rules.type is ModelType.CTMC)
    return WatchedQuestion(lambda count: until, False, complement != turned)


def _of_reward(rules: Rules, formula: Reward, initial: Ints) -> WatchedQuestion:
    """Return the question of a reward."""
    assert formula.index is not None
    if isinstance(formula.structure, Elapsed):
        _refuse("got T; ask with R for a structure that earns 1 in every state")
    earnings = Earnings(rules, rules.model.rewards[formula.index])
    target, is_timed = formula.target, rules.type is ModelType.CTMC
    if isinstance(target, Cumulative) and isinstance(target.time, Literal):
        horizon = float(target.time.value)
        return WatchedQuestion(lambda count: Gathered(earnings, count, horizon, None, is_timed), True)
    if isinstance(target, Instantaneous) and isinstance(target.time, Literal):
        moment = float(target.time.value)
        return WatchedQuestion(lambda count: AtMoment(earnings, count, moment), True)
    if isinstance(target, Path) and target.operator == "F" and target.bound is None:
        goal = _states(rules, target.right, initial)
        return WatchedQuestion(lambda count: Gathered(earnings, count, math.inf, goal, is_timed), True)
    _refuse("got another reward")


def _window(path: Path, is_timed: bool) -> tuple[float, float, bool]:
    """Return the ends of a bound, both included, and whether time 0 is left out."""
    bound = path.bound
    if isinstance(bound, RewardBound):
        _refuse("got a bound on a reward; ask for the answer with bounds, without simulation")
    if bound is None:
        return 0.0, math.inf, False
    lower = float(bound.lower.value) if isinstance(bound.lower, Literal) else 0.0
    upper = float(bound.upper.value) if isinstance(bound.upper, Literal) else math.inf
    if not is_timed:
        return lower + bound.lower_strict, upper - bound.upper_strict, False
    return lower, upper, bound.lower_strict and lower == 0


def _states(rules: Rules, formula: Expression, initial: Ints) -> Formula:
    """Return a state formula as a function of a moment."""
    nodes = list(walk(formula))
    if _has_paths(formula) or any(isinstance(n, STATE_OPERATORS) for n in nodes):
        _refuse("got an operator inside another one")
    labels = {node.name for node in nodes if isinstance(node, LabelReference)}
    v = rules.variables
    if not labels:
        compiled = condition(v, formula).compiled()
        return lambda moment: _known(rules, compiled(Columns(moment.states)), formula, moment.states)
    rows = v.rows(expression_variables(formula))
    first = np.ascontiguousarray(initial.T)

    def labelled(moment: Moment) -> Bools:
        columns = Columns(moment.states)
        environment = columns.environment(v, rows)
        environment['"deadlock"'] = moment.is_deadlock
        if "init" in labels:
            environment['"init"'] = _among(moment.states, first)
        missing = v.definedness(formula)
        has_value = enclose(missing, environment, (columns.count,)).values.astype(np.bool_)
        codes = enclose(formula, environment, (columns.count,)).values.astype(np.int8)
        return _known(rules, np.where(has_value, codes, MISSING), formula, moment.states)

    return labelled


def _known(rules: Rules, codes: np.ndarray, formula: Expression, states: Ints) -> Bools:
    """Return codes as truths; raise where there is none."""
    if (codes == MISSING).any():
        state = rules.variables.text(states[:, np.flatnonzero(codes == MISSING)[0]])
        message = f"expected a value in every state, got none in {state}; guard it with a condition"
        raise BuildError([Fault(formula.position, message)])
    found: Bools = codes == TRUE
    return found


def _among(states: Ints, some: Ints) -> Bools:
    """Return which columns of a matrix are rows of another one."""
    width = states.shape[0] * 8
    if not width:
        return np.ones(states.shape[1], dtype=np.bool_)
    kind = np.dtype((np.void, width))
    return np.isin(np.ascontiguousarray(states.T).view(kind).reshape(-1), some.view(kind).reshape(-1))


def _everywhere(moment: Moment) -> Bools:
    return np.ones(moment.states.shape[1], dtype=np.bool_)


def _not(formula: Formula) -> Formula:
    return lambda moment: ~formula(moment)


def _both(first: Formula, second: Formula) -> Formula:
    return lambda moment: first(moment) & second(moment)


def _has_paths(formula: Expression) -> bool:
    return any(isinstance(node, Path) for node in walk(formula))


def _refuse(reason: str) -> NoReturn:
    raise UnsupportedError(f"{_OFFERED}; {reason}")
