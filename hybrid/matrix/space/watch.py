"""Who follows iterations: hears how far they are, and may have them end with the bounds that they have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from hybrid.matrix.space.record import IterationRecord


class Watch:
    """Called with (iteration, difference) as any callable that is told progress, and told more.

    Where a plain callable raises, an iteration is lost.  A watch may set `stopped` instead while a method
    with bounds iterates (`gently`): the method ends after the step that it is at, and returns its bounds
    with `Status.INTERRUPTED`.  No other iteration begins after that: `begin` raises what stopped the last.

    Attributes
    ----------
    stopped : BaseException or None
        Why an iteration was ended.
    is_pressing : bool
        Whether to call at the end of this step, and not only about twice a second.
    record : IterationRecord or None
        Of the one solution that it follows.
    """

    stopped: BaseException | None = None
    is_pressing: bool = False
    record: IterationRecord | None = None

    def __call__(self, iteration: int, difference: float) -> None:
        """Hear that so many steps are done, and their difference: what is compared with epsilon."""

    def look(self, iteration: int, difference: float) -> None:
        """Hear of every look that a method takes at its difference, those between two calls as well."""

    @property
    def unrecorded(self) -> Callable[[int, float], None] | None:
        """What follows parts of the solution, which have no record of their own."""
        return self

    def begin(self, target: float | None, steps: int | None) -> None:
        """Hear that an iteration begins; raise `stopped` if one was ended.

        Parameters
        ----------
        target : float, optional
            The difference that ends it; None where it is ended otherwise.
        steps : int, optional
            How many steps it takes at most; None where that is not known.
        """
        if self.stopped is not None:
            raise self.stopped

    def gently(self) -> AbstractContextManager[None]:
        """Return a context in which calls set `stopped` in place of raising, and signals wait for them."""
        return nullcontext()
