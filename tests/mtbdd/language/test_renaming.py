"""Module renaming."""

from __future__ import annotations

import pytest

from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.language.syntax import Module


def modules(text: str) -> dict[str, Module]:
    return {module.name: module for module in parse_model(text).modules}


def test_renaming_reaches_every_part() -> None:
    written = modules("""
        mdp
        module a
          x : [lo..hi] init lo;
          [go] x < hi & min(x, k) = 1 -> p : (x'=min(x+1, hi)) + 1-p : (x'=y);
        endmodule
        module b = a [x=y, y=x, lo=low, hi=high, go=come, k=l, p=q, min=max, max=min] endmodule
        module c
          y : [low..high] init low;
          [come] y < high & max(y, l) = 1 -> q : (y'=max(y+1, high)) + 1-q : (y'=x);
        endmodule
    """)
    assert written["b"].variables == written["c"].variables
    assert written["b"].commands == written["c"].commands


def test_renaming_expands_formulas_first() -> None:
    written = modules("""
        mdp
        formula free = other | s2 = 0;
        formula other = s3 = 1;
        formula fixed = g = 1;
        module p1  s1 : [0..2]; [] free & fixed -> (s1'=1); endmodule
        module p2 = p1 [s1=s2, s2=s3, s3=s1] endmodule
        module p2x  s2 : [0..2]; [] (s1 = 1 | s3 = 0) & fixed -> (s2'=1); endmodule
        global g : [0..1];
    """)
    assert written["p2"].commands == written["p2x"].commands


def test_renaming_of_a_formula_s_name() -> None:
    written = modules("""
        mdp
        formula f1 = s1 = 0;
        formula f2 = s2 = 1;
        module p1  s1 : [0..2]; [] f1 -> (s1'=1); endmodule
        module p2 = p1 [s1=s2, f1=f2] endmodule
        module p2x  s2 : [0..2]; [] f2 -> (s2'=1); endmodule
    """)
    assert written["p2"].commands == written["p2x"].commands


def test_renaming_is_transitive_in_any_order() -> None:
    text = """
        mdp
        module c = b [y=z, go=leave] endmodule
        module b = a [x=y, stay=go] endmodule
        module a  x : [0..2]; [stay] x=0 -> (x'=1); endmodule
    """
    assert [module.name for module in parse_model(text).modules] == ["c", "b", "a"]
    copy = modules(text)["c"]
    assert [v.name for v in copy.variables] == ["z"]
    assert copy.commands[0].action == "leave"
    assert copy.commands[0].updates[0].assignments[0].variable == "z"
    assert [v.name for v in resolve(parse_model(text)).variables] == ["z", "y", "x"]


def test_renaming_keeps_positions_of_the_copied_text() -> None:
    text = "mdp\nmodule a\n x : [0..2];\n [] x=0 -> (x'=1);\nendmodule\nmodule b = a [x=y] endmodule"
    copy = modules(text)["b"]
    assert str(copy.position) == "<model>:6:1"
    assert str(copy.variables[0].position) == "<model>:6:1"
    assert str(copy.commands[0].position) == "<model>:4:2"


def test_renaming_faults_are_collected() -> None:
    with pytest.raises(LanguageError) as caught:
        parse_model("""mdp
            module a x : [0..2]; v : bool; [] x=0 -> (x'=1); endmodule
            module b = a [x=y] endmodule
            module c = a [v=w] endmodule
        """)
    assert [f.position.line for f in caught.value.faults] == [3, 4]
    assert "'v' would be declared twice; add new names, like v=v_b" in caught.value.faults[0].message
