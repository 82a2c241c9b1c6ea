"""Expected rewards: until a set is reached, a formula holds, or a time; discounted, and in total."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.operator_values import OperatorQuery, Scope
from hybrid.analysis.precomputation import (
    decided_states,
    end_components,
    prob1a,
    prob1e,
    reaching,
    staying_choices,
)
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.systems import expected_place, is_constant, is_zero, recompute_on, solve_linear
from hybrid.base.arrays import extremes, to_host
from hybrid.base.errors import PropertyError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import Discount, scaled_bounds
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units, reward_rates
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import ELAPSED, ModelType
from mtbdd.offset.states import StateIndex, index_states, is_any, states_from

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerBuilder
    from hybrid.matrix.operators.layer_choices import RewardOf
    from mtbdd.graph.components import EndComponents, MaximalEndComponent


# Rewards of choices, and the precomputation of optimal expected rewards on the graph.
#
# Rewards until a set is reached are infinite where the set is missed with positive probability (Forejt et
# al., 2011, section 5).  For the maximum nothing is left then in which a scheduler could stay.  For the
# minimum it could in end components, which cost something unless all their choices are free; the free ones
# are made one state each, so that staying there for nothing is no answer (Baier et al., CAV 2017).

Vector = NDArray[np.float64]


class RewardSystem(Record, eq=False):
    """The equations of a reachability reward, once the graph has decided what it can.

    It is `finite` in some states, and those of them outside of the set are `unknown`; `allowed` has for every
    layer the states whose choice may be taken. A scheduler could stay for nothing in `components`; None for a
    maximum.
    """

    finite: Node
    unknown: StateIndex
    allowed: tuple[Node, ...]
    components: EndComponents | None


def reward_system(model: SymbolicModel, structure: int, target: Node, maximise: bool) -> RewardSystem:
    """Return what the graph decides of a reward until a set is reached, and what it leaves."""
    finite = (prob1a if maximise else prob1e)(model, model.reachable, target)
    unknown = index_states(model.manager, finite & ~target)
    if maximise or unknown.total == 0:
        return RewardSystem(finite, unknown, tuple(layer.enabled for layer in model.layers), None)
    kept = staying_choices(model, finite)
    free = free_choices(model, unknown.states, kept, [rewards_of(model, structure)])
    return RewardSystem(finite, unknown, tuple(kept), end_components(model, unknown.states, free))


def zero_reward_mecs(model: SymbolicModel, structure: int) -> EndComponents:
    """Return where a scheduler may stay for ever and earn nothing."""
    enabled = [layer.enabled for layer in model.layers]
    free = free_choices(model, model.reachable, enabled, [rewards_of(model, structure)])
    return end_components(model, model.reachable, free)


def refuse_free_components(model: SymbolicModel, structure: int) -> None:
    """Refuse to divide by the average of a reward that some scheduler of an MDP need not earn."""
    if zero_reward_mecs(model, structure).states != model.manager.false:
        raise no_ratio("an end component")


def no_ratio(where: str) -> PropertyError:
    """Return the error for a second reward whose long-run average may be zero, or less."""
    return PropertyError(
        "R: the ratio of two rewards has no value where the second one's long-run average is not positive, "
        f"as in {where} of this model: let that one be earned there, or ask for the two averages"
    )


def inside_choices(ends: EndComponents, layers: int) -> tuple[Node, ...]:
    """Return for every layer the states whose choice stays in their end component."""
    every = (ends.single, *ends.components)
    return tuple(ends.manager.disjunction(c.choices[layer] for c in every) for layer in range(layers))


def greatest_totals(model: SymbolicModel, structure: int) -> tuple[Node, Node]:
    """Return the states whose greatest total reward is infinite, and those where it is to be solved for.

    In the others nothing can be earned.
    """
    from mtbdd.graph.components import model_end_components

    manager = model.manager
    paid = paid_choices(model, structure)
    ends = model_end_components(model)

    def earning(c: MaximalEndComponent) -> Node:
        return manager.disjunction(own & p for own, p in zip(c.choices, paid, strict=True))

    # Those of one state come together, each of which stands for itself.
    endless = [earning(ends.single), *(c.states for c in ends.components if earning(c) != manager.false)]
    infinite = reaching(model, manager.disjunction(endless))
    return infinite, reaching(model, manager.disjunction(paid)) & ~infinite


def paid_choices(model: SymbolicModel, structure: int) -> list[Node]:
    """Return for every layer the states whose choice earns something."""
    enabled = [layer.enabled for layer in model.layers]
    free = free_choices(model, model.reachable, enabled, [rewards_of(model, structure)])
    return [own & ~f for own, f in zip(enabled, free, strict=True)]


# ------------------------------------------------------------------ choices and what they earn


def rewards_of(model: SymbolicModel, structure: int) -> RewardOf:
    """Return what the choices of a layer earn, by layer and rows, that of the state included."""

    def earned(layer: int, rows: StateIndex) -> Vector:
        return not_negative(reward_rates(model, structure, rows, layer), model.communicator)

    return earned


def reward_units(model: SymbolicModel, structure: int) -> float:
    """Return the greatest relative error of any choice's reward, in units of rounding."""
    found = (enclosed_rewards(model, structure, model.index, layer) for layer in range(len(model.layers)))
    # lemma: entry-units
    return model.communicator.greatest(max(relative_units(*enclosed) for enclosed in found))


