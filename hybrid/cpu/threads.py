"""A small pool of threads that run one compiled function together.

Compiled kernels release the interpreter lock and share out their work themselves, through a counter in
memory. All that is needed here is to call the same function on every thread and to wait for all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from hybrid.errors import OptionError

_SERIAL = 20_000
"""Elements, or terms, below which waking other threads costs more than it saves."""

VARIABLE = "HYBRID_NUM_THREADS"
"""Of the environment: the number of threads, unless `set_thread_count` sets it."""

MOST = 1024
"""Threads that the environment may ask for."""

_Task = Callable[[int], None]
_Done = SimpleQueue["BaseException | None"]

_lock = threading.Lock()
_workers: list[SimpleQueue[tuple[_Task, int, _Done]]] = []
_count: int | None = None


def thread_count() -> int:
    """Return the threads of a product.

    Returns
    -------
    int
        What `set_thread_count` set; otherwise what the environment has in HYBRID_NUM_THREADS; otherwise all
        cores that this process may run on.

    Raises
    ------
    OptionError
        The environment has no number of threads there.
    """
    if _count is not None:
        return _count
    given = os.environ.get(VARIABLE)
    if given:
        return read_thread_count(given)
    return available_cores()


def available_cores() -> int:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_thread_count(text: str) -> int:
    """Return the number of threads that HYBRID_NUM_THREADS stands for.

    Raises
    ------
    OptionError
        It is no number from 1 to `MOST`.
    """
    if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST:
        return int(text)
    raise OptionError(f"{VARIABLE}: expected a whole number from 1 to {MOST}, got {text!r}")


def threads_for(size: int) -> int:
    """Return the threads that some elements or terms are worth: all, or one where they are few."""
    return thread_count() if size >= _SERIAL else 1


def set_thread_count(count: int | None) -> int | None:
    """Set the number of threads of all products of this process; None means the environment's, or all cores.

    Returns
    -------
    int or None
        What was set before.

    Raises
    ------
    ValueError
        If the count is less than one.
    """
    global _count
    if count is not None and count < 1:
        raise ValueError(
            f"count: expected a number of threads of at least 1 or None for all cores, got {count}"
        )
    before, _count = _count, count
    return before


def run_together(task: _Task, threads: int) -> None:
    """Call ``task(0)``, ..., ``task(threads - 1)`` at the same time, the first one on the calling thread.

    Raises
    ------
    BaseException
        Whatever the first failing task raised, after all have ended.
    """
    if threads == 1:
        task(0)
        return
    done: _Done = SimpleQueue()
    with _lock:
        while len(_workers) < threads - 1:
            _start_worker()
        for number in range(1, threads):
            _workers[number - 1].put((task, number, done))
    failure: BaseException | None = None
    try:
        task(0)
    except BaseException as error:
        failure = error
    for _ in range(threads - 1):
        failure = done.get() or failure
    if failure is not None:
        raise failure


def run_in_parts(size: int, run: Callable[[int, int, int], None]) -> None:
    """Call ``run(begin, end, number)`` for as many parts of some elements as there are threads, together.

    Few elements are one part, on the calling thread.
    """
    threads = threads_for(size)
    cuts = [size * k // threads for k in range(threads + 1)]
    run_together(lambda k: run(cuts[k], cuts[k + 1], k), threads)


def _start_worker() -> None:
    queue: SimpleQueue[tuple[_Task, int, _Done]] = SimpleQueue()
    _workers.append(queue)
    name = f"hybrid-cpu-{len(_workers)}"
    threading.Thread(target=_serve, args=(queue,), name=name, daemon=True).start()


def _serve(queue: SimpleQueue[tuple[_Task, int, _Done]]) -> None:
    while True:
        task, number, done = queue.get()
        outcome: BaseException | None = None
        try:
            task(number)
        except BaseException as error:
            outcome = error
        done.put(outcome)


def _forget_workers() -> None:
    # Threads do not survive a fork; the child starts its own when it needs them.
    global _lock
    _lock = threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
