"""The end of the command line's process: at once, but nothing that was to be done is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.processes import ROOT, run_python

_BEFORE = """
import atexit, os, sys, threading, time
from hybrid.app.cli.signals import end
atexit.register(os.write, 2, b"registered ")
print("answer")
"""
_AFTER = """
status = end(3)
os.write(2, b"returned ")
sys.exit(status)
"""


def ended(code: str, *options: str, out: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run code, and then end the process with status 3."""
    program = [sys.executable, *options, "-c", _BEFORE + code + _AFTER]
    with open(out or os.devnull, "w") as file:
        stream = file if out else subprocess.PIPE
        return subprocess.run(
            program,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )


def test_output_is_written_and_what_was_registered_is_called() -> None:
    done = ended("")
    assert (done.returncode, done.stdout, done.stderr) == (3, "answer\n", "registered ")


@pytest.mark.parametrize(
    "code",
    [
        "sys.setprofile(lambda *_: None)",
        "sys.settrace(lambda *_: None)",
        "sys.modules['mpi4py'] = sys",
        "threading.Thread(target=time.sleep, args=(0.2,)).start()",
        "os.environ['CUDA_INJECTION64_PATH'] = 'a profiler'",
        "del atexit._run_exitfuncs",
    ],
    ids=["profiler", "debugger", "MPI", "thread", "injected", "another interpreter"],
)
def test_the_interpreter_ends_it_where_others_have_to_hear_of_it(code: str) -> None:
    done = ended(code)
    assert (done.returncode, done.stdout, done.stderr) == (3, "answer\n", "returned registered ")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has monitoring from 3.12 on")
def test_the_interpreter_ends_it_where_it_is_monitored() -> None:
    done = ended("sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, 'test')")
    assert done.stderr == "returned registered "


def test_a_thread_that_nobody_waits_for_changes_nothing() -> None:
    done = ended("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
    assert (done.returncode, done.stdout, done.stderr) == (3, "answer\n", "registered ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no file that is always full")
def test_output_that_cannot_be_written_is_told_by_the_interpreter() -> None:
    done = ended("", out="/dev/full")
    assert done.returncode == 120
    assert done.stderr.startswith("registered returned ")
    assert "No space left" in done.stderr


def test_what_libraries_have_written_is_not_lost() -> None:
    done = ended("import ctypes; ctypes.CDLL(None).printf(b'by a library')")
    assert (done.returncode, done.stderr) == (3, "registered ")
    assert "by a library" in done.stdout


def test_a_user_who_stays_at_the_prompt_does_so() -> None:
    assert "returned " in ended("", "-i").stderr


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with an object that tells when it is taken apart."""
    (folder / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Held:\n"
        "    def __del__(self, write=os.write):\n"
        "        write(2, b'taken apart')\n"
        "sys.held = Held()\n"
    )
    done = run_python(*arguments, env={"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "begin",
    [["-m", "hybrid"], ["-c", "import sys; from hybrid_model_checker import command; sys.exit(command())"]],
    ids=["module", "console script"],
)
def test_both_ways_to_the_command_line_end_so(begin: list[str], tmp_path: Path) -> None:
    done = _run([*begin, "--version"], tmp_path)
    assert done.stdout.startswith("hybrid")
    assert done.stderr == ""


@pytest.mark.parametrize(
    "call",
    [
        "import hybrid_model_checker; hybrid_model_checker.main()",
        "import hybrid.__main__; hybrid.__main__.main()",
        "import runpy\ntry: runpy.run_module('hybrid', run_name='__main__')\nexcept SystemExit: pass",
        "import runpy\ntry: runpy.run_module('hybrid', run_name='__main__', alter_sys=False)\n"
        "except SystemExit: pass",
    ],
    ids=["console script", "module", "runpy", "runpy, own modules"],
)
def test_a_program_that_calls_the_command_line_goes_on(call: str, tmp_path: Path) -> None:
    code = f"import sys\nsys.argv = ['hybrid', '--version']\n{call}\nprint('goes on')"
    done = _run(["-c", code], tmp_path)
    assert done.stdout.endswith("goes on\n")
    assert done.stderr == "taken apart"
