"""The product of an MDP with the automata of all objectives, whose states remember the past.

On it every objective is one about where a run ends. A probability is that of ending in pairs whose automaton
accepts, a reward that of pairs and choices. A least probability is one less the greatest of the negation.
A long-run average is that of the end component in which the run stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.accepting_sets import AcceptedPart, meeting_parts
from hybrid.analysis.long_run_choices import rewards_of_choices, state_share
from hybrid.analysis.ltl import hoa_automaton, model_automaton, model_formulas, model_product
from hybrid.analysis.memory_scheduler import labels_of
from hybrid.analysis.precomputation import end_components, prob1e, staying_choices
from hybrid.analysis.rewards import free_choices, reward_units, rewards_of
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import PropertyError, UnsupportedError
from hybrid.matrix.operators.layer_choices import RewardOf, choice_totals
from hybrid.properties.automata.automaton import (
    MOST_PROPOSITIONS,
    Acceptance,
    DeterministicAutomaton,
    JoinedAutomata,
    all_accepted,
    component_fates,
    counting_automaton,
    joined_automata,
)
from hybrid.properties.automata.formulas import MOST_STEPS
from hybrid.properties.tree import (
    AutomatonPath,
    ConditionalPath,
    Cumulative,
    LongRun,
    MultiObjective,
    Probability,
    Reward,
    SteadyState,
)
from mtbdd.build.automaton_product import AutomatonProduct
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import Expression, Literal
from mtbdd.offset.states import StateIndex, index_states

# The objectives of `multi(...)`: formula, direction of the optimum, bound to be met.

MOST_OBJECTIVES = 12
"""Objectives of one property."""


@dataclass(frozen=True)
class Objective:
    """One objective.

    Attributes
    ----------
    path : Expression or None
        The path formula of a probability, or the automaton of a file; None for a reward, and in the long run.
    structure : int or None
        The reward structure, from 0.
    steps : int or None
        For how many steps the reward counts; None for ever.
    maximise : bool
        Whether more is better.
    bound : Fraction or None
        What is to be reached, or not to be exceeded; None where a value is requested.
    formula : Reward, SteadyState or None
        The question, where it is about the long run.
    """

    text: str
    path: Expression | None
    structure: int | None
    steps: int | None
    maximise: bool
    bound: Fraction | None
    formula: Reward | SteadyState | None = None

    @property
    def place(self) -> int:
        """Return the place of the reward structure of an objective that has one."""
        assert self.structure is not None
        return self.structure

    @property
    def demand(self) -> Fraction | None:
        """The bound where all objectives are maximised: of 1 - P for a least P, of -R for a least R."""
        if self.bound is None or self.maximise:
            return self.bound
        return (1 - self.bound) if self.path is not None else -self.bound  # lemma: turned

    def shown(self, lower: float, upper: float) -> tuple[float, float]:
        """Return bounds on the objective from bounds on its maximised form.

        Lemma: turned (docs/multi.md).
        """
        if self.path is None:
            found = (lower, upper) if self.maximise else (0.0 - upper, 0.0 - lower)
            return max(found[0], 0.0), found[1]
        if not self.maximise:
            lower, upper = rounded_down(1 - Fraction(upper)), rounded_up(1 - Fraction(lower))  # lemma: turned
        return max(lower, 0.0), min(upper, 1.0)


def _rational(value: float, text: str) -> Fraction:
    """Return the number that a bound stands for."""
    number = real_of(value)
    if not isinstance(number, (int, Fraction)):
        raise UnsupportedError(f"multi: expected a rational number as a bound, got {text}; write a decimal")
    return Fraction(number)


def objectives_of(formula: MultiObjective) -> list[Objective]:
    """Return the objectives of a resolved property.

    Rewards have to be gathered for ever or for some steps.
    """
    if len(formula.objectives) > MOST_OBJECTIVES:
        raise UnsupportedError(
            f"multi: expected at most {MOST_OBJECTIVES} objectives, got {len(formula.objectives)}"
        )
    return [_objective(e, text) for e, text in zip(formula.objectives, formula.texts, strict=True)]


def _objective(e: Expression, text: str) -> Objective:
    assert isinstance(e, (Probability, Reward, SteadyState))
    if e.comparison is None:
        maximise, bound = e.optimum == "max", None
    else:
        assert isinstance(e.threshold, Literal)
        maximise, bound = e.comparison == ">=", _rational(e.threshold.value, text)
    if isinstance(e, Probability):
        if isinstance(e.path, ConditionalPath):
            raise UnsupportedError(f"multi: conditional probabilities are no objectives, got {text}")
        return Objective(text, e.path, None, None, maximise, bound)
    if isinstance(e, SteadyState):
        return Objective(text, None, None, None, maximise, bound, e)
    if e.discount is not None:
        raise UnsupportedError(
            f"multi: discounted rewards are no objectives, got {text}; take the discount out"
        )
    if isinstance(e.target, LongRun):
        if e.target.divisor is not None:
            raise UnsupportedError(f"multi: ratios of rewards are no objectives, got {text}")
        return Objective(text, None, e.index, None, maximise, bound, e)
    if not isinstance(e.target, Cumulative):
        raise UnsupportedError(
            f"multi: expected a reward that is gathered for ever (C) or for some steps (C<=k), got {text}; "
            "rewards until a set is reached and at a step are no objectives: let the model earn nothing from "
            "there on"
        )
    steps = None
    if e.target.time is not None:
        assert isinstance(e.target.time, Literal)
        steps = int(e.target.time.value)
    return Objective(text, None, e.index, steps, maximise, bound)


# The automata of all objectives that are probabilities, over one list of propositions.


@dataclass(frozen=True, eq=False)
class ObjectiveAutomata:
    """Automata of the objectives, all over the same propositions.

    `names` are those of the propositions, `propositions` where each of them holds.
    """

    names: tuple[str, ...]
    propositions: list[Node]
    automata: dict[int, DeterministicAutomaton]


def objective_automata(
    model: SymbolicModel, objectives: Sequence[Objective], states: Callable[[Expression], Node], tool: str
) -> ObjectiveAutomata:
    """Return automata of formulas, from a tool (see `choose_automaton`), and automata of files.

    Refused are formulas that are not translated or whose automaton cannot be checked, and too many
    propositions.
    """
    paths = {i: o.path for i, o in enumerate(objectives) if o.path is not None}
    written = {i: path for i, path in paths.items() if not isinstance(path, AutomatonPath)}
    formulas = model_formulas(model, list(written.values()), states)
    known = list(formulas[0].propositions) if formulas else []
    found: dict[int, tuple[DeterministicAutomaton, list[Node]]] = {}
    for (i, _), formula in zip(written.items(), formulas, strict=True):
        chosen = model_automaton(formula, tool)
        if not chosen.proven:
            raise UnsupportedError(
                f"multi: {objectives[i].text} is too large for our own translation, so that the automaton of "
                "the tool cannot be checked, and nothing could be certified; simplify the formula"
            )
        found[i] = chosen.automaton, formula.propositions
    for i, path in paths.items():
        if isinstance(path, AutomatonPath):
            found[i] = hoa_automaton(model, path, states)
            for holds in found[i][1]:
                if _place(model, holds, known) is None:
                    known.append(holds)
    if len(known) > MOST_PROPOSITIONS:
        raise UnsupportedError(
            f"multi: expected at most {MOST_PROPOSITIONS} propositions of all objectives together, got "
            f"{len(known)}; ask for fewer objectives"
        )
    names = tuple(f"p{i}" for i in range(len(known)))
    automata = {
        i: automaton.reading(names, [_values(model, node, known) for node in holds])
        for i, (automaton, holds) in found.items()
    }
    return ObjectiveAutomata(names, known, automata)


def _place(model: SymbolicModel, holds: Node, known: Sequence[Node]) -> tuple[int, bool] | None:
    """Return which proposition a set is, and whether that or its negation; -1 for all states or none."""
    everywhere = model.reachable
    for i, node in enumerate((everywhere, *known), start=-1):
        if holds == node or holds == everywhere & ~node:
            return i, holds == node
    return None


def _values(model: SymbolicModel, holds: Node, known: Sequence[Node]) -> NDArray[np.bool_]:
    """Return by letter over known propositions whether a state with that letter is in a set."""
    letters = np.arange(1 << len(known))
    place = _place(model, holds, known)
    assert place is not None
    i, same = place
    true = np.ones(letters.size, np.bool_) if i < 0 else (letters >> i & 1).astype(np.bool_)
    return true if same else ~true


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ObjectiveProduct:
    """Reachable pairs of a state and what the objectives need to know of the past.

    Of probabilities that the pair of every end component decides, `accepted` has the pairs that accept; of
    the others `conditions` has the condition on the marks of the product. Of rewards in total `rewards` has
    the structure of `model` and the pairs in which it counts, None for all. Of long-run averages `averages`
    has the structure, or the pairs in which time counts.
    """

    model: SymbolicModel
    product: AutomatonProduct
    objectives: tuple[Objective, ...]
    accepted: dict[int, Node]
    conditions: dict[int, Acceptance]
    rewards: dict[int, tuple[int, Node | None]]
    averages: dict[int, int | Node]

    def earned(self, objective: int, layer: int, rows: StateIndex) -> Vector:
        """Return what a layer's choices earn of a reward objective, shape (rows.size,)."""
        structure, counted = self.rewards[objective]
        found = rewards_of(self.model, structure)(layer, rows)
        if counted is not None:
            found = np.where(self.model.indicator(counted, rows), found, 0.0)
        return found

    def units(self, objective: int) -> float:
        """Return the greatest relative error of what is earned, in units of rounding."""
        own = self.averages.get(objective)
        structure = self.rewards[objective][0] if own is None else own
        return reward_units(self.model, structure) if isinstance(structure, int) else 0.0

    def averaged(self, objective: int) -> RewardOf:
        """Return what choices earn of which a long-run average is asked; refuse what is below zero."""
        found = self.averages[objective]
        if isinstance(found, int):
            return rewards_of_choices(self.model, found)
        return state_share(self.model, found)


