"""The index of a set of states, and vectors over it, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, TRUE, read_nodes
from mtbdd.diagrams.partition import Partition, from_table
from mtbdd.offset import expansion
from mtbdd.offset.convert import offset_label
from mtbdd.offset.expansion import expand, expand_sum, expand_values
from mtbdd.offset.offset import MAX_COUNT
from mtbdd.offset.states import StateIndex, index_states
from tests.builders.dense import symbolic_matrix
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import node_set
from tests.exploring import rounds


def random_codes(rng: np.random.Generator, n_bits: int, share: float) -> list[int]:
    return np.flatnonzero(rng.random(1 << n_bits) < share).tolist()


def index_of(manager: Manager, codes: list[int]) -> StateIndex:
    return index_states(manager, node_set(manager, manager.rows, codes))


def bits(code: int, n_bits: int) -> list[bool]:
    return [bool(code >> k & 1) for k in reversed(range(n_bits))]


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("n_bits", [1, 2, 5, 7])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_index_numbers_states_in_order(
    package: str, n_bits: int, share: float, rng: np.random.Generator
) -> None:
    codes = random_codes(rng, n_bits, share) or [int(rng.integers(1 << n_bits))]
    index = index_of(Manager(n_bits, package), codes)
    assert (index.size, index.n_bits) == (len(codes), n_bits)
    assert [index.number(bits(code, n_bits)) for code in codes] == list(range(len(codes)))
    found = index.bits_at(np.arange(len(codes)))
    assert found.tolist() == [bits(code, n_bits) for code in codes]
    order = rng.permutation(len(codes))
    assert np.array_equal(index.bits_at(order), found[order])
    for code in set(range(1 << n_bits)) - set(codes):
        with pytest.raises(KeyError):
            index.number(bits(code, n_bits))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_index_of_nothing_and_of_everything(package: str) -> None:
    manager = Manager(3, package)
    nothing = index_states(manager, manager.false)
    assert nothing.size == 0 and nothing.bits_at(np.zeros(0, dtype=np.int64)).shape == (0, 3)
    with pytest.raises(KeyError):
        nothing.number([False] * 3)
    everything = index_states(manager, manager.true)
    assert everything.size == 8
    assert [len(level) for level in everything.low] == [1, 1, 1]
    empty = Manager(0, package)
    assert index_states(empty, empty.true).size == 1
    assert index_states(empty, empty.true).number([]) == 0
    assert index_states(empty, empty.false).size == 0


def test_index_nodes_are_minimal(rng: np.random.Generator) -> None:
    """Every level has one node for every distinct non-empty subset below it."""
    n_bits = 6
    codes = set(random_codes(rng, n_bits, 0.6))
    index = index_of(Manager(n_bits, FASTEST), sorted(codes))
    for level in range(n_bits + 1):
        width = 1 << (n_bits - level)
        below = {
            frozenset(c - start for c in codes if start <= c < start + width)
            for start in range(0, 1 << n_bits, width)
        }
        assert len(index.counts[level]) == len(below - {frozenset()})


def test_index_counts_any_number_of_states() -> None:
    for n_bits in (61, 62, 63, 64, 65, 130):
        manager = Manager(n_bits, FASTEST)
        index = index_states(manager, manager.true)
        assert index.size == index.total == 2**n_bits
        assert (index.counts[0].dtype == np.object_) == (index.size > MAX_COUNT)
        assert index.counts[-61].dtype == np.int64


def test_what_cannot_be_numbered_is_refused_where_numbers_are_needed() -> None:
    manager = Manager(70, FASTEST)
    index = index_states(manager, manager.true)
    one = SymbolicMatrix(manager, manager.equal_bits(range(70)), np.ones(1))
    assert one.entries() == (2**70, [1.0])
    with pytest.raises(OverflowError, match="2\\^62 states"):
        offset_label(one, index, index)


def test_entries_are_counted_one_by_one(rng: np.random.Generator) -> None:
    for _ in range(rounds(20)):
        entries = rng.choice([0.0, 0.0, 1.0, 2.0, 0.25], (8, 8))
        count, values = symbolic_matrix(Manager(3, FASTEST), entries).entries()
        assert count == np.count_nonzero(entries)
        assert sorted(values) == np.unique(entries[entries != 0]).tolist()


def test_index_of_a_large_set_decodes(rng: np.random.Generator) -> None:
    """2^40 + 1 states: every assignment under a zero first bit, and the last one under a one."""
    manager = Manager(41, FASTEST)
    first = manager.bdd.var(manager.rows[0])
    index = index_states(manager, ~first | manager.cube(manager.rows, 2**41 - 1))
    assert index.size == 2**40 + 1
    numbers = np.array([0, 1, 2**40 - 1, 2**40, *rng.integers(0, 2**40, 5)])
    for number, row in zip(numbers.tolist(), index.bits_at(numbers).tolist(), strict=True):
        assert index.number(row) == number
    assert index.bits_at(np.array([2**40])).all()


# ------------------------------------------------------------------ vectors


def function_over(manager: Manager, table: NDArray[np.float64]) -> tuple[SymbolicMatrix, NDArray[np.float64]]:
    mask = np.ones(table.size, dtype=np.bool_)
    return SymbolicMatrix.from_partition(from_table(manager, manager.rows, table, mask)), table


@pytest.fixture(params=[0, expansion._FEW], ids=["block by block", "one by one"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set how many states follow a diagram one by one."""
    monkeypatch.setattr(expansion, "_FEW", request.param)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("n_values", [1, 2, 5, 60])
