"""Rows of a compressed matrix in block rows: what is written, in which order, and bounds by block row."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators import matrix_block_rows
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.matrix_block_rows import MatrixBlockRows
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.solvers import Criterion, Optimistic, Status, topological
from hybrid.solvers.topological import Topological
from tests.builders.keeping import Keeper
from tests.builders.linear_systems import exact_solution
from tests.builders.matrices import from_dense
from tests.builders.stopping import StopAfter
from tests.source_tree import ROOT

SLACK = 64 * UNIT
SIZE = 96

System = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(autouse=True)
def _small_block_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_block_rows, "_LEAST_GROUP", 1)
    monkeypatch.setattr(matrix_block_rows, "_BLOCK_ROW_SIZE", 12)
    monkeypatch.setattr(matrix_block_rows, "_MOST_BLOCK_ROWS", SIZE)


def system(rng: np.random.Generator, apart: bool = True) -> System:
    """Return blocks of eight rows each of which leads to itself and to later ones, in some order of blocks.

    Some rows are empty, some blocks have no way back within them; entries are dyadic.
    """
    dense = np.zeros((SIZE, SIZE))
    order = rng.permutation(SIZE // 8)
    for place, block in enumerate(order):
        later = order[place:] if apart else order
        for i in range(8 * block, 8 * block + 8):
            if rng.random() < 0.2:
                continue
            own = np.arange(8 * block, 8 * block + 8) if place % 3 else np.arange(i + 1, 8 * block + 8)
            others = (8 * later[1:, None] + np.arange(8)).ravel()
            for chosen in (own, others):
                if chosen.size:
                    for j in rng.choice(chosen, 2):
                        dense[i, j] = 0.0 if i == j else rng.integers(1, 8) / 64
    b = rng.integers(0, 4, SIZE) / 64 * rng.integers(0, 2, SIZE)
    return dense, dense.sum(axis=1) + rng.integers(1, 5, SIZE) / 16, b


def block_rows_of(dense: np.ndarray) -> tuple[TypedMatrix, MatrixBlockRows | None]:
    typed = TypedMatrix(from_dense(dense))
    return typed, MatrixBlockRows.where_they_pay(typed.plain, 8)  # groups of eight rows


def test_block_rows_are_the_rows_in_an_order_of_solution(rng: np.random.Generator) -> None:
    for _ in range(10):
        dense, _, _ = system(rng)
        _, block_rows = block_rows_of(dense)
        assert block_rows is not None and len(block_rows) > 3
        assert block_rows.entries == np.count_nonzero(dense)
        solved = np.zeros(SIZE, bool)
        for number in range(len(block_rows)):
            rows = block_rows.rows(number)
            assert (np.diff(rows) > 0).all() and not solved[rows].any()
            solved[rows] = True
            written = block_rows.written(number).csr.toarray()
            np.testing.assert_array_equal(written, dense[rows])
            assert not written[:, ~solved].any()
        assert solved.all()


def test_rows_that_belong_together_are_no_block_rows(rng: np.random.Generator) -> None:
    ring = 0.25 * np.roll(np.eye(SIZE), 1, axis=1)
    assert block_rows_of(ring)[1] is None
    assert block_rows_of(np.triu(ring))[1] is not None
    # Half of all rows in one component.
    half = np.triu(ring)
    half[SIZE // 2 - 1, 0] = 0.25
    assert block_rows_of(half)[1] is None
    assert block_rows_of(system(rng, apart=False)[0])[1] is None


def test_deeper_levels_are_looked_at_where_components_are_large() -> None:
    """States lead to each other that share all bits but the last: deeper groups have no larger components."""
    dense = 0.25 * np.eye(SIZE, k=2) + 0.25 * np.kron(np.eye(SIZE // 2), [[0, 1], [1, 0]])
    types = TypedMatrix(from_dense(dense)).plain
    found = MatrixBlockRows.where_they_pay(types, 2)
    assert found is not None
    assert max(found.rows(n).size for n in range(len(found))) <= SIZE // 4


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-9])
def test_bounds_enclose_the_exact_solution(rng: np.random.Generator, epsilon: float, absolute: bool) -> None:
    for _ in range(4):
        dense, diagonal, b = system(rng)
        typed, block_rows = block_rows_of(dense)
        assert block_rows is not None
        criterion = Criterion(epsilon, absolute)
        method = Topological(criterion, block_rows, Optimistic(criterion))
        matrix = inject(typed.matrix, backend="cpu")
        found = method.solve(matrix, diagonal, b, SLACK, None)
        assert found.status is Status.CONVERGED
        for low, x, high in zip(
            found.lower.tolist(), exact_solution(dense, diagonal, b), found.upper.tolist(), strict=True
        ):
            assert Fraction(low) <= x <= Fraction(high)
            assert high - low <= epsilon * (1 if absolute else high)
        assert 0 < found.products < found.iterations


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-8])
def test_errors_of_block_rows_stay_within_epsilon(epsilon: float) -> None:
    """Pairs in a row, each of which takes long to leave, and reaches the next one."""
    dense = np.kron(np.eye(SIZE // 2), [[0, 0.875], [0.875, 0]])
    dense += np.kron(np.eye(SIZE // 2, k=1), [[0, 0], [0.0625, 0]])
    b = np.zeros(SIZE)
    b[-1] = 0.0625
    typed, block_rows = block_rows_of(dense)
    assert block_rows is not None and len(block_rows) > 6
    method = Topological(Criterion(epsilon), block_rows, Optimistic())
    found = method.solve(inject(typed.matrix, backend="cpu"), np.ones(SIZE), b, SLACK, 1.0)
    assert found.status is Status.CONVERGED
    exact = exact_solution(dense, np.ones(SIZE), b)
    for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert Fraction(low) <= x <= Fraction(high)
        assert high - low <= epsilon * high


def test_bounds_hold_wherever_it_is_ended(rng: np.random.Generator) -> None:
    met = set()
    for count in (1, 2, 3, 5, 8, 13, 25, 100_000):
        dense, diagonal, b = system(rng)
        typed, block_rows = block_rows_of(dense)
        assert block_rows is not None
        method = Topological(Criterion(), block_rows, Optimistic())
        matrix = inject(typed.matrix, backend="cpu")
        found = method.solve(matrix, diagonal, b, SLACK, None, StopAfter(count))
        met.add(found.status)
        exact = exact_solution(dense, diagonal, b)
        for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(low) <= x <= (Fraction(high) if high < np.inf else x)
    assert met == {Status.INTERRUPTED, Status.CONVERGED}


def test_runs_go_on_where_they_were(rng: np.random.Generator) -> None:
    dense, diagonal, b = system(rng)
    typed, block_rows = block_rows_of(dense)
    assert block_rows is not None
    method = Topological(Criterion(), block_rows, Optimistic())
    matrix = inject(typed.matrix, backend="cpu")
    first = Keeper()
    whole = method.solve(matrix, diagonal, b, SLACK, None, first)
    assert len(first.states) == len(block_rows) + 1
    for kept in first.states:
        # What has been solved of the next block row counts for nothing.
        for later in range(int(kept.numbers["strip"]), len(block_rows)):
            kept.vectors["lower"][block_rows.rows(later)] = kept.vectors["upper"][block_rows.rows(later)] = (
                0.5
            )
        found = method.solve(matrix, diagonal, b, SLACK, None, Keeper(kept))
        np.testing.assert_array_equal(found.lower, whole.lower)
        np.testing.assert_array_equal(found.upper, whole.upper)
        assert (found.iterations, found.products) == (whole.iterations, whole.products)


def test_too_many_components_in_a_row_are_left_to_others(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topological, "_DEEPEST", 0)
    dense, diagonal, b = system(rng)
    typed, block_rows = block_rows_of(dense)
    assert block_rows is not None
    matrix = inject(typed.matrix, backend="cpu")
    found = Topological(Criterion(), block_rows, Optimistic()).solve(matrix, diagonal, b, SLACK, None)
    alone = Optimistic().solve(matrix, diagonal, b, SLACK, None)
    np.testing.assert_array_equal(found.lower, alone.lower)
    np.testing.assert_array_equal(found.upper, alone.upper)


def test_products_that_vanish_between_block_rows_are_bounded_from_above() -> None:
    dense, b = 1e-300 * np.eye(SIZE, k=8), np.zeros(SIZE)
    b[-8:] = 1.0
    typed, block_rows = block_rows_of(dense)
    assert block_rows is not None
    method = Topological(Criterion(), block_rows, Optimistic())
    found = method.solve(inject(typed.matrix, backend="cpu"), np.ones(SIZE), b, SLACK, None)
    assert (found.lower >= 0.0).all() and (found.upper > 0.0).all()


def test_values_beyond_doubles_are_no_bounds() -> None:
    dense = 0.25 * np.eye(SIZE, k=8)
    b = np.full(SIZE, 1e308)
    typed, block_rows = block_rows_of(dense)
    assert block_rows is not None
    method = Topological(Criterion(), block_rows, Optimistic())
    found = method.solve(inject(typed.matrix, backend="cpu"), np.full(SIZE, 0.26), b, SLACK, None)
    assert found.status is Status.DIVERGED and np.isinf(found.upper).all()


QUESTION = "P=? [ F s=5 ]"


def test_a_protocol_is_solved_one_block_row_after_another_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_block_rows, "_LEAST_GROUP", 4)
    model = hybrid.load(ROOT / "examples/brp.prism", {"N": 16, "MAX": 3})
    found = hybrid.check(model, QUESTION, backend="cpu")
    written = hybrid.check(model, QUESTION, engine="explicit", backend="cpu")
    once = hybrid.check(model, QUESTION, backend="cpu", method="optimistic")
    assert found.statistics.method == written.statistics.method == "topological"
    assert once.statistics.method == "optimistic"
    assert found.statistics.products < once.statistics.products / 2
    for other in (written, once):
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)
    monkeypatch.setattr(topological, "_DEEPEST", -1)
    assert hybrid.check(model, QUESTION, backend="cpu").statistics.method == "optimistic"
    # Steady chains keep their method.
    queue = hybrid.load(ROOT / "examples/tandem.prism", {"c": 15})
    assert hybrid.check(queue, 'R{"customers"}=? [ F sc=c ]').statistics.method == "optimistic"
    assert replace(found.statistics, level=None).level is None
