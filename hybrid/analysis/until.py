"""Until without a bound and within a window, and one step ([Tealdi13] §2.3).

The graph decides 0 and 1, equations the rest.

Over choices (Forejt et al., "Automated verification techniques for probabilistic systems", 2011, section 4):
for the minimum, no scheduler can stay for ever in the states that are left. For the maximum some may. Their
end components are made one state each (Haddad and Monmege, TCS 2018). Here that is done by vectors: choices
that stay inside are disabled, and members share the best value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.operator_values import OperatorQuery, Scope, until_form
from hybrid.analysis.precomputation import decided_states, end_components, never_reached, reaching
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.systems import flow_into, solve_linear
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import ratio_units, widened
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.properties.tree import TimeBound
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Literal, ModelType
from mtbdd.offset.offset import SCALED_UNITS, row_entries
from mtbdd.offset.states import StateIndex, index_states, states_from

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerBuilder
    from mtbdd.graph.components import EndComponents


Vector = NDArray[np.float64]


def until_probabilities(
    model: SymbolicModel,
    safe: Node,
    target: Node,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the probability of ``safe U target``, of an MDP the least or the greatest; on the host.

    Exact 0 and 1 where the graph decides. The values are those of a scope, by default every state; a `maker`
    is given the choices of an optimal scheduler.
    """
    scope = scope or Scope.every(model)
    system = until_system(model, safe, target, maximise)
    unknown, known = system.unknown, scope.indicator(system.one).astype(np.float64)
    if maker is not None:
        maker.until(safe, target, system.zero, system.one, maximise)
    if not scope.meets(unknown.states) and (maker is None or unknown.total == 0):
        return StateValues.exact(known)
    one = index_states(model.manager, system.one)
    if model.is_mdp:
        from hybrid.analysis.choice_systems import check_method, choice_flow, choice_operator, solve_choices

        check_method(options)

        def entering(layer: int, rows: StateIndex) -> Vector:
            return choice_flow(model, layer, rows, one, options)

        components = system.components
        operator = choice_operator(model, unknown, entering, maximise, options, components=components)
        solved = solve_choices(operator, 1.0, options, work, "until probabilities", unknown)
        if maker is not None:
            maker.policy(unknown, operator, solved.within(0.0, 1.0), components)
    else:
        entering_one = partial(flow_into, model, columns=one, options=options)
        solved = solve_linear(model, unknown, entering_one, 1.0, options, work, "until probabilities")
    found = scope.among(solved, unknown).within(0.0, 1.0)
    return found.spread(scope.indicator(unknown.states), known)


class UntilSystem(Record, eq=False):
    """The equations of an unbounded until, once the graph has decided what it can.

    States have the probability `zero` and `one`; the others are `unknown`. A scheduler could stay among them
    in `components`; None for a minimum, where it cannot.
    """

    zero: Node
    one: Node
    unknown: StateIndex
    components: EndComponents | None


def until_system(model: SymbolicModel, safe: Node, target: Node, maximise: bool) -> UntilSystem:
    """Return what the graph decides of ``safe U target`` and what it leaves."""
    zero, one = decided_states(model, safe, target, maximise)
    unknown = model.reachable & ~zero & ~one
    components = None
    if model.is_mdp and maximise and unknown != model.manager.false:
        components = end_components(model, unknown)
    return UntilSystem(zero, one, index_states(model.manager, unknown), components)


# ------------------------------------------------------------------ one step


def unbounded_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a path operator without a bound."""
    safe, target, complement = until_form(a.model, a.path, a.states)
    maximise = a.maximise != complement
    found = until_probabilities(a.model, safe, target, maximise, a.options, a.work, a.maker, a.scope)
    return found.complement() if complement else found


def next_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability that the next state lies in a set, of an MDP the least or the greatest.

    Two products a layer, those of an MDP on the host. Exact 0 and 1 where the graph decides, else with the
    bounds of their rounding errors.
    """
    from hybrid.analysis.choice_systems import choice_flow
    from hybrid.matrix.operators.layer_choices import choice_slack

    model, target, options, work = a.model, a.states(a.path.right), a.options, a.work
    if not model.is_mdp:
        return a.scope.of_values(_next_on_chain(model, target, options, work))
    # Whether some choice (greatest) or every one (least) enters the set at all, or surely.
    join = np.logical_or if a.maximise else np.logical_and
    values = np.full(model.index.size, 0.0 if a.maximise else 1.0)
    may, must = (np.full(model.index.size, not a.maximise) for _ in range(2))
    inside, outside = (index_states(model.manager, s) for s in (target, model.reachable & ~target))
    for layer, own in enumerate(model.layers):
        rows = index_states(model.manager, own.enabled)
        place = np.flatnonzero(model.indicator(own.enabled))
        flow = choice_flow(model, layer, rows, inside, options, work=work)
        staying = choice_flow(model, layer, rows, outside, options, work=work)
        may[place], must[place] = join(may[place], flow > 0.0), join(must[place], staying == 0.0)
        better = np.maximum if a.maximise else np.minimum
        values[place] = better(values[place], np.minimum(flow, 1.0))
    work.products += 2
    undecided = may & ~must
    own_values = values[undecided]
    # lemma: rounding
    found = StateValues(own_values, *widened(own_values, choice_slack(model))).within(0.0, 1.0)
    return a.scope.of_values(found.spread(undecided, must.astype(np.float64)))


