"""What iterations come to, look by look, for those who want to see how they converge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MOST_LOOKS = 1 << 14

_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


class Trace:
    """Iterations and differences of all solutions that are made while it records.

    Attributes
    ----------
    solutions : list of list of (int, float)
        A list a solution that was begun: the number of an iteration, and the difference that is compared with
        epsilon there. For interval iteration and long-run averages it is the width of the bounds, relative to
        the value unless epsilon is absolute; else the change of a step.
    """

    def __init__(self) -> None:
        self.solutions: list[list[tuple[int, float]]] = []

    def begin(self) -> None:
        """Begin a solution."""
        self.solutions.append([])

    def look(self, iteration: int, difference: float) -> None:
        """Take a look into account; of very many every other one goes, again and again."""
        own = self.solutions[-1]
        own.append((iteration, difference))
        if len(own) >= _MOST_LOOKS:
            del own[1::2]


@contextmanager
def recording(trace: Trace) -> Iterator[None]:
    """Record the solutions that are made in this context."""
    before = _current.set(trace)
    try:
        yield
    finally:
        _current.reset(before)


def current_trace() -> Trace | None:
    """Return what records here, if anything does."""
    return _current.get()
