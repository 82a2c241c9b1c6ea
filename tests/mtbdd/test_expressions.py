"""Expressions as sets and partitions, tabulated or split at operators, against state-by-state values."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from mtbdd.build import expressions
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.diagrams.encoding import Encoding
from mtbdd.language import EvaluationError, parse_model, resolve
from mtbdd.language.syntax import Expression, ResolvedModel
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.oracles.expressions import evaluate_exactly

HEAD = "dtmc module m b : bool; c : bool; x : [0..4]; y : [-2..1]; z : [2..2]; endmodule\n"

NUMBERS = [
    "x",
    "z",
    "7",
    "2.5",
    "x + y",
    "x - y*2",
    "-x",
    "x*y*z",
    "x/2",
    "(x + 1)/(y + 3)",
    "min(x, y + 2, 3)",
    "max(x, 2.5)",
    "floor(x/3)",
    "ceil(x/3)",
    "round(x/2)",
    "mod(x + y, 3)",
    "pow(y, 2)",
    "pow(2.0, y)",
    "pow(2, x)",
    "log(x + 1, 2)",
    "b ? x : y",
    "b ? x : 0.5",
    "b & c ? (x > 2 ? 1 : x) : y/4",
    "pow(b ? 2 : 0.5, y)",
    "(b ? 1 : 0) + (c ? 1 : 0) + x",
]

CONDITIONS = [
    "true",
    "false",
    "b",
    "!b",
    "b & c",
    "b | !c | x=3",
    "b => x>2",
    "b <=> x>2",
    "b <=> c",
    "b = c",
    "b != c",
    "x = y",
    "x != y + 1",
    "x + y < 3",
    "x >= y*y",
    "x/2 <= 1.5",
    "x > 2.5",
    "(b ? x : y) > 0",
    "b ? c : x=1",
    "(b ? c : !c) & x<=2",
    "mod(x, 2) = 0 <=> (b | c)",
    "!(x>1 & (b | y<0)) => !(c <=> x=0)",
    "z = 2",
    "z != 2",
]


def model(definitions: str) -> ResolvedModel:
    return resolve(parse_model(HEAD + definitions))


def formula(text: str) -> tuple[ResolvedModel, Expression]:
    source = model(f"formula f = {text};")
    return source, source.formulas[0].expression


def condition(text: str) -> tuple[ResolvedModel, Expression]:
    source = model(f'label "l" = {text};')
    return source, source.labels[0].expression


def valuations(source: ResolvedModel) -> list[dict[str, bool | int]]:
    every = product(*(range(v.low, v.high + 1) for v in source.variables))
    return [
        {
            v.name: bool(value) if v.is_bool else value
            for v, value in zip(source.variables, state, strict=True)
        }
        for state in every
    ]


def holds(encoding: Encoding, node: Any, values: dict[str, bool | int]) -> bool:
    state = encoding.state({name: int(value) for name, value in values.items()})
    return bool(state & node == state)


def some(texts: list[str], package: str) -> list[str]:
    """All texts, or every third where diagrams are made in Python."""
    return texts if package == FASTEST else texts[::3]


@pytest.fixture(params=["tabulated", "split"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "split":
        monkeypatch.setattr("mtbdd.build.expressions._GRID_BITS", 0)
    return str(request.param)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_expressions_numbers_equal_their_values(package: str, way: str) -> None:
    for text in some(NUMBERS, package):
        source, expression = formula(text)
        encoding = Encoding(source.variables, package)
        partition = ExpressionTranslator(encoding).partition(expression, encoding.valid)
        covered = encoding.manager.false
        for _, piece in partition:
            assert covered & piece == encoding.manager.false
            covered = covered | piece
        assert covered == encoding.valid, text
        for values in valuations(source):
            found = [value for value, piece in partition if holds(encoding, piece, values)]
            expected = evaluate_exactly(expression, values)
            assert len(found) == 1 and math.isclose(found[0], expected, rel_tol=1e-14), (text, values)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_expressions_conditions_equal_their_values(package: str, way: str) -> None:
    for text in some(CONDITIONS, package):
        source, expression = condition(text)
        encoding = Encoding(source.variables, package)
        translator = ExpressionTranslator(encoding)
        states = translator.states(expression)
        for values in valuations(source):
            assert holds(encoding, states, values) == evaluate_exactly(expression, values), (text, values)
        assert translator.states(expression) == states  # from the cache


@pytest.mark.parametrize("long_chain", [2, 16])
def test_expressions_long_chains_need_no_recursion(
    long_chain: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of operands, as generated models have them."""
    monkeypatch.setattr("mtbdd.build.expressions._LONG_CHAIN", long_chain)
    terms = [f"(x={i % 5} & y={i % 3 - 2})" for i in range(0, 1500, 15)] + ["x=9"] * 1500
    for text, negated in ((" | ".join(terms), False), (" & ".join(f"!{t}" for t in terms), True)):
        source, expression = condition(text.replace("!x=9", "x!=9"))
        encoding = Encoding(source.variables)
        states = ExpressionTranslator(encoding).states(expression)
        for values in valuations(source):
            met = any(values["x"] == i % 5 and values["y"] == i % 3 - 2 for i in range(0, 1500, 15))
            assert holds(encoding, states, values) == (met != negated)


