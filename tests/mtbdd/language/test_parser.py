"""Reading whole models."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from mtbdd.language import LanguageError, SourceError, load_model, parse_expression, parse_model
from mtbdd.language.errors import SyntaxFaultError
from mtbdd.language.syntax import (
    Assignment,
    Constant,
    Formula,
    Label,
    ModelType,
    RewardItem,
    RewardStructure,
    Type,
    Update,
    Variable,
)
from tests.builders.language_texts import WHOLE
from tests.mtbdd.language.strategies import HERE

SMALL = "module m x : [0..1]; endmodule"


def test_parser_whole_model() -> None:
    model = parse_model(WHOLE, "whole.prism")
    e = parse_expression
    assert model.file == "whole.prism"
    assert model.type is ModelType.CTMC
    assert model.constants == (
        Constant("N", Type.INT, e("2*M"), HERE),
        Constant("rate_up", Type.DOUBLE, e("0.15"), HERE),
        Constant("fast", Type.BOOL, None, HERE),
        Constant("M", Type.INT, None, HERE),
        Constant("old", Type.DOUBLE, e("3"), HERE),
        Constant("p", Type.DOUBLE, e("0.5"), HERE),
    )
    assert model.formulas == (Formula("busy", e("x > 0 & !done"), HERE),)
    assert model.labels == (Label("full", e("x = N"), HERE),)
    assert model.variables == (
        Variable("g", e("1"), e("3"), e("2"), HERE),
        Variable("h", None, None, None, HERE),
    )
    (module,) = model.modules
    assert module.name == "queue"
    assert module.variables == (
        Variable("x", e("0"), e("N"), e("1"), HERE),
        Variable("done", None, None, e("false"), HERE),
    )
    assert [c.action for c in module.commands] == [None, "go", None, "stay", None]
    assert module.commands[0].updates == (Update(e("rate_up"), (Assignment("x", e("x+1"), HERE),), HERE),)
    assert module.commands[1].guard == e("busy")
    assert module.commands[1].updates == (
        Update(e("0.5"), (Assignment("x", e("x-1"), HERE), Assignment("done", e("!done"), HERE)), HERE),
        Update(e("x/2"), (), HERE),
    )
    assert module.commands[2].updates == (Update(None, (), HERE),)
    assert module.commands[3].updates == (Update(None, (Assignment("x", e("x"), HERE),), HERE),)
    assert module.commands[4].updates[0].weight == e("x>1 ? 2 : 3")
    assert model.rewards == (
        RewardStructure(None, (RewardItem(False, None, e("busy"), e("2*x"), HERE),), HERE),
        RewardStructure(
            "moves",
            (
                RewardItem(True, "go", e("true"), e("1"), HERE),
                RewardItem(True, None, e("x=2"), e("0.5"), HERE),
            ),
            HERE,
        ),
    )
    assert model.initial is None


def test_parser_positions() -> None:
    model = parse_model(WHOLE, "f")
    (module,) = model.modules
    places = [
        model.constants[1].position,
        model.labels[0].position,
        module.position,
        module.variables[1].position,
        module.commands[1].position,
        module.commands[1].updates[1].position,
        module.commands[1].updates[0].assignments[1].position,
        model.rewards[1].items[0].position,
    ]
    assert [str(p) for p in places] == [
        "f:5:14",
        "f:11:7",
        "f:15:1",
        "f:17:3",
        "f:20:3",
        "f:20:49",
        "f:20:34",
        "f:30:3",
    ]


@pytest.mark.parametrize(
    ("word", "type_"),
    [
        ("dtmc", ModelType.DTMC),
        ("probabilistic", ModelType.DTMC),
        ("ctmc", ModelType.CTMC),
        ("stochastic", ModelType.CTMC),
        ("mdp", ModelType.MDP),
        ("nondeterministic", ModelType.MDP),
        ("", ModelType.MDP),
    ],
)
def test_parser_model_types(word: str, type_: ModelType) -> None:
    assert parse_model(f"{word} {SMALL}").type is type_
    assert parse_model(f"{SMALL} {word}").type is type_


def test_parser_initial_states() -> None:
    model = parse_model(f"dtmc {SMALL} init x=0 | x=1 endinit")
    assert model.initial == parse_expression("x=0|x=1")


def test_parser_ranges_beside_numbers() -> None:
    (module,) = parse_model("dtmc module m x:[0..5]; y : [-1 .. 2*3]init 0; endmodule").modules
    assert module.variables[0].high == parse_expression("5")
    assert module.variables[1].low == parse_expression("-1")


def test_parser_leaves_the_collector_as_it_was() -> None:
    assert gc.isenabled()
    parse_model(f"dtmc {SMALL}")
    with pytest.raises(LanguageError):
        parse_model("dtmc module")
    assert gc.isenabled()


# ------------------------------------------------------------------ files


def test_load_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(b"\xef\xbb\xbfdtmc\r\n" + SMALL.encode() + b" // \xc3\xa4\r\n")
    model = load_model(path)
    assert model.file == str(path)
    assert str(model.modules[0].position) == f"{path}:2:1"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a model file, got an empty file"),
        (b" \n\t\n", "expected a model file, got an empty file"),
        (b"dtmc\0module", "got a binary file (byte 0 at offset 4)"),
        (b"// nothing but this\n", "expected a model, got the end of the text"),
    ],
)
def test_load_refuses_what_is_no_text(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(data)
    with pytest.raises(LanguageError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}:1:1: ")
    assert message in str(caught.value)


def test_f6_names_in_quotes_may_have_blanks_around_them() -> None:
    text = 'mdp module m x:[0..1]; endmodule label " out " = x=1; system " s " m endsystem '
    model = parse_model(text + 'rewards "\tcost" true : 1; endrewards')
    assert [label.name for label in model.labels] == ["out"]
    assert [reward.name for reward in model.rewards] == ["cost"]
    assert [system.name for system in model.systems] == ["s"]
    assert parse_expression('" out " & "out"') == parse_expression('"out"   & "out"')
    for empty in ('""', '"  "'):
        with pytest.raises(SyntaxFaultError, match="expected a label's name"):
            parse_expression(empty)


@pytest.mark.parametrize("comment", [b"// caf\xe9", b"// \xff\xfe\xed\xa0\x80 \xc3", b"//\x80"])
def test_f5_comments_may_hold_any_bytes(tmp_path: Path, comment: bytes) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(comment + b"\ndtmc\n" + SMALL.encode() + comment)
    model = load_model(path)
    assert str(model.modules[0].position) == f"{path}:3:1"


@pytest.mark.parametrize(
    ("text", "place", "byte"),
    [
        (b"dtmc \xff", "1:6", "0xff"),
        (b'// caf\xe9\ndtmc\n  label "caf\xe9" = true;', "3:13", "0xe9"),
        (
            "// \N{GREEK SMALL LETTER PI}\n/* \N{GREEK SMALL LETTER PI} ".encode() + b"\xa0 = 1;",
            "2:6",
            "0xa0",
        ),
    ],
)
def test_f5_other_bytes_that_are_no_utf8_are_told_with_their_place(
    tmp_path: Path, text: bytes, place: str, byte: str
) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(text)
    with pytest.raises(SyntaxFaultError) as caught:
        load_model(path)
    told = f"expected a text in UTF-8, got the byte {byte}; write it in UTF-8"
    assert str(caught.value) == f"{path}:{place}: {told}"


def test_load_refuses_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        load_model(tmp_path / "missing.prism")
    with pytest.raises(SourceError, match="got a directory"):
        load_model(tmp_path)
    with pytest.raises(SourceError, match="cannot be read"):
        load_model("a\0b")
