"""The other distribution with a package named `hybrid`: whichever of the two came last, the start says so."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.builders.processes import run_python
from tests.source_tree import PACKAGES, ROOT

ADVICE = "install hybrid-model-checker in an environment of its own: python -m venv ENV"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the packages, as an environment has them."""
    folder = tmp_path / "site"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "hybrid_model_checker.py", folder)
    return folder


def start(site: Path, *arguments: str, before: Path | None = None) -> tuple[int, str, str]:
    code = "import sys; from hybrid_model_checker import main; sys.exit(main())"
    paths = os.pathsep.join(str(path) for path in (before, site) if path is not None)
    done = run_python("-S", "-c", code, *arguments, cwd=site.parent, env={**os.environ, "PYTHONPATH": paths})
    return done.returncode, done.stdout, done.stderr


def test_nothing_is_said_where_there_is_no_other(site: Path) -> None:
    status, shown, told = start(site, "examples", "--help")
    assert (status, told) == (0, "") and "usage:" in shown


@pytest.mark.parametrize(
    "text",
    ["from hybrid.base import Runnable\n", "class Runnable: pass\n"],
    ids=["that fails", "that loads"],
)
def test_the_other_came_last(site: Path, text: str) -> None:
    (site / "hybrid/__init__.py").write_text(text)
    for name in ("core.py", "decomposers.py", "samplers.py"):
        (site / "hybrid" / name).write_text("")
    status, shown, told = start(site, "--help")
    assert (status, shown) == (2, "")
    assert told.startswith("error: the package hybrid in ") and "is that of dwave-hybrid" in told
    assert ADVICE in told and len(told.splitlines()) == 1


def test_the_other_came_first(site: Path) -> None:
    (site / "hybrid/decomposers.py").write_text("")
    status, shown, told = start(site, "--help")
    assert status == 0 and "usage:" in shown
    assert told.startswith("warning: dwave-hybrid has files in ") and ADVICE in told
    assert start(site, "verify", "--quiet", "--help")[2] == ""


def test_the_other_was_removed_again(site: Path) -> None:
    (site / "hybrid/__init__.py").unlink()
    status, _, told = start(site, "--help")
    assert status == 2 and told.startswith("error: the package hybrid has lost files") and ADVICE in told


@pytest.mark.parametrize("name", ["hybrid.py", "hybrid/__init__.py"])
def test_another_hybrid_comes_first_on_the_path(site: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other" / name
    other.parent.mkdir(parents=True)
    other.write_text("")
    status, _, told = start(site, "--help", before=tmp_path / "other")
    assert status == 2 and ADVICE in told
    place = other if name == "hybrid.py" else other.parent
    assert told.startswith(f"error: the package hybrid that Python finds first, {place}, is not that of")


def test_a_fault_of_ones_own_is_not_blamed_on_others(site: Path) -> None:
    (site / "hybrid/app/cli/signals.py").write_text("import no_such_module\n")
    status, _, told = start(site, "--help")
    assert status == 1 and "ModuleNotFoundError: No module named 'no_such_module'" in told
