"""Memory that ends in one of several processes: a property's error in all, and no abort of MPI."""

from __future__ import annotations

import sys

from tests.builders.processes import needs_mpi, run_processes

_COMMAND = """
import sys
from mpi4py import MPI
from hybrid.__main__ import main
from hybrid.matrix.space.host import HostSpace

def reserve(self, vectors, size):
    if MPI.COMM_WORLD.Get_rank() and self.communicator.size > 1:
        raise MemoryError(f"{vectors} vectors of {size} elements find no room on this card")

HostSpace.reserve = reserve
sys.exit(main(sys.argv[1:]))
"""


@needs_mpi
def test_the_next_property_is_answered() -> None:
    arguments = ["check", "examples/kanban.prism", 'R{"throughput"}=? [ S ]; P=? [ true ]; P>=1 [ F w1=1 ]']
    found = run_processes(
        2, sys.executable, "-c", _COMMAND, *arguments, "--const", "t=1", "--distributed", "--backend", "cpu"
    )
    assert "not answered: out of memory: process 1: 3 vectors of" in found.stdout, found.stderr
    assert found.stdout.count("P>=1 [ F w1=1 ]\n  result       true") == 1, found.stdout
    assert found.returncode == 1 and "bort" not in found.stderr, found.stderr
