"""Checks whose long arrays lie on a disk: the same bits, little memory, and what is refused."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.base.errors import DiskError, OptionError
from tests.faults.processes import run

pytest.importorskip("numba")

from hybrid.base import disk

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LEAST = 1024

REACHED, WINDOW, LONG = "P=? [ F w1=1&w3=0 ]", "P=? [ F<=1 w1=1 ]", 'R{"throughput"}=? [ S ]'
ESTIMATES = ("jacobi", "jor", "power", "gauss-seidel", "bicgstab")
QUESTIONS: list[tuple[str, dict[str, Any], str, tuple[str, ...]]] = [
    ("kanban", {"t": 1}, LONG, ("auto", "interval", "bicgstab", "jor", "power", "gauss-seidel")),
    ("kanban", {"t": 1}, WINDOW, ("auto",)),
    ("kanban", {"t": 1}, "S=? [ w1=1 ]", ("auto", "jor")),
    ("tandem", {"c": 15}, "R=? [ F sc=15 ]", ("auto", "interval", *ESTIMATES)),
    ("brp", {"N": 16, "MAX": 2}, "P=? [ F s=FAILED ]", ("auto", "optimistic", "interval", "jor", "power")),
    ("brp", {"N": 16, "MAX": 2}, "P>=0.5 [ F<=20 s=FAILED ]", ("auto",)),
    ("coin", {"K": 3}, 'Pmax=? [ F "decided" & !"all_heads" ]', ("auto", "interval", "jacobi")),
    ("coin", {"K": 3}, 'R{"steps"}min=? [ F "decided" ]', ("auto", "power")),
]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a small model are long enough for files."""
    monkeypatch.setattr(disk, "LEAST_BYTES", LEAST)


def bits(answer: hybrid.Answer) -> list[Any]:
    columns = answer.values, answer.lower_values, answer.upper_values
    told = answer.value, answer.lower, answer.upper, answer.error, answer.statistics.iterations
    return [*(column.tobytes() for column in columns), repr(told), answer.statistics.method]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("name", "constants", "text", "method"),
    [(*question, methods[k % len(methods)]) for k, (*question, methods) in enumerate(QUESTIONS)],
)
def test_answers_have_the_same_bits(
    tmp_path: Path, name: str, constants: dict[str, Any], text: str, method: str
) -> None:
    given: dict[str, Any] = {"method": method, "backend": "cpu", "values": True}
    found = []
    for more in ({}, {"spill": tmp_path}):
        model = hybrid.load(EXAMPLES / f"{name}.prism", constants=constants)
        found.append(hybrid.check(model, text, **given, **more))
    assert bits(found[0]) == bits(found[1])
    assert found[0].statistics.disk_bytes is None
    assert found[1].statistics.disk_bytes > 8 * model.n_states
    assert found[1].record()["disk_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import os, resource, sys
import hybrid

models = [hybrid.load("examples/kanban.prism", constants={"t": 5}) for _ in range(3)]

def check(**more):
    return hybrid.check(models.pop(), "P=? [ F<=0.1 w1=1 ]", backend="cpu", throw=False, **more)

expected = check().value
pages = int(open("/proc/self/statm").read().split()[5])
limit = pages * resource.getpagesize() + (40 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
print(check(spill=sys.argv[1]).value == expected)
try:
    print(check().value)
except MemoryError as error:
    print("out of memory:", error)
"""


def test_memory_that_vectors_do_not_fit_in_is_enough(tmp_path: Path) -> None:
    """2,546,432 states, 20 MB a vector, where 42 more megabytes of data are allowed."""
    done = run(str(tmp_path), code=LIMITED)
    assert done.returncode == 0, done.stderr
    answered, refused = done.stdout.splitlines()
    assert refused.startswith("out of memory: ") and answered == "True", done.stdout


@pytest.fixture
def walk() -> hybrid.SymbolicModel:
    return hybrid.load(EXAMPLES / "tandem.prism", constants={"c": 15})


@pytest.mark.usefixtures("few")
def test_a_full_disk_is_the_answers_error(
    tmp_path: Path, walk: hybrid.SymbolicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MOST_BYTES", 4 * LEAST)
    answer = hybrid.check(walk, "R=? [ F sc=15 ]", spill=tmp_path, throw=False)
    assert answer.value is None and answer.lower is None
    assert isinstance(answer.fault, DiskError) and "has no room for an array of" in str(answer.error)
    with pytest.raises(DiskError, match="No space left on device.*make room, or give spill another folder"):
        hybrid.check(walk, "R=? [ F sc=15 ]", spill=tmp_path)
    monkeypatch.undo()
    assert hybrid.check(walk, "R=? [ F sc=15 ]", spill=tmp_path).value is not None


@pytest.mark.usefixtures("few")
def test_there_is_no_answer_from_a_disk_that_lost_something(
    tmp_path: Path, walk: hybrid.SymbolicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = disk.note_lost

    def lost(state: Any, row: int) -> None:
        looked(state, row)
        state[disk.LOST] = errno.EIO

    monkeypatch.setattr(disk, "note_lost", lost)
    with pytest.raises(DiskError, match="the disk did not keep what was written there"):
        hybrid.check(walk, "R=? [ F sc=15 ]", spill=tmp_path, throw=False)


@pytest.mark.usefixtures("few")
def test_values_of_an_answer_are_not_told_once_the_disk_has_lost_some(
    tmp_path: Path, walk: hybrid.SymbolicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = hybrid.check(walk, "R=? [ F sc=15 ]", spill=tmp_path)
    assert answer.values.size == walk.n_states
    monkeypatch.setattr(disk, "note_lost", lambda state, row: state.__setitem__(disk.LOST, errno.EIO))
    with pytest.raises(DiskError):
        answer.values  # noqa: B018 - a property


def test_what_does_not_go_with_it_is_refused(tmp_path: Path, walk: hybrid.SymbolicModel) -> None:
    text = "R=? [ F sc=15 ]"
    refused: list[tuple[dict[str, Any], str]] = [
        ({"engine": "explicit"}, "leave engine out, or spill"),
        ({"backend": "reference"}, "leave backend out, or spill"),
        ({"exact": True}, "leave exact out, or spill"),
        ({"ranks": 2}, "spill: not offered with ranks or bisimulation"),
        ({"bisimulation": True}, "spill: not offered with ranks or bisimulation"),
    ]
    for given, why in refused:
        with pytest.raises(OptionError, match=why):
            hybrid.check(walk, text, spill=tmp_path, **given)
    with pytest.raises(OptionError, match="spill: no file can be made in .*: it is not there; give a folder"):
        hybrid.check(walk, text, spill=tmp_path / "none")
    assert hybrid.check(walk, text, spill=tmp_path, engine="auto").engine == "hybrid"