def objective_product(
    model: SymbolicModel,
    objectives: Sequence[Objective],
    states: Callable[[Expression], Node],
    options: CheckOptions,
) -> ObjectiveProduct:
    """Return the product of an MDP with the automata of some objectives.

    Refused are formulas that are not translated, too many propositions or states of the automata,
    probabilities that add up to 1 only roughly, negative rewards, and automata of files that do not fit.
    """
    is_long_run = all(objective.formula is not None for objective in objectives)
    for layer in () if is_long_run else range(len(model.layers)):
        if choice_totals(model, layer, model.index) is not None:
            raise UnsupportedError(
                "multi: expected probabilities that add up to 1, got choices where they do so only roughly; "
                "write them with more digits or as fractions"
            )
    read = objective_automata(model, objectives, states, options.automaton_tool)
    automata = list(read.automata.values())
    place = {i: k for k, i in enumerate(read.automata)}
    counters: dict[int, int] = {}
    for objective in objectives:
        if objective.steps is not None and objective.steps not in counters:
            if objective.steps > MOST_STEPS:
                raise UnsupportedError(
                    f"multi: expected rewards of at most {MOST_STEPS} steps, got C<={objective.steps}"
                )
            counters[objective.steps] = len(automata)
            automata.append(counting_automaton(read.names, objective.steps))
    if not automata:
        automata = [counting_automaton((), 0)]
    joined = joined_automata(automata)
    structures = sorted({o.structure for o in objectives if o.structure is not None})
    labels = labels_of(model)
    product = model_product(
        model, joined.automaton, read.propositions, options, structures, labels, model.initial
    )
    # An automaton of one state leaves the model with all of its structures.
    earned = structures if product.model is model else range(len(structures))
    accepted: dict[int, Node] = {}
    conditions: dict[int, Acceptance] = {}
    rewards: dict[int, tuple[int, Node | None]] = {}
    averages: dict[int, int | Node] = {}
    for i, objective in enumerate(objectives):
        if isinstance(objective.formula, SteadyState):
            averages[i] = product.lifted(states(objective.formula.states)) & product.model.reachable
            continue
        if objective.structure is not None:
            structure = earned[structures.index(objective.structure)]
            if objective.formula is not None:
                averages[i] = structure
                continue
            counted = None
            if objective.steps is not None:
                counted = _within(product, joined, counters[objective.steps], set(range(objective.steps)))
            rewards[i] = (structure, counted)
            continue
        components, fates = component_fates(automata[place[i]])
        if None in fates:
            condition = joined.conditions[place[i]]
            conditions[i] = condition if objective.maximise else condition.negated()  # lemma: turned
        else:
            wanted = {q for q, c in enumerate(components.tolist()) if fates[c] == objective.maximise}
            accepted[i] = _within(product, joined, place[i], wanted)
    return ObjectiveProduct(
        product.model, product, tuple(objectives), accepted, conditions, rewards, averages
    )


