"""Variable orders: the heuristic pays where it should, and never changes what is computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mtbdd.base.budget import Budget, BudgetError, GrownError, check_budget, ended_beyond, spending
from mtbdd.build import build
from mtbdd.build.build import build_model
from mtbdd.build.order import order_variables
from mtbdd.language import parse_model, resolve


def pairs(n: int) -> str:
    """n cells that copy their partner; all partners are declared after all cells."""
    cells = "".join(
        f"module a{i} x{i} : bool; [] x{i}!=y{i} -> {i + 1}:(x{i}'=y{i}); endmodule\n" for i in range(n)
    )
    partners = "".join(f"module b{i} y{i} : bool; [] true -> 1:(y{i}'=!y{i}); endmodule\n" for i in range(n))
    return f"ctmc\n{cells}{partners}"


def test_force_draws_partners_together():
    model = resolve(parse_model(pairs(8)))
    names = [v.name for v in order_variables(model, "force")]
    assert sorted(names) == sorted(v.name for v in model.variables)
    assert all(abs(names.index(f"x{i}") - names.index(f"y{i}")) == 1 for i in range(8))


def test_force_makes_the_diagram_smaller_and_changes_no_value():
    source = resolve(parse_model(pairs(8)))
    plain, forced = build_model(source), build_model(source, order="force")
    assert forced.statistics.mtbdd_nodes < 0.6 * plain.statistics.mtbdd_nodes
    assert forced.n_states == plain.n_states == 2**16
    assert forced.n_transitions == plain.n_transitions
    assert (
        np.sort(forced.exit_rates(forced.index)).tolist() == np.sort(plain.exit_rates(plain.index)).tolist()
    )


def test_model_order_is_the_default():
    source = resolve(parse_model(pairs(3)))
    assert order_variables(source) == source.variables


def test_force_keeps_a_good_order():
    source = resolve(
        parse_model("ctmc module m a:[0..3]; b:[0..3]; [] a<3 -> 1:(a'=a+1); [] b<a -> 1:(b'=a); endmodule")
    )
    assert order_variables(source, "force") == source.variables


def test_unknown_order_is_refused():
    with pytest.raises(ValueError, match="expected one of model, reversed, force, got 'best'"):
        order_variables(resolve(parse_model(pairs(1))), "best")


def copies(n: int) -> str:
    """A buffer of n cells in front of the module whose value they copy, one cell a step."""
    cells = " ".join(f"c{i} : [0..2];" for i in range(n))
    commands = " ".join(f"[send] k={i} -> (c{i}'=v) & (k'=k+1);" for i in range(n))
    source = "module source v : [1..2]; [] true -> 0.5:(v'=1) + 0.5:(v'=2); [send] true -> true; endmodule"
    return f"mdp global g : bool; module buffer {cells} k : [0..{n}]; {commands} endmodule {source}"


def test_reversed_puts_the_last_module_first_and_globals_on_top():
    names = [v.name for v in order_variables(resolve(parse_model(copies(2))), "reversed")]
    assert names == ["g", "v", "c0", "c1", "k"]


def test_auto_keeps_the_model_order_of_small_models_and_leaves_it_where_relations_explode(
    monkeypatch: pytest.MonkeyPatch,
):
    source = resolve(parse_model(copies(6)))
    plain = build_model(source, order="model")
    assert [v.name for v in build_model(source).encoding.variables] == [v.name for v in source.variables]
    monkeypatch.setattr("mtbdd.build.build._LARGE", 500)
    chosen = build_model(source)
    assert [v.name for v in chosen.encoding.variables][:2] == ["g", "v"]
    assert sum(chosen.manager.size(t.node) for t in chosen.relations) * 2 <= sum(
        plain.manager.size(t.node) for t in plain.relations
    )
    assert (chosen.n_states, chosen.n_choices, chosen.n_transitions) == (
        plain.n_states,
        plain.n_choices,
        plain.n_transitions,
    )


@pytest.mark.parametrize("order", [("x",), ("x", "x"), ("x", "z"), ("x", "y", "y")])
def test_names_that_are_no_order_are_refused(order: tuple[str, ...]) -> None:
    model = resolve(parse_model("dtmc module m x:[0..1]; y:[0..1]; [] true -> true; endmodule"), {})
    with pytest.raises(ValueError, match="expected the variables x, y, each once"):
        order_variables(model, order)


def test_another_order_is_given_up_where_its_diagrams_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    source = resolve(parse_model(copies(6)))
    monkeypatch.setattr("mtbdd.build.build._LARGE", 500)
    monkeypatch.setattr("mtbdd.build.build._GROWN", 0)
    monkeypatch.setattr("mtbdd.build.build._TRIED", 20)
    chosen = build_model(source)
    assert [v.name for v in chosen.encoding.variables] == [v.name for v in source.variables]


def test_a_budget_around_work_that_may_grow_holds_within_it() -> None:
    with pytest.raises(GrownError), ended_beyond(3, lambda: 4):
        check_budget()
    with ended_beyond(4, lambda: 4):
        check_budget()
    with (
        pytest.raises(BudgetError),
        spending(Budget(1.0, None, -10.0)),
        ended_beyond(4, lambda: 4),
    ):
        check_budget()


def test_the_size_of_work_that_may_grow_is_measured_now_and_then() -> None:
    asked: list[int] = []

    def measure(size: int) -> int:
        asked.append(size)
        return size

    for size, fewest, most in ((4, 2, 20), (90, 40, 40)):
        asked.clear()
        with ended_beyond(100, partial(measure, size)):
            for _ in range(40):
                check_budget()
        assert fewest <= len(asked) <= most


def test_the_translation_of_another_order_ends_with_the_first_relation_too_many() -> None:
    source = resolve(parse_model(copies(6)))
    size = build._translate(source, "model", "auto").size
    assert build._translate(source, "model", "auto", largest=size).size == size
    with pytest.raises(GrownError):
        build._translate(source, "model", "auto", largest=size - 1)
