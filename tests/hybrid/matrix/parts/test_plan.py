"""Plans of parts against matrices written out: who owns what, who needs what, balance, and how little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from examples.generate import polling
from hybrid.base.errors import OptionError
from hybrid.matrix.parts import cuts, plan
from hybrid.matrix.parts.cuts import (
    Bisection,
    Cut,
    RowCounts,
    StateSample,
    count_rows,
    entries_in_rows,
    prefix_counts,
    rows_of,
    sample_states,
)
from hybrid.matrix.parts.plan import MatrixPart, PartPlan, measure_parts, plan_parts, planned_owners
from mtbdd.diagrams.manager import Node
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states
from tests.builders.matrices import to_dense
from tests.builders.plans import BITS, index_of, random_case
from tests.source_tree import ROOT


def loaded(name: str, **constants: int) -> hybrid.SymbolicModel:
    return hybrid.load(ROOT / "examples" / f"{name}.prism", constants)


def random_chain(seed: int) -> hybrid.SymbolicModel:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    dense = np.where(rng.random((n, n)) < rng.uniform(0.02, 0.3), 1.0, 0.0)
    dense[:, 0] += 1.0
    return hybrid.from_scipy(dense / dense.sum(axis=1, keepdims=True), type="dtmc")


def numbers_of(model: hybrid.SymbolicModel, states: Node) -> np.ndarray:
    return model.index.places(index_states(model.manager, states & model.reachable))


def entries_of(model: hybrid.SymbolicModel) -> list[np.ndarray]:
    return [to_dense(model.layer_transitions(layer)) != 0 for layer in range(len(model.layers))]


def check(model: hybrid.SymbolicModel, of: PartPlan) -> tuple[MatrixPart, ...]:
    """Compare a plan and what it says of its parts with the definition."""
    layers, parts = entries_of(model), measure_parts(model, of)
    owner = np.full(model.n_states, -1)
    for number, states in enumerate(of.owners):
        inside = numbers_of(model, states)
        assert (owner[inside] == -1).all()
        owner[inside] = number
    assert (owner >= 0).all() and len(parts) == len(of.owners)
    for number, part in enumerate(parts):
        own = owner == number
        used = np.logical_or.reduce([layer[own].any(axis=0) for layer in layers]) & ~own
        assert part.states == own.sum() > 0
        assert part.transitions == sum(layer[own].sum() for layer in layers)
        assert part.received == used.sum()
        assert part.partners == len(set(owner[used].tolist()))
    assert np.mean([part.share for part in parts]) == pytest.approx(1.0)
    return parts


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_parts_are_those_of_the_entries(seed: int, parts: int) -> None:
    model = random_chain(seed)
    if parts > model.n_states:
        with pytest.raises(OptionError, match="a part for a state at most"):
            plan_parts(model, parts)
        return
    check(model, plan_parts(model, parts))


@pytest.mark.parametrize(
    ("name", "constants"),
    [("kanban", {"t": 1}), ("tandem", {"c": 4}), ("coin", {"K": 1}), ("jobs", {"N": 3})],
)
def test_case_studies(name: str, constants: dict[str, int]) -> None:
    model = loaded(name, **constants)
    for parts in ((1, 3), (2, 4), (3, 7))[len(name) % 3]:
        found = check(model, plan_parts(model, parts))
        assert max(part.share for part in found) < 1.2


def test_as_many_parts_as_states() -> None:
    model = walk(12)
    assert [part.states for part in check(model, plan_parts(model, model.n_states))] == [1] * 13
    with pytest.raises(OptionError, match=r"expected 1 \.\. 13"):
        plan_parts(model, 0)


def walk(n: int) -> hybrid.SymbolicModel:
    return hybrid.parse(
        f"dtmc module m x : [0..{n}]; [] true -> 0.5:(x'=min(x+1,{n})) + 0.5:(x'=max(x-1,0)); endmodule"
    )


@given(st.integers(0, 2**32))
def test_rows_are_sampled_and_counted_as_they_are(seed: int) -> None:
    index, matrices, dense = random_case(seed, 1)
    rng = np.random.default_rng(seed)
    some = np.sort(rng.integers(index.size, size=5))
    place, column = entries_in_rows(matrices[0], index.bits_at(some))
    expected = [(k, c) for k, row in enumerate(some) for c in np.flatnonzero(dense[0][row])]
    assert sorted(zip(place.tolist(), column.tolist(), strict=True)) == expected
    bits = index.bits_at(np.arange(index.size))
    codes, chosen = bits @ (1 << np.arange(BITS)[::-1]), rng.random(index.size) < 0.5
    nodes, entries = rows_of(matrices[0], index_of(codes[chosen], BITS), 2)
    assert entries == np.count_nonzero(dense[0][chosen])
    reached = set().union(*(nodes_of(matrices[0], row) for row in bits[chosen]))
    assert nodes == sum(2 <= k < 2 * BITS for k, _ in reached)
    assert prefix_counts(index) == [len(set((codes >> k).tolist())) for k in range(BITS, -1, -1)]


def nodes_of(matrix: OffsetMTBDD, row: np.ndarray) -> set[tuple[int, int]]:
    """Levels and nodes that a row leads to."""
    front = {0} if matrix.nodes[0] else set()
    found = {(0, node) for node in front}
    for k, level in enumerate(matrix.levels):
        sides = (level.high if row[k // 2] else level.low,) if k % 2 == 0 else (level.low, level.high)
        front = {int(side[node]) for side in sides for node in front} - {-1}
        found |= {(k + 1, node) for node in front}
    return found


@pytest.mark.parametrize(("name", "constants"), [("kanban", {"t": 1}), ("coin", {"K": 1})])
def test_a_sample_has_the_users_of_its_columns(name: str, constants: dict[str, int]) -> None:
    model = loaded(name, **constants)
    sample = sample_states(model, 2, most=100)
    assert 60 < len(sample.number) <= 100 < sample.states == model.n_states
    layers = entries_of(model)
    uses = {(c, int(r)) for layer in layers for c in sample.number for r in np.flatnonzero(layer[:, c])}
    assert set(zip(sample.number[sample.column].tolist(), sample.user.tolist(), strict=True)) == uses
    assert (np.diff(sample.column) >= 0).all()
    rows = sum(layer.sum(axis=1) for layer in layers)
    np.testing.assert_array_equal(sample.work, rows[sample.number] + 3.0)
    for numbers, values in ((sample.number, sample.value), (sample.user, sample.user_value)):
        bits = model.index.bits_at(numbers)
        for name_of, own in zip(sample.names, values, strict=True):
            field = model.encoding.by_name[name_of].bits
            np.testing.assert_array_equal(own, bits[:, field] @ (1 << np.arange(len(field))[::-1]))


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_cuts_as_sets_hold_the_states_that_they_hold(seed: int) -> None:
    rng, model = np.random.default_rng(seed), SMALL
    every = sample_states(model, 1)
    signs = rng.integers(-1, 2, size=len(every.names))
    total = signs @ every.value
    last = int(rng.integers(model.n_states))
    cut = Cut(tuple(signs.tolist()), int(total[last]) + int(rng.integers(-1, 2)), last)
    expected = (total < cut.bound) | ((total == cut.bound) & (every.number <= last))
    np.testing.assert_array_equal(cut.holds(every.value, every.number), expected)
    np.testing.assert_array_equal(numbers_of(model, cut.states(model)), np.flatnonzero(expected))


SMALL = loaded("kanban", t=1)


def bisection_of(sample: StateSample, parts: tuple[int, int] = (1, 1)) -> Bisection:
    every = np.arange(len(sample.number)), np.arange(len(sample.user))
    return Bisection(sample, *every, np.zeros(len(sample.number), bool), np.ones(len(sample.names)), parts)


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_what_a_cut_is_predicted_to_take(seed: int) -> None:
    """A sample of all states: what both sides receive is what they need of the other one."""
    rng = np.random.default_rng(seed)
    sample = sample_states(SMALL, 2)
    signs = tuple(rng.integers(-1, 2, size=len(sample.names)).tolist())
    bisection, n = bisection_of(sample), SMALL.n_states
    cut = bisection.cut(signs)
    low = cut.holds(sample.value, sample.number)
    assert 0.8 < sample.work[low].sum() / sample.work[~low].sum() < 1.25
    used, grown = entries_of(SMALL)[0], bisection._factors(signs)
    growth = (sample.nodes @ grown) / sample.nodes.sum()
    own = sample.work.sum() / n * (1.0 + 0.02 * (growth - 1.0))
    times = sorted(own + 16.0 * (used[side].any(axis=0) & ~side).sum() / (n / 2) for side in (low, ~low))
    # No variable is above blocks of so few states: all rows wait, and nothing is hidden.
    assert bisection.cost(signs) == pytest.approx(times[1] + 1e-3 * times[0]) or not any(signs)
    limit = bisection.cost(signs) * 0.9
    assert bisection.cost(signs, limit) >= limit


def test_rows_that_wait_are_those_with_the_sum_of_one_that_does() -> None:
    model = walk(4095)
    sample = sample_states(model, 2, most=1000)
    assert not sample.above.any()
    bisection = bisection_of(sample)
    cut = bisection.cut((1,))
    low, by_low = (
        cut.holds(v, n) for v, n in ((sample.value, sample.number), (sample.user_value, sample.user))
    )
    assert bisection._late_by(cut, low, by_low).all()
    sample.above[:] = True
    late = bisection._late_by(cut, low, by_low)
    assert sample.value[0][late].tolist() in ([], [cut.bound], [cut.bound + 1], [cut.bound, cut.bound + 1])


def test_sums_of_variables_are_received_less_than_consecutive_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kanban's cells are ordered one after the other, so consecutive parts would receive much."""
    model = loaded("kanban", t=3)
    found = plan_parts(model, 4)
    parts = measure_parts(model, found)
    assert max(part.share for part in parts) < 1.02  # counted, where the sample has a part of the states
    assert found.sampled < model.n_states
    assert planned_owners(model, 4) == found.owners
    monkeypatch.setattr(cuts, "_PLAIN", 2.0)
    consecutive = measure_parts(model, plan_parts(model, 4))
    assert max(part.received for part in parts) < 0.65 * max(part.received for part in consecutive)


