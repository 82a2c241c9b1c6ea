"""Vectors on a disk (`--spill`): whole processes beside those with vectors in memory, and what each holds.

Every row is `hybrid check --json` of one model.  With --spill the data of the process are limited
(RLIMIT_DATA: what it allocates, pages of files not counted), without they are not; once more without, under
the same limit, shows what is refused.  Pages of files stay in the machine's memory as far as it has room: the
row tells how much there was, and how many bytes came from the disk.  Larger models have no form in memory;
the largest is left after four steps, without an answer.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import existing, parser
from benchmarks.library.models import ROOT
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records

_KANBAN = ("examples/kanban.prism", "--const")
_WINDOW = ("P=? [ F<=1 w1=1 ]", "--build-full")  # few states would settle the question
_STEPS = ('R{"throughput"}=? [ S ]', "--method", "jor", "--max-iters", "4")

MODELS: dict[str, tuple[tuple[str, ...], bool]] = {
    "kanban t=7": ((*_KANBAN, "t=7", *_WINDOW), True),
    "kanban t=9": ((*_KANBAN, "t=9", *_WINDOW), False),
    "kanban t=10": ((*_KANBAN, "t=10", *_STEPS), False),
}
"""Arguments of the check by name, and whether its vectors are tried in memory."""

_SMALL = {"kanban t=3": ((*_KANBAN, "t=3", *_WINDOW), True)}

_SPENT = "iteration limit"  # what the error of a check says that was to end after some steps

_LOOK = 0.02  # seconds between two looks at a process
_STATUS = {"data_bytes": "VmData", "anonymous_bytes": "RssAnon", "file_bytes": "RssFile"}
_TRAFFIC = {"disk_read_bytes": "read_bytes"}


def looked_at(process: int) -> dict[str, int]:
    """Return what a process holds now, and what it has had from the disk; nothing of one that has ended."""
    folder, found = Path(f"/proc/{process}"), {}
    for name, keys, scale in (("status", _STATUS, 1024), ("io", _TRAFFIC, 1)):
        try:
            text = (folder / name).read_text()
        except OSError:
            continue
        for key, word in keys.items():
            match = re.search(rf"^{word}:\s+(\d+)", text, re.MULTILINE)
            if match is not None:
                found[key] = scale * int(match[1])
    return found


def checked(command: tuple[str, ...], folder: Path | None, limit: int | None) -> dict[str, Any]:
    """Run a check once; return what it took, the greatest of what it held, and its answer or its error."""
    check = [sys.executable, "-m", "hybrid", "check", *command, "--backend", "cpu", "--json"]
    if folder is not None:
        check += ["--spill", str(folder)]
    begin, found = time.perf_counter(), dict.fromkeys((*_STATUS, *_TRAFFIC), 0)

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    process = subprocess.Popen(
        check, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=limited,
    )  # fmt: skip
    # What is printed fits into the pipes.
    while process.poll() is None:
        for key, number in looked_at(process.pid).items():
            found[key] = max(found[key], number)
        time.sleep(_LOOK)
    out, err = process.communicate()
    wall = time.perf_counter() - begin
    if not out:
        raise RuntimeError(f"{' '.join(check)} ended with {process.returncode}: {err[-500:]}")
    record = json.loads(out)
    answer = record["results"][0]
    told = {key: answer[key] for key in ("value", "lower", "upper", "error", "iterations")}
    told |= {"states": record["model"]["states"], "vector_bytes": answer["base_memory_bytes"]}
    if "disk_bytes" in answer:
        told["disk_bytes"] = answer["disk_bytes"]
    return {**told, **found, "iteration_seconds": answer["seconds_per_iteration"], "wall_seconds": wall}


def measure(row: dict[str, Any], command: tuple[str, ...], in_memory: bool, folder: Path, limit: int) -> None:
    """Run a check in its forms, and fill a row.

    Raises
    ------
    RuntimeError
        One of them has no answer, or they differ.
    """
    row["available_bytes"], row["load"] = _available(), os.getloadavg()[0]
    refused = checked(command, None, limit)
    row["limited_error"] = refused["error"]
    forms = {"disk": checked(command, folder, limit)}
    if in_memory:
        forms["memory"] = checked(command, None, None)
    answers = {(form["value"], form["lower"], form["upper"]) for form in forms.values()}
    ends = _SPENT if "--max-iters" in command else None
    if len(answers) != 1 or not all(_is_end(form["error"], ends) for form in forms.values()):
        raise RuntimeError(f"the answers differ, or there is none: {forms}")
    row["question"], row["states"] = " ".join(command[len(_KANBAN) + 1 :]), forms["disk"]["states"]
    for name, form in forms.items():
        row[name] = {key: number for key, number in form.items() if key not in ("error", "states")}


def _is_end(error: str | None, expected: str | None) -> bool:
    """Whether a check ended as it was to end."""
    return error is None if expected is None else error is not None and expected in error


def _available() -> int:
    """Return the memory that the machine has for new work, cached files included."""
    match = re.search(r"^MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return 0 if match is None else 1024 * int(match[1])


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "quick", "only", "resume", "seconds")
    arguments.add_argument("--folder", type=existing, default=Path("."), metavar="DIR", help="on a disk")
    arguments.add_argument(
        "--data", type=int, default=1 << 29, metavar="BYTES", help="limit of the data of a process"
    )
    options = arguments.parse_args()
    models = _SMALL if options.quick else MODELS
    folder = options.folder.resolve()
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    records = Records("spill", options, memory_bytes=total, data_limit_bytes=options.data)
    for name in options.only or models:
        command, in_memory = models[name]
        records.run({"model": name}, measure, command, in_memory, folder, options.data)
    records.show()


if __name__ == "__main__":
    main()
