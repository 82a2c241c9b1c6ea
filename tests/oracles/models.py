"""Independent answers to compare with: an explicit-state interpreter of models, and a count of MTBDD nodes.

Everything here is written from the definitions, one state at a time, with fractions; nothing is shared with
the symbolic code but the syntax tree.  Good for models of up to a few thousand states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.syntax import (
    ActionRenaming,
    Command,
    Composition,
    Expression,
    Hiding,
    LabelReference,
    ModelType,
    ModuleReference,
    Parallel,
    ResolvedModel,
)
from tests.oracles.expressions import OracleFaultError, evaluate_exactly

__all__ = ["ExplicitModel", "explore", "mtbdd_size"]

State = tuple[int, ...]  # stored values in model order, booleans as 0 and 1


# ------------------------------------------------------------------ models


@dataclass(frozen=True)
class ExplicitModel:
    """All reachable states of a model and what happens in them.

    Attributes
    ----------
    source : ResolvedModel
    states : list of tuple of int
        Ascending; a state is its variables' values in model order, booleans as 0 and 1.  Since variables
        are stored as distances from their lower bound, most significant bit first, this is the order of
        the symbolic state index.
    index : dict
        Position of each state.
    rates : list of dict
        Successor -> rate (CTMC) or probability (DTMC); deadlocks have their self-loop.
    initial, deadlocks : set of int
    action_rates : list of dict
        Action (None for commands without one) -> total rate or probability that carries it; self-loops
        added to deadlocks carry nothing.
    """

    source: ResolvedModel
    states: list[State]
    index: dict[State, int]
    rates: list[dict[int, Fraction]]
    initial: set[int]
    deadlocks: set[int]
    action_rates: list[dict[str | None, Fraction]]

    @property
    def n_states(self) -> int:
        """Number of reachable states."""
        return len(self.states)

    @property
    def n_transitions(self) -> int:
        """Number of positive entries."""
        return sum(len(row) for row in self.rates)

    def valuation(self, i: int) -> dict[str, bool | int]:
        """Return a state by variable name."""
        return dict(self._valuations[i])

    @cached_property
    def _valuations(self) -> list[dict[str, bool | int]]:
        return [_valuation(self.source, state) for state in self.states]

    def where(self, e: Expression) -> set[int]:
        """Return the states in which a boolean expression holds; "init" and "deadlock" are known."""
        if isinstance(e, LabelReference):
            return {"init": self.initial, "deadlock": self.deadlocks}[e.name]
        return {i for i, values in enumerate(self._valuations) if evaluate_exactly(e, values)}

    def label(self, name: str) -> set[int]:
        """Return the states of a label of the model."""
        return next(self.where(label.expression) for label in self.source.labels if label.name == name)

    def rewards(self, structure: int) -> list[Fraction]:
        """Return each state's reward a step or time unit; transition rewards count times their rate."""
        result = [Fraction(0)] * self.n_states
        for item in self.source.rewards[structure].items:
            for i in self.where(item.guard):
                value = Fraction(evaluate_exactly(item.value, self.valuation(i)))
                result[i] += value * self.action_rates[i].get(item.action, 0) if item.is_transition else value
        return result

    def dense(self) -> NDArray[np.float64]:
        """Return the matrix, states in index order."""
        matrix = np.zeros((self.n_states, self.n_states))
        for i, row in enumerate(self.rates):
            for j, rate in row.items():
                matrix[i, j] = float(rate)
        return matrix

    def widths(self) -> list[int]:
        """Return the number of bits of every variable."""
        return [(v.high - v.low).bit_length() for v in self.source.variables]

    def codes(self) -> list[int]:
        """Return every state's bits as one number, the first variable most significant."""
        found = []
        for state in self.states:
            code = 0
            for value, v, width in zip(state, self.source.variables, self.widths(), strict=True):
                code = code << width | (value - v.low)
            found.append(code)
        return found

    def padded(self) -> NDArray[np.float64]:
        """Return the matrix over all assignments of the bits, zero outside the reachable states."""
        codes = self.codes()
        matrix = np.zeros((1 << sum(self.widths()),) * 2)
        matrix[np.ix_(codes, codes)] = self.dense()
        return matrix


def _valuation(model: ResolvedModel, state: State) -> dict[str, bool | int]:
    pairs = zip(model.variables, state, strict=True)
    return {v.name: bool(value) if v.is_bool else value for v, value in pairs}


def _initial(model: ResolvedModel) -> set[State]:
    if model.initial is None:
        return {tuple(int(v.initial) for v in model.variables)}
    every = product(*(range(v.low, v.high + 1) for v in model.variables))
    return {state for state in every if evaluate_exactly(model.initial, _valuation(model, state))}


def explore(model: ResolvedModel, fix_deadlocks: bool = True) -> ExplicitModel:
    """Return the reachable part of a DTMC or CTMC.

    Raises
    ------
    OracleFaultError
        A reachable state leaves a range, has a negative weight or probabilities off by more than 1e-5,
        or there is no initial state, or a deadlock that must not be.
    """
    starts = _initial(model)
    if not starts:
        raise OracleFaultError("no initial state")
    rows: dict[State, dict[State, Fraction]] = {}
    carried: dict[State, dict[str | None, Fraction]] = {}
    waiting = list(starts)
    while waiting:
        state = waiting.pop()
        if state not in rows:
            rows[state], carried[state] = _row(model, state)
            waiting += [s for s in rows[state] if s not in rows]
    states = sorted(rows)
    index = {state: i for i, state in enumerate(states)}
    deadlocks = {index[s] for s, row in rows.items() if not row}
    if deadlocks and not fix_deadlocks:
        raise OracleFaultError("deadlock")
    rates = [
        {index[t]: rate for t, rate in rows[s].items()} or {i: Fraction(1)} for i, s in enumerate(states)
    ]
    return ExplicitModel(
        model, states, index, rates, {index[s] for s in starts}, deadlocks, [carried[s] for s in states]
    )


