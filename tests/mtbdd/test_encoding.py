"""Variables as bits: widths, ranges, states there and back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mtbdd.diagrams.encoding import Encoding
from mtbdd.language.syntax import Position, ResolvedVariable
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import node_set

HERE = Position("test", 1, 1)

# A bool, an offset range that is no power of two, a single value, one below zero.
VARIABLES = [
    ResolvedVariable("flag", 0, 1, 0, True, None, HERE),
    ResolvedVariable("x", 3, 7, 3, False, "m", HERE),
    ResolvedVariable("only", 5, 5, 5, False, "m", HERE),
    ResolvedVariable("low", -2, 0, 0, False, "m", HERE),
]


@pytest.fixture(params=DIAGRAM_PACKAGES)
def encoding(request: pytest.FixtureRequest) -> Encoding:
    return Encoding(VARIABLES, request.param)


def codes(encoding: Encoding) -> list[int]:
    """Return the codes of all valid assignments."""
    return [(flag << 5) | (x << 2) | low for flag, x, low in product(range(2), range(5), range(3))]


def test_encoding_widths_follow_the_ranges(encoding: Encoding) -> None:
    assert [v.bits for v in encoding.variables] == [(0,), (1, 2, 3), (), (4, 5)]
    assert [v.size for v in encoding.variables] == [2, 5, 1, 3]
    assert encoding.n_bits == 6
    assert encoding.bits_of(["low", "flag"]) == [0, 4, 5]
    for high, width in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (2**20 - 1, 20), (2**20, 21)):
        one = Encoding([ResolvedVariable("v", 0, high, 0, False, None, HERE)])
        assert one.n_bits == width


def test_encoding_valid_holds_inside_every_range(encoding: Encoding) -> None:
    manager = encoding.manager
    assert encoding.valid == node_set(manager, manager.rows, codes(encoding))


def test_encoding_states_and_pick_are_inverse(encoding: Encoding) -> None:
    union = encoding.manager.false
    for flag, x, low in product((False, True), range(3, 8), range(-2, 1)):
        values = {"flag": flag, "x": x, "only": 5, "low": low}
        state = encoding.state({name: int(value) for name, value in values.items()})
        picked = encoding.pick(state)
        assert picked == values
        assert isinstance(picked["flag"], bool) and type(picked["x"]) is int
        union = union | state
    assert union == encoding.valid


def test_encoding_pick_is_a_member(encoding: Encoding) -> None:
    manager = encoding.manager
    for numbers in ([7, 40], codes(encoding)[10:20], codes(encoding)):
        states = node_set(manager, manager.rows, numbers)
        values = encoding.pick(states)
        state = encoding.state({name: int(value) for name, value in values.items()})
        assert state & states == state


def test_encoding_column_value_is_a_cube(encoding: Encoding) -> None:
    manager = encoding.manager
    x = encoding.by_name["x"]
    for value in range(3, 8):
        names = tuple(manager.columns[i] for i in x.bits)
        assert encoding.column_value(x, value) == node_set(manager, names, [value - 3])
    assert encoding.column_value(encoding.by_name["only"], 5) == manager.true


def test_encoding_grid_has_an_axis_a_variable(encoding: Encoding) -> None:
    grid = encoding.grid(["flag", "x", "only", "low"])
    assert [grid[name].shape for name in grid] == [(2, 1, 1, 1), (1, 8, 1, 1), (1, 1, 1, 1), (1, 1, 1, 4)]
    assert grid["flag"].dtype == np.bool_ and grid["flag"].reshape(-1).tolist() == [False, True]
    assert grid["x"].reshape(-1).tolist() == [3, 4, 5, 6, 7, 7, 7, 7]
    assert grid["only"].reshape(-1).tolist() == [5]
    assert grid["low"].reshape(-1).tolist() == [-2, -1, 0, 0]


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_encoding_of_nothing(package: str) -> None:
    empty = Encoding([], package)
    assert empty.n_bits == 0
    assert empty.valid == empty.state({}) == empty.manager.true
    assert empty.pick(empty.manager.true) == {}
