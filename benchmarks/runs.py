"""What long benchmarks share: example models by name and size, records written row by row, a time limit."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "examples")]

import generate  # noqa: E402
import generate_sort  # noqa: E402
from record import environment  # noqa: E402

import hybrid  # noqa: E402

__all__ = [
    "EXAMPLES",
    "Records",
    "child_environment",
    "device_record",
    "example",
    "free_device_memory",
    "has_device",
]

EXAMPLES = ROOT / "examples"
CONSTANTS = {"tandem": "c", "kanban": "t", "fms": "n", "cluster": "N"}
WRITTEN = {
    "polling": generate.polling,
    "herman": generate.herman,
    "quick_sort": generate_sort.quick_sort,
}


def example(name: str, size: int, **constants: int) -> hybrid.SymbolicModel:
    """Build an example model of a size; some are written by a generator.

    Parameters
    ----------
    name : str
        Name of a file in examples/.
    size : int
        Its first constant, or what the generator takes.
    **constants
        The other constants.
    """
    if name in WRITTEN:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}{size}.prism"
            path.write_text(WRITTEN[name](size))
            return hybrid.load(path, constants)
    return hybrid.load(EXAMPLES / f"{name}.prism", {CONSTANTS.get(name, "N"): size, **constants})


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports the packages of this checkout, with more variables."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


class Records:
    """A record that is written anew whenever a row begins or ends, and the time left for more of them.

    Parameters
    ----------
    name : str
        Of the benchmark.
    path : Path, optional
        Where to write; nowhere if None.
    seconds : float, optional
        Time after which no row is begun.
    resume : bool
        Keep the finished rows that the file has from an earlier run, and do not measure them again.
    **facts
        Further entries of the record.

    Attributes
    ----------
    facts : dict
        All entries of the record but the rows.
    rows : list of dict

    Raises
    ------
    SystemExit
        If the earlier run was of another commit, card or processor, or of other facts: their times are not
        to be mixed.
    """

    def __init__(
        self,
        name: str,
        path: Path | None,
        seconds: float | None = None,
        *,
        resume: bool = False,
        **facts: Any,
    ) -> None:
        self._path, self._end = path, None if seconds is None else time.monotonic() + seconds
        self.rows: list[dict[str, Any]] = []
        self._earlier: list[dict[str, Any]] = []
        self.facts = {
            "benchmark": name, "environment": environment(), "device": device_record(), **facts,
        }  # fmt: skip
        if resume and path is not None and path.exists():
            self._keep(json.loads(path.read_text()))

    def _keep(self, earlier: dict[str, Any]) -> None:
        """Take over the finished rows of an earlier run."""
        own = json.loads(_as_json(self.facts))
        for record in (own, earlier):
            record["environment"] = {**record["environment"], "date": None}
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

    def run(self, identity: dict[str, Any], measure: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Measure a row; whatever goes wrong becomes its error, and what was measured before stays.

        Parameters
        ----------
        identity : dict
            What the row is about, unlike any other's; the row begins with it.
        measure : callable
            Adds to the row that it is given.
        """
        kept = self._kept(identity)
        if kept is not None:
            return kept
        row: dict[str, Any] = {**identity, "error": "stopped before its end"}
        self.rows.append(row)
        begin = time.perf_counter()
        if self.seconds_left <= 0:
            row["error"] = "not begun: the time was over"
        else:
            self.write()
            try:
                measure(row)
                del row["error"]
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        row["row_seconds"] = time.perf_counter() - begin
        self.write()
        free_device_memory()
        return row

    def _kept(self, identity: dict[str, Any]) -> dict[str, Any] | None:
        """Return the row that an earlier run finished, if there is one of the same identity."""
        plain = json.loads(_as_json(identity))
        return next((row for row in self._earlier if plain.items() <= row.items()), None)

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


def has_device() -> bool:
    """Return whether kernels can run on a card here."""
    from gpu_kernels import is_available

    return is_available()


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


def free_device_memory(collect: bool = True) -> None:
    """Give unused memory back to the card, so that what comes next finds all of it.

    Parameters
    ----------
    collect : bool
        Look for arrays in cycles of references, too, which takes some tenths of a second.
    """
    if has_device():
        import cupy

        if collect:
            gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()
