"""Processes of MPI agree as threads do."""

from __future__ import annotations

import re
import sys

import pytest

from hybrid.base.communicators import mpi_communicator
from hybrid.base.errors import OptionError
from tests.builders.processes import needs_mpi, run_processes

_CONTRACT = """
from hybrid.base.communicators import mpi_communicator
from tests.builders.communicators import check_communicator
alike = mpi_communicator()
assert check_communicator(alike)
print(f"agreed {alike.rank} of {alike.size}")
"""

_FAILING = """
import hybrid.base.communicators as mpi
mpi._PATIENCE = 0.2
alike = mpi.mpi_communicator()
if alike.rank == 1:
    alike.finish('a fault of its own')
else:
    alike.gather([1.0])
"""


@needs_mpi
@pytest.mark.parametrize("size", [1, 3])
def test_processes_agree(size: int) -> None:
    found = run_processes(size, sys.executable, "-c", _CONTRACT)
    assert found.returncode == 0, found.stderr
    assert sorted(re.findall(r"agreed \d of \d", found.stdout)) == [
        f"agreed {k} of {size}" for k in range(size)
    ]


@needs_mpi
def test_a_failure_of_one_process_ends_the_job() -> None:
    found = run_processes(2, sys.executable, "-c", _FAILING)
    assert found.returncode != 0
    assert "process 1 of 2: an error that other processes do not have" in found.stderr
    assert "a fault of its own" in found.stderr


def test_without_mpi4py_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        OptionError,
        match=r"pip install 'hybrid-model-checker\[mpi\]', then start the same command with mpiexec -n 2",
    ):
        mpi_communicator()


_OUT_OF_MEMORY = """
import hybrid, hybrid.checking.checker as checker
from mpi4py import MPI
model = hybrid.load("examples/kanban.prism", constants={"t": 1})
answer = checker.Checker.answer
def fails(self, prop):
    if MPI.COMM_WORLD.Get_rank() == 1:
        raise MemoryError("of one process")
    return answer(self, prop)
checker.Checker.answer = fails
hybrid.check(model, 'R{"throughput"}=? [ S ]', ranks=MPI.COMM_WORLD)
"""


@needs_mpi
def test_a_process_without_memory_ends_the_job() -> None:
    found = run_processes(2, sys.executable, "-c", _OUT_OF_MEMORY)
    assert found.returncode != 0
    assert "process 1 of 2: MemoryError: of one process" in found.stderr
