"""The explicit engine on the device: values known by hand within the bounds, the CPU's answers, memory."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device, use_device
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit.operators import write_out
from tests.builders.chain_texts import DIE, GAMBLER, QUEUE, STAIRS, load_text
from tests.builders.known_answers import OF_CHAINS
from tests.builders.matrices import to_dense
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import COMPILER, HostDevice

ON_DEVICE = {"engine": "explicit", "backend": "gpu"}
ESTIMATES = [
    (GAMBLER, "P=? [ F x=goal ]", 76 / 211, {"method": "bicgstab"}),
    (GAMBLER, "P=? [ F x=goal ]", 76 / 211, {"method": "jor", "omega": 0.8}),
    (DIE, 'R{"flips"}=? [ F s=7 ]', 11 / 3, {"method": "power"}),
    (QUEUE, "S=? [ n=0 ]", 81 / 211, {"method": "jacobi"}),
]


def test_bounds_contain_the_exact_values(device: Device, tmp_path: Path) -> None:
    # Emulated launches are slow: one in four there, among them both kinds of models.
    for text, prop, exact in OF_CHAINS[:: 4 if device.name == "host" else 1]:
        answer = hybrid.check(load_text(tmp_path, text), prop, **ON_DEVICE, throw=False)
        assert answer.error is None, (prop, answer.error)
        if exact == math.inf:
            assert (answer.lower, answer.value, answer.upper) == (math.inf,) * 3
            continue
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper), prop
        assert answer.value == pytest.approx(float(exact), rel=1e-8, abs=1e-15), prop
        assert answer.upper - answer.lower <= 1e-8 * answer.upper, prop


@pytest.mark.parametrize(("text", "prop", "exact", "options"), ESTIMATES)
def test_estimates_come_close(
    device: Device, tmp_path: Path, text: str, prop: str, exact: float, options: dict[str, object]
) -> None:
    answer = hybrid.check(load_text(tmp_path, text), prop, **ON_DEVICE, **options, epsilon=1e-12, throw=False)
    assert answer.error is None, answer.error
    assert answer.value == pytest.approx(exact, rel=1e-9)
    assert (answer.lower, answer.upper) == (None, None)


def test_windows_of_time_are_the_cpus(device: Device, tmp_path: Path) -> None:
    model = load_text(tmp_path, QUEUE)
    for prop in ("P=? [ F<=1.5 n=3 ]", 'R{"length"}=? [ C<=2 ]', 'R{"length"}=? [ I=1 ]'):
        here, there = (
            hybrid.check(model, prop, engine="explicit", backend=b, throw=False) for b in ("gpu", "cpu")
        )
        assert here.error is None, here.error
        assert here.value == pytest.approx(float(there.value), rel=1e-10)
        assert max(here.lower, there.lower) <= min(here.upper, there.upper)


def test_the_record_names_the_device(device: Device, tmp_path: Path) -> None:
    model = load_text(tmp_path, STAIRS)
    answer = hybrid.check(model, "P=? [ F s=8 ]", **ON_DEVICE)
    record = answer.record()
    assert (record["engine"], record["backend"], record["level"]) == ("explicit", "gpu", None)
    # Components are found on the host's matrix alone.
    assert record["method"] == "optimistic"
    assert record["representation_memory_bytes"] > 0
    # What is not asked for by name stays on the host.
    assert hybrid.check(model, "P=? [ F s=8 ]", engine="explicit").record()["backend"] == "cpu"
    assert CheckOptions(engine="explicit").matrix_backend().name == "cpu"


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_products_and_steps_are_dense_ones(
    device: Device, tmp_path: Path, rng: np.random.Generator, backend: str
) -> None:
    symbolic = load_text(tmp_path, GAMBLER).transitions
    matrix, dense = write_out(symbolic, backend), to_dense(symbolic)
    assert matrix.backend == backend
    n = symbolic.n_rows
    x, b, diagonal, out = rng.random(n), rng.random(n), rng.uniform(1, 2, n), np.empty(n)
    assert matrix.multiply(x, out) is out
    np.testing.assert_allclose(out, dense @ x, rtol=1e-14)
    np.testing.assert_allclose(matrix.multiply(x), dense @ x, rtol=1e-14)
    np.testing.assert_allclose(matrix.row_sums(), dense.sum(axis=1), rtol=1e-14)
    changes = matrix.jacobi_step(x, out, b, diagonal, 0.5)
    expected = 0.5 * x + 0.5 * (dense @ x + b) / diagonal
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    assert changes[0] == pytest.approx(np.abs(expected - x).max())
    assert matrix.shape == (n, n)
    if backend == "gpu":
        there, result = device.xp.asarray(x), device.xp.empty(n)
        assert matrix.multiply(there, result) is result
        np.testing.assert_allclose(to_numpy(result), dense @ x, rtol=1e-14)
        np.testing.assert_allclose(to_numpy(matrix.multiply(there)), dense @ x, rtol=1e-14)
        assert matrix.storage.startswith("c")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_kernels_of_the_format_run_and_no_tiles(tmp_path: Path) -> None:
    model = load_text(tmp_path, GAMBLER)
    with use_device(HostDevice()) as host:
        storage = write_out(model.transitions, "gpu").storage
        hybrid.check(model, "P=? [ F x=goal ]", **ON_DEVICE)
    assert storage == "cmsr"
    assert "multiply_rows" in host.launches, set(host.launches)
    assert not any("tile" in name for name in host.launches)


def test_a_device_without_room_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    model = load_text(tmp_path, GAMBLER)
    with (
        use_device(HostDevice(free=200)) as host,
        pytest.raises(MemoryError, match="200 are free; use engine='hybrid', backend='cpu'"),
    ):
        hybrid.check(model, "P=? [ F x=goal ]", **ON_DEVICE)
    assert not host.launches


def test_the_host_says_when_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("hybrid.matrix.explicit.extract.free_memory_bytes", lambda: 100)
    with pytest.raises(MemoryError, match="100 are available"):
        hybrid.check(load_text(tmp_path, GAMBLER), "P=? [ F x=goal ]", engine="explicit")


def test_other_backends_are_refused(device: Device) -> None:
    with pytest.raises(OptionError, match="not on reference"):
        CheckOptions(engine="explicit", backend="reference")
