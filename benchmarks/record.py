"""What every benchmark record says about where it was made."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("dd", "numba", "numpy", "scipy")


def environment() -> dict[str, Any]:
    """Return commit, versions and processor of this run."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": versions,
        "processor": _processor(),
        "cores": _cores(),
    }


def _commit() -> str | None:
    """Return the commit that is measured, marked when the tree has changes.

    The environment variable BENCHMARK_COMMIT names it where the sources lie without their repository, or in
    an older one.
    """
    if os.environ.get("BENCHMARK_COMMIT"):
        return os.environ["BENCHMARK_COMMIT"]
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        return commit + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _cores() -> int | None:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _processor() -> str:
    """Return the processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
