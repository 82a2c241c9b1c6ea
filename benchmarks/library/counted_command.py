"""Run `hybrid` with arguments in this process, and write what it counts but does not print.

Usage: python -m benchmarks.library.counted_command COUNTS.json ARGUMENT ...

The file gets one entry an answer: how often the host waited for a device in its iterations, and the seconds
of these.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hybrid.__main__ import main
from hybrid.checking.answer import Answer
from hybrid.checking.checker import Checker
from hybrid.properties.tree import Property

counts: list[dict[str, float]] = []
plain_answer = Checker.answer


def counted_answer(self: Checker, prop: Property) -> Answer:
    """Answer a property as the checker does, and keep its counts."""
    found = plain_answer(self, prop)
    work = found.statistics
    counts.append({"synchronisations": work.synchronisations, "iteration_seconds_total": work.seconds})
    return found


if __name__ == "__main__":
    Checker.answer = counted_answer  # type: ignore[method-assign]
    status = main(sys.argv[2:])
    Path(sys.argv[1]).write_text(json.dumps(counts))
    raise SystemExit(status)
