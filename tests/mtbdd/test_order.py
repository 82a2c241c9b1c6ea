"""Variable orders: the heuristic pays where it should, and never changes what is computed."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.language import parse_model, resolve
from mtbdd.model import build_model
from mtbdd.order import order_variables


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
    with pytest.raises(ValueError, match="expected one of model, force, got 'best'"):
        order_variables(resolve(parse_model(pairs(1))), "best")
