"""Properties checked against a model."""

from __future__ import annotations

import pytest

from hybrid.properties import Path, Probability, Reward, TimeBound, parse_properties, resolve_properties
from hybrid.properties.tree import Cumulative, Filter, Instantaneous, MultiObjective
from mtbdd.language import LanguageError, parse_expression
from mtbdd.language.syntax import Binary, Expression, LabelReference, Literal, Name
from mtbdd.language.walk import walk
from tests.builders.language_texts import DISCRETE, MODEL

e = parse_expression


def resolved(text: str, **constants: bool | int | float) -> list[Expression]:
    properties = resolve_properties(parse_properties(text), MODEL, constants)
    return [p.formula for p in properties.properties]


def path_of(formula: Expression) -> Path:
    assert isinstance(formula, Probability)
    assert isinstance(formula.path, Path)
    return formula.path


def test_resolve_expands_everything() -> None:
    (formula,) = resolved(
        'label "l" = "full" | c; formula c = x = k; const int k = N-1; P>=speed [ low U<=2*k "l" ]'
    )
    path = path_of(formula)
    assert isinstance(formula, Probability)
    assert formula.threshold == Literal(formula.position, 0.5)
    assert path.left == e("x < 2.0")
    assert path.right == e("x = 4 | x = 3")
    assert path.bound is not None
    assert path.bound.upper == e("6")


def test_resolve_keeps_only_built_in_labels() -> None:
    (formula,) = resolved('P=? [ F "start" & !"deadlock" ]')
    assert path_of(formula).right == e('("init" & x < 2.0) & !"deadlock"')
    labels = {node.name for node in walk(formula) if isinstance(node, LabelReference)}
    assert labels == {"init", "deadlock"}
    assert {node.name for node in walk(formula) if isinstance(node, Name)} == {"x"}


def test_resolve_given_constants() -> None:
    properties = resolve_properties(
        parse_properties("const double T; const bool on; const int k = 2; P=? [ F<=T on & x=k ]"),
        MODEL,
        {"T": 3, "on": True, "N": 4},
    )
    assert properties.values == {"T": 3.0, "on": True, "k": 2}
    path = path_of(properties.properties[0].formula)
    assert isinstance(path.bound, TimeBound)
    assert path.bound.upper == Literal(path.position, 3.0)
    assert path.right == e("x = 2")


def test_resolve_references_to_properties() -> None:
    formulas = resolved('"b2": "a1" > 0.25 & b; "a1": P=? [ F x=1 ]; filter(max, "a1", "b2")')
    first, second, third = formulas
    assert isinstance(first, Binary)
    assert isinstance(first.left, Binary)
    assert first.left.left == second
    assert third == Filter(third.position, "max", second, first)


def test_a_property_may_be_named_like_a_label_of_the_model() -> None:
    found = resolve_properties(parse_properties('"full": P=? [ F "full" ]; P=? [ G "full" ]'), MODEL)
    assert [p.name for p in found.properties] == ["full", None]
    for item in found.properties:
        assert path_of(item.formula).right == e("x = 4")


def test_resolve_places_of_reward_structures() -> None:
    formulas = resolved('R=? [ S ]; R{"moves"}=? [ C<=2.5 ]; R{1}=? [ I=N ]; R{N/N > 0 ? 2 : 1}=? [ F b ]')
    assert [f.index for f in formulas if isinstance(f, Reward)] == [0, 1, 0, 1]
    assert [f.target for f in formulas if isinstance(f, Reward)][1:3] == [
        Cumulative(formulas[0].position, e("2.5")),
        Instantaneous(formulas[0].position, e("4")),
    ]


def test_bounds_of_rewards_may_be_below_zero() -> None:
    (formula,) = resolved("R>=-2.5 [ C<=3 ]")
    assert formula.threshold.value == -2.5


