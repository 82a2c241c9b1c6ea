"""Options have types: mypy refuses keywords and names that do not exist; the types say what is taken."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import hybrid
from gpu_kernels.explicit import FORMATS
from hybrid.analysis.run.options import ENGINES
from hybrid.app.experiments import experiment
from hybrid.base import option_types
from hybrid.base.check_options import HOST_STORAGES, METHODS, REPRESENTATIONS
from hybrid.matrix.backends import BACKENDS
from mtbdd.language.syntax import ModelType
from tests.source_tree import ROOT

# Every line but those that end with `refused` is right.
SNIPPET = """
from pathlib import Path

import hybrid

model = hybrid.load("m.prism", constants={"N": 3}, order="force", package="autoref", timeout=3.0)
model = hybrid.load(Path("m.tra"), type="ctmc", labels="m.lab")
hybrid.load("m.prism", ordr="force")  # refused
hybrid.load("m.prism", order="sifting")  # refused
hybrid.load("m.prism", package="buddy")  # refused
hybrid.load("m.tra", type="pta")  # refused
hybrid.parse("dtmc", package="cudd")
hybrid.parse("dtmc", package=3)  # refused

answer = hybrid.check(model, "P=? [ F x=1 ]", method="jor", omega=0.8, engine="explicit", storage="csr")
bounds: float | None = answer.lower
hybrid.check(model, "P=? [ F x=1 ]", metod="x")  # refused
hybrid.check(model, "P=? [ F x=1 ]", method="x")  # refused
hybrid.check(model, "P=? [ F x=1 ]", epsilon="1e-8")  # refused
hybrid.check(model, "P=? [ F x=1 ]", backend="tpu")  # refused
hybrid.check(model, "P=? [ F x=1 ]", engine="symbolic")  # refused
hybrid.check(model, "P=? [ F x=1 ]", level=3, throw=False, progress=lambda count, difference: None)
hybrid.check(model, "P=? [ F x=1 ]", level="fast")  # refused
hybrid.check_all(model, Path("m.props"), representation="tasks", values=True, scheduler=True)
hybrid.check_all(model, Path("m.props"), representation="coo")  # refused

hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, order="model", method="interval").to_pandas()
hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, methods="interval")  # refused
hybrid.experiment("m.prism", "P=? [ F x=1 ]", {"N": range(3)}, order="random")  # refused

hybrid.inject(model.transitions, "min-time", "cpu", representation="tasks")
hybrid.inject(model.transitions, "least-time")  # refused
hybrid.inject(model.transitions, backend="cuda")  # refused

hybrid.export(model, "m.drn", Path("m.umb"), force=True)
hybrid.export(model, "m.drn", forced=True)  # refused
hybrid.transient(model.transitions, [1.0], 2.0, epsilon=1e-9, transposed=True)
hybrid.transient(model.transitions, [1.0], 2.0, precision=1e-9)  # refused
model.steady_state(method="jor", epsilon=1e-9)
model.steady_state(methd="jor")  # refused
model.transient(3.0, engine="explicit")
model.transient(3.0, engine="explict")  # refused

hybrid.from_scipy([[1.0]], "ctmc", 0)
hybrid.from_scipy([[1.0]], "chain", 0)  # refused
hybrid.ModelBuilder("dtmc").build(package="autoref", discount=0.9)
hybrid.ModelBuilder("dtmcs")  # refused
hybrid.CheckOptions(method="power")
hybrid.CheckOptions.of(method="powr")  # refused
"""


@pytest.mark.slow
def test_mypy_refuses_options_that_do_not_exist(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed (extra 'test')")
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
    # What mypy knows of the packages stays for the next run.
    command += ["--cache-dir", str(ROOT / "build" / "mypy"), "--no-warn-unreachable", "--no-error-summary"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    told = [int(line) for line in re.findall(r"snippet\.py:(\d+): error", found.stdout)]
    wanted = [k for k, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# refused")]
    assert sorted(set(told)) == wanted, found.stdout


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (option_types.CheckEngine, ENGINES),
        (option_types.BackendName, BACKENDS),
        (option_types.MethodName, tuple(METHODS)),
        (option_types.Representation, REPRESENTATIONS),
        (option_types.StorageName, ("auto", *FORMATS, *HOST_STORAGES)),
        (option_types.ModelTypeName, tuple(kind.value for kind in ModelType)),
    ],
    ids=["engine", "backend", "method", "representation", "storage", "type"],
)
def test_types_name_what_the_program_takes(names: Any, taken: tuple[str, ...]) -> None:
    assert sorted(get_args(names)) == sorted(taken)


COIN = "dtmc module m x : [0..2]; [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2); endmodule"


def test_keywords_that_do_not_exist_are_refused_at_run_time_too() -> None:
    model: Any = hybrid.parse(COIN)
    wrong: dict[str, Any] = {"metod": "x"}
    for refused in (
        lambda: hybrid.check(model, "P=? [ F x=1 ]", **wrong),
        lambda: model.steady_state(**wrong),
        lambda: experiment(model, "P=? [ F x=1 ]", {}, **wrong),
    ):
        with pytest.raises(TypeError, match="metod"):
            refused()
