"""Calls of the library from many threads at once, after a fork, and many times over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exploring import rounds
from tests.faults.processes import run

pytest.importorskip("numba")

THREADS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import hybrid

together = Barrier(4)

def own(number):
    together.wait()
    found = []
    for _ in range(2):
        model = hybrid.load("examples/tandem.prism", {"c": 3 + number % 2})
        found.append(hybrid.check(model, "S=? [ true & sc=0 ]", backend="cpu").value)
    return number % 2, found

def same(number):
    together.wait()
    return hybrid.check(hybrid.load("examples/brp.prism", {"N": 4, "MAX": 2}), "P=? [ F s=5 ]").value

with ThreadPoolExecutor(4) as pool:
    answers = {}
    for key, values in pool.map(own, range(4)):
        answers.setdefault(key, set()).update(values)
    assert all(len(values) == 1 for values in answers.values()), answers
    assert len(answers) == 2
    assert len(set(pool.map(same, range(4)))) == 1
print("equal")
"""

FORKED = """
import os, sys
import numpy as np
import hybrid
from hybrid.matrix.cpu.threads import set_thread_count
from mtbdd.offset.block_kernels import copy_blocks

set_thread_count(4)
rng = np.random.default_rng(5)
flat = rng.random(200_000)
sources = np.sort(rng.integers(0, 100_000, 50))
ends = np.cumsum(rng.integers(0, 3000, 50))

def work():
    result = np.empty(ends[-1])
    copy_blocks(flat, sources, ends, result)
    lengths = np.diff(np.append(0, ends))
    expected = np.concatenate([flat[s : s + k] for s, k in zip(sources, lengths)])
    assert (result == expected).all()
    model = hybrid.load("examples/tandem.prism", {"c": 63})
    return hybrid.check(model, "S=? [ sc=0 ]", backend="cpu").value

before = work()
read, write = os.pipe()
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        os.write(write, f"{work()!r} ".encode())
        os._exit(0)
    children.append(child)
assert work() == before
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
os.close(write)
assert os.read(read, 1000).decode().split() == [repr(before)] * 2
print("equal")
"""

GROWTH = """
import resource, sys
import hybrid

def resident():
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()

small, process, rounds = sys.argv[1:]
chain = hybrid.load(small)

def check():
    hybrid.check(chain, "P=? [ F s=N ]", backend="cpu")
    hybrid.check(chain, "P=? [ F<=30 s=N ]", backend="cpu", engine="explicit")
    hybrid.check(hybrid.load(process), "Pmax=? [ F s=3 ]", backend="cpu")
    hybrid.check(hybrid.load(small), "S=? [ s=N ]", backend="cpu")

for _ in range(24):
    check()
before = resident()
for _ in range(int(rounds)):
    check()
print(resident() - before)
"""

PROCESS = """
mdp
module m
  s : [0..3];
  [a] s<3 -> 0.5 : (s'=s+1) + 0.5 : (s'=0);
  [b] s<3 -> 0.9 : (s'=s) + 0.1 : (s'=3);
  [] s=3 -> true;
endmodule
"""


@pytest.mark.parametrize("code", [THREADS, FORKED], ids=["threads", "forks"])
def test_answers_are_equal(code: str) -> None:
    # A process forked with threads is what the second is about; Python 3.12 warns of it.
    done = run(code=code, PYTHONWARNINGS="ignore::DeprecationWarning")
    assert (done.returncode, done.stdout, done.stderr) == (0, "equal\n", "")


@pytest.mark.slow
def test_many_checks_leave_no_memory_behind(small: str, tmp_path: Path) -> None:
    # Four checks a round; docs/reliability.md has the figure for two thousand.
    process = tmp_path / "process.nm"
    process.write_text(PROCESS)
    count = rounds(60)
    done = run(small, str(process), str(count), code=GROWTH)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < (2 << 20) * count // 75
