"""Units of groups: every component once, after those it leads to, and block rows in their order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.operators.matrix_block_rows import Units, block_rows_of_units, ordered_units


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("edges", [0, 1, 3])
def test_units_are_components_in_the_order_of_their_solution(
    rng: np.random.Generator, n: int, edges: int
) -> None:
    source, target = (rng.integers(0, n, edges * n // 2) for _ in range(2))
    # Most edges lead to lower numbers, so that there are components of one group and of several.
    source, target = np.maximum(source, target), np.minimum(source, target)
    back = rng.random(len(source)) < 0.2
    source, target = np.where(back, target, source), np.where(back, source, target)
    other = source != target
    graph = csr_array((np.ones(int(other.sum())), (source[other], target[other])), shape=(n, n))
    units = ordered_units(CsrMatrix(graph))
    assert sorted(units.members.tolist()) == list(range(n))
    count, label = connected_components(graph, directed=True, connection="strong")
    assert len(units) == count
    number = np.empty(n, np.int64)
    for i, (begin, end) in enumerate(zip(units.ptr[:-1], units.ptr[1:], strict=True)):
        own = units.members[begin:end]
        assert len(set(label[own].tolist())) == 1 and len(own) == (label == label[own[0]]).sum()
        number[own] = i
    for a, b in zip(source[other], target[other], strict=True):
        assert number[b] <= number[a]


@pytest.mark.parametrize("least", [1, 5, 12, 1000])
def test_block_rows_are_units_until_there_are_enough(rng: np.random.Generator, least: int) -> None:
    size = rng.integers(1, 6, 40)
    ptr = np.concatenate(([0], np.sort(rng.choice(np.arange(1, 40), 12, replace=False)), [40]))
    units = Units(rng.permutation(40), ptr)
    expected: list[list[int]] = []
    gathered: list[int] = []
    for begin, end in zip(ptr[:-1], ptr[1:], strict=True):
        gathered += units.members[begin:end].tolist()
        if size[gathered].sum() >= least:
            expected.append(sorted(gathered))
            gathered = []
    if gathered:
        expected.append(sorted(gathered))
    assert [block_row.tolist() for block_row in block_rows_of_units(units, size, least)] == expected
    sizes = [size[units.members[a:b]].sum() for a, b in zip(ptr[:-1], ptr[1:], strict=True)]
    np.testing.assert_array_equal(units.sizes(size), sizes)
