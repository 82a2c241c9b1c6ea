"""`hybrid check --distributed`: processes that answer together, of which one speaks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_kernels import device_problem
from tests.builders.processes import ROOT, launcher, needs_mpi, run_processes

COIN = ("examples/coin.prism", "--const", "K=1", "examples/coin.props")
KANBAN = ("examples/kanban.prism", "--const", "t=2", "examples/kanban.props")
SMALL = ("examples/kanban.prism", "--const", "t=1", "examples/kanban.props")


def check(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_processes(size, sys.executable, "-m", "hybrid", "check", *arguments)


def alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hybrid", "check", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


@needs_mpi
def test_two_processes_answer_as_one() -> None:
    one, two = (json.loads(found.stdout) for found in (alone(*SMALL, "--json"), _together(2)))
    for first, second in zip(one["results"], two["results"], strict=True):
        assert second["error"] is None
        assert max(first["lower"], second["lower"]) <= min(first["upper"], second["upper"])
        # Vectors are those of a part.
        assert second["base_memory_bytes"] < 0.7 * first["base_memory_bytes"]


def _together(size: int) -> subprocess.CompletedProcess[str]:
    found = check(size, *SMALL, "--json", "--distributed")
    assert found.returncode == 0, found.stderr
    return found


@needs_mpi
@pytest.mark.skipif(device_problem() is None, reason="there is a device")
def test_without_a_device_all_processes_end_with_one_message() -> None:
    found = check(2, *SMALL, "--distributed", "--backend", "gpu")
    assert found.returncode != 0 and not found.stdout
    assert found.stderr.count("backend: 'gpu' cannot run here") == 1


@needs_mpi
def test_three_processes_write_one_table(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    found = check(3, *COIN, "--prop", "1", "--distributed", "--csv", str(table))
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("result") == 1
    assert len(table.read_text(encoding="utf-8").splitlines()) == 2


@needs_mpi
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_two_processes_write_one_file_of_values(tmp_path: Path, suffix: str) -> None:
    one, two = (str(tmp_path / f"{name}{suffix}") for name in ("one", "two"))
    # The truth is decided, so that the bits are the same.
    asked = (*SMALL[:3], "P>0.5 [ true U<=1 w1=1 ]")
    assert alone(*asked, "--values", one).returncode == 0
    found = check(2, *asked, "--values", two, "--distributed")
    assert found.returncode == 0, found.stderr
    assert found.stderr.count("wrote") == 1
    assert Path(two).read_bytes() == Path(one).read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


@needs_mpi
def test_a_file_of_values_that_cannot_be_written_ends_all(tmp_path: Path) -> None:
    for option in ("--values", "--csv"):
        found = check(2, *SMALL, option, str(tmp_path / "nowhere" / "v.csv"), "--distributed")
        assert found.returncode == 2
        assert found.stderr.count(f"{option}: cannot write") == 1 and "No such file" in found.stderr
    (tmp_path / "device.npz").symlink_to("/dev/full")
    found = check(2, *SMALL, "--values", str(tmp_path / "device.npz"), "--distributed")
    assert found.returncode == 2 and "--values: expected a file" in found.stderr


@needs_mpi
def test_a_state_without_a_value_in_one_process_is_told_by_all(tmp_path: Path) -> None:
    model, file = tmp_path / "climb.prism", tmp_path / "v.csv"
    model.write_text(
        "dtmc module m x:[0..9]; [] x<9 -> (x'=x+1); [] x=9 -> true; endmodule", encoding="utf-8"
    )
    asked = (str(model), "filter(max, mod(5, x), x>0)", "--values", str(file), "--distributed")
    found = check(2, *asked)
    assert found.returncode == 2, found.stderr
    assert found.stderr.count("expected a value in every state, got none in (x=0)") == 1
    assert "result       " in found.stdout and not file.exists()


@needs_mpi
def test_a_write_that_fails_in_one_process_leaves_the_older_file(tmp_path: Path) -> None:
    file = tmp_path / "v.npz"
    file.write_text("older", encoding="utf-8")
    code = (
        "import os, resource, signal, sys\n"
        "from mpi4py import MPI\n"
        "from hybrid.__main__ import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    asked = (*KANBAN, "--values", str(file), "--distributed")
    found = run_processes(2, sys.executable, "-c", code, "check", *asked)
    assert found.returncode == 2, found.stderr
    assert "File too large (process 1 of 2)" in found.stderr and "result" in found.stdout
    assert file.read_text(encoding="utf-8") == "older" and len(list(tmp_path.iterdir())) == 1


@needs_mpi
def test_a_fault_of_all_is_told_once() -> None:
    found = check(2, *KANBAN[:1], *KANBAN[3:], "--distributed")
    assert found.returncode == 2
    assert found.stderr.count("constant without a value: 't'") == 1


@needs_mpi
@pytest.mark.parametrize("option", [("--timeout", "5"), ("--scheduler", "s.csv"), ("--witness",)])
def test_what_is_not_offered_is_refused(option: tuple[str, ...]) -> None:
    found = check(1, *SMALL, "--distributed", *option)
    assert found.returncode == 2
    assert f"--distributed: {option[0]} is not offered with several processes" in found.stderr


@needs_mpi
def test_a_property_without_an_answer_hides_no_other() -> None:
    asked = 'filter(max, P=? [ X w1=1 ], w1>7); R{"throughput"}=? [ S ]'
    found = check(2, *SMALL[:3], asked, "--distributed")
    assert found.returncode == 1
    assert "not answered: no reachable state satisfies the filter's condition" in found.stdout
    assert "result       0.09258" in found.stdout


@needs_mpi
def test_a_condition_is_answered_as_by_one_process() -> None:
    asked = "P=? [ F w1=1 || F w2=1 ]", "--json"
    one, two = alone(*SMALL[:3], *asked), check(2, *SMALL[:3], *asked, "--distributed")
    first, second = (json.loads(found.stdout)["results"][0] for found in (one, two))
    assert second["lower"] <= first["value"] <= second["upper"]


@needs_mpi
def test_a_killed_process_ends_the_job() -> None:
    command = [str(launcher()), "-n", "2", sys.executable, "-m", "hybrid", "check", "examples/kanban.prism"]
    command += ["--const", "t=4", "P=? [ true U<=1e7 w1=1 & w2=1 & w3=1 & w4=1 ]", "--distributed"]
    environment = dict(os.environ, HYBRID_NUM_THREADS="1", PYTHONPATH=str(ROOT))
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as job:  # fmt: skip
        victim = _descendants(job.pid)
        os.kill(victim, signal.SIGKILL)
        output, errors = job.communicate(timeout=60)
    assert job.returncode != 0, output + errors
    assert "result" not in output


def _descendants(process: int) -> int:
    """Return a process of the check, once there are two of them."""
    for _ in range(200):
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


def test_without_mpi4py_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "from hybrid.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, "check", *SMALL, "--distributed"],
        cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert "pip install 'hybrid-model-checker[mpi]'" in found.stderr
