"""The manager: order of the bits, cubes, renaming, relations; the same on both back ends of dd."""

from __future__ import annotations

import gc
import weakref
from itertools import product
from typing import Any

import pytest

import mtbdd.diagrams.manager
from mtbdd.diagrams.manager import Manager
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import node_set


@pytest.fixture(params=DIAGRAM_PACKAGES)
def manager(request: pytest.FixtureRequest) -> Manager:
    return Manager(3, request.param)


def test_manager_interleaves_rows_and_columns(manager: Manager) -> None:
    order = sorted([*manager.rows, *manager.columns, *manager.spares], key=manager.bdd.level_of_var)
    expected = [
        n for triple in zip(manager.rows, manager.columns, manager.spares, strict=True) for n in triple
    ]
    assert order == expected
    for i in range(3):
        assert manager.bdd.level_of_var(manager.rows[i]) == manager.row_level(i)
        assert manager.bdd.level_of_var(manager.columns[i]) == manager.column_level(i)


def test_manager_index_bits_lie_below_everything(manager: Manager) -> None:
    first = manager.index_bits(2)
    more = manager.index_bits(5)
    assert more[:2] == first and manager.index_bits(3) == more[:3] and manager.index_bits(0) == ()
    levels = [manager.bdd.level_of_var(name) for name in more]
    assert levels == list(range(manager.index_level, manager.index_level + 5))
    for name in (*manager.rows, *manager.columns, *manager.spares):
        assert manager.bdd.level_of_var(name) < manager.index_level


def test_manager_cube_spells_numbers(manager: Manager) -> None:
    for number in range(8):
        assert manager.cube(manager.rows, number) == node_set(manager, manager.rows, [number])
    assert manager.cube((), 0) == manager.true


@pytest.mark.parametrize("count", range(6))
def test_manager_disjunction_unites(manager: Manager, count: int) -> None:
    nodes = [manager.cube(manager.rows, k) for k in range(count)]
    assert manager.disjunction(iter(nodes)) == node_set(manager, manager.rows, range(count))


def test_manager_equal_bits_is_the_identity(manager: Manager) -> None:
    for bits in ([], [1], [0, 2], [2, 1, 0]):
        expected = manager.false
        for values in product((0, 1), repeat=len(bits)):
            cube: dict[str, bool] = {}
            for bit, value in zip(bits, values, strict=True):
                cube[manager.rows[bit]] = cube[manager.columns[bit]] = bool(value)
            expected = expected | (manager.bdd.cube(cube) if cube else manager.true)
        assert manager.equal_bits(bits) == expected


def test_manager_renames_rows_to_columns_and_back(manager: Manager) -> None:
    states = node_set(manager, manager.rows, [0, 3, 5, 6])
    columns = manager.to_columns(states)
    assert columns == node_set(manager, manager.columns, [0, 3, 5, 6])
    assert manager.to_columns(states) == columns
    assert manager.to_columns(~states) == ~columns
    assert manager.to_columns(states) == columns
    assert manager.to_rows(columns) == states
    assert manager.rename({}, states) == states


def test_manager_and_exists_equals_its_definition(manager: Manager) -> None:
    a = node_set(manager, (*manager.rows, *manager.columns), [3, 9, 17, 40, 41, 63])
    b = node_set(manager, manager.rows, [0, 1, 5, 7])
    for names in ((), manager.rows, manager.columns[:1]):
        assert manager.and_exists(a, b, names) == manager.exists(names, a & b)


def test_sets_meet_if_they_have_a_member_in_common(manager: Manager) -> None:
    a, b, c = (node_set(manager, manager.rows, members) for members in ([0, 1, 5], [5, 7], [2, 7]))
    assert manager.meet(a, b) and manager.meet(b, c) and manager.meet(a, manager.true)
    assert not manager.meet(a, c) and not manager.meet(a, manager.false)
    # Of relations, too, whose column bits are not asked for.
    pairs = node_set(manager, (*manager.rows, *manager.columns), [3, 9])
    assert manager.meet(pairs, node_set(manager, manager.rows, [0]))
    assert not manager.meet(pairs, node_set(manager, manager.rows, [5]))


def test_manager_size_counts_nodes(manager: Manager) -> None:
    assert manager.size(manager.bdd.var(manager.rows[0])) == 2
    parity = manager.false
    for name in manager.rows:
        bit = manager.bdd.var(name)
        parity = manager.bdd.ite(bit, ~parity, parity)
    assert manager.size(parity) == 4  # one node a bit thanks to negated edges, and the constant


def test_manager_without_bits(recwarn: pytest.WarningsRecorder) -> None:
    for package in DIAGRAM_PACKAGES:
        empty = Manager(0, package)
        assert (empty.rows, empty.columns, empty.index_level) == ((), (), 0)
        assert empty.equal_bits([]) == empty.true
        assert empty.and_exists(empty.true, empty.true, ()) == empty.true
        assert empty.meet(empty.true, empty.true) and not empty.meet(empty.true, empty.false)
        assert empty.index_bits(2) == ("b0", "b1")
    assert not recwarn.list


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_nodes_in_garbage_keep_the_diagrams_of_their_manager(package: str) -> None:
    gc.collect()
    manager = Manager(2, package)
    garbage: list[Any] = [manager.bdd.var(manager.rows[0]) & manager.bdd.var(manager.rows[1])]
    garbage.append(garbage)
    diagrams = weakref.ref(manager.bdd) if package == "autoref" else None
    held = len(mtbdd.diagrams.manager._retired)
    del manager, garbage
    assert len(mtbdd.diagrams.manager._retired) == held + 1
    Manager(2, package)
    # A node is left, if only in a cycle: what it is a node of is not let go before.
    assert len(mtbdd.diagrams.manager._retired) > held
    gc.collect()
    Manager(2, package)
    assert len(mtbdd.diagrams.manager._retired) <= 1
    assert diagrams is None or diagrams() is None


def test_managers_may_retire_while_others_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = mtbdd.diagrams.manager._holders
    late = [Manager(2)]

    def count_and_retire(managers: list[Any]) -> list[int]:
        late.clear()  # as the garbage collector may do at any time
        return counted(managers)

    mtbdd.diagrams.manager._let_go()
    first, others = Manager(2), len(mtbdd.diagrams.manager._retired)
    del first
    assert len(mtbdd.diagrams.manager._retired) == others + 1
    monkeypatch.setattr(mtbdd.diagrams.manager, "_holders", count_and_retire)
    mtbdd.diagrams.manager._let_go()
    # The one that was retired meanwhile waits for the next turn.
    assert len(mtbdd.diagrams.manager._retired) == others + 1
    monkeypatch.undo()
    mtbdd.diagrams.manager._let_go()
    assert len(mtbdd.diagrams.manager._retired) == others
