"""`hybrid check --distributed`: processes that answer together, of which one speaks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpu_kernels import device_problem
from hybrid.__main__ import main
from tests.builders.processes import ROOT, launcher, needs_mpi, process_environment, run_processes

TWO = ("examples/kanban.prism", "--const", "t=2")
ONE = ("examples/kanban.prism", "--const", "t=1")
SMALL = (*ONE, "examples/kanban.props")
# The truth is decided, so that the bits are the same.
DECIDED = (*ONE, "P>0.5 [ true U<=1 w1=1 ]")
CONDITION = (*ONE, "P=? [ F w1=1 || F w2=1 ]", "--json")
CLIMB = "dtmc module m x:[0..9]; [] x<9 -> (x'=x+1); [] x=9 -> true; endmodule"

# Commands of one job, as starts take longer than answers; FOLDER is where they write.
COMMANDS: dict[str, tuple[str, ...]] = {
    "answers": (*SMALL, "--json"),
    "no device": (*SMALL, "--backend", "gpu"),
    "table": (
        "examples/coin.prism",
        "--const",
        "K=1",
        "examples/coin.props",
        "--prop",
        "1",
        "--csv",
        "FOLDER/a.csv",
    ),
    "values .csv": (*DECIDED, "--values", "FOLDER/two.csv"),
    "values .npz": (*DECIDED, "--values", "FOLDER/two.npz"),
    "values nowhere": (*SMALL, "--values", "FOLDER/nowhere/v.csv"),
    "table nowhere": (*SMALL, "--csv", "FOLDER/nowhere/v.csv"),
    "values to a device": (*SMALL, "--values", "FOLDER/device.npz"),
    "a state without a value": (
        "FOLDER/climb.prism",
        "filter(max, mod(5, x), x>0)",
        "--values",
        "FOLDER/climb.csv",
    ),
    "too large a file": (*TWO, "examples/kanban.props", "--values", "FOLDER/old/v.npz"),
    "no constant": (TWO[0], "examples/kanban.props"),
    "no state": (*ONE, 'filter(max, P=? [ X w1=1 ], w1>7); R{"throughput"}=? [ S ]'),
    "condition": CONDITION,
}
JOB = """
import contextlib, io, json, resource, signal, sys
from mpi4py import MPI
from hybrid.__main__ import main
own, found = MPI.COMM_WORLD.rank, {}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for name, words in json.loads(sys.argv[1]).items():
    MPI.COMM_WORLD.Barrier()
    most = 150_000 if own and name == "too large a file" else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(["check", *words, "--distributed"])
    found[name] = status, out.getvalue(), err.getvalue()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with open(f"{sys.argv[2]}/{own}.json", "w") as file:
    json.dump(found, file)
"""


class Job:
    """What the commands of a job of two processes returned and wrote, by name, and their folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "device.npz").symlink_to("/dev/full")
        (folder / "climb.prism").write_text(CLIMB, encoding="utf-8")
        (folder / "old").mkdir()
        (folder / "old/v.npz").write_text("older", encoding="utf-8")
        words = {name: [w.replace("FOLDER", str(folder)) for w in asked] for name, asked in COMMANDS.items()}
        done = run_processes(2, sys.executable, "-c", JOB, json.dumps(words), str(folder))
        assert done.returncode == 0, done.stderr
        self._found = [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]

    def of(self, name: str) -> tuple[int, str, str]:
        """Status, standard output and standard error of both processes."""
        (status, *first), (other, *second) = (found[name] for found in self._found)
        assert status == other
        return status, first[0] + second[0], first[1] + second[1]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return Job(tmp_path_factory.mktemp("job"))


