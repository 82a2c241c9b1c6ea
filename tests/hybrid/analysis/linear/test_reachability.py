"""The reduction of reachability to a linear system, against known probabilities and other checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import bicgstab, gmres, spsolve

import hybrid
from gpu_kernels import Device, use_device
from hybrid.analysis.linear import reachability_system
from hybrid.solvers import Criterion, Status
from mtbdd.language import LanguageError
from tests.builders.chain_texts import DIE, GAMBLER, SPLIT, load_text
from tests.gpu_kernels.host_device import COMPILER, HostDevice
from tests.hybrid.analysis.linear.methods import krylov, method_name

PAPER = """
// the chain of [CB12] §2
dtmc
module m
  s : [0..3];
  [] s=0 -> 0.5 : (s'=2) + 0.5 : (s'=3);
  [] s=2 -> 0.4 : (s'=0) + 0.6 : (s'=1);
  [] s=1 | s=3 -> true;
endmodule
"""


def test_example_of_the_paper(tmp_path: Path) -> None:
    reduced = reachability_system(load_text(tmp_path, PAPER), "s=3")
    np.testing.assert_array_equal(reduced.maybe, [True, False, True, False])
    np.testing.assert_array_equal(reduced.certain, [False, False, False, True])
    a, b = reduced.as_scipy()
    np.testing.assert_array_equal(a.toarray(), [[1.0, -0.5], [-0.4, 1.0]])
    np.testing.assert_array_equal(b, [0.5, 0.0])
    np.testing.assert_allclose(reduced.spread(spsolve(a.tocsc(), b)), [0.625, 0.0, 0.25, 1.0], rtol=1e-15)


@pytest.mark.parametrize("method", ["jacobi", "jor", "bicgstab", gmres, bicgstab], ids=method_name)
@pytest.mark.parametrize(
    ("engine", "backend"), [("hybrid", "cpu"), ("hybrid", "reference"), ("explicit", "cpu")]
)
def test_every_engine_and_method_gives_the_probabilities(
    tmp_path: Path, engine: str, backend: str, method: Any
) -> None:
    reduced = reachability_system(load_text(tmp_path, DIE), "s=7 & d=6")
    found = reduced.system(engine, backend).solve(method, criterion=Criterion(1e-12))
    assert found.status is Status.CONVERGED
    values = reduced.spread(found.values)
    model = load_text(tmp_path, DIE)
    start = int(np.flatnonzero(model.indicator(model.initial))[0])
    assert values[start] == pytest.approx(1 / 6, rel=1e-9)
    assert set(np.unique(values[~reduced.maybe])) <= {0.0, 1.0}


@pytest.mark.parametrize("storage", ["auto", "cmsr-wl"])
@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
@pytest.mark.parametrize("method", ["jacobi", "gmres"])
def test_systems_on_the_device_give_the_probabilities(
    device: Device, tmp_path: Path, engine: str, storage: str, method: str
) -> None:
    reduced = reachability_system(load_text(tmp_path, DIE), "s=7 & d=6")
    if (engine, storage) == ("hybrid", "cmsr-wl"):
        with pytest.raises(ValueError, match="expected auto with the engine hybrid"):
            reduced.system(engine, "gpu", storage=storage)
        return
    system = reduced.system(engine, "gpu", storage=storage)
    assert system.matrix.backend == "gpu"
    assert isinstance(system.b, device.xp.ndarray) and isinstance(system.diagonal, device.xp.ndarray)
    if engine == "explicit" and storage != "auto":
        assert system.matrix.storage == storage
    chosen = method if method == "jacobi" else krylov(device, method)
    found = system.solve(chosen, criterion=Criterion(1e-10))
    assert found.status is Status.CONVERGED
    there, here = reduced.spread(found.values), reduced.system().solve("jacobi", criterion=Criterion(1e-12))
    np.testing.assert_allclose(there, reduced.spread(here.values), rtol=1e-8, atol=1e-10)


class Recording:
    """NumPy as a device's array module that remembers what is copied to it."""

    def __init__(self) -> None:
        self.copied: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any, *arguments: Any, **options: Any) -> Any:
        self.copied.append(values)
        return np.asarray(values, *arguments, **options)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
