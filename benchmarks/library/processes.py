"""Processes of their own, in which programs measure what a fresh one takes."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.library.models import ROOT
from mtbdd.base.kernel_store import kernel_folder

__all__ = [
    "CODE_FOLDERS",
    "WholeProcess",
    "check_whole",
    "child_environment",
    "compile_bytecode",
    "kernel_files",
    "run_python",
    "run_whole",
    "tree_of",
]

CODE_FOLDERS = ("CUPY_CACHE_DIR", "NUMBA_CACHE_DIR")
"""Variables that name where CuPy and Numba keep what they have compiled."""

PACKAGES = (
    "hybrid", "mtbdd", "gpu_kernels", "dd", "ply", "astutils", "numpy", "numba", "llvmlite", "scipy", "cupy",
    "cupyx", "cupy_backends",
)  # fmt: skip
"""What a command imports."""


def child_environment(*before: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process that imports the packages of a checkout.

    Bytecode is kept, whatever the shell says, as where packages are installed: without it every process
    compiles all modules anew, for a second or so.

    Parameters
    ----------
    *before
        Folders that are looked into first; this checkout if there are none.
    **more
        More variables.
    """
    paths = [*map(str, before or (ROOT,)), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def compile_bytecode() -> None:
    """Compile the modules of all packages that a command imports, as installers do."""
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        for folder in (spec and spec.submodule_search_locations) or ():
            compileall.compile_dir(folder, quiet=2)


@dataclass(frozen=True)
class WholeProcess:
    """A process from its start to its end, with the children that it waited for.

    Attributes
    ----------
    status : int or None
        Its exit status; None if it was ended at its limit.
    wall_seconds, cpu_seconds : float
        Processor seconds are those of all threads, user and system.
    peak_rss_bytes : int
        Greatest resident memory.
    starter_rss_bytes : int
        That of the process that started it, from which its own is counted.
    load : float
        The system's average over a minute before it.
    printed, errors : str
        Standard output and standard error.
    """

    status: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    starter_rss_bytes: int
    load: float
    printed: str
    errors: str

    @property
    def known_peak(self) -> int | None:
        """The greatest resident memory in bytes; None where it may be that of the starter."""
        return self.peak_rss_bytes if self.peak_rss_bytes > self.starter_rss_bytes else None


def run_whole(command: Sequence[str], limit: float = math.inf) -> WholeProcess:
    """Run a command at the root of this checkout, with its packages, until its end or for `limit` seconds.

    At the limit the process and its children are killed.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=child_environment(), stdout=printed, stderr=errors, start_new_session=True
        )
        end = threading.Timer(min(limit, threading.TIMEOUT_MAX), _kill_group, [process.pid])
        end.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _kill_group(process.pid)
            raise
        finally:
            end.cancel()
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        errors.seek(0)
        # Kilobytes, but bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        return WholeProcess(
            status=None if process.returncode == -signal.SIGKILL and wall >= limit else process.returncode,
            wall_seconds=wall,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_rss_bytes=usage.ru_maxrss * unit,
            starter_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
            load=load,
            printed=printed.read(),
            errors=errors.read(),
        )


def _kill_group(group: int) -> None:
    """Kill a process and its children; one that has just ended is none."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def check_whole(arguments: Sequence[str], limit: float) -> dict[str, Any]:
    """Run `hybrid` with arguments until its end or the limit.

    Returns
    -------
    dict
        ``wall_seconds``; ``load``; ``compiled_kernels``, by how many those kept became more; and, where it
        came to its end, ``peak_rss_bytes``, ``cpu_seconds`` and ``printed``, its JSON.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    environment = child_environment()
    before = sum(kernel_files(environment).values())
    done = run_whole([sys.executable, "-m", "hybrid", *arguments], limit)
    run = {"wall_seconds": done.wall_seconds, "load": done.load}
    run["compiled_kernels"] = sum(kernel_files(environment).values()) - before
    if done.status is None:
        return run
    # A property that cannot be answered is told in the JSON.
    if done.status not in (0, 1):
        raise RuntimeError(f"ended with {done.status}: {done.errors[-500:]}")
    run |= {"peak_rss_bytes": done.peak_rss_bytes, "cpu_seconds": done.cpu_seconds}
    return {**run, "printed": json.loads(done.printed)}


def run_python(code: str, argument: Any, folder: Path = ROOT, **more: str) -> Any:
    """Run code in a process that imports the packages of a folder, and return what it prints as JSON.

    Parameters
    ----------
    code : str
        Its ``sys.argv[1]`` is the argument, as JSON.
    argument
        What JSON can hold.
    folder : Path
    **more
        Variables of its environment.

    Raises
    ------
    RuntimeError
        If the process fails; with its last line.
    """
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(argument)],
        env=child_environment(folder, **more),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{folder}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout)


def kernel_files(environment: dict[str, str]) -> dict[str, int]:
    """Return how many kernels are kept for the device and for the host, where an environment keeps them.

    Without NUMBA_CACHE_DIR the host's are those of the user's caches.
    """
    home = Path.home()
    device = Path(environment.get("CUPY_CACHE_DIR", home / ".cupy" / "kernel_cache"))
    host = kernel_folder(environment.get("NUMBA_CACHE_DIR", ""))
    return {
        "device": sum(path.is_file() and not path.name.startswith("warm-") for path in device.rglob("*")),
        "host": sum(path.is_file() for path in host.rglob("*.nbc")),
    }


@contextlib.contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Make a worktree of a commit for as long as it is needed."""

    def git(*arguments: str) -> None:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"--against {commit}: neither a file nor a commit: {done.stderr.strip()}")

    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))
