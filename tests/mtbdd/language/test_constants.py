"""Constants: given on a command line, given from Python, worked out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mtbdd.language import LanguageError, parse_constants, parse_model, resolve

MODULE = " module m x : [0..1]; endmodule"


def test_parse_constants_reads_all_types() -> None:
    values = parse_constants(" N=4,K = 2.5, flag=true,e=-1e-3 ,z=-7,off=false,dot=.5")
    assert values == {"N": 4, "K": 2.5, "flag": True, "e": -0.001, "z": -7, "off": False, "dot": 0.5}
    assert all(map(isinstance, values.values(), [int, float, bool, float, int, bool, float]))
    assert parse_constants("  ") == {}


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
        ("N=1/2", 1, "got '1/2'"),
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
        ("int", "3", None),
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
