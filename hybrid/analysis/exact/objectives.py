"""Several objectives in rational numbers: points that schedulers reach, mixtures that meet bounds exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.exact.formulas import ExactFormulas, compare_exactly
from hybrid.analysis.exact.optima import WORK
from hybrid.analysis.exact.reading import MAX_TRANSITIONS, ExactModel, Row
from hybrid.analysis.exact.systems import OperationBudget, solve_rationals
from hybrid.analysis.multi.memory import Endings
from hybrid.analysis.multi.queries import (
    Demands,
    ObjectiveSearch,
    SearchResult,
    Shares,
    meets,
    mixed,
    widest_margin,
)
from hybrid.analysis.multi.weighted_sum import Point
from hybrid.base.errors import NotExactError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.matrix.explicit.extract import explicit_matrix
from hybrid.properties.tree import Filter
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import EvaluationError
from mtbdd.language.syntax import Expression

# Comparisons, and optima over states, that only exact values decide.


def settle(
    exact: ExactFormulas,
    truth: StateTruth,
    operator: str,
    left: tuple[Expression, StateValues],
    right: tuple[Expression, StateValues],
    positions: NDArray[np.int64] | None = None,
) -> StateTruth:
    """Decide a comparison by exact values in the states that its bounds left unknown.

    The sides are formulas with their values; truth and values are about the states at some positions, default
    all. If an exact value lies outside of its bounds, one of them is wrong, and the truth stays unknown; so
    it does if the exact values cannot be had.
    """
    if truth.unknown is None:
        return truth
    at = np.flatnonzero(truth.unknown).tolist()
    try:
        sides = [exact.values(formula) for formula, _ in (left, right)]
    except (NotExactError, EvaluationError):
        return truth
    if positions is not None:
        sides = [[side[i] for i in positions.tolist()] for side in sides]
    for values, (_, found) in zip(sides, (left, right), strict=True):
        if not all(float(found.lower[i]) <= values[i] <= float(found.upper[i]) for i in at):
            return truth
    decided = truth.values.copy()
    for i in at:
        decided[i] = compare_exactly(operator, sides[0][i], sides[1][i])
    return StateTruth(decided, None, truth.unproven, "")


def attained(
    exact: ExactFormulas, formula: Filter, truth: StateTruth, positions: NDArray[np.int64] | None
) -> StateTruth:
    """Return where argmin or argmax is attained, decided; the same truth if the values cannot be had.

    The truth value is that of the states of the filter, at some positions, default all.
    """
    try:
        values = exact.values(formula.operand)
    except (NotExactError, EvaluationError):
        return truth
    if positions is not None:
        values = [values[i] for i in positions.tolist()]
    if any(value != value for value in values):
        return truth
    best = min(values) if formula.operator == "argmin" else max(values)
    return StateTruth(np.array([value == best for value in values]))


_SLIGHT = 1e-9  # shares of a linear program below it are none
_NEAR = (
    1e-6  # parts of an objective's range: demands so close to what a mixture reaches are met with equality
)


def exactly_achievable(
    model: SymbolicModel, ends: Endings, search: ObjectiveSearch, demands: Demands
) -> SearchResult | None:
    """Return the result that demands are met, if a mixture of the schedulers found meets them exactly."""
    exact = ExactPoints(model, ends)
    values = [exact.values(point) for point in search.points]
    shares = exact_mixture(values, demands, search.scale())
    return None if shares is None else SearchResult(search, truth=True, shares=shares)


class ExactPoints:
    """Evaluates schedulers of the product of a small model with automata."""

    def __init__(self, model: SymbolicModel, ends: Endings) -> None:
        pairs = ends.space.model
        if pairs.n_transitions > MAX_TRANSITIONS:
            raise NotExactError(f"{pairs.n_transitions} transitions are too many for exact solution")
        self._ends, self._numbers = ends, ExactModel(model)
        self._matrices = [explicit_matrix(pairs.layer_transitions(k)) for k in range(len(pairs.layers))]
        self._states = _states_of(model, pairs)
        self._own = np.flatnonzero(pairs.indicator(ends.pairs.states))
        self._place = {pair: place for place, pair in enumerate(self._own.tolist())}
        self._gains = {
            i: self._numbers.gains(o.structure)
            for i, o in enumerate(ends.space.objectives)
            if o.structure is not None
        }
        self._counted = {
            i: None if counted is None else pairs.indicator(counted)
            for i, (_, counted) in ends.space.rewards.items()
        }

    def values(self, point: Point) -> tuple[Fraction, ...]:
        """Return the values of a scheduler, all objectives maximised."""
        start, stop = self._ends.initial, len(self._matrices)
        paths = (i for i, o in enumerate(self._ends.space.objectives) if o.path is not None)
        won = {i: self._ends.wins(i, point.sets) for i in paths}
        numbers, waiting = {start: 0}, [start]
        rows: list[Row] = []
        right: list[list[Fraction]] = []
        for place in waiting:
            pair, layer = int(self._own[place]), int(point.policy[place])
            rows.append({})
            if layer != stop:
                for after, p in self._row(pair, layer).items():
                    there = self._place[after]
                    if there not in numbers:
                        numbers[there] = len(waiting)
                        waiting.append(there)
                    rows[-1][numbers[there]] = p
            right.append(self._earned(place, pair, layer, won))
        return tuple(solve_rationals(rows, right, OperationBudget(WORK))[0])

    def _row(self, pair: int, layer: int) -> Row:
        """Return a choice of a pair: the pairs it leads to, with the model's probabilities."""
        matrix, state = self._matrices[layer], self._states[pair]
        begin, end = matrix.row_starts[pair : pair + 2].tolist()
        own = self._numbers.choices[state][self._numbers.layers[state].index(layer)]
        return {after: own[self._states[after]] for after in matrix.columns[begin:end].tolist()}

    def _earned(self, place: int, pair: int, layer: int, won: dict[int, NDArray[np.bool_]]) -> list[Fraction]:
        """Return the reward of a pair for each objective."""
        found = []
        stops = layer == len(self._matrices)
        for i, objective in enumerate(self._ends.space.objectives):
            if i in won:
                found.append(Fraction(int(stops and won[i][place])))
                continue
            counted, state, value = self._counted[i], self._states[pair], Fraction(0)
            if not stops and (counted is None or counted[pair]):
                value = self._gains[i][state][self._numbers.layers[state].index(layer)]
            found.append(value if objective.maximise else -value)
        return found


