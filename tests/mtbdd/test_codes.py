"""Sets from lists of codes, and assignments tabulated that way, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.build.build import build_model
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.diagrams.encoding import Encoding, spell, union_of_codes
from mtbdd.diagrams.manager import Manager
from mtbdd.language import parse_model, resolve
from tests.builders.diagram_packages import DIAGRAM_PACKAGES


def members(manager, names, node):
    """All codes in a set, by evaluation."""
    found = []
    for code in range(1 << len(names)):
        bits = {n: bool(code >> (len(names) - 1 - i) & 1) for i, n in enumerate(names)}
        value = manager.bdd.let(bits, node) if names else node
        if value == manager.true:
            found.append(code)
    return found


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("size", [0, 1, 3, 20, 64])
def test_union_of_codes_holds_exactly_the_codes(package, size, rng):
    manager = Manager(3, package)
    names = sorted([*manager.rows, *manager.columns], key=manager.bdd.level_of_var)
    codes = rng.integers(0, 64, size) if size < 64 else np.arange(64)
    node = union_of_codes(manager, names, codes)
    assert members(manager, names, node) == sorted(set(codes.tolist()))
    if size == 64:
        assert node == manager.true


def test_union_over_no_bits():
    manager = Manager(1)
    assert union_of_codes(manager, [], np.zeros(1, dtype=np.int64)) == manager.true
    assert union_of_codes(manager, [], np.zeros(0, dtype=np.int64)) == manager.false


def test_spell_interleaves():
    a, b = np.array([0, 1, 2, 3]), np.array([3, 2, 1, 0])
    codes = spell([(a, ["a1", "a0"]), (b, ["b1", "b0"])], ["a1", "b1", "a0", "b0"])
    assert codes.tolist() == [0b0101, 0b0110, 0b1001, 0b1010]


MODEL = """
dtmc
module m
  x : [1..5] init 1;
  y : [0..6];
  b : bool;
  [] x<5 -> (x'=x+1) & (y'=mod(x*y+2, 7)) & (b'=!b & x>y);
  [] x=5 -> (x'=min(y,4)+1) & (y'=max(0,y-2)) & (b'=x=y);
endmodule
"""


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_assignments_are_the_same_relation_either_way(package, monkeypatch):
    source = resolve(parse_model(MODEL))
    encoding = Encoding(source.variables, package)
    results = []
    for few in (-1, 62):  # always tabulated; always value by value
        monkeypatch.setattr("mtbdd.build.expressions._FEW_BITS", few)
        translator = ExpressionTranslator(encoding)
        results.append(
            [
                translator.assignment(encoding.by_name[a.variable], a.expression)
                for command in source.modules[0].commands
                for a in command.updates[0].assignments
            ]
        )
    assert len(results[0]) == 6
    assert results[0] == results[1]


def test_strays_are_found_either_way(monkeypatch):
    source = resolve(parse_model(MODEL))
    encoding = Encoding(source.variables)
    (command, _) = source.modules[0].commands
    for few in (-1, 62):
        monkeypatch.setattr("mtbdd.build.expressions._FEW_BITS", few)
        _, strays = ExpressionTranslator(encoding).assignment(
            encoding.by_name["x"], command.updates[0].assignments[0].expression
        )
        assert members(encoding.manager, encoding.row_names(encoding.by_name["x"]), strays) == [4]


def test_wide_variables_build_without_a_set_a_value(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a set a value was made")

    text = "ctmc module m x:[0..60000]; [] x<60000 -> 2:(x'=x+1); [] x>0 -> 3:(x'=x-1); endmodule"
    monkeypatch.setattr("mtbdd.diagrams.encoding.Encoding.column_value", refuse)
    model = build_model(resolve(parse_model(text)))
    assert (model.n_states, model.n_transitions) == (60001, 120000)
