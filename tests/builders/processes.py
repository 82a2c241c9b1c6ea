"""Processes of Python: one by itself, or several of MPI on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

__all__ = ["ROOT", "launcher", "needs_mpi", "process_environment", "run_processes", "run_python"]

ROOT = Path(__file__).resolve().parent.parent.parent


def run_python(
    *arguments: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with arguments, without standard input, to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=seconds,
        check=False,
    )


def launcher() -> str | None:
    """Return the program that starts processes: of the environment that runs, or else of the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or launcher() is None, reason="needs mpi4py and mpiexec"
)


def process_environment() -> dict[str, str]:
    """Return the environment of processes that a launcher starts, each with one thread."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Open MPI asks for these where the user of a container is root; MPICH has no such question.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, "HYBRID_NUM_THREADS": "1", "PYTHONPATH": paths, **allowed}


def run_processes(size: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Start a command as so many processes, each with one thread."""
    program = launcher()
    assert program is not None
    return subprocess.run(
        [program, "-n", str(size), *command],
        cwd=ROOT,
        env=process_environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
