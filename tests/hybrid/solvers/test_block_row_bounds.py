"""Bounds by block row: exact values, block rows that do not stand still, rows that form none."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.bellman import DirectedSystem
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.vector_space import Pair, Steps
from hybrid.solvers import Criterion, Optimistic, Status
from hybrid.solvers.block_row_bounds import BlockRowBounds
from tests.builders.linear_systems import Dense, exact_solution
from tests.builders.stopping import StopAfter

SLACK = 64 * UNIT
System = tuple[Any, Any, Any]
Rows = Sequence[Sequence[int]]


class HostBlockRow:
    """Steps over some rows, from steps over all."""

    def __init__(self, steps: Steps, rows: Sequence[int]) -> None:
        self.steps, self.rows, self.changes = steps, list(rows), np.zeros(2)

    def sweep(self, pair: Pair, done: int, count: int, total: Any = None) -> None:
        for k in range(done, done + count):
            x, out = pair[k % 2], pair[1 - k % 2]
            new = np.zeros_like(x)
            self.steps.sweep((x, new), 0, 1)
            gone = np.abs(new - x)[self.rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(gone > 0.0, gone / new[self.rows], 0.0)
            self.changes = np.array([gone.max(initial=0.0), share.max(initial=0.0)])
            out[self.rows] = new[self.rows]


class HostBlockRows:
    """Block rows of rows on the host; see `hybrid.matrix.gpu.repeated_steps.DeviceBlockRows`."""

    def __init__(self, size: int, rows: Rows) -> None:
        self.rows, self.shares = rows, [len(own) / size for own in rows]

    def steps(self, steps: Steps) -> list[HostBlockRow]:
        return [HostBlockRow(steps, own) for own in self.rows]


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._BEGIN", 20)


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What each try over block rows has come to."""
    told: list[float] = []
    solve = BlockRowBounds.solve

    def monitor(accelerator: BlockRowBounds, *arguments: Any) -> int:
        is_own = accelerator.from_anywhere
        made = solve(accelerator, *arguments)
        if is_own:
            told.append(accelerator.width)
        return made

    monkeypatch.setattr(BlockRowBounds, "solve", monitor)
    return told


def found_by(
    system: System, rows: Rows | None, criterion: Criterion | None = None, progress: Any = None
) -> Any:
    dense, diagonal, b = system
    block_rows = None if rows is None else HostBlockRows(b.size, rows)
    method = Optimistic(criterion or Criterion(), krylov="never", block_rows=lambda: block_rows)
    return method.solve(Dense(dense), diagonal, b, SLACK, None, progress)


def holds(system: System, found: BoundedSolution) -> None:
    for low, x, high in zip(found.lower.tolist(), exact_solution(*system), found.upper.tolist(), strict=True):
        assert 0 <= low <= x <= high


def path(size: int, step: float = 0.9) -> System:
    """Rows in a row, each of which refers to the one before it alone."""
    return np.diag(np.full(size - 1, step), -1), np.ones(size), np.r_[1.0, np.full(size - 1, 0.05)]


def in_block_rows(size: int, count: int) -> Rows:
    return [part.tolist() for part in np.array_split(np.arange(size), count)]


def test_a_path_needs_few_products(widths: list[float]) -> None:
    system = path(120)
    plain, quick = found_by(system, None), found_by(system, in_block_rows(120, 12))
    assert widths == [quick.difference] and quick.difference <= 1e-8
    assert quick.status is plain.status is Status.CONVERGED
    assert quick.products < 0.6 * plain.products
    holds(system, quick)