def test_expand_equals_table(package: str, n_values: int, rng: np.random.Generator) -> None:
    manager = Manager(6, package)
    codes = random_codes(rng, 6, 0.6)
    index = index_of(manager, codes)
    function, table = function_over(manager, rng.integers(0, n_values + 1, 64) / 3.0)
    assert np.array_equal(expand(function, index), table[codes])
    assert expand(function, index_states(manager, manager.false)).shape == (0,)


# A flat vector, and blocks that repeat: short ones gathered by index, long ones copied, by one core or all.
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("low_bits", [0, 3, 9, 16])
def test_expand_copies_repeated_blocks(
    low_bits: int, shared: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shared:
        monkeypatch.setattr("mtbdd.offset.states._SHARED_BYTES", 1)
    n_bits = 16
    manager = Manager(n_bits, FASTEST)
    pattern = rng.integers(0, 4, 1 << low_bits) / 3.0
    mask = np.ones(pattern.size, dtype=np.bool_)
    names = manager.rows[n_bits - low_bits :]
    function = SymbolicMatrix.from_partition(from_table(manager, names, pattern, mask))
    # All but the multiples of 8 under the first bit.
    tail = manager.rows[-3:]
    states = ~(manager.bdd.var(manager.rows[0]) & manager.cube(tail, 0))
    index = index_states(manager, states)
    codes = np.arange(1 << n_bits)
    codes = codes[(codes < 1 << 15) | (codes % 8 != 0)]
    assert np.array_equal(expand(function, index), pattern[codes % pattern.size])


@pytest.mark.usefixtures("few")
def test_expand_values_keeps_the_type(rng: np.random.Generator) -> None:
    manager = Manager(5, FASTEST)
    codes, chosen = random_codes(rng, 5, 0.7), random_codes(rng, 5, 0.4)
    index = index_of(manager, codes)
    table = read_nodes(manager, node_set(manager, manager.rows, chosen))
    result = expand_values(index, table, lambda refs: refs == TRUE, np.bool_)
    assert result.dtype == np.bool_
    assert result.tolist() == [code in chosen for code in codes]
    counted = expand_values(index, table, lambda refs: np.where(refs == FALSE, 3, 5), np.int8)
    assert counted.dtype == np.int8
    assert counted.tolist() == [5 if code in chosen else 3 for code in codes]


@pytest.mark.usefixtures("few")
def test_expand_without_bits() -> None:
    manager = Manager(0, FASTEST)
    index = index_states(manager, manager.true)
    assert expand(SymbolicMatrix.from_partition(Partition(manager, {2.5: manager.true})), index).tolist() == [
        2.5
    ]
    assert expand(SymbolicMatrix.from_partition(Partition(manager)), index).tolist() == [0.0]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("symbolic_product", [0, 64])
def test_expand_sum_equals_tables(
    symbolic_product: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtbdd.offset.expansion._PAIRS", symbolic_product)
    manager = Manager(5, FASTEST)
    codes = random_codes(rng, 5, 0.7)
    index = index_of(manager, codes)
    mask = np.ones(32, dtype=np.bool_)
    tables = [rng.integers(-1, n, 32) / 8.0 for n in (1, 2, 4, 20, 3)]
    parts = [from_table(manager, manager.rows, table, mask) for table in tables]
    assert np.array_equal(expand_sum(iter(parts), index), sum(tables)[codes])
    assert np.array_equal(expand_sum([], index), np.zeros(len(codes)))
