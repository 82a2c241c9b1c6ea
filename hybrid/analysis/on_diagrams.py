"""Quantities whose vectors are decision diagrams: until, steps, and expected rewards, between bounds.

Each number has a bound on both sides: entries by their units, rows divided by their sums, steps as
`hybrid.solvers.diagram_iteration` rounds them. The graph decides on sets, as for the other engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.operator_values import OperatorQuery, Scope, maximises, until_form
from hybrid.analysis.precomputation import decided_states, end_components, prob1a, prob1e, staying_choices
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import TimeWindow
from hybrid.base.directed_rounding import divided, outward
from hybrid.base.errors import NotConvergedError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.matrix.space.base import Clock, Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.properties import registry
from hybrid.properties.registry import Capability, asked_quantity, without_negations
from hybrid.properties.tree import Probability, Reward, SteadyState
from hybrid.solvers.diagram_iteration import DiagramBounds, DiagramIteration, in_steps
from hybrid.solvers.diagram_system import UNREACHED, DiagramChoice, DiagramSystem
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reach import Leaps
from mtbdd.build.rewards import symbolic_reward
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.node_store import DOWN, UP, Diagram, NodeStore
from mtbdd.diagrams.relation import Relation
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.language.syntax import ELAPSED, Expression, Literal, ModelType

Values = NDArray[np.float64]
Enclosure = tuple[int, int]
"""Of a store, a function that is at most the exact one, and one that is at least it."""

_FEW = 1 << 13
"""States up to which equations are solved although the graph alone would decide."""

MOST_LISTED = 1 << 22
"""States whose values are read one by one, at most."""

VALUES = Capability["DiagramValues"](
    lambda e, reason: UnsupportedError(f"{reason}: choose {option('engine', 'hybrid')}"),
    "{} is not answered by the engine symbolic",
)
"""Functions from `OperatorQuery` to bounds that are diagrams."""


@dataclass(frozen=True, eq=False)
class DiagramValues:
    """Bounds on a quantity in every reachable state.

    Attributes
    ----------
    model : SymbolicModel
    lower : Diagram
        Over row bits.
    upper : Diagram or None
        None where no bound below `most` was found.
    unknown : Node
        The states whose bounds these are; in the others the graph decides.
    one, infinite : Node
        Where the value is 1, and where it is infinite; it is 0 in the rest.
    most : float
        What no value exceeds: 1, or infinity.
    is_open : bool
        Whether values of `unknown` lie strictly between 0 and `most`.
    complements : int
        How often the value is to be taken from 1.
    """

    model: SymbolicModel
    lower: Diagram
    upper: Diagram | None
    unknown: Node
    one: Node
    infinite: Node
    most: float
    is_open: bool = False
    complements: int = 0

    def complement(self) -> DiagramValues:
        """Return one minus the values."""
        return replace(self, complements=self.complements + 1)

    def at(self, scope: Scope) -> StateValues:
        """Return the values in the states of a scope; UnsupportedError where these are too many."""
        index = scope.index
        if index.size > MOST_LISTED:
            raise UnsupportedError(
                f"values of {index.size:,} states one by one: expected {MOST_LISTED:,} at most; ask about "
                f"fewer, or choose {option('engine', 'hybrid')}"
            )
        inside = scope.indicator(self.unknown)
        known = scope.indicator(self.one).astype(np.float64)
        known[scope.indicator(self.infinite)] = np.inf
        bits = index.bits_at(np.flatnonzero(inside))
        lower = _values_at(self.model, self.lower, bits)
        upper = self.upper
        above = np.full(lower.size, self.most) if upper is None else _values_at(self.model, upper, bits)
        return self._finished(self._bounded(lower, above).spread(inside, known))

    def extremes(self, states: Node) -> StateValues:
        """Return values with the least and the greatest bounds of those in a set, which is not empty.

        Their minimum and maximum are those of the set, and comparisons hold for all or some of them if they
        do in the set.
        """
        manager, ends = self.model.manager, [np.zeros((0, 2))]
        some = states & self.unknown
        if some != manager.false:
            store = _store(self.model)
            mark, found = _indicator(store, self.model, some), []
            for part in (self.lower, self.upper):
                if part is None:
                    found.append(np.array([self.most, self.most]))
                    continue
                values, marked = store.leaf_pairs(store.insert(part), mark)
                own = values[marked == 1.0]
                found.append(np.array([own.min(), own.max()]))
            ends.append(np.stack(found, axis=1))
        rest = states & ~self.unknown
        for own, value in (
            (rest & self.one, 1.0),
            (rest & self.infinite, np.inf),
            (rest & ~self.one & ~self.infinite, 0.0),
        ):
            if own != manager.false:
                ends.append(np.full((1, 2), value))
        lower, upper = np.concatenate(ends).T
        n_known = sum(len(part) for part in ends[2 if some != manager.false else 1 :])
        bounded = np.arange(lower.size) < lower.size - n_known
        known = lower.copy()
        return self._finished(self._bounded(lower[bounded], upper[bounded]).spread(bounded, known))

    def where(self, compare: Callable[[StateValues], StateTruth]) -> Node:
        """Return the reachable states whose values satisfy a comparison.

        Raises UnknownError where bounds do not tell. Time: O(pairs of nodes of both bounds that meet).
        """
        manager, known = self.model.manager, self.model.reachable & ~self.unknown
        found = manager.false
        for states, value in (
            (known & self.one, 1.0),
            (known & self.infinite, np.inf),
            (known & ~self.one & ~self.infinite, 0.0),
        ):
            exact = self._finished(StateValues.exact(np.array([value])))
            if states != manager.false and compare(exact).values[0]:
                found = found | states
        if self.unknown == manager.false:
            return found
        store = _store(self.model)
        lower = store.insert(self.lower)
        if self.upper is None:
            below = store.values(lower)
            above = np.full(below.size, self.most)
        else:
            below, above = store.leaf_pairs(lower, store.insert(self.upper))
        truth = compare(self._finished(self._bounded(below, above)))
        if truth.unknown is not None:  # lemma: comparison
            raise UnknownError(truth.reason)
        # A lower bound that belongs to a value on one side is that of no value on the other side.
        holds = below[truth.values]
        inside = store.mapped(lower, lambda values: np.isin(values, holds).astype(np.float64))
        return found | (_set_of(self.model, store.extract(inside)) & self.unknown)

    def _bounded(self, lower: Values, upper: Values) -> StateValues:
        if np.array_equal(lower, upper):
            found = StateValues.exact(lower)
        else:
            with np.errstate(invalid="ignore"):
                middle = np.where(np.isinf(upper), lower, lower + 0.5 * (upper - lower))
            found = StateValues(np.clip(middle, lower, upper), lower, upper)
        return found.within(0.0, self.most) if self.is_open else _cut(found, self.most)

    def _finished(self, found: StateValues) -> StateValues:
        for _ in range(self.complements):
            found = found.complement()
        return found


def _cut(found: StateValues, most: float) -> StateValues:
    """Return values of at most a number."""
    if found.is_exact:
        return StateValues.exact(np.minimum(found.values, most))
    return StateValues(*(np.minimum(part, most) for part in (found.values, found.lower, found.upper)))


def _set_of(model: SymbolicModel, x: Diagram) -> Node:
    """Return where a function of the row bits is 1.  Time: one package call a node."""
    manager, found = model.manager, list[Node]()
    for level, low, high in x.nodes.tolist():
        if level == x.bottom:
            found.append(manager.true if x.values[low] == 1.0 else manager.false)
        else:
            bit = manager.bdd.var(manager.rows[level // 3])
            found.append(manager.bdd.ite(bit, found[high], found[low]))
    return found[-1]


def _values_at(model: SymbolicModel, x: Diagram, bits: NDArray[np.bool_]) -> Values:
    """Return a function's values for some assignments of the row bits."""
    node = np.full(bits.shape[0], x.n_nodes - 1, dtype=np.int64)
    for bit in range(bits.shape[1]):
        here = x.nodes[node, 0] == model.manager.row_level(bit)
        node = np.where(here, x.nodes[node, 1 + bits[:, bit].astype(np.int64)], node)
    found: Values = x.values[x.nodes[node, 1]]
    return found


