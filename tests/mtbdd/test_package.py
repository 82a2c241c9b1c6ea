"""The choice of the BDD package: by name, by the environment, and what is said where CUDD is missing."""

from __future__ import annotations

import logging
import sys

import pytest

from hybrid.__main__ import main
from mtbdd.base.errors import PackageError
from mtbdd.diagrams import manager as package
from mtbdd.diagrams.manager import Manager, diagram_package
from tests.source_tree import ROOT


@pytest.fixture
def without_cudd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_cudd", lambda: None)
    monkeypatch.setattr(package, "_tell_slow", package._tell_slow.__wrapped__)
    monkeypatch.delenv(package.VARIABLE, raising=False)


def test_auto_is_cudd_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(package.VARIABLE, raising=False)
    pytest.importorskip("dd.cudd")
    assert diagram_package().name == diagram_package("cudd").name == "cudd"
    assert Manager(1).is_cudd and not Manager(1, "autoref").is_cudd


@pytest.mark.filterwarnings("ignore:Changed in `dd`")
def test_managers_begin_small_and_grow_as_those_of_dd() -> None:
    cudd = pytest.importorskip("dd.cudd")
    own, usual = diagram_package("cudd").new_manager(), cudd.BDD()
    usual.configure(reordering=False)
    # But for the most that are kept of results: of themselves they take as much memory as the nodes.
    limited = {"max_cache_hard": 1 << 22}
    assert usual.configure()["max_cache_hard"] > 1 << 24
    assert own.configure() == usual.configure() | limited
    small, large = own.statistics(), usual.statistics()
    assert small["cache_size"] < large["cache_size"] and small["mem"] < large["mem"] / 10
    own.declare(*(f"x{i}" for i in range(40)))
    own.add_expr(" ^ ".join(rf"(x{i} /\ x{i + 20})" for i in range(13)))
    assert own.statistics()["cache_size"] > small["cache_size"]


def test_the_environment_says_what_auto_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(package.VARIABLE, "autoref")
    assert diagram_package().name == "autoref"
    monkeypatch.setenv(package.VARIABLE, "")
    assert diagram_package("autoref").name == "autoref"
    monkeypatch.setenv(package.VARIABLE, "buddy")
    with pytest.raises(
        PackageError, match="HYBRID_DD_PACKAGE: expected one of auto, cudd, autoref, got 'buddy'"
    ):
        diagram_package()
    with pytest.raises(PackageError, match="package: expected one of"):
        diagram_package("oxidd")


def test_without_cudd_auto_is_autoref_and_says_so(
    without_cudd: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert diagram_package().name == "autoref"
    assert "installed without CUDD" in caplog.text and "CPython 3.11 to 3.13" in caplog.text
    caplog.clear()
    assert diagram_package("autoref").name == "autoref"  # asked for: nothing to say
    assert not caplog.text
    with pytest.raises(PackageError, match="'cudd' is asked for, and dd was installed without CUDD"):
        Manager(1, "cudd")


def test_the_command_line_answers_without_cudd(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(package.VARIABLE, raising=False)
    for model, constants, prop in (("kanban", "t=1", "1"), ("coin", "K=1", "2")):
        files = [str(ROOT / "examples" / f"{model}{ending}") for ending in (".prism", ".props")]
        command = ["check", *files, "--const", constants, "--prop", prop]
        with pytest.MonkeyPatch.context() as patch:
            # As where dd has no wheel with it.
            patch.setitem(sys.modules, "dd.cudd", None)
            patch.setattr(package, "_cudd", package._cudd.__wrapped__)
            patch.setattr(package, "_tell_slow", package._tell_slow.__wrapped__)
            assert main(command) == 0
            slow = capfd.readouterr()
        assert main(command) == 0
        assert results(slow.out) == results(capfd.readouterr().out) != []
        assert slow.err.startswith("warning: dd was installed without CUDD")


def results(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line.startswith(("result", "states", "transitions"))]
