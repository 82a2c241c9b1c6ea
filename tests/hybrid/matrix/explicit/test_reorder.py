"""Breadth-first numbering, measures of structure and grids of density."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import hybrid
from gpu_kernels import Device
from hybrid.matrix.explicit import (
    CsrArrays,
    Reordering,
    bfs_order,
    density_of_diagram,
    density_of_rows,
    explicit_matrix,
    frontier_order,
    measure_structure,
)
from hybrid.matrix.explicit import density as density_module
from hybrid.matrix.explicit import density as measures_module
from hybrid.matrix.explicit.density import _two_keys
from mtbdd.offset.offset import zero_matrix
from tests.builders.matrices import from_dense, random_codes, random_sparse
from tests.gpu_kernels.devices import to_numpy


def arrays(dense: np.ndarray) -> CsrArrays:
    return CsrArrays.from_scipy(csr_matrix(dense))


def slow_order(dense: np.ndarray, initial: list[int]) -> list[int]:
    order: list[int] = []
    waiting = deque(dict.fromkeys(initial))
    seen = set(waiting)
    while len(order) < len(dense):
        if not waiting:
            waiting.append(next(s for s in range(len(dense)) if s not in seen))
            seen.add(waiting[0])
        state = waiting.popleft()
        order.append(state)
        for to in np.flatnonzero(dense[state]).tolist():
            if to not in seen:
                seen.add(to)
                waiting.append(to)
    return order


@settings(max_examples=60)
@given(
    st.integers(1, 40), st.floats(0.0, 0.3), st.integers(0, 10**6), st.lists(st.integers(0, 39), max_size=4)
)
def test_both_searches_meet_the_states_in_order(
    size: int, density: float, seed: int, initial: list[int]
) -> None:
    dense = random_sparse(np.random.default_rng(seed), size, size, density)
    initial = [s % size for s in initial]
    expected = slow_order(dense, initial)
    assert bfs_order(arrays(dense), initial).order.tolist() == expected
    assert frontier_order(arrays(dense), initial).order.tolist() == expected


def test_search_goes_on_from_the_first_state_left() -> None:
    dense = np.zeros((5000, 5000))
    dense[4999, 17] = dense[17, 4000] = 1.0
    for search in (bfs_order, frontier_order):
        order = search(arrays(dense), [4999]).order
        assert order[:5].tolist() == [4999, 17, 4000, 0, 1]
        assert sorted(order.tolist()) == list(range(5000))


def test_search_without_states() -> None:
    empty = CsrArrays((0, 0), np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0))
    assert len(bfs_order(empty)) == len(frontier_order(empty)) == 0


def test_permuted_matrix_and_vectors_give_the_original_answers(rng: np.random.Generator) -> None:
    dense = random_sparse(rng, 70, 70, 0.1)
    matrix = arrays(dense)
    new = bfs_order(matrix, [3])
    permuted = new.permute(matrix)
    order = new.order
    np.testing.assert_array_equal(permuted.to_scipy().toarray(), dense[np.ix_(order, order)])
    assert bool(
        (
            np.diff(permuted.columns)[np.diff(np.repeat(np.arange(70), np.diff(permuted.row_starts))) == 0]
            > 0
        ).all()
    )
    x = rng.random(70)
    np.testing.assert_array_equal(new.restore(new.reorder(x)), x)
    np.testing.assert_allclose(new.restore(permuted.to_scipy() @ new.reorder(x)), dense @ x, rtol=1e-13)
    assert permuted.columns.dtype == matrix.columns.dtype


def test_reordering_on_the_device(device: Device, rng: np.random.Generator) -> None:
    matrix = arrays(random_sparse(rng, 300, 300, 0.01))
    there = matrix.to_device(device)
    order = frontier_order(there, [5, 2])
    np.testing.assert_array_equal(to_numpy(order.order), bfs_order(matrix, [5, 2]).order)
    permuted, expected = order.permute(there).to_host(), bfs_order(matrix, [5, 2]).permute(matrix)
    for name in ("row_starts", "columns", "values"):
        np.testing.assert_array_equal(getattr(permuted, name), getattr(expected, name))
    assert measure_structure(there) == measure_structure(matrix)
    np.testing.assert_array_equal(density_of_rows(there, 40), density_of_rows(matrix, 40))
    x = rng.random(300)
    np.testing.assert_array_equal(to_numpy(order.restore(order.reorder(device.xp.asarray(x)))), x)


def test_pairs_too_large_for_one_key_are_sorted_alike(rng: np.random.Generator) -> None:
    row, column = rng.integers(0, 9, 200), rng.permutation(200)
    order = np.argsort(_two_keys(np, row, column), kind="stable")
    np.testing.assert_array_equal(order, np.lexsort((column, row)))


def test_wrong_arguments_are_refused(rng: np.random.Generator) -> None:
    square = arrays(np.eye(4))
    with pytest.raises(ValueError, match=r"expected states 0\.\.3, got 2\.\.9"):
        bfs_order(square, [2, 9])
    with pytest.raises(ValueError, match="square"):
        bfs_order(arrays(np.ones((2, 3))))
    order = Reordering(np.array([1, 0]))
    with pytest.raises(ValueError, match=r"expected shape \(2, 2\)"):
        order.permute(square)
    with pytest.raises(ValueError, match="expected 2 elements, one a state, got 3"):
        order.restore(np.zeros(3))


# ------------------------------------------------------------------ measures


def slow_measures(dense: np.ndarray) -> tuple[int, float, float, float]:
    row, column = np.nonzero(dense)
    distance = np.abs(row - column)
    warps = range(0, len(dense), 32)
    touched = [np.unique(np.nonzero(dense[first : first + 32])[1]) for first in warps]
    lines = [len(np.unique(elements // 16)) for elements in touched]
    return (
        int(distance.max()),
        float(distance.mean()),
        float(np.mean(lines)) * 128,
        float(np.mean([len(elements) for elements in touched])) * 8,
    )


@pytest.mark.parametrize("size", [1, 31, 32, 33, 100, 257])
@pytest.mark.parametrize("chunk", [5, 1 << 22])
def test_measures_equal_those_counted_by_hand(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, size: int, chunk: int
) -> None:
    monkeypatch.setattr(measures_module, "_CHUNK", chunk)
    dense = random_sparse(rng, size, size, 0.05)
    dense[0, size - 1] = 1.0
    found = measure_structure(arrays(dense))
    expected = slow_measures(dense)
    assert found.bandwidth == expected[0]
    assert list(found.record().values()) == pytest.approx(expected)


def test_measures_of_known_matrices() -> None:
    diagonal = measure_structure(arrays(np.eye(64)))
    assert (diagonal.bandwidth, diagonal.mean_distance) == (0, 0.0)
    assert diagonal.bytes_per_warp == diagonal.least_bytes_per_warp == 32 * 8
    nothing = measure_structure(arrays(np.zeros((40, 40))))
    assert set(nothing.record().values()) == {0}


def test_reordering_narrows_a_shuffled_ring(rng: np.random.Generator) -> None:
    place = rng.permutation(400)
    dense = np.zeros((400, 400))
    dense[place, place[np.arange(1, 401) % 400]] = 1.0
    dense[place[np.arange(1, 401) % 400], place] = 1.0
    matrix = arrays(dense)
    after = measure_structure(bfs_order(matrix, [7]).permute(matrix))
    assert after.bandwidth == 2
    assert after.bytes_per_warp < measure_structure(matrix).bytes_per_warp


# ------------------------------------------------------------------ density


def slow_grid(dense: np.ndarray, rows: int, columns: int) -> np.ndarray:
    grid = np.zeros((rows, columns), np.int64)
    for r, c in np.argwhere(dense).tolist():
        grid[r * rows // dense.shape[0], c * columns // dense.shape[1]] += 1
    return grid


@pytest.mark.parametrize("shape", [(50, 50), (64, 30), (3, 100), (100, 3), (1, 1)])
@pytest.mark.parametrize("cells", [1, 7, 40, 1000])
def test_grids_count_every_entry_in_its_cell(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], cells: int
) -> None:
    monkeypatch.setattr(density_module, "_CHUNK", 13)
    dense = random_sparse(rng, *shape, 0.2)
    codes = random_codes(rng, 7, shape[0]), random_codes(rng, 7, shape[1])
    found = density_of_rows(arrays(dense), cells)
    assert max(found.shape) == min(cells, max(shape))
    np.testing.assert_array_equal(found, slow_grid(dense, *found.shape))
    np.testing.assert_array_equal(density_of_diagram(from_dense(dense, *codes, 7), cells), found)


def test_grid_of_a_matrix_that_nothing_could_hold(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", {"t": 10}).transitions
    grid = density_of_diagram(matrix, 200)
    assert grid.shape == (200, 200)
    assert int(grid.sum()) == 12_032_229_352
    assert not density_of_diagram(zero_matrix(3, 5, 5), 10).any()
    with pytest.raises(ValueError, match="at least 1, got 0"):
        density_of_diagram(matrix, 0)


def test_grid_of_a_model_is_that_of_its_rows(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "cluster.prism", {"N": 4}).transitions
    np.testing.assert_array_equal(
        density_of_diagram(matrix, 60), density_of_rows(explicit_matrix(matrix), 60)
    )
