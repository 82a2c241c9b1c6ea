"""The fastest level is found without a look at the deepest ones; it is the one of a look at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.base.directed_rounding import near_least
from hybrid.matrix.gpu.cost import has_long_rows, longest_row
from hybrid.matrix.injection import row_types
from hybrid.matrix.injection.typed_matrix import TypedMatrix, row_type_bytes
from hybrid.matrix.levels.curve import LevelCurve, layer_curve, layer_levels, level_curve
from hybrid.matrix.levels.table import LevelTable, choose_level, rank_by_time
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import banded, from_dense, random_sparse
from tests.exploring import each

FACTOR, MOST = 1.04, 1.13
BACKENDS = ("cpu", "gpu")


def whole(table: LevelTable, backend: str) -> dict[int, float]:
    """Predicted seconds of all levels that can be used."""
    times = {k: table.seconds(k, backend) for k in range(len(table))}
    return {k: seconds for k, seconds in times.items() if seconds is not None}


def check(table: LevelTable, again: LevelTable, backend: str) -> None:
    """Compare the choice from few levels of a table with that from all levels of an equal one."""
    times = whole(again, backend)
    for k in range(len(again)):
        later = [seconds for j, seconds in times.items() if j >= k]
        assert again.least_seconds(k, backend) <= min(later, default=np.inf) * (1 + 1e-12)
    near = [k for k, seconds in times.items() if seconds <= FACTOR * min(times.values())]
    found = table.fast_levels(backend, FACTOR)
    assert set(near) <= {k for _, k in found}
    assert all(times[k] == seconds for seconds, k in found)
    best = min(near, key=lambda k: (again.bytes_predicted(k, backend), k))
    assert choose_level(table, "min-time", backend).level == best
    short = [k for k, seconds in times.items() if seconds <= MOST * min(times.values())]
    whole_times = {k: again.set_up_seconds(k, backend) + 1000 * times[k] for k in short}
    soonest = min(short, key=lambda k: (whole_times[k], k))
    sooner = FACTOR * whole_times[soonest] < whole_times[best]
    assert choose_level(table, "auto", backend).level == (soonest if sooner else best)


def matrices(seed: int) -> list[OffsetMTBDD]:
    """A sparse matrix of few values, one of many, a banded one."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 80))
    few = random_sparse(rng, size, size, float(rng.uniform(0.01, 0.3)))
    return [
        from_dense(np.where(few != 0, np.round(2 * few) + 1, 0.0)),
        from_dense(few),
        from_dense(banded(size + 5)),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_choice_is_that_of_a_look_at_all_levels(backend: str, seed: int) -> None:
    for matrix in matrices(seed):
        check(level_curve(matrix), level_curve(matrix), backend)


@pytest.mark.parametrize("backend", BACKENDS)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 3))
@settings(max_examples=30)
def test_so_is_that_of_layers(backend: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 40))
    layers = [from_dense(random_sparse(rng, size, size, 0.1)) for _ in range(count)]
    check(layer_levels(layers, backend), layer_levels(layers, backend), backend)


@pytest.mark.parametrize(
    ("name", "constants", "backend"),
    each(
        [
            ("kanban", {"t": 2}), ("fms", {"n": 2}), ("cluster", {"N": 8}), ("tandem", {"c": 15}),
            ("herman", {}),
        ],
        BACKENDS,
    ),
)  # fmt: skip
def test_so_are_those_of_the_case_studies(
    examples_folder: Path, name: str, constants: dict[str, int], backend: str
) -> None:
    matrix = hybrid.load(examples_folder / f"{name}.prism", constants=constants).transitions
    check(level_curve(matrix), level_curve(matrix), backend)