def diagram_values(
    model: SymbolicModel,
    formula: Probability | Reward | SteadyState,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
    scope: Scope,
) -> DiagramValues:
    """Return the values of P or R as diagrams; asked are those of a scope.

    Raises UnsupportedError for what the engine does not answer, and NotConvergedError.
    """
    function = VALUES.of(formula)
    path, negations = formula.path if isinstance(formula, Probability) else None, 0
    if path is not None and asked_quantity(formula) is not registry.NOW:
        path, negations = without_negations(path)
    maximise = (not model.is_mdp or maximises(formula)) != (negations % 2 == 1)
    found = function(OperatorQuery(model, formula, path, maximise, states, options, work, None, scope))
    for _ in range(negations):
        found = found.complement()
    return found


# ------------------------------------------------------------------ matrices and rewards


def _store(model: SymbolicModel) -> NodeStore:
    return NodeStore(model.manager.index_level)


def _loaded(store: NodeStore, matrix: SymbolicMatrix) -> int:
    work = ValueDiagrams(store.bottom)
    return store.insert(Diagram.of(work, work.load(matrix)))


def _indicator(store: NodeStore, model: SymbolicModel, states: Node) -> int:
    """Return 1 in some states, and 0 elsewhere."""
    return _loaded(store, SymbolicMatrix(model.manager, states, np.ones(1)))


