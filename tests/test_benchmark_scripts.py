"""Benchmark scripts run on a machine without a device, and their records are rendered."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpu_kernels import use_device
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
        ("kanban", 1), ("brp", 2), ("tandem", 3), ("kanban", 2),
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
    options = argparse.Namespace(backend="cpu", cpu_seconds=1e-9)
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
    assert whole[-len(largest) :] == largest
    assert len(whole) == len(set(whole)) == 33
    with pytest.raises(SystemExit, match="expected STUDY=N,M"):
        script.chosen_cases(argparse.Namespace(sizes=["nothing=3"], only=None, largest=False))


def test_density_sweep_on_the_cpu(scripts: Any, tmp_path: Path) -> None:
    script = scripts("density_sweep")
    options = argparse.Namespace(
        out=tmp_path / "record.json", seconds=None, parts="random,chains,twins,large", trials=2, quick=True,
        solve_seconds=1.0,
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


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_paper_tables_on_an_emulated_device(scripts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = scripts("paper_tables")
    formats = {name: script.FORMATS[name] for name in ("msr", "msr-wl", "msr-hwl", "cmsr")}
    monkeypatch.setattr(script, "FORMATS", formats)
    monkeypatch.setattr(script, "product_seconds", lambda device, multiply: multiply() or 1e-3)
    options = argparse.Namespace(
        only=["herman"], tables="spmv", seconds=None, cpu_seconds=0.1, quick=True, out=None
    )
    with use_device(HostDevice()):
        records = script.run(options)
    (row,) = records.rows
    assert "error" not in row
    assert row["states"] == row["paper_states"] == 32
    for order in ("original", "bfs"):
        assert set(row[order]["formats"]) == set(formats)
        assert all(f["difference"] < 1e-14 for f in row[order]["formats"].values())
    row["original"]["formats"]["cusparse"] = {"error": "no card"}
    assert "herman 5" in rendered(scripts, "paper_tables", {**records._record, "rows": [row]})


def test_records_in_the_repository_are_rendered(scripts: Any) -> None:
    for name in scripts("render").SECTIONS:
        path = FOLDER / "results" / f"{name}.json"
        if path.exists():
            assert rendered(scripts, name, json.loads(path.read_text())).startswith("## ")


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
    assert "| auto | 2.00 (3.0×, 1.5×) |" in text
    assert "a card" in text


def test_formats_are_rendered(scripts: Any) -> None:
    def entry(seconds: float, **more: Any) -> dict[str, Any]:
        each = {"seconds": seconds, "bytes": 2400, "entries_per_second": 100 / seconds}
        return each | {"share_of_copy": 0.5, **more}

    formats = [entry(2e-3, format="msr"), entry(1e-3, format="csell"), entry(3e-3, format="cusparse default")]
    formats.append({"format": "sell", "error": "no room"})
    row = {"model": "tandem", "constants": "c=7", "entries": 100, "hybrid": entry(5e-4), "formats": formats}
    record = {"environment": ENVIRONMENT, "device": None, "copy_bytes_per_second": 1e12, "rows": [row]}
    text = rendered(scripts, "explicit_formats", record)
    assert "| 0.500 / 24 B | 2.00 / 24 B |" in text
    assert "| 3.00 | csell 1.00 | 3.00 | 6.00 |" in text
    assert "| tandem c=7 | 50 % |" in text