LayerChoices = tuple[str | None, tuple[Command, ...]]


def _shared_actions(model: ResolvedModel, enabled: list[list[Command]]) -> list[LayerChoices]:
    """Return what can happen: unlabelled commands, and actions that all modules that have them take."""
    choices: list[LayerChoices] = [(None, (c,)) for commands in enabled for c in commands if c.action is None]
    for action in sorted({c.action for m in model.modules for c in m.commands if c.action is not None}):
        takes_part = [any(c.action == action for c in m.commands) for m in model.modules]
        offers = [
            [c for c in commands if c.action == action]
            for commands, joins in zip(enabled, takes_part, strict=True)
            if joins
        ]
        choices += [(action, combination) for combination in product(*offers)]
    return choices


def _alphabet(node: Composition, model: ResolvedModel) -> set[str]:
    """Return the actions that a composition may take or block."""
    match node:
        case ModuleReference():
            (module,) = (m for m in model.modules if m.name == node.module)
            return {c.action for c in module.commands if c.action is not None}
        case Hiding():
            return _alphabet(node.operand, model) - set(node.actions)
        case ActionRenaming():
            return {dict(node.pairs).get(a, a) for a in _alphabet(node.operand, model)}
        case Parallel():
            return set().union(*(_alphabet(operand, model) for operand in node.operands))
    raise TypeError(type(node).__name__)


def _offers(node: Composition, model: ResolvedModel, enabled: list[list[Command]]) -> list[LayerChoices]:
    """Return what can happen in a composition, by the rules of its operators."""
    match node:
        case ModuleReference():
            (k,) = (i for i, m in enumerate(model.modules) if m.name == node.module)
            return [(c.action, (c,)) for c in enabled[k]]
        case Hiding():
            inner = _offers(node.operand, model, enabled)
            return [(None if a in node.actions else a, commands) for a, commands in inner]
        case ActionRenaming():
            new: dict[str | None, str] = dict(node.pairs)
            return [(new.get(a, a), commands) for a, commands in _offers(node.operand, model, enabled)]
        case Parallel():
            first, *others = node.operands
            left, known = _offers(first, model, enabled), _alphabet(first, model)
            for operand in others:
                right, theirs = _offers(operand, model, enabled), _alphabet(operand, model)
                shared = {"||": known & theirs, "|||": set(), "|[]|": set(node.actions)}[node.operator]
                together = [(a, x + y) for a, x in left for b, y in right if a == b and a in shared]
                left = [(a, c) for a, c in left + right if a not in shared] + together
                known |= theirs
            return left
    raise TypeError(type(node).__name__)


def _row(model: ResolvedModel, state: State) -> tuple[dict[State, Fraction], dict[str | None, Fraction]]:
    """Return the successors of a state with their rates, and the total rate of every action."""
    values = _valuation(model, state)
    enabled = [[c for c in m.commands if evaluate_exactly(c.guard, values)] for m in model.modules]
    if model.system is None:
        choices = _shared_actions(model, enabled)
    else:
        choices = _offers(model.system, model, enabled)
    if model.type is not ModelType.CTMC:
        for command in (c for commands in enabled for c in commands):
            _check_sum(command, values)
    row: dict[State, Fraction] = {}
    carried: dict[str | None, Fraction] = {}
    share = Fraction(1, len(choices)) if model.type is ModelType.DTMC and choices else Fraction(1)
    for action, commands in choices:
        for updates in product(*(c.updates for c in commands)):
            rate = share
            for update in updates:
                rate *= _weight(update.weight, values)
            if rate == 0:
                continue
            successor = dict(values)
            for assignment in (a for update in updates for a in update.assignments):
                successor[assignment.variable] = evaluate_exactly(assignment.expression, values)
            target = tuple(int(successor[v.name]) for v in model.variables)
            if any(not v.low <= x <= v.high for v, x in zip(model.variables, target, strict=True)):
                raise OracleFaultError(f"{values} leads to {successor}")
            row[target] = row.get(target, Fraction(0)) + rate
            carried[action] = carried.get(action, Fraction(0)) + rate
    return row, carried


def _weight(e: Expression | None, values: Mapping[str, bool | int]) -> Fraction:
    weight = Fraction(1) if e is None else Fraction(evaluate_exactly(e, values))
    if weight < 0:
        raise OracleFaultError(f"negative weight in {values}")
    return weight


def _check_sum(command: Command, values: Mapping[str, bool | int]) -> None:
    weights = (1 if u.weight is None else evaluate_exactly(u.weight, values) for u in command.updates)
    if abs(sum(weights) - 1) > Fraction(1, 10**5):
        raise OracleFaultError(f"probabilities off in {values}")


# ------------------------------------------------------------------ diagrams


def mtbdd_size(padded: NDArray[np.float64]) -> tuple[int, int]:
    """Return nodes (terminals included) and terminals of the reduced MTBDD of a 2^n x 2^n array.

    Row and column bits are interleaved, row bits first: blocks are halved from above and hash-consed.
    """
    unique: dict[tuple[int, int, int], int] = {}
    terminals: dict[float, int] = {}

    def number(block: NDArray[np.float64], level: int) -> int:
        if block.size == 1:
            return terminals.setdefault(float(block[0, 0]), -1 - len(terminals))
        halves = np.split(block, 2, axis=level % 2)
        low, high = (number(half, level + 1) for half in halves)
        return low if low == high else unique.setdefault((level, low, high), len(unique))

    number(padded, 0)
    return len(unique) + len(terminals), len(terminals)
