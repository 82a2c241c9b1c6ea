"""`hybrid graph`: table, JSON, backends that agree, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_kernels import use_device
from hybrid.__main__ import main
from tests.gpu_kernels.host_device import COMPILER, HostDevice

# Two silent moves form a ring of 0 and 1; a coin leaves it for 2 or 3; 3 is the end and the only loop.
MODEL = """mdp
module m
  x : [0..3];
  [] x<=1 -> (x'=1-x);
  [throw] x=1 -> 0.5:(x'=2) + 0.5:(x'=3);
  [] x=2 -> (x'=3);
  [] x=3 -> true;
endmodule
"""

SCC = {"count": 3, "trivial": 2, "largest": 2}
MEC = {"count": 2, "trivial": 1, "largest": 2}
GRAPH_KEYS = set(
    (
        "backend backend_reason variant average_out_degree maximum_out_degree graph_seconds graph_bytes "
        "transfer_seconds scc mec"
    ).split()
)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "ring.prism"
    path.write_text(MODEL)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["graph", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def graph_record(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert set(record) == {"model", "graph"}
    assert [record["model"][name] for name in ("states", "choices", "transitions")] == [4, 5, 6]
    assert set(record["graph"]) == GRAPH_KEYS
    return dict(record["graph"])


def counts(record: dict[str, Any]) -> dict[str, int]:
    assert record["seconds"] > 0
    return {k: v for k, v in record.items() if k != "seconds"}


@pytest.mark.parametrize("variant", ["auto", "tarjan", "scipy"])
def test_cpu_counts_components(capsys: pytest.CaptureFixture[str], model: str, variant: str) -> None:
    found = graph_record(capsys, model, "--backend", "cpu", "--variant", variant)
    assert (found["backend"], found["variant"]) == ("cpu", variant)
    assert (found["average_out_degree"], found["maximum_out_degree"]) == (1.5, 3)
    assert found["graph_bytes"] > 0
    assert found["graph_seconds"] > 0
    assert found["transfer_seconds"] is None
    assert counts(found["scc"]) == SCC
    assert counts(found["mec"]) == MEC


def test_symbolic_counts_components_without_a_graph(capsys: pytest.CaptureFixture[str], model: str) -> None:
    found = graph_record(capsys, model, "--backend", "symbolic")
    assert found["maximum_out_degree"] is None
    assert found["graph_bytes"] is None
    assert counts(found["scc"]) == SCC
    assert counts(found["mec"]) == MEC


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
@pytest.mark.parametrize("variant", ["auto", "bfbt"])
def test_gpu_counts_components(capsys: pytest.CaptureFixture[str], model: str, variant: str) -> None:
    with use_device(HostDevice()):
        found = graph_record(capsys, model, "--backend", "gpu", "--variant", variant)
        assert found["transfer_seconds"] > 0
        assert counts(found["scc"]) == SCC
        assert counts(found["mec"]) == MEC
        found = graph_record(capsys, model)
        assert (found["backend"], found["backend_reason"]) == ("gpu", "a device is there, host")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_auto_goes_on_on_the_cpu_where_the_device_has_no_room(
    capsys: pytest.CaptureFixture[str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.analysis.graphs.components._VECTORS", 1 << 20)
    with use_device(HostDevice(free=1 << 20)):
        found = graph_record(capsys, model)
        assert found["backend"] == "cpu"
        assert found["backend_reason"].startswith("the device has no room: decomposing")
        assert found["transfer_seconds"] is None
        assert counts(found["scc"]) == SCC
        for asked in (["--backend", "gpu"], ["--variant", "fbt"]):
            status, _, err = run(capsys, model, *asked)
            assert status == 1
            assert "use --backend cpu or symbolic" in err


def test_one_decomposition_alone(capsys: pytest.CaptureFixture[str], model: str) -> None:
    for backend in ("cpu", "symbolic"):
        found = graph_record(capsys, model, "--scc", "--backend", backend)
        assert found["mec"] is None
        assert counts(found["scc"]) == SCC
        found = graph_record(capsys, model, "--mec", "--backend", backend)
        assert found["scc"] is None
        assert counts(found["mec"]) == MEC


def test_plain_text_shows_the_columns(capsys: pytest.CaptureFixture[str], model: str) -> None:
    status, out, _ = run(capsys, model, "--backend", "cpu")
    assert status == 0
    assert "out-degree   1.50 on average, 3 at most" in out
    assert "SCCs         3, 2 of them trivial, the largest with 2 states, in" in out
    assert "MECs         2, 1 of them trivial, the largest with 2 states, in" in out
    assert "choices      5" in out
    assert "variant      auto\nbackend      cpu: asked for\n" in out
    status, out, _ = run(capsys, model, "--backend", "symbolic", "--mec")
    assert "1.50 on average, - at most" in out
    assert "SCCs" not in out


def test_chains_have_end_components_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "walk.prism"
    path.write_text(
        "dtmc module m x : [0..5]; [] x>0 & x<5 -> 0.5:(x'=x-1) + 0.5:(x'=x+1); endmodule init true endinit"
    )
    for backend in ("cpu", "symbolic"):
        status, out, err = run(capsys, str(path), "--backend", backend, "--json")
        record = json.loads(out)
        assert status == 0
        assert "warning" in err
        assert counts(record["graph"]["scc"]) == {"count": 3, "trivial": 2, "largest": 4}
        assert counts(record["graph"]["mec"]) == {"count": 2, "trivial": 2, "largest": 1}


def test_without_a_device_gpu_is_refused_and_auto_takes_the_cpu(
    capsys: pytest.CaptureFixture[str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.app.cli.graph.device_problem", lambda: "there is no card")
    status, out, err = run(capsys, model, "--backend", "gpu")
    assert (status, out) == (2, "")
    assert "'gpu' cannot run here: there is no card; or use 'cpu' or 'symbolic'" in err
    found = graph_record(capsys, model)
    assert (found["backend"], found["backend_reason"]) == ("cpu", "no GPU: there is no card")


@pytest.mark.parametrize(
    ("backend", "variant", "message"),
    [
        ("cpu", "fbt", "expected auto, scipy, tarjan with the backend cpu, got 'fbt'"),
        ("symbolic", "tarjan", "expected auto with the backend symbolic, got 'tarjan'"),
    ],
)
def test_variant_of_another_backend_is_refused(
    capsys: pytest.CaptureFixture[str], model: str, backend: str, variant: str, message: str
) -> None:
    status, out, err = run(capsys, model, "--backend", backend, "--variant", variant)
    assert (status, out) == (2, "")
    assert message in err


def test_a_graph_that_does_not_fit_is_refused(
    capsys: pytest.CaptureFixture[str], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.analysis.graphs.components.free_memory_bytes", lambda: 10)
    status, _, err = run(capsys, model, "--backend", "cpu")
    assert status == 1
    assert "10 are available; decompose it symbolically" in err
