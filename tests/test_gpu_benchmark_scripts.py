"""Benchmarks of the GPU engine: what they read, repeat and render, tried without a device."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import use_device
from hybrid.gpu.product import GpuProduct
from hybrid.properties import load_properties, resolve_properties
from hybrid.solvers import Criterion, Status
from hybrid.solvers.base import Solution
from tests.gpu_kernels.host_device import COMPILER, HostDevice

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks"
ENVIRONMENT = {
    "date": "2026-01-01T00:00:00+00:00", "commit": "abc", "python": "3.11", "packages": {"numpy": "2.0"},
    "processor": "a processor", "cores": 2,
}  # fmt: skip
NO_COMPILER = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with"
)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import scripts by name, from their own folder."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(ROOT / "examples"), *sys.path])
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(FOLDER)):
            del sys.modules[name]


# ---------------------------------------------------------------------- repeated solutions


@dataclass(frozen=True)
class Invented:
    """A method that takes a second for every iteration, and needs 500 of them."""

    criterion: Criterion = Criterion()
    runs: list[int] = field(default_factory=list)
    needed: int = 500

    def solve(self, *operands: Any) -> Solution:
        made = min(self.needed, self.criterion.max_iterations)
        self.runs.append(made)
        status = Status.CONVERGED if made == self.needed else Status.MAX_ITERATIONS
        return Solution(np.ones(1), status, made, 1.0 * made, 0.1, 0.0)


@pytest.mark.parametrize(
    ("seconds", "made", "status"),
    [
        (500.0, [10, 500], Status.CONVERGED),
        (499.0, [10, 49], Status.MAX_ITERATIONS),
        (1.0, [10, 20], Status.MAX_ITERATIONS),
    ],
)
def test_a_solution_within_seconds(scripts: Any, seconds: float, made: list[int], status: Status) -> None:
    repeated, method = scripts("repeated_solves"), Invented()
    trial = repeated.WithinSeconds(seconds, expected=500)
    found = trial(repeated.LinearTrial(method, (None, np.ones(1), None, np.ones(1))))
    assert method.runs == made
    assert found.status is status


def test_a_short_solution_is_not_made_twice(scripts: Any) -> None:
    repeated, method = scripts("repeated_solves"), Invented(needed=7)
    trial = repeated.WithinSeconds(0.0, expected=7)
    assert trial(repeated.LinearTrial(method, (None, np.ones(1), None, np.ones(1)))).iterations == 7
    assert method.runs == [7]


def test_a_warm_run_goes_before_and_does_not_count(scripts: Any) -> None:
    repeated, method = scripts("repeated_solves"), Invented()
    trial = repeated.WarmThenCounted(40)
    assert trial(repeated.LinearTrial(method, (None, np.ones(1), None, np.ones(1)))).iterations == 500
    assert trial.again() == 500.0
    assert method.runs == [40, 500, 500]


def test_an_answer_is_that_of_a_plain_check(scripts: Any) -> None:
    repeated = scripts("repeated_solves")
    model = hybrid.load(ROOT / "examples" / "kanban.prism", {"t": 1})
    prop = resolve_properties(load_properties(ROOT / "examples" / "kanban.props"), model.source).properties[0]
    plain = hybrid.check(model, prop.text, backend="cpu", method="jor")
    trial = repeated.WarmThenCounted(3)
    found = repeated.answer(model, prop, trial, backend="cpu", method="jor")
    assert found.value == plain.value
    assert found.statistics.iterations == plain.statistics.iterations
    assert len(trial.systems) == 1
    assert trial.warm_seconds > 0
    with pytest.raises(ValueError, match="expected a method without bounds"):
        repeated.answer(model, prop, trial, backend="cpu")


# ---------------------------------------------------------------------- the thesis's tables


@NO_COMPILER
def test_thesis_tables_on_an_emulated_device(scripts: Any) -> None:
    script = scripts("thesis_tables")
    known = {("tandem", 2): {"value": 2.2, "iterations": 5, "solve_seconds": 2.0, "where": "a far CPU"}}
    options = argparse.Namespace(backend="gpu", cpu_seconds=0.0, known=known, runs=2, repeat_seconds=10.0)
    row: dict[str, Any] = {"figure": "5.9", "study": "tandem", "size": 2, "thesis_seconds": None}
    with use_device(HostDevice()):
        script.measure(row, script.STUDIES["tandem"], 2, options)
    for name in ("gpu_min_time", "gpu_min_memory"):
        run = row[name]
        assert run["backend"] == "gpu"
        assert len(run["counted_seconds"]) == 2
        assert run["solve_seconds"] == min(run["counted_seconds"])
        assert 0 < run["synchronisations"] <= run["iterations"] / 10 + 1
        assert run["total_seconds"] > 0
    assert row["agreement"]["where"] == "a far CPU"
    assert not row["agreement"]["agrees"]
    record = {
        "environment": ENVIRONMENT,
        "device": None,
        "epsilon": 1e-6,
        "warm_iterations": 40,
        "rows": [row],
    }
    text = scripts("render").SECTIONS["thesis_tables"](json.loads(json.dumps(record)))
    assert "| *2 |" in text
    assert "elsewhere (a far CPU)" in text


@pytest.mark.parametrize(
    ("same", "repeat", "turns"), [(False, 9.0, "TMMT"), (False, 0.5, "TM"), (True, 9.0, "TM")]
)
def test_levels_are_solved_at_in_both_orders(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, same: bool, repeat: float, turns: str
) -> None:
    script, made = scripts("thesis_tables"), []
    seconds = iter([4.0, 2.0, 1.0, 3.0])

    class Trials:
        warm_seconds = 0.25

        def __init__(self, iterations: int) -> None:
            self.name = ""

        def again(self) -> float:
            made.append(self.name)
            return next(seconds)

    def solve(model: Any, prop: Any, study: Any, backend: str, level: str, trial: Trials) -> dict[str, Any]:
        trial.name = "T" if level == "min-time" else "M"
        made.append(trial.name)
        number = 5 if same or level == "min-time" else 6
        return {"level": number, "error": None, "solve_seconds": next(seconds), "total_seconds": 9.0,
                "iterations": 10, "iteration_seconds": None}  # fmt: skip

    monkeypatch.setattr(script, "WarmThenCounted", Trials)
    monkeypatch.setattr(script, "solve", solve)
    options = argparse.Namespace(backend="gpu", runs=2, repeat_seconds=repeat)
    found = script.solve_at_both_levels(None, None, None, options)
    assert "".join(made) == turns
    best = {"TMMT": (3.0, 1.0), "TM": (2.0, 2.0) if same else (4.0, 2.0)}[turns]
    assert (found["gpu_min_time"]["solve_seconds"], found["gpu_min_memory"]["solve_seconds"]) == best
    assert found["gpu_min_time"]["total_seconds"] == 8.75


def test_values_of_another_machine(scripts: Any, tmp_path: Path) -> None:
    script, path = scripts("thesis_tables"), tmp_path / "values.json"
    assert script.known_values(None, None) == {}
    path.write_text(json.dumps({"kanban": {"value": 1.5, "iterations": 3, "solve_seconds": 2.0, "level": 4}}))
    found = script.known_values(path, "2 cores of a machine")
    assert found["kanban", 8] == {
        "value": 1.5, "iterations": 3, "solve_seconds": 2.0, "level": 4, "where": "2 cores of a machine",
    }  # fmt: skip
    path.write_text(json.dumps({"nothing": {}}))
    with pytest.raises(SystemExit, match="expected one of brp, "):
        script.known_values(path, None)
    whole = {"backend": "cpu", "value": 2.5, "solve_seconds": 1.0, "iterations": 7}
    rows = [
        {"study": "fms", "size": 6, "cpu": {"backend": "cpu", "value": None}, "gpu_min_time": whole},
        {"study": "fms", "size": 7, "gpu_min_time": whole, "error": "stopped before its end"},
        {"study": "fms", "size": 8, "gpu_min_time": {**whole, "backend": "gpu"}},
    ]
    path.write_text(json.dumps({"environment": ENVIRONMENT, "rows": rows}))
    assert script.known_values(path, None) == {("fms", 6): {**whole, "where": "a processor, 2 cores"}}


def test_a_value_found_here_goes_before_one_found_elsewhere(scripts: Any) -> None:
    agreement = scripts("thesis_tables").agreement
    row = {"cpu": {"value": 2.0}, "cpu_elsewhere": {"value": 9.0, "where": "there"}}
    row |= {name: {"value": 2.0} for name in ("gpu_min_time", "gpu_min_memory")}
    assert agreement(row) == {"relative_difference": 0.0, "agrees": True, "cpu_value": 2.0}
    assert agreement({**row, "cpu": {"value": None}})["where"] == "there"
    assert agreement({**row, "gpu_min_time": {"value": None}}) is None


# ---------------------------------------------------------------------- products


@NO_COMPILER
def test_gpu_product_on_an_emulated_device(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, rivals, out = scripts("gpu_product"), scripts("product_rivals"), tmp_path / "record.json"
    events = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None))
    names = ("asarray", "empty", "empty_like", "ones_like", "arange")
    like_cupy = SimpleNamespace(cuda=events, **{name: getattr(np, name) for name in names})
    monkeypatch.setitem(sys.modules, "cupy", like_cupy)

    def once(cupy: Any, call: Any) -> float:
        call()
        return 1e-3

    def no_room(*arguments: Any, **options: Any) -> Any:
        raise MemoryError("needs more than there is")

    def cusparse_rows(cupy: Any, csr: Any, x: Any, y: Any) -> dict[str, Any]:
        return {"cusparse_seconds": 2e-3, "difference": 0.0}

    for module in (script, rivals):
        monkeypatch.setattr(module, "best_seconds", once)
        monkeypatch.setattr(module, "free_device_memory", lambda collect=True: None)
    monkeypatch.setattr(rivals, "cusparse_rows", cusparse_rows)
    monkeypatch.setattr(rivals.gpu_kernels.FORMATS["delta-csell"], "from_csr", no_room)
    monkeypatch.setattr(script, "QUICK", (("kanban", "t=1"),))
    monkeypatch.setattr(sys, "argv", ["gpu_product.py", "--quick", "--levels", "3", "--out", str(out)])
    with use_device(HostDevice()):
        monkeypatch.setattr(scripts("runs"), "device_record", lambda: None)
        monkeypatch.setattr(scripts("runs"), "has_device", lambda: False)
        script.main()
    (row,) = json.loads(out.read_text())["rows"]
    assert "error" not in row
    assert row["chosen_over_best"] == 1.0
    assert row["chosen_within_10_percent"]
    assert row["difference"] < 1e-13
    assert row["delta_csell_error"] == "needs more than there is"
    assert [b["is_min_memory"] for b in row["baseline"]].count(True) == 1
    assert any(b["is_min_time"] for b in row["baseline"])
    assert all(b["difference"] < 1e-13 for b in row["baseline"])
    printed = capsys.readouterr().out
    assert "delta_csell: needs more than there is" in printed
    assert "2.00 times as fast as cuSPARSE's CSR, 1.00 times" in printed


def test_levels_of_the_published_kernel(scripts: Any) -> None:
    rivals, script = scripts("product_rivals"), scripts("gpu_product")

    def candidate(level: int, nonzeros: int, instances: int) -> Any:
        return SimpleNamespace(
            level=level, submatrix_nonzeros=nonzeros, instances_worst_case=instances,
            bytes_worst_case=16 * nonzeros + 20 * instances,
        )  # fmt: skip

    levels = [candidate(k, 1 << (26 - k), 1 << k) for k in range(27)]
    by_memory, chosen = rivals.baseline_levels(levels)
    assert by_memory == 13
    assert chosen == [2, 4, 6, 8, 10, 12, 13]
    assert rivals.baseline_levels([candidate(0, 1 << 40, 1)]) == (None, [])
    assert script.level_count("all") is None
    assert script.level_count("5") == 5
    ranked = [(k, None, 1.0 + k / 100) for k in range(30)]
    assert [level[0] for level in script.spread_levels(ranked, 30)] == list(range(30))
    assert len(script.spread_levels(ranked, 4)) == 4


def product_row(model: str, entries: int, hybrid: float, cusparse: float, sell: float, csell: float) -> Any:
    return {
        "model": model, "constants": f"n={entries}", "states": 10, "entries": entries, "seconds": hybrid,
        "cusparse_seconds": cusparse, "sell_seconds": sell, "csr_warp_seconds": 9.0, "csell_seconds": csell,
        "entries_per_second": entries / hybrid, "bytes": 5, "csr_bytes": 100, "copy_seconds": hybrid / 2,
        "best_level_seconds": hybrid, "jacobi_compressed_seconds": 2 * hybrid, "baseline": [],
        "build_seconds": 0.1, "level": 3,
    }  # fmt: skip


def test_means_over_the_largest_and_the_smallest_sizes(scripts: Any) -> None:
    render = scripts("render_gpu")
    rows = [
        product_row("kanban", 7, 1.0, 4.0, 2.0, 1.0),
        product_row("fms", 9, 1.0, 4.0, 2.0, 3.0),
        product_row("kanban", 8, 1.0, 9.0, 8.0, 4.0),
        {"model": "tandem", "constants": "c=3", "error": "no luck"},
    ]
    (large, most), (small, least) = render.mean_gains(rows)
    assert large == "the 2 models with kanban n=8"
    assert small == "the 2 models with kanban n=7"
    assert most == pytest.approx((6.0, 4.0, 8.0**0.5))
    assert least == pytest.approx((4.0, 2.0, 2.0**0.5))
    assert [name for name, _ in render.mean_gains(rows[1:])] == ["the 2 models"]
    assert render.mean_gains(rows[3:]) == []
    text = render.gpu_product({"environment": ENVIRONMENT, "device": None, "rows": rows})
    assert "Not measured: tandem c=3: no luck." in text
    assert "4.00 times as fast as the fastest uncompressed form" in text
    assert "8.00 times as fast as the fastest explicit form" not in text
    assert "2.83 times as fast as the fastest explicit form (CSELL" in text
    assert text.count("\n| kanban") == 2
    plain = [{key: value for key, value in row.items() if key != "csell_seconds"} for row in rows]
    assert "fastest explicit form" not in render.mean_gains_text(plain)


# ---------------------------------------------------------------------- counters

METRICS = [
    ("GPU Speed Of Light Throughput", "Duration", "usecond", "1,200.5"),
    ("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "12.5"),
    ("GPU Speed Of Light Throughput", "L2 Cache Throughput", "%", "90"),
    ("GPU Speed Of Light Throughput", "L1/TEX Cache Throughput", "%", "40.5"),
    ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "90"),
    ("Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "2.5"),
    ("Memory Workload Analysis", "L1/TEX Hit Rate", "%", "30"),
    ("Memory Workload Analysis", "L2 Hit Rate", "%", "60"),
    ("Compute Workload Analysis", "Issue Slots Busy", "%", "44"),
    ("Instruction Statistics", "Executed Instructions", "inst", "1,234,567"),
    ("Occupancy", "Achieved Occupancy", "%", "45"),
    ("Occupancy", "Theoretical Occupancy", "%", "50"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "64"),
    ("Launch Statistics", "Block Size", "", "128"),
    ("Launch Statistics", "Grid Size", "", "4,106"),
    ("Launch Statistics", "Waves Per SM", "", "3.9"),
    ("Warp State Statistics", "Warp Cycles Per Issued Instruction", "cycle", "17.5"),
]
COLUMNS = ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
           "Rule Description"]  # fmt: skip
STALL = (
    "On average, each warp of this workload spends {} cycles being stalled waiting for {}. This stall type "
    "represents about 67.9% of the total average of 17.5 cycles between issuing two instructions."
)
L1TEX = "a scoreboard dependency on a L1TEX (local, global, surface, texture) operation"
SECTORS = (
    "This kernel has uncoalesced global accesses resulting in a total of 3 excessive sectors (5% of the "
)


def profiled(kernels: list[tuple[list[Any], list[str]]], before: str) -> str:
    """Write a table as the profiler does: rows of metrics end early, other lines lie before it."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, (metrics, rules) in enumerate(kernels):
        for section, name, unit, value in metrics:
            writer.writerow([str(number), "step_tiles", section, name, unit, value, ""])
        for rule in rules:
            writer.writerow([str(number), "step_tiles", "Rules", "", "", "", "Rule", rule])
    return f"==PROF== Connected to process 7\n{before}\n==PROF== Disconnected\n{text.getvalue()}"


