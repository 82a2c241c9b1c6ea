"""What a start loads: names and help without any package of others, answers without what they do not need."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from tests.builders.processes import ROOT, run_python

HEAVY = {"numpy", "scipy", "numba", "dd", "cupy", "matplotlib", "rich", "networkx"}
NOT_YET = {"typing", "inspect", "dataclasses", "logging", "importlib.metadata"}


def loaded(code: str) -> set[str]:
    """What is imported after some code, run by an interpreter of its own."""
    shown = f"import sys\ntry:\n    {code}\nfinally:\n    print('loaded:', *sys.modules, sep='\\n')"
    done = run_python("-W", "error", "-c", shown)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.partition("loaded:\n")[2].split())


def test_import_loads_no_other_package() -> None:
    assert not loaded("import hybrid") & (HEAVY | NOT_YET)


def test_signals_are_handled_before_modules_are_loaded_that_take_long() -> None:
    found = loaded("import hybrid_model_checker, hybrid.app.cli.signals")
    assert not (found - loaded("pass")) & {"ctypes", "pathlib", "threading", "urllib"}


@pytest.mark.parametrize("arguments", ["--help", "check --help", "simulate --help"])
def test_help_loads_no_other_package(arguments: str) -> None:
    found = loaded(f"from hybrid.__main__ import main; main({arguments.split()})")
    assert "argparse" in found
    # From Python 3.14 on colours of help take `dataclasses`, and these take more.
    own = loaded("import argparse; argparse.ArgumentParser().format_help()")
    assert not found & (HEAVY | NOT_YET - own)


def test_a_check_begins_without_compiled_code() -> None:
    # Reading a model, exact answers and the backend `reference` do without Numba.
    assert not loaded("import hybrid.app.cli.check") & (HEAVY - {"numpy"})


def test_an_answer_loads_neither_linear_algebra_nor_networkx(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    pytest.importorskip("dd.cudd")
    model = tmp_path / "coin.prism"
    model.write_text("dtmc module m x : [0..2]; [] x=0 -> 0.4:(x'=0) + 0.3:(x'=1) + 0.3:(x'=2); endmodule")
    arguments = ["check", str(model), "P=? [ F x=1 ]", "--backend", "cpu"]
    code = f"from hybrid.__main__ import main; main({arguments})"
    loaded(code)  # what has to be compiled is compiled
    found = loaded(code)
    assert {"numba", "dd.cudd"} <= found
    assert not found & {"scipy.linalg", "networkx", "matplotlib", "cupy"}


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("brp", "N=16,MAX=2"),
        ("kanban", "t=1"),
        ("cluster", "N=8"),
        ("coin", "K=2"),
        ("herman", None),
        ("jobs", "N=3"),
        ("polling", None),
        ("relay", "H=4,M=3"),
        ("tandem", "c=15"),
    ],
)
def test_small_answers_load_no_compiled_code(name: str, constants: str | None) -> None:
    pytest.importorskip("dd.cudd")
    files = [str(ROOT / "examples" / f"{name}.{kind}") for kind in ("prism", "props")]
    arguments = ["check", *files, *([] if constants is None else ["--const", constants]), "--quiet"]
    problem = "hybrid.matrix.backends.device_problem = lambda: 'none here'"
    code = f"import hybrid.matrix.backends; {problem}; from hybrid.__main__ import main; main({arguments})"
    found = loaded(code)
    assert not found & {"numba", "llvmlite", "scipy", "networkx", "matplotlib", "cupy"}
    assert not found & {"importlib.metadata", "importlib.resources", "concurrent.futures", "multiprocessing"}
    assert not found & {"numpy.ma", "numpy.random", "html", "zipfile", "gzip", "secrets"}
    assert not found & {"gpu_kernels.explicit", "gpu_kernels.compressed.tiles", "hybrid.matrix.gpu"}
    own = [module for module in found if module.partition(".")[0] in ("hybrid", "mtbdd", "gpu_kernels")]
    assert len(own) <= 200, len(own)


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["hybrid", "hybrid, laid out on the device", "explicit"])
@pytest.mark.parametrize("name", ["kanban", "polling", "tandem", "fms", "relay", "herman"])
def test_an_answer_of_a_device_loads_no_sparse_matrices(engine: str, name: str) -> None:
    # CuPy's operators import them, and much of SciPy, once one side is a plain number; its functions do not.
    constants = {"kanban": "t=2", "tandem": "c=7", "fms": "n=2", "relay": "H=6,M=6"}.get(name)
    more = ["--const", constants] if constants else []
    files = [str(ROOT / "examples" / f"{name}.{kind}") for kind in ("prism", "props")]
    engine, comma, _ = engine.partition(",")
    arguments = ["check", *files, *more, "--engine", engine, "--backend", "gpu", "--quiet"]
    here = "import gpu_kernels.runtime.device as staging; staging.HOST_ITEMS = 0; " if comma else ""
    found = loaded(f"{here}from hybrid.__main__ import main; main({arguments})")
    assert "cupy" in found
    assert not found & {"cupyx.scipy.sparse", "scipy.sparse", "numpy.f2py"}


def test_garbage_is_collected_again_once_all_is_loaded() -> None:
    code = (
        "import gc, sys; sys.argv = ['hybrid', 'examples', 'tandem']; "
        "from hybrid.__main__ import main; main(); "
        "assert gc.isenabled() and gc.get_freeze_count() > 10_000, gc.get_freeze_count()"
    )
    loaded(code)
    # Who calls it from Python has a process of their own.
    frozen = gc.get_freeze_count()
    assert main(["examples", "tandem"]) == 0
    assert gc.isenabled() and gc.get_freeze_count() <= frozen  # those let go of are not counted


def test_every_public_name_has_a_home_that_editors_see() -> None:
    text = Path(hybrid.__file__).read_text(encoding="utf-8")
    told = text[text.index("if TYPE_CHECKING:") : text.index("__all__")]
    for name in hybrid.__all__:
        assert name in told.replace(",", " ").split(), f"{name} is missing under TYPE_CHECKING"
        assert getattr(hybrid, name).__name__ == name
