"""Programs that measure on a card, run at small sizes on the emulator of the tests; records are rendered."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from benchmarks.library import device as library_device
from benchmarks.library import paper_solutions, product_rivals
from benchmarks.library.formats import measure_formats
from benchmarks.library.models import example
from benchmarks.programs import (
    cards,
    explicit_formats,
    gpu_product,
    mdp_sweep,
    paper_tables,
    scc_mec,
    streamed_parts,
)
from gpu_kernels import (
    FORMATS,
    Device,
    IterationState,
    Mode,
    Step,
    compress,
    current_device,
    use_device,
)
from hybrid.base.communicators import in_threads
from hybrid.checking.in_parts import part_of
from hybrid.matrix.explicit import explicit_matrix
from hybrid.matrix.gpu.distributed_space import run_distributed
from mtbdd.base.communicator import Communicator
from tests.benchmarks.support import NEEDS_COMPILER, ROOT, WHERE, options, rendered
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice

pytestmark = NEEDS_COMPILER


def timer(call: Callable[[], None]) -> float:
    call()
    return 1e-3


# ------------------------------------------------------------------ products


def test_gpu_product(
    record_of: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    events = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None))
    names = ("asarray", "empty", "empty_like", "ones_like", "arange")
    like_cupy = SimpleNamespace(cuda=events, **{name: getattr(np, name) for name in names})
    monkeypatch.setitem(sys.modules, "cupy", like_cupy)

    def no_room(*arguments: Any, **options: Any) -> Any:
        raise MemoryError("needs more than there is")

    def formats(device: Any, csr: Any, x: Any, y: Any, names: list[str], timer: Any) -> Any:
        if names != ["cusparse"]:
            return measure_formats(device, csr, x, y, names, timer)
        both = (("default", 3e-3), ("csr-1", 2e-3))
        return [{"format": f"cusparse {name}", "seconds": seconds, "bytes": 7, "difference": 0.0,
                 "preprocessed": True} for name, seconds in both]  # fmt: skip

    for module in (gpu_product, product_rivals):
        monkeypatch.setattr(module, "best_seconds", lambda cupy, call: timer(call))
    monkeypatch.setattr(product_rivals, "measure_formats", formats)
    monkeypatch.setitem(FORMATS, "csell", SimpleNamespace(from_csr=no_room))
    monkeypatch.setattr(gpu_product, "QUICK", (("kanban", "t=1"),))
    monkeypatch.setattr(gpu_product, "require_device", lambda: None)
    # The stand-in for CuPy knows nothing of cards.
    monkeypatch.setattr(library_device, "is_available", lambda: False)
    with use_device(HostDevice()):
        record = record_of(gpu_product, "--quick", "--levels", "3")
    (row,) = record["rows"]
    assert "error" not in row
    assert row["chosen_over_best"] == 1.0
    assert row["chosen_within_10_percent"]
    assert row["difference"] < 1e-13
    assert row["csell_error"] == "needs more than there is"
    assert (row["cusparse_seconds"], row["cusparse_preprocessed"]) == (2e-3, True)
    assert row["cusparse_algorithms"] == {"cusparse default": 3e-3, "cusparse csr-1": 2e-3}
    assert [b["is_min_memory"] for b in row["baseline"]].count(True) == 1
    assert any(b["is_min_time"] for b in row["baseline"])
    assert all(b["difference"] < 1e-13 for b in row["baseline"])
    printed = capsys.readouterr().out
    assert "2.00 times as fast as cuSPARSE's CSR, 1.00 times" in printed
    assert "| kanban t=1 | 160 | 616 |" in rendered("gpu_product", record)


def test_levels_that_are_measured_are_spread() -> None:
    assert gpu_product.level_count("all") is None
    assert gpu_product.level_count("5") == 5
    ranked = [(k, None, 1.0 + k / 100) for k in range(30)]
    assert [level[0] for level in gpu_product.spread_levels(ranked, 30)] == list(range(30))
    assert len(gpu_product.spread_levels(ranked, 4)) == 4


# ------------------------------------------------------------------ explicit formats


def test_explicit_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explicit_formats, "copy_bandwidth", lambda *arguments: 1e9)
    monkeypatch.setattr(explicit_formats, "QUICK", (("tandem", "c=3"), ("herman", "N=5")))
    chosen, names = options(out=tmp_path / "record.json"), ("msr", "cmsr-wl", "csell", "cusparse")
    with use_device(HostDevice()) as device:
        explicit_formats.run(chosen, device, timer, names)
    record = json.loads(chosen.out.read_text())
    for row in record["rows"]:
        measured = [f for f in row["formats"] if "seconds" in f]
        assert [f["format"] for f in measured] == list(names[:3])
        for found in measured:
            assert found["difference"] < 1e-14
            assert found["traffic_bytes"] >= found["bytes"]
            assert found["share_of_copy"] == pytest.approx(found["bytes_per_second"] / 1e9)
            assert found["elements_an_entry"] >= 1.0
        (failed,) = [f for f in row["formats"] if "error" in f]
        assert "CUDA device only" in failed["error"]
    herman = record["rows"][1]
    assert (herman["states"], herman["entries"]) == (32, 3**5 + 1)
    assert "| tandem c=3 |" in rendered("explicit_formats", record)


def test_every_format_is_measured_or_says_why_not(device: Device) -> None:
    names = [name for name in FORMATS if name != "cusparse"]
    csr = streamed_parts.synthetic_matrix(device.xp, 500, 6)
    x, expected = device.xp.ones(500), device.xp.empty(500)
    FORMATS["msr"].from_csr(device, *csr).multiply(device, x, expected)
    rows = list(measure_formats(device, csr, x, expected, names, timer))
    assert [row["format"] for row in rows] == names
    assert max(row["difference"] for row in rows) < 1e-14
    broken = (csr[0], csr[1] + 500, csr[2])
    (row,) = measure_formats(device, broken, x, expected, ["sell"], timer)
    assert "columns: expected" in row["error"]


def test_synthetic_matrix_is_a_matrix_of_few_values(device: Device) -> None:
    starts, columns, values = (to_numpy(a) for a in streamed_parts.synthetic_matrix(device.xp, 1000, 8))
    matrix = scipy.sparse.csr_matrix((values, columns, starts), shape=(1000, 1000))
    assert matrix.has_canonical_format
    assert 3 < matrix.nnz / 1000 < 8
    assert len(np.unique(values)) == 8
    assert len(np.unique(columns - np.repeat(np.arange(1000), np.diff(starts)))) > 5


def test_copy_bandwidth_counts_both_directions(device: Device) -> None:
    assert explicit_formats.copy_bandwidth(device, lambda work: (work(), 2.0)[1], size=800) == 800.0


# ------------------------------------------------------------------ the SpMV papers


def test_paper_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    formats = ("msr", "msr-wl", "msr-hwl", "cmsr", "cusparse")
    monkeypatch.setattr(paper_tables, "PAPER_FORMATS", formats)
    monkeypatch.setattr(paper_solutions, "PROBES", {"cpu": (1, 3), "gpu": (2, 4)})
    chosen = options(only=["herman"], tables="spmv,solve", run_seconds=1e3)
    with use_device(HostDevice()):
        records = paper_tables.run(chosen)
    row, solve = records.measured
    assert row["states"] == row["paper_states"] == 32
    for order in ("original", "bfs"):
        found = row[order]["formats"]
        assert set(found) == set(formats)
        assert "CUDA device only" in found.pop("cusparse")["error"]
        assert all(f["difference"] < 1e-14 for f in found.values())
        assert found["msr"]["table_seconds"] == 245 * found["msr"]["seconds"]
    assert solve["hybrid_gpu"]["status"] == "converged"
    for name in ("msr", "msr-scan", "auto", "hybrid_cpu", "scipy_csr_one_core"):
        assert not solve[name]["extrapolated"]
        assert solve[name]["iterations"] == solve["hybrid_gpu"]["iterations"]
        assert solve[name]["difference"] < 1e-12
    text = rendered("paper_tables", {**records.facts, "rows": [row, solve]})
    assert "| herman 5 |" in text
    assert "~" not in text.split("times extrapolated")[1]


def test_bounded_until_is_extrapolated_where_it_would_take_long() -> None:
    row: dict[str, Any] = {"table": "bounded", "model": "tandem", "size": 3, "paper_seconds": (0.6, 0.79)}
    with use_device(HostDevice()):
        paper_solutions.measure_bounded(row, 3, 0.0)
    assert row["hybrid_gpu"]["value"] == pytest.approx(row["explicit_gpu"]["value"], abs=1e-6)
    assert row["hybrid_cpu"]["extrapolated"]
    assert row["hybrid_cpu"]["measured_iterations"] < row["hybrid_cpu"]["iterations"]
    text = rendered("paper_tables", {**WHERE, "rows": [row]})
    assert "| tandem 3 | 28 |" in text
    assert "| ~" in text


def test_streamed_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_parts, "QUICK", (("kanban", 1),))
    monkeypatch.setattr(streamed_parts, "REPEATS", 1)
    chosen = options(only=["kanban"], limit=[1 << 16, 1 << 18], out=tmp_path / "record.json")
    with use_device(HostDevice()):
        streamed_parts.run(chosen)
    record = json.loads(chosen.out.read_text())
    assert [row["limit"] for row in record["rows"]] == chosen.limit
    for row in record["rows"]:
        assert "error" not in row
        assert row["difference"] == 0.0
        # On the host everything happens in turn.
        assert row["products_within_copies"] == 0.0
        assert row["buffer_bytes"] <= row["limit"] or row["parts"] == 1
        begins = [part[0] for part in row["time_line"]]
        assert begins == sorted(begins)
    assert "| kanban 1 |" in rendered("streamed_parts", record)


def test_overlap_of_copies_and_products() -> None:
    times = ((0.0, 4.0, 6.0), (4.0, 8.0, 9.0), (8.5, 9.5, 11.5))
    found = streamed_parts.overlap([streamed_parts.PartTimes(*part) for part in times])
    assert found["traced_seconds"] == 11.5
    assert found["traced_copy_seconds"] == 9.0
    assert found["traced_product_seconds"] == 5.0
    # All of the first product, half of the second one's second, nothing of the last.
    assert found["traced_both_seconds"] == pytest.approx(2.5)
    assert found["products_within_copies"] == pytest.approx(0.5)
    assert streamed_parts.covered([]) == 0.0


@pytest.mark.nightly
def test_an_explicit_matrix_in_parts() -> None:
    model = example("kanban", 1)
    matrix = explicit_matrix(model.submatrix(model.index, model.index, diagonal=False)).to_scipy()
    rates, start = model.exit_rates(model.index), 1.0 + np.arange(model.n_states) % 7

    def run(alike: Communicator) -> tuple[np.ndarray, np.ndarray, Any]:
        own = part_of(model, alike)
        product, halo, own_rates, _ = cards.explicit_steps(own)
        places = np.flatnonzero(model.indicator(own.index.states & own.manager.share.own))
        x, out = start[places], np.empty(len(places))
        state = IterationState.create(current_device())
        step = Step(Mode.JACOBI, own_rates, compress(current_device(), None), 0.9, state)
        run_distributed(current_device(), product, halo)(step, x, out)
        numbers = cards._together(own, "host", "explicit")
        return places, out, numbers

    with use_device(HostDevice()):
        found = in_threads(2, run)
    expected = 0.1 * start + 0.9 * (matrix @ start) / rates
    assert sorted(np.concatenate([places for places, *_ in found])) == list(range(model.n_states))
    for places, out, ((own, received, *_), numbers) in found:
        np.testing.assert_allclose(out, expected[places], rtol=1e-13)
        assert own == len(places) and 0 < received < own
        assert numbers["seconds"] > 0
    row = {
        "model": "herman N=15", "states": 160, "received": [36.0, 38.0], "alone_seconds": 2e-3,
        "host": {"seconds": 1e-3, "exchanging_seconds": 5e-4},
    }  # fmt: skip
    text = rendered("cards_explicit", {**WHERE, "cards": 2, "rows": [row]})
    assert "| herman N=15 | 160 | 36 / 38 | 2.00 | 1.00 | host | 0.500 | 0.492 (12.84) |" in text
    assert "| 2.00 (1.06) |" in text


# ------------------------------------------------------------------ decision processes


def test_sweeps_are_measured_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdp_sweep, "REPEATS", 1)
    monkeypatch.setattr(mdp_sweep, "RECORDED", 2)
    monkeypatch.setattr(mdp_sweep, "LANES", ((1, 1),))
    case = mdp_sweep.QUICK[1]
    row: dict[str, Any] = {"model": case.title, "constants": "H=8,M=3"}
    with use_device(HostDevice()):
        mdp_sweep.measure(row, case, with_cpu=True)
    assert max(row["difference"], row["scan_difference"]) <= 1e-12
    assert row["scan_bytes"] > row["explicit_bytes"]
    assert row["transitions"] == 410
    assert min(row[key] for key in ("seconds", "explicit_seconds", "cpu_hybrid_seconds", "bytes")) > 0
    assert min(row[key] for key in ("predicted_seconds", "predicted_set_up_seconds")) > 0
    row |= {"seconds": 1e-3, "explicit_seconds": 3e-3, "scan_seconds": 5e-3, "set_up_seconds": 4.0}
    row |= {"predicted_seconds": 2e-3, "predicted_set_up_seconds": 0.5}
    text = rendered("mdp_sweep", {**WHERE, "rows": [row]})
    assert "| 1.00 | 3.00 | 5.00 |" in text
    del row["scan_seconds"]  # as of older records
    assert "M2 ms" not in rendered("mdp_sweep", {**WHERE, "rows": [row]})
    assert "| 4.0 | 2.00 | 0.50 | 500 |" in text
    given = mdp_sweep.given_case(f"{ROOT / 'examples' / 'coin.prism'}@K=2:x=1")
    assert replace(given, path=None) == mdp_sweep.Case("coin", None, {"K": 2}, "x=1")
    with pytest.raises(Exception, match="with a model file, got 'coin'"):
        mdp_sweep.given_case("coin")


@pytest.mark.nightly
def test_components_are_measured_and_rendered(tmp_path: Path) -> None:
    variants = ["auto", "FBT1,7", "FBT1,1", "FBT3,7", "attractor", "attractor, joins"]
    examples = ROOT / "examples"
    chosen = options(
        cases=[f"{examples}/jobs.prism@N=2", f"{examples}/tandem.prism@c=2"], models=None, variants=variants,
        repeats=1, limit=60.0, out=tmp_path / "record.json",
    )  # fmt: skip
    with use_device(HostDevice()) as device:
        scc_mec.run(chosen, device)
        record = json.loads(chosen.out.read_text())
        jobs, tandem = record["rows"]
        assert (tandem["name"], tandem["sccs"], tandem["mecs"], tandem["largest_scc"]) == (
            "tandem.prism@c=2",
            1,
            1,
            15,
        )
        assert jobs["sccs"] > jobs["mecs"] > 0
        assert list(jobs["scc"]) == variants[:4]
        record["device"] = {"name": "a card"}
        text = rendered("scc_mec", record)
        assert "**Figure 7" in text
        assert "faster than one thread of today's CPU on 0 of 2 graphs" in text
        assert "a card" in text
        # The first published variant over the limit keeps the others from being begun; the record says so.
        chosen.limit, chosen.cases = 0.0, chosen.cases[1:]
        (limited,) = scc_mec.run(chosen, device).rows
        assert "skipped" not in limited["scc"]["FBT1,7"]
        assert limited["scc"]["FBT1,1"]["skipped"].startswith("FBT1,7 took")
        chosen.seconds = -1.0
        (late,) = scc_mec.run(chosen, device).rows
    assert late["error"].startswith("not begun")
    chosen.cases, chosen.models = [], tmp_path
    assert scc_mec.cases_of(chosen) == [str(examples / case) for case in scc_mec.DEFAULT]
