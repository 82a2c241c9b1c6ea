"""Parts of a matrix in processes of MPI, by mpi4py."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.errors import OptionError
from mtbdd.base.communicator import Communicator, Float64Array

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
