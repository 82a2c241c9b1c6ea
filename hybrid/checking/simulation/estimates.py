"""Estimates from sample paths, with confidence intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import OptionError, UnknownError, UnsupportedError
from hybrid.base.units import json_number
from hybrid.checking.simulation.functions import MISSING, TRUE, Columns, Doubles, Ints, condition
from hybrid.checking.simulation.paths import Constants, Model, Sampler, resolved_model
from hybrid.checking.simulation.rules import RewardStructureRules, Rules
from hybrid.checking.simulation.walk import (
    FAILS,
    HOLDS,
    OPEN,
    AccumulatedReward,
    Bools,
    Formula,
    InstantaneousReward,
    Moment,
    Monitor,
    StepMonitor,
    UntilMonitor,
)
from hybrid.properties import Property, parse_properties, registry, resolve_properties
from hybrid.properties.registry import Capability, has_operator, without_negations
from hybrid.properties.tree import Path, Probability, Reward, TimeBound
from mtbdd.base.budget import check_budget
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.syntax import Expression, LabelReference, Literal, ModelType, ResolvedModel
from mtbdd.language.walk import expression_variables, walk

# Properties as monitors: which of them sample paths can answer, and how.

_OFFERED = (
    "estimates are offered for P=? [ ... ] with X, F, G, U, W or R over state formulas, and for "
    "R=? [ F ... ], R=? [ C<=t ] and R=? [ I=t ], of DTMCs and CTMCs"
)


@dataclass(frozen=True)
class MonitoredProperty:
    """A property that sample paths can answer.

    `monitor` returns a monitor for a walk of so many paths; `is_complement` says whether the probability
    requested is that of the paths that the monitor sees fail.
    """

    monitor: Callable[[int], Monitor]
    is_reward: bool
    is_complement: bool = False


def refuse_choices(kind: ModelType) -> None:
    """Refuse estimates for decision processes, before any property is read."""
    if kind is ModelType.MDP:
        _refuse("got an MDP, in which a scheduler decides what is asked for")


def monitored_property(rules: Rules, formula: Expression, initial: Ints) -> MonitoredProperty:
    """Return the monitored form of a resolved property, for its estimate.

    `initial`, shape (variables, k), has the initial states, which the label "init" means. Raises
    UnsupportedError where the property cannot be estimated from sample paths here.
    """
    if isinstance(formula, (Probability, Reward)) and formula.comparison is not None:
        _refuse("got a comparison; ask for the number with =?")
    return WATCHED.of(formula)(rules, formula, initial)


WATCHED = Capability[MonitoredProperty](lambda e, reason: UnsupportedError(f"{_OFFERED}; {reason}"), "got {}")
"""Functions of rules, an operator and the initial states."""
WATCHED.refuses("got {}, which no finite path shows", registry.STEADY, registry.AVERAGE, registry.RATIO)
WATCHED.refuses("got {}; ask for 'path & condition' and for the condition", registry.CONDITIONAL)
WATCHED.refuses("got {}; ask for the answer with bounds, without simulation", registry.REWARD_BOUNDED)
WATCHED.refuses("got {}; ask for the answer with bounds, without simulation", registry.REWARDS_BOUNDED)
WATCHED.refuses("got {}; ask with R for a structure that earns 1 in every state", registry.ELAPSED_TIME)


@WATCHED.answers(registry.NOW)
def _now(rules: Rules, formula: Probability, initial: Ints) -> MonitoredProperty:
    monitor = StepMonitor(_states(rules, formula.path, initial), 0)
    return MonitoredProperty(lambda count: monitor, False)


@WATCHED.answers(registry.NEXT)
def _next(rules: Rules, formula: Probability, initial: Ints) -> MonitoredProperty:
    path, negations = without_negations(formula.path)
    monitor = StepMonitor(_states(rules, path.right, initial), 1)
    return MonitoredProperty(lambda count: monitor, False, negations % 2 == 1)


@WATCHED.answers(registry.UNTIL, registry.WINDOW)
def _until(rules: Rules, formula: Probability, initial: Ints) -> MonitoredProperty:
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
    return MonitoredProperty(lambda count: monitor, False, (negations % 2 == 1) != turned)


@WATCHED.answers(registry.REACHED)
def _reached(rules: Rules, formula: Any, initial: Ints) -> MonitoredProperty:
    goal = _states(rules, formula.target.right, initial)
    earnings, is_timed = _earnings(rules, formula), rules.type is ModelType.CTMC
    return MonitoredProperty(lambda count: AccumulatedReward(earnings, count, math.inf, goal, is_timed), True)


@WATCHED.answers(registry.CUMULATIVE)
def _cumulative(rules: Rules, formula: Any, initial: Ints) -> MonitoredProperty:
    earnings, horizon = _earnings(rules, formula), float(formula.target.time.value)
    is_timed = rules.type is ModelType.CTMC
    return MonitoredProperty(lambda count: AccumulatedReward(earnings, count, horizon, None, is_timed), True)


@WATCHED.answers(registry.INSTANTANEOUS)
def _instantaneous(rules: Rules, formula: Any, initial: Ints) -> MonitoredProperty:
    earnings, moment = _earnings(rules, formula), float(formula.target.time.value)
    return MonitoredProperty(lambda count: InstantaneousReward(earnings, count, moment), True)


def _earnings(rules: Rules, formula: Reward) -> RewardStructureRules:
    return RewardStructureRules(rules, rules.model.rewards[formula.place])


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


# Confidence intervals of estimates.


def clopper_pearson(successes: int, unknown: int, paths: int, confidence: float) -> tuple[float, float]:
    """Return an interval in [0, 1] that covers a probability with at least a given confidence.

    That holds however few paths there are. So many of all `paths`, at least 1, show the event; those
    `unknown` count as failures for the lower end, and as successes for the upper one. The confidence lies in
    (0, 1).
    """
    from scipy.stats import beta

    tail, most = (1.0 - confidence) / 2, successes + unknown
    lower = float(beta.ppf(tail, successes, paths - successes + 1)) if successes else 0.0
    upper = float(beta.ppf(1.0 - tail, most + 1, paths - most)) if most < paths else 1.0
    return lower, upper


def student(values: Doubles, confidence: float) -> tuple[float, float]:
    """Return an interval around the mean of at least two values, shape (n,).

    It covers the expectation with a confidence in (0, 1) if means are distributed normally.
    """
    from scipy.stats import t

    mean = float(values.mean())
    deviation = float(values.std(ddof=1))
    width = float(t.ppf(0.5 + confidence / 2, values.size - 1)) * deviation / math.sqrt(values.size)
    return mean - width, mean + width


_LOOK = 16
"""Steps after which paths that have just stayed in their state are examined, whether they ever leave it."""


@dataclass(frozen=True)
class Estimate:
    """An estimate of a property's value from sample paths. No bound here is certain.

    Attributes
    ----------
    property : str
        Its text.
    value : float
        The share of the paths that are decided, or the mean of what they earn; infinite where a path was seen
        that can never reach the target. NaN if no path was decided.
    lower, upper : float
        The confidence interval.
    confidence : float
        How likely it was, before the paths were drawn, that the interval would cover the number.
    interval : str
        "Clopper-Pearson", which has at least that confidence; "Student", which has it if means of so many
        paths are distributed normally, as those of many paths nearly are; "witness": a path that never comes
        to the target shows that the reward is infinite, with certainty.
    paths : int
    unknown : int
        Paths of which the steps did not show whether they satisfy the formula. They widen the interval on
        both sides.
    steps : int
        Steps that all paths together have made.
    seed : int
    seconds : float
    warnings : tuple of str
        How the question was understood.
    """

    property: str
    value: float
    lower: float
    upper: float
    confidence: float
    interval: str
    paths: int
    unknown: int
    steps: int
    seed: int
    seconds: float
    warnings: tuple[str, ...] = ()

    kind = "estimate"

    def record(self) -> dict[str, Any]:
        """Return the estimate as plain JSON values; what is no finite number as a text or as None."""
        return {
            "property": self.property,
            "kind": self.kind,
            "value": None if math.isnan(self.value) else json_number(self.value),
            "lower": json_number(self.lower),
            "upper": json_number(self.upper),
            "confidence": self.confidence,
            "interval": self.interval,
            "paths": self.paths,
            "unknown": self.unknown,
            "steps": self.steps,
            "seed": self.seed,
            "seconds": self.seconds,
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }


def estimate(
    model: Model,
    property: str,
    paths: int = 10_000,
    confidence: float = 0.99,
    seed: int = 0,
    steps: int = 100_000,
    *,
    constants: Constants | None = None,
    start: Mapping[str, bool | int] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Estimate:
    """Estimate a probability or an expected reward from sample paths of a model, without building it.

    Parameters
    ----------
    model : ResolvedModel or path-like
        A DTMC or a CTMC, see `simulate`.
    property : str
        One property with ``P=?`` (X, F, G, U, W, R over state formulas, with bounds on steps or time or
        without) or ``R=?`` (``F``, ``C<=t``, ``I=t``).
    paths : int
        How many paths; intervals shrink with its square root.
    confidence : float
        In (0, 1).
    seed : int
    steps : int
        Steps of a path at most.
    constants, start, progress
        As for `simulate`; constants may also be the property's.

    Returns
    -------
    Estimate

    Raises
    ------
    UnsupportedError
        The model or the property is of another kind.
    UnknownError
        A reward is requested, and some path has not ended within its steps.
    LanguageError
        Property or model are at fault.
    OptionError
        A number is out of range, or the model has several initial states and `start` leaves them open.

    Notes
    -----
    The rest of a path that never leaves its state any more is known at once, so that unbounded formulas are
    decided on most models whose paths end.  Time: as for `simulate`, of the paths that are not decided yet.
    """
    parsed = parse_properties(property, "<property>")
    names = {constant.name for constant in parsed.constants}
    rest = {n: v for n, v in (constants or {}).items() if n not in names}
    source = resolved_model(model, rest, parsed.undeclared())
    refuse_choices(source.type)
    found = resolve_properties(parsed, source, constants)
    if len(found.properties) != 1:
        raise OptionError(f"property: expected one, got {len(found.properties)}")
    return estimate_property(
        source, found.properties[0], paths, confidence, seed, steps, start=start, progress=progress
    )


def estimate_property(
    model: ResolvedModel,
    asked: Property,
    paths: int = 10_000,
    confidence: float = 0.99,
    seed: int = 0,
    steps: int = 100_000,
    *,
    start: Mapping[str, bool | int] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Estimate:
    """Estimate a property that is resolved against its model; parameters and errors as for `estimate`.

    Raises the property's own error, if it has one.
    """
    begun = time.perf_counter()
    if not 0 < confidence < 1:
        raise OptionError(f"confidence: expected a number between 0 and 1, got {confidence!r}")
    refuse_choices(model.type)
    if asked.error is not None:
        raise asked.error
    sampler = Sampler(Rules(model), steps, paths, seed, None, start)
    sought = monitored_property(sampler.rules, asked.formula, sampler.initial)
    if sampler.initial.shape[1] > 1:
        raise OptionError(
            f"start: the model has {sampler.initial.shape[1]:,} initial states, and the answer may differ "
            "among them; give the values of variables in the one that is meant"
        )
    drawn = [
        _Drawn.of(sampler, sought.monitor(count), first, count, progress)
        for first, count in sampler.batches()
    ]
    verdicts = np.concatenate([part.verdicts for part in drawn])
    unknown = int(np.count_nonzero(verdicts == OPEN))
    if sought.is_reward:
        values = np.concatenate([part.values for part in drawn])
        value, lower, upper, interval = _reward(verdicts, values, unknown, sampler, confidence)
    else:
        hits = int(np.count_nonzero(verdicts == (FAILS if sought.is_complement else HOLDS)))
        decided = sampler.paths - unknown
        value, interval = hits / decided if decided else math.nan, "Clopper-Pearson"
        lower, upper = clopper_pearson(hits, unknown, sampler.paths, confidence)
    made = sum(part.steps for part in drawn)
    seconds = time.perf_counter() - begun
    return Estimate(
        asked.text,
        value,
        lower,
        upper,
        confidence,
        interval,
        sampler.paths,
        unknown,
        made,
        sampler.seed,
        seconds,
        asked.warnings,
    )


def _reward(
    verdicts: NDArray[np.int8], values: Doubles, unknown: int, sampler: Sampler, confidence: float
) -> tuple[float, float, float, str]:
    """Return mean, interval and its name for the rewards of paths."""
    if (verdicts == FAILS).any():
        return math.inf, math.inf, math.inf, "witness"
    if unknown:
        raise UnknownError(
            f"{unknown} of {sampler.paths} paths have not come to the end of what they earn within "
            f"{sampler.steps} steps, so that nothing is known of the mean; give more steps"
        )
    if sampler.paths < 2:
        raise OptionError("paths: expected at least 2 for the interval of a mean, got 1")
    return float(values.mean()), *student(values, confidence), "Student"


@dataclass(frozen=True)
class _Drawn:
    """Samples of a batch of paths, and the steps made by all of them.

    `verdicts` is int8, shape (count,); `values` has what they have earned, empty if that is not requested.
    """

    verdicts: NDArray[np.int8]
    values: Doubles
    steps: int

    @classmethod
    def of(
        cls,
        sampler: Sampler,
        monitor: Monitor,
        first: int,
        count: int,
        progress: Callable[[str], None] | None,
    ) -> _Drawn:
        """Draw paths until the monitor knows of each, or their steps are made."""
        rules, walk = sampler.rules, sampler.walk(first, count)
        verdicts = np.zeros(count, dtype=np.int8)
        now = np.zeros(count)
        stayed = np.zeros(count, dtype=np.bool_)
        made = 0
        for k in range(sampler.steps + 1):
            if k % 64 == 0:
                check_budget()
                if progress is not None:
                    progress(f"paths {first + 1} to {first + count} of {sampler.paths}, step {k}")
            drawn = walk.draw()
            deadlock = drawn.events == len(rules.events)
            absorbed = np.zeros(walk.paths.size, dtype=np.bool_)
            if monitor.may_rest:
                absorbed |= deadlock
                still = np.flatnonzero(stayed & ~deadlock)
                absorbed[still] = rules.absorbing(Columns(walk.states, still)) if still.size else False
            left = now + (1.0 if drawn.sojourns is None else drawn.sojourns)
            moment = Moment(
                walk.states, k, now, np.where(absorbed, math.inf, left), absorbed, drawn, deadlock
            )
            verdict = monitor.verdicts_at(moment, walk.paths)
            verdicts[walk.paths] = verdict
            goes_on = verdict == OPEN
            if not goes_on.all():
                walk.keep(goes_on)
                drawn, left = drawn.only(goes_on), left[goes_on]
            if k == sampler.steps or not walk.paths.size:
                break
            before = walk.states.copy() if k % _LOOK == _LOOK - 1 else None
            walk.move(drawn)
            now = left
            stayed = np.zeros(walk.paths.size, dtype=np.bool_)
            if before is not None:
                stayed = (before == walk.states).all(axis=0)
            made += walk.paths.size
        values: Doubles = getattr(monitor, "values", np.zeros(0))
        return cls(verdicts, values, made)
