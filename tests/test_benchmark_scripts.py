"""Benchmark scripts run on a machine without a device, and their records are rendered."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gpu_kernels import use_device
from hybrid.solvers import Solution, Status
from tests.gpu_kernels.host_device import COMPILER, HostDevice

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import scripts by name, from their own folder."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(FOLDER.parent / "examples"), *sys.path])
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(FOLDER)):
            del sys.modules[name]


def rendered(scripts: Any, name: str, record: dict[str, Any]) -> str:
    # As it comes from a file.
    text = scripts("render").SECTIONS[name](json.loads(json.dumps(record)))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    width = 0
    for line, following in zip(rows, [*rows[1:], ""], strict=True):
        if following.startswith("| ---"):
            width = line.count("|")
        assert line.count("|") == width, line
    return str(text)


def test_thesis_tables_on_the_cpu(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = scripts("thesis_tables"), tmp_path / "record.json"
    arguments = ["--backend", "cpu", "--sizes", "kanban=1,2", "--sizes", "brp=2", "--sizes", "tandem=3"]
    chosen = ["--only", "kanban", "--only", "brp", "--only", "tandem"]
    monkeypatch.setattr(sys, "argv", ["thesis_tables.py", *arguments, *chosen, "--out", str(out)])
    script.main()
    record = json.loads(out.read_text())
    assert [(row["study"], row["size"]) for row in record["rows"]] == [
        ("brp", 2), ("tandem", 3), ("kanban", 2), ("kanban", 1),
    ]  # fmt: skip
    for row in record["rows"]:
        assert "error" not in row
        assert row["agreement"]["agrees"]
        assert not row["cpu"]["extrapolated"]
        assert row["gpu_min_time"]["base_memory_bytes"] >= 24 * 4
    text = rendered(scripts, "thesis_tables", record)
    assert "**kanban** (figure 5.5)" in text
    assert "agrees" in capsys.readouterr().out


def test_thesis_tables_extrapolate_and_say_so(scripts: Any) -> None:
    script = scripts("thesis_tables")
    study = script.STUDIES["tandem"]
    options = argparse.Namespace(backend="cpu", cpu_seconds=1e-9, known={}, runs=1, repeat_seconds=0.0)
    row: dict[str, Any] = {"figure": "5.9", "study": "tandem", "size": 31, "thesis_seconds": None}
    script.measure(row, study, 31, options)
    assert row["cpu"]["extrapolated"]
    assert row["cpu"]["value"] is None
    assert row["cpu"]["measured_iterations"] < row["cpu"]["iterations"]
    assert row["agreement"] is None
    assert "~" in script.text(row)


def test_largest_sizes_and_the_order_of_rows(scripts: Any) -> None:
    script = scripts("thesis_tables")
    largest = script.chosen_cases(argparse.Namespace(sizes=[], only=None, largest=True))
    assert dict(largest) == {
        "fms": 10, "kanban": 8, "polling-before": 20, "polling-s1": 20, "cluster": 512, "tandem": 4095,
        "brp": 4096,
    }  # fmt: skip
    whole = script.chosen_cases(argparse.Namespace(sizes=[], only=None, largest=False))
    assert whole[: len(largest)] == largest
    assert len(whole) == len(set(whole)) == 33
    with pytest.raises(SystemExit, match="expected STUDY=N,M"):
        script.chosen_cases(argparse.Namespace(sizes=["nothing=3"], only=None, largest=False))


def test_density_sweep_on_the_cpu(scripts: Any, tmp_path: Path) -> None:
    script = scripts("density_sweep")
    options = argparse.Namespace(
        out=tmp_path / "record.json", seconds=None, parts="random,chains,twins,large", trials=2, quick=True,
        solve_seconds=1.0, resume=False,
    )  # fmt: skip
    script.run(options, ["cpu"])
    record = json.loads(options.out.read_text())
    assert not [row for row in record["rows"] if "error" in row]
    for row in record["rows"]:
        jacobi = next(run for run in row["runs"] if run["method"] == "jacobi")
        assert jacobi["statuses"] == ["converged"]
        if row["part"] == "twins" or row.get("model") == "biased_die" and "paper" in row:
            assert [row["n"], row["entries"]] == row["paper"]
    assert "bicgstab cpu" in rendered(scripts, "density_sweep", record)


@pytest.mark.parametrize(("needed", "expected"), [(10_000, 2_000), (300, 200_000), (1_500, 200_000)])
def test_a_first_run_that_compiles_does_not_limit_the_iterations(
    scripts: Any, needed: int, expected: int
) -> None:
    calls: list[int] = []

    def solve(limit: int) -> Solution:
        calls.append(limit)
        done, status = (limit, Status.MAX_ITERATIONS) if limit < needed else (needed, Status.CONVERGED)
        seconds = 1e-3 * done + (5.0 if len(calls) == 1 else 0.0)
        return Solution(np.zeros(1), status, done, seconds, 1.0, 1.0)

    assert scripts("density_sweep").fitting_iterations(solve, 2.0) == expected
    # A little more than twice the time that a solution may take.
    assert sum(min(limit, needed) for limit in calls) < 2.5 * 2_000


def test_what_fails_and_what_is_not_begun_stay_in_the_record(
    scripts: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = scripts("runs").Records("trial", tmp_path / "record.json", 100.0)

    def fail(row: dict[str, Any]) -> None:
        row["half"] = 1
        raise ValueError("no luck")

    records.run({"name": "a"}, fail)
    records._end = 0.0
    records.run({"name": "b"}, fail)
    first, second = json.loads((tmp_path / "record.json").read_text())["rows"]
    assert (first["error"], first["half"]) == ("ValueError: no luck", 1)
    assert second["error"].startswith("not begun")
    assert "no luck" in capsys.readouterr().err


def test_a_record_is_gone_on_with_but_not_elsewhere(scripts: Any, tmp_path: Path) -> None:
    runs, out = scripts("runs"), tmp_path / "record.json"
    measured: list[str] = []

    def trial(name: str) -> dict[str, Any]:
        def measure(row: dict[str, Any]) -> None:
            # A stop here would lose nothing: the row is in the file already.
            assert json.loads(out.read_text())["rows"][-1]["error"] == "stopped before its end"
            measured.append(name)
            row["value"] = 1 / (name != "fails")

        return records.run({"name": name, "sizes": (1, 2)}, measure)  # type: ignore[no-any-return]

    records = runs.Records("trial", out, epsilon=1e-6)
    trial("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs.traceback, "print_exc", lambda: None)
        trial("fails")
    records = runs.Records("trial", out, resume=True, epsilon=1e-6)
    assert trial("first")["value"] == 1
    trial("third")
    assert measured == ["first", "fails", "third"]
    assert [row["name"] for row in json.loads(out.read_text())["rows"]] == ["first", "third"]
    with pytest.raises(SystemExit, match="measured with another epsilon; write to another file"):
        runs.Records("trial", out, resume=True, epsilon=1e-8)


NO_COMPILER = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with"
)


@NO_COMPILER
def test_paper_tables_on_an_emulated_device(scripts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script, solutions = scripts("paper_tables"), scripts("paper_solutions")
    formats = ("msr", "msr-wl", "msr-hwl", "cmsr", "cusparse")
    monkeypatch.setattr(script, "PAPER_FORMATS", formats)
    monkeypatch.setattr(script, "product_seconds", lambda device, multiply: multiply() or 1e-3)
    monkeypatch.setattr(solutions, "PROBES", {"cpu": (1, 3), "gpu": (2, 4)})
    options = argparse.Namespace(
        only=["herman"], tables="spmv,solve", seconds=None, run_seconds=1e3, quick=True, out=None,
        resume=False, all_formats=False,
    )  # fmt: skip
    with use_device(HostDevice()):
        records = script.run(options)
    row, solve = records.rows
    assert "error" not in row
    assert row["states"] == row["paper_states"] == 32
    for order in ("original", "bfs"):
        assert set(row[order]["formats"]) == set(formats)
        assert "CUDA device only" in row[order]["formats"].pop("cusparse")["error"]
        assert all(f["difference"] < 1e-14 for f in row[order]["formats"].values())
    assert "error" not in solve
    assert solve["hybrid_gpu"]["status"] == "converged"
    for name in ("msr", "msr-scan", "auto", "hybrid_cpu", "scipy_csr_one_core"):
        assert not solve[name]["extrapolated"]
        assert solve[name]["iterations"] == solve["hybrid_gpu"]["iterations"]
        assert solve[name]["difference"] < 1e-12
    text = rendered(scripts, "paper_tables", {**records.facts, "rows": [row, solve]})
    assert "| herman 5 |" in text
    assert "~" not in text.split("times extrapolated")[1]


@NO_COMPILER
def test_bounded_until_is_extrapolated_where_it_would_take_long(scripts: Any) -> None:
    script = scripts("paper_solutions")
    row: dict[str, Any] = {"table": "bounded", "model": "tandem", "size": 3, "paper_seconds": (0.6, 0.79)}
    with use_device(HostDevice()):
        script.measure_bounded(row, 3, 0.0)
    assert row["hybrid_gpu"]["value"] == pytest.approx(row["explicit_gpu"]["value"], abs=1e-6)
    assert row["hybrid_cpu"]["extrapolated"]
    assert row["hybrid_cpu"]["measured_iterations"] < row["hybrid_cpu"]["iterations"]
    text = rendered(scripts, "paper_tables", {"environment": ENVIRONMENT, "device": None, "rows": [row]})
    assert "| tandem 3 | 28 |" in text
    assert "| ~" in text


@NO_COMPILER
def test_streamed_parts_on_an_emulated_device(scripts: Any, tmp_path: Path) -> None:
    script = scripts("streamed_parts")
    options = argparse.Namespace(
        only=["kanban"], limit=[1 << 16, 1 << 18], seconds=None, quick=True, resume=False,
        out=tmp_path / "record.json",
    )  # fmt: skip
    script.QUICK, script.REPEATS = (("kanban", 1),), 1
    with use_device(HostDevice()):
        script.run(options)
    record = json.loads(options.out.read_text())
    assert [row["limit"] for row in record["rows"]] == options.limit
    for row in record["rows"]:
        assert "error" not in row
        assert row["difference"] == 0.0
        # On the host everything happens in turn.
        assert row["products_within_copies"] == 0.0
        assert row["buffer_bytes"] <= row["limit"] or row["parts"] == 1
        begins = [part[0] for part in row["time_line"]]
        assert begins == sorted(begins)
    assert "| kanban 1 |" in rendered(scripts, "streamed_parts", record)


def test_overlap_of_copies_and_products(scripts: Any) -> None:
    script = scripts("streamed_parts")
    times = ((0.0, 4.0, 6.0), (4.0, 8.0, 9.0), (8.5, 9.5, 11.5))
    found = script.overlap([script.PartTimes(*part) for part in times])
    assert found["traced_seconds"] == 11.5
    assert found["traced_copy_seconds"] == 9.0
    assert found["traced_product_seconds"] == 5.0
    # All of the first product, half of the second one's second, nothing of the last.
    assert found["traced_both_seconds"] == pytest.approx(2.5)
    assert found["products_within_copies"] == pytest.approx(0.5)
    assert script.covered([]) == 0.0


@NO_COMPILER
def test_explicit_formats_on_an_emulated_device(scripts: Any, tmp_path: Path) -> None:
    script = scripts("explicit_formats")
    script.copy_bandwidth, script.QUICK = lambda *arguments: 1e9, (("tandem", "c=3"),)
    options = argparse.Namespace(
        only=None, seconds=None, quick=True, resume=False, out=tmp_path / "record.json"
    )
    names = script.formats_of(["msr", "cmsr-wl", "cusparse"])

    def timer(call: Any) -> float:
        call()
        return 1e-3

    with use_device(HostDevice()) as device:
        script.run(options, device, timer, names, [(50, 4)])
    record = json.loads(options.out.read_text())
    model, synthetic = record["rows"]
    for row in (model, synthetic):
        assert [f["format"] for f in row["formats"] if "seconds" in f] == ["msr", "cmsr-wl"]
        assert all(f["difference"] < 1e-14 for f in row["formats"] if "seconds" in f)
    assert "| tandem c=3 |" in rendered(scripts, "explicit_formats", record)


def test_records_in_the_repository_are_rendered(scripts: Any) -> None:
    for name in scripts("render").SECTIONS:
        path = FOLDER / "results" / f"{name}.json"
        if path.exists():
            assert rendered(scripts, name, json.loads(path.read_text())).startswith("## ")


def test_tables_in_other_pages_are_those_of_the_records(scripts: Any) -> None:
    """`python benchmarks/render.py` makes them so."""
    render, blocks = scripts("render"), scripts("render_blocks")
    for (page, block), (name, text) in blocks.BLOCKS.items():
        written, record = (FOLDER.parent / "docs" / page).read_text(), render.load(name)
        if record is not None:
            assert blocks.replace_block(written, block, text(record)) == written, page
    for page in ("no markers", "<!-- end: a --> <!-- rendered: a -->"):
        with pytest.raises(ValueError, match="once each, in this order"):
            blocks.replace_block(page, "a", "text")


def test_gains_in_the_readme_are_those_of_the_records(scripts: Any) -> None:
    load = scripts("render").load
    text = (FOLDER.parent / "README.md").read_text().replace("\n", " ")
    on_cpu = load("cpu_iteration")["geometric_mean_speedup"]
    assert f"{on_cpu:.1f} times as fast as SciPy's CSR" in text
    (_, (on_gpu, *_)), *_ = scripts("render_gpu").mean_gains(load("gpu_product")["rows"])
    assert f"{on_gpu:.1f} times as fast as cuSPARSE CSR" in text
    for row in load("symbolic_build")["rows"]:
        assert row["seconds"] < row.get("prism_seconds", float("inf")), row
    (whole,) = load("whole_run")["rows"]
    assert f"answered in {whole['wall_seconds']:.0f} seconds" in text
    sweeps = [row["speedup"] for row in load("mdp_sweep")["rows"]]
    gains = f"{min(sweeps):.1f} to {max(sweeps):.1f} times as fast as"
    assert gains in text
    assert gains in (FOLDER.parent / "docs" / "gpu.md").read_text().replace("\n", " ")


def test_pages_link_to_records_that_are_there() -> None:
    root = FOLDER.parent
    for page in (root / "README.md", *(root / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)]*\.json)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_distance_from_the_byte_traffic_is_rendered(scripts: Any) -> None:
    def entry(name: str, share: float) -> dict[str, Any]:
        return {"format": name, "seconds": 1e-3, "share_of_copy": share, "traffic_bytes": 4_000_000,
                "elements_an_entry": 1.5}  # fmt: skip

    formats = [entry("msr", 0.95), entry("msr-wl", 0.5), entry("cmsr-scan", 0.004)]
    formats.append({"format": "cmsr", "error": "no room"})
    row = {"model": "tandem", "constants": "c=7", "states": 100_000, "entries": 400_000, "formats": formats}
    late = {"model": "fms", "constants": "n=2", "error": "not begun: the time was over"}
    record = {"environment": ENVIRONMENT, "device": None, "copy_bytes_per_second": 1e12, "rows": [row, late]}
    text = scripts("render_blocks").byte_traffic(record)
    assert "| tandem c=7 | **1.05** |  | 2.00 |  |  |  |  | 250 |  |  |" in text
    assert "| tandem c=7 | 4.0 | 1.50 |  | 4 | 0.80 |  |" in text


ENVIRONMENT = {
    "date": "2026-01-01T00:00:00+00:00", "commit": "abc", "python": "3.11", "packages": {"numpy": "2.0"},
    "processor": "a processor", "cores": 2,
}  # fmt: skip


def test_components_are_rendered(scripts: Any) -> None:
    run = {"seconds": 2e-3, "times_faster": 3.0, "times_faster_with_transfer": 1.5}
    case = {"name": "walks:10", "states": 10, "choices": 20, "transitions": 30, "sccs": 4, "trivial_sccs": 3,
            "mecs": 2, "scipy_seconds": 6e-3, "compiled_mec_seconds": 8e-3, "scc": {"auto": run},
            "mec": {}}  # fmt: skip
    text = rendered(scripts, "scc_mec", {"environment": ENVIRONMENT, "device": "a card", "cases": [case]})
    assert "| walks:10 | 2.00 (3.0×, 1.5×) | auto | 1.00 |" in text
    assert "a card" in text


def test_formats_are_rendered(scripts: Any) -> None:
    def entry(seconds: float, **more: Any) -> dict[str, Any]:
        each = {"seconds": seconds, "bytes": 2400, "entries_per_second": 100 / seconds}
        return each | {"share_of_copy": 0.5, **more}

    formats = [entry(2e-3, format="msr"), entry(1e-3, format="csell"), entry(3e-3, format="cusparse default")]
    formats.append({"format": "sell", "error": "no room"})
    row = {"model": "tandem", "constants": "c=7", "entries": 100, "hybrid": entry(5e-4), "formats": formats}
    late = {"model": "fms", "constants": "n=2", "error": "not begun: the time was over"}
    record = {"environment": ENVIRONMENT, "device": None, "copy_bytes_per_second": 1e12, "rows": [row, late]}
    text = rendered(scripts, "explicit_formats", record)
    assert "Not measured: fms n=2: not begun: the time was over." in text
    assert "| 0.500 / 24 B | 2.00 / 24 B |" in text
    assert "| 3.00 | csell 1.00 | 3.00 | 6.00 |" in text
    assert "| tandem c=7 | 50 % |" in text
