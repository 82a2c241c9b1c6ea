"""`--threads N` and HYBRID_NUM_THREADS: how many threads a command works with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""What the libraries below read when they are imported."""


@contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Let a command work with so many threads; None leaves what the environment says.

    Raises
    ------
    OptionError
        The environment says something that is no number of threads.

    Notes
    -----
    Pools of the libraries below are bounded, too, unless they are loaded already, or bounded by variables of
    their own.
    """
    given = os.environ.get("HYBRID_NUM_THREADS")
    if count is None and not given:
        yield
        return
    from hybrid.matrix.cpu.threads import read_thread_count, set_thread_count

    wanted = read_thread_count(given or "") if count is None else count
    if "numpy" not in sys.modules:
        for name in _POOLS:
            os.environ.setdefault(name, str(wanted))
    before = set_thread_count(wanted)
    try:
        yield
    finally:
        set_thread_count(before)
