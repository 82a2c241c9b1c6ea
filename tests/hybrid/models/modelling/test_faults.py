"""What is no model is refused, with the place of the call and, where it matters, a reachable state."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError, ModellingError
from hybrid.models.modelling import ModelBuilder
from mtbdd.base.budget import BudgetError
from mtbdd.language.limits import Limits

Change = Callable[[ModelBuilder], None]


def _counter(kind: str = "mdp") -> ModelBuilder:
    """Count from 0 to 3 of 5 values: 4 is never reached."""
    m = ModelBuilder(kind)
    x = m.variable("x", 0, 4)
    m.boolean("up")
    m.command(x < 3, {x: x + 1}, action="tick")
    m.command(x == 3, {x: 0})
    return m


def _variable(m: ModelBuilder, name: str = "x"):  # type: ignore[no-untyped-def]
    return m._variables[name]


def _command(*given: object, **options: object) -> Change:
    """Add a command whose arguments may be functions of the variable x."""

    def change(m: ModelBuilder) -> None:
        m.command(*given, **options)  # type: ignore[arg-type]

    return change


DECLARED: list[tuple[Change, str]] = [
    (lambda m: m.variable("x", 0, 1), r"variable 'x' is declared a second time"),
    (lambda m: m.variable("y", 1, 0), r"expected low <= high, got \[1\.\.0\]"),
    (lambda m: m.variable("y", 0, 1, initial=2), r"expected an initial value in \[0\.\.1\], got 2"),
    (lambda m: m.variable("y", 0, 1.5), r"expected an integer, got 1\.5"),
    (lambda m: m.variable("y", 0, 1 << 60), r"less than 2\^53"),
    (lambda m: m.variable("y z", 0, 1), r"expected a name of a variable of letters"),
    (lambda m: m.variable("min", 0, 1), r"word of the language of properties"),
    (lambda m: (m.module("a"), m.module("a")), r"module 'a' is declared a second time"),
    (lambda m: (m.label("a", True), m.label("a", True)), r"label 'a' is declared a second time"),
    (lambda m: m.label("init", True), r"'init' is a word"),
    (lambda m: m.label("a", lambda y: y > 0), r"parameter 'y', expected a variable's name: x, up"),
    (lambda m: m.label("a", lambda x_: x_ > 0), r"did you mean 'x'"),
    (lambda m: m.label("a", lambda *x: x), r"parameters are names of variables, got '\*x'"),
    (lambda m: m.label("a", "x > 0"), r"expected an expression or a number, got str"),
    (lambda m: m.label("a", np.ones(5)), r"got ndarray; values of an array are looked up"),
    (lambda m: m.label("a", _variable(_counter()) > 0), r"'x' of another one"),
    (lambda m: m.function(lambda x: x, over=[_variable(_counter())]), r"'x' of another one"),
    (lambda m: m.function(3, over=[]), r"expected a function, got int"),
    (lambda m: m.lookup([[1, 2]], _variable(m)), r"a place for every axis, 2 of them, got 1"),
    (lambda m: m.lookup(["a"], _variable(m)), r"values of type <U1"),
    (lambda m: m.command({}), r"expected an expression or a number, got dict"),
    (lambda m: m.command(True, {"x": 0}), r"expected variables as keys of an update, got 'x'"),
    (lambda m: m.command(True, {_variable(_counter()): 0}), r"'x' of another one"),
    (lambda m: m.command(True, 3), r"expected a mapping of variables"),
    (lambda m: m.command(True, rate=2.0), r"expected probabilities"),
    (lambda m: m.command(True, {}, updates=[(1.0, {})]), r"expected `updates` alone"),
    (lambda m: m.command(True, updates=[]), r"expected a list of pairs"),
    (lambda m: m.command(True, updates=[0.5]), r"updates\[0\]: expected a pair"),
    (lambda m: m.command(True, action=""), r"expected a name of an action"),
    (lambda m: m.reward("r", action=3), r"expected a name of an action, got 3"),
    (lambda m: (m.initial(True), m.initial(True)), r"given a second time"),
    (lambda m: m.label("a", 0 < _variable(m) < 3), r"expected `&`, `\|`, `~` and `numpy.where`"),
    (lambda m: m.label("a", _variable(m) > 10**400), r"expected an integer of at most 64 bits"),
]


@pytest.mark.parametrize(("change", "message"), DECLARED)
def test_declarations_that_are_none(change: Change, message: str) -> None:
    with pytest.raises(ModellingError, match=message):
        change(_counter())


def _of_x(make: Callable[..., None]) -> Change:
    return lambda m: make(m, _variable(m))


BUILT: list[tuple[Change, str]] = [
    (_of_x(lambda m, x: m.command(x + 1)), r"the guard: expected a condition .* got values of type int64"),
    (_of_x(lambda m, x: m.command((x > 0) & x)), r"the guard: expected a condition"),
    (
        _of_x(lambda m, x: m.command(x == 2, {x: x + 3})),
        r"sets x to 5, outside its range \[0\.\.4\], in reachable state \(x=2, up=false\)",
    ),
    (_of_x(lambda m, x: m.command(x == 2, {x: x / 4})), r"sets x to 0\.5, expected an integer, in reachable"),
    (_of_x(lambda m, x: m.command(x == 0, {x: 1 // x})), r"sets x to nan, outside its range"),
    (
        _of_x(lambda m, x: m.command(x == 1, updates=[(0.5, {}), (0.4, {x: 0})])),
        r"probabilities of a command add up to 0\.9, expected 1, in reachable state \(x=1",
    ),
    (
        _of_x(lambda m, x: m.command(x == 1, updates=[(1.5, {}), (-0.5, {x: 0})])),
        r"the weight of an update is -0\.5, in reachable state \(x=1",
    ),
    (_of_x(lambda m, x: m.command(x == 1, updates=[(1 / x - x / x, {}), (x / 0, {})])), r"weight .* is inf"),
    (_of_x(lambda m, x: m.command(lambda x: x[:2] > 0)), r"shape \(5,\), or a single one, got shape \(2,\)"),
    (_of_x(lambda m, x: m.command(lambda x: x > 0 and x < 2)), r"ValueError.*numpy.vectorize"),
    (_of_x(lambda m, x: m.command(lambda x: {}[3])), r"got KeyError: 3"),
    (_of_x(lambda m, x: m.command(lambda x: [None] * 5)), r"got values of type object"),
    (
        _of_x(lambda m, x: m.label("a", m.lookup([1, 2], x) > 1)),
        r"places from 0 to 1 .* got 0 to 4",
    ),
    (_of_x(lambda m, x: m.label("a", 2 * 10**18 * x > 1)), r"expected integers of less than 63 bits"),
    (
        _of_x(lambda m, x: m.reward("r", x == 2, np.log(x - 2))),
        r"'r' is -inf in reachable state \(x=2",
    ),
    (_of_x(lambda m, x: m.reward("r", action="tock")), r"of some command \(tick\), got 'tock'; did you mean"),
    (_of_x(lambda m, x: m.initial(x > 4)), r"no state satisfies"),
    (
        _of_x(lambda m, x: m.module("other").command(True, {x: 0}, action="tick")),
        r"action 'tick' changes 'x', which module '' changes with it at test_faults",
    ),
]


@pytest.mark.parametrize(("change", "message"), BUILT)
def test_models_that_are_none(change: Change, message: str) -> None:
    m = _counter()
    change(m)
    with pytest.raises(ModellingError, match=message) as caught:
        m.build()
    assert isinstance(caught.value, HybridError)
    if "reachable" in message:
        assert re.match(r"test_faults\.py:\d+", str(caught.value))


def test_the_cause_of_a_function_that_fails_is_kept() -> None:
    m = _counter()
    m.label("a", lambda x: 1 // 0)
    with pytest.raises(ModellingError, match="label 'a'") as caught:
        m.build()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_faults_in_states_that_are_not_reached_are_none() -> None:
    m = _counter()
    x = _variable(m)
    m.command(x == 4, {x: x + 1})
    m.command(x == 4, {x: x / 8})
    m.command(x == 4, updates=[(0.5, {})])
    m.command(x == 4, updates=[(-1.0, {}), (2.0, {})])
    m.reward("r", value=np.where(x == 4, np.inf, 1.0))
    assert m.build().n_states == 4


def test_several_faults_are_told_together() -> None:
    m = _counter()
    x = _variable(m)
    m.command(x == 1, {x: 9})
    m.command(x == 2, {x: -1})
    with pytest.raises(ModellingError) as caught:
        m.build()
    assert len(str(caught.value).splitlines()) == 2


def test_deadlocks_can_be_errors() -> None:
    m = ModelBuilder("dtmc")
    x = m.variable("x", 0, 1)
    m.command(x == 0, {x: 1})
    assert "1 state has no outgoing transition" in m.build().warnings[0]
    with pytest.raises(ModellingError, match="no outgoing transition"):
        m.build(fix_deadlocks=False)


def test_rates_of_both_signs_and_too_large_ones() -> None:
    m = ModelBuilder("ctmc")
    x = m.variable("x", 0, 1)
    m.command(x == 0, {x: 1}, rate=1e200, action="a")
    m.module("other").command(True, rate=1e200, action="a")
    with pytest.raises(ModellingError, match="less than 1.79e308"):
        m.build()
    n = _counter()
    n.reward("r", value=0.1)
    n.reward("r", value=-0.7)
    with pytest.raises(ModellingError, match="expected items of one sign"):
        n.build()


def test_wide_functions_are_refused_before_they_are_called() -> None:
    m = ModelBuilder("mdp")
    variables = [m.variable(f"v{i}", 0, 999) for i in range(3)]
    m.label("a", m.function(lambda *values: 1 / 0, over=variables))
    with pytest.raises(ModellingError, match=r"at most 22 bits together, got 30: v0 \(1000 values\), v1"):
        m.build()
    n = ModelBuilder("mdp")
    a, b = (n.variable(name, 0, 4095) for name in "ab")
    n.label("a", a * b > 5)
    with pytest.raises(ModellingError, match=r"got 16777216 over a, b; split it"):
        n.build()


def test_no_variables_no_kind_and_limits() -> None:
    with pytest.raises(ModellingError, match="expected one of dtmc, ctmc, mdp, got 'pomdp'"):
        ModelBuilder("pomdp")
    with pytest.raises(ModellingError, match="at least one variable"):
        ModelBuilder("mdp").build()
    with pytest.raises(ModellingError, match="at most 2 bits together, got 4"):
        _counter().build(limits=Limits(bits=2))
    with pytest.raises(BudgetError):
        _counter().build(timeout=1e-9)
    deep = _counter()
    x = _variable(deep)
    total = x
    for _ in range(5000):
        total = total + 1
    deep.label("a", total > 0)
    with pytest.raises(ModellingError, match="nested less deeply"):
        deep.build()


def test_a_builder_is_public() -> None:
    assert hybrid.ModelBuilder is ModelBuilder
