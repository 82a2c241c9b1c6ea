"""Threads, packages and versions that work here."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.arguments import EXPORTED, build_parser
from hybrid.app.cli.common_arguments import MOST_THREADS
from hybrid.app.cli.manual import versions
from hybrid.base.errors import OptionError
from hybrid.matrix.cpu.threads import MOST, thread_count
from hybrid.models.interchange.formats import FORMATS
from mtbdd.diagrams.manager import PACKAGES
from tests.builders.command_lines import GIVEN, refused, run, values


def test_threads_are_those_asked_for(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr("hybrid.app.cli.export.run_info", lambda *_: seen.append(thread_count()) or 0)
    monkeypatch.delenv("HYBRID_NUM_THREADS", raising=False)
    before = thread_count()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    run(capsys, "info", walk, "--threads", "3")
    monkeypatch.setenv("HYBRID_NUM_THREADS", "5")
    run(capsys, "info", walk)
    run(capsys, "info", walk, "--threads", "2")
    assert seen == [3, 5, 2]
    monkeypatch.setenv("HYBRID_NUM_THREADS", "many")
    status, _, err = run(capsys, "info", walk)
    assert status == 2 and "HYBRID_NUM_THREADS: expected a whole number from 1 to 1024, got 'many'" in err
    with pytest.raises(OptionError, match="HYBRID_NUM_THREADS"):
        thread_count()
    monkeypatch.delenv("HYBRID_NUM_THREADS")
    assert thread_count() == before
    for few in ("0", "-3"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", few)
        status, _, err = run(capsys, "info", walk)
        assert status == 2 and f"NUMBA_NUM_THREADS: expected a whole number from 1 on, got '{few}'" in err
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert "expected a whole number from 1 to 1024, got '0'" in refused(
        capsys, "info", walk, "--threads", "0"
    )


def test_packages_give_the_same_answers(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("auto", "autoref"):
        found = run(capsys, "check", walk, "walk.props", *GIVEN, "--package", package, "--json")
        assert values(found) == [0.25, 1.0, 0.5]


def test_the_parser_knows_packages_threads_and_formats() -> None:
    # It does not import them, for help is shown without.
    actions = build_parser()._subparsers._group_actions[0].choices["info"]._option_string_actions
    assert tuple(actions["--package"].choices) == PACKAGES
    assert MOST_THREADS == MOST
    assert set(EXPORTED) == {suffix for suffix, known in FORMATS.items() if known.writer is not None}


def test_sources_that_are_not_installed_have_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert versions()["hybrid"].startswith("0+checkout (")


def test_versions_say_what_works_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HYBRID_DD_PACKAGE", raising=False)
    assert main(["--version"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert main(["--version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == lines
    assert list(lines) == ["hybrid", "python", "dd", "numpy", "scipy", "numba", "cupy", "device"]
    assert "CUDD" in lines["dd"]
    try:
        import dd.cudd as cudd
    except ImportError:
        assert "without CUDD" in lines["dd"]
    else:
        assert lines["dd"] == f"{metadata.version('dd')} with CUDD {cudd.__version__}"
    monkeypatch.setenv("HYBRID_DD_PACKAGE", "autoref")
    assert versions()["dd"].endswith(" (HYBRID_DD_PACKAGE=autoref)")
    assert "--json stands behind the command" in refused(capsys, "--json", "info", "m.pm")