def _widened(store: NodeStore, x: int, units: float) -> Enclosure:
    """Return bounds on numbers that are off by at most so many units.

    Lemma: entry-units (docs/bounds.md).
    """
    if units == 0.0:
        return x, x

    def off(values: Values) -> tuple[Values, Values]:
        return outward(values, np.abs(values) * (units * UNIT))  # lemma: entry-units

    lower = store.mapped(x, lambda values: np.maximum(off(values)[0], 0.0))
    return lower, store.mapped(x, lambda values: off(values)[1])


def _inverse(store: NodeStore, x: Enclosure) -> Enclosure:
    """Return bounds on one over a function, where that is not 0."""

    def over(values: Values, side: int) -> Values:
        zero = values == 0
        return np.where(zero, 0.0, divided(np.ones_like(values), np.where(zero, 1.0, values))[side])

    return store.mapped(x[1], lambda v: over(v, 0)), store.mapped(x[0], lambda v: over(v, 1))


def _probabilities(
    store: NodeStore, model: SymbolicModel, layer: int, rows: Node
) -> tuple[Enclosure, Enclosure | None]:
    """Return the rows of some states, divided by their sums, and one over these sums; None where all are 1.

    Lemmas: entry-units, diagram-rounding (docs/bounds.md).
    """
    matrix = model.layer(layer).matrix.only(rows)
    entries = _widened(store, _loaded(store, matrix), matrix.units)
    one = store.constant(1.0)
    sums = (store.matrix_product(entries[0], one, DOWN), store.matrix_product(entries[1], one, UP))
    if all(set(store.values(part).tolist()) <= {0.0, 1.0} for part in sums):
        return entries, None
    inverse = _inverse(store, sums)
    return _products(store, entries, inverse), inverse


def _products(store: NodeStore, f: Enclosure, g: Enclosure) -> Enclosure:
    """Return bounds on a product, value by value.

    Lemma: diagram-rounding (docs/bounds.md).
    """
    return store.product(f[0], g[0], DOWN), store.product(f[1], g[1], UP)


def _earned(
    store: NodeStore, model: SymbolicModel, structure: int, rows: Node, layer: int | None = None
) -> list[tuple[int, float]]:
    """Return the diagrams of what some states earn, by one layer or by all, with their errors in units.

    Rewards below zero are refused.
    """
    if structure == ELAPSED:
        return []
    reward = symbolic_reward(model, structure)
    choices = reward.choices if layer is None else reward.choices[layer : layer + 1]
    found = []
    for part in (m.only(rows) for m in (reward.states, *choices) if m is not None):
        own = _loaded(store, part)
        if bool((store.values(own) < 0).any()) or not np.isfinite(part.units):
            raise UnsupportedError(
                f"rewards below zero are not answered by the engine symbolic: choose "
                f"{option('engine', 'hybrid')}"
            )
        found.append((own, part.units))
    return found


def _gain(
    store: NodeStore, model: SymbolicModel, structure: int, layer: int, rows: Node, inverse: Enclosure | None
) -> Enclosure:
    """Return what a step or a stay in some states earns.

    Lemma: entry-units (docs/bounds.md).
    """
    if structure == ELAPSED:
        one = _indicator(store, model, rows)
        found = (one, one)
    else:
        found = (0, 0)
        for own, units in _earned(store, model, structure, rows, layer):
            below, above = _widened(store, own, units)  # lemma: entry-units
            found = (store.sum(found[0], below, DOWN), store.sum(found[1], above, UP))
    if model.type is ModelType.CTMC and inverse is not None:
        return _products(store, found, inverse)
    return found


def _system(
    a: OperatorQuery,
    store: NodeStore,
    rows: Node,
    known: Node,
    maximise: bool,
    structure: int | None = None,
    allowed: Sequence[Node] | None = None,
) -> DiagramSystem:
    """Return the equations of some states, known to be 1 in others; what a structure earns counts.

    Refused where another engine was chosen, which takes what the graph decides alone.
    """
    if a.options.engine != "symbolic":
        a.model.index.require_numbers()
    model, store.most_results = a.model, a.work.most_results
    choices = []
    for layer, own in enumerate(model.layers):
        enabled = rows & (own.enabled if allowed is None else allowed[layer])
        if enabled == model.manager.false and model.is_mdp:
            continue
        matrix, inverse = _probabilities(store, model, layer, enabled)
        gain = None if structure is None else _gain(store, model, structure, layer, enabled, inverse)
        barred = None
        missing = rows & ~enabled
        if not maximise and missing != model.manager.false:
            barred = store.mapped(_indicator(store, model, missing), lambda values: values * UNREACHED)
        choices.append(DiagramChoice(matrix, gain, barred))
    known_ones = _indicator(store, model, known)
    return DiagramSystem(store, choices, maximise, known_ones, model.n_states, lambda: _counter(model))


