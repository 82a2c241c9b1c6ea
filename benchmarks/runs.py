"""What long benchmarks share: example models by name and size, records written row by row, a time limit."""

from __future__ import annotations

import json
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

__all__ = ["EXAMPLES", "Records", "device_record", "example", "free_device_memory", "has_device"]

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


class Records:
    """A record that is written anew after every row, and the time that is left for more of them.

    Parameters
    ----------
    name : str
        Of the benchmark.
    path : Path, optional
        Where to write; nowhere if None.
    seconds : float, optional
        Time after which no row is begun.
    **facts
        Further entries of the record.
    """

    def __init__(self, name: str, path: Path | None, seconds: float | None = None, **facts: Any) -> None:
        self._path, self._end = path, None if seconds is None else time.monotonic() + seconds
        self.rows: list[dict[str, Any]] = []
        self._record: dict[str, Any] = {
            "benchmark": name, "environment": environment(), "device": device_record(), **facts,
            "rows": self.rows,
        }  # fmt: skip

    @property
    def seconds_left(self) -> float:
        """Seconds until no further row is begun."""
        return float("inf") if self._end is None else self._end - time.monotonic()

    def run(self, identity: dict[str, Any], measure: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Measure a row; whatever goes wrong becomes its error, and what was measured before stays.

        Parameters
        ----------
        identity : dict
            What the row is about; the row begins with it.
        measure : callable
            Adds to the row that it is given.
        """
        row = dict(identity)
        begin = time.perf_counter()
        if self.seconds_left <= 0:
            row["error"] = "not begun: the time was over"
        else:
            try:
                measure(row)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {error}"
                traceback.print_exc()
        row["row_seconds"] = time.perf_counter() - begin
        self.rows.append(row)
        self.write()
        free_device_memory()
        return row

    def write(self) -> None:
        """Write the record."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._record, indent=1) + "\n")


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


def free_device_memory() -> None:
    """Give unused memory back to the card, so that the next row finds all of it."""
    if has_device():
        import gc

        import cupy

        gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()
