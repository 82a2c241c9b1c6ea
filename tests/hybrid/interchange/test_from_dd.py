"""Models from a caller's diagrams: values against dense algebra, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import dd.autoref
import dd.cudd
import numpy as np
import pytest

import hybrid
from hybrid.interchange import InterchangeError
from hybrid.interchange.from_dd import from_dd
from mtbdd.model import SymbolicModel

N = 3
ROWS, COLUMNS = ["x0", "x1", "x2"], ["y0", "y1", "y2"]


def new_manager(kind: Any, rng: np.random.Generator) -> Any:
    bdd = kind()
    bdd.configure(reordering=False)
    bdd.declare(*rng.permutation(np.array([*ROWS, *COLUMNS, "free"], dtype=object)).tolist())
    return bdd


def cube(bdd: Any, names: list[str], number: int) -> Any:
    return bdd.cube({name: bool(number >> i & 1) for i, name in enumerate(names)})


def states_of(bdd: Any, numbers: Any) -> Any:
    node = bdd.false
    for number in numbers:
        node |= cube(bdd, ROWS, int(number))
    return node


def parts_of(bdd: Any, dense: np.ndarray, rng: np.random.Generator) -> list[tuple[float, Any]]:
    """Return a part a value; some values are split into two that overlap and add up."""
    parts = []
    for value in np.unique(dense[dense > 0]).tolist():
        node = bdd.false
        for row, column in np.argwhere(dense == value).tolist():
            node |= cube(bdd, ROWS, row) & cube(bdd, COLUMNS, column)
        split = rng.random() < 0.3
        parts += [(value / 4, node), (value / 4 * 3, node)] if split else [(value, node)]
    return parts


def numbers_of(model: SymbolicModel) -> np.ndarray:
    """Return the caller's number of every state of a model."""
    states = model.describe(np.arange(model.n_states))
    return np.array([sum(int(state[name]) << i for i, name in enumerate(ROWS)) for state in states])


def random_chain(rng: np.random.Generator) -> np.ndarray:
    size = 1 << N
    weights = rng.integers(1, 4, (size, size)) * (rng.random((size, size)) < rng.choice([0.15, 0.3, 0.8]))
    weights[np.arange(size), rng.integers(0, size, size)] += 1
    return weights / weights.sum(axis=1, keepdims=True)


def reach_probability(matrix: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the probability to reach a set, by the least solution of a dense system."""
    size = len(matrix)
    can = goal.copy()
    for _ in range(size):
        can |= (matrix[:, can] > 0).any(axis=1)
    open_ = can & ~goal
    system = np.eye(open_.sum()) - matrix[np.ix_(open_, open_)]
    found = goal.astype(float)
    found[open_] = np.linalg.solve(system, matrix[np.ix_(open_, goal)].sum(axis=1))
    return found


@pytest.mark.parametrize("kind", [dd.cudd.BDD, dd.autoref.BDD], ids=["cudd", "autoref"])
def test_random_chains_have_the_values_of_dense_algebra(kind: Any, rng: np.random.Generator) -> None:
    for _ in range(250):
        dense = random_chain(rng)
        bdd = new_manager(kind, rng)
        start = int(rng.integers(0, 1 << N))
        goal = rng.random(1 << N) < 0.3
        model = from_dd(
            bdd,
            rows=ROWS,
            columns=COLUMNS,
            parts=parts_of(bdd, dense, rng),
            initial=cube(bdd, ROWS, start),
            labels={"goal": states_of(bdd, np.flatnonzero(goal))},
        )
        numbers = numbers_of(model)
        expected = np.linalg.matrix_power(np.eye(1 << N) + (dense > 0), 1 << N)[start] > 0
        assert sorted(numbers.tolist()) == np.flatnonzero(expected).tolist()
        entries = model.transitions.to_dense() if hasattr(model.transitions, "to_dense") else None
        if entries is not None:
            assert np.allclose(entries, dense[np.ix_(numbers, numbers)], rtol=1e-15, atol=0)
        answer = hybrid.check(model, 'P=? [ F "goal" ]')
        assert answer.value == pytest.approx(reach_probability(dense, goal)[start], abs=1e-9)
