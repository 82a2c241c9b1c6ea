"""Matrices and sets of which processes have parts, against dense arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hybrid.base.communicators import in_threads
from mtbdd.base.communicator import Communicator, Share
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.distributed import DistributedMTBDD, beside, distribute, distribute_all, places_of
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states, states_from
from tests.builders.dense import symbolic_matrix
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import node_set

Array = NDArray[np.float64]


class Numbered(Communicator):
    """A process that tells nothing."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


def entries(matrix: OffsetMTBDD) -> Array:
    """Return a matrix as an array, path by path."""
    found = np.zeros(matrix.shape)

    def walk(k: int, node: int, row: int, column: int) -> None:
        if k == matrix.n_levels:
            found[row, column] = matrix.terminals[node]
            return
        level = matrix.levels[k]
        if level.low[node] >= 0:
            walk(k + 1, int(level.low[node]), row, column)
        if level.high[node] >= 0:
            step = int(level.offset[node])
            walk(k + 1, int(level.high[node]), row + step * (k % 2 == 0), column + step * (k % 2))

    if matrix.nodes[0]:
        walk(0, 0, 0, 0)
    return found


class Divided:
    """A random matrix over random states, and who has them."""

    def __init__(self, rng: np.random.Generator, package: str, bits: int = 3) -> None:
        self.manager = Manager(bits, package)
        size = 1 << bits
        self.parts = int(rng.integers(1, 6))
        self.rows = np.flatnonzero(rng.random(size) < 0.8)
        self.columns = np.flatnonzero(rng.random(size) < 0.8)
        self.part = rng.integers(self.parts, size=size)
        self.owners = tuple(self.set(np.flatnonzero(self.part == p)) for p in range(self.parts))

    def set(self, codes: NDArray[np.integer]) -> object:
        return node_set(self.manager, self.manager.rows, codes.tolist())

    def matrix(self, rng: np.random.Generator) -> tuple[SymbolicMatrix, Array]:
        size = len(self.part)
        dense = rng.choice([0.25, 0.5, 3.0], size=(size, size)) * (rng.random((size, size)) < rng.random())
        inside = np.zeros((size, size))
        inside[np.ix_(self.rows, self.columns)] = 1.0
        dense = dense * inside
        return symbolic_matrix(self.manager, dense), dense

    def process(self, rank: int) -> Manager:
        return self.manager.sharing(Share(Numbered(rank, self.parts), self.owners))

    def own(self, codes: NDArray[np.integer], rank: int) -> NDArray[np.integer]:
        return codes[self.part[codes] == rank]


def together(
    divided: Divided, found: list[DistributedMTBDD], rank: int, columns: NDArray[np.integer]
) -> list[int]:
    """Return the columns of a process's matrix, as codes: own ones, and what the others say they send."""
    order = divided.own(columns, rank).tolist()
    for other in range(divided.parts):
        if other != rank:
            sent = divided.own(columns, other)[places_of(found[other].outgoing[rank])].tolist()
            assert len(sent) == found[rank].incoming[other]
            order += sent
    return order


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_own_rows_have_all_their_entries(package: str, transposed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    divided = Divided(rng, package)
    matrix, dense = divided.matrix(rng)
    managers = [divided.process(rank) for rank in range(divided.parts)]
    rows, columns = divided.set(divided.rows), divided.set(divided.columns)
    found = [
        distribute(m, matrix, index_states(m, rows), index_states(m, columns), transposed) for m in managers
    ]
    mine, theirs = (divided.columns, divided.rows) if transposed else (divided.rows, divided.columns)
    whole = dense.T if transposed else dense
    for rank, own in enumerate(found):
        own.validate()
        assert own.own_columns == len(divided.own(theirs, rank))
        order = together(divided, found, rank, theirs)
        assert np.array_equal(entries(own), whole[np.ix_(divided.own(mine, rank), order)])
        # Nothing is received that no row uses.
        used = np.flatnonzero(whole[divided.own(mine, rank)].any(axis=0))
        assert set(order[own.own_columns :]) == set(used.tolist()) - set(divided.own(theirs, rank).tolist())
        assert own.has_entries == bool(dense.any())


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_several_matrices_receive_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    divided = Divided(rng, DIAGRAM_PACKAGES[0])
    pairs = [divided.matrix(rng) for _ in range(3)]
    found = []
    for rank in range(divided.parts):
        manager = divided.process(rank)
        rows = [index_states(manager, divided.set(divided.rows))] * 3
        columns = index_states(manager, divided.set(divided.columns))
        found.append(distribute_all(manager, [m for m, _ in pairs], rows, columns))
    for rank, matrices in enumerate(found):
        for k, (own, (_, dense)) in enumerate(zip(matrices, pairs, strict=True)):
            order = together(divided, [of[k] for of in found], rank, divided.columns)
            assert np.array_equal(entries(own), dense[np.ix_(divided.own(divided.rows, rank), order)])
            assert (own.incoming, own.n_columns) == (matrices[0].incoming, matrices[0].n_columns)


def test_matrices_beside_each_other_share_their_nodes(rng: np.random.Generator) -> None:
    divided = Divided(rng, DIAGRAM_PACKAGES[0], 4)
    manager = divided.manager
    everything = index_states(manager, manager.true)
    dense = rng.choice([0.0, 1.0, 2.0], size=(16, 16))
    one = distribute(
        manager.sharing(Share(Numbered(0, 1), (manager.true,))),
        symbolic_matrix(manager, dense), everything, everything,
    )  # fmt: skip
    for count in (2, 3, 5):
        found = beside([one] * count)
        found.validate()
        assert np.array_equal(entries(found), np.hstack([dense] * count))
        assert found.nodes[-len(one.nodes) :] == one.nodes
    for units in ((3.0, 7.0), (7.0, 3.0), (7.0, 7.0, 3.0)):
        assert beside([replace(one, entry_units=u) for u in units]).entry_units == 7.0


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@given(seed=st.integers(0, 2**32 - 1))
def test_sets_are_numbered_by_own_members_and_united(package: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    divided = Divided(rng, package)
    manager = divided.manager
    marked = rng.random(len(divided.part)) < 0.5
    states = divided.set(divided.rows)

    def run(alike: Communicator) -> object:
        own = manager.sharing(Share(alike, divided.owners))
        index = index_states(own, states)
        mine = divided.own(divided.rows, alike.rank)
        assert (index.size, index.total) == (len(mine), len(divided.rows))
        assert index.states == states
        return states_from(own, index, marked[mine])

    wanted = divided.set(divided.rows[marked[divided.rows]])
    assert all(found == wanted for found in in_threads(divided.parts, run))


@given(seed=st.integers(0, 2**32 - 1))
def test_places_of_a_subset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    divided = Divided(rng, DIAGRAM_PACKAGES[0], 4)
    some = divided.rows[rng.random(len(divided.rows)) < 0.5]
    index, subset = (index_states(divided.manager, divided.set(codes)) for codes in (divided.rows, some))
    places = np.searchsorted(divided.rows, some)
    assert np.array_equal(index.places(subset), places)
    runs = index.runs(subset)
    assert np.array_equal(places_of(runs), places)
    assert (runs[:, 0] < runs[:, 1]).all() and (runs[1:, 0] > runs[:-1, 1]).all()


def test_a_manager_without_a_share_is_whole() -> None:
    manager = Manager(2)
    assert manager.whole is manager
    assert manager.communicator.size == 1
    shared = manager.sharing(Share(Numbered(0, 1), (manager.true,)))
    assert shared.whole is manager and shared.sharing(Share(Numbered(0, 1), (manager.true,))).whole is manager
