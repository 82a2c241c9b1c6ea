"""Hardware counters: the profiler's table, and what it is run on."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.library.ncu_table import COUNTERS
from benchmarks.programs import kernel_counters as script
from gpu_kernels import use_device
from hybrid.matrix.gpu.product import GpuProduct
from tests.benchmarks.support import NEEDS_COMPILER, WHERE, options, rendered
from tests.gpu_kernels.host_device import HostDevice

SAID = {
    "seconds": ("usecond", "1,200.5"), "dram_percent": ("%", "12.5"), "l2_percent": ("%", "90"),
    "l1_percent": ("%", "40.5"), "dram_bytes_per_second": ("Gbyte/s", "2.5"), "l1_hit_percent": ("%", "30"),
    "l2_hit_percent": ("%", "60"), "instructions": ("inst", "1,234,567"),
    "registers_a_thread": ("register/thread", "64"), "blocks": ("", "4,106"),
}  # fmt: skip
METRICS = [(*place, *SAID.get(key, ("", "17.5"))) for key, place in COUNTERS.items()]
# The same name in another section.
METRICS.append(("GPU Speed Of Light Throughput", "Memory Throughput", "%", "90"))
COLUMNS = ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
           "Rule Description"]  # fmt: skip
STALL = (
    "On average, each warp of this workload spends {} cycles being stalled waiting for {}. This stall type "
    "represents about 67.9% of the total average of 17.5 cycles between issuing two instructions."
)
L1TEX = "a scoreboard dependency on a L1TEX (local, global, surface, texture) operation"
SECTORS = (
    "This kernel has uncoalesced global accesses resulting in a total of 3 excessive sectors (5% of the "
    "total 60 sectors)."
)


def profiled(kernels: list[tuple[list[Any], list[str]]], *before: str) -> str:
    """Write a table as the profiler does: rows of metrics end early, other lines lie before it."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, (metrics, rules) in enumerate(kernels):
        for section, name, unit, value in metrics:
            writer.writerow([str(number), "step_tiles", section, name, unit, value, ""])
        for rule in rules:
            writer.writerow([str(number), "step_tiles", "Rules", "", "", "", "Rule", rule])
    return "\n".join(["==PROF== Connected to process 7", *before, "==PROF== Disconnected", text.getvalue()])


def test_counters_are_read_from_the_profilers_table() -> None:
    first = METRICS, [STALL.format("11.9", L1TEX), STALL.format("2.0", "the branch target"), SECTORS]
    second = METRICS, [STALL.format("6.5", "the MIO queue"), "Nothing to say."]
    lines = ("product tandem c=7 24", "==WARNING== 6 metrics", "product brp N=16,MAX=2 34")
    one, two = script.rows_of(profiled([first, second], *lines))
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
    rows = [{**row, "states": 10, "entries": 20} for row in (one, two)]
    page = rendered("kernel_counters", {**WHERE, "rows": rows})
    assert "| tandem c=7 | 24 | 1.20 | 12 % | **90 %** | 40 % | 30 % | 60 % | 96.0 |" in page


def test_tables_that_are_not_whole_are_refused() -> None:
    lines = ("product tandem c=1 24", "product brp N=1 34")
    with pytest.raises(ValueError, match="for each of the 2 products, got 1"):
        script.rows_of(profiled([(METRICS, [])], *lines))
    with pytest.raises(ValueError, match="no Waves Per SM in the table"):
        script.rows_of(profiled([([m for m in METRICS if m[1] != "Waves Per SM"], [])], lines[0]))
    with pytest.raises(ValueError, match="expected a table of the profiler"):
        script.rows_of("==ERROR== no permission\n")


@NEEDS_COMPILER
def test_one_product_a_matrix_is_profiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[str] = []
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
        script.multiply_once([("kanban", "t=1", 12), ("kanban", "t=1", None)])
    assert events == ["product", "start", "product", "stop"] * 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == "product kanban t=1 12"
    assert script._CASE.match(second)


def test_levels_are_those_of_the_record_that_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(
        json.dumps(
            {"rows": [{"model": "kanban", "constants": "t=4", "level": 9}, {"model": "x", "constants": ""}]}
        )
    )
    assert script.chosen_cases(options(levels_of=path)) == [("tandem", "c=255", None), ("kanban", "t=4", 9)]
    (tandem,) = script.chosen_cases(options(levels_of=script.GPU_PRODUCT, quick=False, only=["tandem"]))
    assert tandem[:2] == ("tandem", "c=4095") and isinstance(tandem[2], int)


def test_the_profiler_is_run_on_the_products_and_makes_a_record(
    record_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = options(only=["kanban"], levels_of=tmp_path / "levels.json")
    with pytest.raises(SystemExit, match="no such program"):
        script.profile(str(tmp_path / "ncu"), chosen)
    fake = tmp_path / "fake"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    printed = script.profile(str(fake), chosen).split()
    assert printed[: len(script.FLAGS)] == list(script.FLAGS)
    assert printed[-3:] == ["--quick", "--only", "kanban"]
    assert printed[printed.index("--levels-of") + 1] == str(tmp_path / "levels.json")
    fake.write_text("#!/bin/sh\necho no permission\nexit 3\n")
    with pytest.raises(SystemExit, match="ended with 3:\nno permission"):
        script.profile(str(fake), chosen)
    table = tmp_path / "table.csv"
    table.write_text(profiled([(METRICS, [])], "product kanban t=1 20"))
    fake.write_text(f"#!/bin/sh\ncat {table}\n")
    monkeypatch.setattr(script, "require_device", lambda: None)
    (row,) = record_of(script, "--ncu", str(fake))["rows"]
    assert (row["level"], row["states"], row["entries"], row["blocks"]) == (20, 160, 616, 4106)
