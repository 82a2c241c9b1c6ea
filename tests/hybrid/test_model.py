"""Models as people hold them: vectors by number of the state, in any variable order; chains; pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from mtbdd.build import state_order
from tests.builders.held_models import TANDEM, tandem
from tests.builders.mdp_texts import SLOW_WAY


def everything(model: hybrid.Model) -> dict[str, Any]:
    answer = hybrid.check(model, 'P=? [ F<=0.5 "full" ]')
    truth = hybrid.check(model, 'P>=0.1 [ F<=0.5 "full" ]')
    return {
        "table": model.state_table(),
        **{f"label {name}": vector for name, vector in model.labels.items()},
        "rewards": model.rewards["customers"],
        "unnamed": model.rewards[1],
        "rates": model.rewards.rates("customers"),
        "states": model.states('sc > 1 & busy | "full"'),
        "operator": model.states('P>=0.1 [ F<=0.5 "full" ]'),
        "matrix": model.transitions.to_scipy().toarray(),
        "steady": model.steady_state(),
        "transient": model.transient(0.7),
        "values": answer.values,
        "lower": answer.lower_values,
        "truth": truth.values,
        "listing": [name for name, _ in hybrid.check(model, "filter(print, sc, sm>0)").listing],
        "first": hybrid.check(model, "filter(first, sc + 10*sm, sm>0 & sc>0)").value,
    }


@pytest.mark.parametrize("order", ["reversed", "force"])
def test_no_order_changes_what_is_told(order: str) -> None:
    expected, found = everything(tandem()), everything(tandem(order))
    for name, value in expected.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-12, err_msg=name)
        else:
            assert np.array_equal(found[name], value), name


def test_reversed_is_another_order() -> None:
    assert tandem("reversed").numbering is not None
    assert tandem().numbering is None


def test_a_check_makes_no_permutation() -> None:
    model = tandem("reversed")
    assert hybrid.check(model, 'filter(max, P=? [ F<=0.5 "full" ])').value == 1.0
    assert hybrid.check(model, "filter(first, sm, sc=1 & sm>0)").value == 1.0
    assert "numbering" not in vars(model)


def test_vectors_agree_with_the_table() -> None:
    model = tandem("reversed")
    table = model.state_table()
    assert table.dtype.names == ("sc", "ph", "sm", "busy") == tuple(v.name for v in model.variables)
    assert table.tolist() == sorted(table.tolist())
    np.testing.assert_array_equal(model.labels["full"], (table["sc"] == 3) & (table["sm"] == 3))
    np.testing.assert_array_equal(model.labels["init"], np.arange(model.n_states) == 0)
    assert list(model.labels) == ["full", "init", "deadlock"]
    np.testing.assert_array_equal(model.rewards["customers"], table["sc"] + table["sm"])
    np.testing.assert_array_equal(model.rewards[1], table["busy"])
    assert list(model.rewards) == ["customers", 1]
    route = np.where((table["sc"] > 0) & (table["sm"] < 3), np.where(table["ph"] == 1, 1.8, 2.0), 0.0)
    np.testing.assert_allclose(model.rewards.rates("customers"), table["sc"] + table["sm"] + 10 * route)
    np.testing.assert_array_equal(model.states("sc = 2 & !busy"), (table["sc"] == 2) & ~table["busy"])


def test_transitions_agree_with_the_table() -> None:
    model = tandem("reversed")
    matrix, table = model.transitions.to_scipy(), model.state_table()
    rows, columns = matrix.nonzero()
    assert matrix.has_sorted_indices
    grown = table["sc"][columns] - table["sc"][rows]
    np.testing.assert_array_equal(np.asarray(matrix[rows, columns])[0][grown == 1], 12.0)
    np.testing.assert_allclose(matrix.sum(axis=1).A1, model.exit_rates(model.index)[model.numbering])


def test_some_states_of_the_table(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_order, "_PART", 5)
    for order in ("model", "reversed"):
        model = tandem(order)
        table = model.state_table()
        chosen = rng.integers(0, model.n_states, (4, 3))
        assert np.array_equal(model.state_table(chosen), table[chosen])
        assert np.array_equal(model.state_table(slice(3, 17)), table[3:17])
        assert np.array_equal(model.state_table(slice(None, None, 4)), table[::4])
        assert np.array_equal(model.state_table(model.labels["full"]), table[model.labels["full"]])
        assert model.state_table([]).shape == (0,)
        for wrong in ([-1], [model.n_states], [0.5], [True]):
            with pytest.raises(IndexError, match="states: expected"):
                model.state_table(wrong)


def test_names_that_do_not_exist() -> None:
    model = tandem()
    with pytest.raises(KeyError, match="full, init, deadlock"):
        model.labels["empty"]
    with pytest.raises(KeyError, match="customers"):
        model.rewards["cost"]
    with pytest.raises(hybrid.LanguageError, match="nowhere"):
        model.states("nowhere > 1")
    with pytest.raises(hybrid.HybridError, match="a number"):
        model.states("sc + 1")
    assert "empty" not in model.labels


def test_a_model_is_a_symbolic_model() -> None:
    model = tandem()
    assert isinstance(model, hybrid.SymbolicModel)
    product = hybrid.inject(model.transitions) @ np.ones(model.n_states)
    np.testing.assert_allclose(product, model.exit_rates(model.index))
    assert model.layer_transitions(0) is model.transitions
    assert hybrid.Model.of(model) is model


@pytest.mark.parametrize("representation", ["row-types", "tasks"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_products_go_by_the_numbers(representation: str, backend: str, rng: np.random.Generator) -> None:
    model = tandem("reversed")
    dense, n = model.transitions.to_scipy().toarray(), model.n_states
    matrix = hybrid.inject(model.transitions, backend=backend, representation=representation)
    x, b, diagonal = rng.random(n), rng.random(n), 1.0 + rng.random(n)
    np.testing.assert_allclose(matrix @ x, dense @ x)
    np.testing.assert_allclose(matrix @ np.stack([x, b], axis=1), dense @ np.stack([x, b], axis=1))
    np.testing.assert_allclose(matrix.T @ x, dense.T @ x)
    np.testing.assert_allclose(matrix.T.T @ x, dense @ x)
    np.testing.assert_allclose(matrix.rmatvec(x), dense.T @ x)
    np.testing.assert_allclose(matrix.as_linear_operator().matvec(x), dense @ x)
    np.testing.assert_allclose(matrix.row_sums(), dense.sum(axis=1))
    np.testing.assert_allclose(matrix.diagonal(), dense.diagonal())
    out = np.empty(n)
    assert matrix.multiply(x, out) is out
    np.testing.assert_allclose(out, dense @ x)
    expected = 0.25 * x + 0.75 * (b + dense @ x) / diagonal
    absolute, _ = matrix.jacobi_step(x, out, b, diagonal, 0.75)
    np.testing.assert_allclose(out, expected)
    assert absolute == pytest.approx(np.abs(expected - x).max())
    step = matrix.jacobi_step(x, out, None, diagonal)
    np.testing.assert_allclose(out, dense @ x / diagonal)
    assert len(step) == 2


def test_the_matrix_outlives_its_model_and_tells_its_size() -> None:
    expected = tandem().transitions.to_scipy().toarray()
    matrix = tandem("reversed").transitions  # the model is gone
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), expected)
    with pytest.raises(MemoryError, match="100 are available"):
        matrix.to_scipy(memory_budget=100)


# ------------------------------------------------------------------ pictures


def test_text() -> None:
    lines = repr(tandem()).splitlines()
    assert lines[0] == "model        ctmc, <text>"
    assert f"states       {tandem().n_states}" in lines
    assert "variables    sc: 0..3, ph: 1..2, sm: 0..3, busy: bool" in lines
    assert any(line.startswith("MTBDD") for line in lines)
    assert "choices      5" in repr(hybrid.parse(SLOW_WAY)).splitlines()


def test_html_is_escaped_and_has_a_picture() -> None:
    import xml.etree.ElementTree as ElementTree

    for text in (TANDEM, SLOW_WAY):
        model = hybrid.parse(text, {"c": 2} if "const" in text else None, file="<b>&.prism")
        found = model._repr_html_()
        assert "<b>" not in found
        assert "&lt;b&gt;&amp;.prism" in found
        tree = ElementTree.fromstring(found)
        points = tree.find(".//{http://www.w3.org/2000/svg}polyline")
        assert points is not None
        assert len(points.get("points", "").split()) == model.layer_transitions(0).n_levels + 1


def test_large_diagrams_have_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    from hybrid.models import model as summary

    monkeypatch.setattr(summary, "_MOST_NODES", 3)
    assert "<svg" not in tandem()._repr_html_()


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("order", ["model", "reversed"])
def test_vectors_are_written_beside_the_variables(order: str, tmp_path: Path) -> None:
    model = tandem(order)
    steady = model.steady_state()
    model.write_values(tmp_path / "steady.npz", steady)
    with np.load(tmp_path / "steady.npz") as found:
        np.testing.assert_array_equal(found["value"], steady)
        assert np.isnan(found["lower"]).all()
        assert np.array_equal(found["states"], model.state_table())
    model.write_values(tmp_path / "full.csv", model.labels["full"])
    lines = (tmp_path / "full.csv").read_text().splitlines()
    assert lines[0] == "sc,ph,sm,busy,value,lower,upper"
    assert lines[1] == "0,1,0,false,false,false,false"
    assert sum(line.endswith("true,true,true") for line in lines) == model.labels["full"].sum()
    with pytest.raises(ValueError, match="values: expected shape"):
        model.write_values(tmp_path / "x.csv", steady[1:])
    with pytest.raises(hybrid.HybridError, match="csv or .npz"):
        model.write_values(tmp_path / "x.txt", steady)
