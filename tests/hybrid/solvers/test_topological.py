"""Solution component by component: order, bounds around exact solutions, when it is chosen."""

from __future__ import annotations

import gc
import tracemalloc
from fractions import Fraction
from typing import ClassVar

import networkx
import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags_array

from hybrid.matrix.cpu import csr as csr_components
from hybrid.matrix.cpu.csr import CsrMatrix, find_components
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bellman import DirectedSystem
from hybrid.matrix.space.bounded_solution import TINY, UNIT
from hybrid.solvers import Criterion, Optimistic, Status
from hybrid.solvers.block_rows import BlockRow, BlockRowProgress, SingleBlockRow
from hybrid.solvers.topological import Topological, _Levels
from tests.builders.linear_systems import Dense, exact_solution
from tests.builders.stopping import StopAfter

SLACK = 64 * UNIT


@pytest.fixture(autouse=True)
def _any_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few rows any share may be one component."""
    monkeypatch.setattr(csr_components, "_MAX_SHARE", 1.0)


def method_for(matrix: CsrMatrix, criterion: Criterion) -> Topological:
    return Topological(criterion, SingleBlockRow(matrix), Optimistic(criterion))


def components_system(rng, n=24, groups=9):
    """Return a substochastic system with a random order of components of random sizes; entries are dyadic."""
    label = rng.integers(0, groups, n)
    numbers = rng.permutation(n)
    dense = np.zeros((n, n))
    for i in range(n):
        allowed = [j for j in range(n) if j != i and label[j] >= label[i]]
        for j in rng.permutation(allowed)[: rng.integers(1, 4)] if allowed else []:
            dense[numbers[i], numbers[j]] = rng.integers(1, 20) / 64
    b = rng.integers(0, 4, n) / 64 * rng.integers(0, 2, n)
    return dense, np.ones(n), b


def topological(dense, epsilon=1e-8, absolute=False, iterations=100_000):
    matrix = CsrMatrix(csr_matrix(dense))
    return matrix, method_for(matrix, Criterion(epsilon, absolute, iterations))


def test_components_come_after_those_they_refer_to(rng):
    for _ in range(30):
        dense, _, _ = components_system(rng)
        found = find_components(CsrMatrix(csr_matrix(dense)))
        graph = networkx.from_numpy_array(dense, create_using=networkx.DiGraph)
        components = {s: c for c in map(frozenset, networkx.strongly_connected_components(graph)) for s in c}
        assert sorted([*found.single, *found.joined]) == list(range(len(dense)))
        assert all(len(components[s]) == 1 for s in found.single.tolist())
        assert all(len(components[s]) > 1 for s in found.joined.tolist())
        assert found.largest == max(map(len, components.values()))
        solved: set[int] = set()
        for level in range(len(found.single_ptr) - 1):
            for s in found.single[found.single_ptr[level] : found.single_ptr[level + 1]].tolist():
                assert set(np.flatnonzero(dense[s]).tolist()) <= solved
                solved.add(s)
            joined = found.joined[found.joined_ptr[level] : found.joined_ptr[level + 1]].tolist()
            for s in joined:
                assert set(np.flatnonzero(dense[s]).tolist()) <= solved | components[s]
            solved |= set(joined)


# lemma: topological
@pytest.mark.parametrize("epsilon", [1e-3, 1e-8, 1e-11])
@pytest.mark.parametrize("absolute", [False, True])
def test_bounds_enclose_the_exact_solution(epsilon, absolute, rng):
    for _ in range(8):
        dense, diagonal, b = components_system(rng)
        matrix, method = topological(dense, epsilon, absolute)
        found = method.solve(matrix, diagonal, b, SLACK, 1.0)
        assert found.status is Status.CONVERGED
        exact = exact_solution(dense, diagonal, b)
        for lower, value, upper in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(lower) <= value <= Fraction(upper)
            assert upper - lower <= epsilon * (1 if absolute else upper)
        assert found.residual <= 64 * epsilon


def test_a_long_chain_needs_no_iteration():
    n = 3000
    dense = np.diag(np.full(n - 1, 0.5), 1)
    b = np.zeros(n)
    b[-1] = 1.0
    matrix, method = topological(dense[::-1, ::-1])  # every row refers to the one before it
    found = method.solve(matrix, np.ones(n), b[::-1].copy(), SLACK, 1.0)
    exact = [Fraction(1, 2**k) for k in range(n)]
    assert found.iterations == 1
    assert find_components(matrix).depth == 0
    for lower, value, upper in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert Fraction(lower) <= value <= Fraction(upper)
        assert value < Fraction(TINY) or upper - lower < 1e-10 * upper
    assert found.upper[-1] == TINY  # the exact value is smaller than any double


def test_pairs_in_a_row_get_a_share_of_epsilon_each(rng):
    # Ten pairs, each of which reaches the next one.
    n = 20
    dense = np.zeros((n, n))
    for k in range(0, n, 2):
        dense[k, k + 1] = dense[k + 1, k] = 0.875
        if k + 2 < n:
            dense[k + 1, k + 2] = 0.0625
    b = np.zeros(n)
    b[-1] = 0.0625
    for absolute in (False, True):
        matrix, method = topological(dense, 1e-9, absolute)
        assert find_components(matrix).depth == 10
        found = method.solve(matrix, np.ones(n), b, SLACK, 1.0)
        exact = exact_solution(dense, np.ones(n), b)
        for lower, value, upper in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(lower) <= value <= Fraction(upper)
            assert upper - lower <= 1e-9 * (1 if absolute else upper)


def test_one_component_is_left_to_other_methods(monkeypatch):
    monkeypatch.setattr(csr_components, "_MAX_SHARE", 0.8)
    ring = np.roll(np.eye(10), 1, axis=1) * 0.5
    many = np.kron(np.eye(300, k=1), [[0, 0], [0.25, 0]]) + np.kron(np.eye(300), [[0, 0.5], [0.5, 0]])
    for dense, is_left in ((ring, True), (np.triu(ring), False), (many, True)):
        matrix, method = topological(dense)
        operands = matrix, np.ones(len(dense)), np.full(len(dense), 0.25), SLACK, 1.0
        found, other = method.solve(*operands), method.otherwise.solve(*operands)
        assert found.solved_by == ((method.otherwise.name, method.otherwise.vectors) if is_left else None)
        if is_left:
            np.testing.assert_array_equal(found.lower, other.lower)
            np.testing.assert_array_equal(found.upper, other.upper)


def test_what_components_take_is_let_go_before_another_method_begins(monkeypatch):
    monkeypatch.setattr(csr_components, "_MAX_SHARE", 0.8)
    size, told = 1 << 14, []

    class Watched(Optimistic):
        def enclosed(self, *arguments):
            told.append(tracemalloc.get_traced_memory()[0])
            return super().enclosed(*arguments)

    matrix = CsrMatrix(diags_array([0.5, 0.25], offsets=[1 - size, 1], shape=(size, size)).tocsr())
    method = Topological(
        Criterion(max_iterations=5), SingleBlockRow(matrix), Watched(Criterion(max_iterations=5))
    )
    operands = np.ones(size), np.full(size, 0.25)
    method.solve(matrix, *operands, SLACK, 1.0)  # what is loaded once is there
    gc.collect()
    tracemalloc.start()
    try:
        found = method.solve(matrix, *operands, SLACK, 1.0)
    finally:
        tracemalloc.stop()
    assert found.solved_by == (method.otherwise.name, method.otherwise.vectors)
    assert told[-1] < 8 * size


def test_no_states_and_nothing_to_gain():
    matrix, method = topological(np.zeros((0, 0)))
    assert method.solve(matrix, np.zeros(0), np.zeros(0), SLACK, 1.0).values.size == 0
    matrix, method = topological(np.array([[0.0, 0.5], [0.5, 0.0]]))
    found = method.solve(matrix, np.ones(2), np.zeros(2), SLACK, None)
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_a_component_that_does_not_converge_is_no_answer():
    matrix, method = topological(np.array([[0.0, 0.999], [0.999, 0.0]]), 1e-12, iterations=5)
    found = method.solve(matrix, np.ones(2), np.full(2, 0.001), SLACK, None)
    assert found.status is Status.MAX_ITERATIONS
    assert np.isinf(found.upper).all()


def test_other_matrices_are_refused():
    with pytest.raises(TypeError, match="compressed sparse rows"):
        SingleBlockRow(Dense(np.zeros((2, 2))))


def test_agrees_with_all_at_once(rng):
    dense, diagonal, b = components_system(rng, 200, 60)
    matrix, method = topological(dense, 1e-10)
    found = method.solve(matrix, diagonal, b, SLACK, None)
    once = Optimistic(Criterion(1e-10)).solve(matrix, diagonal, b, SLACK, None)
    assert (found.lower <= once.upper).all()
    assert (once.lower <= found.upper).all()


def test_products_that_overflow_are_no_bounds_even_below_a_ceiling() -> None:
    matrix = CsrMatrix(csr_matrix(np.array([[0.0, 1e300], [0.0, 0.0]])))
    diagonal, b = np.array([1e300, 1.0]), np.array([0.0, 1e10])
    found = method_for(matrix, Criterion()).solve(matrix, diagonal, b, 2.0**-50, 1e10)
    assert found.status is Status.DIVERGED


# ------------------------------------------------------------------ what flows in from what is solved

LEAST = 5e-324


class Recorded(Optimistic):
    """Keeps the right-hand sides that larger components are solved for: above, and then below."""

    sides: ClassVar[list[np.ndarray]] = []

    def enclosed(self, operator, *arguments, **more):
        self.sides.append(operator.b.copy())
        return super().enclosed(operator, *arguments, **more)


@pytest.fixture
def sides(monkeypatch):
    monkeypatch.setattr(Recorded, "sides", [])
    monkeypatch.setattr("hybrid.solvers.topological.Optimistic", Recorded)
    return Recorded.sides


def pair_before(value: float) -> tuple[np.ndarray, np.ndarray]:
    """Two rows that refer to each other, the first of them by the least double to a third with a value."""
    dense = np.zeros((3, 3))
    dense[0, 1], dense[1, 0], dense[0, 2] = 0.5, 0.5, LEAST
    return dense, np.array([0.0, 0.0, value])


@pytest.mark.parametrize("value", [0.75, 0.25])
def test_what_flows_into_a_component_may_underflow(value, sides):
    """A part of the least double is rounded to that double or to zero."""
    dense, b = pair_before(value)
    matrix, method = topological(dense)
    method.solve(matrix, np.ones(3), b, SLACK, None)
    above, below = (Fraction(float(own[0])) for own in sides)
    assert below <= Fraction(value) * Fraction(LEAST) <= above


class TwoBlockRows:
    """The row that nothing is needed for, and then the two others."""

    def __init__(self, dense):
        self.dense, self.entries, self.nbytes = dense, np.count_nonzero(dense), 0

    def __len__(self):
        return 2

    def rows(self, number):
        return np.array([2] if number == 0 else [0, 1])

    def written(self, number):
        return CsrMatrix(csr_matrix(self.dense[self.rows(number)]))


@pytest.mark.parametrize("value", [0.75, 0.25])
def test_what_flows_into_a_block_row_may_underflow(value, monkeypatch):
    dense, b = pair_before(value)
    told = []
    flow = BlockRow._flow

    def keep(block, *arguments):
        told.append(flow(block, *arguments))
        return told[-1]

    monkeypatch.setattr(BlockRow, "_flow", keep)
    method = Topological(Criterion(), TwoBlockRows(dense), Optimistic())
    found = method.solve(CsrMatrix(csr_matrix(dense)), np.ones(3), b, SLACK, None)
    assert found.status is Status.CONVERGED
    below, above = (Fraction(float(own[0])) for own in told[1][:2])
    assert below <= Fraction(value) * Fraction(LEAST) <= above


def test_rows_alone_are_rounded_in_both_directions(rng):
    """Rounded to nearest, one in two would lie beyond its number."""
    size = 24
    for _ in range(4):
        dense = np.triu(rng.random((size, size)) * (rng.random((size, size)) < 0.2), 1)
        diagonal, b = dense.sum(axis=1) * 1.1 + 0.3, rng.random(size)
        matrix, method = topological(dense)
        found = method.solve(matrix, diagonal, b, SLACK, None)
        exact = exact_solution(dense, diagonal, b)
        for lower, value, upper in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(lower) < value < Fraction(upper)
        assert (found.upper - found.lower <= 1e-10 * found.upper).all()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_component_that_is_interrupted_loses_what_it_is_reached_by(count):
    """Its lower bound comes from what is above, and loses the share that what is below lacks."""
    size = 12
    dense = np.diag(np.full(size - 1, 0.875), 1) + np.diag(np.full(size - 1, 0.0625), -1)
    b = np.zeros(size)
    b[-1] = 0.1
    matrix, criterion = CsrMatrix(csr_matrix(dense)), Criterion(1e-12)
    operator = DirectedSystem(matrix, np.ones(size), b, SLACK, Topological.vectors)
    course = BlockRowProgress(size, SingleBlockRow(matrix))
    block = BlockRow(matrix, None, operator, course)
    block._least = 0.5 * b
    levels = _Levels(block, criterion, criterion.epsilon, course, None)
    levels.run(Clock(StopAfter(count)), True)
    least = exact_solution(dense, np.ones(size), 0.5 * b)
    assert all(Fraction(x) <= e for x, e in zip(course.lower.tolist(), least, strict=True))