@pytest.mark.parametrize("stacked", [False, True])
def test_a_level_that_is_set_up_sooner_is_taken_unless_its_products_are_long(
    stacked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = from_dense(banded(100))
    table = layer_levels([matrix, matrix], "gpu") if stacked else level_curve(matrix)
    first = table.typed.first_level
    assert (first > 0) == stacked
    times = {7: 1e-4, 8: 1.12e-4, 9: 1.14e-4}
    monkeypatch.setattr(type(table), "fast_levels", lambda *_: [(t, k) for k, t in times.items()])
    for soon, chosen in ((8, 8), (9, 7)):

        def seconds(types: object, k: int, soon: int = soon) -> float:
            return 0.0 if k == soon + first else 1.0

        monkeypatch.setattr("hybrid.matrix.gpu.cost.layout_seconds", seconds)
        choice = choose_level(table, "auto", "gpu")
        assert choice.level == chosen
        assert ("least predicted time of set-up and 1000 products" in choice.reason) == (chosen == soon)
        assert choose_level(table, "min-time", "gpu").level == 7


def test_levels_within_a_budget_are_ranked_by_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    table = level_curve(from_dense(banded(100)))
    times = {3: 1e-4, 4: 1.1e-4, 5: 1.12e-4, 6: 1.2e-4, 7: 1.3e-4}
    set_up = {3: 0.5, 4: 0.1, 5: 0.0, 6: 0.0, 7: 0.0}
    monkeypatch.setattr(type(table), "seconds", lambda self, k, backend: times.get(k))
    monkeypatch.setattr(type(table), "set_up_seconds", lambda self, k, backend: set_up[k])
    assert rank_by_time(table, "min-time", "gpu", range(9)) == [3, 4, 5, 6, 7]
    assert rank_by_time(table, "auto", "gpu", range(9)) == [5, 4, 3, 6, 7]
    assert rank_by_time(table, "auto", "gpu", (1, 2)) == []


def test_layers_held_one_by_one_are_set_up_one_by_one() -> None:
    matrix = from_dense(banded(40))
    table, own = layer_curve([matrix, matrix, matrix]), level_curve(matrix)
    assert table.set_up_seconds(4, "gpu") == pytest.approx(3 * own.set_up_seconds(4, "gpu"))
    assert own.set_up_seconds(4, "gpu") > 0.0
    assert table.set_up_seconds(4, "cpu") == 0.0


def found_levels(monkeypatch: pytest.MonkeyPatch) -> Sequence[int]:
    """Levels whose row types are found from now on, one for each kind."""
    own, found = row_types.level_below, []

    def counted(above, classes, k):  # type: ignore[no-untyped-def]
        found.append(k + 1)
        return own(above, classes, k)

    monkeypatch.setattr(row_types, "level_below", counted)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_deep_levels_are_not_found(
    examples_folder: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", constants={"t": 3}).transitions
    found, curve = found_levels(monkeypatch), level_curve(matrix)
    assert not found
    level = choose_level(curve, "auto", backend).level
    assert level <= max(found) < matrix.n_levels
    assert len(set(found)) * 2 >= len(found)
    choose_level(curve, "min-memory", backend)
    assert max(found) == matrix.n_levels
    assert sorted(found) == sorted([*range(1, matrix.n_levels + 1)] * 2)


def test_a_level_that_is_asked_for_is_found_and_none_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = level_curve(from_dense(np.diag(np.arange(1.0, 33.0))))
    found = found_levels(monkeypatch)
    assert choose_level(curve, 3, "cpu").level == 3
    assert max(found) == 3


def many_rates(size: int) -> np.ndarray:
    """Blocks that differ by a factor: one class of scaled blocks, and as many of plain ones."""
    return np.kron(np.diag(np.arange(1.0, size + 1)), np.array([[1.0, 3.0], [5.0, 2.0]]))


def test_plain_row_types_are_left_out_from_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.injection.typed_matrix._MANY_SLOTS", 4)
    typed = TypedMatrix(from_dense(many_rates(64)))
    slots = [(len(typed.plain[k].blocks), len(typed.scaled[k].blocks)) for k in range(len(typed.plain))]
    first = next(k for k, (plain, scaled) in enumerate(slots) if plain > max(4, 8 * scaled))
    assert 0 < first < len(slots) - 1
    for k in range(len(slots)):
        assert typed.kinds(k) == ((typed.plain, typed.scaled) if k < first else (typed.scaled,))
    # In whatever order they are asked for.
    again = TypedMatrix(from_dense(many_rates(64)))
    assert again.kinds(len(slots) - 1) == (again.scaled,)
    assert again.kinds(first - 1) == (again.plain, again.scaled)


def test_plain_row_types_are_left_out_from_where_they_are_some_times_as_many_and_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hybrid.matrix.injection.typed_matrix._MANY_SLOTS", 4)
    monkeypatch.setattr("hybrid.matrix.injection.typed_matrix._VERY_MANY_SLOTS", 8)
    monkeypatch.setattr("hybrid.matrix.injection.typed_matrix._MOST_TIMES", 1e9)
    monkeypatch.setattr("hybrid.matrix.injection.typed_matrix._MOST_TIMES_LARGER", 20)
    matrix = from_dense(many_rates(64))
    typed = TypedMatrix(matrix)
    many = []
    for k in range(len(typed.plain)):
        own, scaled = len(typed.plain[k].blocks), len(typed.scaled[k].blocks)
        larger = row_type_bytes(typed.plain, k) > row_type_bytes(typed.scaled, k)
        many.append(own > 8 and own > 20 * scaled and larger)
    assert True in many
    for k in range(len(many)):
        assert (typed.plain in typed.kinds(k)) == (True not in many[: k + 1])
    # Without scales they may be the smaller ones.
    monkeypatch.setattr(
        "hybrid.matrix.injection.typed_matrix.row_type_bytes", lambda types, k: int(types.classes.scaled)
    )
    small = TypedMatrix(matrix)
    assert all(small.plain in small.kinds(k) for k in range(len(many)))


def test_neither_kind_is_offered_where_it_ends() -> None:
    rng = np.random.default_rng(3)
    typed = TypedMatrix(from_dense(random_sparse(rng, 60, 60, 0.3)))
    typed.plain._sweep._slot_limit = typed.scaled._sweep._slot_limit = 20
    curve = LevelCurve(typed.shape, typed.nonzeros, (typed,))
    reach = max(len(typed.plain), len(typed.scaled))
    assert reach < len(curve)
    assert typed.kinds(reach) == ()
    for backend in BACKENDS:
        assert curve.seconds(reach, backend) is None
        assert curve.least_seconds(reach, backend) == np.inf
    with pytest.raises(IndexError, match=rf"expected 0\.\.{len(typed.plain) - 1}, where row types are known"):
        typed.plain[reach]


@given(seed=st.integers(0, 2**32), longest=st.integers(1, 40))
def test_long_rows_are_noticed_without_the_deepest_row_types(seed: int, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.matrix.gpu.cost.LONGEST_ROW", longest)
        patch.setattr("hybrid.matrix.gpu.cost.LONG_ROW", 1 << 20)
        for matrix in matrices(seed):
            typed = TypedMatrix(matrix)
            assert has_long_rows(typed) == (longest_row(typed.plain) >= longest)


def test_numbers_near_the_least_are_found() -> None:
    numbers = [9.0, None, 4.0, 4.1, 8.0, 3.95, 20.0, 1.0]
    floors = [1.0, 1.0, 1.0, 2.0, 3.0, 3.9, 19.0, 0.0]
    found = near_least(len(numbers), lambda i: numbers[i], lambda i: floors[i], 1.04)
    assert found == [(9.0, 0), (4.0, 2), (4.1, 3), (8.0, 4), (3.95, 5)]
    assert near_least(3, lambda _: None, lambda _: 0.0, 1.0) == []
    assert near_least(0, lambda _: 1.0, lambda _: 0.0, 1.0) == []
