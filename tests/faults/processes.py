"""The command line in processes of its own, in surroundings that the tests choose."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["ROOT", "Done", "environment", "run", "started", "stopped", "wait_for"]

ROOT = Path(__file__).resolve().parents[2]

Done = subprocess.CompletedProcess[str]

_PATIENCE = 120.0
"""Seconds after which a process is taken to hang."""


def environment(**changes: str | None) -> dict[str, str]:
    """Return this process's environment with changes; None removes a variable."""
    found = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def run(
    *arguments: str,
    cwd: Path | None = None,
    before: str = "",
    code: str | None = None,
    **changes: str | None,
) -> Done:
    """Run the command line, or Python code instead, to the end.

    Parameters
    ----------
    *arguments : str
        Of the command line.
    before : str
        What a shell does first, such as ``ulimit -v 1000``; it may redirect streams with ``exec``.
    code : str, optional
        Run instead of the command line.
    **changes
        See :func:`environment`.
    """
    program = ["-m", "hybrid"] if code is None else ["-c", code]
    shell = ["/bin/sh", "-c", f'{before}\nexec "$0" "$@"'] if before else []
    return subprocess.run(
        [*shell, sys.executable, *program, *arguments],
        cwd=cwd or ROOT,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding=(changes.get("PYTHONIOENCODING") or "utf-8").partition(":")[0],
        timeout=_PATIENCE,
        check=False,
    )


def started(*arguments: str, out: Path, **changes: str | None) -> subprocess.Popen[str]:
    """Start the command line, whose standard output goes to a file."""
    with out.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "hybrid", *arguments],
            cwd=ROOT,
            env=environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )


def stopped(process: subprocess.Popen[str], number: signal.Signals, out: Path) -> Done:
    """Send a signal and return how the process ended; `out` is what it was started with."""
    process.send_signal(number)
    _, err = process.communicate(timeout=_PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out.read_text(), err)


def processor_seconds(process: int) -> float:
    """Return what a process has used so far: unlike the time, this says how far it is on a busy machine."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        used = file.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something has happened, or fail if the process ends before or takes too long."""
    end = time.monotonic() + _PATIENCE
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "nothing has happened"
        time.sleep(0.01)
