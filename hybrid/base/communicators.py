"""Communicators of processes that share the states: threads of one process, or MPI's by mpi4py."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.errors import HybridError, OptionError, PropertyError
from mtbdd.base.communicator import Communicator, Float64Array

# Parts of a matrix in processes of MPI, by mpi4py.

_PATIENCE = 60.0
"""Seconds that a process whose answer failed waits for the others to fail as well."""

_EXIT_FAILED = 1


class MpiCommunicator(Communicator):
    """See `Communicator`; mpi4py's is duplicated, so that messages of a caller's own do not meet these."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm.Dup()
        # Apart: the end of an answer that failed never meets what others ask in the midst of theirs.
        self._ends = comm.Dup()
        self.rank, self.size = int(comm.Get_rank()), int(comm.Get_size())
        self.carries = self.size > 1

    def gather(self, numbers: ArrayLike) -> Float64Array:
        """See `Communicator.gather`."""
        own = np.array(numbers, np.float64).reshape(-1)
        found = np.empty((self.size, own.size))
        self._comm.Allgather(own, found)
        return found

    def gather_bytes(self, own: bytes) -> list[bytes]:
        """See `Communicator.gather_bytes`."""
        return list(self._comm.allgather(own))

    def exchange(self, outgoing: Sequence[NDArray[Any]], incoming: Sequence[NDArray[Any]]) -> None:
        """See `Communicator.exchange`."""
        from mpi4py import MPI

        others = [rank for rank in range(self.size) if rank != self.rank]
        requests = [self._comm.Irecv(incoming[rank], rank) for rank in others if incoming[rank].size]
        requests += [self._comm.Isend(outgoing[rank], rank) for rank in others if outgoing[rank].size]
        MPI.Request.Waitall(requests)

    def finish(self, failure: str | None) -> str | None:
        """See `Communicator.finish`; a failure that is not shared ends the job after a minute."""
        own, found = np.array([float(failure is not None)]), np.empty((self.size, 1))
        request = self._ends.Iallgather(own, found)
        begin = time.monotonic()
        while not request.Test():
            time.sleep(0.0 if time.monotonic() - begin < 0.01 else 0.01)
            if failure is not None and time.monotonic() - begin > _PATIENCE:
                self.abort(f"an error that other processes do not have; the job is ended: {failure}")
        if not found.any():
            return None
        return self.first_text(failure or None) or ""

    def local_rank(self) -> tuple[int, int]:
        """See `Communicator.local_rank`."""
        from mpi4py import MPI

        near = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        found = int(near.Get_rank()), int(near.Get_size())
        near.Free()
        return found

    def abort(self, message: str) -> None:
        """End all processes of the job."""
        # Not by `sys.stderr`, which a process that is to be silent may have closed.
        os.write(2, f"error: process {self.rank} of {self.size}: {message}\n".encode())
        self._comm.Abort(_EXIT_FAILED)


