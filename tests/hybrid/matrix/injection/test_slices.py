"""Slices hold the rows of the row types, and the CPU layout covers every row once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.matrix.cpu.layout import CpuLayout, build_cpu_layout
from hybrid.matrix.cpu.product import CpuProduct
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.slices import WIDTH
from hybrid.matrix.injection.submatrices import find_block_classes
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense, random_codes, random_sparse
from tests.exploring import each


def expand(layout: CpuLayout, shape: tuple[int, int]) -> np.ndarray:
    """Dense matrix read off the layout entry by entry."""
    dense, table = np.zeros(shape), layout.table
    for g, kind in enumerate(layout.row_type):
        own = layout.slot_ptr[g]
        for q in range(table.ptr[kind + 1] - table.ptr[kind]):
            which = table.pattern[table.ptr[kind] + q]
            for t in range(table.pattern_ptr[which], table.pattern_ptr[which + 1]):
                slot = own + table.slot[t]
                for lane in np.flatnonzero(table.coefficients[table.vector[t]]):
                    local = WIDTH * q + lane
                    value = table.coefficients[table.vector[t], lane]
                    if layout.scaled:
                        value *= layout.scale[slot]
                    dense[layout.row[g] + local, layout.base[slot] + local + table.shift[t]] += value
    return dense


def lay_out(matrix: OffsetMTBDD, k: int, scaled: bool) -> CpuLayout:
    layout = build_cpu_layout(RowTypes(find_block_classes(matrix, scaled)), k)
    assert layout is not None
    return layout


@given(st.integers(0, 2**32), st.integers(1, 40), st.booleans())
def test_slices_expand_to_the_matrix(seed: int, size: int, scaled: bool) -> None:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, size, size, 0.2)
    matrix = from_dense(dense, random_codes(rng, 6, size), random_codes(rng, 6, size), 6)
    for k in range(0, 13, 3):
        np.testing.assert_allclose(expand(lay_out(matrix, k, scaled), dense.shape), dense, rtol=1e-15)


@pytest.mark.parametrize(("scaled", "size"), each([False, True], [1, 7, 8, 9, 15, 16, 17, 63, 64, 65]))
def test_products_at_sizes_around_the_width(size: int, scaled: bool) -> None:
    rng = np.random.default_rng(600 + size)
    dense = random_sparse(rng, size, size, 0.5)
    matrix = from_dense(dense)
    # A margin of NaN around the vectors shows every access outside of them.
    room, target = np.full(size + 32, np.nan), np.full(size + 32, np.nan)
    room[16:-16] = rng.normal(size=size)
    for k in range(matrix.n_levels + 1):
        target[:] = np.nan
        CpuProduct(lay_out(matrix, k, scaled)).multiply(room[16:-16], target[16:-16])
        np.testing.assert_allclose(target[16:-16], dense @ room[16:-16], rtol=1e-13, atol=1e-14)
        assert np.all(np.isnan(target[:16]))
        assert np.all(np.isnan(target[-16:]))


def test_pieces_and_gaps_cover_every_row_once() -> None:
    rng = np.random.default_rng(83)
    dense = random_sparse(rng, 900, 900, 0.004)
    dense[100:200] = 0.0
    matrix = from_dense(dense, random_codes(rng, 11, 900), random_codes(rng, 11, 900), 11)
    for k in range(0, 23, 2):
        layout = lay_out(matrix, k, scaled=False)
        seen = np.zeros(900, int)
        for first, count, begin, end in zip(
            layout.piece_group, layout.piece_count, layout.piece_begin, layout.piece_end, strict=True
        ):
            for g in range(first, first + max(count, 1)):
                rows = layout.table.rows[layout.row_type[g]]
                seen[layout.row[g] + WIDTH * begin : layout.row[g] + min(WIDTH * end, rows)] += 1
                assert layout.row_type[g] == layout.row_type[first]
        for begin, end in zip(layout.gap_begin, layout.gap_end, strict=True):
            seen[begin:end] += 1
        assert np.all(seen == 1)
        assert layout.chunk_ptr[0] == 0
        assert layout.chunk_ptr[-1] == len(layout.piece_group)
        assert layout.nbytes > 0


def test_safe_groups_never_read_outside_x() -> None:
    rng = np.random.default_rng(85)
    dense = random_sparse(rng, 300, 200, 0.03)
    matrix = from_dense(dense, random_codes(rng, 10, 300), random_codes(rng, 10, 200), 10)
    unsafe = 0
    for k in range(21):
        layout = lay_out(matrix, k, scaled=False)
        table = layout.table
        for first, count in zip(layout.piece_group, layout.piece_count, strict=True):
            unsafe += count == 0
            for g in range(first, first + count):
                kind, own = layout.row_type[g], layout.slot_ptr[g]
                for q in range(table.ptr[kind + 1] - table.ptr[kind]):
                    which = table.pattern[table.ptr[kind] + q]
                    terms = slice(table.pattern_ptr[which], table.pattern_ptr[which + 1])
                    start = layout.base[own + table.slot[terms]] + WIDTH * q + table.shift[terms]
                    assert np.all(start >= 0)
                    assert np.all(start + WIDTH <= 200)
    assert unsafe > 0


def test_groups_of_one_type_are_multiplied_together() -> None:
    counter = np.eye(8, k=1) + 2 * np.eye(8, k=-1)
    dense = np.kron(np.eye(64), counter)
    layout = lay_out(from_dense(dense), 12, scaled=False)
    assert len(layout.table.rows) == 1
    assert (layout.piece_count == 4).sum() >= 14
    assert len(layout.table.coefficients) == 2


def test_large_row_types_are_cut_into_pieces() -> None:
    size = 3 * 8 * 1024 + 5
    values = np.ones(size)
    from tests.builders.matrices import from_coo

    index, codes = np.arange(size), np.arange(size)
    matrix = from_coo(index, (index * 3) % size, values, codes, codes, 15)
    layout = lay_out(matrix, 0, scaled=False)
    assert len(layout.piece_group) == 13
    x, out = np.random.default_rng(84).random(size), np.empty(size)
    CpuProduct(layout).multiply(x, out)
    np.testing.assert_array_equal(out, x[(index * 3) % size])
