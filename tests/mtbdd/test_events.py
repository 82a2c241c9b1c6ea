"""Events of a model: what they touch, where they may happen, the choices and rates they offer."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.build.events import Event, translate_events
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language import parse_model, resolve
from mtbdd.language.syntax import Binary, Expression, Literal, Position
from mtbdd.offset.expansion import expand
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES

# Five and three values: assignments of the bits beyond them are no states.
TEXT = """ctmc
    global g : [0..2];
    module m x : [0..4]; y : [0..2];
    [] true -> 1:(x'=mod(x+1, 5)); [a] !(x=3) -> 2:(x'=0) + 3:(y'=y); [] x>9 -> 1:true; [a] x<2 -> 0.5:true;
    [] y!=1 -> 1:(g'=2-g)&(y'=0) + y:(x'=4); [c] true -> 1:true; endmodule
    module n z : [0..2]; [c] !(z=1) -> 2:(z'=2-z); [a] true -> 1:true; endmodule"""


def events_of(text: str, package: str) -> tuple[Encoding, list[Event]]:
    source = resolve(parse_model(text))
    encoding = Encoding(source.variables, package)
    return encoding, list(translate_events(source, ExpressionTranslator(encoding)))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_events_come_in_order_and_touch_what_they_assign(package: str) -> None:
    _, events = events_of(TEXT, package)
    assert [e.action for e in events] == [None, None, None, "a", "c"]
    assert [e.touched for e in events] == [("x",), (), ("g", "x", "y"), ("x", "y"), ("z",)]
    assert len(events[1].rates) == 0  # its guard is never true


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_events_stay_among_valid_assignments(package: str) -> None:
    encoding, events = events_of(TEXT, package)
    manager = encoding.manager
    for event in events:
        touched = encoding.bits_of(event.touched)
        rows = event.rates.support & ~encoding.valid
        assert rows == manager.false
        assert event.choices.support & ~encoding.valid == manager.false
        assert event.exits.support & ~encoding.valid == manager.false
        moved = manager.exists([manager.rows[i] for i in touched], event.rates.support)
        names = dict(zip(manager.columns, manager.rows, strict=True))
        back = manager.rename({manager.columns[i]: names[manager.columns[i]] for i in touched}, moved)
        assert back & ~encoding.valid == manager.false


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_events_count_choices_and_add_up_rates(package: str) -> None:
    encoding, events = events_of(TEXT, package)
    index = index_states(encoding.manager, encoding.valid)

    def vector(partition: Partition) -> list[float]:
        return expand(SymbolicMatrix.from_partition(partition), index).tolist()

    g, x, y, z = (a.reshape(-1) for a in np.mgrid[0:3, 0:5, 0:3, 0:3])
    expected = [
        (np.ones_like(x), np.ones(x.size)),
        (np.zeros_like(x), np.zeros(x.size)),
        ((y != 1) * 1, (y != 1) * (1.0 + y)),
        ((x != 3) * 1 + (x < 2), (x != 3) * 5.0 + (x < 2) * 0.5),
        ((z != 1) * 1, (z != 1) * 2.0),
    ]
    for event, (choices, exits) in zip(events, expected, strict=True):
        assert vector(event.choices) == choices.tolist()
        assert vector(event.exits) == exits.tolist()


def test_total_weight_of_many_updates_is_shallow() -> None:
    """The sum is a balanced tree, whatever the number of updates."""
    from mtbdd.build.events import total_weight

    def depth(e: Expression) -> int:
        sums = isinstance(e, Binary) and e.operator == "+"
        return 1 + max(depth(e.left), depth(e.right)) if sums else 0

    def total(e: Expression) -> int:
        assert isinstance(e, Binary)
        if e.operator == "+":
            return total(e.left) + total(e.right)
        assert isinstance(e.left, Literal)
        return int(e.left.value)

    for n in (1, 2, 3, 5, 8, 1000):
        updates = " + ".join(f"{i + 1} * s:true" for i in range(n))
        model = resolve(parse_model(f"ctmc module m s:[1..2]; [] true -> {updates}; endmodule"))
        weight = total_weight(model.modules[0].commands[0])
        assert total(weight) == n * (n + 1) // 2
        assert depth(weight) == (n - 1).bit_length()
        assert isinstance(weight.position, Position)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_guards_without_a_value_are_suspect(package: str) -> None:
    text = """ctmc module m x : [0..3];
        [] mod(5, x) = 1 -> 1:(x'=0); [] x>0 & mod(5, x) = 1 -> 1:(x'=0); [] pow(2, x-2) > 1 -> 1:(x'=1);
        endmodule"""
    encoding, events = events_of(text, package)
    index = index_states(encoding.manager, encoding.valid)
    found = [
        expand(SymbolicMatrix.from_partition(Partition(encoding.manager, {1.0: s.states})), index).tolist()
        for event in events
        for s in event.potential_errors
    ]
    assert found == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert "the guard of a command has no value" in events[0].potential_errors[0].message
