"""What may happen in a state, and how likely it is: the same as in the engine's matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.checking.simulation import simulate
from hybrid.checking.simulation.functions import Columns
from hybrid.checking.simulation.rules import Rules
from mtbdd.language import parse_model, resolve
from tests.builders.models import build
from tests.hybrid.checking.simulation.helpers import columns_of, engine_matrix, rules_matrix

SIZES: dict[str, dict[str, Any]] = {
    "biased_die": {"N": 4, "first": 0},
    "brp": {"N": 3, "MAX": 1},
    "cluster": {"N": 1},
    "coin": {"K": 1},
    "disk": {"Q": 3},
    "fms": {"n": 1},
    "herman": {},
    "inventory": {"M": 8},
    "jobs": {"N": 2},
    "kanban": {"t": 1},
    "mutex": {"M": 1},
    "philosophers": {},
    "polling": {},
    "quick_sort": {"limit": 3},
    "relay": {"H": 2, "M": 1},
    "servers": {"N": 4},
    "tandem": {"c": 2},
    "tasks": {"delay": 0.125},
    "teams": {},
    "wakeup": {"K": 1},
}


def test_every_example_is_compared(examples_folder: Path) -> None:
    assert {path.stem for path in examples_folder.glob("*.prism")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_rates_are_those_of_the_engine(examples_folder: Path, name: str) -> None:
    model = hybrid.load(examples_folder / f"{name}.prism", SIZES[name])
    assert model.n_states < 1200
    np.testing.assert_allclose(rules_matrix(model), engine_matrix(model), rtol=1e-12, atol=0)


# What the examples do not have: weights over many states, several commands of one module and action, actions
# composed otherwise, numbers that doubles would compare wrongly, weights of zero, parts without a value.
HARD = {
    "weights that depend on states": """ctmc
module a x : [0..4] init 2;
  [] x<4 -> x*0.1+0.2 : (x'=x+1) + (x=2 ? 0 : 1.5) : (x'=0);
  [go] x>0 -> 1/x : (x'=x-1);
  [go] x>2 -> 2 : (x'=0) + 0.25 : (x'=1);
endmodule
module b b : bool; y : [-2..1] init -2;
  [go] true -> 0.5 : (b'=!b) + 3 : (y'=min(1,y+1));
  [go] y>=0 -> y+1 : (y'=-2);
endmodule""",
    "several choices of one action": """mdp
module a x : [0..2];
  [go] x<2 -> 0.3:(x'=x+1) + 0.7:true;
  [go] x=0 -> (x'=2);
  [] x=2 -> (x'=0);
endmodule
module b y : [0..1];
  [go] true -> (y'=1-y);
  [go] y=0 -> 0.5:(y'=1) + 0.5:(y'=0);
endmodule""",
    "probabilities and choices in a chain": """dtmc
module a x : [0..3];
  [] x<3 -> 1/3:(x'=x+1) + 2/3:(x'=0);
  [] x=1 -> (x'=3);
  [] 0.1*x=0.3 -> (x'=0);
endmodule""",
    "an action renamed and hidden": """ctmc
module a x : [0..2];  [s] x<2 -> 2:(x'=x+1); [t] x=2 -> (x'=0); endmodule
module b y : [0..2];  [s] y<2 -> 3:(y'=y+1); [u] y=2 -> 4:(y'=0); endmodule
system (a |[s]| b {u<-t}) / {t} endsystem""",
    "no value where it does not matter": """dtmc
module a x : [0..5];
  [] x>0 & mod(7,x)=1 -> (x'=x-1);
  [] x=0 | mod(7,x)!=1 -> 0.5:(x'=min(5,x+1)) + 0.5:(x'=0);
endmodule""",
}


@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_rates_of_hard_models(text: str) -> None:
    model = build(text)
    np.testing.assert_allclose(rules_matrix(model), engine_matrix(model), rtol=1e-12, atol=0)


def test_functions_over_many_variables_are_not_tabulated_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HARD["weights that depend on states"]
    model = build(text)
    expected = rules_matrix(model)
    monkeypatch.setattr("hybrid.checking.simulation.functions.Function.compiled", lambda self, entries: self)
    monkeypatch.setattr("hybrid.checking.simulation.functions.Combined.compiled", lambda self, entries: self)
    np.testing.assert_array_equal(rules_matrix(model), expected)


def test_no_product_of_commands_is_written_out() -> None:
    """40 modules that each throw a coin in one step have 2^40 updates together."""
    modules = [
        f"module m{i} x{i} : [0..1]; [step] true -> 0.5:(x{i}'=0) + 0.5:(x{i}'=1); endmodule"
        for i in range(40)
    ]
    paths = simulate(resolve(parse_model("dtmc\n" + "\n".join(modules)), {}), steps=3, paths=2000)
    heads = sum(paths.states[f"x{i}"][:, 3].astype(int) for i in range(40))
    assert abs(heads.mean() - 20) < 0.5
    assert abs(heads.var() - 10) < 1.5


def test_absorbing_states() -> None:
    text = """dtmc
module a x : [0..4];
  [] x=0 -> 0.5:(x'=1) + 0.25:(x'=2) + 0.125:(x'=3) + 0.125:(x'=4);
  [] x=1 -> (x'=1);
  [] x=2 -> 0.5:(x'=2) + 0.5:(x'=3);
  [] x=4 -> 1:(x'=4) + 0:(x'=0);
endmodule"""
    model = build(text)
    states = columns_of(model)
    found = Rules(model.source).absorbing(Columns(states))
    assert dict(zip(states[0].tolist(), found.tolist(), strict=True)) == {
        0: False,
        1: True,
        2: False,
        3: True,
        4: True,
    }
