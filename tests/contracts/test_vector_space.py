"""What every vector space promises to the methods whose vectors live in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import VectorSpace
from hybrid.solvers import Criterion
from tests.builders.matrices import banded
from tests.contracts.matrices import Make, matrix_parameters

SIZE = 40
MATRIX = banded(SIZE)
np.fill_diagonal(MATRIX, 0.0)
DIAGONAL = MATRIX.sum(axis=1) * 1.3
B = np.linspace(0.5, 1.0, SIZE)

pytestmark = pytest.mark.parametrize(
    "make",
    matrix_parameters("reference", "cpu", "compiled rows", "arrays", "gpu", "gpu, msr"),
    indirect=True,
)


@pytest.fixture
def space(make: Make) -> VectorSpace:
    return space_of(make(MATRIX))


def is_on_device(space: VectorSpace) -> bool:
    return space.stride > 1


def swept(space: VectorSpace, steps: Any, x: np.ndarray, count: int) -> np.ndarray:
    pair = space.vector(x), space.xp.zeros(SIZE)
    steps.sweep(pair, 0, count)
    return space.to_host(pair[count % 2])


class TestVectors:
    def test_they_are_copies(self, space: VectorSpace) -> None:
        values = np.arange(3)
        found = space.vector(values)
        found += 1.0
        assert space.to_host(found).tolist() == [1.0, 2.0, 3.0]
        assert values.tolist() == [0, 1, 2]
        assert found.dtype == np.float64
        assert isinstance(found, space.xp.ndarray)

    @pytest.mark.parametrize("maximise", [True, False])
    def test_members_of_groups_are_joined(self, space: VectorSpace, maximise: bool) -> None:
        values = np.array([3.0, -1.0, 4.0, np.inf, -5.0, 9.0])
        found = space.vector(values)
        space.joining(np.array([4, 0, 2, 5, 3]), np.array([3, 2]), maximise)(found)
        best = [4.0, np.inf] if maximise else [-5.0, 9.0]
        assert space.to_host(found).tolist() == [best[0], -1.0, best[0], best[1], best[0], best[1]]

    def test_a_number_stands_for_a_vector(self, space: VectorSpace) -> None:
        constant = np.broadcast_to(np.float64(0.25), (5,))
        found = space.vector(constant)
        found += 1.0  # a vector of its own
        assert space.to_host(found).tolist() == [1.25] * 5
        assert constant[0] == 0.25

    def test_operands_are_what_was_given(self, space: VectorSpace) -> None:
        found = space.to_host(space.operand(B))
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, B)

    def test_products_leave_their_vector(self, space: VectorSpace, rng: np.random.Generator) -> None:
        x = rng.random(SIZE)
        held, out = space.vector(x), space.vector(np.full(SIZE, np.nan))
        space.multiply(held, out)
        np.testing.assert_allclose(space.to_host(out), MATRIX @ x, rtol=1e-13)
        np.testing.assert_array_equal(space.to_host(held), x)

    def test_scaled_vectors_are_added(self, space: VectorSpace, rng: np.random.Generator) -> None:
        x, total = rng.random(1000), rng.random(1000)
        held = space.vector(total)
        space.add_scaled(0.5, space.vector(x), held)
        np.testing.assert_allclose(space.to_host(held), total + 0.5 * x, rtol=1e-15)
        space.add_scaled(0.5, space.vector(x), held, space.xp.asarray(3.0))
        np.testing.assert_allclose(space.to_host(held), total + 2.0 * x, rtol=1e-15)

    @pytest.mark.parametrize("size", [1, 33, 5000])
    def test_distances_are_greatest_changes(
        self, space: VectorSpace, rng: np.random.Generator, size: int
    ) -> None:
        x, y = rng.uniform(1.0, 2.0, size), rng.random(size)
        change = np.abs(x - y)
        found = space.read(space.distance(space.vector(x), space.vector(y)))
        assert found == pytest.approx([change.max(), (change / x).max()], rel=1e-15)
        # An element that does not change counts as zero, one that becomes zero as infinite.
        zeros = space.vector(np.zeros(size))
        assert space.read(space.distance(zeros, zeros)) == [0.0, 0.0]
        assert space.read(space.distance(zeros, space.vector(y)))[1] == np.inf

    def test_extremes(self, space: VectorSpace, rng: np.random.Generator) -> None:
        x = rng.normal(size=3000)
        assert space.read(*space.extremes(space.vector(x))) == [x.min(), x.max()]
        x[1234] = np.nan
        assert np.isnan(space.read(*space.extremes(space.vector(x)))).all()

    def test_elementwise_work_meets_every_element_once(self, space: VectorSpace) -> None:
        x, y = space.vector(np.arange(5000.0)), space.vector(np.ones(5000))

        def work(a: Any, b: Any) -> None:
            b += a

        space.each(work, x, y)
        np.testing.assert_array_equal(space.to_host(y), np.arange(5000.0) + 1.0)

    def test_looks_are_counted_where_somebody_waits(self, space: VectorSpace) -> None:
        x, before = space.vector([1.0, 2.0]), space.synchronisations
        assert space.read(x, x[:1], x.max()) == [1.0, 2.0, 1.0, 2.0]
        space.to_host(x)
        assert space.synchronisations - before == (2 if is_on_device(space) else 0)

    def test_stretches_end_at_the_limit(self, space: VectorSpace) -> None:
        assert space.stretch(0) == 0
        assert space.stretch(1) == 1
        for _ in range(5):
            assert 1 <= space.stretch(30) <= 30

    def test_what_there_is_no_room_for_is_refused(self, space: VectorSpace) -> None:
        space.reserve(8, SIZE)
        with pytest.raises(MemoryError, match=r"a solution with 8 vectors of 1125899906842624 elements"):
            space.reserve(8, 1 << 50)


class TestSystems:
    @pytest.mark.parametrize(("omega", "factor"), [(1.0, 1.0), (0.8, 1.0), (1.0, 1.25)])
    @pytest.mark.parametrize("with_b", [True, False])
    def test_relaxation(
        self, space: VectorSpace, rng: np.random.Generator, omega: float, factor: float, with_b: bool
    ) -> None:
        steps = space.system(DIAGONAL, B if with_b else None).relaxation(omega, factor)
        x, right = rng.random(SIZE), B if with_b else 0.0
        found, expected = swept(space, steps, x, 3), x
        for _ in range(3):
            before = expected
            expected = (1 - omega) * before + omega * (MATRIX @ before + right) / (factor * DIAGONAL)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        change = np.abs(expected - before)
        assert space.read(steps.changes) == pytest.approx([change.max(), (change / expected).max()], rel=1e-9)

    def test_uniformised_steps(self, space: VectorSpace, rng: np.random.Generator) -> None:
        rate, x = 1.1 * DIAGONAL.max(), rng.random(SIZE)
        found, expected = swept(space, space.system(DIAGONAL, B).uniformised(rate), x, 3), x
        for _ in range(3):
            expected = expected + (MATRIX @ expected + B - DIAGONAL * expected) / rate
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_sums_of_iterates_and_sweeps_of_any_length(self, space: VectorSpace) -> None:
        steps = space.system(DIAGONAL, B).relaxation()
        pair, total = (space.xp.zeros(SIZE), space.xp.zeros(SIZE)), space.xp.zeros(SIZE)
        x, expected, done = np.zeros(SIZE), np.zeros(SIZE), 0
        for count in (10, 20, 3, 1, 25, 10):
            steps.sweep(pair, done, count, total)
            for _ in range(count):
                expected += x
                x = (MATRIX @ x + B) / DIAGONAL
            done += count
            np.testing.assert_allclose(space.to_host(pair[done % 2]), x, rtol=1e-12)
            np.testing.assert_allclose(space.to_host(total), expected, rtol=1e-12)
        made, absolute, _ = space.read(steps.course)
        assert made == done
        assert absolute == pytest.approx(0.0, abs=1e-4)

    def test_steps_after_the_end_change_nothing(self, space: VectorSpace) -> None:
        criterion = Criterion(1e-3)
        steps = space.system(DIAGONAL, B).relaxation(criterion=criterion)
        pair, made = (space.xp.zeros(SIZE), space.xp.zeros(SIZE)), 0
        while made < 500:
            count = space.stretch(500 - made)
            steps.sweep(pair, made, count)
            made += count
            ended, absolute, relative = space.read(steps.course)
            if criterion.difference(absolute, relative) <= criterion.epsilon:
                break
        assert 10 < ended <= made < 500
        x, last = np.zeros(SIZE), np.zeros(SIZE)
        for _ in range(int(ended)):
            x, last = (MATRIX @ x + B) / DIAGONAL, x
        assert (np.abs(x - last) / x).max() <= 1e-3
        np.testing.assert_allclose(space.to_host(pair[int(ended) % 2]), x, rtol=1e-12)

    def test_a_shared_right_hand_side_is_not_copied(
        self, space: VectorSpace, rng: np.random.Generator
    ) -> None:
        x, own = rng.random(SIZE), space.vector(B)
        steps = space.system(DIAGONAL, None).sharing(own).relaxation()
        own *= 2.0
        np.testing.assert_allclose(swept(space, steps, x, 1), (MATRIX @ x + 2.0 * B) / DIAGONAL, rtol=1e-13)

    @pytest.mark.parametrize("with_b", [True, False])
    def test_residuals(self, space: VectorSpace, rng: np.random.Generator, with_b: bool) -> None:
        x = rng.random(SIZE)
        system = space.system(DIAGONAL, B if with_b else None)
        (found,) = space.read(system.residual(space.vector(x), space.xp.empty(SIZE)))
        exact = np.abs(MATRIX @ x + (B if with_b else 0.0) - DIAGONAL * x).max()
        assert found == pytest.approx(exact, rel=1e-12)