def test_counters_are_read_from_the_profilers_table(scripts: Any) -> None:
    script = scripts("kernel_counters")
    first = (
        METRICS,
        [
            STALL.format("11.9", L1TEX),
            STALL.format("2.0", "the branch target"),
            f"{SECTORS}total 60 sectors).",
        ],
    )
    second = METRICS, [STALL.format("6.5", "the MIO queue"), "Nothing to say."]
    text = profiled([first, second], "tandem 24\n==WARNING== 6 metrics\nproduct brp N=16,MAX=2 34")
    one, two = script.rows_of(text, {"tandem": "c=7"})
    assert (one["model"], one["constants"], one["level"]) == ("tandem", "c=7", 24)
    assert (two["model"], two["constants"], two["level"]) == ("brp", "N=16,MAX=2", 34)
    assert one["seconds"] == pytest.approx(1.2005e-3)
    assert one["dram_bytes_per_second"] == 2.5e9
    assert (one["dram_percent"], one["l2_percent"], one["l1_percent"]) == (12.5, 90.0, 40.5)
    assert (one["instructions"], one["blocks"], one["registers_a_thread"]) == (1_234_567, 4106, 64)
    assert (one["main_stall_cycles"], one["l1tex_stall_cycles"], one["main_stall"]) == (11.9, 11.9, L1TEX)
    assert (one["global_sectors"], one["excessive_sectors"]) == (60, 3)
    assert (two["main_stall"], two["main_stall_cycles"]) == ("the MIO queue", 6.5)
    assert two["l1tex_stall_cycles"] is two["global_sectors"] is None
    rows = [{**one, "states": 10, "entries": 20}, {**two, "states": 10, "entries": 20}]
    where = {"environment": {"date": "2026-01-01", "commit": "abc"}, "device": {"name": "a card"}}
    page = scripts("render").SECTIONS["kernel_counters"]({**where, "rows": rows})
    assert "| tandem c=7 | 1.20 | 12 % | **90 %** | 40 % | 30 % | 60 % | 96.0 |" in page
    assert "2026-01-01, commit abc, a card." in page


