"""A budget of time and memory for work that may explode: building a model, iterating.

The budget holds for the thread (or task) that sets it, until it leaves the block.  Work asks at places
where it may be left: between commands, rounds of a search, iterations.  A single operation of the package of
decision diagrams is not interrupted; the command line ends the process then (`hybrid.app.cli.limited_run`).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import Any

from mtbdd.base.errors import HybridError, option
from mtbdd.base.records import Record


class BudgetError(HybridError, RuntimeError):
    """The time or the memory that was given is spent; the message says which, and how much it was."""


class Course(Record, frozen=False):
    """The stage of the work, and the time that compiling took of it, for the message of a spent budget.

    `stage`: what is being done, as in "building the model"; empty where it is unknown. `compiled`: seconds
    for which functions were compiled, those that are done. `compiling`: the function that is being compiled;
    empty if none is. `since`: when that began, of `time.monotonic`, which is the same in all processes.
    `tell`: receives changes, by name, for a supervising process.
    """

    stage: str = ""
    compiled: float = 0.0
    compiling: str = ""
    since: float = 0.0
    tell: Callable[[dict[str, Any]], None] | None = None

    def change(self, **news: Any) -> None:
        """Record changes, and report them."""
        for name, value in news.items():
            setattr(self, name, value)
        if self.tell is not None:
            self.tell(news)

    def text(self, started: float) -> str:
        """Return where the work is, and what compiling took of its time, for a message."""
        taken = self.compiled + (time.monotonic() - max(self.since, started) if self.compiling else 0.0)
        told = f" while {self.stage}" if self.stage else ""
        if taken < 0.1 * (time.monotonic() - started):
            return told
        return f"{told}, after {taken:.1f} s of compiling functions, once on this machine"


class Budget(Record):
    """Time and memory that may be spent.

    `seconds`: from `started` on. `memory`: bytes of the whole process that may be resident. `started`: of
    `time.monotonic`. `files`: whether pages of files count as memory: not where arrays lie in files.
    `course`: what is being done.
    """

    seconds: float | None
    memory: int | None
    started: float
    files: bool = True
    course: Course = field(default_factory=Course, compare=False)

    @classmethod
    def of(cls, seconds: float | None, memory: int | None, files: bool = True) -> Budget:
        """Return a budget whose time begins now.

        Raises ValueError: one of the two is not positive.
        """
        if seconds is not None and not 0 < seconds < float("inf"):
            raise ValueError(f"timeout: expected a positive number of seconds, got {seconds}")
        if memory is not None and memory <= 0:
            raise ValueError(f"memory: expected a positive number of bytes, got {memory}")
        return cls(seconds, memory, time.monotonic(), files)

    def used(self, process: int | None = None) -> int:
        """Return the bytes of memory that a process has, by default this one, as the budget counts them."""
        return resident_bytes(process, self.files)

    def check(self) -> None:
        """Raise if the budget is spent.  Time: some microseconds."""
        if self.seconds is not None and time.monotonic() - self.started > self.seconds:
            raise BudgetError(self.out_of_time())
        if self.memory is not None and self.used() > self.memory:
            raise BudgetError(self.out_of_memory())

    def out_of_time(self) -> str:
        """Return the message for a time limit that is reached, with what to type for twice as much."""
        seconds = self.seconds or 0.0
        more = option("timeout", 2 * seconds)
        where = self.course.text(self.started)
        return f"the time limit of {seconds:g} s is reached{where}; give more: {more}"

    def out_of_memory(self) -> str:
        """Return the message for a memory limit that is reached, with what to type for twice as much."""
        memory = self.memory or 0
        more, stage = option("memory", 2 * memory), self.course.stage
        where = f" while {stage}" if stage else ""
        return (
            f"the memory limit of {memory} bytes is reached{where}; give more: {more}, or make the model "
            "smaller"
        )


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def spending(budget: Budget | None) -> Iterator[None]:
    """Set the budget for a block; None leaves the one that holds."""
    if budget is None:
        yield
        return
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


_SIZES = 16
"""Checks of a growing budget from one that measures the size to the next, at most."""


class GrownError(Exception):
    """Work that was ended because what it makes has become too large."""


class _Growth(Budget):
    """A budget that ends work, by `GrownError`, once a size exceeds `most`; that around it holds as well."""

    size: Callable[[], int] = lambda: 0
    most: int = 0
    outer: Budget | None = None
    left: list[int] = field(default_factory=lambda: [0], compare=False)
    """Checks before the next one that measures the size."""

    def check(self) -> None:
        if self.outer is not None:
            self.outer.check()
        if self.left[0] > 0:
            self.left[0] -= 1
            return
        size = self.size()
        if size > self.most:
            raise GrownError
        # To count all nodes takes as long as many a command's diagrams; few commands may multiply many nodes.
        self.left[0] = min(_SIZES, _SIZES * (self.most - size) // (4 * size + 1)) - 1


@contextmanager
def ended_beyond(most: int, size: Callable[[], int]) -> Iterator[None]:
    """End the work in a block by `GrownError`, where it checks its budget, once a size exceeds `most`."""
    outer = _budget.get()
    course = Course() if outer is None else outer.course
    with spending(_Growth(None, None, time.monotonic(), course=course, size=size, most=most, outer=outer)):
        yield


def check_budget() -> None:
    """Raise `BudgetError` if a budget holds here and is spent."""
    budget = _budget.get()
    if budget is not None:
        budget.check()


_seconds_compiling = 0.0


def seconds_compiling() -> float:
    """Return the seconds that this process has spent on compiling functions for the CPU so far."""
    return _seconds_compiling


def add_seconds_compiling(seconds: float) -> None:
    """Count the compilation of a function."""
    global _seconds_compiling
    _seconds_compiling += seconds


def current_course() -> Course | None:
    """Return what the budget that holds here knows of the work; None without a budget."""
    budget = _budget.get()
    return None if budget is None else budget.course


def resident_bytes(process: int | None = None, files: bool = True) -> int:
    """Return the resident memory of a process, by default of this one; 0 where it is unknown.

    Without `files` pages of files do not count, which the kernel can take back.
    """
    try:
        text = Path(f"/proc/{process or 'self'}/statm").read_text()
    except OSError:
        return 0
    pages, shared = (int(word) for word in text.split()[1:3])
    return (pages if files else pages - shared) * resource.getpagesize()
