"""Passes over vectors on all threads give the bits of those in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hybrid.matrix.cpu.passes import CpuPasses
from hybrid.matrix.cpu.pool import run_in_parts
from hybrid.matrix.cpu.threads import set_thread_count
from hybrid.matrix.space.passes import NumPyPasses
from hybrid.matrix.space.vector_space import Array

THREADS = {1: 1, 7: 5, 16_384: 2, 16_385: 5, 19_999: 2, 20_000: 2, 70_001: 1, 300_007: 5}
"""By the size of the vectors."""


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    set_thread_count(5)
    yield
    set_thread_count(None)


@pytest.fixture(params=THREADS)
def size(request: pytest.FixtureRequest, threads: None) -> int:
    set_thread_count(THREADS[request.param])
    return int(request.param)


def vectors(rng: np.random.Generator, size: int, count: int) -> list[np.ndarray]:
    return [rng.standard_normal(size) * 10.0 ** rng.integers(-9, 9, size) for _ in range(count)]


def test_images_are_made_of_products(rng: np.random.Generator, size: int) -> None:
    x, product = vectors(rng, size, 2)
    diagonal, expected = rng.uniform(0.5, 2.0, size), product.copy()
    NumPyPasses().image(x, diagonal, 0.3, expected)
    CpuPasses().image(x, diagonal, 0.3, product)
    np.testing.assert_array_equal(product, expected)


def test_vectors_are_subtracted(rng: np.random.Generator, size: int) -> None:
    x, out = vectors(rng, size, 2)
    expected = x - out
    NumPyPasses().subtract_from(x, plain := out.copy())
    CpuPasses().subtract_from(x, out)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(plain, expected)


def test_scaled_vectors_are_added(rng: np.random.Generator, size: int) -> None:
    x, total = vectors(rng, size, 2)
    expected = total.copy()
    NumPyPasses().add_scaled(0.3, x, expected)
    CpuPasses().add_scaled(0.3, x, total)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("with_b", [False, True])
def test_steps_of_the_uniformised_chain(rng: np.random.Generator, size: int, with_b: bool) -> None:
    x, b, diagonal, out = vectors(rng, size, 4)
    right, found, expected = b if with_b else None, out.copy(), out.copy()
    NumPyPasses().uniformise(x, right, diagonal, 0.7, expected)
    CpuPasses().uniformise(x, right, diagonal, 0.7, found)
    np.testing.assert_array_equal(found, expected)
    plain = (1.0 - 0.7 * diagonal) * x + 0.7 * (out + (b if with_b else 0.0))
    scale = np.abs(x) * (1.0 + 0.7 * np.abs(diagonal)) + np.abs(out) + np.abs(b)
    assert (np.abs(found - plain) <= 1e-15 * 4 * scale).all()


def test_changes_are_the_greatest(rng: np.random.Generator, size: int) -> None:
    new, old = vectors(rng, size, 2)
    same = rng.random(size) < 0.3
    old[same] = new[same]
    found = CpuPasses().greatest_changes(new, old)
    np.testing.assert_array_equal(found, NumPyPasses().greatest_changes(new, old))
    change = np.abs(new - old)
    np.testing.assert_array_equal(found, [change.max(), (change / np.abs(new)).max()])


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (0.0, 0.0, (0.0, 0.0)),
        (0.0, 2.0, (2.0, np.inf)),
        (np.inf, 2.0, (np.inf, 0.0)),
        (2.0, np.inf, (np.inf, np.inf)),
        (np.inf, np.inf, (np.nan, 0.0)),
        (np.nan, 1.0, (np.nan, 0.0)),
    ],
)
@pytest.mark.parametrize("passes", [CpuPasses(), NumPyPasses()], ids=["compiled", "numpy"])
def test_changes_that_are_no_numbers_show(
    passes: CpuPasses | NumPyPasses, new: float, old: float, expected: tuple[float, float]
) -> None:
    for place in (0, 29_999):
        fresh = np.ones(30_000)
        stale = fresh.copy()
        fresh[place], stale[place] = new, old
        np.testing.assert_array_equal(passes.greatest_changes(fresh, stale), expected)


def test_extremes(rng: np.random.Generator, size: int) -> None:
    (x,) = vectors(rng, size, 1)
    for own in (x, np.abs(x) + 1.0, -np.abs(x) - 1.0):  # zero is no element of the others
        assert CpuPasses().extremes(own) == NumPyPasses().extremes(own) == (own.min(), own.max())
    x[-1] = np.nan
    assert np.isnan(CpuPasses().extremes(x)).all()
    assert np.isnan(NumPyPasses().extremes(x)).all()


@pytest.mark.parametrize("passes", [CpuPasses(), NumPyPasses()], ids=["compiled", "numpy"])
def test_quotients_of_extremes_do_not_raise(passes: CpuPasses | NumPyPasses) -> None:
    least, greatest = passes.extremes(np.zeros(30_000))
    with np.errstate(divide="ignore"):
        assert 1.0 / least == 1.0 / greatest == np.inf


@pytest.mark.parametrize("passes", [CpuPasses(), NumPyPasses()], ids=["compiled", "numpy"])
def test_elementwise_work_meets_every_element_once(passes: CpuPasses | NumPyPasses, size: int) -> None:
    x, times = np.arange(float(size)), np.zeros(size)

    def work(own: Array, met: Array) -> None:
        met += 1.0
        own *= 2.0

    passes.each(work, x, times)
    np.testing.assert_array_equal(times, np.ones(size))
    np.testing.assert_array_equal(x, 2.0 * np.arange(float(size)))


def test_what_overflows_shows_in_the_numbers_alone() -> None:
    x = np.full(30_000, 1e300)

    def work(own: Array) -> None:
        own *= 1e300

    CpuPasses().each(work, x)
    assert np.isinf(x).all()


def test_read_only_operands_and_no_elements(size: int) -> None:
    x = np.ones(size)
    x.setflags(write=False)
    total = np.zeros(size)
    CpuPasses().add_scaled(2.0, x, total)
    assert (total == 2.0).all()
    nothing = np.zeros(0)
    CpuPasses().add_scaled(2.0, nothing, nothing)
    np.testing.assert_array_equal(CpuPasses().greatest_changes(nothing, nothing), [0.0, 0.0])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_parts_are_as_many_as_countand_cover_everything(count: int) -> None:
    set_thread_count(count)
    met: list[tuple[int, int, int]] = []
    run_in_parts(20_003, lambda begin, end, k: met.append((k, begin, end)), each=100)
    met.sort()
    assert [k for k, *_ in met] == list(range(count))
    assert met[0][1] == 0
    assert met[-1][2] == 20_003
    assert all(end == begin for (_, _, end), (_, begin, _) in zip(met, met[1:], strict=False))
    few: list[tuple[int, int, int]] = []
    run_in_parts(19_999, lambda *part: few.append(part), each=15)
    assert few == [(0, 19_999, 0)]