@NO_COMPILER
def test_one_product_a_matrix_is_profiled(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, events = scripts("kernel_counters"), []
    profiler = SimpleNamespace(start=lambda: events.append("start"), stop=lambda: events.append("stop"))
    cuda = SimpleNamespace(profiler=profiler, Device=lambda: SimpleNamespace(synchronize=lambda: None))
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    like_cupy = SimpleNamespace(cuda=cuda, full=np.full, empty=np.empty, get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", like_cupy)
    multiply = GpuProduct.multiply

    def noted(self: GpuProduct, x: Any, out: Any) -> None:
        events.append("product")
        multiply(self, x, out)

    monkeypatch.setattr(GpuProduct, "multiply", noted)
    with use_device(HostDevice()):
        script.multiply_once([("kanban", "t=1")])
    assert events == ["product", "start", "product", "stop"]
    (found,) = [script._CASE.match(line) for line in capsys.readouterr().out.splitlines()]
    assert found.groups()[:2] == ("kanban", "t=1")


def test_the_profiler_is_run_on_the_products(scripts: Any, tmp_path: Path) -> None:
    script = scripts("kernel_counters")
    options = argparse.Namespace(quick=True, only=["kanban"])
    with pytest.raises(SystemExit, match="no such program"):
        script.profile(str(tmp_path / "ncu"), options)
    fake = tmp_path / "fake"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    printed = script.profile(str(fake), options).split()
    assert printed[: len(script.FLAGS)] == list(script.FLAGS)
    assert printed[-4:] == ["--products", "--quick", "--only", "kanban"]
    fake.write_text("#!/bin/sh\necho no permission\nexit 3\n")
    with pytest.raises(SystemExit, match="ended with 3:\nno permission"):
        script.profile(str(fake), options)


def test_tables_that_are_not_whole_are_refused(scripts: Any) -> None:
    script = scripts("kernel_counters")
    with pytest.raises(ValueError, match="for each of the 2 products, got 1"):
        script.rows_of(profiled([(METRICS, [])], "tandem 24\nbrp 34"), dict(script.CASES))
    with pytest.raises(ValueError, match="no Waves Per SM in the table"):
        script.rows_of(profiled([([m for m in METRICS if m[1] != "Waves Per SM"], [])], "brp 3"), {"brp": ""})
    with pytest.raises(ValueError, match="expected a table of the profiler"):
        script.rows_of("==ERROR== no permission\n", {})


def test_a_table_made_elsewhere_becomes_a_record(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, table, out = scripts("kernel_counters"), tmp_path / "table.csv", tmp_path / "record.json"
    table.write_text(profiled([(METRICS, [])], "product kanban t=1 20"))
    arguments = ["kernel_counters.py", "--csv", str(table), "--commit", "abc", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        script.main()
    assert "--csv needs --commit, --date and --device" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*arguments, "--date", "2026-01-01", "--device", "a card"])
    script.main()
    record = json.loads(out.read_text())
    assert record["device"] == {"name": "a card"}
    assert [(row["states"], row["entries"]) for row in record["rows"]] == [(160, 616)]


# ---------------------------------------------------------------------- whole processes, plots


def test_a_whole_process_on_the_cpu(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = scripts("whole_run"), tmp_path / "record.json"
    monkeypatch.setattr(
        sys, "argv", ["whole_run.py", "--const", "t=1", "--backend", "cpu", "--out", str(out)]
    )
    script.main()
    record = json.loads(out.read_text())
    (row,) = record["rows"]
    assert (row["states"], row["transitions"], row["synchronisations"]) == (160, 616, 0)
    assert row["wall_seconds"] > row["check_seconds"] > row["iteration_seconds_total"] > 0
    assert row["peak_rss_bytes"] > 10_000_000
    assert row["peak_device_bytes"] is None
    model = hybrid.load(ROOT / "examples" / "kanban.prism", {"t": 1})
    here = hybrid.check(model, 'R{"throughput"}=? [ S ]', backend="cpu", method="jor", epsilon=1e-6)
    assert (row["value"], row["iterations"]) == (here.value, here.statistics.iterations)
    assert f"| {here.value!r} |" in scripts("render").SECTIONS["whole_run"](record)
    assert "0 waits" in capsys.readouterr().out


def test_a_process_that_fails_is_no_measurement(scripts: Any) -> None:
    row = {"command": "hybrid check"}
    with pytest.raises(RuntimeError, match="hybrid check ended with 2"):
        scripts("whole_run").measure(row, ["check", "examples/nothing.prism", "--quiet"])
    assert row == {"command": "hybrid check"}


def test_the_first_use_on_a_machine(
    scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = scripts("first_use"), tmp_path / "record.json"
    monkeypatch.setitem(script.CHECKS, "kanban t=4", ("kanban", "--const", "t=1", "--property", "throughput"))
    arguments = ["--backend", "cpu", "--only", "kanban t=4", "--repeat", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["first_use.py", *arguments])
    script.main()
    record = json.loads(out.read_text())
    package, check = record["rows"]
    assert package["host_kernels"] == package["device_kernels"] == check["device_kernels"] == 0
    assert check["host_kernels"] > 0
    assert min(check["first_seconds"], check["again_seconds"], package["again_seconds"]) > 0
    assert len(check["all_seconds"]) == 2
    text = scripts("render").SECTIONS["first_use"](record)
    assert f"| kanban t=4 | cpu | {check['first_seconds']:.2f} |" in text
    assert f"{check['host_kernels']} for the host" in capsys.readouterr().out


def test_checks_of_the_first_use_are_there(scripts: Any) -> None:
    script = scripts("first_use")
    for name in script.CHECKS:
        _, model, properties, *_ = script.command_of(name, "cpu")
        (prop,) = (
            a for a in script.CHECKS[name] if a.isidentifier() and a not in ("kanban", "tandem", "coin")
        )
        assert (ROOT / model).exists()
        assert f'"{prop}":' in (ROOT / properties).read_text()


def test_a_first_use_that_fails_is_no_measurement(scripts: Any) -> None:
    row = {"command": "python"}
    with pytest.raises(RuntimeError, match="python ended with 3"):
        scripts("first_use").measure(row, ["-c", "raise SystemExit(3)"], 1)
    assert row == {"command": "python"}


def test_the_devices_memory_is_watched_from_outside(scripts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script, used = scripts("whole_run"), [100]
    monkeypatch.setattr(script, "EVERY", 0.001)
    monkeypatch.setattr(script, "has_device", lambda: True)
    monkeypatch.setattr(script.DeviceWatch, "_used", staticmethod(lambda: used[0]))
    with script.DeviceWatch() as watch:
        used[0] = 175
        end = time.monotonic() + 10
        while watch.peak_bytes != 75 and time.monotonic() < end:
            time.sleep(0.001)
        used[0] = 120
    assert watch.peak_bytes == 75


def test_structure_plots(scripts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    script, out = scripts("structure_plots"), tmp_path / "record.json"
    arguments = ["--only", "brp", "--images", str(tmp_path), "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["structure_plots.py", *arguments])
    script.main()
    record = json.loads(out.read_text())
    (row,) = record["rows"]
    assert row["bfs"]["bandwidth"] < row["original"]["bandwidth"] / 5
    image = (tmp_path / row["image"]).read_bytes()
    assert image.startswith(b"\x89PNG")
    assert len(image) == row["image_bytes"] < 60_000
    text = scripts("render_structures").structure_table(record)
    assert "| brp 16, MAX=5 | 1,304 | 1,731 |" in text
    assert "(images/structure-brp.png)" in text
