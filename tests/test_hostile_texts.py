"""Hostile texts are answered, or refused with a message, within bounds on time and memory."""

from __future__ import annotations

import re
import resource
import signal
from collections.abc import Iterator

import pytest

from hybrid.properties import parse_properties, resolve_properties
from mtbdd.base.errors import on_command_line
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.language import LanguageError, load_model, parse_model, resolve
from mtbdd.language.limits import Limits, limited
from tests.hostile_texts import ANSWERED, REFUSED, doubling, model

# Far more than any of them takes (see docs/limits.md), far less than what they ask for.
SECONDS = 300
BYTES = 3 << 30
_MOVES = "[] s=0 -> (s'=1); [] s=1 -> (s'=0); [] s=1 -> true;"


@pytest.fixture(autouse=True)
def bounds() -> Iterator[None]:
    """End a test that takes too long, and one that takes too much memory."""

    def stop(number: int, frame: object) -> None:
        raise AssertionError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert 1024 * grown < BYTES


def build(text: str) -> SymbolicModel:
    return build_model(resolve(parse_model(text)))


@pytest.mark.parametrize("name", ANSWERED)
def test_r3_texts_that_are_smaller_than_they_look_are_answered(name: str) -> None:
    text, states = ANSWERED[name]
    assert build(text).n_states == states


COSTLY = {
    "a million values, told apart in many ways": Limits(table_steps=1 << 24),
    "a sum of 5,000 over a million values": Limits(table_steps=1 << 22),
    "copies of a large expression": Limits(nodes=200_000),
    "5,000 assignments of a million values": Limits(table_steps=1 << 22),
}
"""Texts that take seconds to reach a limit, and one that they reach sooner."""


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        *((name, None) for name in REFUSED if name not in COSTLY),
        *COSTLY.items(),
        *(pytest.param(name, None, marks=pytest.mark.nightly) for name in COSTLY),
    ],
)
def test_texts_that_ask_for_too_much_are_refused(name: str, limits: Limits | None) -> None:
    text, message = REFUSED[name]
    with limited(limits), pytest.raises(LanguageError) as caught:
        build(text)
    told = str(caught.value)
    assert message.replace(str(Limits().nodes), str((limits or Limits()).nodes)) in told
    assert told.startswith("<model>:")
    assert len(told) < 500_000


def test_r3_properties_that_double_are_answered() -> None:
    built = build(model())
    text = (
        doubling("@|@", "s=0", "label") + 'P=? [ F "f60" & !"f59" ];\n' + doubling("@-@").replace("f", "g", 0)
    )
    resolved = resolve_properties(parse_properties(text + "P=? [ F f60>=0 ];"), built.source)
    assert len(resolved.properties) == 2


def test_s12_overflow_in_a_guard_is_told_with_its_place() -> None:
    for guard in (
        "s+9223372036854775807 > 0",
        "pow(2,63*s) > 0",
        "s*9223372036854775807+s > 1",
        "-(s*9223372036854775807)-2*s<0",
    ):
        with pytest.raises(
            LanguageError,
            match=r"^<model>:5:4: the guard of a command has no value .* of more "
            r"than 64 bits\), in reachable state \(s=1\)$",
        ):
            build(model(commands=f"[] {guard} -> (s'=1-s); [] s=0 -> (s'=1); [] s=1 -> true;"))


def test_s12_overflow_in_weights_assignments_and_initial_states_is_told() -> None:
    with pytest.raises(LanguageError, match="the weight of an update has no value"):
        build(
            model(commands="[] s=0 -> (s'=1); [] s=1 -> (s*9223372036854775807+s>0?1:2):(s'=0);", kind="ctmc")
        )
    with pytest.raises(LanguageError, match="the value assigned to s does not exist"):
        build(model(commands="[] s=0 -> (s'=1); [] s=1 -> (s'=(s+9223372036854775807>0?1:0));"))
    with pytest.raises(LanguageError, match="expected a value in every state, got none"):
        build("dtmc module m s : [0..1]; [] true -> true; endmodule init s+9223372036854775807>0 endinit")


def test_overflow_that_a_condition_keeps_away_is_no_fault() -> None:
    built = build(model(commands="[] s=0 & s+9223372036854775807 > 0 -> (s'=1); [] s=1 -> true;"))
    assert built.n_states == 2


