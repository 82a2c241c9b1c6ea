"""Records: where a run was made, and its rows, written whole after every one of them."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.library.device import free_device_memory, has_device
from benchmarks.rendering.render import SECTIONS

__all__ = ["Records", "Row", "device_record", "environment"]

Row = dict[str, Any]

PACKAGES = ("dd", "numba", "numpy", "scipy")


class Records:
    """A record that is written anew whenever a row begins or ends, and the time left for more of them.

    Parameters
    ----------
    name : str
        Of the benchmark.
    options : argparse.Namespace
        ``out``: where to write, nowhere if None; ``seconds``, if there is one: no row is begun after so
        many; ``resume``, if there is one: keep the finished rows that the file has from an earlier run.
    **facts
        Further entries of the record.

    Attributes
    ----------
    facts : dict
        All entries of the record but the rows: ``benchmark``, ``environment``, ``device`` and others.
    rows : list of dict

    Raises
    ------
    SystemExit
        If the earlier run was of another commit, card or processor, or of other facts: their times are not
        to be mixed.
    """

    def __init__(self, name: str, options: argparse.Namespace, **facts: Any) -> None:
        seconds = getattr(options, "seconds", None)
        self._path: Path | None = options.out
        self._end = None if seconds is None else time.monotonic() + seconds
        self.rows: list[Row] = []
        self._earlier: list[Row] = []
        where = {"environment": environment(), "device": device_record()}
        self.facts: Row = {"benchmark": name, **where, **facts}
        if getattr(options, "resume", False) and self._path is not None and self._path.exists():
            self._keep(json.loads(self._path.read_text()))

    def _keep(self, earlier: Row) -> None:
        """Take over the finished rows of an earlier run."""
        own = json.loads(_as_json(self.facts))
        for record in (own, earlier):
            record["environment"].pop("date")
        differing = [key for key in own if own[key] != earlier.get(key)]
        if differing:
            raise SystemExit(
                f"{self._path} was measured with another {', '.join(differing)}; write to another file"
            )
        self._earlier = [row for row in earlier["rows"] if "error" not in row]
        self.rows += self._earlier

    @property
    def seconds_left(self) -> float:
        """Seconds until no further row is begun."""
        return float("inf") if self._end is None else self._end - time.monotonic()

    @property
    def measured(self) -> list[Row]:
        """The rows without an error."""
        return [row for row in self.rows if "error" not in row]

    def run(self, identity: Row, measure: Callable[..., None], *arguments: Any) -> Row:
        """Measure a row; whatever goes wrong becomes its error, and what was measured before stays.

        Parameters
        ----------
        identity : dict
            What the row is about, unlike any other's; the row begins with it.
        measure : callable
            Gets the row, and adds to it.
        *arguments
            What else it gets.
        """
        plain = json.loads(_as_json(identity))
        for kept in self._earlier:
            if plain.items() <= kept.items():
                return kept
        row: Row = {**identity, "error": "stopped before its end"}
        self.rows.append(row)
        begin = time.perf_counter()
        if self.seconds_left <= 0:
            row["error"] = "not begun: the time was over"
        else:
            self.write()
            try:
                measure(row, *arguments)
                del row["error"]
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        row["row_seconds"] = time.perf_counter() - begin
        self.write()
        name = " ".join(str(part) for part in identity.values() if part not in (None, ""))
        print(f"{name}: {row.get('error') or format(row['row_seconds'], '.1f') + ' s'}", flush=True)
        free_device_memory()
        return row

    def show(self) -> None:
        """Print what was measured, as it stands in the page of results."""
        if self.measured:
            print(SECTIONS[self.facts["benchmark"]](json.loads(_as_json({**self.facts, "rows": self.rows}))))

    def write(self) -> None:
        """Write the record; the file is whole at every moment."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self._path.with_name(self._path.name + ".part")
            unfinished.write_text(_as_json({**self.facts, "rows": self.rows}) + "\n")
            unfinished.replace(self._path)


def _as_json(record: Any) -> str:
    """Return a record as text; numbers of NumPy and CuPy are numbers."""
    return json.dumps(record, indent=1, default=lambda value: value.item())


# ------------------------------------------------------------------ where


def environment() -> dict[str, Any]:
    """Return commit, versions and processor of this run."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": versions,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def device_record() -> dict[str, Any] | None:
    """Return what identifies the card and its software; None without one."""
    if not has_device():
        return None
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "name": properties["name"].decode(),
        "multiprocessors": properties["multiProcessorCount"],
        "l2_bytes": properties["l2CacheSize"],
        "memory_bytes": properties["totalGlobalMem"],
        "cupy": cupy.__version__,
        "cuda_runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "cuda_driver": cupy.cuda.runtime.driverGetVersion(),
    }


def _commit() -> str | None:
    """Return the commit that is measured, marked when the tree has changes other than in records and pages.

    The environment variable BENCHMARK_COMMIT names it where the sources lie without their repository, or in
    an older one.
    """
    if os.environ.get("BENCHMARK_COMMIT"):
        return os.environ["BENCHMARK_COMMIT"]

    def git(*arguments: str) -> str:
        folder = Path(__file__).parent
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        measured = (":/", ":(top,exclude)benchmarks/results", ":(top,exclude)docs", ":(top,exclude)*.md")
        changes = git("status", "--porcelain", "--untracked-files=no", "--", *measured)
        return commit + ("+changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    """Return the processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
