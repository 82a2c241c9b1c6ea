"""Commands with so many threads, or under a time or memory limit; see `hybrid.app.cli.common_arguments`.

With a time or memory limit the command runs in a process of its own. It checks its budget where work may
stop, and ends with the answers that it has found. Should it not get there, since one operation takes long,
the process that watches it ends it. That process prints the answers in its place, which it was sent as they
were found.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hybrid.app.cli.console import Console
from hybrid.base.errors import OptionError
from mtbdd.base.budget import Budget, BudgetError, spending
from mtbdd.language.limits import Limits, limited

# `--threads N` and HYBRID_NUM_THREADS: how many threads a command works with.

_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Environment variables that libraries read when they are imported."""

_TOO_FEW = re.compile(r"\s*(-\d+|\+?0+)\s*")


@contextmanager
def limited_threads(count: int | None, alone: bool = False) -> Iterator[None]:
    """Let a command work with so many threads; None leaves what the environment says.

    The pools of the libraries below are bounded, too, unless they are loaded already, or bounded by variables
    of their own. In a process that is the command's alone NumPy's linear algebra has one thread by default:
    to start a thread a core takes longer than the small systems that it solves here. An `OptionError` says
    that the environment gives no number of threads.
    """
    given, compiled = os.environ.get("HYBRID_NUM_THREADS"), os.environ.get("NUMBA_NUM_THREADS", "")
    # Numba warns of what is no number; numbers below 1 end its import with a traceback.
    if _TOO_FEW.fullmatch(compiled):
        raise OptionError(f"NUMBA_NUM_THREADS: expected a whole number from 1 on, got {compiled!r}")
    if count is None and not given:
        if alone:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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


# Results of a check so far, for the process that supervises it and for an interruption.


class Journal:
    """The models built and the answers found, in the order of the command line.

    `runs` has the constants, the model and the results of every combination that was begun; `is_single` says
    that there is one alone, whose JSON is an object. `send` is given every piece of news as plain JSON
    values, which `take` of another journal understands.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None] | None) -> None:
        self.runs: list[dict[str, Any]] = []
        self.is_single = True
        self._send = send
        self._expected: list[list[dict[str, Any]]] = []

    def begin(
        self,
        constants: dict[str, Any],
        model: dict[str, Any],
        expected: Sequence[dict[str, Any]],
        is_single: bool,
    ) -> None:
        """Note that a model is built, and the records of its properties as long as nothing is known."""
        news = {"constants": constants, "model": model, "expected": list(expected), "single": is_single}
        self._news(news)

    def answer(self, record: dict[str, Any]) -> None:
        """Note the record of the next answer."""
        self._news({"answer": record})

    def take(self, news: dict[str, Any]) -> None:
        """Note the entries of another journal."""
        if "answer" in news:
            self.runs[-1]["results"].append(news["answer"])
        else:
            self.runs.append({"constants": news["constants"], "model": news["model"], "results": []})
            self._expected.append(news["expected"])
            self.is_single = news["single"]

    def _news(self, news: dict[str, Any]) -> None:
        self.take(news)
        if self._send is not None:
            self._send(news)

    # ------------------------------------------------------------------ the end

    def end(self, reason: str, options: argparse.Namespace, console: Console) -> int:
        """Close a check with a reason as the error of what is left; return 1, or 2 without a model."""
        console.ended(reason)
        if not self.runs:
            return 2
        for run, expected in zip(self.runs, self._expected, strict=True):
            for record in expected[len(run["results"]) :]:
                left = {**record, "error": reason, "interrupted": True}
                run["results"].append(left)
                if getattr(options, "json_lines", False):
                    console.print(json_line(run["constants"], run["model"], left))
                elif not options.json:
                    title = f"{record['name']}: " if record["name"] else ""
                    console.print(f"\n{title}{record['property']}\n  result       not answered: {reason}")
        self.runs[-1]["interrupted"] = True
        if options.json:
            import json

            single = {key: value for key, value in self.runs[0].items() if key != "constants"}
            console.print(json.dumps(single if self.is_single else self.runs))
        return 1


def json_line(
    constants: Mapping[str, Any], model: Mapping[str, Any] | None, result: Mapping[str, Any]
) -> str:
    """Return what `--json-lines` prints of a result: its record, the constants given, the model's."""
    # Imported here: commands that answer no property start quicker without.
    import json

    from hybrid.checking.answer import json_listing

    return "".join(
        json.JSONEncoder(default=json_listing).iterencode({**result, "constants": constants, "model": model})
    )


