"""Constants: given on a command line, given from Python, worked out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mtbdd.language import LanguageError, parse_constants, parse_model, resolve
from mtbdd.language.reals import Rounded, real_of

MODULE = " module m x : [0..1]; endmodule"


def test_parse_constants_reads_all_types() -> None:
    values = parse_constants(" N=4,K = 2.5, flag=true,e=-1e-3 ,z=-7,off=false,dot=.5")
    assert values == {"N": 4, "K": 2.5, "flag": True, "e": -0.001, "z": -7, "off": False, "dot": 0.5}
    assert all(map(isinstance, values.values(), [int, float, bool, float, int, bool, float]))
    assert parse_constants("  ") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/4", 0.25), ("1.", 1.0), ("+1.", 1.0), ("-1/4", -0.25), ("3*2", 6), ("2^3", 8), ("1.e2", 100.0),
        ("max(1, 2)", 2), ("1<2", True), ("!true", False), ("true ? 1 : 2", 1), ("0.5*(1-0.5)", 0.25),
    ],
)  # fmt: skip
def test_f7_constants_may_be_expressions(text: str, expected: object) -> None:
    values = parse_constants(f"K=2,q={text}, N=3")
    assert values == {"K": 2, "q": expected, "N": 3}
    assert isinstance(values["q"], type(expected))
    assert type(resolve(parse_model("dtmc const double q;" + MODULE), {"q": "1/3"}).constants["q"]) is Rounded


def test_f7_the_number_of_an_expression_is_not_rounded() -> None:
    assert real_of(parse_constants("q=1/3")["q"]) == Fraction(1, 3)
    assert real_of(parse_constants("q=0.1+0.2")["q"]) == Fraction(3, 10)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("N", 1, "expected NAME=VALUE, got 'N'"),
        ("N=4,,K=1", 5, "got nothing between two commas"),
        ("N=4, =3", 6, "expected NAME=VALUE, got '=3'"),
        ("4=N", 1, "expected NAME=VALUE, got '4=N'"),
        ("N=4,N=5", 5, "constant 'N' is given twice"),
        ("N=four", 1, "for 'N', got 'four'"),
        ("N=", 1, "for 'N', got ''"),
        ("N=1:5", 1, "ranges are not supported"),
        ("N=1e999", 1, "got '1e999'"),
        ("N=9223372036854775808", 1, "got '9223372036854775808'"),
        ("N=nan", 1, "got 'nan'"),
        ("K=1,N=1/0", 5, "got '1/0': expected a divisor other than zero"),
        ("N=M", 1, "for 'N', got 'M'"),
        ("N=(1", 1, "for 'N', got '(1'"),
        ("N=max(1,2", 1, "got 'max(1,2'"),
        ('N="x"', 1, "for 'N', got"),
        ("N=true+1", 1, "for 'N', got 'true+1'"),
    ],
)
def test_parse_constants_faults(text: str, column: int, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse_constants(text)
    (fault,) = caught.value.faults
    assert (fault.position.line, fault.position.column) == (1, column)
    assert message in fault.message


def test_parse_constants_reports_all_faults() -> None:
    with pytest.raises(LanguageError) as caught:
        parse_constants("N=x,M,K=1")
    assert [f.position.column for f in caught.value.faults] == [1, 5]


def test_constants_in_any_order() -> None:
    text = "dtmc const int a = b*c; const double d = a/2; const int b = c+1; const int c; const bool e = d>1;"
    constants = resolve(parse_model(text + MODULE), {"c": 3}).constants
    assert constants == {"a": 12, "d": 6.0, "b": 4, "c": 3, "e": True}
    assert all(map(isinstance, constants.values(), [int, float, int, int, bool]))


def test_constants_may_use_formulas_of_constants() -> None:
    text = "dtmc const int a = f+1; formula f = 2*b; const int b = 5;"
    assert resolve(parse_model(text + MODULE)).constants == {"a": 11, "b": 5}


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("int", 3, 3),
        ("int", np.int64(3), 3),
        ("double", 3, 3.0),
        ("double", np.float32(0.5), 0.5),
        ("bool", np.bool_(False), False),
        ("bool", True, True),
        ("int", 3.0, None),
        ("int", True, None),
        ("int", "3", 3),
        ("int", "3.0", None),
        ("int", "three", None),
        ("double", "1/4", 0.25),
        ("bool", "1<2", True),
        ("int", 2**63, None),
        ("double", True, None),
        ("double", math.inf, None),
        ("double", math.nan, None),
        ("bool", 1, None),
    ],
)
def test_given_constants_have_the_declared_type(type_: str, value: object, expected: object) -> None:
    syntax = parse_model(f"dtmc\nconst {type_} c;" + MODULE)
    if expected is None:
        with pytest.raises(LanguageError, match="^<model>:2:.*constant 'c' must be") as caught:
            resolve(syntax, {"c": value})  # type: ignore[dict-item]
        assert len(caught.value.faults) == 1
    else:
        result = resolve(syntax, {"c": value}).constants["c"]  # type: ignore[dict-item]
        assert result == expected
        assert isinstance(result, type(expected))


def test_given_constants_unknown_to_the_model() -> None:
    syntax = parse_model("dtmc const int N; const double lambda;" + MODULE)
    with pytest.raises(LanguageError, match="unknown constant 'n' was given.*known are N, lambda"):
        resolve(syntax, {"N": 1, "lambda": 2, "n": 3})
    with pytest.raises(LanguageError, match="did you mean 'lambda'"):
        resolve(syntax, {"N": 1, "lambda": 2, "lamda": 3})
    assert resolve(syntax, {"N": 1, "lambda": 2, "T": 3}, ignore_unknown=True).constants == {
        "N": 1,
        "lambda": 2.0,
    }
    with pytest.raises(LanguageError, match="no constant is left open"):
        resolve(parse_model("dtmc" + MODULE), {"N": 1})


def test_given_constants_with_a_value_in_the_text() -> None:
    with pytest.raises(LanguageError, match="<model>:1:16: constant 'N' has a value here"):
        resolve(parse_model("dtmc const int N = 3;" + MODULE), {"N": 3})


def test_missing_constants_are_named_together() -> None:
    syntax = parse_model("dtmc const int N; const double p; const int M = N;" + MODULE)
    with pytest.raises(LanguageError) as caught:
        resolve(syntax)
    (fault,) = caught.value.faults
    assert fault.message == (
        "constants without a value: 'N' (int), 'p' (double); "
        "give them with constants={'N': VALUE, 'p': VALUE}"
    )
