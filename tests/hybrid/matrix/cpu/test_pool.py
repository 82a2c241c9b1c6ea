"""Compiled functions that threads run together without the interpreter: each part once, the same bits."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from hybrid import inject
from hybrid.matrix.cpu import entries, pool, pool_code, vector_kernels
from hybrid.matrix.cpu.arguments import PerPart, SharedArguments, arguments_of_part
from hybrid.matrix.cpu.entries import CallEntries, entries_of
from hybrid.matrix.cpu.threads import set_thread_count
from mtbdd.base.compiled import njit
from tests.builders.matrices import from_dense, random_codes, random_sparse
from tests.exploring import rounds
from tests.faults.processes import run


@njit(cache=False, nogil=True)
def mark(part, times, counts):  # type: ignore[no-untyped-def]
    for _ in range(times):
        counts[part] += 1


@njit(cache=False, nogil=True)
def divide(part, numbers, out):  # type: ignore[no-untyped-def]
    out[part] = numbers[0] // numbers[part]


@njit(cache=False, nogil=True)
def take(part, table, rows, out):  # type: ignore[no-untyped-def]
    out[part] = table[part, 1] + rows[part]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entries from the first call on, and four threads, whatever the machine has."""
    monkeypatch.setattr(entries, "_AFTER", 0)
    set_thread_count(4)
    yield
    set_thread_count(None)


def marks(parts: int, times: int = 1) -> np.ndarray:
    counts = np.zeros(parts, np.int64)
    mark(0, 0, counts)  # compiled, as no other call of a new function has
    pool.run_kernel(mark, 4, PerPart(range(parts)), times, counts, parts=parts)
    return counts


def test_every_part_is_run_once() -> None:
    for round_ in range(rounds(500)):
        parts = 1 + round_ % 67
        np.testing.assert_array_equal(marks(parts), 1)


def test_other_threads_take_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    # The calling thread publishes and takes none itself, so that the call ends by the others alone.
    published: list[int] = []

    def publish(entry: int, words: int, width: int, parts: int, patience: int, control: Any) -> bool:
        control[[pool_code.ENTRY, pool_code.WORDS, pool_code.WIDTH]] = entry, words, width
        control[[pool_code.FINISHED, pool_code.FAILED, pool_code.LEAVE]] = 0
        control[pool_code.TICKET] = (1 << 2 * pool_code.PARTS_BITS) | (parts << pool_code.PARTS_BITS)
        published.append(parts)
        return False

    monkeypatch.setattr(pool, "PATIENCE", 10_000_000)  # turns of a thread that runs: none leaves before
    monkeypatch.setattr(pool, "_pool", pool.ThreadPool())
    counts = np.zeros(64, np.int64)
    mark(0, 0, counts)
    with monkeypatch.context() as patch:
        patch.setattr(pool_code, "run_parts", publish)
        pool.run_kernel(mark, 4, PerPart(range(64)), 3, counts, parts=64)
    pool._pool.close()
    assert published == [64]
    np.testing.assert_array_equal(counts, 3)


def test_threads_that_wait_keep_nothing() -> None:
    def written() -> weakref.ref[np.ndarray]:
        vector = np.zeros(1000)
        pool.run_together(lambda part: vector.__setitem__(part, 1.0), 4)
        assert vector.sum() == 4.0
        return weakref.ref(vector)

    there = written()
    deadline = time.monotonic() + 10.0
    while there() is not None and time.monotonic() < deadline:
        time.sleep(0.001)  # the threads have told the end, and are on their way to wait
    assert there() is None


def test_callers_at_the_same_time() -> None:
    with ThreadPoolExecutor(6) as executor:
        for counts in executor.map(lambda k: [marks(1 + k % 9) for _ in range(40)], range(12)):
            assert all((own == 1).all() for own in counts)


def test_work_of_python_comes_between() -> None:
    for _ in range(50):
        np.testing.assert_array_equal(marks(8), 1)
        met: list[int] = []
        pool.run_together(met.append, 4)
        assert sorted(met) == [0, 1, 2, 3]


