"""A pool of threads that run one function together: a compiled one without the interpreter, or one of Python.

Compiled functions release the interpreter lock, and mostly share out their work themselves, through a counter
in memory. The cost of beginning and ending a call matters where a product takes some microseconds. To hand
Python's objects and its lock from thread to thread takes some 30 microseconds a thread. So threads that have
run a part of a compiled call wait actively for the next one, in compiled code, before they sleep.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import PerPart, arguments_of_part
from hybrid.matrix.cpu.threads import thread_count, threads_for

PATIENCE = 6_000
"""Turns, of 50 to 200 nanoseconds, that a thread spins for the next call, or for the parts of others."""

_SHARE = 150_000
"""Elements that NumPy processes in about the time of waking a thread and waiting for it."""

_NAP = 5e-5
"""Seconds between checks of parts that take longer."""

_NAPS_AT_THE_END = 1000

_Task = Callable[[int], None]
_Done = SimpleQueue["BaseException | None"]
_Order = tuple[_Task, int, _Done]


class ThreadPool:
    """Threads that are started when they are first needed, and then wait for work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: list[SimpleQueue[_Order | None]] = []
        self._asleep: set[int] = set()
        self._compiled: tuple[Any, NDArray[np.int64]] | None = None

    def run_together(self, task: _Task, threads: int) -> None:
        """Call ``task(0)``, ..., ``task(threads - 1)`` at the same time, the first one on the calling thread.

        Raises
        ------
        BaseException
            The exception of the first failing task, after all have ended.
        """
        if threads == 1:
            task(0)
            return
        done: _Done = SimpleQueue()
        with self._lock:
            self._start(threads - 1)
            self._call_back()
            for number in range(1, threads):
                self._queues[number - 1].put((task, number, done))
        failure: BaseException | None = None
        try:
            task(0)
        except BaseException as error:
            failure = error
        for _ in range(threads - 1):
            failure = done.get() or failure
        if failure is not None:
            raise failure

    def run_entry(self, entry: int, words: NDArray[np.int64], threads: int) -> None:
        """Call a compiled entry once for every row of words, on so many threads or fewer.

        Parameters
        ----------
        entry : int
            Address; see `hybrid.matrix.cpu.entries`.
        words : ndarray, shape (parts, words), int64
        threads : int
            With the calling one.

        Raises
        ------
        ArithmeticError
            The function raised an exception, after all parts have ended.
        """
        with self._lock:
            code, control = self._shared()
            self._start(threads - 1)
            self._wake(threads - 1)
            try:
                done = code.run_parts(
                    entry, words.ctypes.data, words.strides[0], len(words), PATIENCE, control
                )
                self._await(code, control, done)
            except BaseException:
                # The words, and what they point at, are in use until the parts that were begun are done; that
                # takes no longer than they do, and further interrupts have to wait for it.
                code.cut_short(control)
                done = False
                while not done:
                    with suppress(BaseException):
                        self._await(code, control, False)
                        done = True
                raise
            failed = bool(control[code.FAILED])
        if failed:
            raise ArithmeticError("a compiled function has divided by zero, or failed in another way")

    def close(self) -> None:
        """Make all threads leave compiled code, which is about to go; wait for them, but not for ever."""
        with self._lock:
            self._call_back()
            for _ in range(_NAPS_AT_THE_END if self._compiled is not None else 0):
                if len(self._asleep) == len(self._queues):
                    break
                time.sleep(_NAP)

    def forget(self) -> None:
        """Begin again, in a process that was forked: threads do not survive that."""
        self.__init__()  # type: ignore[misc]

    def _shared(self) -> tuple[Any, NDArray[np.int64]]:
        """Return the compiled code, and the array in which threads meet."""
        if self._compiled is None:
            from hybrid.matrix.cpu import pool_code

            self._compiled = pool_code, np.zeros(pool_code.SIZE, np.int64)
        return self._compiled

    def _wake(self, threads: int) -> None:
        for number in range(threads if self._asleep else 0):
            if number in self._asleep:
                self._asleep.remove(number)
                self._queues[number].put(None)

    @staticmethod
    def _await(code: Any, control: NDArray[np.int64], done: bool) -> None:
        """Wait for parts that take longer."""
        while not done:
            time.sleep(_NAP)
            done = code.finish(control, PATIENCE)

    def _call_back(self) -> None:
        if self._compiled is not None and len(self._asleep) < len(self._queues):
            code, control = self._compiled
            code.call_back(control)

    def _start(self, count: int) -> None:
        for number in range(len(self._queues), count):
            queue: SimpleQueue[_Order | None] = SimpleQueue()
            self._queues.append(queue)
            self._asleep.add(number)
            threading.Thread(
                target=self._work, args=(number, queue), name=f"hybrid-cpu-{number + 1}", daemon=True
            ).start()

    def _work(self, number: int, queue: SimpleQueue[_Order | None]) -> None:
        while True:
            order = queue.get()
            if order is None:
                code, control = self._shared()
                code.serve(control, PATIENCE)
                self._asleep.add(number)
                continue
            task, part, done = order
            outcome: BaseException | None = None
            try:
                task(part)
            except BaseException as error:
                outcome = error
            # Nothing that the call has used is kept while this thread waits for the next one.
            del order, task
            done.put(outcome)
            del done, outcome


