"""Reading properties."""

from __future__ import annotations

from pathlib import Path as FilePath

import pytest

from hybrid.properties import (
    Cumulative,
    Filter,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Reward,
    SteadyState,
    TimeBound,
    load_properties,
    parse_properties,
)
from mtbdd.language import LanguageError, SourceError, parse_expression
from mtbdd.language.syntax import Binary, Expression, Position, Unary
from tests.builders.language_texts import FILE

HERE = Position("<test>", 1, 1)
e = parse_expression


def parse(text: str) -> Expression:
    (item,) = parse_properties(text).properties
    return item.formula


def probability(path: Expression) -> Probability:
    return Probability(HERE, None, None, None, path)


def eventually(right: Expression, bound: TimeBound | None = None) -> Path:
    return Path(HERE, "F", None, right, bound)


@pytest.mark.parametrize(
    ("head", "optimum", "comparison", "threshold"),
    [
        ("P=?", None, None, None),
        ("P =? ", None, None, None),
        ("Pmin=?", "min", None, None),
        ("Pmax=?", "max", None, None),
        ("P max=?", "max", None, None),
        ("P>=0.5", None, ">=", "0.5"),
        ("P<p/2", None, "<", "p/2"),
        ("Pmax<=0.1", "max", "<=", "0.1"),
        ("P>(b ? 1 : 0)", None, ">", "b ? 1 : 0"),
    ],
)
def test_probability_heads(head: str, optimum: str, comparison: str, threshold: str) -> None:
    bound = None if threshold is None else e(threshold)
    assert parse(f"{head}[ F x=1 ]") == Probability(HERE, optimum, comparison, bound, eventually(e("x=1")))


@pytest.mark.parametrize(
    ("text", "lower", "upper", "lower_strict", "upper_strict"),
    [
        ("<=5", None, "5", False, False),
        ("<T", None, "T", False, True),
        (">=2.5", "2.5", None, False, False),
        (">T", "T", None, True, False),
        ("=3", "3", "3", False, False),
        ("[1,T]", "1", "T", False, False),
        ("[T/2, 2*T]", "T/2", "2*T", False, False),
        ("<=T*2+1", None, "T*2+1", False, False),
        ("<=(T)", None, "T", False, False),
        ("<=min(T,3)", None, "min(T,3)", False, False),
    ],
)
@pytest.mark.parametrize("right", ["x=1", "(x=1)", '"a"', "!b", "(x=1)&b", "P>0.5 [ X b ]"])
def test_time_bounds(
    text: str, lower: str, upper: str, lower_strict: bool, upper_strict: bool, right: str
) -> None:
    ends = [None if end is None else e(end) for end in (lower, upper)]
    bound = TimeBound(HERE, ends[0], ends[1], lower_strict, upper_strict)
    operand = parse(right)
    assert parse(f"P=? [ F{text} {right} ]") == probability(eventually(operand, bound))
    assert parse(f"P=? [ b U{text} {right} ]") == probability(Path(HERE, "U", e("b"), operand, bound))


def test_path_operators() -> None:
    for operator in "XFG":
        assert parse(f"P=? [ {operator} a & b ]") == probability(Path(HERE, operator, None, e("a & b"), None))
    for operator in "UWR":
        path = Path(HERE, operator, e("a & b"), e("c | d"), None)
        assert parse(f"P=? [ a & b {operator} c | d ]") == probability(path)


def test_path_formulas_nest() -> None:
    always = Path(HERE, "G", None, eventually(e("a")), None)
    assert parse("P=? [ G F a ]") == probability(always)
    both = Binary(HERE, "&", eventually(e("a")), Unary(HERE, "!", Path(HERE, "G", None, e("b"), None)))
    assert parse("P=? [ (F a) & !(G b) ]") == probability(both)
    assert parse("P=? [ F a U b ]") == probability(Path(HERE, "U", eventually(e("a")), e("b"), None))
    assert parse("P=? [ a U (b U c) ]") == probability(
        Path(HERE, "U", e("a"), Path(HERE, "U", e("b"), e("c"), None), None)
    )


def test_release_and_reward_operators_share_their_letter() -> None:
    path = Path(HERE, "R", e("a"), parse("R>1 [ S ]"), None)
    assert parse("P=? [ a R R>1 [ S ] ]") == probability(path)


def test_steady_state() -> None:
    assert parse("S=? [ x=1 ]") == SteadyState(HERE, None, None, e("x=1"))
    assert parse("S<0.1 [ b ]") == SteadyState(HERE, "<", e("0.1"), e("b"))


