"""Models for the tests of faults: small ones, and one that keeps the command line busy."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

SMALL = """
dtmc
const int N = 3;
module m
  s : [0..N+1];
  [] s<N -> 0.5 : (s'=s+1) + 0.4 : (s'=0) + 0.1 : (s'=N+1);
  [] s>=N -> true;
endmodule
label "end" = s=N;
rewards "steps" true : 1; endrewards
"""

SLOW = """
dtmc
module m
  s : [0..200000];
  [] s<200000 -> 0.5 : (s'=min(s+1, 200000)) + 0.5 : (s'=max(s-1, 0));
  [] s=200000 -> true;
endmodule
"""

SMALL_ANSWER = "P=? [ F<=3 s=N ]"
SLOW_QUESTION = "P=? [ F<=100000000 s=200000 ]"


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Let processes hear Ctrl-C: where a shell runs the tests in the background, all below ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.pm"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A model with a quick answer (`X`) and one that takes hours (`SLOW_QUESTION`)."""
    path = tmp_path / "slow.pm"
    path.write_text(SLOW)
    return str(path)
