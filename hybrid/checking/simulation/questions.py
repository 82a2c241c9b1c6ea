"""Properties as monitors: which of them sample paths can answer, and how."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from hybrid.base.errors import UnsupportedError
from hybrid.checking.simulation.earnings import Earnings
from hybrid.checking.simulation.functions import MISSING, TRUE, condition
from hybrid.checking.simulation.monitors import (
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
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.variables import Columns, Ints
from hybrid.properties import registry
from hybrid.properties.registry import Capability, has_operator, without_negations
from hybrid.properties.tree import Path, Probability, Reward, TimeBound
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import Fault
from mtbdd.language.faults import BuildError
from mtbdd.language.syntax import Expression, LabelReference, Literal, ModelType
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
    return WATCHED.of(formula)(rules, formula, initial)


WATCHED = Capability[WatchedQuestion](lambda e, reason: UnsupportedError(f"{_OFFERED}; {reason}"), "got {}")
"""Functions of rules, an operator and the initial states."""
WATCHED.refuses("got {}, which no finite path shows", registry.STEADY, registry.AVERAGE)
WATCHED.refuses("got {}; ask for 'path & condition' and for the condition", registry.CONDITIONAL)
WATCHED.refuses("got {}; ask for the answer with bounds, without simulation", registry.REWARD_BOUNDED)
WATCHED.refuses("got {}; ask with R for a structure that earns 1 in every state", registry.ELAPSED_TIME)


@WATCHED.answers(registry.NOW)
def _now(rules: Rules, formula: Probability, initial: Ints) -> WatchedQuestion:
    monitor = FirstMonitor(_states(rules, formula.path, initial))
    return WatchedQuestion(lambda count: monitor, False)


@WATCHED.answers(registry.NEXT)
def _next(rules: Rules, formula: Probability, initial: Ints) -> WatchedQuestion:
    path, negations = without_negations(formula.path)
    monitor = NextMonitor(_states(rules, path.right, initial))
    return WatchedQuestion(lambda count: monitor, False, negations % 2 == 1)


@WATCHED.answers(registry.UNTIL, registry.WINDOW)
def _until(rules: Rules, formula: Probability, initial: Ints) -> WatchedQuestion:
    path, negations = without_negations(formula.path)
    right = _states(rules, path.right, initial)
    left = _everywhere if path.left is None else _states(rules, path.left, initial)
    safe, goal, turned = {
        "U": (left, right, False),
        "F": (_everywhere, right, False),
        "G": (_everywhere, _not(right), True),
        "W": (_both(left, _not(right)), _both(_not(left), _not(right)), True),
        "R": (_not(left), _not(right), True),
    }[path.operator]
    is_timed = rules.type is ModelType.CTMC
    monitor = UntilMonitor(safe, goal, *_window(path, is_timed), is_timed)
    return WatchedQuestion(lambda count: monitor, False, (negations % 2 == 1) != turned)


@WATCHED.answers(registry.REACHED)
def _reached(rules: Rules, formula: Any, initial: Ints) -> WatchedQuestion:
    goal = _states(rules, formula.target.right, initial)
    earnings, is_timed = _earnings(rules, formula), rules.type is ModelType.CTMC
    return WatchedQuestion(lambda count: Gathered(earnings, count, math.inf, goal, is_timed), True)


@WATCHED.answers(registry.CUMULATIVE)
def _cumulative(rules: Rules, formula: Any, initial: Ints) -> WatchedQuestion:
    earnings, horizon = _earnings(rules, formula), float(formula.target.time.value)
    is_timed = rules.type is ModelType.CTMC
    return WatchedQuestion(lambda count: Gathered(earnings, count, horizon, None, is_timed), True)


@WATCHED.answers(registry.INSTANTANEOUS)
def _instantaneous(rules: Rules, formula: Any, initial: Ints) -> WatchedQuestion:
    earnings, moment = _earnings(rules, formula), float(formula.target.time.value)
    return WatchedQuestion(lambda count: AtMoment(earnings, count, moment), True)


def _earnings(rules: Rules, formula: Reward) -> Earnings:
    return Earnings(rules, rules.model.rewards[formula.place])


def _window(path: Path, is_timed: bool) -> tuple[float, float, bool]:
    """Return the ends of a bound, both included, and whether time 0 is left out."""
    bound = path.bound
    if not isinstance(bound, TimeBound):
        return 0.0, math.inf, False
    lower = float(bound.lower.value) if isinstance(bound.lower, Literal) else 0.0
    upper = float(bound.upper.value) if isinstance(bound.upper, Literal) else math.inf
    if not is_timed:
        return lower + bound.lower_strict, upper - bound.upper_strict, False
    return lower, upper, bound.lower_strict and lower == 0


def _states(rules: Rules, formula: Expression, initial: Ints) -> Formula:
    """Return a state formula as a function of a moment."""
    nodes = list(walk(formula))
    if has_operator(formula):
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


def _refuse(reason: str) -> NoReturn:
    raise UnsupportedError(f"{_OFFERED}; {reason}")
