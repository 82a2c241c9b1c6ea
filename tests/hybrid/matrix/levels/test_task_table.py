"""Levels of matrices in tasks: counts as of the level curve, and times that rank as they were measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dd.autoref import BDD

import hybrid
from hybrid.base.errors import OptionError
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.levels.curve import layer_curve, level_curve
from hybrid.matrix.levels.table import choose_level
from hybrid.matrix.levels.task_table import TaskTable, layer_tasks, task_table
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense

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
    table, together = layer_tasks(layers), layer_curve(layers)
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


# ------------------------------------------------------------------ bytes that are held


def lamps() -> OffsetMTBDD:
    """Ten lamps, of which every step switches one, from the sets of a manager (docs/dd.md)."""
    rows, columns, bdd = [f"x{i}" for i in range(10)], [f"y{i}" for i in range(10)], BDD()
    bdd.declare(*(name for pair in zip(rows, columns, strict=True) for name in pair))

    def switched(lamp: str) -> object:
        node = bdd.true
        for x, y in zip(rows, columns, strict=True):
            same = bdd.apply("<->", bdd.var(x), bdd.var(y))
            node &= ~same if x == lamp else same
        return node

    parts = [(0.1, switched(lamp)) for lamp in rows]
    start = bdd.cube(dict.fromkeys(rows, False))
    model = hybrid.from_dd(bdd, rows=rows, columns=columns, parts=parts, type="dtmc", initial=start)
    return model.transitions


def held(matrix: OffsetMTBDD, k: int) -> int:
    """Bytes of a level that is built."""
    return cut_tasks(inject_level(matrix, k)).nbytes


@pytest.mark.parametrize(("name", "least"), [("lamps", 6976), ("tandem", 6972), ("kanban", 131_704)])
def test_least_memory_is_what_is_held_and_not_the_worst_case(
    examples_folder: Path, name: str, least: int
) -> None:
    constants = {"tandem": {"c": 31}, "kanban": {"t": 3}}.get(name, {})
    matrix = (
        lamps() if name == "lamps" else hybrid.load(examples_folder / f"{name}.prism", constants).transitions
    )
    table = task_table(matrix)
    level = choose_level(table, "min-memory", "cpu").level
    sizes = {k: held(matrix, k) for k in range(len(table))}
    assert sizes[level] == min(sizes.values()) == least
    assert hybrid.inject(matrix, "min-memory", "cpu", representation="tasks").nbytes == least
    # The level of least MemR is another one for the first two.
    assert (sizes[table.min_memory] == least) == (name == "kanban")
    assert min(c.bytes_worst_case for c in table.levels) > least


def test_a_budget_that_a_level_keeps_is_not_refused(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", {"t": 3}).transitions
    assert task_table(matrix)[32].bytes_worst_case > 132_000
    kept = hybrid.inject(matrix, "auto", "cpu", representation="tasks", memory_budget=132_000)
    assert (kept.level, kept.nbytes) == (32, held(matrix, 32))
    with pytest.raises(OptionError, match=f"level 32 needs least, {held(matrix, 32)} bytes"):
        hybrid.inject(matrix, "auto", "cpu", representation="tasks", memory_budget=131_703)
    with pytest.raises(OptionError, match=f"level 40 needs {held(matrix, 40)} bytes, more than the budget"):
        hybrid.inject(matrix, 40, "cpu", representation="tasks", memory_budget=132_000)


@pytest.mark.parametrize("size", [1, 3, 300, 700, 1100])
def test_instances_are_counted_as_they_are_cut(rng: np.random.Generator, size: int) -> None:
    # Rows without entries, several tasks of them in a row, so that instances have to be looked for.
    dense = np.where(rng.random((size, 24)) < 0.05, rng.integers(1, 4, (size, 24)), 0.0)
    kept = rng.integers(20, 620)
    dense[20:kept], dense[kept + 1 : 620] = 0.0, 0.0
    dense[-1, 5] = dense[0, 3] = 1.0
    matrix = from_dense(dense)
    table, untold = task_table(matrix), 0
    for k in range(len(table)):
        tasks = cut_tasks(inject_level(matrix, k))
        least, most = table.bytes_bounds(k, "cpu")
        untold += least < most
        assert least <= tasks.nbytes <= most <= table[k].bytes_worst_case
        assert table.bytes_predicted(k, "cpu") == tasks.nbytes
        assert f"and {len(tasks.instances):,} instance" in table.parts(k)
        assert table.bytes_bounds(k, "cpu") == (tasks.nbytes, tasks.nbytes)
    assert bool(untold) == (size >= 700)
    assert choose_level(table, "min-memory", "cpu").level == min(
        range(len(table)), key=lambda k: (held(matrix, k), k)
    )


def test_levels_of_large_diagrams_are_counted_by_pairs(
    examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", {"t": 2}).transitions
    expected = [task_table(matrix).bytes_predicted(k, "cpu") for k in range(matrix.n_levels + 1)]
    monkeypatch.setattr("hybrid.matrix.levels.task_table._DENSE_CELLS", 0)
    table = task_table(matrix)
    assert [table.bytes_predicted(k, "cpu") for k in range(len(table))] == expected
    monkeypatch.setattr("hybrid.matrix.levels.task_table._EXPANDED_ENTRIES", 0)
    known = [task_table(matrix).bytes_known(k, "cpu") for k in range(len(table))]
    assert known[0] is None and all(size in (None, own) for size, own in zip(known, expected, strict=True))


def test_bytes_of_layers_are_those_of_each(examples_folder: Path) -> None:
    coin = hybrid.load(examples_folder / "coin.prism", constants={"K": 2})
    layers = [coin.layer_transitions(i) for i in range(len(coin.layers))]
    table = layer_tasks(layers)
    for k in range(0, len(table), 3):
        assert table.bytes_predicted(k, "cpu") == sum(held(layer, k) for layer in layers)