@pytest.mark.parametrize(("engine", "backend"), [("hybrid", "gpu"), ("explicit", "gpu"), ("hybrid", "cpu")])
def test_vectors_lie_where_the_matrix_is_multiplied(tmp_path: Path, engine: str, backend: str) -> None:
    reduced = reachability_system(load_text(tmp_path, DIE), "s=7 & d=6")
    host = HostDevice()
    host.xp = Recording()
    with use_device(host):
        reduced.system(engine, backend)
    copied = [any(array is own for array in host.xp.copied) for own in (reduced.diagonal, reduced.b)]
    assert copied == [backend == "gpu"] * 2


def test_sets_of_states_and_safe_sets(tmp_path: Path) -> None:
    model = load_text(tmp_path, GAMBLER)
    reduced = reachability_system(model, "x=goal")
    by_set = reachability_system(model, reduced_target(model), model.reachable)
    np.testing.assert_array_equal(by_set.b, reduced.b)
    values = reduced.spread(reduced.system().solve("jacobi", criterion=Criterion(1e-13)).values)
    ratio = 1.5
    np.testing.assert_allclose(
        values, [(ratio**x - 1) / (ratio**5 - 1) for x in range(6)], rtol=1e-9, atol=1e-12
    )
    bounded = reachability_system(model, "x=goal", "x>=2")
    assert bounded.size == 3
    assert not bounded.maybe[1]


def reduced_target(model: Any) -> Any:
    from mtbdd.language.expression_parser import parse_expression
    from mtbdd.language.syntax import Binary

    expression = parse_expression("x=5")
    assert isinstance(expression, Binary)
    return model.states(expression)


def test_rates_are_divided_by_what_leaves(tmp_path: Path) -> None:
    model = load_text(tmp_path, SPLIT)
    reduced = reachability_system(model, "s=3")
    assert reduced.diagonal.tolist() == [4.0]
    assert reduced.b.tolist() == [3.0]
    a, b = reduced.as_scipy()
    assert (a.toarray().tolist(), b.tolist()) == ([[1.0]], [0.75])
    assert reduced.spread(reduced.system("explicit").solve().values)[0] == pytest.approx(0.75)


def test_answers_are_those_of_the_checker(examples_folder: Path) -> None:
    model = hybrid.load(examples_folder / "brp.prism", {"N": 8, "MAX": 2})
    expected = hybrid.check(model, "P=? [ F s=FAILED ]", epsilon=1e-12).value
    reduced = reachability_system(model, "s=FAILED")
    start = int(np.flatnonzero(model.indicator(model.initial))[0])
    for engine in ("hybrid", "explicit"):
        found = reduced.system(engine).solve("jacobi", criterion=Criterion(1e-13))
        assert reduced.spread(found.values)[start] == pytest.approx(expected, rel=1e-9)


def test_nothing_is_left_where_the_graph_decides(tmp_path: Path) -> None:
    reduced = reachability_system(load_text(tmp_path, DIE), "s=7")
    assert reduced.size == 0
    assert reduced.certain.all()
    assert reduced.spread(np.zeros(0)).tolist() == [1.0] * 13


def test_wrong_arguments_are_refused(tmp_path: Path, examples_folder: Path) -> None:
    with pytest.raises(ValueError, match="an MDP has no single matrix"):
        reachability_system(hybrid.load(examples_folder / "jobs.prism", {"N": 2}), '"done"')
    model = load_text(tmp_path, DIE)
    with pytest.raises(LanguageError):
        reachability_system(model, "nobody=3")
    reduced = reachability_system(model, "d=1")
    with pytest.raises(ValueError, match="hybrid or explicit, got 'dense'"):
        reduced.system("dense")
    with pytest.raises(ValueError, match=r"one element a state of S\?, got \(1,\)"):
        reduced.spread(np.zeros(1))
