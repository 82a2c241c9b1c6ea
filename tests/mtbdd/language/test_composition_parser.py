"""Reading system blocks: which operators bind how strongly."""

from __future__ import annotations

import pytest

from mtbdd.language import parse_model, resolve
from mtbdd.language.syntax import (
    ActionRenaming,
    Composition,
    Hiding,
    ModuleReference,
    Parallel,
    SystemBlock,
    SystemReference,
)
from tests.mtbdd.language.strategies import HERE

MODULES = "mdp " + " ".join(f"module {name} [x] true -> true; [y] true -> true; endmodule" for name in "abcd")
A, B, C, D = (ModuleReference(HERE, name) for name in "abcd")


def systems(text: str) -> tuple[SystemBlock, ...]:
    return parse_model(f"{MODULES} {text}").systems


def full(*operands: Composition) -> Parallel:
    return Parallel(HERE, "||", operands)


def interleaved(*operands: Composition) -> Parallel:
    return Parallel(HERE, "|||", operands)


def restricted(left: Composition, right: Composition, *actions: str) -> Parallel:
    return Parallel(HERE, "|[]|", (left, right), actions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("(((a)))", A),
        ("a || b || c", full(A, B, C)),
        ("a ||| b ||| c", interleaved(A, B, C)),
        ("a || (b || c)", full(A, full(B, C))),
        ("a ||| b || c", interleaved(A, full(B, C))),
        ("a || b ||| c || d", interleaved(full(A, B), full(C, D))),
        ("a|[x]|b||c", full(restricted(A, B, "x"), C)),
        ("a || b |[x,y]| c", full(A, restricted(B, C, "x", "y"))),
        ("a ||| b |[x]| c ||| d", interleaved(A, restricted(B, C, "x"), D)),
        ("(a |[x]| b) |[y]| c", restricted(restricted(A, B, "x"), C, "y")),
        ("a/{x}", Hiding(HERE, A, ("x",))),
        ("a{x<-y, y<-z}", ActionRenaming(HERE, A, (("x", "y"), ("y", "z")))),
        ("a || b / {x,y}", full(A, Hiding(HERE, B, ("x", "y")))),
        ("(a || b) / {x}", Hiding(HERE, full(A, B), ("x",))),
        (
            "a {x<-z} / {z} {y<-x}",
            ActionRenaming(HERE, Hiding(HERE, ActionRenaming(HERE, A, (("x", "z"),)), ("z",)), (("y", "x"),)),
        ),
        ('"s" || a', full(SystemReference(HERE, "s"), A)),
        ('"s" / {x}', Hiding(HERE, SystemReference(HERE, "s"), ("x",))),
        ('"s"', SystemReference(HERE, "s")),
    ],
)
def test_operators(text: str, expected: Composition) -> None:
    assert systems(f"system {text} endsystem") == (SystemBlock(None, expected, HERE),)
    assert systems(f'system "name" {text} endsystem') == (SystemBlock("name", expected, HERE),)


def test_blocks_stand_anywhere() -> None:
    text = 'system "s" a endsystem mdp module a endmodule system "s" endsystem'
    first, second = parse_model(text).systems
    assert (first.name, second.name) == ("s", None)
    assert resolve(parse_model(text)).system == A


def test_positions() -> None:
    (block,) = parse_model("mdp module a endmodule\nsystem\n a ||\n  b endsystem").systems
    assert isinstance(block.composition, Parallel)
    places = [
        (p.position.line, p.position.column) for p in (block, block.composition, *block.composition.operands)
    ]
    assert places == [(2, 1), (3, 2), (3, 2), (4, 3)]