def _states_of(model: SymbolicModel, pairs: SymbolicModel) -> list[int]:
    """Return the index of every pair's state."""
    if pairs is model:
        return list(range(model.n_states))
    names = [v.name for v in model.encoding.variables]

    def keys(of: SymbolicModel) -> list[tuple[bool | int, ...]]:
        return [tuple(state[name] for name in names) for state in of.describe(np.arange(of.n_states))]

    places = {key: index for index, key in enumerate(keys(model))}
    return [places[key] for key in keys(pairs)]


def exact_mixture(
    values: Sequence[Sequence[Fraction]], demands: Demands, scale: NDArray[np.float64]
) -> Shares | None:
    """Return a mixture of points that meets demands exactly, those close to it with equality; None if not."""
    near = [[float(value) for value in point] for point in values]
    shares = widest_margin(near, demands, scale).shares.tolist()
    support = [i for i, share in enumerate(shares) if share > _SLIGHT]
    reached = [sum(shares[i] * near[i][k] for i in support) for k in range(len(demands))]
    rows = [[Fraction(1)] * len(support) + [Fraction(1)]]
    for k, demand in enumerate(demands):
        if demand is not None and abs(reached[k] - float(demand)) <= _NEAR * float(scale[k]):
            rows.append([values[i][k] for i in support] + [demand])
    guess = [Fraction(shares[i]) for i in support]
    found = {i: x for i, x in zip(support, _solved_near(rows, guess), strict=True) if x}
    if any(x < 0 for x in found.values()) or sum(found.values()) != 1:
        return None
    return found if meets(mixed(values, found), demands) else None


def _solved_near(rows: list[list[Fraction]], guess: list[Fraction]) -> list[Fraction]:
    """Return a solution of equations, the right-hand sides last, with unknowns that are free as guessed.

    Equations that contradict those before them are left out.
    """
    pivots: list[tuple[int, list[Fraction]]] = []
    for row in rows:
        left = list(row)
        for column, pivot in pivots:
            factor = left[column]
            left = [x - factor * y for x, y in zip(left, pivot, strict=True)]
        column = next((c for c, x in enumerate(left[:-1]) if x), -1)
        if column < 0:
            continue
        left = [x / left[column] for x in left]
        pivots = [(c, [x - old[column] * y for x, y in zip(old, left, strict=True)]) for c, old in pivots]
        pivots.append((column, left))
    found = list(guess)
    bound = {column for column, _ in pivots}
    for column, pivot in pivots:
        rest = (x * found[c] for c, x in enumerate(pivot[:-1]) if c not in bound)
        found[column] = pivot[-1] - sum(rest, Fraction(0))
    return found
