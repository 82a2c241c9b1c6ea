"""Records do as frozen dataclasses do."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from mtbdd.base.records import Record


class Place(Record):
    line: int
    name: str = "here"
    seen: list[int] = field(default_factory=list)
    position: int = field(default=0, compare=False, repr=False)
    by_name: int = field(default=0, kw_only=True)


class Longer(Place):
    end: int = 9


class Alone(Record, eq=False):
    values: tuple[float, ...]


class Plain(Record, frozen=False):
    first: int
    second: int = 4


class Checked(Plain, frozen=False):
    shared: ClassVar[int] = 3
    third: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(f"first: expected a natural number, got {self.first}")


@dataclass(frozen=True)
class Generated:
    line: int
    name: str = "here"
    seen: list[int] = field(default_factory=list)
    position: int = field(default=0, compare=False, repr=False)
    by_name: int = field(default=0, kw_only=True)


@pytest.mark.parametrize(
    ("values", "named"),
    [((1,), {}), ((1, "x"), {"position": 3, "by_name": 4}), ((), {"name": "y", "line": 2, "seen": [4]})],
)
def test_they_have_the_values_of_dataclasses(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    record, other = Place(*values, **named), Generated(*values, **named)
    assert vars(record) == vars(other)
    assert repr(record) == repr(other).replace("Generated", "Place")
    assert [part.name for part in fields(record)] == [part.name for part in fields(other)]
    assert vars(replace(record, line=7)) == vars(replace(other, line=7))
    assert Place(1).seen is not Place(1).seen


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        ((1, "x", [], 0, 5), {}),
        ((1,), {"end": 5}),
        ((1,), {"line": 1}),
        ((1,), {"nmae": "x"}),
        ((), {"name": "x"}),
    ],
)
def test_they_refuse_what_dataclasses_refuse(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for kind in (Place, Generated):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_they_have_a_signature() -> None:
    parameters = inspect.signature(Place).parameters
    assert [str(parameters[name]) for name in ("line", "name")] == ["line: 'int'", "name: 'str' = 'here'"]
    assert parameters.keys() == inspect.signature(Generated).parameters.keys()


def test_they_are_frozen() -> None:
    record = Place(1)
    with pytest.raises(FrozenInstanceError):
        record.line = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del record.line
    assert record.line == 1


def test_they_are_equal_where_what_is_compared_is() -> None:
    assert Place(1, position=2) == Place(1, position=3) != Place(2)
    assert Longer(1) == Longer(1, end=9) and Longer(1) != Longer(1, end=8)
    assert Longer(1) != Place(1) and Place(1) != Generated(1)
    assert hash(Alone((1.0,))) != hash(Alone((2.0,))) and Alone((1.0,)) != Alone((1.0,))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(1))
    assert copy.deepcopy(Longer(1, "x")) == pickle.loads(pickle.dumps(Longer(1, "x"))) == Longer(1, "x")
    assert Longer(1).end == 9 and Longer.__match_args__ == (*Place.__match_args__, "end")


def test_fields_without_a_description_are_found_when_they_are_examined() -> None:
    assert Checked(1) == Checked(1, 4, ()) and Checked.__match_args__ == ("first", "second", "third")
    assert [part.name for part in fields(Checked)] == ["first", "second", "third"]
    assert [part.name for part in fields(Plain)] == ["first", "second"]
    assert replace(Checked(1), second=5) == Checked(1, 5)
    assert list(inspect.signature(Checked).parameters) == ["first", "second", "third"]
    with pytest.raises(ValueError, match="mutable default"):

        class Refused(Record):
            seen: list[int] = []


def test_a_class_may_have_records_that_change_and_are_checked() -> None:
    with pytest.raises(ValueError, match="natural number"):
        Checked(-1)
    record = Checked(1)
    record.second = 9
    assert record == Checked(1, 9) and repr(record).endswith("Checked(first=1, second=9, third=())")
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)