def test_exceptions_come_after_all_parts() -> None:
    numbers, out = np.array([6, 0, 2, 3]), np.full(4, -1)
    divide(0, numbers, out)
    packed = entries_of(divide).packed((PerPart(range(4)), numbers, out), 4, 4)
    assert packed is not None
    with pytest.raises(ArithmeticError, match="divided by zero"):
        pool.run_kernel(divide, 4, PerPart(range(4)), numbers, out)
    assert out.tolist() == [1, -1, 3, 2]
    numbers[1] = 6
    pool.run_kernel(divide, 4, PerPart(range(4)), numbers, out)
    assert out.tolist() == [1, 1, 3, 2]


def test_an_interrupt_waits_for_the_parts_that_were_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = pool_code.run_parts

    def interrupt(*arguments: Any) -> bool:
        begun(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pool_code, "run_parts", interrupt)
        with pytest.raises(KeyboardInterrupt):
            marks(8)
    with monkeypatch.context() as patch:
        patch.setattr(pool_code, "run_parts", lambda *_: False)
        patch.setattr(time, "sleep", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            pool._pool._await(pool_code, pool._pool._shared()[1], False)
    looks, naps = iter([False, False, True]), []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) < 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # Interrupted again and again: it looks until all is done.
        patch.setattr(pool_code, "run_parts", interrupt)
        patch.setattr(pool_code, "finish", lambda *_: next(looks))
        patch.setattr(time, "sleep", nap)
        with pytest.raises(KeyboardInterrupt):
            marks(8)
    assert next(looks, None) is None and len(naps) == 5
    np.testing.assert_array_equal(marks(8), 1)


def test_parts_that_nobody_has_taken_are_left_out() -> None:
    control = np.zeros(pool_code.SIZE, np.int64)
    ticket = (5 << 2 * pool_code.PARTS_BITS) | (9 << pool_code.PARTS_BITS)
    for taken, over in ((0, 0), (4, 0), (9, 0), (9, 3)):
        control[pool_code.TICKET], control[pool_code.FINISHED] = ticket + taken + over, taken
        pool_code.cut_short(control)
        assert pool_code.finish(control, 1)
        control[pool_code.FINISHED] = taken - 1
        assert not pool_code.finish(control, 1)
        pool_code.serve(control, 3)  # finds none
        assert control[pool_code.FINISHED] == taken - 1


def test_arguments_of_another_kind_are_left_to_numba() -> None:
    table, rows, out = np.arange(8.0).reshape(4, 2), np.arange(4.0), np.zeros(4)
    take(0, table, rows, out)
    own = CallEntries(take)
    good = (PerPart(range(4)), table, rows, out)
    assert own.packed(good, 4, 4) is not None
    read_only = out.copy()
    read_only.setflags(write=False)
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float64)
    for wrong in (
        (PerPart(range(4)), table, rows[::2], out),
        (PerPart(range(4)), table, rows.astype(np.float32), out),
        (PerPart(range(4)), table.ravel(), rows, out),
        (PerPart(range(4)), table.T, rows, out),
        (PerPart(range(4)), table, rows, read_only),
        (PerPart(range(4)), table, rows, unaligned),
        (PerPart(range(4)), table, rows, 1.0),
        (0.5, table, rows, out),
        (True, table, rows, out),
        good[:3],
        (*good, out),
        (*good, 1.0),
        (SharedArguments((0, table, rows, out, out)),),
        (PerPart(rows), table, rows, out),
    ):
        assert own.packed(wrong, 4, 4) is None, wrong
    assert CallEntries(take.py_func).packed(good, 4, 4) is None


def test_entries_are_made_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_AFTER", 30)
    counts = np.zeros(4, np.int64)
    mark(0, 0, counts)
    for threads, before in ((2, 30), (4, 10), (16, 2)):
        own = CallEntries(mark)
        for _ in range(before):
            assert own.packed((PerPart(range(4)), 1, counts), 4, threads) is None
        assert own.packed((PerPart(range(4)), 1, counts), 4, threads) is not None


