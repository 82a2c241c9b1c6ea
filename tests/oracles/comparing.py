"""Symbolic models compared with explicit ones: states, matrices, labels, rewards, sizes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import action_rewards, reward_rates, state_rewards
from mtbdd.language.errors import BuildError
from tests.builders.matrices import to_dense
from tests.builders.models import members
from tests.oracles.mdps import ExplicitMdp
from tests.oracles.models import ExplicitModel, mtbdd_size

# Sums and products of a few doubles in another order than the exact ones.
RTOL = 1e-12

# Counting the nodes of a padded array visits every entry.
_COUNTED_BITS = 6


def assert_same_model(model: SymbolicModel, explicit: ExplicitModel) -> None:
    """Check states, matrix, labels, rewards and sizes of a symbolic model against the explicit one."""
    n = explicit.n_states
    assert model.n_states == n
    assert model.describe(np.arange(n)) == [explicit.valuation(i) for i in range(n)]
    for i, code in enumerate(explicit.codes()):
        bits = [bool(code >> k & 1) for k in reversed(range(model.encoding.n_bits))]
        assert model.index.number(bits) == i
    assert members(model, model.initial) == explicit.initial
    assert members(model, model.deadlocks) == explicit.deadlocks
    assert bool(model.warnings) == bool(explicit.deadlocks)
    for label in model.source.labels:
        assert members(model, model.states(label.expression)) == explicit.where(label.expression), label.name

    model.transitions.validate()
    dense, expected = to_dense(model.transitions), explicit.dense()
    assert np.array_equal(dense != 0, expected != 0)
    np.testing.assert_allclose(dense, expected, rtol=RTOL)
    assert model.n_transitions == model.statistics.transitions == explicit.n_transitions
    np.testing.assert_allclose(model.exit_rates(model.index), expected.sum(axis=1), rtol=RTOL)
    assert np.array_equal(model.self_loops(model.index), dense.diagonal())
    assert model.has_self_loops(model.index) == dense.diagonal().any()
    if model.encoding.n_bits <= _COUNTED_BITS:
        padded = np.zeros((1 << model.encoding.n_bits,) * 2)
        padded[np.ix_(explicit.codes(), explicit.codes())] = dense
        assert (model.statistics.mtbdd_nodes, model.statistics.terminals) == mtbdd_size(padded)

    for structure in range(len(model.source.rewards)):
        rewards = [float(r) for r in explicit.rewards(structure)]
        scale = max((abs(r) for r in rewards), default=0.0)
        # Rewards of both signs may cancel, so that it is not known whether anything is left.
        try:
            found = reward_rates(model, structure, model.index)
        except BuildError as error:
            assert "rewards of both signs cancel" in str(error)
            assert min(abs(r) for r in rewards) <= RTOL
            continue
        np.testing.assert_allclose(found, rewards, rtol=RTOL, atol=RTOL * scale)


def assert_same_mdp(model: SymbolicModel, mdp: ExplicitMdp) -> None:
    graph = mdp.graph
    assert model.n_states == graph.n_states
    assert model.describe(np.arange(model.n_states)) == [graph.valuation(i) for i in range(model.n_states)]
    assert members(model, model.initial) == graph.initial
    assert members(model, model.deadlocks) == graph.deadlocks
    assert bool(model.warnings) == bool(graph.deadlocks)
    assert model.n_choices == model.statistics.choices == mdp.n_choices
    assert model.n_transitions == model.statistics.transitions == mdp.n_transitions
    assert offered(model) == expected_offers(mdp)
    for structure in range(len(model.source.rewards)):
        assert_same_rewards(model, mdp, structure)


def offered(model: SymbolicModel) -> list[Counter[tuple[str | None, tuple[float, ...]]]]:
    """Return what every state is offered: its choices with actions, as rows of the layers."""
    found: list[Counter[tuple[str | None, tuple[float, ...]]]] = [Counter() for _ in range(model.n_states)]
    for number, layer in enumerate(model.layers):
        offset = model.layer_transitions(number)
        offset.validate()
        dense = to_dense(offset)
        enabled = members(model, layer.enabled)
        assert enabled == set(np.flatnonzero(dense.any(axis=1)).tolist())
        parts = [members(model, part.states) for part in layer.parts]
        assert sum(len(states) for states in parts) == len(enabled)
        assert set().union(*parts) == enabled
        for part, states in zip(layer.parts, parts, strict=True):
            for i in states:
                found[i][part.action, tuple(dense[i].round(12).tolist())] += 1
    return found


def expected_offers(mdp: ExplicitMdp) -> list[Counter[tuple[str | None, tuple[float, ...]]]]:
    """Return the same from the explicit MDP."""
    n = mdp.graph.n_states
    return [
        Counter((action, tuple(round(float(row.get(j, 0)), 12) for j in range(n))) for action, row in own)
        for own in mdp.choices
    ]


def assert_same_rewards(model: SymbolicModel, mdp: ExplicitMdp, structure: int) -> None:
    own = np.array([float(r) for r in mdp.state_rewards(structure)])
    np.testing.assert_allclose(state_rewards(model, structure, model.index), own, rtol=1e-12, atol=1e-13)
    for number, layer in enumerate(model.layers):
        moves = np.zeros(model.n_states)
        for part in layer.parts:
            rewards = mdp.choice_rewards(structure, part.action)
            for i in members(model, part.states) if part.event is not None else ():
                moves[i] = float(rewards[i])
        found = action_rewards(model, structure, model.index, number)
        np.testing.assert_allclose(found, moves, rtol=1e-12, atol=1e-13)
        both = reward_rates(model, structure, model.index, number)
        np.testing.assert_allclose(both, own + moves, rtol=1e-12, atol=1e-13)
