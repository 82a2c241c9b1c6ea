"""One step of the simulator as a matrix, to compare with that of the engine."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

import hybrid
from hybrid.checking.simulation.functions import Columns, Ints
from hybrid.checking.simulation.rules import Rules
from mtbdd.build.model import SymbolicModel
from mtbdd.language.syntax import ModelType

__all__ = ["columns_of", "engine_matrix", "rules_matrix"]

Matrix = NDArray[np.float64]


def columns_of(model: SymbolicModel) -> Ints:
    """The reachable states as the simulator has them, shape (variables, n)."""
    states = model.describe(np.arange(model.n_states))
    names = [v.name for v in model.source.variables]
    return np.array([[int(state[name]) for state in states] for name in names], dtype=np.int64)


def rules_matrix(model: SymbolicModel) -> Matrix:
    """Rates of what the simulator draws in every reachable state; probabilities but in a CTMC."""
    rules, states = Rules(model.source), columns_of(model)
    number = {tuple(column): i for i, column in enumerate(states.T.tolist())}
    matrix = np.zeros((model.n_states, model.n_states))
    for i, state in enumerate(states.T):
        columns = Columns(state.reshape(-1, 1))
        for event in rules.events:
            rate = event.rate(columns)[0]
            if rate == 0:
                continue
            shares = [
                [alternative.weight(columns)[0] for alternative in component.alternatives]
                for component in event.components
            ]
            for chosen in product(*(range(len(own)) for own in shares)):
                weights = [own[k] / sum(own) for own, k in zip(shares, chosen, strict=True)]
                if not all(weights):
                    continue
                after = state.copy()
                for component, k in zip(event.components, chosen, strict=True):
                    for row, value in component.alternatives[k].assignments:
                        after[row] = value(columns)[0]
                matrix[i, number[tuple(after.tolist())]] += rate * float(np.prod(weights))
        if not matrix[i].any():
            matrix[i, i] = 1.0
    return matrix if rules.type is ModelType.CTMC else matrix / matrix.sum(axis=1, keepdims=True)


def engine_matrix(model: SymbolicModel) -> Matrix:
    """The engine's matrix; of an MDP the mean over the choices of each state."""
    layers = range(len(model.layers)) if model.is_mdp else [0]
    found = sum(
        hybrid.explicit_matrix(model.layer_transitions(layer)).to_scipy().toarray() for layer in layers
    )
    matrix: Matrix = np.asarray(found)
    return matrix / matrix.sum(axis=1, keepdims=True) if model.is_mdp else matrix
