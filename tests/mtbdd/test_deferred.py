"""Imports put off: the real module comes with the first name that is looked up, and nothing stays behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mtbdd.base.lazy_loading import deferred
from tests.builders.processes import run_python


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "slow_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("class Graph: size = 3\n")
    (folder / "part.py").write_text("number = 5\n")
    (tmp_path / "its_user.py").write_text(
        "import slow_package as slow\nname = slow.Graph\ndef size(): return slow.Graph.size\n"
    )
    (tmp_path / "other_user.py").write_text("import slow_package.part\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in ("slow_package", "slow_package.part", "its_user", "other_user"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_when_something_is_looked_up(package: Path) -> None:
    with deferred("slow_package", "Graph"):
        import its_user
    assert "slow_package" not in sys.modules
    assert its_user.size() == 3
    assert sys.modules["slow_package"].Graph.size == 3
    assert not hasattr(its_user.slow, "missing")


def test_the_package_of_a_module_is_imported_as_ever(package: Path) -> None:
    with deferred("slow_package.part"):
        import other_user
    assert other_user.slow_package.Graph.size == 3
    assert "slow_package.part" not in sys.modules
    import slow_package.part

    assert slow_package.part.number == 5


def test_what_is_there_stays(package: Path) -> None:
    import slow_package

    with deferred("slow_package"):
        assert sys.modules["slow_package"] is slow_package
    assert sys.modules["slow_package"] is slow_package


def test_what_is_not_installed_stays_missing() -> None:
    with deferred("no_such_package"), pytest.raises(ImportError):
        import no_such_package  # noqa: F401


def test_a_failure_in_between_leaves_nothing(package: Path) -> None:
    with pytest.raises(ZeroDivisionError), deferred("slow_package"):
        raise ZeroDivisionError
    assert "slow_package" not in sys.modules


WITHOUT_DESCRIPTIONS = """
import sys
from mtbdd.base.lazy_loading import import_numpy_alone
import_numpy_alone()
import_numpy_alone()
from collections.abc import Callable
import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, DTypeLike, NDArray
Pair = Callable[[NDArray[np.int64] | None, ArrayLike], tuple[NDArray[np.float64], DTypeLike]]
assert np.linalg.solve(np.eye(2), np.ones(2)).tolist() == [1, 1]
assert not np.zeros.__doc__
assert "numpy._typing._array_like" not in sys.modules
import numpy._core._add_newdocs
assert callable(npt.test)
assert sys.modules["numpy.typing"].NDArray is not NDArray
"""


def test_numpy_without_its_descriptions_computes_and_annotates() -> None:
    done = run_python("-c", WITHOUT_DESCRIPTIONS)
    assert done.returncode == 0, done.stderr


def test_numpy_stays_as_it_is_where_it_is_imported_already() -> None:
    code = "import numpy, sys; from mtbdd.base.lazy_loading import import_numpy_alone as alone; alone();"
    done = run_python("-c", f"{code} assert numpy.zeros.__doc__ and 'numpy.typing' not in sys.modules")
    assert done.returncode == 0, done.stderr
