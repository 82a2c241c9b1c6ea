"""What would make a device usable, told once, where it would have mattered."""

from __future__ import annotations

from gpu_kernels import device_problem
from hybrid.analysis.run.work import Work
from hybrid.app.cli.console import Console
from hybrid.base.units import seconds_text

_LONG = 10.0  # seconds of iterations from which a device may be worth having
_WANTING = "no GPU: "  # what reasons say where none can be used
_SLOW = 1e-3  # seconds an iteration, below which launches eat up what a device gains


class DeviceHint:
    """Adds up iterations that were made on the host for want of a device."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def add(self, work: Work) -> None:
        """Take the work of an answer into account."""
        if _WANTING in (work.backend_reason or "") and work.seconds >= _SLOW * max(work.iterations, 1):
            self._seconds += work.seconds

    def tell(self, console: Console) -> None:
        """Tell it, if iterations took long."""
        problem = device_problem() if self._seconds >= _LONG else None
        if problem is not None:
            console.note(
                f"iterations took {seconds_text(self._seconds)} on the CPU, a GPU may be faster: {problem}"
            )


def shortened_reason(work: Work) -> str:
    """Return why work was done where it was, without what one could do about it."""
    reason = work.backend_reason or ""
    problem = device_problem() if _WANTING in reason else None
    return reason if problem is None else reason.replace(problem, problem.split("; ")[0])