@pytest.mark.parametrize(
    ("head", "structure", "optimum", "comparison"),
    [
        ("R=?", None, None, None),
        ('R{"time"}=?', "time", None, None),
        ('R{"time"}max=?', "time", "max", None),
        ("Rmin=?", None, "min", None),
        ('Rmin{"time"}=?', "time", "min", None),
        ("R{2}=?", "2", None, None),
        ("R{k+1}>=3", "k+1", None, ">="),
        ('R{"time"}<3', "time", None, "<"),
    ],
)
@pytest.mark.parametrize(
    ("contents", "target"),
    [
        ("S", LongRun(HERE)),
        ("C", Cumulative(HERE, None)),
        ("C<=2*T", Cumulative(HERE, e("2*T"))),
        ("I=T", Instantaneous(HERE, e("T"))),
        ("F b", eventually(e("b"))),
        ("F (S>0.5 [ b ])", eventually(SteadyState(HERE, ">", e("0.5"), e("b")))),
    ],
)
def test_rewards(
    head: str, structure: str, optimum: str, comparison: str, contents: str, target: Expression
) -> None:
    named = structure if structure in (None, "time") else e(structure)
    threshold = None if comparison is None else e("3")
    assert parse(f"{head} [ {contents} ]") == Reward(HERE, named, optimum, comparison, threshold, target)


@pytest.mark.parametrize(
    ("suffix", "head", "operator"),
    [
        ("{a}", "P=?", "state"),
        ("{a}{min}", "P=?", "min"),
        ("{a}{max}", "P=?", "max"),
        ("{a}{max}{min}", "P=?", "range"),
        ("{a}", "P>0.5", "forall"),
        ("{a}{min}", "P>0.5", "forall"),
    ],
)
def test_old_filters(suffix: str, head: str, operator: str) -> None:
    plain = parse(f"{head} [ F b ]")
    assert parse(f"{head} [ F b {suffix} ]") == Filter(HERE, operator, plain, e("a"))


def test_old_filters_of_all_operators() -> None:
    assert parse("S=? [ b {a}{min} ]") == Filter(HERE, "min", parse("S=? [ b ]"), e("a"))
    assert parse("R=? [ S {a}{max} ]") == Filter(HERE, "max", parse("R=? [ S ]"), e("a"))
    assert parse("R=? [ C<=T {a}{max} ]") == Filter(HERE, "max", parse("R=? [ C<=T ]"), e("a"))
    assert parse("R=? [ C {a} ]") == Filter(HERE, "state", parse("R=? [ C ]"), e("a"))


def test_filters() -> None:
    inner = parse("P=? [ F b ]")
    assert parse('filter(max, P=? [ F b ], "init")') == Filter(HERE, "max", inner, e('"init"'))
    assert parse("filter(+, P=? [ F b ])") == Filter(HERE, "sum", inner, None)
    assert parse("filter(&, b)") == Filter(HERE, "forall", e("b"), None)
    assert parse("filter(|, b)") == Filter(HERE, "exists", e("b"), None)
    nested = Filter(HERE, "forall", Binary(HERE, "=>", e('"a"'), parse("P>=1 [ F b ]")), None)
    assert parse('filter(forall, "a" => P>=1 [ F b ])') == nested


def test_operators_nest_in_expressions() -> None:
    assert parse("2*P=? [ X a ] + 1") == Binary(
        HERE, "+", Binary(HERE, "*", e("2"), probability(Path(HERE, "X", None, e("a"), None))), e("1")
    )
    assert parse("a & !P>0.5 [ F b ]") == Binary(HERE, "&", e("a"), Unary(HERE, "!", parse("P>0.5 [ F b ]")))


def test_properties_file() -> None:
    properties = parse_properties(FILE, "f.props")
    assert properties.file == "f.props"
    assert [(c.name, c.value) for c in properties.constants] == [("T", None), ("k", e("3"))]
    assert [(f.name, f.expression) for f in properties.formulas] == [("small", e("x < k"))]
    assert [(label.name, label.expression) for label in properties.labels] == [("few", e("small"))]
    assert [(p.name, str(p.position)) for p in properties.properties] == [
        ("first", "f.props:9:10"),
        (None, "f.props:10:1"),
        (None, "f.props:10:17"),
        ("last", "f.props:12:3"),
        (None, "f.props:14:1"),
    ]
    assert [" ".join(p.text.split()) for p in properties.properties] == [
        'P=? [ F<=T "few" ]',
        "P>=0.5 [ X b ]",
        "S=? [ x=1 ]",
        'R{"r"}=? [ F x=0 ]',
        '"first" > 0.5',
    ]
    assert all("\n" not in p.text for p in properties.properties)


def test_properties_text_parses_back() -> None:
    for item in parse_properties(FILE).properties:
        assert parse(item.text) == item.formula


def test_properties_selection() -> None:
    properties = parse_properties(FILE)
    chosen = properties.select(["last", 0, "1"])
    assert [p.text[:5] for p in chosen.properties] == ['R{"r"', "P=? [", "P>=0."]
    assert chosen.constants == properties.constants
    with pytest.raises(
        LanguageError, match="a place from 0 to 4 or a name of first, last, got 'lst'; did you"
    ) as c:
        properties.select(["lst", 9, "first"])
    assert len(c.value.faults) == 2


def test_load_properties(tmp_path: FilePath) -> None:
    path = tmp_path / "m.props"
    path.write_text(FILE, encoding="utf-8")
    assert len(load_properties(path).properties) == 5
    with pytest.raises(SourceError, match="expected a properties file, but there is no such file"):
        load_properties(tmp_path / "n.props")
    with pytest.raises(SourceError, match="got a directory"):
        load_properties(tmp_path)


def test_declarations_alone_are_a_file() -> None:
    assert parse_properties("const int k;").properties == ()
