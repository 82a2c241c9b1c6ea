"""Building models from text for the tests, and comparing a symbolic model with an explicit one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.language import parse_model, resolve
from tests.oracles.mdps import ExplicitMdp, explore_mdp
from tests.oracles.models import ExplicitModel, explore

__all__ = ["build", "build_both", "build_mdp", "members", "node_set", "state_set"]


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


def build_mdp(text: str, package: str = "auto", **constants: Any) -> tuple[SymbolicModel, ExplicitMdp]:
    """Build an MDP from its text, symbolically and one state at a time; states have the same numbers."""
    source = resolve(parse_model(text), constants)
    return build_model(source, package=package), explore_mdp(source)
