"""Level curves of decision processes against what is built at every level; the levels that engines use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import hybrid
from gpu_kernels import Device
from hybrid.analysis.run.options import CheckOptions
from hybrid.app.explorer.report import LevelReport, model_choices, report_levels, weigh_levels
from hybrid.app.explorer.sheet import measure_levels
from hybrid.matrix.backends import CpuBackend, GpuBackend, ReferenceBackend
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.injection.injected import InjectedMatrix, TaskList, cut_tasks, inject_level
from hybrid.matrix.injection.row_types import RowTypes, enumerate_groups
from hybrid.matrix.injection.submatrices import class_submatrices, expand_nodes
from hybrid.matrix.levels.curve import layer_curve, layer_levels, least_instance_bytes, level_curve
from hybrid.matrix.levels.table import CandidateLevel, choose_level
from hybrid.matrix.operators.device_choices import device_choices
from hybrid.matrix.operators.hybrid_choices import hybrid_choices
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import ChoiceProblem
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.distributed import stack_layers
from mtbdd.offset.offset import Level, OffsetMTBDD
from tests.builders.matrices import all_ones, from_dense, random_codes, random_sparse, to_dense
from tests.builders.mdp_texts import COINS, GRID, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.builders.models import build
from tests.builders.random_mdps import mdps
from tests.exploring import each

EXAMPLES = Path(__file__).parents[4] / "examples"
SMALL = {"waiting": WAITING_ROOM, "slow": SLOW_WAY, "rooms": ROOMS, "coins": COINS}
FILES = {"coin": {"K": 1}, "jobs": {"N": 5}, "relay": {"H": 5, "M": 3}}


def load(name: str) -> SymbolicModel:
    if name == "grid":
        return build(GRID, n=20)
    return build(SMALL[name]) if name in SMALL else hybrid.load(EXAMPLES / f"{name}.prism", FILES[name])


def matrices_of(model: SymbolicModel, backend: str) -> list[OffsetMTBDD]:
    return [o.matrix for o in model_choices(model, backend) if o.matrix is not None]


def row_type_bytes(types: RowTypes, k: int) -> tuple[int, int, int]:
    """Types, groups and bytes of the row-type form, from all groups and all entries as they are listed."""
    groups = enumerate_groups(np, types, k)
    classes, level = types.classes, types[k]
    blocks = class_submatrices(np, classes, k)
    if blocks is None:
        blocks = expand_nodes(np, classes.matrix, k, classes.representative[k])
    entries = np.diff(blocks.ptr)
    kinds, first = np.unique(groups.type, return_index=True)
    merged = rows = 0
    for group in first:
        nodes = groups.node[groups.ptr[group] : groups.ptr[group + 1]]
        merged += int(entries[classes.classes[k][nodes]].sum())
        rows += int(classes.matrix.rows[k][nodes[0]])
    assert len(kinds) == level.n_types
    slot = 8 if classes.scaled else 4
    return len(kinds), len(groups), 8 * merged + 4 * rows + 8 * len(groups) + slot * len(groups.base)


def assert_counts(
    candidate: CandidateLevel, built: list[tuple[InjectedMatrix, TaskList]], forms: list[tuple[int, int, int]]
) -> None:
    """Compare a candidate with the first and second representations and with the row types, all built."""
    injected = [i for i, _ in built]
    assert candidate.nodes == sum(i.n_submatrices for i in injected)
    assert candidate.paths == sum(len(i) for i in injected)
    assert candidate.submatrix_nonzeros == sum(len(i.blocks.value) for i in injected)
    assert candidate.bytes_first == sum(i.nbytes for i in injected)
    cut = sum(len(tasks.instances) for _, tasks in built)
    assert cut <= candidate.instances_worst_case
    spare = candidate.instances_worst_case - cut
    itemsize = built[0][1].instances.itemsize
    assert candidate.bytes_worst_case == sum(t.nbytes for _, t in built) + spare * itemsize
    # A path to a submatrix of n rows counts floor(n / 256) + 2 instances.
    cuts = sum(int((i.blocks.n_rows[i.instances["submatrix"]] // 256 + 2).sum()) for i in injected)
    assert candidate.instances_worst_case == cuts
    sums = tuple(sum(column) for column in zip(*forms, strict=True))
    assert (candidate.row_types, candidate.groups, candidate.row_type_bytes) == sums


@pytest.mark.parametrize("name", [*SMALL, "coin", "grid"])
def test_layers_one_by_one_agree_with_what_is_built(name: str) -> None:
    matrices = matrices_of(load(name), "cpu")
    if name == "grid":
        assert len({m.n_rows for m in matrices}) > 1
    curve = layer_curve(matrices)
    assert curve.nonzeros == sum(np.count_nonzero(to_dense(m)) for m in matrices)
    assert len(curve) == matrices[0].n_levels + 1
    assert least_instance_bytes(matrices) == min(level.bytes_worst_case for level in curve.levels)
    for candidate in curve.levels:
        k = candidate.level
        injected = [inject_level(m, k) for m in matrices]
        forms = []
        for own in curve.apart:
            kinds = [row_type_bytes(types, k) for types in (own.typed.plain, own.typed.scaled)]
            forms.append(min(kinds, key=lambda f: f[2]))
        assert_counts(candidate, [(i, cut_tasks(i)) for i in injected], forms)
        times = [own[k].seconds_predicted for own in curve.apart]
        assert curve.seconds(candidate.level, "cpu") == pytest.approx(sum(t for t in times if t))


@pytest.mark.parametrize("name", [*SMALL, "relay", "grid"])
def test_stacked_layers_agree_with_what_is_built(name: str) -> None:
    matrices = matrices_of(load(name), "gpu")
    curve = layer_levels(matrices, "gpu")
    assert curve.typed.stacked is not None
    assert curve.nonzeros == sum(np.count_nonzero(to_dense(m)) for m in matrices)
    assert len(curve) == matrices[0].n_levels + 1
    stacked = curve.typed.stacked
    for candidate in curve.levels:
        k = stacked.first_level + candidate.level
        injected = inject_level(stacked.matrix, k)
        assert_counts(candidate, [(injected, cut_tasks(injected))], [row_type_bytes(curve.typed.plain, k)])


def test_forms_differ_by_pointers_alone() -> None:
    matrices = matrices_of(load("grid"), "gpu")
    apart, together = layer_curve(matrices), level_curve(stack_layers(dict(enumerate(matrices)), 3))
    tasks = -(-matrices[0].n_rows // 256) + 1
    for one, other in zip(apart.levels, together.levels, strict=True):
        counted = ("nodes", "paths", "submatrix_nonzeros", "instances_worst_case")
        assert [getattr(one, c) for c in counted] == [getattr(other, c) for c in counted]
        assert one.bytes_first - other.bytes_first == 2 * 8
        assert one.bytes_worst_case - other.bytes_worst_case == 2 * 8 * (1 + tasks)


@pytest.mark.parametrize("level", [0, 2, 5, 10])
def test_tiles_on_a_device_have_the_groups_counted(device: Device, level: int) -> None:
    curve = layer_levels(matrices_of(load("grid"), "gpu"), "gpu")
    assert curve.typed.stacked is not None
    k = curve.typed.stacked.first_level + level
    tiles = build_tile_matrix(device, curve.typed.plain, k, stacked=curve.typed.stacked)
    assert tiles is not None
    assert len(tiles.group_row) == curve[level].groups


@given(mdps())
@settings(max_examples=15)
def test_random_processes(text: str) -> None:
    model = build(text)
    for backend in ("cpu", "gpu"):
        matrices = matrices_of(model, backend)
        curve = layer_levels(matrices, backend)
        for candidate in curve.levels:
            injected = [inject_level(m, candidate.level) for m in matrices]
            assert candidate.nodes == sum(i.n_submatrices for i in injected)
            assert candidate.paths == sum(len(i) for i in injected)
            assert candidate.submatrix_nonzeros == sum(len(i.blocks.value) for i in injected)
        report = report_levels(model_choices(model, backend), backend=backend)
        assert report.base_memory_bytes == 24 * model.n_states
        usable = [c.level for c in curve.levels if curve.seconds(c.level, backend) is not None]
        sizes = {k: curve.bytes_predicted(k, backend) for k in usable}
        assert sizes[report.min_memory] == min(sizes.values())


# ------------------------------------------------------------------ the level that is used


def weighed_report(layer_choices: list[LayerChoices], backend: str) -> LevelReport:
    engine = {"cpu": CpuBackend, "gpu": GpuBackend, "reference": ReferenceBackend}[backend]()
    return report_levels(layer_choices, backend=backend, held=weigh_levels(layer_choices, engine))


@pytest.mark.parametrize(
    ("name", "backend"),
    each(["coin", "jobs", "grid", "rooms"], ["cpu", "reference"]),
)
def test_operators_use_the_level_that_is_marked(name: str, backend: str) -> None:
    model = load(name)
    layer_choices, size = model_choices(model, backend), model.n_states
    report = weighed_report(layer_choices, backend)
    wanted = {"min-memory": report.min_memory, "min-time": report.min_time, "auto": report.min_time, 3: 3}
    for policy, level in wanted.items():
        options = CheckOptions.of(backend=backend, level=policy)
        operator = hybrid_choices(
            layer_choices, ChoiceProblem(size, True, None, 0.0), options.matrix_backend(), policy
        )
        assert operator.level == level
        assert {e.matrix.level for e in operator.layers if e.matrix is not None} == {level}
        if backend == "reference":
            built = [inject_level(o.matrix, level) for o in layer_choices if o.matrix is not None]
            assert report.curve[level].nodes == sum(i.n_submatrices for i in built)


@pytest.mark.parametrize("name", ["coin", "jobs", "rooms"])
def test_a_device_uses_the_level_that_is_marked(device: Device, name: str) -> None:
    model = load(name)
    layer_choices, size = model_choices(model, "gpu"), model.n_states
    report = weighed_report(layer_choices, "gpu")
    wanted = {"min-memory": report.min_memory, "min-time": report.min_time, "auto": report.min_time, 3: 3}
    for policy, level in wanted.items():
        options = CheckOptions.of(backend="gpu", level=policy)
        operator = device_choices(
            layer_choices, ChoiceProblem(size, True, None, 0.0), options.matrix_backend(), policy
        )
        assert operator is not None
        assert operator.level == level


@pytest.mark.parametrize("policy", ["auto", "min-memory", "min-time", 4])
def test_a_check_on_all_states_uses_the_level_that_is_marked(policy: str | int) -> None:
    model = load("grid")
    report = weighed_report(model_choices(model), "cpu")
    marked = {"min-memory": report.min_memory, 4: 4}.get(policy, report.min_time)
    answer = hybrid.check(model, 'R{"few"}max=? [ C<=3 ]', backend="cpu", level=policy, throw=False)
    assert answer.error is None
    assert answer.statistics.level == marked
    same = hybrid.check(model, 'R{"few"}max=? [ C<=3 ]', engine="explicit", throw=False)
    assert answer.value == pytest.approx(same.value, rel=1e-12)


@pytest.mark.parametrize("policy", ["min-memory", "min-time", 4])
def test_a_check_on_a_device_uses_the_level_that_is_marked(device: Device, policy: str | int) -> None:
    model = load("rooms")
    report = weighed_report(model_choices(model, "gpu"), "gpu")
    marked = {"min-memory": report.min_memory, 4: 4}.get(policy, report.min_time)
    answer = hybrid.check(model, 'R{"door"}max=? [ C<=5 ]', backend="gpu", level=policy, throw=False)
    assert answer.error is None
    assert (answer.statistics.backend, answer.statistics.level) == ("gpu", marked)
    same = hybrid.check(model, 'R{"door"}max=? [ C<=5 ]', backend="cpu", throw=False)
    assert answer.value == pytest.approx(same.value, rel=1e-12)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_level_that_does_not_exist_is_an_error_of_the_property(backend: str) -> None:
    answer = hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", backend=backend, level=99, throw=False)
    assert answer.value is None
    assert "expected 0..4" in str(answer.error)


def test_a_level_that_does_not_exist_is_an_error_on_a_device(device: Device) -> None:
    answer = hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", backend="gpu", level=99, throw=False)
    assert answer.value is None
    assert "expected 0..4" in str(answer.error)


# ------------------------------------------------------------------ large, odd and wrong layers


def identity(n_bits: int) -> OffsetMTBDD:
    """The identity with 2^n_bits rows: one node a row bit, two a column bit."""
    levels: list[Level] = []
    rows, columns = [np.full(1, 2**n_bits)], [np.full(1, 2**n_bits)]
    for bit in reversed(range(n_bits)):
        half = 2**bit
        levels += [
            Level(np.zeros(1, np.int32), np.ones(1, np.int32), np.full(1, half)),
            Level(np.array([0, -1], np.int32), np.array([-1, 0], np.int32), np.full(2, half)),
        ]
        rows += [np.full(2, half), np.full(1, half)]
        columns += [np.full(2, 2 * half), np.full(1, half)]
    return OffsetMTBDD(tuple(levels), np.ones(1), 2**n_bits, 2**n_bits, tuple(rows), tuple(columns))


def test_counts_far_beyond_memory_are_exact() -> None:
    matrix = identity(30)
    matrix.validate()
    apart, together = layer_curve([matrix] * 2), layer_levels([matrix] * 2, "gpu")
    assert together.typed.stacked is not None
    for curve in (apart, together):
        assert curve.nonzeros == 2 * 2**30
        assert [c.paths for c in curve.levels] == [2 * 2 ** ((k + 1) // 2) for k in range(61)]
    # Side by side the layers have 2**31 columns, but an instance's column lies within its layer.
    single = level_curve(matrix)
    assert together[20].bytes_first == 2 * single[20].bytes_first - 8


def test_levels_that_nobody_can_store_are_refused() -> None:
    # Row types of a dense matrix hold whole dense rows.
    dense = all_ones(30)
    apart, together = layer_curve([dense, dense]), layer_levels([dense], "gpu")
    assert apart.nonzeros == 2 * 4**30
    assert apart[30].row_type_bytes is None
    assert apart.seconds(30, "cpu") is None
    for curve, backend in ((apart, "cpu"), (together, "gpu")):
        with pytest.raises(ValueError, match=f"too many row types for the {backend} backend"):
            choose_level(curve, 30, backend)
    with pytest.raises(ValueError, match="stacked for 'gpu' alone"):
        choose_level(together, "min-time", "cpu")


def test_more_layers_than_a_fused_step_takes_are_held_one_by_one() -> None:
    few, many = ([from_dense(np.eye(2))] * count for count in (64, 65))
    assert layer_levels(few, "gpu").typed.stacked is not None
    curve = layer_levels(many, "gpu")
    assert len(curve.matrices) == 65
    assert curve[0].nodes == 65
    assert choose_level(curve, "min-time", "gpu").level in range(3)


def test_layers_with_few_rows_are_held_one_by_one(rng: np.random.Generator) -> None:
    codes = random_codes(rng, 5, 20)
    whole = from_dense(random_sparse(rng, 20, 20, 0.2), codes, codes, 5)
    part = from_dense(random_sparse(rng, 4, 20, 0.5), codes[3:7], codes, 5)
    assert len(layer_levels([whole, part], "gpu").matrices) == 2
    assert layer_levels([whole, part], "cpu")[0].submatrix_nonzeros == sum(
        np.count_nonzero(to_dense(m)) for m in (whole, part)
    )


def test_an_empty_layer_adds_pointers_alone() -> None:
    empty = from_dense(np.zeros((4, 4)), n_bits=2)
    single, both = level_curve(from_dense(np.eye(4))), layer_curve([from_dense(np.eye(4)), empty])
    for one, two in zip(single.levels, both.levels, strict=True):
        assert (one.nodes, one.paths, one.groups) == (two.nodes, two.paths, two.groups)
        assert two.bytes_first == one.bytes_first + 8


def test_matrices_that_do_not_belong_together_are_refused() -> None:
    for backend in ("cpu", "gpu"):
        with pytest.raises(ValueError, match="at least one layer"):
            layer_levels([], backend)
        with pytest.raises(ValueError, match="the same columns and levels"):
            layer_levels([from_dense(np.eye(4)), from_dense(np.eye(8))], backend)


def test_chains_have_no_offers() -> None:
    chain = build("dtmc module m s:[0..1]; [] true -> (s'=1-s); endmodule")
    with pytest.raises(ValueError, match="model.transitions"):
        model_choices(chain)


# ------------------------------------------------------------------ measuring


def test_steps_are_measured_at_every_usable_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
    layer_choices = model_choices(load("rooms"))
    lines: list[str] = []
    seconds = measure_levels(layer_choices, "cpu", lines.append)
    assert sorted(seconds) == list(range(7))
    assert all(s > 0 for s in seconds.values())
    assert lines == [f"measuring level {k}" for k in range(7)]
    report = report_levels(layer_choices, seconds=seconds)
    assert report.min_time == min(seconds, key=lambda k: (seconds[k], k))
    monkeypatch.setattr("hybrid.app.explorer.sheet.free_memory_bytes", lambda: 10)
    with pytest.raises(MemoryError, match="10 are free"):
        measure_levels(layer_choices, "cpu")


def test_steps_are_measured_on_a_device(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.app.explorer.sheet._MEASURED_SECONDS", 0.0)
    model = build("mdp module m x:[0..1]; [] true -> (x'=1-x); [a] x=0 -> true; endmodule")
    seconds = measure_levels(model_choices(model, "gpu"), "gpu")
    assert sorted(seconds) == list(range(3))
