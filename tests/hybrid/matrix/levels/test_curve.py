"""Path counts, the level curve, and the choice of a level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.levels.curve import _total_product, base_memory_bytes, level_curve
from hybrid.matrix.levels.table import choose_level
from tests.builders.matrices import all_ones, from_dense, random_codes, random_sparse


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 20))
def test_counts_agree_with_enumeration(seed: int, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, n_rows, n_columns, 0.3)
    matrix = from_dense(dense, random_codes(rng, 5, n_rows), random_codes(rng, 5, n_columns), 5)
    below, above = matrix.entries_below, matrix.paths_above
    assert below[0].sum() == np.count_nonzero(dense)
    for k in range(matrix.n_levels + 1):
        # Every entry lies below exactly one path of every level.
        assert (below[k] * above[k]).sum() == np.count_nonzero(dense)
        injected = inject_level(matrix, k)
        np.testing.assert_array_equal(np.diff(injected.blocks.ptr), below[k])
        np.testing.assert_array_equal(
            np.bincount(injected.instances["submatrix"], minlength=matrix.nodes[k]), above[k]
        )


def test_curve_agrees_with_what_is_built() -> None:
    rng = np.random.default_rng(21)
    dense = random_sparse(rng, 700, 600, 0.02)
    matrix = from_dense(dense, random_codes(rng, 11, 700), random_codes(rng, 11, 600), 11)
    curve = level_curve(matrix)
    assert len(curve) == 23
    assert curve.nonzeros == np.count_nonzero(dense)
    for candidate in curve.levels:
        injected = inject_level(matrix, candidate.level)
        assert candidate.nodes == injected.n_submatrices
        assert candidate.paths == len(injected)
        assert candidate.submatrix_nonzeros == len(injected.blocks.value)
        assert candidate.bytes_first == injected.nbytes
        tasks = cut_tasks(injected)
        assert len(tasks.instances) <= candidate.instances_worst_case
        spare = candidate.instances_worst_case - len(tasks.instances)
        assert candidate.bytes_worst_case == tasks.nbytes + spare * tasks.instances.itemsize


def test_worst_case_is_the_formula_of_the_thesis() -> None:
    matrix = from_dense(np.eye(1024))
    root = level_curve(matrix)[0]
    assert (root.nodes, root.paths, root.instances_worst_case) == (1, 1, 1024 // 256 + 2)
    assert root.bytes_worst_case == 1024 * 16 + 2 * 8 + 6 * 20 + 5 * 8
    assert base_memory_bytes(1000) == 24_000
    assert base_memory_bytes(1000, with_b=True) == 32_000


def test_min_memory_is_the_exact_minimum() -> None:
    matrix = from_dense(np.kron(np.eye(64), np.ones((8, 8))))
    curve = level_curve(matrix)
    sizes = [c.bytes_worst_case for c in curve.levels]
    assert curve.min_memory == int(np.argmin(sizes))
    held = [curve.bytes_predicted(k, "cpu") for k in range(len(curve))]
    assert choose_level(curve, "min-memory").level == int(np.argmin(held))
    assert "least memory" in choose_level(curve, "min-memory").reason


def test_min_time_is_within_the_tie_of_the_least_prediction() -> None:
    matrix = from_dense(np.kron(np.eye(64), np.ones((8, 8))))
    curve = level_curve(matrix)
    times = [c.seconds_predicted for c in curve.levels if c.seconds_predicted is not None]
    for policy in ("min-time", "auto"):
        chosen = curve[choose_level(curve, policy, "cpu").level]
        assert chosen.seconds_predicted <= 1.05 * min(times)
    assert choose_level(curve, "min-time", "reference").level in range(len(curve))


def test_memory_budget_narrows_the_choice() -> None:
    matrix = from_dense(np.kron(np.eye(64), np.ones((8, 8))))
    curve = level_curve(matrix)
    sizes = sorted(c.row_type_bytes for c in curve.levels)
    choice = choose_level(curve, "min-time", memory_budget=sizes[0])
    assert curve[choice.level].row_type_bytes == sizes[0]
    assert f"within {sizes[0]} bytes" in choice.reason
    with pytest.raises(ValueError, match="no level fits"):
        choose_level(curve, memory_budget=sizes[0] - 1)
    largest = max(curve.levels, key=lambda c: c.row_type_bytes)
    with pytest.raises(ValueError, match="more than the budget"):
        choose_level(curve, largest.level, memory_budget=sizes[0])


def test_unknown_policies_are_refused() -> None:
    curve = level_curve(from_dense(np.eye(2)))
    for policy in ("fast", True, 2.0):
        with pytest.raises(ValueError, match="min-time"):
            choose_level(curve, policy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected 0\.\.2"):
        choose_level(curve, -1)


def test_counts_far_beyond_memory_are_exact() -> None:
    matrix = all_ones(30)
    matrix.validate()
    curve = level_curve(matrix)
    assert curve.nonzeros == 4**30
    assert curve[60].paths == 4**30
    assert curve.min_memory not in (0, 60)
    # Row types of a dense matrix hold whole dense rows, which nobody could store.
    assert curve[30].row_type_bytes is None
    held = min(range(len(curve)), key=lambda k: (curve[k].bytes_first, k))
    assert choose_level(curve, "min-memory", "reference").level == held
    with pytest.raises(ValueError, match="too many row types for the cpu backend"):
        choose_level(curve, 30, "cpu")


def test_counts_that_overflow_are_reported() -> None:
    matrix = all_ones(32)
    with pytest.raises(OverflowError, match=r"more than 2\^62 non-zero entries"):
        _ = matrix.entries_below
    with pytest.raises(OverflowError, match=r"more than 2\^62 paths"):
        _ = matrix.paths_above


def test_sums_over_the_nodes_of_a_level_that_overflow_are_reported() -> None:
    """Every count fits, their sum over a level does not."""
    counts = np.full(4, 2**61)
    with pytest.raises(OverflowError, match=r"instances of level 3 number 2\*\*62 or more"):
        _total_product(counts, np.ones(1, np.int64), "instances of level 3")
    with pytest.raises(OverflowError):
        _total_product(np.full(1, 2**40), np.full(1, 2**30), "cut instances")
    assert _total_product(np.full(2, 2**60), np.ones(1, np.int64), "paths") == 2**61