@pytest.mark.parametrize("absolute", [False, True])
def test_bounds_hold_on_random_rows_in_block_rows(
    rng: np.random.Generator, widths: list[float], absolute: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._PASSING", 0.0)
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._WORTH", 1000.0)
    for _ in range(10):
        size, count = int(rng.integers(30, 60)), int(rng.integers(2, 6))
        rows = in_block_rows(size, count)
        block_row = np.repeat(np.arange(count), [len(own) for own in rows])
        dense = (
            rng.random((size, size)) * (rng.random((size, size)) < 0.1) * (block_row[:, None] >= block_row)
        )
        np.fill_diagonal(dense, 0.0)
        diagonal = dense.sum(axis=1) * (1.0 + 10.0 ** -rng.uniform(1, 2.5)) + 2.0**-10
        system = dense, diagonal, rng.random(size)
        holds(system, found_by(system, rows, Criterion(1e-8, absolute, 50_000)))
    assert sum(map(math.isfinite, widths)) > 2


@pytest.mark.parametrize("order", [[1, 0, 2], [2, 1, 0], [0, 1]])
def test_rows_that_are_no_block_rows_are_told_from_above(widths: list[float], order: list[int]) -> None:
    """In another order, or without some rows, values stand still that are no solution."""
    system = path(90)
    rows = in_block_rows(90, 3)
    found = found_by(system, [rows[i] for i in order])
    assert widths and not any(map(math.isfinite, widths))
    assert found.status is Status.CONVERGED
    holds(system, found)


@pytest.mark.parametrize("epsilon", [3e-3, 3e-4, 3e-5, 3e-6])
@pytest.mark.parametrize("begin", [3, 4, 5])
def test_values_that_are_close_but_stand_still_too_low_are_no_bounds(
    epsilon: float, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._BEGIN", begin)
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._PASSING", 0.0)
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._WORTH", 100.0)
    system = path(30, 0.1)
    holds(system, found_by(system, in_block_rows(30, 3)[::-1], Criterion(epsilon)))


@pytest.mark.parametrize("leaving", [1e-1, 1e-2, 2e-3])
def test_rows_that_go_round_for_long_are_left(widths: list[float], leaving: float) -> None:
    size, count = 48, 8
    dense = np.diag(np.full(size - 1, 0.5), 1) + np.diag(np.full(size - 1, 0.5), -1)
    for first in range(size // count, size, size // count):
        dense[first - 1, first] = 0.0
    system = dense, dense.sum(axis=1) + leaving, np.full(size, 1e-3)
    plain, found = found_by(system, None), found_by(system, in_block_rows(size, count))
    assert widths and found.status is plain.status is Status.CONVERGED
    assert found.products < 1.5 * plain.products
    holds(system, found)


def test_values_next_to_underflow_are_not_taken(widths: list[float]) -> None:
    size = 60
    dense = np.diag(np.full(size - 1, 2.0**-30), -1)
    system = dense, np.ones(size), np.r_[1.0, np.zeros(size - 1)]
    found = found_by(system, in_block_rows(size, 6), Criterion(1e-6))
    assert widths and not any(map(math.isfinite, widths))
    holds(system, found)


def test_zeros_are_proved(widths: list[float]) -> None:
    """The first rows have no right-hand side, and lead to each other alone."""
    dense, diagonal, b = path(100)
    b[:30] = 0.0
    found = found_by((dense, diagonal, b), in_block_rows(100, 10))
    assert math.isfinite(widths[-1]) and found.more_vectors > 0
    assert not found.upper[:30].any() and found.lower[30:].all()
    holds((dense, diagonal, b), found)


@pytest.mark.parametrize("entry, reward", [(1e-200, 1e-200), (1e-150, 1e-170)])
def test_values_that_vanish_are_no_zeros(widths: list[float], entry: float, reward: float) -> None:
    dense, diagonal, b = path(100)
    b[:], b[50:], b[19] = 0.0, 0.05, reward
    dense[20, 19], dense[50, 49] = entry, 0.0
    found = found_by((dense, diagonal, b), in_block_rows(100, 10))
    assert widths and not any(map(math.isfinite, widths))
    for low, x, high in zip(
        found.lower.tolist(), exact_solution(dense, diagonal, b), found.upper.tolist(), strict=True
    ):
        assert 0 <= low <= x and (x <= high or high == math.inf)


@pytest.mark.parametrize("last", [0.0, 0.05])
def test_bounds_that_rounding_keeps_apart_are_taken(widths: list[float], last: float) -> None:
    dense, diagonal, b = path(120, 1.0)
    b[1:] = last
    found = found_by((dense, diagonal, b), in_block_rows(120, 6), Criterion(1e-15))
    assert widths == [found.difference] and 1e-15 < found.difference < 1e-10
    assert found.status is Status.CONVERGED
    holds((dense, diagonal, b), found)


def test_bounds_that_rounding_keeps_far_apart_are_not_taken(
    widths: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may be off by a thousandth: after forty of them the two that stand still have a digit or two."""
    monkeypatch.setattr(sys.modules[__name__], "SLACK", 2.0**-10)
    found = found_by(path(40, 1.0), in_block_rows(40, 4), Criterion(1e-8, max_iterations=200))
    assert widths and not any(map(math.isfinite, widths))
    holds(path(40, 1.0), found)


class RaisedBlockRows(HostBlockRows):
    """Block rows whose steps, after those of the upper bound, leave values above it."""

    calls = 0

    def steps(self, steps: Steps) -> list[HostBlockRow]:
        self.calls += 1
        found = super().steps(steps)
        return found if self.calls % 2 else [BlockRowAbove(steps, own) for own in self.rows]


class BlockRowAbove(HostBlockRow):
    """Steps that raise every row of theirs once, and then stand still."""

    def sweep(self, pair: Pair, done: int, count: int, total: Any = None) -> None:
        super().sweep(pair, done, 20, total)
        for x in pair:
            x[self.rows] *= 1.0 + 1e-4
        self.changes = np.zeros(2)


def test_a_lower_bound_above_the_upper_one_is_not_taken(widths: list[float]) -> None:
    dense, diagonal, b = path(60)
    block_rows = RaisedBlockRows(60, in_block_rows(60, 6))
    method = Optimistic(Criterion(1e-8), krylov="never", block_rows=lambda: block_rows)
    found = method.solve(Dense(dense), diagonal, b, SLACK, None, None)
    assert block_rows.calls > 1 and not any(map(math.isfinite, widths))
    holds((dense, diagonal, b), found)


def test_a_try_that_fails_late_leaves_the_iteration_as_it_was(
    widths: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    dense, diagonal, b = path(120, 1.0)
    b[1:] = 0.0
    system = dense, diagonal, b
    monkeypatch.setattr(BlockRowBounds, "_is_far_from_underflow", lambda *arguments: False)
    plain, found = found_by(system, None), found_by(system, in_block_rows(120, 6))
    assert widths and not any(map(math.isfinite, widths))
    assert found.status is plain.status is Status.CONVERGED
    np.testing.assert_array_equal(found.lower, plain.lower)
    np.testing.assert_array_equal(found.upper, plain.upper)


def test_a_limit_of_products_is_kept(widths: list[float]) -> None:
    for limit in (25, 40, 60):
        found = found_by(path(120, 1.0), in_block_rows(120, 6), Criterion(1e-8, max_iterations=limit))
        assert found.iterations <= limit


@pytest.mark.parametrize("calls", [1, 14, 20, 24, 27])
def test_it_ends_where_it_is_asked_to(widths: list[float], calls: int) -> None:
    system = path(100, 1.0)
    found = found_by(system, in_block_rows(100, 10), progress=StopAfter(calls))
    assert found.status is Status.INTERRUPTED
    assert len(widths) == (calls > 14) and not any(map(math.isfinite, widths))
    holds(system, found)


def test_values_that_overflow_are_no_bounds() -> None:
    system = path(80, 1e8)
    found = found_by(system, in_block_rows(80, 8))
    assert found.status is Status.DIVERGED
    assert np.isinf(found.upper).all()


def test_zeros_lead_to_zeros_and_have_no_right_hand_side() -> None:
    dense = np.zeros((4, 4))
    dense[1, 0], dense[3, 2] = 0.5, 5e-324
    b = np.array([0.0, 0.0, 1.0, 0.0])
    system = DirectedSystem(Dense(dense), np.full(4, 8.0), b, SLACK, 8)
    assert system.are_zeros(np.array([0.0, 0.0, 1.0, 1.0]))
    assert not system.are_zeros(np.array([0.0, 0.0, 1.0, 0.0]))
    b[0] = 5e-324
    system = DirectedSystem(Dense(dense), np.full(4, 8.0), b, SLACK, 8)
    assert not system.are_zeros(np.array([0.0, 0.0, 1.0, 1.0]))
