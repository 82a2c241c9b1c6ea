"""Keeping Python's cycle collector out of the way while large trees are built."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collection of reference cycles.

    Syntax trees have no cycles, and are so many objects that live on that looking through them again and
    again takes most of the time of a large model.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