def _next_on_chain(
    model: SymbolicModel, target: Node, options: CheckOptions, work: SolveStatistics
) -> StateValues:
    """Compare the rates into the set and out of it.

    Lemmas: rounding, graph (docs/bounds.md).
    """
    flow = flow_into(model, model.index, index_states(model.manager, target), options, work=work)
    rest = model.reachable & ~target
    staying = flow_into(model, model.index, index_states(model.manager, rest), options, work=work)
    values = flow / (flow + staying)
    # Both flows are added up from shared blocks.
    units = ratio_units(model.transitions) + SCALED_UNITS + 8  # lemma: rounding
    slack = (row_entries(model.transitions) + units) * UNIT  # lemma: rounding
    undecided = (flow > 0) & (staying > 0)  # lemma: graph
    inside = values[undecided]
    found = StateValues(inside, *widened(inside, slack)).within(0.0, 1.0)  # lemma: rounding
    return found.spread(undecided, np.where(flow > 0, 1.0, 0.0))


# Until within a window of steps or time ([Tealdi13] §§2.3.1 and 2.3.2).
#
# With a window [a, b] the path has to stay in safe states up to a, and to reach a target within b - a
# from then on: the probabilities of the second part are where the first one starts, running backwards.


class TimeWindow(Record):
    """The window of a path operator: without end if `upper` is None, never if it is below `lower`.

    A `strict` one leaves time 0 out although `lower` is 0 (CTMC).
    """

    lower: float = 0
    upper: float | None = None
    strict: bool = False

    @classmethod
    def of(cls, bound: TimeBound | None, continuous: bool) -> TimeWindow:
        """Return the window of a resolved bound; in discrete time strict ends move by one step."""
        if bound is None:
            return cls()
        lower, upper = (e.value if isinstance(e, Literal) else None for e in (bound.lower, bound.upper))
        lower = 0 if lower is None else lower
        if not continuous:
            upper = None if upper is None else int(upper) - bound.upper_strict
            return cls(int(lower) + bound.lower_strict, upper)
        return cls(float(lower), None if upper is None else float(upper), bound.lower_strict and lower == 0)


def through(
    run: Callable[[np.ndarray], StateValues], start: StateValues, alike: Communicator = ALONE
) -> StateValues:
    """Apply a monotone map to values with bounds, by applying it to the bounds."""
    if start.is_exact:
        return run(start.values)
    if alike.any(np.isnan(start.lower).any()):
        return run(start.values).without_bounds()
    low, high = run(np.ascontiguousarray(start.lower)), run(np.ascontiguousarray(start.upper))
    return StateValues(0.5 * (low.lower + high.upper), low.lower, high.upper, low.open_lower)


