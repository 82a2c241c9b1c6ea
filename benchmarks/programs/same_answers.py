"""Answers to the last bit, on every way to them, beside those of another commit or of an earlier record.

Every property of the examples at small constants, and with --values the quick rows of a table of reference
values (see `agreement`), is answered by the cpu, the explicit engine, the reference, in rational numbers, and
in 2 and 3 parts; with --emulator also by the kernels on the tests' emulator of a device, which takes a C++
compiler.  An answer is its value and its bounds, and a digest of the values and bounds of all states, or of
what else there is, such as the points of a curve.
With --against COMMIT the same questions go to that commit's packages, in a worktree made for it, through the
library alone; a file is compared as far as it goes.  Exit status 1 if any answer differs.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.library.arguments import existing, parser
from benchmarks.library.models import EXAMPLES, ROOT
from benchmarks.library.processes import run_python, tree_of
from benchmarks.library.records import Records, Row

Answers = dict[str, dict[str, str]]
"""An answer's text by name of the property and by way."""

CONSTANTS = {
    "biased_die": "N=6,first=1", "brp": "N=16,MAX=2", "cluster": "N=2", "coin": "K=2", "disk": "Q=6",
    "fms": "n=1", "herman": "", "inventory": "M=12", "jobs": "N=2", "kanban": "t=1", "mutex": "M=1",
    "philosophers": "", "polling": "", "quick_sort": "limit=9", "relay": "H=8,M=3", "servers": "N=20",
    "tandem": "c=7", "tasks": "delay=0", "teams": "", "wakeup": "K=2",
}  # fmt: skip
"""Of every example; small, so that plain Python and rational numbers can answer."""

WAYS: dict[str, Row] = {
    "cpu": {"most": 50_000, "keywords": {"backend": "cpu"}},
    "explicit": {"most": 50_000, "keywords": {"engine": "explicit", "backend": "cpu"}},
    "reference": {"most": 400, "keywords": {"backend": "reference"}},
    "exact": {"most": 1_500, "keywords": {"exact": True}},
    "2 parts": {"most": 10_000, "keywords": {"backend": "cpu", "ranks": 2}},
    "3 parts": {"most": 10_000, "keywords": {"backend": "cpu", "ranks": 3}},
    "emulator": {"most": 2_500, "keywords": {"backend": "gpu"}},
}
"""Keywords of `hybrid.check_all`, and the most states that a model may have to go this way."""

ANSWER = """
import contextlib, hashlib, importlib, json, re, sys
from pathlib import Path
import hybrid

path, text, constants, wanted, ways = json.loads(sys.argv[1])

def bits(found):
    if isinstance(found, dict):
        return {key: bits(part) for key, part in found.items()}
    if isinstance(found, (list, tuple)):
        return [bits(part) for part in found]
    return found.hex() if isinstance(found, float) else found

def digest(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]

def text_of(answer):
    if answer.error is not None and answer.lower is None:
        return "no answer"
    record = answer.record()
    parts = [answer.value if answer.exact is None else record["exact"], answer.lower, answer.upper]
    more = {key: record[key] for key in ("range", "listing", "multi") if key in record}
    shown = " ".join(whole if len(whole) < 80 else digest(whole.encode()) for whole in map(str, bits(parts)))
    if more:
        shown += " " + digest(json.dumps(bits(more), sort_keys=True).encode())
    try:
        states = answer.values, answer.lower_values, answer.upper_values
    except hybrid.HybridError:
        return shown
    return shown + " " + digest(*(column.tobytes() for column in states))

@contextlib.contextmanager
def emulator():
    (place,) = Path("tests").rglob("host_device.py")
    device = importlib.import_module(".".join(place.with_suffix("").parts)).HostDevice()
    with importlib.import_module("gpu_kernels").use_device(device):
        yield

asked = Path(text).read_text()
open_ones = set(re.findall(r"const\\s+(?:\\w+\\s+)?(\\w+)\\s*;", asked))
own = {key: value for key, value in constants.items() if key in open_ones}
model = hybrid.load(path, constants={k: v for k, v in constants.items() if k not in own})
found = {}
for way, most, keywords in ways:
    if model.n_states > most:
        continue
    with emulator() if way == "emulator" else contextlib.nullcontext():
        try:
            answers = hybrid.check_all(model, Path(text), own, automaton_tool="own", **keywords)
        except hybrid.HybridError:
            found["all of them"] = {**found.get("all of them", {}), way: "no answer"}
            continue
        for place, answer in enumerate(answers):
            if not wanted or place in wanted:
                found.setdefault(answer.name or str(place), {})[way] = text_of(answer)
print(json.dumps({"states": model.n_states, "answers": found}))
"""


@dataclass(frozen=True)
class Case:
    """A model with its constants, and a file of properties; of these the ones at `places`, or all."""

    model: Path
    constants: str
    properties: Path
    places: tuple[int, ...] = ()

    @property
    def identity(self) -> Row:
        """What tells the case from others, whatever the folders."""
        return {"model": self.model.name, "constants": self.constants, "properties": self.properties.name}