def _within(product: AutomatonProduct, joined: JoinedAutomata, automaton: int, states: set[int]) -> Node:
    """Return the pairs in which one of the automata is in one of some states."""
    own = joined.states[:, automaton].tolist()
    return product.within(q for q, state in enumerate(own) if state in states)


# Absorption of runs: end components without rewards, and the objectives that staying there satisfies.
#
# A run of any scheduler stays in an end component almost surely from some time on.  Where it pays there for
# ever, a reward is infinite: to be refused where more is better, to be avoided where less is.  So schedulers
# are left that surely come to an end component with free choices alone and, in it, visit the accepting sets
# of some of the automata again and again ([EKVY08]).  To stop there becomes one more choice.  Long-run
# averages are those of the end component: what they are worth is part of what stopping is worth.

MOST_REPEATED = 6
"""Objectives with automata that have to meet marks again and again."""


@dataclass(frozen=True, eq=False)
class Endings:
    """The pairs from which runs surely end, by choices that do not give that up, and what they win then.

    `initial` is the first pair's place among them, -1 where another process has it; `kept` has for every
    layer the pairs whose choice may be taken, `free` the pairs of end components with free choices alone. The
    objectives that every end component decides are won where `decided` says; `sets` has what else staying
    wins together, and in which pairs. Where there are long-run averages `homes` has for each of them disjoint
    end components that win it, and the sets of pairs to meet again and again for that.
    """

    space: ObjectiveProduct
    pairs: StateIndex
    initial: int
    kept: tuple[Node, ...]
    free: Node
    sets: tuple[tuple[frozenset[int], NDArray[np.bool_]], ...]
    decided: dict[int, NDArray[np.bool_]]
    homes: tuple[tuple[EndComponents, tuple[Node, ...]], ...] = ()

    @property
    def may_stop(self) -> NDArray[np.bool_]:
        """Pairs in which a run may stay for ever, shape (pairs.size,)."""
        return self.sets[0][1]

    def at_start(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
        """Return the value of the first pair, the same in all processes."""
        own = float(values[self.initial]) if self.initial >= 0 else 0.0
        return float(self.space.model.communicator.total([own])[0])

    def worth(
        self, weights: Sequence[float], staying: Callable[[int], Vector | float]
    ) -> tuple[Vector, NDArray[np.int64]]:
        """Return what stopping is worth in every pair, and the number of the set it wins.

        Minus infinity where no run may stop. `staying` says by number of a set what averages are worth.
        """
        best = np.full(self.pairs.size, -np.inf)
        chosen = np.zeros(self.pairs.size, np.int64)
        for number, (won, where) in enumerate(self.sets):
            value = np.broadcast_to(sum(weights[i] for i in won) + staying(number), best.shape)
            # Of equal ones the later, which may win more: then nothing else is won by visiting everything.
            better = where & (value >= best)
            best[better], chosen[better] = value[better], number
        for i, where in self.decided.items():
            best = best + weights[i] * where
        return best, chosen

    def missed(self, weights: Sequence[float], sets: NDArray[np.int64], lacking: Vector | float) -> Vector:
        """Return what stopping misses of all weights where it wins some sets; infinity where none may.

        `lacking` is what averages miss.
        """
        worst = [sum(weights[i] for i in self.space.conditions if i not in won) for won, _ in self.sets]
        found = np.array(worst, np.float64)[sets] + lacking
        for i, where in self.decided.items():
            found = found + weights[i] * ~where
        return np.where(self.sets[0][1], found, np.inf)

    def wins(self, objective: int, sets: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return in which pairs stopping, with the numbers of the sets that it wins, wins an objective."""
        decided = self.decided.get(objective)
        return np.array([objective in won for won, _ in self.sets])[sets] if decided is None else decided

    def components(self, priced: Sequence[int]) -> EndComponents:
        """Return the end components in which some rewards are not earned."""
        return end_components(self.space.model, self.pairs.states, self.unpaid(priced))

    def parts(self, number: int) -> list[AcceptedPart]:
        """Return where runs may stay for ever, for nothing, and win the set of objectives with a number."""
        space = self.space
        unpaid = self.unpaid([i for i in space.rewards if not space.objectives[i].maximise])
        return _winning_parts(space, sorted(self.sets[number][0]), self.pairs.states, unpaid)

    def unpaid(self, priced: Sequence[int]) -> list[Node]:
        """Return for every layer the pairs whose choice is kept and earns nothing of some rewards."""
        return _unpaid(self.space, self.pairs.states, self.kept, priced)


def endings(space: ObjectiveProduct) -> Endings | None:
    """Return where runs may end; None if under every scheduler some least reward is infinite.

    Refused are greatest rewards that are infinite, and too many automata of what happens again and again.
    """
    model = space.model
    costs = [i for i in space.rewards if not space.objectives[i].maximise]
    gains = [i for i in space.rewards if space.objectives[i].maximise]
    enabled = [layer.enabled for layer in model.layers]
    states, kept = model.reachable, enabled
    if costs:
        free = _unpaid(space, states, enabled, costs)
        states = prob1e(model, states, end_components(model, states, free).states)  # lemma: endings
        kept = staying_choices(model, states)
    ends = end_components(model, states, kept)
    for i in gains:
        _refuse_endless(space, i, ends, states, kept)
    if states & model.initial == model.manager.false:
        return None
    unpaid = _unpaid(space, states, kept, costs)
    free_ends = end_components(model, states, unpaid)
    pairs = index_states(model.manager, states)
    sets = [(frozenset[int](), model.indicator(free_ends.states, pairs))]
    # lemma: staying
    homes: list[tuple[EndComponents, tuple[Node, ...]]] = [(free_ends, ())] if space.averages else []
    repeated = sorted(space.conditions)
    if len(repeated) > MOST_REPEATED:
        raise UnsupportedError(
            f"multi: expected at most {MOST_REPEATED} objectives about what happens again and again, got "
            f"{len(repeated)}"
        )
    for size in range(1, len(repeated) + 1):
        for won in combinations(repeated, size):
            parts = _winning_parts(space, won, states, unpaid)
            if space.averages:
                homes += [(end_components(model, p.states, p.choices), p.wanted) for p in parts]
                found = [part.states for part in parts]
            else:
                found = [model.manager.disjunction(part.states for part in parts)] if parts else []
            sets += [(frozenset(won), model.indicator(where, pairs)) for where in found]
    decided = {i: model.indicator(where, pairs) for i, where in space.accepted.items()}
    first = np.flatnonzero(model.indicator(model.initial, pairs))
    initial = int(first[0]) if first.size else -1
    ways = tuple(kept), free_ends.states, tuple(sets), decided, tuple(homes)
    return Endings(space, pairs, initial, *ways)


def _unpaid(space: ObjectiveProduct, states: Node, kept: Sequence[Node], priced: Sequence[int]) -> list[Node]:
    """Return for every layer the pairs of a set whose choice is kept and earns nothing of some rewards."""
    return free_choices(space.model, states, kept, [partial(space.earned, i) for i in priced])


def _refuse_endless(
    space: ObjectiveProduct, objective: int, ends: EndComponents, states: Node, kept: Sequence[Node]
) -> None:
    """Refuse a greatest reward that can be earned for ever."""
    unpaid = _unpaid(space, states, kept, [objective])
    for component in (ends.single, *ends.components):
        for choices, free in zip(component.choices, unpaid, strict=True):
            if choices & ~free != space.model.manager.false:  # lemma: endings
                raise PropertyError(
                    f"multi: {space.objectives[objective].text} can be infinite: there is an end component "
                    "in which it is earned for ever; let the model end, or give steps with C<=k"
                )


def _winning_parts(
    space: ObjectiveProduct, won: Sequence[int], states: Node, unpaid: Sequence[Node]
) -> list[AcceptedPart]:
    """Return the end components with free choices in which some conditions can be met together.

    Those that meet them alike, by the same marks, are one part.
    """
    manager, joined = space.model.manager, []
    condition = all_accepted(space.conditions[i] for i in won)
    for needed, parts in meeting_parts(space.product, condition, states, unpaid):
        met = manager.disjunction(part.states for part in parts)
        layers = zip(*(part.choices for part in parts), strict=True)
        choices = tuple(manager.disjunction(own) & met for own in layers)
        joined.append(AcceptedPart(met, choices, tuple(met & marked for marked in needed)))
    return joined
