"""Groups of states by the values of variables: their parts, what prefixes foretell, what is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from examples.generate import polling
from hybrid.matrix.parts.plan import (
    PrefixUses,
    fields_of,
    groupings,
    owners_of,
    plan_of,
    plan_parts,
    prefix_uses,
)
from hybrid.matrix.parts.search import column_uses, groups_by_bits, groups_for, nodes_of_parts, prefix_groups
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex, index_states
from tests.builders.matrices import to_dense
from tests.builders.plans import BITS, random_case, received
from tests.source_tree import ROOT

FIELDS = [(0, 1), (2,), (3, 4)]


@given(st.integers(0, 2**32), st.permutations(range(3)))
def test_groups_are_states_whose_tested_bits_agree(seed: int, tested: list[int]) -> None:
    index, _, _ = random_case(seed, 1)
    prefixes = prefix_groups(index, 4)
    bits = index.bits_at(np.arange(index.size))
    groups = groups_by_bits(prefixes, index.bits_at(prefixes.start)[:, :4], tested[:2])
    value = 2 * bits[:, tested[0]].astype(int) + bits[:, tested[1]]
    _, number, size = np.unique(value, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(groups.of(np.arange(index.size)), number.ravel())
    np.testing.assert_array_equal(groups.size, size)


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 400))
def test_prefixes_foretell_what_parts_take(seed: int, parts: int, work: int) -> None:
    """With prefixes of all bits nothing is rounded up: compared with the definition."""
    index, matrices, dense = random_case(seed, 2)
    n, used = index.size, (dense[0] != 0) | (dense[1] != 0)
    uses = prefix_uses(index, matrices, BITS, [])
    part = np.random.default_rng(seed).integers(parts, size=n)
    entries = sum(np.count_nonzero(d, axis=1) for d in dense)
    np.testing.assert_array_equal(uses.work, entries + 3.0 * np.ones(n))
    times, halos = [], []
    for p in range(parts):
        own = part == p
        away = used & own[:, None] & ~own[None, :]
        halos.append(int(away.any(axis=0).sum()))
        early = uses.work[own & ~away.any(axis=1)].sum()
        times.append(uses.work[own].sum() + 16.0 * halos[-1] - 0.8 * min(16.0 * halos[-1], early))
    assert uses.seconds(part, parts) == (pytest.approx(max(times)), max(halos))
    assert uses.seconds(part, parts, np.zeros(parts))[0] == pytest.approx(
        max(uses.work[part == p].sum() for p in range(parts))
    )


@given(st.integers(0, 2**32), st.integers(0, 2))
def test_prefixes_end_with_variables(seed: int, least: int) -> None:
    index, matrices, dense = random_case(seed, 1)
    for fields, bits in (([], least), (FIELDS, BITS), (FIELDS[:1], 2)):
        assert prefix_uses(index, matrices, least, fields).prefixes.bits == bits
    uses = prefix_uses(index, matrices, least, FIELDS[:1])
    of = uses.prefixes.of(np.arange(index.size))
    rows, columns = np.nonzero(dense[0])
    assert set(zip(uses.user.tolist(), uses.owner.tolist(), strict=True)) == set(
        zip(of[rows].tolist(), of[columns].tolist(), strict=True)
    )


def test_long_prefixes_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    import hybrid.matrix.parts.plan as module

    model = hybrid.load(ROOT / "examples/fms.prism", {"n": 2})
    fields, all_bits = fields_of(model), model.index.n_bits
    assert prefix_uses(model.index, [model.transitions], 3, fields).prefixes.bits == all_bits
    monkeypatch.setattr(module, "MOST_PAIRS", 400)
    uses = prefix_uses(model.index, [model.transitions], 3, fields)
    assert 3 < uses.prefixes.bits < all_bits
    assert len(uses.user) <= 400
    for groups in groupings(uses, 2, fields):
        assert max(groups.tested) < uses.prefixes.bits == groups.bits


@settings(max_examples=75)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_halos_of_groups_by_variables_are_those_of_the_entries(seed: int, parts: int) -> None:
    index, matrices, dense = random_case(seed, 2)
    if parts > index.size:
        return
    plan = plan_parts(index, matrices, parts, FIELDS)
    assert plan.is_exact
    assert [len(p) for p in received(plan, dense)] == [p.received for p in plan.parts]
    assert sum(p.states for p in plan.parts) == index.size
    simple = plan_parts(index, matrices, parts)
    most = max(1.05, *(p.share for p in simple.parts))
    assert max(p.share for p in plan.parts) <= most + 1e-12


def cost(uses: PrefixUses, model: hybrid.SymbolicModel, fields: list[tuple[int, ...]]) -> float:
    plan = plan_parts(model.index, [model.transitions], 2, fields)
    halos = np.array([p.received for p in plan.parts], np.float64)
    return uses.seconds(plan.of_prefixes(uses.prefixes), 2, halos)[0]


def test_parts_by_a_variable_below_others_exchange_less_that_is_not_hidden() -> None:
    """Machines of fms change seldom, the pallets above them in the order of variables often."""
    model = hybrid.load(ROOT / "examples/fms.prism", {"n": 5})
    fields = fields_of(model)
    uses = prefix_uses(model.index, [model.transitions], groups_for(model.index, 2).bits, fields)
    assert cost(uses, model, fields) < 0.9 * cost(uses, model, [])


def test_owners_are_the_states_of_the_groups() -> None:
    model = hybrid.load(ROOT / "examples/fms.prism", {"n": 2})
    uses = prefix_uses(model.index, [model.transitions], 3, fields_of(model))
    machines, queue = (model.encoding.by_name[name].bits for name in ("M1", "P1wP2"))
    groups = groups_by_bits(uses.prefixes, uses.values, machines + queue)
    assert groups.tested != tuple(range(len(groups.tested)))
    number = np.random.default_rng(1).integers(3, size=len(groups))
    entries, work = np.zeros(len(groups), np.int64), np.ones(len(groups))
    plan = plan_of(groups, column_uses([model.transitions], groups), entries, work, number, 3)
    part = number[groups.of(np.arange(model.n_states))]
    owners = owners_of(model, plan)
    assert len(owners) == 3
    for p, owner in enumerate(owners):
        runs = model.index.runs(index_states(model.manager, owner))
        own = np.concatenate([np.arange(a, b) for a, b in runs.tolist()])
        np.testing.assert_array_equal(own, np.flatnonzero(part == p))
    assert [len(one) for one in received(plan, [to_dense(model.transitions)])] == [
        p.received for p in plan.parts
    ]


def test_parts_of_a_ring_are_turned_to_share_nodes_that_few_rows_have() -> None:
    """Blocks differ where the server is at a station of the last bits: these have most of the nodes."""
    model = hybrid.parse(polling(12))
    matrices, fields = [model.transitions], fields_of(model)
    plan = plan_parts(model.index, matrices, 2, fields)
    prefixes = prefix_uses(model.index, matrices, groups_for(model.index, 2).bits, fields).prefixes
    most = nodes_of_parts(matrices, prefixes, plan.of_prefixes(prefixes), 2).max()
    halves = np.array_split(np.arange(12), 2)
    station = model.index.bits_at(prefixes.start)[:, list(model.encoding.by_name["s"].bits)] @ [8, 4, 2, 1]
    in_order = np.isin(station, halves[1]).astype(np.int64)
    assert most <= 0.75 * nodes_of_parts(matrices, prefixes, in_order, 2).max()
    assert max(p.share for p in plan.parts) == pytest.approx(1.0)
    # A walk has two ends: parts that go round would receive more.
    walk = plan_parts(*walk_of(24), 3)
    assert sorted(p.received for p in walk.parts) == [1, 1, 2]


def walk_of(n: int) -> tuple[StateIndex, list[OffsetMTBDD]]:
    model = hybrid.parse(
        f"dtmc module m x : [0..{n}]; [] true -> 0.5:(x'=min(x+1,{n})) + 0.5:(x'=max(x-1,0)); endmodule"
    )
    return model.index, [model.transitions]
