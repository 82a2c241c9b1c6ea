"""Dining philosophers who toss coins: someone eats if all of them go on (D. Lehmann, M. O. Rabin, On the
advantages of free choice, POPL 1981, pp. 133-138), with "go on" as a formula."""

from __future__ import annotations

import pytest

import hybrid
from mtbdd.build.model import SymbolicModel
from tests.builders.models import build


def philosophers(n: int) -> str:
    """0 thinks, 1 tosses, 2 and 3 wait for the left and right fork, 4 and 5 have it, 6 eats; `last` moved."""

    def taken(i: int, left: bool) -> str:
        """Whether the fork on a philosopher's side is in the neighbour's hands."""
        j = (i - 1) % n if left else (i + 1) % n
        own = ("5", "6") if left else ("4", "6")  # the neighbour's other side
        return f"(p{j}={own[0]} | p{j}={own[1]})"

    lines = ["mdp", "module table", f"last : [0..{n - 1}];"]
    lines += [f"p{i} : [0..6] init 0;" for i in range(n)]
    for i in range(n):
        left, right, by = taken(i, True), taken(i, False), f"(last'={i})"
        lines += [
            f"[] p{i}=0 -> (p{i}'=1)&{by};",
            f"[] p{i}=1 -> 0.5:(p{i}'=2)&{by} + 0.5:(p{i}'=3)&{by};",
            f"[] p{i}=2 & {left} -> {by};",
            f"[] p{i}=2 & !{left} -> (p{i}'=4)&{by};",
            f"[] p{i}=3 & {right} -> {by};",
            f"[] p{i}=3 & !{right} -> (p{i}'=5)&{by};",
            f"[] p{i}=4 & {right} -> (p{i}'=1)&{by};",
            f"[] p{i}=4 & !{right} -> (p{i}'=6)&{by};",
            f"[] p{i}=5 & {left} -> (p{i}'=1)&{by};",
            f"[] p{i}=5 & !{left} -> (p{i}'=6)&{by};",
            f"[] p{i}=6 -> (p{i}'=0)&{by};",
        ]
    lines += ["endmodule"]
    for name, value in (("eats", "6"), ("tries", "1")):
        sign = "=" if name == "eats" else ">="
        parts = [f"p{i}{sign}{value}" + ("" if name == "eats" else f" & p{i}<6") for i in range(n)]
        lines.append(f'label "{name}" = ' + " | ".join(f"({part})" for part in parts) + ";")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def table() -> SymbolicModel:
    return build(philosophers(3))


GO_ON = " & ".join(f"(G F last={i})" for i in range(3))


@pytest.mark.parametrize(
    ("prop", "value"),
    [
        # Whoever tries or another one eats in the end, if all go on ...
        (f'Pmin=? [ ({GO_ON}) => (G ("tries" => (F "eats"))) ]', 1),
        (f'P>=1 [ ({GO_ON}) => (G F "eats") ]', True),
        # ... and not otherwise; nor does it mean that every single one eats.
        ('Pmin=? [ G ("tries" => (F "eats")) ]', 0),
        (f"Pmin=? [ ({GO_ON}) => (G F p0=6) ]", 0),
        (f"Pmax=? [ ({GO_ON}) & (F (G p0!=6)) ]", 1),
        (f"Pmax=? [ ({GO_ON}) & (G F p0=6) & (G F p1=6) & (G F p2=6) ]", 1),
        ("Pmax=? [ F (p0=6 & p1=6) ]", 0),
    ],
)
def test_someone_eats_if_all_go_on(table: SymbolicModel, prop: str, value: float) -> None:
    answer = hybrid.check(table, prop, backend="cpu", throw=False)
    assert answer.error is None, answer.error
    assert answer.value == value
    if not isinstance(value, bool):
        assert answer.lower == answer.upper == value  # decided on the graph
