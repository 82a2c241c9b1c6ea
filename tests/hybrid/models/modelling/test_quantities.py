"""Expressions and functions have the values that NumPy gives, narrow and wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybrid

FORMS: list[tuple[str, Callable[..., Any]]] = [
    ("x + 2 * y", lambda x, y: x + 2 * y),
    ("3 - x", lambda x, y: 3 - x),
    ("x - y", lambda x, y: x - y),
    ("x // 2, y % 3", lambda x, y: x // 2 + y % 3),
    ("7 // 2 ** y", lambda x, y: 7 // 2**y),
    ("-x", lambda x, y: -x + abs(x - y)),
    ("x / 4", lambda x, y: x / 4),
    ("x ** 2", lambda x, y: x**2 * 0.5),
    ("minimum", lambda x, y: np.minimum(x, y) + np.maximum(x, 2)),
    ("where", lambda x, y: np.where(x > y, x, 7 - y)),
    ("clip", lambda x, y: np.clip(x + y, 2, 5)),
    ("exp", lambda x, y: np.exp(-0.25 * x)),
    ("scalar of NumPy", lambda x, y: np.float64(0.25) * x),
    ("conditions", lambda x, y: np.where((x == 2) | ~(y != 1) ^ (x >= y), 1, 0)),
    ("logical", lambda x, y: np.where(np.logical_and(x < 3, np.logical_not(y <= 1)), 1.5, 0.25)),
]


def _model(value: Callable[[Any, Any], Any]) -> hybrid.Model:
    m = hybrid.ModelBuilder("dtmc")
    x, y = m.variable("x", 0, 5), m.variable("y", 1, 3)
    m.initial(True)
    m.reward("r", value=value(x, y))
    return m.build()


@pytest.mark.parametrize(("name", "form"), FORMS, ids=[name for name, _ in FORMS])
def test_an_expression_has_the_values_of_numpy(name: str, form: Callable[..., Any]) -> None:
    model = _model(form)
    table = model.state_table()
    wanted = form(table["x"].astype(np.int64), table["y"].astype(np.int64))
    assert np.array_equal(model.rewards["r"], wanted)


@pytest.mark.parametrize(("name", "form"), FORMS, ids=[name for name, _ in FORMS])
def test_a_wide_expression_has_them_too(
    name: str, form: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = _model(form).rewards["r"]
    monkeypatch.setattr("hybrid.models.modelling.translator._FEW_BITS", 1)
    assert np.array_equal(_model(form).rewards["r"], wanted)


def test_wide_guards_and_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    def model() -> hybrid.Model:
        m = hybrid.ModelBuilder("mdp")
        x, y, up = m.variable("x", 0, 5), m.variable("y", -2, 3), m.boolean("up")
        m.command((x + y > 1) & (x - y != 2), {x: np.minimum(x + 1, 5), y: -y // 2})
        m.command(~((x > y) ^ up), {up: x == y, x: np.maximum(x - y, 0) % 6})
        m.initial(x + y == 3)
        return m.build()

    wanted = model()
    monkeypatch.setattr("hybrid.models.modelling.translator._FEW_BITS", 0)
    got = model()
    assert got.n_states == wanted.n_states > 10
    assert got.statistics.mtbdd_nodes == wanted.statistics.mtbdd_nodes


def test_booleans_count_in_sums() -> None:
    m = hybrid.ModelBuilder("dtmc")
    flags = [m.boolean(f"up{i}") for i in range(3)]
    m.initial(True)
    m.reward("r", value=flags[0] + flags[1] + flags[2])
    m.label("two", sum(flags) == 2)
    model = m.build()
    table = model.state_table()
    counted = table["up0"].astype(int) + table["up1"] + table["up2"]
    assert np.array_equal(model.rewards["r"], counted)
    assert np.array_equal(model.labels["two"], counted == 2)


def test_arrays_are_looked_up() -> None:
    m = hybrid.ModelBuilder("dtmc")
    x, y = m.variable("x", 0, 2), m.boolean("y")
    m.initial(True)
    values = np.array([[0.5, 2.0], [1.5, 8.0], [3.0, 0.25]])
    m.reward("r", value=m.lookup(values, x, y + 0) + m.lookup([4, 5, 6], 2 - x))
    values[:] = 7.0  # the model keeps what was given
    model = m.build()
    assert model.rewards["r"].tolist() == [6.5, 8.0, 6.5, 13.0, 7.0, 4.25]


def test_functions_get_copies_of_whole_columns_once() -> None:
    m = hybrid.ModelBuilder("dtmc")
    x, y = m.variable("x", 2, 4), m.variable("y", 0, 1)
    m.initial(True)
    calls = []

    def first(x: Any, y: Any, factor: float = 2.0) -> Any:
        calls.append((x.copy(), y.copy()))
        x[:] = x * factor
        return x

    m.reward("a", value=first)
    m.reward("b", value=np.vectorize(lambda x: x + 0.5 if x > 2 else 0.0))
    m.reward("c", value=m.function(lambda p, q: 10.0 * p + q, over=[y, x]) + 1)
    model = m.build()
    assert len(calls) == 1
    assert calls[0][0].tolist() == [2, 2, 3, 3, 4, 4]
    assert calls[0][1].tolist() == [0, 1, 0, 1, 0, 1]
    table = model.state_table()
    assert np.array_equal(model.rewards["a"], 2.0 * table["x"])
    assert np.array_equal(model.rewards["b"], np.where(table["x"] > 2, table["x"] + 0.5, 0.0))
    assert np.array_equal(model.rewards["c"], 10.0 * table["y"] + table["x"] + 1)


def test_what_a_function_changes_stays_its_own() -> None:
    def emptied(values: Any) -> Any:
        values[:] = 0
        return values

    m = hybrid.ModelBuilder("dtmc")
    x = m.variable("x", 1, 3)
    m.initial(True)
    m.reward("r", value=m.function(emptied, over=[x]) + x)
    assert m.build().rewards["r"].tolist() == [1.0, 2.0, 3.0]
