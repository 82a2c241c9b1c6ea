"""`hybrid check` as a whole process: wall time from start to exit, memory, iterations, and the answer.

By default the throughput of kanban with t = 10 (a billion states) on the GPU by JOR. The process is the
command line's own; a few lines around it write down how often the host waited for the device, which the
command does not print. The device's memory is watched from outside, every twentieth of a second; the greatest
use beyond that before the start counts. Python starts and the first kernels are loaded within the time; with
--repeat the runs are listed one by one, the first possibly with kernels to compile.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.device import has_device, require_device
from benchmarks.library.models import EXAMPLES, ROOT
from benchmarks.library.processes import child_environment, compile_bytecode, kernel_files, run_whole
from benchmarks.library.records import Records

EVERY = 0.05
"""Seconds between two looks at the device's memory."""


class DeviceWatch:
    """The greatest use of the device's memory while a block runs, beyond that at its beginning.

    Attributes
    ----------
    peak_bytes : int or None
        None without a device.
    """

    def __init__(self) -> None:
        self.peak_bytes: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> DeviceWatch:
        """Begin to watch."""
        if has_device():
            self._before = self._used()
            self.peak_bytes = 0
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            self.peak_bytes = max(self.peak_bytes or 0, self._used() - self._before)

    @staticmethod
    def _used() -> int:
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        return int(total - free)


def measure(row: dict[str, Any], arguments: list[str]) -> None:
    """Run the command once and fill a row.

    Raises
    ------
    RuntimeError
        If the command fails or its property is not answered.
    """
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        before = kernel_files(child_environment())["device"]
        counted_command = [sys.executable, "-m", "benchmarks.library.counted_command", str(counts)]
        with DeviceWatch() as watch:
            run = run_whole([*counted_command, *arguments])
        if run.status != 0:
            text = (run.printed + run.errors)[-500:]
            raise RuntimeError(f"{row['command']} ended with {run.status}: {text}")
        model, (result,) = json.loads(run.printed).values()
        (counted,) = json.loads(counts.read_text())
    row.update(
        wall_seconds=run.wall_seconds,
        compiled_kernels=kernel_files(child_environment())["device"] - before,
        peak_rss_bytes=run.peak_rss_bytes,
        cpu_seconds=run.cpu_seconds,
        peak_device_bytes=watch.peak_bytes,
        states=model["states"],
        transitions=model["transitions"],
        model_build_seconds=model["build_seconds"],
        check_seconds=result["seconds"],
    )
    names = ("value", "lower", "upper", "backend", "method", "level", "iterations", "seconds_per_iteration")
    row.update({name: result[name] for name in (*names, "base_memory_bytes", "representation_memory_bytes")})
    row.update(counted)


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__)
    arguments.add_argument("--example", default="kanban", metavar="NAME", help="model in examples/")
    arguments.add_argument("--const", default="t=10", metavar="C=V,...", help="its constants")
    arguments.add_argument("--property", default="throughput", metavar="NAME", help="in its properties file")
    arguments.add_argument("--method", default="jor")
    arguments.add_argument("--epsilon", type=float, default=1e-6)
    arguments.add_argument("--backend", default="gpu", choices=("gpu", "cpu"))
    arguments.add_argument("--repeat", type=int, default=1, metavar="N", help="runs, one after the other")
    options = arguments.parse_args()
    if options.backend == "gpu":
        require_device("use --backend cpu and smaller constants to try the program")
    files = [str((EXAMPLES / f"{options.example}.{end}").relative_to(ROOT)) for end in ("prism", "props")]
    command = ["check", *files, "--const", options.const, "--property", options.property]
    command += ["--method", options.method, "--epsilon", f"{options.epsilon:g}"]
    command += ["--backend", options.backend, "--json"]
    compile_bytecode()
    records = Records("whole_run", options, epsilon=options.epsilon)
    for number in range(1, options.repeat + 1):
        name = f"{options.example} {options.const}" + (f", run {number}" if options.repeat > 1 else "")
        identity = {"name": name, "run": number, "command": " ".join(["hybrid", *command])}
        records.run(identity, measure, command)
    records.show()


if __name__ == "__main__":
    main()
