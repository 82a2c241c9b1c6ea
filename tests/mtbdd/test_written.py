"""Parts of small models, numbered among written entries, against the diagrams of the same parts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.offset.convert import list_entries, offset_label
from mtbdd.offset.offset import Entries, OffsetMTBDD, row_entries
from mtbdd.offset.states import StateIndex, index_states, states_from
from tests.builders.matrices import to_dense
from tests.builders.models import build
from tests.builders.random_mdps import random_mdp

WALK = """
    ctmc module m x : [0..11]; [] x<11 -> 2:(x'=x+1) + 0.5:(x'=x); [] x>0 -> 3:(x'=x-1) + 1:(x'=mod(x*7, 5));
    endmodule"""


def random_part(model: SymbolicModel, rng: np.random.Generator, least: float = 0.0) -> StateIndex:
    """Return some states, numbered."""
    mask = rng.random(model.n_states) < rng.uniform(least, 1.0)
    return index_states(model.manager, states_from(model.manager, model.index, mask))


def written(matrix: OffsetMTBDD) -> NDArray[np.float64]:
    """Return a matrix from its entries, each of which occurs once and in order."""
    entries = matrix.entries
    assert entries is not None
    places = entries.row.astype(np.int64) * max(matrix.n_columns, 1) + entries.column
    assert (np.diff(places) > 0).all()
    assert entries.row.dtype == entries.column.dtype == np.int32
    found = np.zeros(matrix.shape)
    found[entries.row, entries.column] = entries.value
    return found


@pytest.mark.parametrize("seed", range(12))
def test_parts_are_those_of_the_diagram(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries, nodes made afterwards, the transposed matrix, and what bounds rest on."""
    rng = np.random.default_rng(seed)
    model = build(random_mdp(rng) if seed % 3 else WALK)
    with monkeypatch.context() as patch:
        patch.setattr("mtbdd.build.model._FEW_STATES", 0)
        plain = build(random_mdp(np.random.default_rng(seed)) if seed % 3 else WALK)
        assert not plain.is_few
    assert model.is_few
    for number in range(len(model.layers)):
        layer = number if model.is_mdp else None
        for _ in range(4):
            rows, columns = random_part(model, rng), random_part(model, rng)
            other_rows, other_columns = (
                index_states(plain.manager, states_from(plain.manager, plain.index, mask))
                for mask in (model.indicator(rows.states), model.indicator(columns.states))
            )
            for diagonal in (True, False):
                found = model.submatrix(rows, columns, diagonal, layer)
                expected = plain.submatrix(other_rows, other_columns, diagonal, layer)
                assert expected.entries is None
                dense = to_dense(expected)
                assert np.array_equal(written(found), dense)
                assert np.array_equal(written(found.transpose()), dense.T)
                assert found.shape == expected.shape
                assert found.n_levels == expected.n_levels
                assert found.n_entries == expected.n_entries == np.count_nonzero(dense)
                assert found.entry_units == expected.entry_units
                assert row_entries(found) == (dense != 0).sum(axis=1).max(initial=0) <= row_entries(expected)
                assert found.same_as(expected)
                assert found.diagram.same_as(expected)
                assert np.array_equal(to_dense(found.transpose().diagram), dense.T)
                turned = model.submatrix(rows, columns, diagonal, layer, transposed=True)
                assert np.array_equal(written(turned), dense.T)


@pytest.mark.parametrize("seed", range(6))
def test_rows_not_chosen_are_empty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = build(random_mdp(rng))
    for layer in range(len(model.layers)):
        chosen, columns = random_part(model, rng), random_part(model, rng, 0.5)
        found = model.part(layer, model.index, columns, chosen)
        kept = model.layers[layer].matrix.only(chosen.states & model.layers[layer].enabled)
        kept = kept.only(model.manager.to_columns(columns.states))
        expected = offset_label(kept, model.index, columns)
        assert np.array_equal(written(found), to_dense(expected))
        assert found.same_as(expected)


@pytest.mark.parametrize("seed", range(6))
def test_whole_matrices_are_those_of_the_diagram(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = build(random_mdp(rng) if seed % 2 else WALK)
    for layer, held in enumerate(model.layers):
        found, matrix = model.layer_transitions(layer), held.matrix
        expected = offset_label(matrix, model.index, model.index)
        assert np.array_equal(written(found), to_dense(expected))
        assert found.same_as(expected)
        assert found.diagram is found.diagram
        assert expected.diagram is expected
        assert sorted(set(found.values.tolist())) == sorted(expected.values.tolist())
        most = expected.n_entries
        listed = [list_entries(matrix, model.index, matrix.table(), k) for k in (most, most - 1)]
        assert listed[0] is not None
        assert listed[1] is None
    with pytest.raises(AttributeError, match="no attribute 'knots'"):
        _ = model.layer_transitions(0).knots


def test_entries_outside_of_the_states_are_refused() -> None:
    model = build(WALK)
    few = index_states(model.manager, states_from(model.manager, model.index, np.arange(12) < 6))
    with pytest.raises(ValueError, match="an entry outside"):
        list_entries(model.matrix, few, model.matrix.table(), 100)
    beyond = index_states(model.manager, states_from(model.manager, model.index, np.arange(12) > 6))
    with pytest.raises(ValueError, match="an entry outside"):
        list_entries(model.matrix, beyond, model.matrix.table(), 100)


def test_many_states_or_transitions_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    few = build(WALK)
    assert few.submatrix(few.index, few.index).entries is not None
    for limit in ("_FEW_STATES", "_FEW_TRANSITIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(f"mtbdd.build.model.{limit}", 11)
            model = build(WALK)
            assert model.submatrix(model.index, model.index).entries is None


def test_parts_of_entries_without_rows() -> None:
    none = np.zeros(0, np.int64)
    entries = Entries(np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1))
    assert [part.size for part in entries.part(1, none, None)] == [0, 0, 0]
    assert [part.size for part in entries.part(1, None, None)] == [1, 1, 1]
    assert [part.size for part in entries.part(1, None, None, diagonal=False)] == [0, 0, 0]


def test_vectors_of_membership_are_nobodys() -> None:
    model = build(WALK)
    mask = np.arange(model.n_states) < 5
    states = states_from(model.manager, model.index, mask)
    other = states | states_from(model.manager, model.index, np.arange(model.n_states) == 8)
    for inside, expected in ((states, mask.tolist()), (other, model.indicator(other).tolist())):
        for _ in range(2):
            found = model.indicator(inside)
            assert found.tolist() == expected
            found[:] = True
    mask[:] = False
    assert model.indicator(states).sum() == 5
    assert model.indicator(other).sum() == 6


@pytest.mark.parametrize("listed", [0, 1 << 12])
def test_subsets_have_the_members_that_are_marked(listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes are followed both downwards, as in large sets, and upwards."""
    monkeypatch.setattr("mtbdd.offset.states._MOST_LISTED", listed)
    rng = np.random.default_rng(5)
    model = build(random_mdp(rng))
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        mask = rng.random(model.n_states) < share
        found = index_states(model.manager, states_from(model.manager, model.index, mask))
        assert model.index.places(found).tolist() == np.flatnonzero(mask).tolist()