def test_expressions_values_outside_a_range_belong_to_no_set() -> None:
    """Five values take three bits: the other assignments are covered by no piece."""
    source, expression = formula("x + (b ? 1 : 0)")
    encoding = Encoding(source.variables)
    manager = encoding.manager
    partition = ExpressionTranslator(encoding).partition(expression)
    x = encoding.by_name["x"]
    inside = manager.disjunction(manager.cube(encoding.row_names(x), k) for k in range(5))
    assert partition.support == inside


def test_expressions_undefined_values_are_pieces_of_their_own(way: str) -> None:
    source, expression = formula("1/x")
    encoding = Encoding(source.variables)
    partition = ExpressionTranslator(encoding).partition(expression)
    zero = encoding.state({"b": 0, "c": 0, "x": 0, "y": 0, "z": 2})
    assert partition.pieces[math.inf] & zero == zero
    assert sorted(partition.pieces) == [0.25, pytest.approx(1 / 3), 0.5, 1.0, math.inf]


def test_expressions_wide_sums_are_split() -> None:
    """Forty bits: no table could hold them."""
    names = [f"v{i}" for i in range(40)]
    declared = " ".join(f"{n} : [0..1];" for n in names)
    text = f'ctmc module m {declared} endmodule formula f = {" + ".join(names)}; label "l" = f = 3;'
    source = resolve(parse_model(text))
    encoding = Encoding(source.variables)
    translator = ExpressionTranslator(encoding)
    partition = translator.partition(source.formulas[0].expression)
    assert sorted(partition.pieces) == list(range(41))
    count = encoding.manager.bdd.count
    for k, piece in partition:
        assert count(piece, nvars=encoding.n_bits) == math.comb(40, k)
    assert translator.states(source.labels[0].expression) == partition.pieces[3]


def test_evaluate_exactly_knows_fractions() -> None:
    _, expression = formula("0.1*x + 1/3")
    assert evaluate_exactly(expression, {"x": 2}) == Fraction(1, 5) + Fraction(1, 3)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_undefined_where_a_function_has_no_value(package: str) -> None:
    source, expression = formula("x > 0 & mod(4, x) = 1 | pow(2, y) > 0")
    encoding = Encoding(source.variables, package)
    translator = ExpressionTranslator(encoding)
    # Where the first operand holds, the second one is not looked at.
    negative = translator.states(formula("y < 0")[1]) & encoding.valid
    decided = translator.states(formula("x = 3")[1])
    assert translator.undefined(expression) & encoding.valid == negative & ~decided
    assert translator.undefined(formula("mod(4, 2 + x) = 1")[1]) & encoding.valid == encoding.manager.false


def test_missing_values_are_reported_with_a_state() -> None:
    source, expression = formula("mod(4, x) = 1")
    encoding = Encoding(source.variables)
    translator = ExpressionTranslator(encoding)
    translator.require_value(expression, encoding.state({"b": 0, "c": 0, "x": 1, "y": 0, "z": 2}))
    with pytest.raises(EvaluationError, match=r"got none in \(b=false, c=true, x=0, y=1, z=2\): a modulus"):
        translator.require_value(expression, encoding.state({"b": 0, "c": 1, "x": 0, "y": 1, "z": 2}))


@pytest.mark.parametrize("limit", [0, 20])
@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_built_in_labels_are_sets_in_any_expression(
    package: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expressions, "_GRID_BITS", limit)
    many = " | ".join(f"x = {i % 5} & b & c" for i in range(30))
    source = model(
        f"""label "a" = "init" | b; label "b" = ("init" = true) | b; label "c" = ("init" ? 2 : 1) > 1 | b;
        label "d" = "init" | ({many}) | b;"""
    )
    encoding = Encoding(source.variables, package)
    translator = ExpressionTranslator(encoding)
    start = encoding.state({"b": 0, "c": 0, "x": 1, "y": 0, "z": 2})
    translator.labels.update(init=start, deadlock=~start)
    wanted = (start | translator.states(formula("b")[1])) & encoding.valid
    for label in source.labels:
        assert translator.states(label.expression) & encoding.valid == wanted, label.name
