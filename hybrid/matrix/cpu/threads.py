"""How many threads products and passes are run by."""

from __future__ import annotations

import functools
import os

from hybrid.base.errors import OptionError
from mtbdd.base.memory import cores_of_groups

_SERIAL = 20_000
"""Elements, or terms, below which waking other threads costs more than it saves."""

VARIABLE = "HYBRID_NUM_THREADS"
"""Of the environment: the number of threads, unless `set_thread_count` sets it."""

MOST = 1024
"""Threads that the environment may ask for."""

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


@functools.cache
def available_cores() -> int:
    """Return the cores that this process might use when it was first asked.

    Those that it may run on, or the fewer that its control groups give it the time of, as for a container.
    """
    cores, limit = _cores_to_run_on(), cores_of_groups()
    return cores if limit is None else min(cores, limit)


def is_bound_to_cores() -> bool:
    """Return whether this process may run on some of the machine's cores alone."""
    return _cores_to_run_on() < (os.cpu_count() or 1)


def _cores_to_run_on() -> int:
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