def mpi_communicator() -> MpiCommunicator:
    """Return the communicator of all processes that were started together.

    Raises OptionError where mpi4py is not installed, or finds no MPI library.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as fault:
        raise OptionError(
            "several processes need mpi4py and an MPI library: pip install 'hybrid-model-checker[mpi]', then "
            f"start the same command with mpiexec -n 2 ({fault})"
        ) from fault
    return MpiCommunicator(MPI.COMM_WORLD)


# Parts of a matrix in one process: a thread a part, of which one runs at a time.
#
# The threads take turns: one runs until it has to wait for the others. So they may share diagrams, need no
# further lock, and compute the same bits in every run. This is for tests of what other communicators run and
# for measuring what a division costs; it is no faster than one part.

T = TypeVar("T")

END = "the end of an answer"
_ENDED = "another part ended with an error"


class PartEndedError(HybridError):
    """Another part ended with an error, so that this one cannot go on."""


class _Meeting:
    """A barrier of all threads, used round after round, at which each hands a value to all others.

    The `turn` is held by the one thread that runs; a thread that waits lets it go. `failure` is what the
    first thread to fail raised.
    """

    def __init__(self, size: int) -> None:
        self.turn = threading.Condition()
        self._values: list[Any] = [None] * size  # of the current round, by rank
        self._purpose, self._arrived, self._round = "", 0, 0
        self._results: list[Any] = []  # the values of the round that was completed last
        self._broken_off = -1  # the last round that a thread broke off at the end of its answer
        self.failure: BaseException | None = None

    def gathered(self, rank: int, purpose: str, own: object) -> list[Any]:
        """Wait until every thread has called this; return the values of all of them, by rank.

        The purpose says what the round is for; it is the same in all threads, but that one whose answer
        failed calls with `END`. Raises PartEndedError where another thread failed, or is at the end of its
        answer, while this one is not.
        """
        self._refuse_if_failed()
        if self._arrived and self._purpose != purpose:
            self._break_off(purpose)
        self._purpose, self._values[rank] = purpose, own
        self._arrived += 1
        if self._arrived == len(self._values):
            self._results, self._values = self._values, [None] * len(self._values)
            self._arrived, self._round = 0, self._round + 1
            self.turn.notify_all()
            return self._results
        awaited = self._round
        while self._round == awaited:
            self._refuse_if_failed()
            if self._broken_off == awaited:
                raise PartEndedError(_ENDED)
            self.turn.wait()
        if self._broken_off == awaited:
            raise PartEndedError(_ENDED)
        return self._results

    def _break_off(self, purpose: str) -> None:
        """Handle a thread whose purpose is not that of the round.

        If the answer of one part failed, its thread is in the round of `END` while the others still compute.
        Each of these raises `PartEndedError`, so that its answer fails too; then it joins the round of `END`.
        """
        if self._purpose == END:
            raise PartEndedError(_ENDED)
        if purpose != END:
            self.fail(RuntimeError(f"parts ask each other for {self._purpose} and {purpose} at once"))
            self._refuse_if_failed()
        self._broken_off, self._values = self._round, [None] * len(self._values)
        self._arrived, self._round = 0, self._round + 1
        self.turn.notify_all()

    def fail(self, failure: BaseException) -> None:
        """Note a failure, the first one only, and wake all threads: each raises `PartEndedError`."""
        if self.failure is None:
            self.failure = failure
        self.turn.notify_all()

    def _refuse_if_failed(self) -> None:
        if self.failure is not None:
            raise PartEndedError(_ENDED) from self.failure


class ThreadCommunicator(Communicator):
    """See `Communicator`; made by `in_threads`."""

    def __init__(self, meeting: _Meeting, rank: int, size: int) -> None:
        self._meeting, self.rank, self.size = meeting, rank, size

    def gather(self, numbers: ArrayLike) -> Float64Array:
        """See `Communicator.gather`."""
        own = np.array(numbers, np.float64).reshape(-1)
        return np.stack(self._meeting.gathered(self.rank, f"{own.size} numbers", own))

    def gather_bytes(self, own: bytes) -> list[bytes]:
        """See `Communicator.gather_bytes`."""
        return list(self._meeting.gathered(self.rank, "bytes", own))

    def exchange(self, outgoing: Sequence[NDArray[Any]], incoming: Sequence[NDArray[Any]]) -> None:
        """See `Communicator.exchange`."""
        # Copies: the first process to go on may write to its own arrays again before the others have read
        # them.
        found = self._meeting.gathered(self.rank, "columns", [array.copy() for array in outgoing])
        for rank, place in enumerate(incoming):
            if rank != self.rank and place.size:
                place[...] = found[rank][self.rank]

    def finish(self, failure: str | None) -> str | None:
        """See `Communicator.finish`."""
        found = [text for text in self._meeting.gathered(self.rank, END, failure) if text is not None]
        return next(filter(None, found), "") if found else None


def in_threads(size: int, run: Callable[[Communicator], T]) -> list[T]:
    """Run a function in `size` threads, one a part, and return their results by rank.

    It is called with a communicator; the first part runs in the calling thread. Raises what the first part to
    fail raised; in the others `PartEndedError` was raised.
    """
    meeting = _Meeting(size)
    results: list[Any] = [None] * size

    def part(rank: int) -> None:
        with meeting.turn:
            try:
                results[rank] = run(ThreadCommunicator(meeting, rank, size))
            except BaseException as failure:  # noqa: BLE001 - told by the calling thread
                meeting.fail(failure)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(part, rank), name=f"part {rank}")
        for rank in range(1, size)
    ]
    for thread in threads:
        thread.start()
    part(0)
    for thread in threads:
        thread.join()
    if meeting.failure is not None:
        raise meeting.failure
    return results


# The end of what several processes find together: all have it, or none.


def failure_of_all(communicator: Communicator, failure: HybridError | None) -> HybridError | None:
    """Wait for all at the end of an answer, and return why this process has none; None if all have one.

    `failure` is the reason why this process has none.
    """
    was_ended = isinstance(failure, PartEndedError)
    why = communicator.finish(None if failure is None else "" if was_ended else str(failure))
    if why is not None and (failure is None or was_ended):
        return PropertyError(why)
    return failure
