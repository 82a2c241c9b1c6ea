"""``python -m tests.attack``: random models against exact answers; status 1 if one is wrong."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.attack.cases import draw_case, run_case
from tests.attack.report import WAYS, Summary, attack, write_findings, write_json
from tests.attack.shrink import shrunk
from tests.runs import add_record_option, append_run

_CASES = 20_000
_SEED = 20261122
_MOST_SHRUNK = 20


def main(arguments: list[str] | None = None) -> int:
    """Run the attack and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--cases", type=int, default=_CASES, help=f"how many (default {_CASES})")
    parser.add_argument("--seed", type=int, default=_SEED, help=f"of the generator (default {_SEED})")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--case", type=int, help="run this case alone and print it whole")
    parser.add_argument(
        "--backend", choices=("cpu", "reference", "gpu"), help="default: cpu or reference, drawn"
    )
    for name, (_, told) in WAYS.items():
        parser.add_argument(f"--{name}", action="store_const", const=name, dest="way", default="", help=told)
    parser.add_argument("--processes", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--json", type=Path, help="write counts and failures here")
    add_record_option(parser, "attack")
    parser.add_argument(
        "--findings", type=Path, default=Path("attack-findings.txt"), help="text of the failures"
    )
    chosen = parser.parse_args(arguments)
    if chosen.case is not None:
        return _one(chosen.seed, chosen.case, chosen.backend)
    start = time.perf_counter()
    last = start

    def progress(summary: Summary) -> None:
        nonlocal last
        if time.perf_counter() - last > 30:
            last = time.perf_counter()
            print(f"{summary.cases} cases, {len(summary.findings)} failures", file=sys.stderr, flush=True)

    summary = attack(
        chosen.seed, chosen.cases, chosen.backend, chosen.processes, chosen.first, progress, chosen.way
    )
    print(summary.table())
    seconds = time.perf_counter() - start
    print(f"{seconds:.0f} s")
    if chosen.record is not None:
        told = summary.record()
        append_run(
            chosen.record,
            seed=chosen.seed,
            first=chosen.first,
            whole=chosen.first == 0 and chosen.cases >= _CASES,
            cases=summary.cases,
            values=summary.values,
            verdicts=told["verdicts"],
            failures=sorted({finding.number for finding in summary.findings}),
            way=chosen.way,
            backend=chosen.backend,
            processes=chosen.processes,
            seconds=round(seconds),
        )
    if chosen.json is not None:
        write_json(chosen.json, summary)
    if not summary.findings:
        return 0
    shown = summary.findings[:_MOST_SHRUNK]
    small = shown if chosen.way else [shrunk(f, chosen.backend) for f in shown]
    write_findings(chosen.findings, [*small, *summary.findings[_MOST_SHRUNK:]])
    for finding in small:
        print(
            f"{finding.verdict}: case {finding.number}: {finding.property}: {finding.detail.splitlines()[-1]}"
        )
    print(f"{len(summary.findings)} failures, written to {chosen.findings}")
    return 1


def _one(seed: int, number: int, backend: str | None) -> int:
    """Run one case and print it."""
    case = draw_case(seed, number, backend)
    print(case.spec.text())
    print(case.options)
    for question in case.questions:
        print(f"{question.text}\n  {question.expected}")
    record = run_case(case)
    print(record.verdicts)
    for finding in record.findings:
        print(f"{finding.verdict}: {finding.property}: {finding.detail}")
    return 1 if record.findings else 0


if __name__ == "__main__":
    sys.exit(main())
