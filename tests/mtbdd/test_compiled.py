"""Compiled functions kept between processes: what their files are named by, and what bad ones lead to."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("numba")

import numba

from mtbdd.base import compiled
from mtbdd.base.budget import seconds_compiling
from mtbdd.base.compiled import njit
from mtbdd.base.kernel_store import store_of

CALLEE = """
from mtbdd.base.compiled import njit
NUMBER = {number}
@njit(nogil=True)
def callee(x):
    return x + {step}
"""

CALLER = """
from mtbdd.base.compiled import njit
from callee import NUMBER, callee
@njit(nogil=True)
def caller(x):
    return callee(x) * NUMBER
"""


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep functions in a folder of the test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "kept"


def files(kept: Path) -> list[Path]:
    return sorted(kept.rglob("*.nbc"))


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> dict[str, ModuleType]:
    """Write modules and import them as a new process would."""
    compiled._file_digest.cache_clear()
    found = {}
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        # The text is compiled here: a file of byte code would hide changes within a second.
        module = ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, str(path), "exec"), module.__dict__)
        found[name] = module
    return found


def test_functions_are_loaded_by_whoever_comes_next(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"callee": CALLEE.format(number=3, step=1), "caller": CALLER}
    first = fresh(tmp_path, monkeypatch, **texts)["caller"].caller
    assert first(2) == 9
    assert sum(first.stats.cache_hits.values()) == 0
    assert [path.name.split("-")[0] for path in files(kept)] == ["callee.callee", "caller.caller"]
    second = fresh(tmp_path, monkeypatch, **texts)["caller"].caller
    assert second(2) == 9
    assert sum(second.stats.cache_hits.values()) == 1
    # Another signature is another file.
    assert second(0.5) == 4.5
    assert len(files(kept)) == 4


@pytest.mark.parametrize(
    ("change", "result"), [({"number": 3, "step": 5}, 21), ({"number": 7, "step": 1}, 21)]
)
def test_changes_of_functions_and_constants_used_are_noticed(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, int], result: int
) -> None:
    before = {"callee": CALLEE.format(number=3, step=1), "caller": CALLER}
    assert fresh(tmp_path, monkeypatch, **before)["caller"].caller(2) == 9
    names = files(kept)
    after = {**before, "callee": CALLEE.format(**change)}
    changed = fresh(tmp_path, monkeypatch, **after)["caller"].caller
    assert changed(2) == result
    assert sum(changed.stats.cache_hits.values()) == 0
    # The files of the text before are gone.
    assert len(files(kept)) == len(names)
    assert not set(names) & set(files(kept))


class Planted:
    """Unpickling it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_planted_code_is_not_run_from_a_folder_of_others(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    texts = {"callee": CALLEE.format(number=3, step=1)}
    assert fresh(tmp_path, monkeypatch, **texts)["callee"].callee(2) == 3
    (path,) = files(kept)
    store = compiled._KernelCache(fresh(tmp_path, monkeypatch, **texts)["callee"].callee.py_func)._store
    function, source, rest = path.name.removesuffix(".nbc").split("-")
    store.write(function, f"{source}-{rest}", pickle.dumps(Planted(tmp_path / "mark")))
    path.parent.chmod(mode)
    store_of.cache_clear()
    assert fresh(tmp_path, monkeypatch, **texts)["callee"].callee(2) == 3
    # From a folder of one's own the file is read, found to hold something else, and replaced.
    assert (tmp_path / "mark").exists() == (mode == 0o700)
    path.parent.chmod(0o700)


def test_code_for_another_signature_is_replaced(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"callee": CALLEE.format(number=3, step=1)}
    callee = fresh(tmp_path, monkeypatch, **texts)["callee"].callee
    assert callee(2) == 3
    (integers,) = files(kept)
    assert callee(2.5) == 3.5
    (floats,) = set(files(kept)) - {integers}
    right = floats.read_bytes()
    floats.write_bytes(integers.read_bytes())
    assert fresh(tmp_path, monkeypatch, **texts)["callee"].callee(2.5) == 3.5
    assert len(floats.read_bytes()) == len(right)
    assert floats.read_bytes() != integers.read_bytes()


LOADED_THEN_COMPILED = """
import sys
import numpy as np
import numba
from mtbdd.base.compiled import njit

@njit(nogil=True)
def scaled(x, y):
    for i in range(len(x)):
        y[i] = 2 * x[len(x) - 1 - i]
    return y

found = scaled(np.arange(3.0), np.zeros(3))
print(found.tolist(), "numba.np.arrayobj" in sys.modules)

@numba.njit
def other(x):
    y = x.copy()
    y[0] = x.sum()
    return y

print(other(np.array([3.0, 1.0, 2.0])).tolist(), scaled.py_func.__name__)
"""


def test_code_that_is_kept_needs_few_modules_and_hinders_no_compiling(kept: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LOADED_THEN_COMPILED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(kept)}
    shown = [
        subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert shown[0] == "[4.0, 2.0, 0.0] True\n[6.0, 1.0, 2.0] scaled\n"
    assert shown[1] == shown[0].replace("True", "False")


def test_what_compiling_takes_is_counted_once(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"callee": CALLEE.format(number=3, step=1), "caller": CALLER}
    for is_compiled in (True, False):  # the second module finds the code
        function = fresh(tmp_path, monkeypatch, **texts)["caller"].caller
        begin, before = time.monotonic(), seconds_compiling()
        function(2)
        taken, whole = seconds_compiling() - before, time.monotonic() - begin
        assert (0.0 < taken <= whole) if is_compiled else taken == 0.0
        function(3)
        assert seconds_compiling() == before + taken


def test_closures_and_functions_told_so_are_not_kept(kept: Path) -> None:
    step = 4

    def closure(x: int) -> int:
        return x + step

    assert njit(nogil=True)(closure)(1) == 5
    assert njit(cache=False)(lambda x: x + 1)(1) == 2
    assert files(kept) == []


def test_a_signature_is_compiled_for_at_once_and_alone(kept: Path) -> None:
    compiled_function = njit(numba.int64(numba.int64), nogil=True)(_twice)
    assert len(files(kept)) == 1
    assert compiled_function(3) == 6
    with pytest.raises(TypeError, match="No matching definition"):
        compiled_function("text")


def _twice(x):
    return 2 * x


def test_functions_stay_as_they_are_without_a_compiler() -> None:
    code = (
        "from mtbdd.base.compiled import njit\n"
        "f = njit('int64(int64)', nogil=True)(lambda x: [x])\n"
        "print(type(f).__name__, f(1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["function", "[1]"], done.stderr
