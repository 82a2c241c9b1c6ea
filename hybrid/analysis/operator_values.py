"""The operators P, S and R: which algorithm finds their values, and which optimum is meant on an MDP.

`P>=p` speaks of all schedulers, so that the least probability counts, and `P<=p` of the greatest one. Each
path operator is an until, a complement of one, or a single step. ``F b = true U b``, ``G b = !F !b``, ``a W
b = !((a & !b) U (!a & !b))``, ``a R b = !(!a U !b)``, with the same window of steps or time on both sides
([Tealdi13] §2.2). Algorithms are imported when they are used. An answer needs one of them, and all take
longer to load than a small model to solve.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import PropertyError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.properties import registry
from hybrid.properties.registry import Capability, asked_quantity, without_negations
from hybrid.properties.tree import Path, Probability, Reward, SteadyState
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression, Literal
from mtbdd.offset.states import StateIndex, index_states

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerBuilder


# The states in which a formula's value is requested.
#
# A formula need not have a value elsewhere: a filter over the states where a quotient is defined
# answers although it is undefined in others.  Nor need there be a vector of all values on the host: where one
# state is requested, one number is read.

_BY_GRAPH = (registry.NOW, registry.UNTIL, registry.REACHED, registry.ELAPSED_TIME)
"""Quantities of which the graph decides some, with no vector of all states."""

_FEW = 64
"""One state in so many, or fewer, are numbered one by one."""


class Scope(Record, eq=False):
    """A non-empty set of reachable states, in index order; of the own ones, where processes share them.

    Attributes
    ----------
    index : StateIndex
        Numbers the states of the set.
    positions : ndarray of int64, shape (index.size,), or None
        Their numbers among all reachable states; None for all of these.
    """

    model: SymbolicModel
    index: StateIndex
    positions: NDArray[np.int64] | None

    @classmethod
    def every(cls, model: SymbolicModel) -> Scope:
        """Return the scope of all reachable states."""
        return cls(model, model.index, None)

    @classmethod
    def of(cls, model: SymbolicModel, states: Node) -> Scope:
        """Return the scope of some reachable states, at least one.

        Time and memory: O(n) for n reachable states, unless these are all, or few.
        """
        if states == model.reachable:
            return cls.every(model)
        if states == model.manager.false:
            raise PropertyError("no reachable state satisfies the filter's condition")
        index = index_states(model.manager, states)
        return cls(model, index, _positions(model, model.index, index))

    def of_values(self, found: StateValues) -> StateValues:
        """Return, of values in all states, those in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def of_truth(self, found: StateTruth) -> StateTruth:
        """Return, of a truth in all states, that in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def among(self, found: StateValues, states: StateIndex) -> StateValues:
        """Return, of values in a set of states, those in the scope, on the host; at the cost of `of`."""
        places = self.places(states)
        return found.on_host() if places is None else found.at(places).on_host()

    def places(self, states: StateIndex) -> NDArray[np.int64] | None:
        """Return the numbers of the scope's states in a set, ascending; None for all states of the set."""
        if self.positions is None:
            return None
        if states is self.model.index:
            return self.positions
        inside = index_states(self.model.manager, states.states & self.index.states)
        return _positions(self.model, states, inside)

    def meets(self, states: Node) -> bool:
        """Return whether some state of a set is in the scope, of this process or another one."""
        return bool(self.index.states & states != self.model.manager.false)

    def indicator(self, states: Node) -> NDArray[np.bool_]:
        """Return membership of a set in the states of the scope, shape (index.size,)."""
        return self.model.indicator(states, self.index)

    def everywhere(self, inside: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
        """Return a mask over the scope as one over all `size` states, false outside."""
        if self.positions is None:
            return inside
        mask = np.zeros(size, dtype=np.bool_)
        mask[self.positions] = inside
        return mask


def _positions(model: SymbolicModel, index: StateIndex, subset: StateIndex) -> NDArray[np.int64]:
    """Return the numbers of a subset's states, ascending, shape (subset.size,)."""
    if subset.size < index.size // _FEW:
        return index.places(subset)
    return np.flatnonzero(model.indicator(subset.states, index))


VALUES = Capability[StateValues](
    lambda e, reason: UnsupportedError(reason), "{} is not supported by checking"
)
"""Functions from `OperatorQuery` to values in its scope."""
VALUES.found_in(
    {
        registry.AUTOMATON: "hybrid.analysis.ltl:hoa_probabilities",
        registry.CONDITIONAL: "hybrid.analysis.conditional:conditional_probabilities",
        registry.LTL: "hybrid.analysis.ltl:ltl_probabilities",
        registry.REPEATED: "hybrid.analysis.ctl:repeated_probabilities",
        registry.NEXT: "hybrid.analysis.until:next_probabilities",
        registry.REWARD_BOUNDED: "hybrid.analysis.reward_bounded:reward_bounded_probabilities",
        registry.REWARDS_BOUNDED: "hybrid.analysis.several_bounds:rewards_bounded_probabilities",
        registry.WINDOW: "hybrid.analysis.until:window_probabilities",
        registry.UNTIL: "hybrid.analysis.until:unbounded_probabilities",
        registry.STEADY: "hybrid.analysis.long_run:steady_probabilities",
        registry.AVERAGE: "hybrid.analysis.long_run:steady_rewards",
        registry.RATIO: "hybrid.analysis.long_run_ratios:ratio_averages",
        registry.DISCOUNTED: "hybrid.analysis.rewards:discounted_rewards",
        registry.CUMULATIVE: "hybrid.analysis.rewards:cumulative_rewards",
        registry.TOTAL: "hybrid.analysis.rewards:total_rewards",
        registry.INSTANTANEOUS: "hybrid.analysis.rewards:instantaneous_rewards",
        registry.ELAPSED_TIME: "hybrid.analysis.rewards:rewards_until",
        registry.REACHED: "hybrid.analysis.rewards:rewards_until",
        registry.COSAFE: "hybrid.analysis.rewards:cosafe_rewards",
    }
)
SCHEDULED = Capability[StateValues](
    lambda e, reason: UnsupportedError(reason), "a scheduler is not given for {}"
)
"""The same where a scheduler is requested that has to remember something."""
SCHEDULED.found_in(
    {
        registry.REPEATED: "hybrid.analysis.ltl:ltl_probabilities",
        registry.NEXT: "hybrid.analysis.ltl:ltl_probabilities",
        registry.REWARD_BOUNDED: "hybrid.analysis.several_bounds:rewards_bounded_probabilities",
        registry.WINDOW: "hybrid.analysis.several_bounds:rewards_bounded_probabilities",
        registry.CUMULATIVE: "hybrid.analysis.scheduled_steps:scheduled_steps",
        registry.INSTANTANEOUS: "hybrid.analysis.scheduled_steps:scheduled_steps",
    }
)


class OperatorQuery(Record):
    """The query of an operator; `path` is the path formula of P without the negations in front of it.

    `maximise` says which optimum of that path formula, or of a reward, is meant.  Other attributes are as for
    `operator_values`.
    """

    model: SymbolicModel
    formula: Any
    path: Any
    maximise: bool
    states: Callable[[Expression], Node]
    options: CheckOptions
    work: SolveStatistics
    maker: SchedulerBuilder | None
    scope: Scope

    def timed_reward(self) -> tuple[SymbolicModel, int, float, CheckOptions, SolveStatistics, Scope]:
        """Return model, reward structure, time, options, work and scope of a reward with a time."""
        time = self.number(self.formula.target.time)
        time = time if isinstance(time, int) else float(time)
        return self.model, self.formula.place, time, self.options, self.work, self.scope

    @staticmethod
    def number(expression: Expression) -> float:
        """Return a resolved number, which remembers the one that the text means."""
        if not isinstance(expression, Literal):
            raise UnsupportedError("the time or the discount is not a constant")
        return expression.value


def operator_values(
    model: SymbolicModel,
    formula: Probability | Reward | SteadyState,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the values of P, S, R or T in a scope, by default every state; of an MDP least or greatest ones.

    A `maker` is given the choices of an optimal scheduler of an MDP: one that forgets the past for path
    operators without bounds, else one with memory. Refused are operators without an algorithm, and negative
    rewards of an MDP.
    """
    scope = scope or Scope.every(model)
    if options.engine == "symbolic":
        on_diagrams = import_module("hybrid.analysis.on_diagrams")  # which takes its questions from here
        values: StateValues = on_diagrams.diagram_values(model, formula, states, options, work, scope).at(
            scope
        )
        return values
    quantity = asked_quantity(formula)
    function = (SCHEDULED if maker is not None and quantity in SCHEDULED else VALUES).of(formula)
    if quantity not in _BY_GRAPH:
        model.index.require_numbers()
    path, negations = formula.path if isinstance(formula, Probability) else None, 0
    if path is not None and quantity is not registry.LTL:
        path, negations = without_negations(path)
    maximise = (not model.is_mdp or maximises(formula)) != (negations % 2 == 1)
    found = function(OperatorQuery(model, formula, path, maximise, states, options, work, maker, scope))
    for _ in range(negations):
        found = found.complement()
    return found


@VALUES.answers(registry.NOW)
def _now(a: OperatorQuery) -> StateValues:
    return StateValues.exact(a.scope.indicator(a.states(a.path)).astype(np.float64))


def until_form(
    model: SymbolicModel, path: Path, states: Callable[[Expression], Node]
) -> tuple[Node, Node, bool]:
    """Return the safe and target states of a path operator as an until, and whether to take the complement.

    The operator is any but X, over state formulas, whose states `states` returns.
    """
    right, every = states(path.right), model.reachable
    left = every if path.left is None else states(path.left)
    no_left, no_right = every & ~left, every & ~right
    return {
        "U": (left, right, False),
        "F": (every, right, False),
        "G": (every, no_right, True),
        "W": (left & no_right, no_left & no_right, True),
        "R": (no_left, no_right, True),
    }[path.operator]


def maximises(formula: Probability | Reward | SteadyState) -> bool:
    """Return whether an operator of an MDP asks for the greatest value.

    One without a bound says which; it would not have been resolved otherwise.
    """
    if formula.optimum is not None:
        return formula.optimum == "max"
    return formula.comparison in ("<", "<=")