def not_negative(rewards: Vector, communicator: Communicator = ALONE) -> Vector:
    """Return rewards; refuse negative ones."""
    least = communicator.least(float(rewards.min(initial=0.0)))
    if least < 0:
        raise PropertyError(
            f"R: expected no negative rewards in an MDP, got {least}: bounds on least and "
            "greatest rewards need them to be zero or more; split the structure in gains and losses"
        )
    return rewards


def free_choices(
    model: SymbolicModel, within: Node, allowed: Sequence[Node], rewards: Sequence[RewardOf]
) -> list[Node]:
    """Return for every layer the states of a set whose choice is allowed and earns none of some rewards."""
    found = []
    for layer, own in enumerate(allowed):
        rows = index_states(model.manager, own & within)
        paid = np.zeros(rows.size, np.bool_)
        if rows.total:
            for earned in rewards:
                paid |= earned(layer, rows) != 0.0
        is_priced = model.communicator.any(paid.any())
        found.append(states_from(model.manager, rows, ~paid) if is_priced else own & within)
    return found


def reachability_rewards(
    model: SymbolicModel,
    structure: int,
    target: Node,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the expected reward earned before a set is reached, of an MDP the least or the greatest.

    Zero inside the set. Infinite where it is not reached almost surely: by some scheduler of an MDP
    (greatest), by every one (least). Of a chain not a number where it is infinite and rewards below zero may
    be earned: then it need not add up to anything. Negative rewards of an MDP are refused. The values are
    those of a scope, by default every state; a `maker` is given the choices of an optimal scheduler.
    """
    from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices

    scope = scope or Scope.every(model)
    if not model.is_mdp:
        return _on_chain(model, structure, target, options, work, scope)
    system = reward_system(model, structure, target, maximise)
    known = np.where(scope.indicator(system.finite), 0.0, np.inf)
    if maker is not None and maximise:
        maker.missing(target, system.finite)
    if not scope.meets(system.unknown.states) and (maker is None or system.unknown.total == 0):
        return StateValues.exact(known)
    check_method(options)
    operator = choice_operator(
        model, system.unknown, rewards_of(model, structure), maximise, options, system.allowed,
        system.components,
    )  # fmt: skip
    found = solve_choices(operator, None, options, work, "reachability rewards", system.unknown)
    if maker is not None:
        maker.policy(system.unknown, operator, found, system.components)
    # lemma: entry-units
    found = scaled_bounds(scope.among(found, system.unknown), reward_units(model, structure))
    return found.spread(scope.indicator(system.unknown.states), known)


def _on_chain(
    model: SymbolicModel,
    structure: int,
    target: Node,
    options: CheckOptions,
    work: SolveStatistics,
    scope: Scope,
) -> StateValues:
    """Solve the linear system of the states that reach the set almost surely."""
    _, sure = decided_states(model, model.reachable, target, True)
    known = np.where(scope.indicator(sure), 0.0, np.inf)
    if sure != model.reachable:
        every = model.index.at(expected_place(options, model.index.size))
        losing = reward_rates(model, structure, every) < 0
        if model.communicator.any(is_any(losing)):
            own = states_from(model.manager, model.index, to_host(losing)) & ~target
            loses = reaching(model, own, model.reachable & ~target)
            known[scope.indicator(loses & ~sure)] = np.nan
    maybe_states = sure & ~target
    if not scope.meets(maybe_states):
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    expected = maybe.at(expected_place(options, maybe.size))
    rewards, error = enclosed_rewards(model, structure, expected)
    if is_zero(model.communicator, rewards):
        return StateValues.exact(known)
    units = model.communicator.greatest(relative_units(rewards, error))
    earned = recompute_on(rewards, expected.place, lambda there: enclosed_rewards(model, structure, there)[0])
    del rewards, error
    solved = solve_linear(model, maybe, earned, None, options, work, "reachability rewards", units=units)
    return scope.among(solved, maybe).spread(scope.indicator(maybe_states), known)


def rewards_until(a: OperatorQuery) -> StateValues:
    """Return the expected reward before a set is reached, as `reachability_rewards` does."""
    target = a.states(a.formula.target.right)
    return reachability_rewards(
        a.model, a.formula.place, target, a.maximise, a.options, a.work, a.maker, a.scope
    )


def total_rewards(a: OperatorQuery) -> StateValues:
    """Return the expected reward earned in all time, of an MDP the least or the greatest.

    Of a chain it is earned before the states from which nothing more can be earned, and infinite where these
    are not reached almost surely; not a number where rewards below zero make that senseless.

    The greatest is infinite where an end component with a reward can be reached; in all other end components
    nothing is earned, and a scheduler may leave them or stay: each is made one state with the choice to stop.
    The least is finite where a scheduler surely reaches an end component whose choices are free, and is what
    it costs to get there.
    """
    from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices

    model, structure, options, work, scope = a.model, a.formula.place, a.options, a.work, a.scope
    if not model.is_mdp:
        return _total_on_chain(model, structure, options, work, scope)
    if not a.maximise:
        free = zero_reward_mecs(model, structure)
        if a.maker is not None:
            a.maker.take(inside_choices(free, len(model.layers)))
        return reachability_rewards(model, structure, free.states, False, options, work, a.maker, scope)
    infinite, unknown_states = greatest_totals(model, structure)
    known = np.where(scope.indicator(infinite), np.inf, 0.0)
    if a.maker is not None:
        _earn_for_ever(a.maker, model, structure, infinite)
    unknown = index_states(model.manager, unknown_states)
    if not scope.meets(unknown_states) and (a.maker is None or unknown.total == 0):
        return StateValues.exact(known)
    check_method(options)
    components = end_components(model, unknown_states)
    stop = np.where(model.indicator(components.states, unknown), 0.0, -np.inf)
    earned = rewards_of(model, structure)
    operator = choice_operator(model, unknown, earned, True, options, components=components, stop=stop)
    found = solve_choices(operator, None, options, work, "total rewards", unknown)
    if a.maker is not None:
        a.maker.policy(unknown, operator, found, components)
        a.maker.take(inside_choices(components, len(model.layers)))
    found = scaled_bounds(scope.among(found, unknown), reward_units(model, structure))  # lemma: entry-units
    return found.spread(scope.indicator(unknown_states), known)


def _earn_for_ever(maker: SchedulerBuilder, model: SymbolicModel, structure: int, infinite: Node) -> None:
    """Choose where a greatest total is infinite: go to choices that earn, and come back to them for ever."""
    from mtbdd.graph.components import model_end_components

    inside = [own & infinite for own in inside_choices(model_end_components(model), len(model.layers))]
    earning = [own & paid for own, paid in zip(inside, paid_choices(model, structure), strict=True)]
    maker.take(earning)
    goal = model.manager.disjunction(earning)
    maker.route(goal, infinite, inside)
    maker.route(goal, infinite, [layer.enabled for layer in model.layers])


def _total_on_chain(
    model: SymbolicModel, structure: int, options: CheckOptions, work: SolveStatistics, scope: Scope
) -> StateValues:
    """Stop where nothing more can be earned."""
    rewards = reward_rates(model, structure, model.index)
    earning = states_from(model.manager, model.index, rewards != 0)
    if earning == model.manager.false:
        return StateValues.exact(np.zeros(scope.index.size))
    over = model.reachable & ~reaching(model, earning)
    return _on_chain(model, structure, over, options, work, scope)


# Rewards until a co-safe formula of linear temporal logic holds.
#
# A run satisfies a co-safe formula by an informative prefix, read letter by letter.  What is earned before
# the first such prefix ends is a reward until a set is reached, that of the pairs in which the automaton's
# next step leads to an accepting state.

_log = logging.getLogger(__name__)


def cosafe_rewards(a: OperatorQuery) -> StateValues:
    """Return the expected reward earned until a co-safe formula holds, of an MDP the least or the greatest.

    Zero where the state itself shows that the formula holds; ``X true`` takes the first step, though all runs
    satisfy it. Infinite where the formula does not hold almost surely: by some scheduler of an MDP
    (greatest), by every one (least). An optimal scheduler of an MDP remembers what the automaton has read.
    """
    from hybrid.analysis.ltl import model_formula, model_product
    from hybrid.properties.automata.translation import prefixes

    model, structure, maximise = a.model, a.formula.place, a.maximise
    options, work, maker = a.options, a.work, a.maker
    formula = model_formula(model, a.formula.target, a.states, keeps_steps=True)
    if formula.formula.has_weak:
        raise UnsupportedError(
            "R: expected a co-safe formula, which some prefix of a run decides (X, F, U, and G, W, R with a "
            "bound, negations of state formulas alone), got one with G, W or R, or a negated F or U; ask for "
            "its probability with P, or for rewards until a set is reached with R [ F states ]"
        )
    if options.automaton_tool not in ("auto", "own"):
        work.warnings.append(
            "the automaton tool has no part in rewards until a formula holds, which take our own automaton"
        )
    names = [f"p{i}" for i in range(len(formula.propositions))]
    automaton = prefixes(formula.store, formula.formula, names)
    _log.info("automaton of %d states that reads the formula", automaton.n_states)
    told = np.flatnonzero(automaton.marks.all(axis=1)).tolist()
    if automaton.n_states == 1:
        target = model.reachable if told else model.manager.false
        return reachability_rewards(model, structure, target, maximise, options, work, maker, a.scope)
    if maker is None:
        own_structures = [] if structure == ELAPSED else [structure]
        product = model_product(model, automaton, formula.propositions, options, own_structures)
        won = product.stepping_into(told)
        found = reachability_rewards(product.model, min(structure, 0), won, maximise, options, work)
    else:
        from hybrid.analysis.memory_scheduler import Remembering, labels_of
        from hybrid.analysis.scheduler import SchedulerBuilder

        structures = range(len(model.source.rewards))
        labels = labels_of(model)
        product = model_product(model, automaton, formula.propositions, options, structures, labels)
        won = product.stepping_into(told)
        own = SchedulerBuilder(product.model)
        found = reachability_rewards(product.model, structure, won, maximise, options, work, own)
        maker.remember(Remembering.of(model, product, ()).finish(own))
    return a.scope.of_values(found.at(product.model.indicator(product.first)))


# Expected rewards in all time, of which every step leaves a share.
#
# Their equation ``x = opt of (r + d P x)`` has one solution whatever the model's graph, for a step draws any
# two candidates nearer by the factor d (Puterman, Markov Decision Processes, section 6.2): any u that a step
# does not raise is an upper bound, and no state earns more than the greatest reward over 1 - d.


def discounted_rewards(a: OperatorQuery) -> StateValues:
    """Return the expected discounted reward, of an MDP the least or the greatest.

    The reward of the k-th step counts ``discount**k`` times, k from 0; optimal schedulers forget the past.
    Exact zeros where nothing can be earned.
    """
    from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices

    model, structure, options, work = a.model, a.formula.place, a.options, a.work
    d = Discount.of(a.number(a.formula.discount))
    none = np.zeros(model.index.size)
    if not model.is_mdp:
        return a.scope.of_values(_discounted_on_chain(model, structure, d, options, work))
    earning = reaching(model, model.manager.disjunction(paid_choices(model, structure)))
    unknown = index_states(model.manager, earning)
    if unknown.total == 0:
        return a.scope.of_values(StateValues.exact(none))
    check_method(options)
    most, earned = [0.0], rewards_of(model, structure)

    def gain(layer: int, rows: StateIndex) -> NDArray[np.float64]:
        own = earned(layer, rows)
        most.append(float(own.max(initial=0.0)))
        return own

    operator = choice_operator(model, unknown, gain, a.maximise, options, discount=d)
    greatest = model.communicator.greatest(max(most))
    found = solve_choices(operator, d.bound(greatest), options, work, "discounted rewards", unknown)
    if a.maker is not None:
        a.maker.policy(unknown, operator, found, None)
    found = scaled_bounds(found, reward_units(model, structure))  # lemma: entry-units
    return a.scope.of_values(found.spread(model.indicator(earning), none))


def _discounted_on_chain(
    model: SymbolicModel, structure: int, discount: Discount, options: CheckOptions, work: SolveStatistics
) -> StateValues:
    """Solve the linear system of the states from which something can be earned."""
    rewards, error = enclosed_rewards(model, structure, model.index)
    none = np.zeros(model.index.size)
    earning = reaching(model, states_from(model.manager, model.index, rewards != 0))
    maybe = index_states(model.manager, earning)
    if maybe.total == 0:
        return StateValues.exact(none)
    inside, alike = model.indicator(earning), model.communicator
    units = alike.greatest(relative_units(rewards, error))
    most = discount.bound(alike.greatest(float(np.abs(rewards).max(initial=0.0))), units)
    found = solve_linear(
        model, maybe, rewards[inside], most, options, work, "discounted rewards",
        units=units, discount=discount,
    )  # fmt: skip
    return found.on_host().spread(inside, none)


# Rewards gathered up to a number of steps or a time, and rewards at one moment ([Tealdi13] §2.3).


def cumulative_rewards(a: OperatorQuery) -> StateValues:
    """Return the expected reward of the first steps, or up to a time.

    Transition rewards count for transitions made by then.
    """
    from hybrid.analysis.transient import TransientAnalysis

    model, structure, time, options, work, scope = a.timed_reward()
    if model.is_mdp:
        found = _gathered_over_choices(model, structure, int(time), a.maximise, options, work)
        return scope.of_values(found)
    rewards, error = enclosed_rewards(model, structure, _every_state(model, options))

    def gathered(part: Vector) -> StateValues:
        if time == 0 or is_zero(model.communicator, part):
            return StateValues.exact(np.zeros(scope.index.size))
        if model.type is ModelType.CTMC:
            course = TransientAnalysis(model, model.index, None, options, work, scope.positions)
            return course.integral(part, float(time))
        earning = TransientAnalysis(model, model.index, part, options, work, scope.positions)
        return earning.after_steps(np.broadcast_to(np.float64(0.0), (part.size,)), int(time))

    return _by_sign(model.communicator, rewards, error, gathered)


def instantaneous_rewards(a: OperatorQuery) -> StateValues:
    """Return the expected state reward after some steps, or at a time.

    Transition rewards have no part in it.  Errors are those of `cumulative_rewards`.
    """
    from hybrid.analysis.transient import TransientAnalysis

    model, structure, time, options, work, scope = a.timed_reward()
    if model.is_mdp:
        return scope.of_values(_later_over_choices(model, structure, int(time), a.maximise, options, work))
    rewards, error = enclosed_rewards(model, structure, _every_state(model, options), moves=False)

    def later(part: Vector) -> StateValues:
        if time == 0 or is_constant(model.communicator, part):
            return scope.among(StateValues.exact(part), model.index)
        evolution = TransientAnalysis(model, model.index, None, options, work, scope.positions)
        if evolution.continuous:
            return evolution.after_time(part, float(time))
        return evolution.after_steps(part, int(time))

    return _by_sign(model.communicator, rewards, error, later)


def _every_state(model: SymbolicModel, options: CheckOptions) -> StateIndex:
    """Return all states, with vectors where those of steps will probably be."""
    return model.index.at(expected_place(options, model.index.size))


def _gathered_over_choices(
    model: SymbolicModel,
    structure: int,
    steps: int,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
) -> StateValues:
    """Go back step by step, the best choice taken in every state."""
    from hybrid.analysis.choice_systems import ChoiceWindows, choice_operator

    if steps == 0:
        return StateValues.exact(np.zeros(model.index.size))
    gain = rewards_of(model, structure)
    operator = choice_operator(model, model.index, gain, maximise, options, steps=steps)
    windows = ChoiceWindows(operator, model.index, options, work)
    found = windows.after_steps(np.zeros(model.index.size), steps)
    return scaled_bounds(found, reward_units(model, structure))  # lemma: entry-units


def _later_over_choices(
    model: SymbolicModel,
    structure: int,
    steps: int,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
) -> StateValues:
    """Go back step by step, the best choice taken in every state."""
    from hybrid.analysis.choice_systems import ChoiceWindows, choice_operator

    rewards, error = enclosed_rewards(model, structure, model.index, 0, moves=False)
    alike = model.communicator
    units = alike.greatest(relative_units(not_negative(rewards, alike), error))
    if steps == 0 or is_constant(alike, rewards):
        return scaled_bounds(StateValues.exact(rewards), units)  # lemma: entry-units

    def gain(layer: int, rows: StateIndex) -> np.ndarray:
        return np.zeros(rows.size)

    operator = choice_operator(model, model.index, gain, maximise, options, steps=steps)
    found = ChoiceWindows(operator, model.index, options, work).after_steps(rewards, steps)
    return scaled_bounds(found, units)  # lemma: entry-units


def _by_sign(
    communicator: Communicator, rewards: Vector, error: Vector | None, run: Callable[[Vector], StateValues]
) -> StateValues:
    """Apply a linear map to gains and losses apart: its bounds are for vectors without negative elements.

    `error` bounds the absolute errors of the rewards; None if they are exact.

    Lemma: entry-units (docs/bounds.md).
    """
    units = communicator.greatest(relative_units(rewards, error))
    if not communicator.any(extremes(rewards)[0] < 0.0):
        return scaled_bounds(run(rewards), units)  # lemma: entry-units
    gains = scaled_bounds(run(np.maximum(rewards, 0.0)), units)  # lemma: entry-units
    losses = scaled_bounds(run(np.maximum(-rewards, 0.0)), units)  # lemma: entry-units
    # lemma: arithmetic
    return StateValues(
        gains.values - losses.values,
        np.nextafter(gains.lower - losses.upper, -np.inf),
        np.nextafter(gains.upper - losses.lower, np.inf),
    )