_pool = ThreadPool()
atexit.register(_pool.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def run_together(task: _Task, threads: int) -> None:
    """Call ``task(0)``, ..., ``task(threads - 1)`` at the same time; see `ThreadPool.run_together`."""
    _pool.run_together(task, threads)


def run_in_parts(size: int, run: Callable[[int, int, int], None], each: int = 1) -> None:
    """Call ``run(begin, end, number)`` of Python for parts of some rows together, one on the calling thread.

    Parameters
    ----------
    size : int
        Rows.
    run : callable
    each : int
        Elements of a row: there are as many parts as elements are worth threads, and threads.
    """
    threads = min(size * each // _SHARE, thread_count())
    if threads <= 1:
        run(0, size, 0)
        return
    cuts = [size * k // threads for k in range(threads + 1)]
    run_together(lambda k: run(cuts[k], cuts[k + 1], k), threads)


def run_kernel(kernel: Any, threads: int, *arguments: Any, parts: int | None = None) -> None:
    """Call a compiled function for all parts of its work, on so many threads.

    Parameters
    ----------
    kernel : callable
        Compiled, and without the interpreter lock.
    threads : int
    *arguments
        Arrays and numbers; those of class `PerPart` have one value a part, one of class `Fixed` is several.
    parts : int, optional
        One a thread by default; any thread may run any part.

    Raises
    ------
    ArithmeticError
        The function raised an exception.
    """
    count = threads if parts is None else parts
    if threads == 1:
        for part in range(count):
            kernel(*arguments_of_part(arguments, part))
        return
    from hybrid.matrix.cpu.entries import entries_of

    packed = entries_of(kernel).packed(arguments, count, threads)
    if packed is not None:
        _pool.run_entry(*packed, threads)
        return

    def work(number: int) -> None:
        for part in range(number, count, threads):
            kernel(*arguments_of_part(arguments, part))

    _pool.run_together(work, threads)


def run_rows(kernel: Any, size: int, *arguments: Any, piece: int = 1) -> None:
    """Call a compiled ``kernel(begin, end, *arguments)`` for as many parts of rows as there are threads.

    Few rows are one part, on the calling thread; parts begin at multiples of `piece` rows.  Arguments are
    arrays and numbers.
    """
    threads = threads_for(size)
    if threads == 1:
        kernel(0, size, *arguments)
    else:
        run_kernel(kernel, threads, *_rows_of_parts(size, threads, piece), *arguments)


def measure_rows(kernel: Any, size: int, count: int, *arguments: Any) -> NDArray[np.float64]:
    """Do as `run_rows`, and return what the kernel finds in each part, shape (parts, count).

    It writes to a row of zeros that it is given behind the arguments.
    """
    threads = threads_for(size)
    found = np.zeros((threads, count))
    if threads == 1:
        kernel(0, size, *arguments, found[0])
    else:
        run_kernel(kernel, threads, *_rows_of_parts(size, threads, 1), *arguments, PerPart(found))
    return found


@functools.lru_cache(maxsize=64)
def _rows_of_parts(size: int, parts: int, piece: int) -> tuple[PerPart, PerPart]:
    """Return the first rows of all parts, and the ends; the same objects again, whose words are known."""
    pieces = -(-size // piece)
    cuts = [min(piece * (pieces * k // parts), size) for k in range(parts + 1)]
    return PerPart(cuts[:-1]), PerPart(cuts[1:])
