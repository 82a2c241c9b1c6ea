"""What would make a device usable is told once, and only where it would have mattered."""

from __future__ import annotations

import io
import sys

import pytest

from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.app.cli import building as device_hint
from hybrid.app.cli.building import DeviceHint, shortened_reason
from hybrid.app.cli.console import Console

PROBLEM = "the card is at home; go and fetch it"
REASON = f"compiled kernels on all cores; no GPU: {PROBLEM}"


def work_of(iterations: int, seconds: float, reason: str = REASON) -> SolveStatistics:
    return SolveStatistics("jacobi", "cpu", iterations=iterations, seconds=seconds, _reasons={"cpu": reason})


@pytest.mark.parametrize(
    ("works", "told"),
    [
        ([work_of(100, 60.0), work_of(7, 5.0)], "65 s"),
        ([work_of(100, 9.0)], None),
        ([work_of(10_000_000, 60.0)], None),  # iterations too short to gain
        ([work_of(100, 60.0, "asked for")], None),
        ([SolveStatistics()], None),
    ],
    ids=["long", "short", "quick steps", "asked for", "nothing"],
)
def test_told_where_it_mattered(
    monkeypatch: pytest.MonkeyPatch, works: list[SolveStatistics], told: str | None
) -> None:
    monkeypatch.setattr(device_hint, "device_problem", lambda: PROBLEM)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    console, hint = Console(quiet=False, verbose=True), DeviceHint()
    for work in works:
        hint.add(work)
    hint.tell(console)
    note = f"note: iterations took {told} on the CPU, a GPU may be faster: {PROBLEM}\n"
    assert stream.getvalue() == ("" if told is None else note)


def test_an_answer_says_why_without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_hint, "device_problem", lambda: PROBLEM)
    assert shortened_reason(work_of(1, 1.0)) == "compiled kernels on all cores; no GPU: the card is at home"
    assert shortened_reason(work_of(1, 1.0, "asked for")) == "asked for"