_TICK = 0.1
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


def run_limited(command: Callable[[], int], options: argparse.Namespace, console: Console) -> int:
    """Run a command within the limits that its options give, and return its exit status.

    It writes its answers to `options.journal`. Where a limit ends it the status is 1 if a model was
    built and properties are left unanswered, and 2 if no model was built.
    """
    limits = Limits()
    for name, value in getattr(options, "limits", ()):
        limits = limits.changed(name, value)
    options.journal = Journal(None)
    with limited(limits):
        if getattr(options, "timeout", None) is None and getattr(options, "memory", None) is None:
            return command()
        return _Watched(options, console).run(command)


class _Watched:
    """A command in a process of its own, and the watch over it."""

    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self._options = options
        self._console = console
        files = getattr(options, "spill", None) is None
        self._budget = Budget.of(options.timeout, options.memory, files)
        self._journal = Journal(None)
        self._over_since: float | None = None

    def run(self, command: Callable[[], int]) -> int:
        """Run the command and return the exit status."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            self._work(command, writing)
        os.close(writing)
        before = {
            number: signal.signal(number, lambda sent, frame: os.kill(process, sent))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            reason = self._watch(process, reading)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reading)
        if reason is None and status == -signal.SIGKILL:
            reason = "the system ended the process, as it does where memory runs out; give --memory"
        if reason is None:
            return status if status >= 0 else 128 - status
        self._console.wipe()
        return self._journal.end(reason, self._options, self._console)

    # ------------------------------------------------------------------ the command's process

    def _work(self, command: Callable[[], int], writing: int) -> None:
        """Run the command and end the process with its status."""
        status = 2
        try:
            with _Quietly():
                ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
            self._options.journal = Journal(lambda event: _send(writing, event))
            self._budget.course.tell = lambda news: _send(writing, {"course": news})
            with spending(self._budget):
                status = self._command(command)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with _Quietly():
                    stream.flush()
            os._exit(status)

    def _command(self, command: Callable[[], int]) -> int:
        try:
            return command()
        except BudgetError as error:
            return int(self._options.journal.end(str(error), self._options, self._console))

    # ------------------------------------------------------------------ the watch

    def _watch(self, process: int, journal: int) -> str | None:
        """Follow the command until it ends; return why it had to be ended, None if it did so itself."""
        import json

        pending = b""
        while True:
            if select.select([journal], [], [], _TICK)[0]:
                data = os.read(journal, 1 << 16)
                if not data:
                    return None
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if "course" in event:
                        self._budget.course.change(**event["course"])
                    else:
                        self._journal.take(event)
            reason = self._overrun(process)
            if reason is not None:
                os.kill(process, signal.SIGKILL)
                return reason

    def _overrun(self, process: int) -> str | None:
        """Return why the process must be ended, None if it need not."""
        budget, now = self._budget, time.monotonic()
        if budget.seconds is not None and now - budget.started > budget.seconds + _grace(budget.seconds):
            return budget.out_of_time()
        if budget.memory is None:
            return None
        used = budget.used(process)
        self._over_since = None if used <= budget.memory else self._over_since or now
        late = self._over_since is not None and now - self._over_since > _grace(0.0)
        if late or used > 1.25 * budget.memory:
            return budget.out_of_memory()
        return None


def _grace(seconds: float) -> float:
    """Return the seconds in which a command has to end before it is killed."""
    return max(1.0, 0.1 * seconds)


def _send(writing: int, event: dict[str, Any]) -> None:
    """Send an event to the watching process."""
    import json

    data = json.dumps(event).encode() + b"\n"
    while data:
        data = data[os.write(writing, data) :]


class _Quietly:
    """Errors are ignored."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *raised: object) -> bool:
        return True
