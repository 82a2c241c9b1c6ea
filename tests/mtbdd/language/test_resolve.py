"""Resolved models: bounds, folding, expansion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbdd.language import LanguageError, parse_expression, parse_model, resolve, to_text
from mtbdd.language.names import dependency_order
from mtbdd.language.syntax import Name, ResolvedVariable
from mtbdd.language.walk import walk
from tests.builders.language_texts import TEXT
from tests.mtbdd.language.strategies import HERE


def test_resolve_variables() -> None:
    model = resolve(parse_model(TEXT), {"N": 4})
    assert model.variables == (
        ResolvedVariable("g", -4, 4, -4, False, None, HERE),
        ResolvedVariable("x", 1, 8, 3, False, "m", HERE),
        ResolvedVariable("b", 0, 1, 0, True, "m", HERE),
        ResolvedVariable("c", 0, 1, 1, True, "m", HERE),
    )


def test_resolve_folds_and_expands() -> None:
    model = resolve(parse_model(TEXT), {"N": 4})
    assert model.constants == {"N": 4, "p": 0.25, "flag": True}
    e = parse_expression
    first, second = model.modules[0].commands
    assert first.guard == e("!(x = 4)")
    assert first.updates[0].weight == e("0.25")
    assert first.updates[0].assignments[0].expression == e("min(x + 1, 4)")
    assert first.updates[1].weight == e("0.75")
    assert first.updates[1].assignments[0].expression == e("x = 4")
    assert second.guard == e("g < 14")
    assert model.labels[0].expression == e("x = 4")
    assert [item.value for item in model.rewards[0].items] == [e("8*x"), e("0.25")]
    assert model.rewards[0].items[1].guard == e("true")
    assert {f.name: to_text(f.expression) for f in model.formulas} == {
        "full": "x = 4",
        "next": "min(x + 1, 4)",
        "step": "1",
    }


def test_resolve_leaves_only_variables() -> None:
    model = resolve(parse_model(TEXT), {"N": 2})
    variables = {v.name for v in model.variables}
    for command in model.modules[0].commands:
        for update in command.updates:
            for expression in (command.guard, *(a.expression for a in update.assignments)):
                assert {n.name for n in walk(expression) if isinstance(n, Name)} <= variables


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("true & b", "b"),
        ("b & true", "b"),
        ("b & false", "false"),
        ("false | b", "b"),
        ("b | true", "true"),
        ("false => b", "true"),
        ("true => b", "b"),
        ("b => true", "true"),
        ("b & (1 < 2 | b)", "b"),
        ("x + 1 + 2 > 1 + 2", "x + 1 + 2 > 3"),
        ("(N = 0 ? 1 : 6/N) > x", "2.0 > x"),
        ("(flag ? x : 0) > 1", "x > 1"),
        ("(flag ? 1 : 0.5) > x", "1.0 > x"),
        ("max(N, 2) > x", "3 > x"),
        ('"init" | b & flag', '"init" | b'),
        ('"other" & b', "x = 3 & b"),
    ],
)
def test_resolve_folding(text: str, folded: str) -> None:
    model = resolve(
        parse_model(
            "dtmc const int N = 3; const bool flag = true; module m x:[0..3]; b:bool; endmodule"
            f' label "l" = {text}; label "other" = x = N;'
        )
    )
    assert model.labels[0].expression == parse_expression(folded)


def test_resolve_keeps_a_double_double() -> None:
    text = "dtmc module m x:[1..3]; endmodule rewards true : pow(true ? x : 0.5, -1); endrewards"
    value = resolve(parse_model(text)).rewards[0].items[0].value
    # Folding the condition away would leave pow(int, int), which has no value for a negative exponent.
    assert to_text(value) == "pow(true ? x : 0.0, -1)"


def test_resolve_faults_of_all_kinds_together() -> None:
    text = """dtmc
const int N;
const bool N = true;
formula f = y + 1;
module m
  x : [0..N] init true;
  [] x -> 0.5 : (x'=0.5) + true : (z'=1);
endmodule
label "l" = f > q;
rewards [nothing] true : x > 1; endrewards
"""
    with pytest.raises(LanguageError) as caught:
        resolve(parse_model(text, "f"))
    lines = str(caught.value).split("\n")
    assert [line.split(" ")[0] for line in lines] == [
        "f:2:11:",
        "f:3:12:",
        "f:4:13:",
        "f:6:19:",
        "f:7:6:",
        "f:7:21:",
        "f:7:28:",
        "f:7:36:",
        "f:9:17:",
        "f:10:9:",
        "f:10:26:",
    ]


def test_resolve_deep_formulas_are_a_fault_not_a_crash() -> None:
    chain = "".join(f"formula f{i} = 1 + (f{i - 1});" for i in range(1, 700))
    syntax = parse_model(f"dtmc formula f0 = x; {chain} module m x:[0..1]; [] f699 > 0 -> (x'=0); endmodule")
    try:
        resolve(syntax)
    except LanguageError as error:
        assert "nested less deeply" in str(error)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3)))
def test_order_is_complete_and_sound(graph: dict[str, list[str]]) -> None:
    order, cycles = dependency_order(graph)
    place = {name: i for i, name in enumerate(order)}
    for name in order:
        assert all(place[below] < place[name] for below in graph[name] if below in graph)
    for cycle in cycles:
        assert all(after in graph[name] for name, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    # What is left out reaches a circle.
    reach = {name: set(graph[name]) for name in graph}
    for _ in graph:
        for name in reach:
            reach[name] |= {far for below in reach[name] for far in reach.get(below, ())}
    on_circle = {name for name in graph if name in reach[name]}
    left_out = {name for name in graph if name in on_circle or reach[name] & on_circle}
    assert set(graph) - set(order) == left_out
    assert bool(cycles) == bool(on_circle)


LABELS = """
dtmc
label "top" = low & !"busy";
formula low = "few" | x = 3;
label "few" = x < n;
label "busy" = b;
label "begin" = "init" & low;
formula begun = "begin";
const int n = 2;
module m
  x : [0..3]; b : bool;
  [] "top" -> (x'="few" ? 1 : 2);
endmodule
module k = m [x=y, b=c] endmodule
rewards "r" "few" : low ? 1 : 2; endrewards
init "top" | x=1 endinit
"""


def test_labels_stand_for_their_expressions_everywhere() -> None:
    model = resolve(parse_model(LABELS))
    e = parse_expression
    few, low = "x < 2", "(x < 2 | x = 3)"
    labels = {label.name: label.expression for label in model.labels}
    assert labels["top"] == e(f"{low} & !b")
    assert labels["begin"] == e(f'"init" & {low}')
    assert model.initial == e(f"{low} & !b | x = 1")
    first, second = (module.commands[0] for module in model.modules)
    assert first.guard == labels["top"]
    assert first.updates[0].assignments[0].expression == e(f"{few} ? 1 : 2")
    # Renaming a module renames names, not what labels speak of.
    assert second.guard == labels["top"]
    assert second.updates[0].assignments[0].variable == "y"
    item = model.rewards[0].items[0]
    assert (item.guard, item.value) == (e(few), e(f"{low} ? 1 : 2"))
    assert {f.name: to_text(f.expression) for f in model.formulas}["begun"] == f'"init" & {low}'
