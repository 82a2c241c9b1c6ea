"""Packages are found by the names that they had before, for one release, with a warning of the new ones."""

from __future__ import annotations

import importlib
import sys

import pytest

import hybrid
from tests.builders.processes import run_python


@pytest.mark.parametrize("old", sorted(hybrid._MOVED))
def test_an_old_name_is_the_same_package_and_warns_of_the_new_name(old: str) -> None:
    new = hybrid._MOVED[old]
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=f"{old} is {new} now"):
        found = importlib.import_module(old)
    module = importlib.import_module(new)
    assert found is module
    assert module.__spec__ is not None and module.__spec__.name == new == module.__name__


def test_names_and_modules_within_are_found_too() -> None:
    code = (
        "from hybrid.linear import solve; from hybrid.cpu.csr import CsrMatrix; "
        "print(solve.__module__, CsrMatrix.__module__)"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["hybrid.analysis.linear.system", "hybrid.matrix.cpu.csr"]
    assert done.stderr.count("FutureWarning") == 3


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="hybrid.nothing"):
        importlib.import_module("hybrid.nothing")