def _counter(model: SymbolicModel) -> tuple[tuple[int, ...], bool]:
    """Return the levels of a counter along which paths run, and whether it falls backward; none of none."""
    leaps = Leaps(model.encoding.counters, model.relations, Relation.preimage, None)
    for layers in leaps.running():
        return tuple(model.manager.row_level(bit) for bit in layers.bits), layers.is_down
    return (), False


def _solved(a: OperatorQuery, system: DiagramSystem, what: str) -> DiagramBounds:
    """Iterate until the bounds are close."""
    criterion = a.options.criterion
    clock = Clock(a.work.progress, criterion.epsilon)
    found = DiagramIteration(system, criterion, clock).run()
    _account(a.work, system, found.lower, "optimistic", found.iterations, found.products, found.seconds)
    if found.status not in (Status.CONVERGED, Status.INTERRUPTED):
        error = NotConvergedError(what, found.status, found.iterations, found.difference)
        a.work.settle_for(error, True)
    return found


def _account(
    work: SolveStatistics,
    system: DiagramSystem,
    x: Diagram,
    method: str,
    iterations: int,
    products: int,
    seconds: float,
) -> None:
    work.note(method, system, iterations, seconds, 2 * x.nbytes)
    work.products += products


# ------------------------------------------------------------------ quantities


@VALUES.answers(registry.NOW)
def _now(a: OperatorQuery) -> DiagramValues:
    return _decided(a.model, a.states(a.path), a.model.manager.false, 1.0)


def _decided(model: SymbolicModel, one: Node, infinite: Node, most: float) -> DiagramValues:
    """Return values that the graph decides everywhere."""
    zero = Diagram.constant(model.manager.index_level, 0.0)
    return DiagramValues(model, zero, zero, model.manager.false, one, infinite, most)


@VALUES.answers(registry.UNTIL)
def _until(a: OperatorQuery) -> DiagramValues:
    safe, target, complement = until_form(a.model, a.path, a.states)
    found = _until_values(a, safe, target, a.maximise != complement)
    return found.complement() if complement else found


def _until_values(a: OperatorQuery, safe: Node, target: Node, maximise: bool) -> DiagramValues:
    """Return the probability of ``safe U target``; a scope without undecided states needs no iteration."""
    model, false = a.model, a.model.manager.false
    if model.is_mdp:
        zero, one = decided_states(model, safe, target, maximise)
    else:
        zero = prob0(model, safe, target)
        one = prob1(model, safe, target, zero)
    unknown = model.reachable & ~zero & ~one
    if not a.scope.meets(unknown):
        return _decided(model, one, false, 1.0)
    if _is_decided_inside(a):
        zero_everywhere = Diagram.constant(model.manager.index_level, 0.0)
        return DiagramValues(model, zero_everywhere, None, unknown, one, false, 1.0, is_open=True)
    found = _solved(a, _system(a, _store(model), unknown, one, maximise), "until probabilities")
    return DiagramValues(model, found.lower, found.upper, unknown, one, false, 1.0, is_open=True)


def _is_decided_inside(a: OperatorQuery) -> bool:
    """Return whether probabilities of an until strictly between 0 and 1 are compared with one of these."""
    threshold = a.formula.threshold
    is_asked = asked_quantity(a.formula) is registry.UNTIL and a.formula.comparison is not None
    is_end = isinstance(threshold, Literal) and float(threshold.value) in (0.0, 1.0)
    return is_asked and is_end and a.model.n_states > _FEW


@VALUES.answers(registry.NEXT)
def _next(a: OperatorQuery) -> DiagramValues:
    return _after(a, a.model.reachable, a.states(a.path.right), 1, a.maximise)


