"""Independent answers about Markov decision processes: explicit states, every memoryless scheduler tried.

Written one state and one choice at a time with fractions; good for MDPs of a few hundred states, and where
schedulers are tried of a few thousand combinations of choices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mtbdd.language.syntax import ResolvedModel
from tests.oracles import chains as chain_oracles
from tests.oracles.chains import Chain
from tests.oracles.expressions import OracleFaultError, evaluate_exactly
from tests.oracles.models import ExplicitModel, State, _check_sum, _initial, _valuation, _weight

__all__ = ["ExplicitMdp", "explore_mdp", "prob0a", "prob0e", "prob1a", "prob1e", "schedulers"]


@dataclass(frozen=True)
class ExplicitMdp:
    """All reachable states of an MDP and their choices.

    Attributes
    ----------
    graph : ExplicitModel
        States, initial states and deadlocks; its rates are those of all choices added up.
    choices : list of list of (action, dict)
        Every state's choices: action (None if unlabelled) and successor -> probability; deadlocks
        have a self-loop.
    """

    graph: ExplicitModel
    choices: list[list[tuple[str | None, dict[int, Fraction]]]]

    @property
    def n_choices(self) -> int:
        """Number of choices of all states."""
        return sum(len(own) for own in self.choices)

    @property
    def n_transitions(self) -> int:
        """Number of different successors, summed over the choices."""
        return sum(len(row) for own in self.choices for _, row in own)

    def state_rewards(self, structure: int) -> list[Fraction]:
        """Return the rewards of the states alone."""
        return self._rewards(structure, lambda item: not item.is_transition)

    def choice_rewards(self, structure: int, action: str | None) -> list[Fraction]:
        """Return the reward that a choice with the given action earns on top of each state's."""
        return self._rewards(structure, lambda item: item.is_transition and item.action == action)

    def _rewards(self, structure: int, wanted: Callable[..., bool]) -> list[Fraction]:
        result = [Fraction(0)] * self.graph.n_states
        for item in self.graph.source.rewards[structure].items:
            if wanted(item):
                for i in self.graph.where(item.guard):
                    result[i] += Fraction(evaluate_exactly(item.value, self.graph.valuation(i)))
        return result


def explore_mdp(model: ResolvedModel) -> ExplicitMdp:
    """Return the reachable part of an MDP whose modules all run in parallel.

    Raises
    ------
    OracleFaultError
        A reachable state leaves a range, has a negative weight or probabilities off by more than 1e-5,
        or there is no initial state.
    """
    starts = _initial(model)
    if not starts:
        raise OracleFaultError("no initial state")
    offers: dict[State, list[tuple[str | None, dict[State, Fraction]]]] = {}
    waiting = list(starts)
    while waiting:
        state = waiting.pop()
        if state not in offers:
            offers[state] = _choices(model, state)
            waiting += [t for _, row in offers[state] for t in row]
    states = sorted(offers)
    index = {state: i for i, state in enumerate(states)}
    choices: list[list[tuple[str | None, dict[int, Fraction]]]] = [
        [(action, {index[t]: p for t, p in row.items()}) for action, row in offers[s]]
        or [(None, {i: Fraction(1)})]
        for i, s in enumerate(states)
    ]
    rates: list[dict[int, Fraction]] = []
    for own in choices:
        total: dict[int, Fraction] = {}
        for _, row in own:
            for t, p in row.items():
                total[t] = total.get(t, Fraction(0)) + p
        rates.append(total)
    deadlocks = {index[s] for s, own in offers.items() if not own}
    initial = {index[s] for s in starts}
    graph = ExplicitModel(model, states, index, rates, initial, deadlocks, [{} for _ in states])
    return ExplicitMdp(graph, choices)


def _choices(model: ResolvedModel, state: State) -> list[tuple[str | None, dict[State, Fraction]]]:
    """Return the choices of a state: one for every unlabelled command and combination of labelled ones."""
    values = _valuation(model, state)
    enabled = [[c for c in m.commands if evaluate_exactly(c.guard, values)] for m in model.modules]
    for command in (c for commands in enabled for c in commands):
        _check_sum(command, values)
    combinations = [(None, (c,)) for commands in enabled for c in commands if c.action is None]
    for action in sorted({c.action for m in model.modules for c in m.commands if c.action is not None}):
        taking_part = [i for i, m in enumerate(model.modules) if any(c.action == action for c in m.commands)]
        offers = [[c for c in enabled[i] if c.action == action] for i in taking_part]
        combinations += [(action, combination) for combination in product(*offers)]
    found = []
    for action, commands in combinations:
        row: dict[State, Fraction] = {}
        for updates in product(*(c.updates for c in commands)):
            weight = math.prod((_weight(u.weight, values) for u in updates), start=Fraction(1))
            successor = dict(values)
            for assignment in (a for u in updates for a in u.assignments):
                successor[assignment.variable] = evaluate_exactly(assignment.expression, values)
            target = tuple(int(successor[v.name]) for v in model.variables)
            if weight == 0:
                continue
            if any(not v.low <= x <= v.high for v, x in zip(model.variables, target, strict=True)):
                raise OracleFaultError(f"{values} leads to {successor}")
            row[target] = row.get(target, Fraction(0)) + weight
        found.append((action, row))
    return found


# ------------------------------------------------------------------ schedulers


def schedulers(mdp: ExplicitMdp) -> Iterator[Chain]:
    """Yield the chain of every memoryless scheduler; for the questions here no other does better."""
    for picked in product(*mdp.choices):
        yield [row for _, row in picked]


def _states(
    mdp: ExplicitMdp, question: Callable[..., set[int]], safe: set[int], target: set[int]
) -> list[set[int]]:
    return [question(chain, safe, target) for chain in schedulers(mdp)]


def prob0a(mdp: ExplicitMdp, safe: set[int], target: set[int]) -> set[int]:
    """Return the states where `safe U target` has probability 0 under every scheduler."""
    return set.intersection(*_states(mdp, chain_oracles.prob0, safe, target))


def prob0e(mdp: ExplicitMdp, safe: set[int], target: set[int]) -> set[int]:
    """Return the states where `safe U target` has probability 0 under some scheduler."""
    return set.union(*_states(mdp, chain_oracles.prob0, safe, target))


def prob1a(mdp: ExplicitMdp, safe: set[int], target: set[int]) -> set[int]:
    """Return the states where `safe U target` has probability 1 under every scheduler."""
    return set.intersection(*_states(mdp, chain_oracles.prob1, safe, target))


def prob1e(mdp: ExplicitMdp, safe: set[int], target: set[int]) -> set[int]:
    """Return the states where `safe U target` has probability 1 under some scheduler."""
    return set.union(*_states(mdp, chain_oracles.prob1, safe, target))