def window_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a path operator with a window, truncation and rounding in its bounds."""
    window = TimeWindow.of(a.path.bound, a.model.type is ModelType.CTMC)
    safe, target, complement = until_form(a.model, a.path, a.states)
    found = _in_window(a, safe, target, window, a.maximise != complement)
    return found.complement() if complement else found


def _in_window(a: OperatorQuery, safe: Node, target: Node, window: TimeWindow, maximise: bool) -> StateValues:
    """Return the probability of ``safe U target`` with the target reached in a window."""
    model, scope = a.model, a.scope
    begins_now = window.lower == 0 and not window.strict
    own = scope if begins_now else Scope.every(model)
    if window.upper is None:
        later = until_probabilities(model, safe, target, maximise, a.options, a.work, scope=own)
    elif window.upper < window.lower:
        return StateValues.exact(np.zeros(scope.index.size))
    else:
        later = _within(a, safe, target, window.upper - window.lower, maximise, own)
    if begins_now:
        return later
    return scope.of_values(_before(a, safe, target, window, later, maximise))


def _before(
    a: OperatorQuery, safe: Node, target: Node, window: TimeWindow, later: StateValues, maximise: bool
) -> StateValues:
    """Return the values of all states when the window is ahead of them, from those when it begins."""
    from hybrid.analysis.transient import TransientAnalysis

    model, nowhere = a.model, np.zeros(a.model.index.size)
    later_states = states_from(model.manager, model.index, later.upper > 0)
    if model.communicator.any(np.isnan(later.upper).any()):
        later_states = model.reachable & ~never_reached(model, safe, target, maximise)
    # Elsewhere the probability is zero, which truncation would blur.
    first_states = reaching(model, later_states, safe) & safe
    first = index_states(model.manager, first_states)
    inside = model.indicator(first_states)
    if first.total == 0:
        return StateValues.exact(nowhere)
    start = later.at(inside)
    if window.lower == 0:
        return start.spread(inside, nowhere)
    if model.type is ModelType.CTMC:
        run = TransientAnalysis(model, first, None, a.options, a.work)
        found = through(lambda x: run.after_time(x, float(window.lower)), start, model.communicator)
        return _probabilities(found).spread(inside, nowhere)
    # The last of the safe steps may enter a target that is not safe itself.
    step = _course(a, first, target & ~safe, maximise, 1)
    found = through(lambda x: step(x, 1), start, model.communicator)
    if window.lower > 1:
        more = _course(a, first, None, maximise, window.lower)
        found = through(lambda x: more(x, int(window.lower) - 1), found, model.communicator)
    return _probabilities(found).spread(inside, nowhere)


def _within(
    a: OperatorQuery, safe: Node, target: Node, length: float, maximise: bool, scope: Scope
) -> StateValues:
    """Return the probability of ``safe U target`` within some steps or time, in the states of a scope."""
    from hybrid.analysis.transient import TransientAnalysis

    model, options = a.model, a.options
    known = scope.indicator(target).astype(np.float64)
    maybe_states = model.reachable & ~target & ~never_reached(model, safe, target, maximise)
    if length == 0 or not scope.meets(maybe_states):
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    if model.is_mdp:
        course = _course(a, maybe, target, maximise, length)
        found = _probabilities(scope.among(course(np.zeros(maybe.size), int(length)), maybe))
        return found.spread(scope.indicator(maybe_states), known)
    reached = index_states(model.manager, target)

    def entering(there: StateIndex) -> np.ndarray:
        return flow_into(model, there, reached, options)

    evolution = TransientAnalysis(model, maybe, entering, options, a.work, scope.places(maybe))
    start = np.broadcast_to(np.float64(0.0), (maybe.size,))
    if evolution.continuous:
        # At any time some path has reached the target, and some other one has not.
        found = evolution.after_time(start, float(length)).within(0.0, 1.0)
    else:
        found = _probabilities(evolution.after_steps(start, int(length)))
    return found.spread(scope.indicator(maybe_states), known)


def _course(
    a: OperatorQuery, within: StateIndex, target: Node | None, maximise: bool, steps: float
) -> Callable[[np.ndarray, int], StateValues]:
    """Return what goes at most so many steps back from values over a set; entering the target is one."""
    from hybrid.analysis.choice_systems import ChoiceWindows, choice_flow, choice_operator
    from hybrid.analysis.transient import TransientAnalysis

    model, options, work = a.model, a.options, a.work
    entered = None if target is None else index_states(model.manager, target)
    if not model.is_mdp:
        if entered is None:
            return TransientAnalysis(model, within, None, options, work).after_steps
        rest = entered

        def entering(there: StateIndex) -> np.ndarray:
            return flow_into(model, there, rest, options)

        return TransientAnalysis(model, within, entering, options, work).after_steps

    def gain(layer: int, rows: StateIndex) -> np.ndarray:
        return np.zeros(rows.size) if entered is None else choice_flow(model, layer, rows, entered, options)

    operator = choice_operator(model, within, gain, maximise, options, steps=steps)
    return ChoiceWindows(operator, within, options, work).after_steps


def _probabilities(found: StateValues) -> StateValues:
    """Return values cut to at most 1."""
    if found.is_exact:
        return StateValues.exact(np.minimum(found.values, 1.0))
    values, upper = np.minimum(found.values, 1.0), np.minimum(found.upper, 1.0)
    return StateValues(values, found.lower, upper, found.open_lower)
