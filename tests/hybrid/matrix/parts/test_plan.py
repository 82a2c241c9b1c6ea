"""Plans of parts against matrices written out: who needs what, balance, and the search's own counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.app.explorer.report import square_matrices
from hybrid.base.errors import OptionError
from hybrid.matrix.parts import search
from hybrid.matrix.parts.plan import plan_parts
from hybrid.matrix.parts.search import (
    choose_parts,
    column_uses,
    consecutive_parts,
    groups_for,
    nodes_of_parts,
    prefix_groups,
    transitions_of_groups,
    turned_parts,
)
from mtbdd.offset.offset import OffsetMTBDD, zero_matrix
from tests.builders.matrices import to_dense
from tests.builders.plans import BITS, index_of, random_case, received
from tests.source_tree import ROOT


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 7))
def test_halos_are_those_of_the_entries(seed: int, layers: int, parts: int) -> None:
    index, matrices, dense = random_case(seed, layers)
    n = index.size
    if parts > n:
        with pytest.raises(OptionError, match="a part for a state at most"):
            plan_parts(index, matrices, parts)
        return
    plan = plan_parts(index, matrices, parts)
    assert plan.is_exact
    assert sum(p.states for p in plan.parts) == n
    assert sum(p.transitions for p in plan.parts) == sum(np.count_nonzero(d) for d in dense)
    assert np.mean([p.share for p in plan.parts]) == pytest.approx(1.0)
    owner = plan.part[plan.groups.of(np.arange(n))]
    for p, expected in enumerate(received(plan, dense)):
        start, size = plan.halo(p)
        runs = [set(range(s, s + w)) for s, w in zip(start.tolist(), size.tolist(), strict=True)]
        assert set().union(*runs) == expected
        assert sum(map(len, runs)) == len(expected) == plan.parts[p].received
        assert plan.parts[p].pieces == len(runs)
        assert all(len(set(owner[list(run)].tolist())) == 1 for run in runs)
        assert plan.parts[p].partners == len(set(owner[sorted(expected)].tolist()))


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_ranges_that_are_not_cut_finer_hold_what_is_used(seed: int, most: int) -> None:
    index, matrices, dense = random_case(seed, 2)
    groups = prefix_groups(index, 2)
    coarse, fine = column_uses(matrices, groups, most), column_uses(matrices, groups)
    assert coarse.level <= fine.level == 2 * BITS
    assert (np.diff(coarse.start) >= coarse.size[:-1]).all()
    of = groups.of(np.arange(index.size))
    for group in range(len(groups)):
        used = np.zeros(index.size, bool)
        for matrix in dense:
            used |= (matrix[of == group] != 0).any(axis=0)
        mine = fine.range[fine.group == group]
        np.testing.assert_array_equal(np.sort(fine.start[mine]), np.flatnonzero(used))
        held = np.zeros(index.size, bool)
        for r in coarse.range[coarse.group == group]:
            held[coarse.start[r] : coarse.start[r] + coarse.size[r]] = True
        assert (held | ~used).all()
    entries = sum(np.count_nonzero(d, axis=1) for d in dense)
    np.testing.assert_array_equal(
        transitions_of_groups(matrices, groups), np.bincount(of, entries, len(groups)).astype(int)
    )


@given(st.integers(0, 2**32), st.integers(2, 4))
def test_moves_change_halos_as_the_count_afresh_says(seed: int, parts: int) -> None:
    index, matrices, _ = random_case(seed, 1)
    groups = prefix_groups(index, 3)
    nets = search._nets(column_uses(matrices, groups), len(groups))
    part = np.random.default_rng(seed).integers(parts, size=len(groups))
    after = search._moves(nets, part, parts)
    for group, to in itertools.product(range(len(groups)), range(parts)):
        if to != part[group]:
            moved = part.copy()
            moved[group] = to
            np.testing.assert_allclose(after[group, to], search._halos(nets, moved, parts)[1])


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_parts_that_go_round_are_stretches_of_equal_work(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    work = rng.integers(1, 9, size=int(rng.integers(parts, 30))).astype(float)
    found = turned_parts(work, parts)
    assert len({tuple(part) for part in found}) <= len(found) < len(work)
    for part in found:
        assert sorted(set(part.tolist())) == list(range(parts))
        assert (part != np.roll(part, 1)).sum() == parts
        assert part[0] == 0
        loads = np.bincount(part, work, parts)
        assert loads.max() - loads.min() <= 4 * work.max()
    if parts > 1 and (consecutive_parts(work, parts) == 0).sum() > 2:
        assert any(part[0] == part[-1] for part in found)


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_nodes_of_parts_are_the_blocks_of_their_rows(seed: int, parts: int) -> None:
    """Nodes stand for different blocks: a part's are those that its prefixes' rows lead to."""
    index, matrices, _ = random_case(seed, 2)
    groups = prefix_groups(index, 2)
    part = np.random.default_rng(seed).integers(parts, size=len(groups))
    found = nodes_of_parts(matrices, groups, part, parts)
    for p in range(parts):
        count = 0
        for matrix in matrices:
            roots = below(matrix, 0, 0, 0) if matrix.nodes[0] else ()
            paths = [path for path in roots if path[0] in range(4, matrix.n_levels)]
            count += len({(k, node) for k, node, row in paths if part[groups.of(np.array([row]))[0]] == p})
        assert count == found[p]


def below(matrix: OffsetMTBDD, k: int, node: int, row: int) -> Iterator[tuple[int, int, int]]:
    """Yield level, node and first row of every path from a node on."""
    yield k, node, row
    if k < matrix.n_levels:
        level = matrix.levels[k]
        for child, moved in (
            (level.low[node], 0),
            (level.high[node], int(level.offset[node]) * (k % 2 == 0)),
        ):
            if child >= 0:
                yield from below(matrix, k + 1, int(child), row + moved)


def test_least_halos_of_small_cuts() -> None:
    """The search finds the best of all balanced cuts where they can all be tried."""
    worst = 0.0
    for seed in range(40):
        index, matrices, _ = random_case(seed, 1)
        groups = prefix_groups(index, 3)
        if len(groups) < 4:
            continue
        uses, work = column_uses(matrices, groups), np.ones(len(groups))
        nets = search._nets(uses, len(groups))
        found = search._cost(nets, choose_parts(uses, work, 2), 2)
        half = len(groups) // 2
        costs = []
        for chosen in itertools.chain.from_iterable(
            itertools.combinations(range(len(groups)), k) for k in {half, len(groups) - half}
        ):
            part = np.zeros(len(groups), np.int64)
            part[list(chosen)] = 1
            costs.append(search._cost(nets, part, 2))
        assert found >= min(costs)
        worst = max(worst, found[0] / max(min(costs)[0], 1.0))
    assert worst == 1.0


@pytest.mark.parametrize(
    ("name", "constants"),
    [("kanban", {"t": 1}), ("tandem", {"c": 4}), ("coin", {"K": 1}), ("jobs", {"N": 3})],
)
def test_case_studies(name: str, constants: dict[str, int]) -> None:
    model = hybrid.load(ROOT / "examples" / f"{name}.prism", constants)
    matrices = square_matrices(model)
    dense = [to_dense(matrix) for matrix in matrices]
    assert len(dense) > 1 if model.is_mdp else len(dense) == 1
    entries = sum(np.count_nonzero(d) for d in dense)
    for parts in ((1, 3), (2, 4), (3, 7))[len(name) % 3]:
        plan = plan_parts(model.index, matrices, parts)
        assert [len(p) for p in received(plan, dense)] == [p.received for p in plan.parts]
        assert sum(p.transitions for p in plan.parts) == entries
        first = [int(np.flatnonzero(plan.part == p)[0]) for p in range(parts)]
        assert first == sorted(first)


def test_groups_of_other_parts_are_received_less_than_with_consecutive_rows() -> None:
    """Kanban's cells are ordered one after the other, so consecutive parts would receive much."""
    model = hybrid.load(ROOT / "examples/kanban.prism", {"t": 3})
    plan = plan_parts(model.index, [model.transitions], 4)
    work = transitions_of_groups([model.transitions], plan.groups) + 3.0 * plan.groups.size
    nets = search._nets(plan.uses, len(plan.groups))
    rows = search._cost(nets, search.consecutive_parts(work, 4), 4)
    found = search._cost(nets, plan.part, 4)
    assert found[0] == max(p.received for p in plan.parts)
    assert found[0] < 0.7 * rows[0]
    assert max(p.share for p in plan.parts) < 1.05


def test_work_that_nobody_can_balance_is_cut_all_the_same() -> None:
    uses = column_uses([], prefix_groups(index_of(np.arange(8), 3), 3))
    assert choose_parts(uses, np.array([9.0, 0, 0, 0, 0, 0, 0, 0]), 3).max() == 2
    np.testing.assert_array_equal(choose_parts(uses, np.ones(8), 8), np.arange(8))
    np.testing.assert_array_equal(choose_parts(uses, np.ones(8), 1), np.zeros(8))
    one = index_of(np.zeros(1, np.int64), 3)
    assert len(groups_for(one, 1)) == 1
    plan = plan_parts(one, [zero_matrix(3, 1, 1)], 1)
    assert (plan.parts[0].states, plan.parts[0].received, plan.parts[0].share) == (1, 0, 1.0)
    with pytest.raises(OptionError, match=r"expected 1 \.\. 1"):
        plan_parts(one, [zero_matrix(3, 1, 1)], 0)
