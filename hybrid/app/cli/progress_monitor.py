"""Iterations as the command line follows them: progress, and an end that keeps their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hybrid.app.cli.console import Console
from hybrid.matrix.space.base import ProgressMonitor
from mtbdd.base.budget import BudgetError, check_budget

if TYPE_CHECKING:
    from hybrid.solvers.iteration import Trace


class CommandMonitor(ProgressMonitor):
    """Shows the progress of iterations on a console, and ends them on a signal or when a budget is spent.

    A `trace` follows them, too.
    """

    def __init__(self, console: Console, trace: Trace | None = None) -> None:
        self._console, self._trace = console, trace
        self._depth = 0

    def begin(self, target: float | None, steps: int | None) -> None:
        """See `ProgressMonitor.begin`."""
        super().begin(target, steps)
        self._console.begin(target, steps)
        if self._trace is not None:
            self._trace.begin(target, steps)

    def observe(self, iteration: int, difference: float) -> None:
        """See `ProgressMonitor.observe`."""
        if self._trace is not None:
            self._trace.observe(iteration, difference)

    @property
    def is_pressing(self) -> bool:  # type: ignore[override]
        """Whether a signal has come."""
        return self._console.signals.received is not None

    def __call__(self, iteration: int, difference: float) -> None:
        """Show progress; raise what ends the command, or keep it in `stopped` where bounds can be had."""
        try:
            check_budget()
            if self._console.signals.received is not None:
                raise self._console.signals.received
            self._console.iteration(iteration, difference)
        except (KeyboardInterrupt, BudgetError) as reason:
            if not self._depth:
                raise
            self.stopped = self.stopped or reason

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """See `ProgressMonitor.cancellable`; signals wait for a call, a second one ends the process."""
        self._depth += 1
        try:
            with self._console.signals.hold(check=False):
                yield
        finally:
            self._depth -= 1
        if self.stopped is None:
            self._console.signals.check()

    def check(self) -> None:
        """Raise what stopped an iteration, once its bounds are reported, or a later signal."""
        if self.stopped is not None:
            raise self.stopped
        self._console.signals.check()
