"""Building models from text for the tests, and comparing a symbolic model with an explicit one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbdd.build import build_model
from mtbdd.faults import BuildError
from mtbdd.language import parse_model, resolve
from mtbdd.manager import Manager, Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import reward_rates
from tests.helpers import to_dense
from tests.oracles import ExplicitModel, explore, mtbdd_size

__all__ = ["assert_same_model", "build", "build_both", "members", "node_set", "state_set"]

# Sums and products of a few doubles in another order than the exact ones.
RTOL = 1e-12

# Counting the nodes of a padded array visits every entry.
_COUNTED_BITS = 6


def build(text: str, package: str = "auto", fix_deadlocks: bool = True, **constants: Any) -> SymbolicModel:
    """Build a model from its text."""
    source = resolve(parse_model(text), constants)
    return build_model(source, package=package, fix_deadlocks=fix_deadlocks)


def build_both(text: str, package: str = "auto", **constants: Any) -> tuple[SymbolicModel, ExplicitModel]:
    """Build a model from its text, symbolically and one state at a time."""
    source = resolve(parse_model(text), constants)
    return build_model(source, package=package), explore(source)


def node_set(manager: Manager, names: tuple[str, ...], numbers: Any) -> Node:
    """Return the set of assignments of `names` that spell the given numbers, cube by cube."""
    node = manager.false
    for number in numbers:
        bits = {name: bool(number >> (len(names) - 1 - i) & 1) for i, name in enumerate(names)}
        node = node | (manager.bdd.cube(bits) if bits else manager.true)
    return node


def state_set(model: SymbolicModel, explicit: ExplicitModel, states: Any) -> Node:
    """Return a set of states, given by their numbers."""
    codes = explicit.codes()
    return node_set(model.manager, model.manager.rows, [codes[i] for i in states])


def members(model: SymbolicModel, states: Node) -> set[int]:
    """Return the numbers of the reachable states in a set."""
    return set(np.flatnonzero(model.indicator(states)).tolist())


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