def test_parts_of_a_ring_are_turned_to_share_nodes_that_few_rows_have() -> None:
    """Blocks differ where the server is at a station of the last bits: these have most of the nodes."""
    model = hybrid.parse(polling(12))
    found = plan_parts(model, 2)
    first = Cut((1,), 5, model.n_states - 1).states(model)
    stations = [model.reachable & first, model.reachable & ~first]
    most = max(count_rows(model, owner, 10).nodes for owner in found.owners)
    assert most <= 0.8 * max(count_rows(model, half, 10).nodes for half in stations)
    assert max(part.share for part in measure_parts(model, found)) < 1.02


def test_parts_that_receive_more_are_not_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk has two ends: parts that went round would receive more, however few nodes they had."""
    line, ring = (
        walk(24),
        hybrid.parse(f"dtmc module m x : [0..{24}]; [] true -> (x'=mod(x+1,25)); endmodule"),
    )
    straight = {model: plan_parts(model, 3).owners for model in (line, ring)}
    counted, fewer = plan.count_rows, itertools.count(10**6, -(10**5))
    monkeypatch.setattr(plan, "count_rows", lambda *_: RowCounts(1, next(fewer), 1))
    turned = {model: plan_parts(model, 3).owners for model in (line, ring)}
    assert turned[line] == straight[line] and turned[ring] != straight[ring]
    monkeypatch.setattr(plan, "count_rows", counted)
    assert sorted(part.received for part in measure_parts(line, plan_parts(line, 3))) == [1, 1, 2]
