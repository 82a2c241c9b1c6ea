"""Values of variables packed bit by bit: the examples of the format, classes, options, signs, faults."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, InterchangeError, StateVariable
from hybrid.models.interchange.umb import read_umb
from hybrid.models.interchange.umb.values import layout_of
from tests.hybrid.models.interchange.umb_helpers import archive, chain_members, index_of, put

DATA = "valuations/states/valuations.bin"
CLASSES = "valuations/states/valuation-to-class.bin"


def read(folder: Path, classes: Any, data: bytes, n_states: int = 3, **members: bytes) -> ExplicitModel:
    """The model of `n_states` states that have these valuations."""
    index = index_of(**{"#states": n_states, "#choices": n_states, "#branches": n_states})
    index["transition-system"]["#initial-states"] = 0
    index["valuations"] = {
        "states": {"unique": False, "classes": [{"variables": fields} for fields in classes]}
    }
    contents = {"branch-to-target.bin": bytes(8 * n_states), DATA: data} | members
    return read_umb(put(folder, archive(index, contents)))


def field(name: str, kind: str, size: int | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": kind} | ({} if size is None else {"size": size})} | more


FIRST = [
    field("v0", "bool", 2),
    field("v1", "uint", 6, **{"is-optional": True}),
    {"padding": 5},
    field("v2", "string", 64),
    field("v3", "bool", 3),
    {"padding": 7},
]


def test_first_example_of_the_format(tmp_path: Path) -> None:
    """Strings are no values here; an option is, if every state has a value.

    The figure of the format has the bit of the option behind the value; its text, Storm and umbi in front.
    """
    row = (1 | 1 << 2 | 27 << 3 | 1 << 14 | 1 << 78).to_bytes(11, "little")
    found = read(tmp_path, [FIRST], row, n_states=1)
    assert found.variables == (
        StateVariable("v0", 0, 1, is_bool=True),
        StateVariable("v1", 27, 27),
        StateVariable("v3", 0, 1, is_bool=True),
    )
    assert {name: values.tolist() for name, values in found.valuations.items()} == {
        "v0": [True], "v1": [27], "v3": [True],
    }  # fmt: skip
    without = bytes([row[0] & 0b11111011]) + row[1:]
    assert [v.name for v in read(tmp_path, [FIRST], row + without, n_states=2).variables] == ["v0", "v3"]


def test_second_example_of_the_format(tmp_path: Path) -> None:
    fields = [field("sv0", "uint", 8, offset=-128), field("sv1", "int", 16)]
    found = read(tmp_path, [fields], bytes([0b10111000, 0b11111111, 0b10111101]), n_states=1)
    assert found.valuations["sv0"].tolist() == [56]
    assert found.valuations["sv1"].tolist() == [-16897]
    assert found.variables == (StateVariable("sv0", 56, 56), StateVariable("sv1", -16897, -16897))


def test_states_of_different_classes(tmp_path: Path) -> None:
    """Only variables that all states have are kept; a class that no state has does not count."""
    classes = [
        [field("x", "uint", 4), field("y", "uint", 12)],
        [field("z", "uint", 8)],
        [field("y", "int", 8, lower=-7, upper=9), field("x", "uint", 16)],
    ]
    data = bytes([0x15, 0x00]) + bytes([0xFF, 0x2A, 0x00]) + bytes([0x27, 0x01])
    members = {CLASSES: np.array([0, 2, 0], dtype="<u4").tobytes()}
    found = read(tmp_path, classes, data, **members)
    assert found.valuations["x"].tolist() == [5, 42, 7]
    assert found.valuations["y"].tolist() == [1, -1, 0x12]
    # Of y, one class declares bounds and the other none.
    assert found.variables == (StateVariable("x", 5, 42), StateVariable("y", -1, 18))
    members = {CLASSES: np.array([0, 1, 0], dtype="<u4").tobytes()}
    assert read(tmp_path, classes, bytes(5), **members).variables == ()


def test_bounds_are_kept_as_declared(tmp_path: Path) -> None:
    fields = [field("a", "uint", 4, lower=0, upper=12), field("b", "int", 4, lower=-8)]
    found = read(tmp_path, [fields], bytes([0xF3, 0x25, 0x84]))
    assert found.variables == (StateVariable("a", 0, 12), StateVariable("b", -8, 2))
    assert found.valuations["b"].tolist() == [-1, 2, -8]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[str, int]]]:
    """Fields of any size at any bit, and what they are."""
    sizes = draw(
        st.lists(
            st.tuples(st.sampled_from(["uint", "int", "bool"]), st.integers(1, 64)), min_size=1, max_size=6
        )
    )
    fields, total = [], 0
    for number, (kind, size) in enumerate(sizes):
        if draw(st.booleans()):
            padding = draw(st.integers(1, 20))
            fields.append({"padding": padding})
            total += padding
        fields.append(field(f"x{number}", kind, size))
        total += size
    if total % 8:
        fields.append({"padding": -total % 8})
    return fields, sizes


@given(layouts(), st.integers(0, 2**32))
def test_fields_at_any_bit(
    tmp_path_factory: pytest.TempPathFactory,
    layout: tuple[list[dict[str, Any]], list[tuple[str, int]]],
    seed: int,
) -> None:
    """Against integers of any length, as the format describes the packing."""
    fields, _ = layout
    n_bytes = sum(f["padding"] if "padding" in f else f["type"]["size"] for f in fields) // 8
    rows = [random.Random(seed + k).getrandbits(8 * n_bytes) for k in range(5)]
    start = 0
    expected: dict[str, list[int | bool]] = {}
    for each in fields:
        size = each["padding"] if "padding" in each else each["type"]["size"]
        if "name" in each:
            kind = each["type"]["type"]
            if kind == "uint" and size == 64:
                rows = [row & ~(1 << (start + 63)) for row in rows]
            bits = [row >> start & ((1 << size) - 1) for row in rows]
            if kind == "int":
                bits = [value - (1 << size) if value >> (size - 1) else value for value in bits]
            expected[each["name"]] = [bool(value) for value in bits] if kind == "bool" else list(bits)
        start += size
    data = b"".join(row.to_bytes(n_bytes, "little") for row in rows)
    found = read(tmp_path_factory.getbasetemp(), [fields], data, n_states=5)
    assert {name: values.tolist() for name, values in found.valuations.items()} == expected


def test_sizes_that_are_written() -> None:
    def of(low: int, high: int) -> tuple[str, int]:
        return layout_of([StateVariable("x", low, high)])[0]

    assert [of(0, 0), of(0, 1), of(3, 4), of(0, 7), of(8, 8)] == [
        ("uint", 1), ("uint", 1), ("uint", 3), ("uint", 3), ("uint", 4),
    ]  # fmt: skip
    assert [of(-1, 0), of(-2, 1), of(-1, 2), of(-3, -3), of(-4, 3), of(-4, 4)] == [
        ("int", 1), ("int", 2), ("int", 3), ("int", 3), ("int", 3), ("int", 4),
    ]  # fmt: skip
    assert of(-(2**63), 2**63 - 1) == ("int", 64)
    assert of(0, 2**63 - 1) == ("uint", 63)


@pytest.mark.parametrize(
    ("fields", "data", "place"),
    [
        ([field("x", "uint", 7)], bytes(3), "expected sizes that add up to a multiple of 8 bits, got 7"),
        ([field("x", "uint", 8), field("x", "uint", 8)], bytes(6), "expected a name that no other"),
        ([field("", "uint", 8)], bytes(3), "expected a name that"),
        ([{"type": {"type": "uint", "size": 8}}], bytes(3), "expected an entry 'name'"),
        ([field("x", "uint", 72)], bytes(27), "larger integers are not read"),
        ([field("x", "uint", 0)], bytes(3), "size: expected an integer from 1"),
        ([field("x", "int-interval", 8)], bytes(3), "expected no interval"),
        ([field("x", "complex", 8)], bytes(3), "type: expected one of bool, double"),
        ([{"padding": 2**60}], bytes(3), "padding: expected an integer"),
        ([field("x", "uint", 8)], bytes(4), f"{DATA}: expected 3 bytes"),
        ([field("x", "uint", 8)], bytes(2), f"{DATA}: expected 3 bytes"),
        ([field("x", "uint", 8, upper=4)], bytes([1, 5, 9]), f"{DATA}[1]: expected values within"),
        ([field("x", "int", 8, lower=-1)], bytes([1, 5, 254]), f"{DATA}[2]: expected values within"),
        ([field("x", "uint", 64)], b"\xff" * 24, f"{DATA}[0]: expected a number below 2^63"),
        ([field("x", "uint", 63, offset=2**62), {"padding": 1}], b"\xff" * 24, f"{DATA}[0]: expected a"),
        ([field("x", "int", 64, offset=-1)], bytes(15) + b"\x80" + bytes(8), f"{DATA}[1]: expected a"),
        (3, bytes(3), "variables: expected an array"),
    ],
)  # fmt: skip
def test_valuations_that_are_wrong(tmp_path: Path, fields: Any, data: bytes, place: str) -> None:
    with pytest.raises(InterchangeError) as caught:
        read(tmp_path, [fields], data)
    assert str(caught.value).startswith(str(tmp_path / "m.umb"))
    assert place in str(caught.value)


def test_classes_that_are_wrong(tmp_path: Path) -> None:
    fields = [field("x", "uint", 8)]
    with pytest.raises(InterchangeError, match="classes: expected at least one class"):
        read(tmp_path, [], bytes(3))
    members = {CLASSES: np.array([0, 1, 0], dtype="<u4").tobytes()}
    with pytest.raises(InterchangeError, match=r"valuation-to-class.bin\[1\]: expected a number from 0 to 0"):
        read(tmp_path, [fields], bytes(3), **members)
    with pytest.raises(InterchangeError, match=r"valuations.bin\[4\]: expected 4 bytes, got 5"):
        read(tmp_path, [fields, [field("x", "uint", 16)]], bytes(5), **members)
    index = index_of() | {"valuations": {"states": {"unique": True, "classes": [{"variables": fields}]}}}
    with pytest.raises(InterchangeError, match="valuations.bin: expected the valuations"):
        read_umb(put(tmp_path, archive(index, chain_members())))