def test_resolve_leaves_the_input_alone() -> None:
    properties = parse_properties('P=? [ F "full" ]')
    before = repr(properties)
    resolve_properties(properties, MODEL)
    assert repr(properties) == before


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        # Syntax.
        ("", "1:1", "expected a property, got the end of the text"),
        ("P=? [ F b", "1:10", "expected ']' to close the operator P, got the end of the text"),
        ("P [ F b ]", "1:3", "expected '=?' or a bound like '>=0.5' after 'P', got '['"),
        ("P= [ F b ]", "1:4", "expected '?' after 'P=', got '['"),
        ("P=? F b", "1:5", "expected '[' before the path formula of P, got 'F'"),
        ("Pmin max=? [ F b ]", "1:6", "expected '=?' or a bound, got 'max'; say min or max once"),
        ("F b", "1:1", "expected a state formula, got the path operator 'F'"),
        ("b U b", "1:3", "expected a state formula, got the path operator 'U'"),
        ("S=? [ F b ]", "1:7", "expected a state formula, got the path operator 'F'"),
        ("P=? [ F b & G b ]", "1:13", "got the path operator 'G'; write (G b), in brackets beside other"),
        ("P=? [ G (b => F b) ]", "1:15", "got the path operator 'F'; write (F b), in brackets beside other"),
        ("P=? [ b => F<=2 (b U b) ]", "1:12", "write (F<=2 (b U b)), in brackets"),
        (
            "P=? [ b | G (b ]",
            "1:11",
            "got the path operator 'G'; path formulas stand inside P=? [ ... ], and",
        ),
        ("P=? [ GF b ]", "1:7", "unknown operator 'GF'; write G F"),
        ("P=? [ FG (b) ]", "1:7", "unknown operator 'FG'; write F G"),
        ("P=? [ b & XXF !b ]", "1:11", "unknown operator 'XXF'; write X X F"),
        ('P=? [ G (b => GF "init") ]', "1:15", "unknown operator 'GF'; write G F"),
        ("P=? [ b U b U b ]", "1:13", "expected the end of the path formula, got 'U'"),
        ("P=? [ X<=2 b ]", "1:8", "expected no bound after 'X'"),
        ("P=? [ F[1;2] b ]", "1:10", "expected ',' between the ends of a time interval, got ';'"),
        ("P=? [ F<= b ]", "1:13", "expected an expression, got ']'"),
        ("E F b", "1:3", "expected '[' before the path formula of E"),
        ("p1: P=? [ F b ]", "1:3", 'put the name in double quotes, "p1": ...'),
        ("X: P=? [ F b ]", "1:2", 'put the name in double quotes, "X": ...'),
        ("R : P=? [ F b ]", "1:3", 'put the name in double quotes, "R": ...'),
        ("2: P=? [ F b ]", "1:2", 'put the name in double quotes, "name": ...'),
        ("b-b: P=? [ F b ]", "1:4", 'put the name in double quotes, "name": ...'),
        ('"p": q: P=? [ F b ]', "1:7", 'put the name in double quotes, "q": ...'),
        ("P=? [ F b {b} ", "1:14", "expected ']' to close the operator P"),
        ("P=? [ F b {b}{sum} ]", "1:15", "expected min or max, got 'sum'"),
        ('R{"r"=? [ S ]', "1:6", "expected '}' after the reward structure, got '='"),
        ("R=? [ C<2 ]", "1:8", "expected '<=' or ']' after 'C', got '<'"),
        ("R=? [ I<=2 ]", "1:8", "expected '=' after 'I', got '<='"),
        ("filter min(b)", "1:8", "expected '(' after 'filter', got 'min'"),
        ("filter(max; b)", "1:11", "expected ',' after a filter's operator, got ';'"),
        ("P=? [ F b ] ]", "1:13", "expected an expression, got ']'"),
        ('label "l" = P>0.5 [ F b ];', "1:13", "expected a plain expression, got the operator 'P'"),
        ("P>P>0.5 [ F b ] [ F b ]", "1:3", "expected a plain expression, got the operator 'P'"),
        # Names.
        ("P=? [ F y=1 ]", "1:9", "unknown name 'y'"),
        ("P=? [ F init ]", "1:9", 'the label is written in quotes, "init"'),
        ("P=? [ F deadlock ]", "1:9", 'a label is written in quotes; write "deadlock"'),
        ('P=? [ F "ful" ]', "1:9", "unknown label \"ful\"; did you mean 'full'?"),
        ('R{"move"}=? [ S ]', "1:1", "unknown reward structure \"move\"; did you mean 'moves'?"),
        ("R{3}=? [ S ]", "1:3", "the number of a reward structure must be from 1 to 2, got 3"),
        ("R{x}=? [ S ]", "1:3", "the number of a reward structure must be a constant"),
        ("fitler(b, P=? [ F b ])", "1:1", "unknown function 'fitler'; did you mean 'filter'?"),
        ("filter(mux, P=? [ F b ])", "1:1", "unknown filter 'mux'; did you mean 'max'?"),
        (
            "const int N; P=? [ F b ]",
            "1:11",
            "constant 'N' is declared in the model model.prism, too, as constant",
        ),
        (
            "formula x = 1; P=? [ F b ]",
            "1:9",
            "formula 'x' is declared in the model model.prism, too, as variable",
        ),
        (
            'label "full" = b; P=? [ F b ]',
            "1:7",
            "label 'full' is declared in the model model.prism, too, as label",
        ),
        (
            '"init": P=? [ F b ]',
            "1:9",
            "property 'init' is declared in the model model.prism, too, as built-in",
        ),
        ('label "a" = b; "a": P=? [ F b ]', "1:21", "property 'a' is declared a second time, first as label"),
        ('"a": b; "a": b', "1:14", "property 'a' is declared a second time, first as property at 1:6"),
        ('"a": "c"; "c": "a"', "1:6", 'properties mention one another: "a" -> "c" -> "a"'),
        ("const int k = k; P=? [ F b ]", "1:11", "constants depend on one another: k -> k"),
        (
            "const int k; P=? [ F x=k ]",
            "1:14",
            "constant without a value: 'k' (int); give it with constants={'k': VALUE}",
        ),
        # Types.
        ("P=? [ F x ]", "1:9", "the operand of 'F' must be a bool, got an int 'x'"),
        ("P=? [ x U b ]", "1:7", "the left operand of 'U' must be a bool"),
        ("P=? [ b U x ]", "1:11", "the right operand of 'U' must be a bool"),
        ("P=? [ F P=? [ F b ] ]", "1:9", "the operand of 'F' must be a bool, got a double 'P ... [ ... ]'"),
        ("P=? [ F b ] & b", "1:1", "the left operand of '&' must be a bool, got a double 'P ... [ ... ]'"),
        ("P>0.5 [ F b ] + 1", "1:1", "the left operand of '+' must be a number, got a bool 'P ... [ ... ]'"),
        (
            "(P=? [ F b ] > 0.5) + 1",
            "1:2",
            "the left operand of '+' must be a number, got a bool 'a property'",
        ),
        ("P>=b [ F b ]", "1:4", "the bound of P must be a number, got a bool 'b'"),
        ("S=? [ x ]", "1:7", "what S asks about must be a bool"),
        ("R=? [ F x ]", "1:9", "the operand of 'F' must be a bool"),
        ("R=? [ I=b ]", "1:9", "a bound on time must be a number"),
        ("P=? [ F<=b b ]", "1:10", "a bound on time must be a number"),
        ("filter(max, b)", "1:13", "the operand of the filter 'max' must be a number"),
        ("filter(forall, P=? [ F b ])", "1:16", "the operand of the filter 'forall' must be a bool"),
        ("filter(max, P=? [ F b ], x)", "1:26", "the states of a filter must be a bool"),
        # Values.
        ("P>1.5 [ F b ]", "1:1", "a bound on a probability must be between 0 and 1, got 1.5"),
        ("S<-0.5 [ b ]", "1:1", "a bound on a probability must be between 0 and 1, got -0.5"),
        (
            "R>x [ S ]",
            "1:1",
            "a bound on a reward must be a constant, got an expression which depends on the variable 'x'",
        ),
        ("P=? [ F<=x b ]", "1:8", "a bound on time must be a constant"),
        ("P=? [ F<=-1 b ]", "1:8", "a bound on time must be at least 0, got -1"),
        ("P=? [ F[3,1] b ]", "1:8", "a time interval must not be empty, got [3,1]"),
        ("P=? [ F<0 b ]", "1:8", "a bound on time must leave some time, got <0"),
        ("T<=-2 [ F b ]", "1:1", "a bound on an expected time must be at least 0, got -2"),
        ("R=? [ C<=-2 ]", "1:7", "a time must be at least 0, got -2"),
        ("P=? [ F x=1/0 ]", "1:11", "expected a divisor other than zero"),
    ],
)
def test_property_faults(text: str, place: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        resolve_properties(parse_properties(text, "f.props"), MODEL)
    (fault,) = caught.value.faults
    assert f"{fault.position.file}:{fault.position.line}:{fault.position.column}" == f"f.props:{place}"
    assert message in fault.message
    assert "\n" not in fault.message


def test_discrete_time_counts_steps() -> None:
    for text in ("P=? [ F<=2.5 b ]", "P=? [ F[0.5,1] b ]"):
        with pytest.raises(LanguageError, match="a bound on steps must be an int, got a double"):
            resolve_properties(parse_properties(text), DISCRETE)
    resolve_properties(parse_properties("P=? [ F<=2 b ]"), DISCRETE)
    with pytest.raises(LanguageError, match="the model has no rewards"):
        resolve_properties(parse_properties("R=? [ S ]"), DISCRETE)


def test_unknown_given_constants() -> None:
    properties = parse_properties("const double T; P=? [ F<=T b ]")
    with pytest.raises(LanguageError, match="unknown constant 'U' was given; known are T, N, speed"):
        resolve_properties(properties, MODEL, {"T": 1, "U": 2})


def test_faults_are_collected() -> None:
    properties = parse_properties("P=? [ F y=1 ]; P>2 [ F b ]; P=? [ F b ]; S=? [ x & y ]")
    with pytest.raises(LanguageError) as caught:
        resolve_properties(properties, MODEL)
    assert [f.position.column for f in caught.value.faults] == [9, 16, 48, 52]


def test_faults_may_be_kept_beside_the_sound_properties() -> None:
    text = """const int k; const int l = k; label "few" = x < l;
    "bad": P=? [ F y=1 ]
    "good": P=? [ F x=1 ]
    "missing": P=? [ F "few" ]
    "uses": "bad" > 0.5
    "loop": "loop"
    "far": "loop"
    "also good": P=? [ F b ]""".replace("also good", "also_good")
    properties = resolve_properties(parse_properties(text), MODEL, keep_faults=True)
    errors = {p.name: p.error for p in properties.properties}
    assert {name for name, error in errors.items() if error is None} == {"good", "also_good"}
    assert "unknown name 'y'" in str(errors["bad"])
    assert "unknown name 'y'" in str(errors["uses"])
    assert "'k' (int)" in str(errors["missing"])
    assert "mention one another" in str(errors["loop"])
    assert "mention one another" in str(errors["far"])
    good = properties.properties[1]
    assert path_of(good.formula).right == e("x = 1")
    assert properties.values == {}


def test_faults_of_declarations_are_not_kept() -> None:
    with pytest.raises(LanguageError, match='the label "l" must be a bool'):
        resolve_properties(parse_properties('label "l" = x; P=? [ F b ]'), MODEL, keep_faults=True)


REFUSED = [
    ("<<m, n>> P>0.5 [ F b ]", "1:1", "the strategy operator <<...>> is not supported"),
    ("[[m]] (b)", "1:1", "the strategy operator [[...]] is not supported"),
    ('R{"moves"}/{1}=? [ F b ]', "1:11", "the ratio of two rewards"),
    ("R=? [ C{discount=0.9}<=5 ]", "1:8", "options in braces after 'C'"),
    ("R=? [ F{discount=0.9} b ]", "1:8", "options in braces after 'F'"),
    ("P=? [ b U{discount=0.9}<=5 x=1 ]", "1:10", "options in braces after 'U'"),
    ('quantile(min B, max D, P>=0.1 [ F{"moves"}<=B b ])', "1:17", "asks for the least pairs"),
    ('quantile(min B, P>=0.1 [ F{"moves"}<B b ])', "1:39", "stands behind '<=', got '<'"),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_is_not_supported_is_refused_by_name(text: str, place: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        resolved(text)
    (fault,) = caught.value.faults
    assert f"{fault.position.line}:{fault.position.column}" == place
    assert message in fault.message


@pytest.mark.parametrize("text", [text for text, _, _ in REFUSED])
def test_what_is_not_supported_hides_no_other_property(text: str) -> None:
    properties = parse_properties(f'"x": {text}; "y": !"x" P=? [ F b ]')
    kept = resolve_properties(properties, MODEL, {}, keep_faults=True).properties
    assert [p.error is None for p in kept] == [False, False, True]
    assert kept[0].text == text
    assert kept[2].formula == parse_properties("P=? [ F b ]").properties[0].formula


MULTI = [
    ("multi(P>=0.5 [ F b ], A [ F b ])", "1:23", "expected P, R or S as an objective"),
    ("multi(P=? [ F b ])", "1:7", "says min or max: Pmax=?"),
    ("multi(R<2 [ C ], P>=0.5 [ F b ])", "1:7", "expected R>= or R<= as a bound"),
    ("multi(Pmax>=0.5 [ F b ])", "1:7", "got Pmax>="),
    ("multi(Pmax=? [ F b ], Rmin=? [ C ], P>=0.1 [ F x=1 ])", "1:1", "asks for 2 values and has bounds"),
    ("multi(P>=1.5 [ F b ])", "1:7", "must be between 0 and 1"),
]


@pytest.mark.parametrize(("text", "place", "message"), MULTI, ids=[text for text, _, _ in MULTI])
def test_faults_of_objectives(text: str, place: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        resolved(text)
    (fault,) = caught.value.faults
    assert f"{fault.position.line}:{fault.position.column}" == place
    assert message in fault.message


def test_objectives_keep_their_texts() -> None:
    (found,) = resolved("multi(Rmin=? [ C ], P>=0.5 [ F (b) ])")
    assert isinstance(found, MultiObjective)
    assert found.texts == ("Rmin=? [ C ]", "P>=0.5 [ F (b) ]")
    assert [type(o).__name__ for o in found.objectives] == ["Reward", "Probability"]


def test_formulas_and_labels_mention_one_another() -> None:
    text = """formula near = "full" | x = gap; const int gap = 1; label "near" = near & !"far";
        label "far" = "start" | dark; formula dark = b; filter(count, "near")"""
    (found,) = resolved(text)
    assert isinstance(found, Filter)
    assert found.operand == e('(x = 4 | x = 1) & !("init" & x < 2.0 | b)')
