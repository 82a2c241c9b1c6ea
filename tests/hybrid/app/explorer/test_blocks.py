"""Blocks on a grid: as many entries as there are, and in each cell the submatrix that single paths name."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.app.explorer import blocks
from hybrid.app.explorer.blocks import SHOWN, block_picture
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD, zero_matrix
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse


def held_by_kind(matrix: OffsetMTBDD, k: int, grid: tuple[int, int]) -> np.ndarray:
    """Entries by cell and node of level k: every path followed to its end, one entry each."""
    node = np.arange(matrix.nodes[0], dtype=np.int64)
    row, column, own = (np.zeros(len(node), np.int64) for _ in range(3))
    for j in range(matrix.n_levels + 1):
        if j == k:
            own = node
        if j < matrix.n_levels:
            node, row, column, own = descend(np, matrix, j, node, row, column, own)
    held = np.zeros((*grid, matrix.nodes[k]), np.int64)
    np.add.at(held, (row * grid[0] // matrix.n_rows, column * grid[1] // matrix.n_columns, own), 1)
    return held.reshape(grid[0] * grid[1], -1)


def drawn(rng: np.random.Generator, bits: int, least: int = 1) -> OffsetMTBDD:
    rows, columns = (random_codes(rng, bits, int(rng.integers(least, 2**bits + 1))) for _ in range(2))
    density = float(rng.choice([0.05, 0.3, 0.8]))
    return from_dense(random_sparse(rng, len(rows), len(columns), density), rows, columns, bits)


@pytest.mark.parametrize("cells", [1, 3, 8, 64])
def test_cells_hold_what_paths_bring(rng: np.random.Generator, cells: int) -> None:
    seen_others = False
    for _ in range(12):
        matrix = drawn(rng, int(rng.integers(2, 6)))
        picture = block_picture(matrix, cells)
        assert picture is not None and len(picture.levels) == matrix.n_levels + 1
        for k, level in enumerate(picture.levels):
            held = held_by_kind(matrix, k, picture.grid)
            assert np.array_equal(np.flatnonzero(held.sum(axis=1)), picture.cells)
            held = held[picture.cells]
            assert np.array_equal(held.sum(axis=1), picture.entries)
            cover = np.sort(held.sum(axis=0))[::-1]
            named = [block.entries * block.paths for block in level.shown]
            assert named == cover[:SHOWN].tolist()
            # Nodes by what they hold, as the picture numbers them; the rest together.
            order = np.argsort(-held.sum(axis=0), kind="stable")
            by_kind = held[:, order[:SHOWN]]
            if len(order) > SHOWN:
                by_kind = np.column_stack((by_kind, held[:, order[SHOWN:]].sum(axis=1)))
                seen_others = True
            own = by_kind[np.arange(len(held)), level.kinds] if len(held) else np.zeros(0)
            assert np.array_equal(own, by_kind.max(axis=1, initial=0))
    assert seen_others


def test_outlines_are_the_paths_of_blocks_larger_than_a_cell() -> None:
    matrix = from_dense(banded(16))
    picture = block_picture(matrix, 4)
    assert picture is not None
    for k, level in enumerate(picture.levels):
        assert level.outlines is not None
        sides = {(int(r), int(c)) for r, c in zip(matrix.rows[k], matrix.columns[k], strict=True)}
        large = {(r, c) for r, c in sides if r > 4 or c > 4}
        assert {(r * 16 // 4096, c * 16 // 4096) for _, _, r, c, _ in level.outlines.tolist()} == large
    (whole,) = picture.levels[0].outlines.tolist()  # type: ignore[union-attr]
    assert whole == [0, 0, 4096, 4096, 0]
    second = picture.levels[2].outlines
    assert second is not None
    assert sorted(tuple(own[:2]) for own in second.tolist()) == [(0, 0), (0, 2048), (2048, 0), (2048, 2048)]


def test_too_many_outlines_are_none_and_too_many_paths_a_coarser_grid(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = drawn(rng, 5, 24)
    fine = block_picture(matrix, 16)
    assert fine is not None and fine.grid != (1, 1)
    monkeypatch.setattr(blocks, "_MOST_OUTLINES", 2)
    assert any(level.outlines is None for level in block_picture(matrix, 16).levels)  # type: ignore[union-attr]
    monkeypatch.setattr(blocks, "_MOST_PATHS", 4)
    coarse = block_picture(matrix, 16)
    assert coarse is not None and coarse.grid < fine.grid
    assert coarse.entries.sum() == fine.entries.sum() == matrix.n_entries
    monkeypatch.setattr(blocks, "_MOST_NODES", 4)
    assert block_picture(matrix, 16) is None


def test_the_zero_matrix_has_no_cells() -> None:
    picture = block_picture(zero_matrix(3, 5, 5), 4)
    assert picture is not None
    assert picture.cells.size == 0
    assert all(not level.shown and not level.kinds.size for level in picture.levels)