def alone(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The record of a command of one process."""
    assert main(["check", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@needs_mpi
def test_two_processes_answer_as_one(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = job.of("answers")
    assert status == 0
    # Alone, NumPy solves few equations.
    one, two = alone(capsys, *COMMANDS["answers"], "--backend", "cpu"), json.loads(out)
    for first, second in zip(one["results"], two["results"], strict=True):
        assert second["error"] is None
        assert max(first["lower"], second["lower"]) <= min(first["upper"], second["upper"])
        # Vectors are those of a part.
        assert second["base_memory_bytes"] < 0.7 * first["base_memory_bytes"]


@needs_mpi
@pytest.mark.skipif(device_problem() is None, reason="there is a device")
def test_without_a_device_all_processes_end_with_one_message(job: Job) -> None:
    status, out, told = job.of("no device")
    assert status != 0 and not out
    assert told.count("backend: 'gpu' cannot run here") == 1


@needs_mpi
def test_two_processes_write_one_table(job: Job) -> None:
    status, out, told = job.of("table")
    assert status == 0, told
    assert out.count("result") == 1
    assert len((job.folder / "a.csv").read_text(encoding="utf-8").splitlines()) == 2


@needs_mpi
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_two_processes_write_one_file_of_values(job: Job, tmp_path: Path, suffix: str) -> None:
    one = tmp_path / f"one{suffix}"
    assert main(["check", *DECIDED, "--values", str(one), "--quiet"]) == 0
    status, _, told = job.of(f"values {suffix}")
    assert status == 0, told
    assert told.count("wrote") == 1
    assert (job.folder / f"two{suffix}").read_bytes() == one.read_bytes()
    assert [path.name for path in job.folder.glob(f"*two*{suffix}*")] == [f"two{suffix}"]


@needs_mpi
def test_a_file_of_values_that_cannot_be_written_ends_all(job: Job) -> None:
    for name, option in (("values nowhere", "--values"), ("table nowhere", "--csv")):
        status, _, told = job.of(name)
        assert status == 2
        assert told.count(f"{option}: cannot write") == 1 and "No such file" in told
    status, _, told = job.of("values to a device")
    assert status == 2 and "--values: expected a file" in told


@needs_mpi
def test_a_state_without_a_value_in_one_process_is_told_by_all(job: Job) -> None:
    status, out, told = job.of("a state without a value")
    assert status == 2
    assert told.count("expected a value in every state, got none in (x=0)") == 1
    assert "result       " in out and not (job.folder / "climb.csv").exists()


@needs_mpi
def test_a_write_that_fails_in_one_process_leaves_the_older_file(job: Job) -> None:
    status, out, told = job.of("too large a file")
    assert status == 2, told
    assert "File too large (process 1 of 2)" in told and "result" in out
    (left,) = (job.folder / "old").iterdir()
    assert left.read_text(encoding="utf-8") == "older"


@needs_mpi
def test_a_fault_of_all_is_told_once(job: Job) -> None:
    status, _, told = job.of("no constant")
    assert status == 2
    assert told.count("constant without a value: 't'") == 1


@needs_mpi
def test_a_property_without_an_answer_hides_no_other(job: Job) -> None:
    status, out, _ = job.of("no state")
    assert status == 1
    assert "not answered: no reachable state satisfies the filter's condition" in out
    assert "result       0.09258" in out


@needs_mpi
def test_a_condition_is_answered_as_by_one_process(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    (first,), (second,) = (
        record["results"] for record in (alone(capsys, *CONDITION), json.loads(job.of("condition")[1]))
    )
    assert second["lower"] <= first["value"] <= second["upper"]


@pytest.mark.parametrize("option", [("--timeout", "5"), ("--scheduler", "s.csv"), ("--witness",)])
def test_what_is_not_offered_is_refused(option: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *SMALL, "--distributed", *option]) == 2
    told = capfd.readouterr().err
    assert f"--distributed: {option[0]} is not offered with several processes" in told


@needs_mpi
def test_a_killed_process_ends_the_job() -> None:
    command = [str(launcher()), "-n", "2", sys.executable, "-m", "hybrid", "check", "examples/kanban.prism"]
    command += ["--const", "t=4", "P=? [ true U<=1e7 w1=1 & w2=1 & w3=1 & w4=1 ]", "--distributed"]
    with subprocess.Popen(
        command, cwd=ROOT, env=process_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as job:  # fmt: skip
        victim = _descendants(job.pid)
        os.kill(victim, signal.SIGKILL)
        output, errors = job.communicate(timeout=240)
    assert job.returncode != 0, output + errors
    assert "result" not in output


def _descendants(process: int) -> int:
    """Return a process of the check, once there are two of them."""
    for _ in range(2000):
        found, below = [process], []
        while found:
            parent = found.pop()
            for thread in Path(f"/proc/{parent}/task").glob("*/children"):
                found += map(int, thread.read_text(encoding="ascii").split())
            below.append(parent)
        own = [p for p in below if b"hybrid" in Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")]
        workers = [p for p in own if b"mpiexec" not in Path(f"/proc/{p}/cmdline").read_bytes()]
        if len(workers) >= 2:
            return max(workers)
        time.sleep(0.05)
    raise AssertionError("no processes were started")


def test_without_mpi4py_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert main(["check", *SMALL, "--distributed"]) == 2
    assert "pip install 'hybrid-model-checker[mpi]'" in capsys.readouterr().err
