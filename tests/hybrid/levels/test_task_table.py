"""Levels of matrices in tasks: counts as of the level curve, and times that rank as they were measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import hybrid
from hybrid.errors import OptionError
from hybrid.levels.curve import level_curve
from hybrid.levels.layers import layer_curve
from hybrid.levels.policy import choose_level
from hybrid.levels.task_table import TaskTable, layer_tasks, task_table

NO_ROW_TYPES = {
    "row_types": None, "groups": None, "row_type_bytes": None, "seconds_predicted": None, "scaled": False,
}  # fmt: skip

# Seconds of the block kernel on an H200, by level: benchmarks/results/gpu_product.json, "baseline".
MEASURED = {
    ("tandem", "c", 4095): {
        8: 2.979e-3, 12: 2.383e-3, 16: 1.999e-3, 20: 1.697e-3, 23: 1.304e-3, 26: 0.625e-3,
    },
    ("kanban", "t", 7): {
        20: 9.780e-3, 24: 9.601e-3, 42: 4.067e-3, 46: 3.907e-3, 48: 3.884e-3, 60: 2.035e-3, 65: 1.805e-3,
    },
    ("cluster", "N", 512): {
        19: 0.989e-3, 26: 0.555e-3, 30: 0.537e-3, 34: 0.475e-3, 36: 0.419e-3, 41: 0.343e-3, 44: 0.451e-3,
    },
}  # fmt: skip


def test_counts_are_those_of_the_level_curves(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", constants={"t": 2}).transitions
    table, curve = task_table(matrix), level_curve(matrix)
    assert (table.shape, table.nonzeros, table.form) == (curve.shape, curve.nonzeros, "")
    assert list(table.levels) == [replace(c, **NO_ROW_TYPES) for c in curve.levels]
    assert table.min_memory == curve.min_memory
    coin = hybrid.load(examples_folder / "coin.prism", constants={"K": 2})
    layers = [coin.layer_transitions(i) for i in range(len(coin.layers))]
    table, together = layer_tasks([task_table(m) for m in layers]), layer_curve(layers)
    assert (table.shape, table.nonzeros, table.form) == (together.shape, together.nonzeros, together.form)
    assert list(table.levels) == [replace(c, **NO_ROW_TYPES) for c in together.levels]
    with pytest.raises(OptionError, match="at least one layer"):
        layer_tasks([])


@pytest.mark.parametrize(("name", "constant", "value"), MEASURED)
def test_the_level_predicted_to_be_fastest_is_nearly_so(
    examples_folder: Path, name: str, constant: str, value: int
) -> None:
    matrix = hybrid.load(examples_folder / f"{name}.prism", constants={constant: value}).transitions
    table, seconds = task_table(matrix), MEASURED[name, constant, value]
    predicted = {k: table.seconds(k, "gpu") or 0.0 for k in seconds}
    chosen = min(predicted, key=lambda k: predicted[k])
    assert seconds[chosen] <= 1.25 * min(seconds.values())
    for k, measured in seconds.items():
        assert 0.35 < predicted[k] / measured < 3.0


@pytest.mark.parametrize("backend", ["cpu", "gpu", "reference"])
def test_least_time_lies_between_the_ends(examples_folder: Path, backend: str) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", constants={"t": 4}).transitions
    table = task_table(matrix)
    choice = choose_level(table, "min-time", backend)
    assert 0 < choice.level < len(table) - 1 or backend == "reference"
    assert "submatri" in choice.reason and "None" not in choice.reason
    times = [table.seconds(c.level, backend) for c in table.levels]
    assert times[choice.level] <= 1.04 * min(t for t in times if t is not None)
    assert isinstance(table, TaskTable)