def test_integers_beside_an_overflow_stay_exact() -> None:
    # 2^53 + 1 is no double; the overflow at x=1 must not round the others.
    text = "x*9223372036854775807 + 9007199254740993 - x*5 = 9007199254740993"
    built = build(model("x : [0..1] init 0;", f"[] x=0 & {text} -> true;"))
    assert (built.n_states, built.deadlocks == built.manager.false) == (1, True)


def test_limits_can_be_raised() -> None:
    text = model("".join(f"a{i}:bool;" for i in range(2001)), "[] true -> true;")
    with pytest.raises(LanguageError, match=r"raise the limit with limits=Limits\(bits=4000\)"):
        build(text)
    with limited(Limits(bits=2001)):
        assert build(text).n_states == 1


def test_f4_texts_that_planners_write_are_read() -> None:
    guard = "&".join(f"x{i}={i}" for i in range(8))
    commands = "\n".join(f"[] {guard} & y={i} -> 0.5:(y'={i + 1})+0.5:(x0'=0)&(x1'=1);" for i in range(2_000))
    text = model("".join(f"x{i} : [0..8];" for i in range(8)) + "y : [0..2000];", commands)
    parsed = parse_model(text)
    assert len(parsed.modules[0].commands) == 2_000
    assert sum(len(m.commands) for m in resolve(parsed).modules) == 2_000
    # A text of 1,400,000 words, numbers and signs takes some seconds and 300 MB.
    assert Limits().tokens >= 20_000_000
    assert Limits().source_bytes >= 10 * Limits().tokens


LIMITED = {
    "source_bytes": model() + "// a comment" * 100,
    "tokens": model(commands=_MOVES),
    "variables": model("a:bool; b:bool; c:bool;", "[] true -> true;"),
    "bits": model("a:[0..7]; b:[0..9];", "[] a+b>3 -> true;"),
    "commands": model(commands=_MOVES),
    "nodes": model() + "module n=m[s=t] endmodule module o=n[t=u] endmodule",
    "values": model("a:[0..9]; b:[0..9];", "[] a=0 -> (a'=mod(b*3,10)); [] a+b>3 -> (b'=a);"),
    "combinations": "mdp " + "".join(
        f"module m{i} s{i}:bool; [a] true -> true; [a] s{i} -> true; endmodule " for i in range(4)
    ),
    "table_steps": model("a:[0..9]; b:[0..9];", "[] a+b>3 -> (a'=mod(b*3,10));"),
    "pair_steps": "ctmc " + "".join(
        f"module m{i} s{i}:[0..3]; [a] true -> {i + 0.5}:(s{i}'=1); [a] s{i}=1 -> {i + 0.7}:true; endmodule "
        for i in range(4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITED)
def test_f4_a_limit_is_told_with_what_to_type(name: str, tmp_path) -> None:
    path = tmp_path / "m.pm"
    path.write_text(LIMITED[name])
    limits, told = Limits().changed(name, 1), []
    while len(told) < 20:
        try:
            with limited(limits), on_command_line():
                build_model(resolve(load_model(path)))
            break
        except LanguageError as error:
            typed = re.search(r"raise the limit with --limit (\w+)=(\d+)$", str(error))
            assert typed is not None and typed[1] == name, error
            told.append(int(typed[2]))
            limits = limits.changed(name, told[-1])
    assert told and told == sorted(told) and len(told) < 20


def test_f4_faults_beyond_the_limit_are_told_with_what_to_type() -> None:
    with (
        limited(Limits(faults=3)),
        on_command_line(),
        pytest.raises(LanguageError, match=r"mend these first, or raise the limit with --limit faults=6$"),
    ):
        build(model(commands="".join(f"[] b{i} -> true;" for i in range(9))))


def test_a_file_is_read_up_to_the_limit_alone(tmp_path) -> None:
    with pytest.raises(LanguageError, match="expected a model file, got a binary file"):
        load_model("/dev/zero")
    path = tmp_path / "long.pm"
    path.write_text(model() + "// a comment" * 100)
    with (
        limited(Limits(source_bytes=500)),
        pytest.raises(LanguageError, match="of at most 500 bytes, got a larger"),
    ):
        load_model(path)
    assert len(load_model(path).modules) == 1


def test_senseless_limits_are_refused() -> None:
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="limit bits: expected an integer of at least 1"):
            Limits(bits=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown limit 'width'"):
        Limits().changed("width", 3)
