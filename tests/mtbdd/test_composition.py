"""Compositions of modules: who acts together, and whole models against the explicit-state interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbdd.build.events import synchronisations
from mtbdd.language import parse_model, resolve
from mtbdd.language.errors import BuildError
from mtbdd.language.limits import Limits, limited
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.matrices import to_dense
from tests.builders.models import build, build_both
from tests.exploring import each
from tests.oracles.comparing import assert_same_model

# Every command is told from the others by its rate.
MODULES = """ctmc
    module p x : [0..2]; [a] x<2 -> 2:(x'=x+1); [b] x>0 -> 3:(x'=0); [] x=1 -> 5:(x'=2); endmodule
    module q y : [0..2]; [a] y<2 -> 7:(y'=y+1); [c] y=2 -> 11:(y'=0); endmodule
    module r z : bool; [a] !z -> 13:(z'=true); [b] z -> 17:(z'=false); [d] z -> 19:true; endmodule
    rewards "a" [a] true : 1; endrewards
    rewards "b" [b] true : 1; endrewards
    rewards "hidden" [] true : 1; endrewards
    """

# System, and the weights of the commands that act together: per action, a list of lists.
SYSTEMS = [
    ("p || q || r", {None: [[5]], "a": [[2, 7, 13]], "b": [[3, 17]], "c": [[11]], "d": [[19]]}),
    (
        "p ||| q ||| r",
        {None: [[5]], "a": [[2], [7], [13]], "b": [[3], [17]], "c": [[11]], "d": [[19]]},
    ),
    ("(p ||| q) |[a]| r", {None: [[5]], "a": [[2, 13], [7, 13]], "b": [[3], [17]], "c": [[11]], "d": [[19]]}),
    ("(p ||| q) || r", {None: [[5]], "a": [[2, 13], [7, 13]], "b": [[3, 17]], "c": [[11]], "d": [[19]]}),
    ("p ||| q || r", {None: [[5]], "a": [[2], [7, 13]], "b": [[3], [17]], "c": [[11]], "d": [[19]]}),
    ("p || q ||| r", {None: [[5]], "a": [[2, 7], [13]], "b": [[3], [17]], "c": [[11]], "d": [[19]]}),
    # One side lacks c and d: both are blocked.
    ("(p || q) |[c,d]| r", {None: [[5]], "a": [[2, 7], [13]], "b": [[3], [17]]}),
    ("p |[a]| q || r", {None: [[5]], "a": [[2, 7, 13]], "b": [[3, 17]], "c": [[11]], "d": [[19]]}),
    ("(p || q) / {a,c} || r", {None: [[5], [2, 7], [11]], "a": [[13]], "b": [[3, 17]], "d": [[19]]}),
    ("(p || q || r) / {a}", {None: [[5], [2, 7, 13]], "b": [[3, 17]], "c": [[11]], "d": [[19]]}),
    ("p {a<-b, b<-a} || q || r", {None: [[5]], "a": [[3, 7, 13]], "b": [[2, 17]], "c": [[11]], "d": [[19]]}),
    ("p {a<-b} || q || r", {None: [[5]], "a": [[7, 13]], "b": [[2, 17], [3, 17]], "c": [[11]], "d": [[19]]}),
    ("p || q {c<-e} / {a} || r {d<-e}", {None: [[5], [7]], "a": [[2, 13]], "b": [[3, 17]], "e": [[11, 19]]}),
    # A renamed action is not the old one any more.
    (
        "p {a<-e} / {a} || q || r",
        {None: [[5]], "a": [[7, 13]], "b": [[3, 17]], "c": [[11]], "d": [[19]], "e": [[2]]},
    ),
]


def weights(text: str) -> dict[str | None, list[list[float]]]:
    """Return the weights of the commands of every synchronisation."""
    found: dict[str | None, list[list[float]]] = {}
    for s in synchronisations(resolve(parse_model(text))):
        taking = [command.updates[0].weight.value for commands in s.parts for command in commands]  # type: ignore[union-attr]
        found.setdefault(s.action, []).append(taking)
    return found


@pytest.mark.parametrize(("system", "expected"), SYSTEMS, ids=[s for s, _ in SYSTEMS])
def test_systems_say_who_acts_together(system: str, expected: dict[str | None, list[list[float]]]) -> None:
    assert weights(f"{MODULES} system {system} endsystem") == expected


@pytest.mark.parametrize(("system", "package"), each([s for s, _ in SYSTEMS], DIAGRAM_PACKAGES))
def test_systems_equal_the_explicit_model(system: str, package: str) -> None:
    assert_same_model(*build_both(f"{MODULES} system {system} endsystem", package))


def test_without_a_system_all_shared_actions_are_taken_together() -> None:
    assert weights(MODULES) == SYSTEMS[0][1]


def test_references_stand_for_other_systems() -> None:
    text = f'{MODULES} system "left" (p ||| q) {{c<-d}} endsystem system "left" || r endsystem'
    assert weights(text) == weights(f"{MODULES} system (p ||| q) {{c<-d}} || r endsystem")
    # Without an unnamed block the first one counts.
    text = f'{MODULES} system "all" "left" |[b]| r endsystem system "left" p || q endsystem'
    assert weights(text) == weights(f"{MODULES} system (p || q) |[b]| r endsystem")
    assert weights(f'{MODULES} system "all" endsystem system "all" p || q || r endsystem') == weights(MODULES)


def test_interleaving_two_copies_of_a_station() -> None:
    """Two stations share a server: each is served alone, both move by themselves."""
    model = build(
        """dtmc
        module one x : [0..1]; [serve] x=1 -> (x'=0); [] x=0 -> (x'=1); endmodule
        module two = one[x=y] endmodule
        module server n : [0..2]; [serve] n<2 -> (n'=n+1); [] n=2 -> (n'=0); endmodule
        system (one ||| two) |[serve]| server endsystem
        rewards [serve] true : 1; endrewards"""
    )
    states = model.describe(np.arange(model.n_states))
    row = to_dense(model.transitions)[states.index({"x": 1, "y": 1, "n": 0})]
    # The server takes either of the two; nothing else can happen in this state.
    successors = {tuple(states[i].values()): row[i] for i in np.flatnonzero(row)}
    assert successors == {(0, 1, 1): 0.5, (1, 0, 1): 0.5}


def test_decision_processes_are_composed_alike() -> None:
    model = build(
        """mdp
        module left x : [0..1]; [serve] x=1 -> (x'=0); [] x=0 -> (x'=1); endmodule
        module right = left [x=y] endmodule
        module server n : [0..9]; [serve] n<9 -> (n'=n+1); endmodule
        system ((left ||| right) |[serve]| server) / {serve} endsystem"""
    )
    assert model.n_states == 40
    # Below n=9 each side moves or is served; in n=9 only moves are left: 2, 1, 1 and a deadlock's loop.
    assert model.n_choices == 36 * 2 + 2 + 1 + 1 + 1


def test_too_many_ways_are_refused() -> None:
    modules = " ".join(f"module m{i} [a] true -> 1:true; endmodule" for i in range(4))
    text = f"ctmc {modules} system (m0 ||| m1) || (m2 ||| m3) endsystem"
    with (
        limited(Limits(combinations=3)),
        pytest.raises(BuildError, match="lets action 'a' be taken in more than 3 ways"),
    ):
        build(text)
    with limited(Limits(combinations=4)):
        assert build(text).n_states == 1


@st.composite
def systems(draw: st.DrawFn, modules: tuple[str, ...]) -> str:
    """Return a composition of these modules, each exactly once."""
    if len(modules) == 1:
        text = modules[0]
    else:
        cut = draw(st.integers(1, len(modules) - 1))
        operator = draw(st.sampled_from(["||", "|||", "|[a]|", "|[b,c]|"]))
        left, right = draw(systems(modules[:cut])), draw(systems(modules[cut:]))
        text = f"({left}) {operator} ({right})"
    suffix = draw(st.sampled_from(["", "", " / {a}", " / {b,c}", " {a<-b}", " {a<-c,b<-a}"]))
    return f"({text}){suffix}" if suffix else text


@st.composite
def models(draw: st.DrawFn) -> str:
    """Return a model of three modules with random commands and a random composition."""
    kind = draw(st.sampled_from(["ctmc", "dtmc"]))
    modules = []
    for i in range(3):
        commands = []
        for _ in range(draw(st.integers(1, 3))):
            action = draw(st.sampled_from(["", "a", "a", "b", "c"]))
            guard = draw(st.sampled_from([f"x{i}=0", f"x{i}>0", "true", f"x{(i + 1) % 3}=1", f"x{i}!=1"]))
            weight = "1" if kind == "dtmc" else draw(st.sampled_from(["1", "2", "0.5"]))
            update = draw(
                st.sampled_from([f"(x{i}'=1-x{i})", f"(x{i}'=0)", f"(x{i}'=x{(i + 2) % 3})", "true"])
            )
            commands.append(f"[{action}] {guard} -> {weight}:{update};")
        modules.append(f"module m{i} x{i}:[0..1]; {' '.join(commands)} endmodule")
    # A module that has all actions, so that every name in the composition is known.
    modules.append("module m3 [a] true -> 1:true; [b] x0=0 -> 1:true; [c] false -> 1:true; endmodule")
    rewards = " ".join(f'rewards "{a or "none"}" [{a}] true : 1; endrewards' for a in ("", "a", "b", "c"))
    system = draw(systems(("m0", "m1", "m2", "m3")))
    return f"{kind} {' '.join(modules)} {rewards} system {system} endsystem"


@settings(max_examples=30)
@given(models())
def test_random_systems_equal_the_explicit_model(text: str) -> None:
    assert_same_model(*build_both(text))
