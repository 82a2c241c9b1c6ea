"""The thesis's tables: order of rows, both levels in turn, extrapolation, values of other machines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hybrid
from benchmarks.library.models import example
from benchmarks.programs import thesis_memory
from benchmarks.programs import thesis_tables as script
from gpu_kernels import use_device
from hybrid.matrix.injection import cut_tasks, inject_level
from tests.benchmarks.support import NEEDS_COMPILER, WHERE, rendered
from tests.gpu_kernels.host_device import HostDevice

TANDEM = script.STUDIES["tandem"]


def row_of(size: int) -> dict[str, Any]:
    return {"figure": "5.9", "study": "tandem", "size": size, "thesis_seconds": None}


@pytest.mark.nightly
def test_small_sizes_on_the_cpu(record_of: Callable[..., dict[str, Any]]) -> None:
    sizes = [part for text in ("kanban=1,2", "brp=2", "tandem=3") for part in ("--sizes", text)]
    chosen = [part for text in ("kanban", "brp", "tandem") for part in ("--only", text)]
    record = record_of(script, "--backend", "cpu", *sizes, *chosen)
    found = [(row["study"], row["size"]) for row in record["rows"]]
    assert found == [("brp", 2), ("tandem", 3), ("kanban", 2), ("kanban", 1)]
    for row in record["rows"]:
        assert "error" not in row
        assert row["agreement"]["agrees"]
        assert not row["cpu"]["extrapolated"]
        assert row["gpu_min_time"]["base_memory_bytes"] >= 24 * 4
    text = rendered("thesis_tables", record)
    assert "**kanban** (figure 5.5)" in text
    assert "extrapolated from some iterations." in text


def test_a_long_run_is_extrapolated_and_says_so() -> None:
    options = argparse.Namespace(
        backend="cpu", cpu_seconds=1e-9, known={}, runs=1, repeat_seconds=0.0, representation="row-types"
    )
    row = row_of(31)
    script.measure(row, TANDEM, 31, options)
    cpu = row["cpu"]
    assert cpu["extrapolated"]
    assert cpu["value"] is row["agreement"] is None
    assert cpu["measured_iterations"] < cpu["iterations"]
    text = rendered("thesis_tables", {**WHERE, "epsilon": 1e-6, "rows": [row]})
    assert f"extrapolated from some iterations, 1 of 1, from {cpu['measured_iterations']} to" in text


def test_largest_sizes_and_the_order_of_rows() -> None:
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


@NEEDS_COMPILER
@pytest.mark.parametrize("representation", ["row-types", "tasks"])
def test_both_levels_on_an_emulated_device(representation: str) -> None:
    known = {("tandem", 2): {"value": 2.2, "iterations": 5, "solve_seconds": 2.0, "where": "a far CPU"}}
    options = argparse.Namespace(
        backend="gpu", cpu_seconds=0.0, known=known, runs=2, repeat_seconds=10.0,
        representation=representation,
    )  # fmt: skip
    row = row_of(2)
    with use_device(HostDevice()):
        script.measure(row, TANDEM, 2, options)
    for name in ("gpu_min_time", "gpu_min_memory"):
        run = row[name]
        assert run["backend"] == "gpu"
        assert len(run["counted_seconds"]) == 2
        assert run["solve_seconds"] == min(run["counted_seconds"])
        assert 0 < run["synchronisations"] <= run["iterations"] / 10 + 1
        assert run["total_seconds"] > 0
    assert row["agreement"]["where"] == "a far CPU"
    assert not row["agreement"]["agrees"]
    facts = {"epsilon": 1e-6, "warm_iterations": 40, "representation": representation}
    text = rendered("thesis_tables", {**WHERE, **facts, "rows": [row]})
    assert ("## The thesis's case studies, in tasks\n" in text) == (representation == "tasks")
    assert "| *2 |" in text
    assert "elsewhere (a far CPU)" in text


@pytest.mark.parametrize(
    ("same", "repeat", "turns"), [(False, 9.0, "TMMT"), (False, 0.5, "TM"), (True, 9.0, "TM")]
)
def test_levels_are_solved_at_in_both_orders(
    monkeypatch: pytest.MonkeyPatch, same: bool, repeat: float, turns: str
) -> None:
    made: list[str] = []
    seconds = iter([4.0, 2.0, 1.0, 3.0])

    class Trials:
        warm_seconds = 0.25

        def __init__(self, iterations: int) -> None:
            self.name = ""

        def again(self) -> float:
            made.append(self.name)
            return next(seconds)

    def solve(
        model: Any, prop: Any, study: Any, backend: str, level: str, trial: Trials, *more: str
    ) -> dict[str, Any]:
        trial.name = "T" if level == "min-time" else "M"
        made.append(trial.name)
        number = 5 if same or level == "min-time" else 6
        return {"level": number, "error": None, "solve_seconds": next(seconds), "total_seconds": 9.0,
                "iterations": 10, "iteration_seconds": None}  # fmt: skip

    monkeypatch.setattr(script, "WarmThenCounted", Trials)
    monkeypatch.setattr(script, "solve", solve)
    options = argparse.Namespace(backend="gpu", runs=2, repeat_seconds=repeat, representation="row-types")
    nothing: Any = None
    found = script.solve_at_both_levels(nothing, nothing, nothing, options)
    assert "".join(made) == turns
    best = {"TMMT": (3.0, 1.0), "TM": (2.0, 2.0) if same else (4.0, 2.0)}[turns]
    assert (found["gpu_min_time"]["solve_seconds"], found["gpu_min_memory"]["solve_seconds"]) == best
    assert found["gpu_min_time"]["total_seconds"] == 8.75


@pytest.mark.nightly
def test_memory_in_tasks_and_in_row_types(record_of: Callable[..., dict[str, Any]]) -> None:
    sizes = [
        part for text in ("kanban=2", "brp=16") for part in ("--sizes", text, "--only", text.split("=")[0])
    ]
    record = record_of(thesis_memory, *sizes)
    for row in record["rows"]:
        study = script.STUDIES[row["study"]]
        matrix = example(study.model, row["size"], **study.constants).transitions
        built = [cut_tasks(inject_level(matrix, k)).nbytes for k in range(matrix.n_levels + 1)]
        assert row["min_memory"]["bytes"] == built[row["min_memory"]["level"]] == min(built)
        assert (
            row["min_time"]["bytes"] == built[row["min_time"]["level"]] <= row["min_time"]["bytes_worst_case"]
        )
        assert row["min_memr"]["bytes"] == min(row["memr_by_level"]) >= min(built)
        types = hybrid.inject(matrix, "min-memory", "cpu")
        assert (row["row_types"]["level"], row["row_types"]["bytes"]) == (types.level, types.nbytes)
        # brp is a linear system, with a right-hand side.
        assert row["base_memory_bytes"] == row["states"] * (32 if row["study"] == "brp" else 24)
        assert row["thesis_megabytes"] is None
    row = {**record["rows"][1], "thesis_megabytes": (11.3, 0.6, 1.3)}
    text = rendered("thesis_memory", {**WHERE, "rows": [row]})
    assert f"| kanban | 2 | 4,600 | 0.11 (11.3) | {row['min_memr']['bytes'] / 1e6:.3g} (0.6) | 32 |" in text


def test_values_of_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    assert script.known_values(None, None) == {}
    run = {"value": 1.5, "iterations": 3, "solve_seconds": 2.0, "level": 4}
    path.write_text(json.dumps({"kanban": run}))
    assert script.known_values(path, "2 cores") == {("kanban", 8): run | {"where": "2 cores"}}
    path.write_text(json.dumps({"nothing": {}}))
    with pytest.raises(SystemExit, match="expected one of brp, "):
        script.known_values(path, None)
    whole = {"backend": "cpu", "value": 2.5, "solve_seconds": 1.0, "iterations": 7}
    rows = [
        {"study": "fms", "size": 6, "cpu": {"backend": "cpu", "value": None}, "gpu_min_time": whole},
        {"study": "fms", "size": 7, "gpu_min_time": whole, "error": "stopped before its end"},
        {"study": "fms", "size": 8, "gpu_min_time": {**whole, "backend": "gpu"}},
    ]
    path.write_text(json.dumps({**WHERE, "rows": rows}))
    assert script.known_values(path, None) == {("fms", 6): {**whole, "where": "a processor, 2 cores"}}


def test_a_value_found_here_goes_before_one_found_elsewhere() -> None:
    row = {"cpu": {"value": 2.0}, "cpu_elsewhere": {"value": 9.0, "where": "there"}}
    row |= {name: {"value": 2.0} for name in ("gpu_min_time", "gpu_min_memory")}
    assert script.agreement(row) == {"relative_difference": 0.0, "agrees": True, "cpu_value": 2.0}
    elsewhere = script.agreement({**row, "cpu": {"value": None}})
    assert elsewhere is not None and elsewhere["where"] == "there"
    assert script.agreement({**row, "gpu_min_time": {"value": None}}) is None
