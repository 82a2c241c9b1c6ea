"""Processes that are killed at any moment leave a state that is whole, and others come to the same answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.checkpoints.folder import Description, vectors_of
from tests.builders.processes import ROOT, launcher, needs_mpi, process_environment
from tests.exploring import rounds

QUEUE = """ctmc
module queue
  x : [0..100] init 0;
  [] x < 100 -> 1 : (x'=x+1);
  [] x > 0 -> 1.001 : (x'=x-1);
endmodule
rewards "length" true : x; endrewards
"""
TEXT = 'R{"length"}=? [ S ]'


def command(folder: Path, *more: str) -> list[str]:
    (folder / "queue.prism").write_text(QUEUE)
    given = ["check", str(folder / "queue.prism"), "-pf", TEXT, "--method", "jor", "--json", "--quiet"]
    kept = ["--checkpoint", str(folder / "kept"), "--every", "0", "--max-iters", "100000000"]
    return [sys.executable, "-m", "hybrid", *given, *kept, "--epsilon", "1e-6", *more]


def is_whole(folder: Path) -> int:
    """Assert that what a description names is what was written; return its iterations, 0 if there is none."""
    (path,) = [*folder.glob("*-1.json"), None][:1]
    if path is None:
        return 0
    told = Description.of(path.read_text(), path)
    for part in told.parts:
        for vector in vectors_of(folder, part, told.vectors).values():
            assert sum(chunk.size for _, chunk in vector.chunks()) == part.size
    return int(told.numbers["iterations"])


def reached_in(folder: Path) -> int:
    """Return the iterations that the description tells; its files may go at any moment."""
    for path in folder.glob("*-1.json"):
        return int(Description.of(path.read_text(), path).numbers["iterations"])
    return 0


def kill_one(job: subprocess.Popen[bytes], moment: float, folder: Path) -> None:
    """Wait until something has been kept, and a little longer, and kill the youngest process of a job."""
    end = time.monotonic() + 240.0
    before = reached_in(folder)
    while time.monotonic() < end and reached_in(folder) <= before:
        assert job.poll() is None, "the job ended before anything was kept"
        time.sleep(0.02)
    time.sleep(moment)
    children = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in children.stdout.splitlines()[1:]]
    own = {job.pid}
    for _ in range(4):
        own |= {int(pid) for pid, parent, _ in rows if int(parent) in own}
    running = [int(pid) for pid, _, text in rows if int(pid) in own and "-m hybrid" in text]
    os.kill(max(running), signal.SIGKILL)


def stationary() -> float:
    weights = (1 / 1.001) ** np.arange(101.0)
    return float((weights * np.arange(101.0)).sum() / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "kills"), [(1, rounds(3)), pytest.param(2, rounds(3), marks=needs_mpi)])
def test_killed_at_random_moments(size: int, kills: int, tmp_path: Path, rng: np.random.Generator) -> None:
    start: list[str] = [] if size == 1 else [str(launcher()), "-n", str(size)]
    more = [] if size == 1 else ["--distributed"]
    options: dict[str, Any] = {"cwd": ROOT, "env": process_environment(), "stdin": subprocess.DEVNULL}
    reached = [0]
    for _ in range(kills):
        with subprocess.Popen(
            [*start, *command(tmp_path, *more)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **options,
        ) as job:
            kill_one(job, float(rng.random()) * 0.3, tmp_path / "kept")
            assert job.wait(timeout=240) != 0
        reached.append(is_whole(tmp_path / "kept"))
    assert reached == sorted(set(reached))
    # Others, as many as they like, go on.
    found = hybrid.check(
        hybrid.parse(QUEUE), TEXT, method="jor", epsilon=1e-6, max_iterations=10**8,
        checkpoint=tmp_path / "kept",
    )  # fmt: skip
    assert found.statistics.iterations > reached[-1]
    assert found.value == pytest.approx(stationary(), rel=1e-2)
