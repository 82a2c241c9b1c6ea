"""Answers about chains say where they were computed, and why; formats of the explicit engine by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import hybrid
from gpu_kernels import FORMATS, Device, use_device
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.errors import OptionError
from tests.builders.chain_texts import DIE, GAMBLER, QUEUE, load_text
from tests.gpu_kernels.host_device import COMPILER, HostDevice

WIN = "P=? [ F x=goal ]"
ON_HOST = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with"
)


def reason(tmp_path: Path, prop: str = WIN, text: str = GAMBLER, **options: object) -> tuple[object, str]:
    """Return the backend of an answer and why it is that one, from its record."""
    answer = hybrid.check(load_text(tmp_path, text), prop, **options, throw=False)
    assert answer.error is None, answer.error
    record = answer.record()
    assert record["backend"] == answer.statistics.backend
    assert record["backend_reason"] == answer.statistics.backend_reason
    return record["backend"], record["backend_reason"]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_what_was_asked_for_says_so(tmp_path: Path, backend: str) -> None:
    assert reason(tmp_path, backend=backend) == (backend, "asked for")


def test_auto_names_the_problem_of_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "the card is at home")
    for prop, text, expected in (
        (WIN, GAMBLER, "reference"),
        ("S=? [ n=0 ]", QUEUE, "reference"),
        ("P=? [ F<=2 n=3 ]", QUEUE, "cpu"),
        ("P=? [ X s=1 ]", DIE, "reference"),
    ):
        backend, why = reason(tmp_path, prop, text)
        assert backend == expected
        assert ("before compiled kernels are loaded" in why) == (backend == "reference")
        assert "no GPU: the card is at home" in why, prop


@ON_HOST
def test_auto_says_why_a_device_is_taken_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with use_device(HostDevice()):
        assert reason(tmp_path) == ("cpu", "6 non-zeros are too few for the GPU to be faster")
        monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 1)
        assert reason(tmp_path) == ("gpu", "a device is there, host")
    with use_device(HostDevice(free=100)):
        backend, why = reason(tmp_path)
    assert backend == "cpu"
    assert why == "the vectors of a solution need 288 bytes, and 100 are free on host"


@ON_HOST
@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"engine": "explicit"}, "auto is the cpu with the engine explicit"),
        ({"method": "gauss-seidel"}, "gauss-seidel takes one row after another, which the cpu does"),
        ({"method": "gauss-seidel", "backend": "gpu"}, "gauss-seidel takes one row after another"),
    ],
)
def test_auto_says_why_a_device_is_not_asked(tmp_path: Path, options: dict[str, object], part: str) -> None:
    with use_device(HostDevice()):
        backend, why = reason(tmp_path, **options)
    assert backend == "cpu"
    assert part in why


def test_what_the_graph_decides_runs_nowhere(tmp_path: Path) -> None:
    assert reason(tmp_path, "P=? [ F x=goal | x=0 ]") == (None, None)


@dataclass(frozen=True)
class Sizes:
    """What the account is told of an operator."""

    backend: str
    backend_reason: str
    level: int
    nbytes: int
    storage: None = None


def test_systems_on_several_backends_are_all_told() -> None:
    work = SolveStatistics()
    assert work.backend_reason is None
    work.note("optimistic", Sizes("gpu", "large enough", 3, 100), 10, 0.1, 800)
    work.note("gain", Sizes("cpu", "too few non-zeros", 5, 10), 10, 0.1, 8)
    assert (work.method, work.backend, work.level) == ("gain", "gpu", 3)
    assert work.backend_reason == "large enough; other parts on cpu: too few non-zeros"
    work.note("gain", Sizes("cpu", "no room", 7, 10), 10, 0.1, 1600)
    assert (work.backend, work.level) == ("cpu", 7)
    assert work.backend_reason == "no room; other parts on gpu: large enough"
    work.note("gain", Sizes("cpu", "too few non-zeros", 7, 10), 10, 0.1, 8)
    assert work.backend_reason == "no room; other parts on gpu: large enough"


def test_single_products_count_where_nothing_else_does() -> None:
    work = SolveStatistics()
    work.note("steps", Sizes("cpu", "single", 1, 900), 1, 0.5, 9000, is_product=True)
    work.note("steps", Sizes("cpu", "single", 1, 900), 1, 0.5, 8000, is_product=True)
    assert (work.method, work.backend, work.iterations, work.base_bytes) == ("steps", "cpu", 2, 9000)
    work.note("optimistic", Sizes("gpu", "large enough", 3, 100), 10, 0.1, 800)
    work.note("steps", Sizes("cpu", "single", 1, 900), 1, 0.5, 9000, is_product=True)
    assert (work.method, work.backend, work.level, work.iterations) == ("optimistic", "gpu", 3, 10)
    assert (work.seconds, work.base_bytes, work.representation_bytes) == (0.1, 800, 100)
    assert work.backend_reason == "large enough; other parts on cpu: single"


# ------------------------------------------------------------------ formats


@pytest.mark.parametrize(
    "storage",
    ["msr", "cmsr-wl", "msr-hwl", "cmsr-scan", "sell", pytest.param("cusparse", marks=pytest.mark.gpu)],
)
def test_a_format_by_name_answers_and_is_told(device: Device, tmp_path: Path, storage: str) -> None:
    if device.name == "host" and storage == "cusparse":
        pytest.skip("cuSPARSE runs on a CUDA device only")
    model = load_text(tmp_path, GAMBLER)
    answer = hybrid.check(model, WIN, engine="explicit", backend="gpu", storage=storage)
    assert answer.lower <= 76 / 211 <= answer.upper
    record = answer.record()
    assert (record["storage"], record["level"], record["backend"]) == (storage, None, "gpu")


@ON_HOST
def test_kernels_of_the_named_format_run(tmp_path: Path) -> None:
    launched = {}
    for storage in ("msr", "msr-wl"):
        with use_device(HostDevice()) as host:
            hybrid.check(load_text(tmp_path, GAMBLER), WIN, engine="explicit", backend="gpu", storage=storage)
        launched[storage] = set(host.launches)
    assert "multiply_rows" in launched["msr"]
    assert "multiply_rows" not in launched["msr-wl"], launched["msr-wl"]


def test_formats_are_told_without_a_name(tmp_path: Path) -> None:
    model = load_text(tmp_path, GAMBLER)
    assert hybrid.check(model, WIN, engine="explicit").record()["storage"] == "csr"
    assert hybrid.check(model, WIN, engine="explicit", storage="csr").record()["storage"] == "csr"
    assert hybrid.check(model, WIN, backend="cpu").record()["storage"] is None


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"storage": "msr"}, "the engine is hybrid: choose engine='explicit'"),
        ({"engine": "explicit", "storage": "msr"}, "does not exist on the cpu, which has csr"),
        ({"engine": "explicit", "backend": "cpu", "storage": "sell"}, "or choose backend='gpu'"),
        ({"engine": "explicit", "storage": "dense"}, "expected one of auto, msr, cmsr"),
        ({"engine": "explicit", "storage": "msr-san"}, r"csr on the cpu; did you mean 'msr-scan'\?"),
        ({"engine": "explicit", "storage": "delta-csell"}, "'delta-csell' was taken out, choose 'csell'"),
        ({"engine": "explict"}, r"choose auto, hybrid, explicit or symbolic; did you mean 'explicit'\?"),
        ({"method": "jro"}, r"did you mean 'jor'\?"),
        ({"backend": "refrence"}, r"did you mean 'reference'\?"),
        ({"representation": "row-type"}, r"got 'row-type'; did you mean 'row-types'\?"),
    ],
)
def test_formats_that_do_not_go_are_refused(options: dict[str, str], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        CheckOptions.of(**options)


@ON_HOST
def test_the_hosts_format_does_not_exist_on_the_device() -> None:
    with use_device(HostDevice()):
        with pytest.raises(OptionError, match="does not exist on the gpu, which has auto, msr"):
            CheckOptions.of(engine="explicit", backend="gpu", storage="csr")
        for storage in FORMATS:
            assert CheckOptions.of(engine="explicit", backend="gpu", storage=storage).storage == storage


def test_choices_of_an_mdp_have_one_format(tmp_path: Path) -> None:
    model = load_text(tmp_path, "mdp module m x : [0..1]; [] x=0 -> (x'=1); [] x=1 -> true; endmodule")
    with use_device(HostDevice()), pytest.raises(OptionError, match="a row a choice: leave the storage out"):
        hybrid.check(model, "Pmax=? [ F x=1 ]", engine="explicit", backend="gpu", storage="msr")