def cases_of(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the examples, and what a table of values asks."""
    for name, constants in CONSTANTS.items():
        yield Case(EXAMPLES / f"{name}.prism", constants, EXAMPLES / f"{name}.props")
    if options.values is None:
        return
    if options.models is None:
        raise SystemExit("--values: expected --models, the folder of the models that the table names")
    asked: dict[tuple[str, str, str], list[int]] = {}
    with options.values.open() as lines:
        for row in csv.DictReader(lines):
            if row["quick"] == "1":
                asked.setdefault((row["model"], row["const"], row["property"]), []).append(int(row["index"]))
    for (model, constants, properties), places in asked.items():
        yield Case(options.models / model, constants, options.models / properties, tuple(places))


def answers_of(case: Case, ways: list[str], folder: Path) -> Row:
    """Return the states of a case and its answers by the packages of a folder, in a process of its own."""
    constants = {
        name.strip(): json.loads(value)
        for name, value in (part.split("=") for part in case.constants.split(",") if part)
    }
    chosen = [(way, WAYS[way]["most"], WAYS[way]["keywords"]) for way in ways]
    argument = [str(case.model.resolve()), str(case.properties.resolve()), constants, case.places, chosen]
    found: Row = run_python(ANSWER, argument, folder, HYBRID_NUM_THREADS="1", PYTHONHASHSEED="0")
    return found


def measure(row: Row, case: Case, ways: list[str], other: Path | Row | None) -> None:
    """Answer a case, and compare with the packages of another folder or with an earlier row."""
    row.update(answers_of(case, ways, ROOT))
    row["digest"] = digest(row["answers"])
    if other is None:
        return
    theirs: Answers = (answers_of(case, ways, other) if isinstance(other, Path) else other)["answers"]
    row["against_digest"] = digest(theirs)
    row.update(compared(row["answers"], theirs))


def digest(answers: Answers) -> str:
    """Return a digest of all answers of a case."""
    return hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:12]


def compared(this: Answers, other: Answers) -> Row:
    """Return how many answers are there, how many are equal, and of the others what the other side has.

    One that a side lacks is not equal.
    """
    keys = sorted({(name, way) for answers in (this, other) for name in answers for way in answers[name]})
    differing: Answers = {}
    for name, way in keys:
        theirs = other.get(name, {}).get(way, "not asked")
        if this.get(name, {}).get(way) != theirs:
            differing.setdefault(name, {})[way] = theirs
    wrong = sum(map(len, differing.values()))
    return {"compared": len(keys), "equal": len(keys) - wrong, "against": differing}


def run(options: argparse.Namespace) -> Records:
    """Answer all cases, and compare them."""
    ways = [way for way in WAYS if way != "emulator" or options.emulator]
    facts: Row = {"ways": ways}
    given = options.against
    with contextlib.ExitStack() as stack:
        tree: Path | None = None
        earlier: dict[str, Row] = {}
        if given is not None and Path(given).is_file():
            record = json.loads(Path(given).read_text())
            facts["against"] = record["environment"]["commit"]
            ways = facts["ways"] = [way for way in record["ways"] if way in ways]
            earlier = {str(case_key(row)): row for row in record["rows"] if "answers" in row}
        elif given is not None:
            facts["against"] = given
            tree = stack.enter_context(tree_of(given))
        records = Records("same_answers", options, **facts)
        for case in cases_of(options):
            if options.only and case.model.stem not in options.only:
                continue
            other = tree if not earlier else earlier.get(str(case_key(case.identity)))
            row = records.run(case.identity, measure, case, ways, other)
            for name, theirs in row.get("against", {}).items():
                for way, text in theirs.items():
                    print(f"  {name}, {way}: {row['answers'].get(name, {}).get(way)} here, {text} there")
    return records


def case_key(row: Row) -> tuple[str, str, str]:
    """Return what tells a row from others."""
    return row["model"], row["constants"], row["properties"]


def main() -> int:
    """Run and write the record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    arguments.add_argument("--against", metavar="COMMIT|FILE.json", help="what to compare with")
    arguments.add_argument("--emulator", action="store_true", help="on the tests' emulator of a device, too")
    arguments.add_argument("--models", type=existing, metavar="FOLDER", help="of the table's models")
    arguments.add_argument("--values", type=existing, metavar="FILE.csv", help="a table of reference values")
    records = run(arguments.parse_args())
    there = sum(sum(map(len, row["answers"].values())) for row in records.measured)
    print(f"{there} answers to {len(records.rows)} models and files of properties")
    broken = len(records.rows) - len(records.measured)
    counted = [row for row in records.measured if "compared" in row]
    equal, all_of_them = (sum(row[key] for row in counted) for key in ("equal", "compared"))
    if counted:
        missing = len(records.measured) - len(counted)
        also = f"; it has nothing of {missing} of the files of properties" if missing else ""
        print(
            f"{equal} of {all_of_them} are equal to the last bit to those of {records.facts['against']}{also}"
        )
    return 1 if broken or equal < all_of_them else 0


if __name__ == "__main__":
    sys.exit(main())
