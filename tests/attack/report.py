"""Many cases at once, and what they showed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.attack.averages import run_averages
from tests.attack.cases import Case, Finding, Record, draw_case, run_case
from tests.attack.directed import run_directed
from tests.attack.in_block_rows import run_in_block_rows
from tests.attack.in_parts import run_in_parts
from tests.attack.judge import VERDICTS
from tests.attack.open_faults import OPEN_CASES
from tests.attack.quotients import run_in_quotients
from tests.attack.resumed import run_resumed
from tests.attack.scheduled import run_scheduled
from tests.attack.several import run_several
from tests.attack.symbolic import run_symbolic

__all__ = ["WAYS", "Summary", "attack", "reported", "run_block"]

_BLOCK = 20


@dataclass
class Summary:
    """Counts over all cases, and the failures."""

    seed: int
    cases: int = 0
    values: int = 0
    seconds: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a case."""
        self.cases += 1
        self.values += record.values
        self.seconds += record.seconds
        self.verdicts.update(record.verdicts)
        self.kinds[record.kind] += 1
        self.families[record.family] += 1
        self.findings += record.findings

    def table(self) -> str:
        """Return the counts as lines of text."""
        lines = [
            f"seed {self.seed}: {self.cases} cases, {sum(self.verdicts.values())} answers, "
            f"{self.values} values",
            "kinds: " + ", ".join(f"{n} {k}" for k, n in sorted(self.kinds.items())),
            "families: " + ", ".join(f"{n} {k}" for k, n in sorted(self.families.items())),
        ]
        return "\n".join([*lines, *(f"{name:14} {self.verdicts[name]}" for name in VERDICTS)])

    def record(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "seed": self.seed,
            "cases": self.cases,
            "values": self.values,
            "seconds": round(self.seconds, 1),
            "verdicts": {name: self.verdicts[name] for name in VERDICTS},
            "kinds": dict(sorted(self.kinds.items())),
            "families": dict(sorted(self.families.items())),
            "findings": [asdict(f) for f in self.findings],
        }


WAYS: dict[str, tuple[Callable[[Case], Record], str]] = {
    "averages": (run_averages, "ask for long-run averages of decision processes in the place of each case"),
    "in-parts": (run_in_parts, "ask in 2 to 7 parts, states dealt to them at random"),
    "in-block-rows": (run_in_block_rows, "solve component by component, in block rows of a few states"),
    "directed": (run_directed, "ask of models that are built no further than the question needs"),
    "quotients": (run_in_quotients, "ask of bisimulation quotients, from diagrams and from lists in turn"),
    "scheduled": (run_scheduled, "ask for schedulers, too, and ask the chains that these leave the same"),
    "several": (run_several, "ask for several objectives, averages among them, in the place of each case"),
    "symbolic": (run_symbolic, "ask in the symbolic engine, whose vectors are diagrams"),
    "resumed": (
        run_resumed,
        "end checks at random progress reports, and resume from checkpoints, some with other block rows",
    ),
}
"""Other ways to run cases, and what they do."""


def run_block(seed: int, numbers: range, backend: str | None, way: str = "") -> list[Record]:
    """Run some cases: as they are, in parts, in block rows, or ended and gone on with."""
    run = WAYS[way][0] if way else run_case
    return [run(draw_case(seed, number, backend)) for number in numbers]


def reported(run: Callable[[Case], Record], seed: int, numbers: range) -> str:
    """Return the failures of some cases as text; those whose faults are open are left out."""
    records = [run(draw_case(seed, number)) for number in numbers if number not in OPEN_CASES]
    return "\n\n".join(found.report() for record in records for found in record.findings)


def attack(
    seed: int,
    cases: int,
    backend: str | None = None,
    processes: int = 1,
    first: int = 0,
    progress: Callable[[Summary], None] | None = None,
    way: str = "",
) -> Summary:
    """Run cases in one process or several and return the summary."""
    summary = Summary(seed)
    blocks = [range(a, min(a + _BLOCK, first + cases)) for a in range(first, first + cases, _BLOCK)]
    for records in _records(seed, blocks, backend, processes, way):
        for record in records:
            summary.add(record)
        if progress is not None:
            progress(summary)
    return summary


def _records(
    seed: int, blocks: list[range], backend: str | None, processes: int, way: str
) -> Iterator[list[Record]]:
    if processes <= 1:
        for block in blocks:
            yield run_block(seed, block, backend, way)
        return
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        count = len(blocks)
        yield from pool.map(run_block, [seed] * count, blocks, [backend] * count, [way] * count)


def write_findings(path: Path, findings: list[Finding]) -> None:
    """Write failures, one after the other, as text."""
    path.write_text("\n\n".join(f.report() for f in findings), encoding="utf-8")


def write_json(path: Path, summary: Summary) -> None:
    """Write the whole summary."""
    path.write_text(json.dumps(summary.record(), indent=1) + "\n", encoding="utf-8")
