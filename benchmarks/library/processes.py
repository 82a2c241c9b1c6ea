"""Processes of their own, in which programs measure what a fresh one takes."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.library.models import ROOT
from mtbdd.base.kernel_store import kernel_folder

__all__ = ["CODE_FOLDERS", "child_environment", "compile_bytecode", "kernel_files", "run_python", "tree_of"]

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
