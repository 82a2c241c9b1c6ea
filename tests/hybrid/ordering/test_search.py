"""Variable orders searched for: better than those given, the same every time, kept in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.errors import OptionError
from hybrid.ordering import instances, search, search_order
from mtbdd.build import build_model
from mtbdd.language import load_model, parse_model, resolve
from mtbdd.order import ORDERS, order_variables
from tests.source_tree import ROOT

# c copies a, and d copies b: pairs belong together, and the text parts them.
PAIRS = """
dtmc
const int K;
module m
  a : [0..K]; b : [0..K]; c : [0..K]; d : [0..K];
  [] true -> 0.25:(a'=mod(a+1,K+1)) + 0.25:(c'=a) + 0.25:(b'=mod(b+1,K+1)) + 0.25:(d'=b);
endmodule
"""


def test_the_order_is_no_worse_than_the_given_ones() -> None:
    syntax = parse_model(PAIRS)
    found = search_order(syntax, {"K": 15})
    instance = instances.small_instance(syntax, {"K": 15}, False)
    score = {
        names: search._score(instance, names, "auto")
        for names in {found, *(tuple(v.name for v in order_variables(instance, name)) for name in ORDERS)}
    }
    assert score[found] == min(score.values())
    assert score[found] < 0.8 * score["a", "b", "c", "d"]
    place = {name: k for k, name in enumerate(found)}
    assert abs(place["a"] - place["c"]) == abs(place["b"] - place["d"]) == 1


def test_the_text_is_kept_where_little_is_gained() -> None:
    syntax = load_model(ROOT / "examples/tandem.prism")
    assert search_order(syntax, {"c": 15}) == ("sc", "ph", "sm")


def test_it_is_the_same_every_time_and_few_orders_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    syntax, tried = load_model(ROOT / "examples/kanban.prism"), []
    monkeypatch.setattr(search, "_MOST", 12)
    plain = search._score

    def score(instance: Any, names: tuple[str, ...], package: str) -> float:
        tried.append(names)
        return plain(instance, names, package)

    monkeypatch.setattr(search, "_score", score)
    told: list[str] = []
    first = search_order(syntax, {"t": 1}, progress=told.append)
    assert len(tried) == len(set(tried)) == 12
    assert told[-1] == "variable orders: 12 of at most 12"
    assert search_order(syntax, {"t": 1}) == first


@pytest.mark.parametrize(
    ("given", "states"),
    [({"t": 12}, 58_400), ({"t": 3}, 58_400), ({"t": 2}, 4_600), ({"t": 1}, 160)],
)
def test_instances_are_small_and_not_too_small(given: dict[str, int], states: int) -> None:
    syntax = load_model(ROOT / "examples/kanban.prism")
    assert build_model(instances.small_instance(syntax, given, False)).n_states == states


def test_numbers_that_make_no_smaller_model_stay() -> None:
    text = """
    dtmc const int N; const bool on; const double p;
    module m x:[4..N] init N; [] on -> p:(x'=4); endmodule
    """
    instance = instances.small_instance(parse_model(text), {"N": 9, "on": True, "p": 1.0}, False)
    # Smaller than 4 is no range; 4 to 9 states are too few to stop before the model itself.
    assert instance.constants["N"] == 9 and instance.constants["p"] == 1.0
    with pytest.raises(hybrid.HybridError, match="constants without a value"):
        instances.small_instance(parse_model(text), {}, False)


def test_models_in_the_order_found_have_the_same_answers_and_keep_it_in_files(tmp_path: Path) -> None:
    text = "P=? [ F<=5 c=2 & d=1 ]"
    plain = hybrid.parse(PAIRS, constants={"K": 3})
    found = hybrid.parse(PAIRS, constants={"K": 3}, order="search")
    hybrid.export(found, tmp_path / "model.dd")
    again = hybrid.load(tmp_path / "model.dd")
    orders = [[v.name for v in model.encoding.variables] for model in (plain, found, again)]
    assert orders[0] != orders[1] == orders[2]
    values = [hybrid.check(model, text) for model in (plain, found, again)]
    assert all(v.lower <= values[0].value <= v.upper for v in values)


def test_files_without_a_text_have_no_search(tmp_path: Path) -> None:
    hybrid.export(hybrid.parse("dtmc module m x:[0..1]; [] true -> (x'=1-x); endmodule"), tmp_path / "m.umb")
    with pytest.raises(OptionError, match="'search' is for models given as a text"):
        hybrid.load(tmp_path / "m.umb", order="search")


@pytest.mark.parametrize("order", [("x",), ("x", "x"), ("x", "z"), ("x", "y", "y")])
def test_names_that_are_no_order_are_refused(order: tuple[str, ...]) -> None:
    model = resolve(parse_model("dtmc module m x:[0..1]; y:[0..1]; [] true -> true; endmodule"), {})
    with pytest.raises(ValueError, match="expected the variables x, y, each once"):
        order_variables(model, order)


@pytest.mark.parametrize("build", ["symbolic", "explicit"])
def test_listed_states_take_the_order_found(build: Any) -> None:
    model = hybrid.parse(PAIRS, constants={"K": 3}, order="search", build=build)
    found = [v.name for v in model.encoding.variables]
    assert found == list(search_order(parse_model(PAIRS), {"K": 3}))
