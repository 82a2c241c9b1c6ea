"""What iterations come to, look by look, for those who want to see how they converge."""

from __future__ import annotations

from hybrid.matrix.space.watch import Watch

_MOST_LOOKS = 1 << 14


class Trace(Watch):
    """Iterations and differences of all solutions that it follows.

    Attributes
    ----------
    solutions : list of list of (int, float)
        A list a solution that was begun: the number of an iteration, and the difference that is compared with
        epsilon there. For interval iteration and long-run averages it is the width of the bounds, relative to
        the value unless epsilon is absolute; else the change of a step.
    """

    def __init__(self) -> None:
        self.solutions: list[list[tuple[int, float]]] = []

    def begin(self, target: float | None, steps: int | None) -> None:
        """Begin a solution."""
        super().begin(target, steps)
        self.solutions.append([])

    def look(self, iteration: int, difference: float) -> None:
        """Take a look into account; of very many every other one goes, again and again."""
        own = self.solutions[-1]
        own.append((iteration, difference))
        if len(own) >= _MOST_LOOKS:
            del own[1::2]
