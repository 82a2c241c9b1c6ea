"""Steps of a window as a record has them: where they are, and what they came to."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.analysis.transient_errors import Course
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.record import Numbers, State
from hybrid.matrix.space.workspace import Array, Pair, Workspace


class RecordedSteps:
    """Steps that go on where an earlier run was.

    Parameters
    ----------
    clock : Clock
    space : Workspace
    pair : tuple of two arrays, shape (n,)
        The iterate after k steps lies in number ``k % 2``; that of the earlier run is put there.
    course : Course
        Takes what the earlier run came to.
    result : array, shape (n,), optional
        What is added up; taken over as well.

    Attributes
    ----------
    made : int
        Steps that the earlier run had made.
    is_finished : bool
        Whether they were all.
    """

    def __init__(
        self, clock: Clock, space: Workspace, pair: Pair, course: Course, result: Array | None = None
    ) -> None:
        self._clock, self._pair, self._course, self._result = clock, pair, course, result
        self.made, self.is_finished = 0, False
        kept = clock.resumed(space, "steps", pair[0].size)
        if kept is None:
            return
        self.made, self.is_finished = int(kept.numbers["made"]), kept.is_finished
        pair[self.made % 2][...] = kept.vectors["x"]
        if result is not None:
            result[...] = kept.vectors["sum"]
        course.left_out, course.rest = kept.numbers["left_out"], kept.numbers["rest"]
        made = int(kept.numbers["course"])
        course.made = None if made < 0 else made

    def offer(self, made: int) -> None:
        """Offer the state after so many steps."""
        self._clock.offer(self._state(made))

    def end(self, made: int, is_finished: bool) -> None:
        """Keep the last state: what the steps came to, or where they were ended."""
        if not self.is_finished:
            self._clock.keep(self._state(made), is_finished)

    def _state(self, made: int) -> State:
        def state() -> tuple[Mapping[str, Array], Numbers]:
            course = self._course
            vectors = {"x": self._pair[made % 2]} | ({} if self._result is None else {"sum": self._result})
            numbers = {"made": made, "left_out": course.left_out, "rest": course.rest}
            return vectors, numbers | {"course": -1 if course.made is None else course.made}

        return state
