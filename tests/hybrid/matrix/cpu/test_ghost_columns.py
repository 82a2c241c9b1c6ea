"""Products in stages: rows without ghost columns come first, and every row has the bits of one product."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import hybrid.matrix.cpu.staged_product as stages
from hybrid.base.operands import ArrivingVector
from hybrid.matrix.cpu.layout import build_cpu_layout
from hybrid.matrix.cpu.product import CpuProduct
from hybrid.matrix.cpu.staged_product import find_ghost_columns
from hybrid.matrix.cpu.task_product import CpuTaskProduct
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import find_block_classes
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense, random_codes, random_sparse
from tests.exploring import rounds

Vector = NDArray[np.float64]
Product = CpuProduct | CpuTaskProduct
MADE = ("plain", "scaled", "tasks")


def product_of(matrix: OffsetMTBDD, level: int, made: str, n_own: int | None) -> Product:
    if made == "tasks":
        return CpuTaskProduct(cut_tasks(inject_level(matrix, level), 16), n_own)
    layout = build_cpu_layout(RowTypes(find_block_classes(matrix, made == "scaled")), level, n_own)
    assert layout is not None
    return CpuProduct(layout)


def arrival(x: Vector, n_own: int, product: Product) -> ArrivingVector:
    """Return a vector whose own elements are copied where the product asks for that, and else no numbers."""
    whole, own = np.full(x.size, np.nan), np.full(x.size, np.nan)
    own[:n_own], whole[n_own:] = x[:n_own], x[n_own:]
    for begin, end in product.stretches:
        whole[begin:end] = x[begin:end]
    return ArrivingVector(own[:n_own], whole)


@pytest.fixture
def any_work_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_LEAST_TERMS", 1)
    monkeypatch.setattr(stages, "_BLOCK", 16)


@pytest.fixture
def no_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be computed anew because what was not copied is no number."""

    def refuse(*_: object) -> None:
        raise AssertionError("something was read that was not copied")

    monkeypatch.setattr(CpuProduct, "_multiply_exactly", refuse)


def near_and_far(rng: np.random.Generator, size: int, late: int) -> tuple[np.ndarray, OffsetMTBDD]:
    """A band, and entries in ghost columns in some stretches of rows; some rows are empty."""
    dense = np.zeros((size, size + late))
    for shift in (-3, 0, 1, 5):
        dense += 0.5 * rng.integers(1, 4, (size, 1)) * np.eye(size, size + late, shift)
    for begin in rng.integers(0, size, 2):
        rows = slice(begin, begin + size // 8 + 1)
        dense[rows, size:] = random_sparse(rng, len(dense[rows]), late, 0.2)
    dense[rng.integers(0, size, size // 10)] = 0.0
    dense[:, size:][:, rng.random(late) < 0.1] = 0.0
    codes = random_codes(rng, 9, size), np.append(random_codes(rng, 9, size), 512 + np.arange(late))
    return dense, from_dense(dense, *codes, 10)


@pytest.mark.usefixtures("any_work_is_worth_it", "no_repair")
@pytest.mark.parametrize("made", MADE)
def test_rows_have_the_bits_of_one_product(rng: np.random.Generator, made: str) -> None:
    in_place = 0
    for _ in range(rounds(8)):
        size, late = int(rng.integers(2, 400)), int(rng.integers(1, 60))
        _, matrix = near_and_far(rng, size, late)
        x = rng.normal(size=size + late)
        for level in range(0, matrix.n_levels + 1, 3):
            wanted, out = np.empty(size), np.full(size, np.nan)
            product_of(matrix, level, made, None).multiply(x, wanted)
            product = product_of(matrix, level, made, size)
            product.multiply_overlapped(arrival(x, size, product), out)
            np.testing.assert_array_equal(out, wanted)
            in_place += size - int(np.diff(product.stretches).sum())
            product.multiply(x, wanted)
            np.testing.assert_array_equal(out, wanted)
    assert in_place > 100


@pytest.mark.usefixtures("any_work_is_worth_it", "no_repair")
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("omega", [1.0, 0.7])
def test_steps_have_the_bits_of_one_step(rng: np.random.Generator, made: str, omega: float) -> None:
    in_place = 0
    for turn in range(rounds(6)):
        size, late = int(rng.integers(2, 400)), int(rng.integers(1, 60))
        _, matrix = near_and_far(rng, size, late)
        x, diagonal = rng.normal(size=size + late), 1.0 + rng.random(size)
        b = rng.normal(size=size) if turn % 2 else None
        for level in range(0, matrix.n_levels + 1, 4):
            wanted, out = np.empty(size), np.full(size, np.nan)
            changes = product_of(matrix, level, made, None).relax(x, b, diagonal, omega, wanted)
            product = product_of(matrix, level, made, size)
            assert product.relax_overlapped(arrival(x, size, product), b, diagonal, omega, out) == changes
            np.testing.assert_array_equal(out, wanted)
            in_place += size - int(np.diff(product.stretches).sum())
    assert in_place > 50


@pytest.mark.usefixtures("any_work_is_worth_it")
@pytest.mark.parametrize("made", MADE)
def test_what_is_infinite_is_as_in_one_product(rng: np.random.Generator, made: str) -> None:
    _, matrix = near_and_far(rng, 200, 20)
    diagonal = np.ones(200)
    for place in (3, 150, 210):
        x = rng.normal(size=220)
        x[place] = np.inf
        for step in (False, True):
            wanted, out = np.empty(200), np.full(200, np.nan)
            plain, product = product_of(matrix, 8, made, None), product_of(matrix, 8, made, 200)
            vector = arrival(x, 200, product)
            if step:
                found = product.relax_overlapped(vector, None, diagonal, 1.0, out)
                np.testing.assert_array_equal(found, plain.relax(x, None, diagonal, 1.0, wanted))
            else:
                plain.multiply(x, wanted)
                product.multiply_overlapped(vector, out)
            np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("made", MADE)
def test_few_rows_have_no_call_of_their_own(rng: np.random.Generator, made: str) -> None:
    _, matrix = near_and_far(rng, 200, 20)
    x, wanted, out = rng.normal(size=220), np.empty(200), np.full(200, np.nan)
    product = product_of(matrix, 8, made, 200)
    assert not len(product.stretches)
    product.multiply_overlapped(arrival(x, 200, product), out)
    product.multiply(x, wanted)
    np.testing.assert_array_equal(out, wanted)


def test_stretches_cover_what_late_rows_read_and_where_they_are() -> None:
    ptr, rows = np.array([0, 2, 2, 3, 4]), np.array([[0, 10], [10, 20], [20, 5000], [5000, 5010]])
    reach = np.array([[0, 8], [9000, 9008], [4, 12], [7000, 7008]])
    for n_own, is_boundary, stretches in (
        (None, [False] * 4, []),
        (9008, [False] * 4, []),
        (9007, [True, False, False, False], [[0, 1024], [8192, 9007]]),
        (7000, [True, False, False, True], [[0, 1024], [4096, 5120]]),
        (5, [True, False, True, True], [[0, 5]]),
        (0, [True, False, True, True], []),
    ):
        found = find_ghost_columns(ptr, rows, reach, n_own)
        assert found.is_boundary.tolist() == is_boundary, n_own
        assert found.stretches.tolist() == stretches, n_own
