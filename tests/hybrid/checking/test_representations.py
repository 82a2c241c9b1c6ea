"""Matrices held in tasks: the same answers as in row types, bounds that hold, memory as it is held."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import BlockTasks, CudaDevice, use_device
from hybrid.__main__ import main
from hybrid.analysis.run.options import CheckOptions
from hybrid.app.explorer import model_choices, report_levels
from hybrid.base.errors import OptionError
from hybrid.checking.answer import Answer
from hybrid.matrix.cpu.task_product import CpuTaskProduct
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.reference import ReferenceProduct
from tests.builders.chain_texts import DIE
from tests.builders.matrices import from_dense
from tests.exploring import each
from tests.gpu_kernels.host_device import COMPILER, HostDevice

PUMP = """
ctmc
module pump
  works : bool init true;
  [] works  -> 1/100 : (works'=false);
  [] !works -> 1/5   : (works'=true);
endmodule
"""

LINE = """
dtmc
const int N;
module line
  x : [0..N] init 0;
  [] x<N -> 0.5 : (x'=x+1) + 0.5 : true;
  [] x=N -> true;
endmodule
rewards "steps"
  x<N : 1;
endrewards
"""

GAMBLE = """
mdp
module gamble
  x : [0..8] init 4;
  [bold] x>0 & x<8 -> 0.4 : (x'=min(8, 2*x)) + 0.6 : (x'=max(0, 2*x-8));
  [timid] x>0 & x<8 -> 0.4 : (x'=x+1) + 0.6 : (x'=x-1);
endmodule
rewards "rounds"
  x>0 & x<8 : 1;
endrewards
"""


def timid(start: int, goal: int) -> Fraction:
    """The chance of reaching the goal before ruin by single steps, of which 2 in 5 go up."""
    ratio = Fraction(3, 2)
    return (ratio**start - 1) / (ratio**goal - 1)


# Text, constants, property, exact value.
CASES = {
    "until": (DIE, {}, "P=? [ F s=7 & d=6 ]", Fraction(1, 6)),
    "reward": (DIE, {}, 'R{"flips"}=? [ F s=7 ]', Fraction(11, 3)),
    "steps": (DIE, {}, "P=? [ F<=4 s=7 & d=6 ]", Fraction(1, 8)),
    "average": (PUMP, {}, "S=? [ !works ]", Fraction(1, 21)),
    "several tasks": (LINE, {"N": 300}, 'R{"steps"}=? [ F x=N ]', Fraction(600)),
    "least": (GAMBLE, {}, "Pmin=? [ F x=8 ]", timid(4, 8)),
    "greatest": (GAMBLE, {}, "Pmax=? [ F x=8 ]", Fraction(2, 5)),
    "rounds": (GAMBLE, {}, 'R{"rounds"}min=? [ F x=0 | x=8 ]', Fraction(1)),
}
CHAINS = ("until", "reward", "average")


@pytest.fixture(params=["reference", "cpu", "host", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every backend; the gpu also as it is emulated on the host."""
    if request.param in ("reference", "cpu"):
        yield request.param
        return
    if request.param == "host" and COMPILER is None:
        pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
    with use_device(HostDevice() if request.param == "host" else CudaDevice()):
        yield "gpu"


def answer(case: str, **options: Any) -> tuple[Answer, Fraction]:
    text, constants, prop, exact = CASES[case]
    return hybrid.check(hybrid.parse(text, constants), prop, representation="tasks", **options), exact


@pytest.mark.parametrize("case", CASES)
def test_bounds_hold(place: str, case: str) -> None:
    found, exact = answer(case, backend=place)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    assert found.value == pytest.approx(float(exact), rel=1e-6)
    assert found.kind in ("certified", "exact")
    assert (found.statistics.backend, found.record()["storage"]) == (place, "tasks")


@pytest.mark.parametrize(
    ("method", "case"),
    each(["jacobi", "jor", "power", "bicgstab", "gauss-seidel", "interval"], CHAINS),
)
def test_every_method_of_chains(place: str, case: str, method: str) -> None:
    if (method, case) == ("jacobi", "average"):
        method = "jor"  # a chain of period two
    found, exact = answer(case, backend=place, method=method, epsilon=1e-10)
    assert found.value == pytest.approx(float(exact), rel=1e-7)
    is_bounded = method == "interval" or (method, case) == ("bicgstab", "average")
    assert found.kind == ("certified" if is_bounded else "estimate")
    assert found.statistics.storage == "tasks"


@pytest.mark.parametrize(
    ("level", "case"),
    each(["auto", "min-memory", "min-time", 0, 3, 6], ["until", "least"]),
)
def test_every_level(place: str, case: str, level: str | int) -> None:
    found, exact = answer(case, backend=place, level=level)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    if isinstance(level, int):
        assert found.statistics.level == level
    with pytest.raises(OptionError, match="level: expected 0"):
        answer(case, backend=place, level=99)


def test_transient_probabilities(place: str) -> None:
    model = hybrid.parse(PUMP)
    found = hybrid.check(model, "P=? [ F<=10 !works ]", backend=place, representation="tasks")
    assert found.lower <= -math.expm1(-0.1) <= found.upper
    assert found.value == pytest.approx(-math.expm1(-0.1), rel=1e-6)


def test_matrices_of_several_tasks(place: str, rng: np.random.Generator) -> None:
    dense = np.triu(np.tril(rng.random((600, 600)), 2), -2)
    matrix = from_dense(dense)
    operator = inject(matrix, 7, place, representation="tasks")
    x = rng.random(600)
    np.testing.assert_allclose(operator @ x, dense @ x, rtol=1e-13)
    np.testing.assert_allclose(operator.T @ x, dense.T @ x, rtol=1e-13)
    assert operator.T.representation == operator.representation == operator.storage == "tasks"
    np.testing.assert_allclose(operator.row_sums(), dense.sum(axis=1), rtol=1e-13)
    np.testing.assert_array_equal(operator.diagonal(), np.diag(dense))
    assert (operator.statistics.representation, operator.statistics.scaled) == ("tasks", False)
    assert operator.nnz == np.count_nonzero(dense)
    if place != "gpu":
        np.testing.assert_allclose(operator.as_linear_operator().rmatvec(x), dense.T @ x, rtol=1e-13)
        np.testing.assert_array_equal(operator.tasks.task_ptr, cut_tasks(inject_level(matrix, 7)).task_ptr)


def test_memory_told_is_that_of_the_tasks(place: str) -> None:
    model = hybrid.parse(LINE, {"N": 700})
    operator = inject(model.transitions, "min-memory", place, representation="tasks")
    tasks = cut_tasks(inject_level(model.transitions, operator.level))
    product = operator.product
    kinds = {"cpu": CpuTaskProduct, "reference": ReferenceProduct, "gpu": GpuProduct}
    assert isinstance(product, kinds[place])
    if isinstance(product, GpuProduct):
        assert isinstance(product.matrix, BlockTasks)
        # Pointers take 4 bytes there.
        assert product.nbytes == tasks.nbytes - 4 * (len(tasks.blocks.ptr) + len(tasks.task_ptr))
    else:
        assert product.nbytes == tasks.nbytes
    assert operator.nbytes == product.nbytes <= operator.curve[operator.level].bytes_worst_case
    sizes = [operator.curve.bytes_predicted(k, place) for k in range(len(operator.curve))]
    assert sizes[operator.level] == product.nbytes == min(sizes)
    found = hybrid.check(model, "P=? [ F<=20 x=2 ]", backend=place, representation="tasks")
    assert found.record()["representation_memory_bytes"] == found.statistics.representation_bytes > 0


def test_tasks_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = inject(from_dense(np.eye(1024)), 0, "cpu", representation="tasks")
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("mtbdd.base.memory.free_memory_bytes", lambda: 85 * (1024 + 6) - 1)
    with pytest.raises(MemoryError, match=r"making the tasks of level 0 needs 87550 bytes .* min-memory"):
        operator.engine.represent(operator.curve, 0)
    monkeypatch.setattr("mtbdd.base.memory.free_memory_bytes", lambda: 85 * (1024 + 6))
    assert operator.engine.represent(operator.curve, 0).nbytes == operator.nbytes


def test_budgets_are_of_the_bytes_held() -> None:
    matrix = from_dense(np.kron(np.eye(64), np.ones((8, 8))))
    smallest = inject(matrix, "min-memory", "cpu", representation="tasks")
    least = smallest.nbytes
    assert least < smallest.curve[smallest.curve.min_memory].bytes_worst_case
    chosen = inject(matrix, "min-time", "cpu", representation="tasks", memory_budget=least)
    assert chosen.nbytes == least
    with pytest.raises(OptionError, match="no level fits"):
        inject(matrix, "auto", "cpu", representation="tasks", memory_budget=least - 1)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")
def test_auto_leaves_small_matrices_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = from_dense(np.kron(np.eye(64), np.ones((8, 8))))
    with use_device(HostDevice()):
        operator = inject(matrix, representation="tasks")
        assert (operator.backend, "too few" in operator.backend_reason) == ("cpu", True)
        monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 0)
        assert inject(matrix, representation="tasks").backend == "gpu"
        monkeypatch.setattr("hybrid.matrix.gpu.cost._START_SECONDS", -1.0)
        assert "longer than a CPU takes" in inject(matrix, representation="tasks").backend_reason


@pytest.mark.parametrize("name", ["", "Tasks", "tiles", "row types", None, 3, ["tasks"]])
def test_other_names_are_refused(name: Any) -> None:
    for asked in (
        lambda: inject(from_dense(np.eye(4)), representation=name),
        lambda: CheckOptions(representation=name),
        lambda: report_levels(from_dense(np.eye(4)), representation=name),
    ):
        with pytest.raises(OptionError, match="representation: expected one of row-types, tasks"):
            asked()


def test_the_explicit_engine_has_no_representation() -> None:
    with pytest.raises(OptionError, match="choose engine='hybrid'"):
        answer("until", engine="explicit")


def test_levels_are_told_for_tasks(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", constants={"t": 2}).transitions
    report = report_levels(matrix, policy="min-time", representation="tasks")
    assert report.min_time == inject(matrix, "min-time", "cpu", representation="tasks").level
    assert "submatrices and at most" in report.reason
    coin = hybrid.load(examples_folder / "coin.prism", constants={"K": 2})
    report = report_levels(model_choices(coin), representation="tasks")
    assert report.curve.form == "sums over 2 layers of choices, held one by one"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "die.prism"
    path.write_text(DIE, encoding="utf-8")
    held = ["--representation", "tasks", "--backend", "cpu", "--quiet"]
    assert main(["check", str(path), "P=? [ F s=7 & d=6 ]", *held]) == 0
    assert " at level " in (printed := capsys.readouterr().out) and printed.count(" in tasks\n") == 1
    assert main(["check", str(path), "P=? [ F s=7 & d=6 ]", "--json", *held]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["storage"], result["kind"]) == ("tasks", "certified")
    assert main(["levels", str(path), "--measure", *held]) == 0
    assert "was measured to be the fastest" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["check", str(path), "--representation", "blocks"])
    assert "row-types" in capsys.readouterr().err