def test_words_are_remembered_of_an_array_that_is_there() -> None:
    """A new array may have the number of one that is gone."""
    from hybrid.matrix.cpu.entries import ArrayWords

    kind, numbers = ArrayWords("<f8", 1, written=True), set[int]()
    for size in range(1, 400):
        array = np.zeros(size)
        assert kind.words(array) == kind.words(array) == [array.ctypes.data, size]
        numbers.add(id(array))
        del array
    assert len(numbers) < 300


def test_fixed_arguments_have_words_for_one_overload() -> None:
    out = np.zeros(4)
    for dtype in (np.float64, np.int32, np.float32):
        fixed = SharedArguments((np.arange(8, dtype=dtype).reshape(4, 2), np.arange(4.0)))
        take(0, *fixed.arguments, out)
        for _ in range(3):
            out[:] = 0.0
            pool.run_kernel(take, 4, PerPart(range(4)), fixed, out)
            assert out.tolist() == [1.0, 4.0, 7.0, 10.0]
            assert entries_of(take).packed((PerPart(range(4)), fixed, out), 4, 4) is not None
    assert arguments_of_part((1, fixed, PerPart([7, 8])), 1)[-1] == 8


def test_arrays_that_come_and_go_are_told_apart() -> None:
    # Numbers of objects are used again, and so are those of arrays that are no more; their memory is kept.
    kernel: Any = vector_kernels.add_scaled_rows
    kept = [np.full((2, 2200), float(k)) for k in range(200)]
    for k, room in enumerate(kept):
        x, total = room[0, : 2000 + k], room[1, : 2000 + k]
        total[:] = 1.0
        pool.run_kernel(kernel, 4, PerPart([0, 900]), PerPart([900, 2000 + k]), 2.0, x, total, parts=2)
        np.testing.assert_array_equal(total, 1.0 + 2.0 * k)
        del x, total


@pytest.mark.parametrize("count", [2, 3, 16])
def test_products_and_steps_have_the_bits_of_one_thread(count: int) -> None:
    rng = np.random.default_rng(8)
    codes = random_codes(rng, 11, 1500), random_codes(rng, 11, 1500)
    operator: Any = inject(from_dense(random_sparse(rng, 1500, 1500, 0.02), *codes, 11), 6, "cpu")
    x, b, diagonal = rng.random(1500), rng.random(1500), rng.uniform(1.0, 2.0, 1500)

    def results() -> list[Any]:
        out, relaxed = np.empty(1500), np.empty(1500)
        changes = operator.jacobi_step(x, relaxed, b, diagonal, 0.9)
        return [operator.multiply(x, out), relaxed, changes, operator @ np.c_[x, b, diagonal, x]]

    set_thread_count(1)
    expected = results()
    set_thread_count(count)
    for _ in range(5):
        for found, right in zip(results(), expected, strict=True):
            np.testing.assert_array_equal(found, right)
    assert operator.product._stages.all.words is not None


ENDED = """
import sys, threading
import numpy as np
from hybrid.matrix.cpu import entries, pool, vector_kernels
entries._AFTER = 0
x = np.ones(400_000)
for _ in range(20):
    pool.run_rows(vector_kernels.add_scaled_rows, x.size, 0.0, x, x.copy())
assert threading.active_count() > 1
sys.exit(7)
"""


def test_a_process_ends_with_threads_that_look_out_for_work() -> None:
    for _ in range(rounds(3)):
        done = run(code=ENDED, HYBRID_NUM_THREADS="4")
        assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_processes_that_are_forked_have_threads_of_their_own() -> None:
    code = """
import os
import numpy as np
from hybrid.matrix.cpu import entries, pool, vector_kernels
entries._AFTER = 0
x, total = np.ones(400_000), np.zeros(400_000)
def add():
    for _ in range(20):
        pool.run_rows(vector_kernels.add_scaled_rows, x.size, 1.0, x, total)
add()
child = os.fork()
add()
right = (total == 40.0).all()
if child == 0:
    os._exit(0 if right else 1)
assert right and os.waitpid(child, 0)[1] == 0
"""
    done = run(code=code, HYBRID_NUM_THREADS="4", PYTHONWARNINGS="ignore::DeprecationWarning")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