@VALUES.answers(registry.WINDOW)
def _window(a: OperatorQuery) -> DiagramValues:
    _refuse_times(a.model)
    model, window = a.model, TimeWindow.of(a.path.bound, False)
    safe, target, complement = until_form(model, a.path, a.states)
    maximise = a.maximise != complement
    if window.upper is not None and window.upper < window.lower:
        found = _now(replace(a, path=None, states=lambda _: model.manager.false))
    elif window.upper is None:
        found = _until_values(replace(a, scope=Scope.every(model)), safe, target, maximise)
    else:
        rows, length = safe & ~target, int(window.upper - window.lower)
        store = _store(model)
        one = _indicator(store, model, target)
        found = _stepped(a, _system(a, store, rows, target, maximise), (one, one), length, 1.0)
    if window.lower > 0:
        store = _store(model)
        system = _system(a, store, safe, model.manager.false, maximise)
        found = _stepped(a, system, _everywhere(store, found), int(window.lower), 1.0)
    return found.complement() if complement else found


def _everywhere(store: NodeStore, found: DiagramValues) -> Enclosure:
    """Store the bounds of all states, those that the graph decides among them."""
    model = found.model
    if found.unknown == model.manager.false:
        one = _indicator(store, model, found.one)
        return one, one
    # Vectors of an until have the known states among their own.
    upper = found.upper
    above = _indicator(store, model, model.reachable) if upper is None else store.insert(upper)
    return store.insert(found.lower), above


def _after(a: OperatorQuery, rows: Node, target: Node, steps: int, maximise: bool) -> DiagramValues:
    """Return the probability to be in a set after some steps."""
    store = _store(a.model)
    start = _indicator(store, a.model, target)
    system = _system(a, store, rows, a.model.manager.false, maximise)
    return _stepped(a, system, (start, start), steps, 1.0)


def _stepped(
    a: OperatorQuery, system: DiagramSystem, start: Enclosure, steps: int, most: float
) -> DiagramValues:
    """Return the values that so many steps make of others."""
    model, false = a.model, a.model.manager.false
    clock = Clock(a.work.progress, steps=steps)
    lower, upper, products = in_steps(system, start, steps, clock)
    _account(a.work, system, lower, "steps", steps, products, clock.seconds)
    return DiagramValues(model, lower, upper, model.reachable, false, false, most)


def _refuse_times(model: SymbolicModel) -> None:
    """Refuse windows of time, which take Poisson weights."""
    if model.type is ModelType.CTMC:
        raise UnsupportedError(
            "windows of time of a CTMC are not answered by the engine symbolic: choose "
            f"{option('engine', 'hybrid')}"
        )


@VALUES.answers(registry.CUMULATIVE)
def _cumulative(a: OperatorQuery) -> DiagramValues:
    _refuse_times(a.model)
    model, structure, steps, *_ = a.timed_reward()
    system = _system(a, _store(model), model.reachable, model.manager.false, a.maximise, structure)
    return _stepped(a, system, (0, 0), int(steps), np.inf)


@VALUES.answers(registry.REACHED, registry.ELAPSED_TIME)
def _reached(a: OperatorQuery) -> DiagramValues:
    model, structure, manager = a.model, a.formula.place, a.model.manager
    target, allowed = a.states(a.formula.target.right), None
    if not model.is_mdp:
        finite = prob1(model, model.reachable, target, prob0(model, model.reachable, target))
    elif a.maximise:
        finite = prob1a(model, model.reachable, target)
    else:
        finite = prob1e(model, model.reachable, target)
        allowed = staying_choices(model, finite)
    unknown, infinite = finite & ~target, model.reachable & ~finite
    if a.scope.meets(infinite):
        _earned(_store(model), model, structure, model.reachable)  # refuses what need not add up to anything
    if not a.scope.meets(unknown):
        return _decided(model, manager.false, infinite, np.inf)
    if allowed is not None:
        _refuse_free(model, structure, unknown, allowed)
    system = _system(a, _store(model), unknown, manager.false, a.maximise, structure, allowed)
    found = _solved(a, system, "reachability rewards")
    return DiagramValues(model, found.lower, found.upper, unknown, manager.false, infinite, np.inf)


def _refuse_free(model: SymbolicModel, structure: int, unknown: Node, allowed: Sequence[Node]) -> None:
    """Refuse a least reward where a scheduler may stay for ever and earn nothing: equations do not see it."""
    if structure == ELAPSED:
        return
    reward, manager = symbolic_reward(model, structure), model.manager
    free = []
    for layer, own in enumerate(allowed):
        paid = manager.false
        for part in (reward.states, reward.choices[layer]):
            if part is not None:
                paid = paid | part.support()
        free.append(own & unknown & ~paid)
    if end_components(model, unknown, free).states != manager.false:
        raise UnsupportedError(
            "least rewards where a scheduler may stay for nothing are not answered by the engine symbolic: "
            f"choose {option('engine', 'hybrid')}"
        )
