"""Runs of the attack, of formulas, of mutations, of seeds, on a device and under its checkers, in records.

A record of runs is a file of `benchmarks/results` with a list of them, a line each; a program appends what it
ran, with date, commit and machine, when it is through, whatever came of it. docs/reliability.md shows them.
`BENCHMARK_COMMIT` names the commit where the sources lie without their repository.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.library.records import device_record, environment
from tests.source_tree import ROOT

__all__ = ["RunRecorder", "add_record_option", "append_run", "read_runs"]

RESULTS = ROOT / "benchmarks" / "results"


def add_record_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a program the option that says where its run is appended."""
    parser.add_argument(
        "--record",
        type=Path,
        nargs="?",
        const=RESULTS / f"{name}.json",
        metavar="FILE",
        help=f"append the run to a record (without FILE: benchmarks/results/{name}.json)",
    )


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a record; none if there is no file."""
    return list(json.loads(path.read_text(encoding="utf-8"))["runs"]) if path.exists() else []


def append_run(path: Path, **facts: Any) -> None:
    """Append a run with date, commit and machine; the file is whole at every moment."""
    where = environment()
    machine = {key: where[key] for key in ("date", "commit", "python", "processor", "cores")}
    lines = [json.dumps(run, ensure_ascii=False) for run in [*read_runs(path), {**machine, **facts}]]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(
        f'{{"benchmark": "{path.stem}", "runs": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8"
    )
    unfinished.replace(path)


class RunRecorder:
    """The plugin behind ``pytest --record-to=FILE``: counts tests and the files of kernels that were loaded.

    Workers of pytest-xdist hand what they alone know to the process that starts them, which appends.
    """

    def __init__(self, path: Path, seed: int, config: pytest.Config) -> None:
        self._path = path
        self._seed = seed
        self._begin = time.perf_counter()
        self._worker = getattr(config, "workeroutput", None)
        self._deselected = 0
        self._kernels: set[str] = set()
        loader = logging.getLogger("gpu_kernels.runtime._loader")
        loader.setLevel(logging.INFO)
        loader.addFilter(self._loaded)

    def _loaded(self, record: logging.LogRecord) -> bool:
        """Note the file of a kernel that is loaded."""
        if record.msg == "loading %s" and isinstance(record.args, tuple):
            self._kernels.add(str(record.args[0]))
        return True

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count tests that were left out."""
        self._deselected += len(items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker knows; every one of them leaves out the same tests."""
        told = getattr(node, "workeroutput", {}).get("run", {})
        self._deselected = max(self._deselected, told.get("deselected", 0))
        self._kernels |= set(told.get("kernels", ()))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Append the run if it came to its end, with failures or without."""
        known = {"deselected": self._deselected, "kernels": sorted(self._kernels)}
        if self._worker is not None:
            self._worker["run"] = known
            return
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or reporter is None:
            return
        counts = {
            name: len(reporter.stats.get(name, ())) for name in ("passed", "failed", "error", "skipped")
        }
        device = device_record() or {}
        config = session.config
        given = config.args_source is pytest.Config.ArgsSource.ARGS
        ignored = [f"without {path}" for path in config.option.ignore or ()]
        append_run(
            self._path,
            seed=self._seed,
            chosen=[*(config.args if given else ()), *filter(None, [config.option.keyword]), *ignored],
            device=device.get("name"),
            **counts,
            **known,
            seconds=round(time.perf_counter() - self._begin, 1),
        )
