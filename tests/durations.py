"""How long tests took: kept in a file, and the slowest shown beside what the run before needed."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

__all__ = ["DurationRecorder"]

_SHOWN = 15


class DurationRecorder:
    """The plugin behind ``pytest --durations-to=FILE``: processor seconds of every test, with its processes.

    A worker of pytest-xdist sends them along with its reports. What runs beside does not change them much.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: Counter[str] = Counter()
        self._before = self._now()

    @staticmethod
    def _now() -> float:
        return sum(os.times()[:4])

    def pytest_collection_finish(self) -> None:
        """Count nothing of collecting as the first test's."""
        self._before = self._now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        """Note what was used since the last report."""
        report = yield
        now = self._now()
        report.processor_seconds, self._before = now - self._before, now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add up the phases of a test."""
        self._tests[report.nodeid] += getattr(report, "processor_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any, config: Any) -> None:
        """Show the slowest files and tests, and keep all."""
        if hasattr(config, "workerinput") or not self._tests:
            return
        files: Counter[str] = Counter()
        for name, seconds in self._tests.items():
            files[name.partition("::")[0]] += seconds
        before = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        for kind, found in (("files", files), ("tests", self._tests)):
            terminalreporter.section(f"slowest {kind}: {sum(found.values()):.0f} processor seconds in all")
            for name, seconds in found.most_common(_SHOWN):
                known = before.get(kind, {}).get(name)
                terminalreporter.line(f"{seconds:7.1f} s {name}" + (f" (was {known:.1f} s)" if known else ""))
        kept = {
            kind: {name: round(seconds, 2) for name, seconds in found.most_common()}
            for kind, found in (("files", files), ("tests", self._tests))
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
