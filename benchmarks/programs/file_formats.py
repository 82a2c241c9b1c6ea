"""Files of other tools' formats: seconds to write and to read, bytes, memory, and what comes back.

For every model and format, in a process of its own each: writing the model, after one to the other formats in
the process has warmed nothing but imports; then reading it. What comes back is compared in nodes of the
diagram and in bytes of the compressed matrix at `min-time`. Beside them stands the build from the text in the
same turn, so that a row is a ratio whatever the machine.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import EXAMPLES
from benchmarks.library.processes import run_python
from benchmarks.library.records import Records, Row

DEFAULT = ("kanban:t=4", "coin:K=200")
FORMATS = (".umb", ".tra", ".pexp", ".drn", ".dd")

_HEAD = """
import json, resource, sys, time
import hybrid
from pathlib import Path
from mtbdd.language import parse_constants
given = json.loads(sys.argv[1])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def sizes(model):
    layers = [model.layer_transitions(i) for i in range(len(model.layers))]
    return {
        "states": model.n_states, "transitions": model.n_transitions, "layers": len(layers),
        "mtbdd_nodes": model.statistics.mtbdd_nodes, "terminals": model.statistics.terminals,
        "matrix_bytes": sum(hybrid.inject(m, "min-time", "cpu").nbytes for m in layers),
    }
"""

_WRITE = """
model = hybrid.load(given["text"], parse_constants(given["constants"]))
hybrid.export(model, given["warm"])
before, started = peak(), time.perf_counter()
hybrid.export(model, *given["files"])
seconds = time.perf_counter() - started
print(json.dumps({
    "seconds": seconds, "bytes": sum(Path(f).stat().st_size for f in given["files"]),
    "memory": peak() - before, "build_seconds": model.build_seconds, **sizes(model),
}))
"""

_READ = """
before, started = peak(), time.perf_counter()
model = hybrid.load(given["file"])
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "memory": peak() - before, **sizes(model)}))
"""


def measure(row: Row, name: str, constants: str, suffix: str) -> None:
    """Measure one model in one format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        files = [path]
        if suffix == ".tra":
            files += [path.with_suffix(end) for end in (".sta", ".lab")]
        given: dict[str, Any] = {
            "text": str(EXAMPLES / f"{name}.prism"),
            "constants": constants,
            "warm": str(path.with_name("small.dd")),
            "files": [str(file) for file in files],
        }
        written = run_python(_HEAD + _WRITE, given)
        read = run_python(_HEAD + _READ, {"file": str(path)})
    explicit = 8 * (2 * written["transitions"] + written["states"] + 1)
    row.update(
        states=written["states"],
        transitions=written["transitions"],
        bytes=written["bytes"],
        explicit_bytes=explicit,
        write_seconds=written["seconds"],
        read_seconds=read["seconds"],
        build_seconds=written["build_seconds"],
        write_memory=written["memory"],
        read_memory=read["memory"],
        nodes={"text": written["mtbdd_nodes"], "file": read["mtbdd_nodes"]},
        terminals={"text": written["terminals"], "file": read["terminals"]},
        matrix_bytes={"text": written["matrix_bytes"], "file": read["matrix_bytes"]},
    )
    if (read["states"], read["transitions"]) != (written["states"], written["transitions"]):
        raise ArithmeticError(f"another model came back: {json.dumps(read)}")


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "resume")
    arguments.add_argument("models", nargs="*", metavar="MODEL:CONSTANTS")
    arguments.add_argument("--formats", nargs="+", default=list(FORMATS), metavar="SUFFIX")
    options = arguments.parse_args()
    records = Records("file_formats", options)
    for spec in options.models or DEFAULT:
        name, _, constants = spec.partition(":")
        for suffix in options.formats:
            records.run({"model": spec, "format": suffix}, measure, name, constants, suffix)
    records.show()


if __name__ == "__main__":
    main()
