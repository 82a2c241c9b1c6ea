"""Computation tree logic against its definition, on random models of every kind, and paths that show it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.ctl import Witness
from tests.exploring import rounds
from tests.oracles.lasso_words import holds, random_tree, tree_text

Graph = list[set[int]]


def text_of(kind: str, choices: list[list[set[int]]]) -> str:
    """A model with the variable s; a state without choices is a deadlock."""
    lines = [kind, "module m", f"  s : [0..{len(choices) - 1}] init 0;"]
    for state, own in enumerate(choices):
        for number, targets in enumerate(own):
            weight = 1 / len(targets) if kind != "ctmc" else 2.5
            updates = " + ".join(f"{weight!r}:(s'={t})" for t in sorted(targets))
            lines.append(f"  [c{number}] s={state} -> {updates};")
    return "\n".join([*lines, "endmodule"])


def some(graph: Graph, path: tuple[str, set[int], set[int]]) -> set[int]:
    """Where a path begins, by the definition's fixed points, one state at a time."""
    operator, left, right = path
    every = set(range(len(graph)))
    if operator == "X":
        return {s for s in every if graph[s] & right}
    if operator in ("F", "U"):
        safe = every if operator == "F" else left
        found: set[int] = set()
        while True:
            more = right | {s for s in safe if graph[s] & found}
            if more == found:
                return found
            found = more
    # G, W and R: the greatest sets with Z = right & EX Z, right | left & EX Z, right & (left | EX Z).
    found = every
    while True:
        ahead = {s for s in every if graph[s] & found}
        less = {
            "G": right & ahead,
            "W": right | (left & ahead),
            "R": right & (left | ahead),
        }[operator]
        if less == found:
            return found
        found = less


def every_path(graph: Graph, path: tuple[str, set[int], set[int]]) -> set[int]:
    """Where all paths do, by fixed points of their own."""
    operator, left, right = path
    every = set(range(len(graph)))

    def surely(target: set[int]) -> set[int]:
        return {s for s in every if graph[s] <= target}

    step: Callable[[set[int]], set[int]] = {
        "X": lambda z: surely(right),
        "F": lambda z: right | surely(z),
        "U": lambda z: right | (left & surely(z)),
        "G": lambda z: right & surely(z),
        "W": lambda z: right | (left & surely(z)),
        "R": lambda z: right & (left | surely(z)),
    }[operator]
    found: set[int] = set() if operator in "XFU" else every
    while (after := step(found)) != found:
        found = after
    return found


@st.composite
def models(draw: st.DrawFn, kind: str) -> list[list[set[int]]]:
    n = draw(st.integers(3, 7))
    most = 3 if kind == "mdp" else 1
    successors = st.sets(st.integers(0, n - 1), min_size=1, max_size=2)
    return [draw(st.lists(successors, max_size=most)) for _ in range(n)]


@st.composite
def formulas(draw: st.DrawFn, n: int, depth: int = 2) -> tuple[str, Callable[[Graph], set[int]]]:
    """A state formula as text, and its states by definition."""
    kind = "quantified"
    if depth < 2:
        kind = draw(st.sampled_from(["atom", "atom", "not", "and", "quantified"]))
    if depth == 0 or kind == "atom":
        bound = draw(st.integers(0, n - 1))
        sign = draw(st.sampled_from(["<=", "=", ">="]))
        holds = {"<=": int.__le__, "=": int.__eq__, ">=": int.__ge__}[sign]
        return f"(s{sign}{bound})", lambda graph: {s for s in range(len(graph)) if holds(s, bound)}
    one, first = draw(formulas(n, depth - 1))
    if kind == "not":
        return f"!{one}", lambda graph: set(range(len(graph))) - first(graph)
    two, second = draw(formulas(n, depth - 1))
    if kind == "and":
        return f"({one} & {two})", lambda graph: first(graph) & second(graph)
    operator = draw(st.sampled_from("XFGUWR"))
    written = f"{one} {operator} {two}" if operator in "UWR" else f"{operator} {two}"
    if draw(st.booleans()):
        return f"E [ {written} ]", lambda graph: some(graph, (operator, first(graph), second(graph)))
    return f"A [ {written} ]", lambda graph: every_path(graph, (operator, first(graph), second(graph)))


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
@settings(max_examples=80)
@given(data=st.data())
def test_quantified_formulas_hold_where_the_definition_says(kind: str, data: st.DataObject) -> None:
    choices = data.draw(models(kind))
    text, states = data.draw(formulas(len(choices)))
    graph = [set().union(*own) or {s} for s, own in enumerate(choices)]
    model = hybrid.parse(text_of(kind, choices))
    numbers = model.state_table()["s"].tolist()
    answer = hybrid.check(model, text)
    expected = states(graph)
    assert answer.values.tolist() == [s in expected for s in numbers]
    assert answer.value is (0 in expected)
    assert answer.kind == "exact"


def follows(graph: Graph, found: Witness, path: tuple[str, set[int], set[int]]) -> bool:
    """Whether the witness is a path of the graph, and one that satisfies the path formula."""
    operator, left, right = path
    states = [int(state["s"]) for state in found.states]
    steps = list(zip(states, states[1:], strict=False))
    if found.loop is not None:
        steps.append((states[-1], states[found.loop]))
    if states[0] != 0 or not all(b in graph[a] for a, b in steps):
        return False
    if operator == "X":
        return len(states) == 2 and states[1] in right
    if operator in ("U", "F", "W", "R") and found.loop is None:
        safe = set(range(len(graph))) if operator == "F" else right if operator == "R" else left
        goal = right & left if operator == "R" else right
        return states[-1] in goal and all(s in safe for s in states[:-1])
    if operator not in ("G", "W", "R") or found.loop is None:
        return False
    return all(s in (left if operator == "W" else right) for s in states)


@settings(max_examples=60)
@given(data=st.data())
def test_a_witness_is_a_path_that_shows_it(data: st.DataObject) -> None:
    choices = data.draw(models("mdp"))
    n = len(choices)
    graph = [set().union(*own) or {s} for s, own in enumerate(choices)]
    a, b = (data.draw(st.integers(0, n - 1)) for _ in range(2))
    operator = data.draw(st.sampled_from("XFGUWR"))
    written = f"s<={a} {operator} s>={b}" if operator in "UWR" else f"{operator} s>={b}"
    path = operator, set(range(a + 1)), set(range(b, n))
    model = hybrid.parse(text_of("mdp", choices))
    answer = hybrid.check(model, f"E [ {written} ]", witness=True)
    assert (answer.witness is not None) is answer.value
    if answer.witness is not None:
        assert answer.witness.holds and follows(graph, answer.witness, path)
    # The same path shows that all paths are not of the other kind.
    other = hybrid.check(model, f"A [ !({written}) ]", witness=True)
    assert other.value is not answer.value
    if other.witness is not None:
        assert not other.witness.holds and follows(graph, other.witness, path)


def test_states_that_lead_to_what_goes_stay_where_they_have_another_way() -> None:
    # 0 can stay for ever, 1 and then 3 go, because they lead out of the set.
    moves = "[] s=0 -> 0.5:(s'=0) + 0.5:(s'=1); [] s=3 -> (s'=1); [] s=1 -> (s'=2);"
    model = hybrid.parse(f"dtmc module m s:[0..3]; {moves} endmodule init true endinit")
    assert hybrid.check(model, "filter(print, E [ G s!=2 ])").values.tolist() == [True, False, False, False]
    assert hybrid.check(model, "filter(print, A [ F s=2 ])").values.tolist() == [False, True, True, True]


def test_a_witness_is_as_short_as_any() -> None:
    model = hybrid.parse("dtmc module m s:[0..9]; [] s<9 -> 0.5:(s'=s+1) + 0.5:(s'=max(0,s-1)); endmodule")
    found = hybrid.check(model, "E [ F s=9 ]", witness=True).witness
    assert found is not None
    assert [state["s"] for state in found.states] == list(range(10))
    assert found.loop is None
    assert hybrid.check(model, "A [ F s=9 ]").value is False
    assert hybrid.check(model, "P>=1 [ F s=9 ]").value is True


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("E [ F s=1 & G s=0 ]", "expected a state formula"),
        ('A [ F{"r"}<=3 s=1 ]', "take no bounds on rewards"),
        ('E [ G F{"r"}<=3 s=1 ]', "stands on a path operator of its own"),
    ],
)
def test_what_is_no_ctl_is_refused_by_name(formula: str, words: str) -> None:
    model = hybrid.parse(
        'dtmc module m s:[0..1]; [] s=0 -> (s\'=1); endmodule rewards "r" true : 1; endrewards'
    )
    with pytest.raises(hybrid.HybridError, match=words):
        hybrid.check(model, formula)


def test_sets_that_rest_on_estimates_leave_the_truth_an_estimate() -> None:
    model = hybrid.parse("dtmc module m s:[0..2]; [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2); endmodule")
    answer = hybrid.check(model, "E [ F P>0.3 [ F s=1 ] ]", method="jacobi")
    assert answer.value is True
    assert answer.kind == "estimate"


def test_values_of_all_states_and_operators_around(rng: np.random.Generator) -> None:
    model = hybrid.parse("ctmc module m s:[0..3]; [] s<2 -> 3:(s'=s+1); [] s=0 -> 1:(s'=3); endmodule")
    assert hybrid.check(model, "P=? [ F A [ G s=3 ] ]").value == pytest.approx(0.25)
    assert hybrid.check(model, "filter(count, E [ X s=2 ])").value == 2
    assert hybrid.check(model, 'A [ G (s=3 => E [ G "deadlock" ]) ]').value is True


# ------------------------------------------------------------------ path operators in one another

LETTERS = ("s<=1", "s=2")
LONGEST = 6


def lassos(graph: Graph, start: int) -> dict[tuple[int, int], list[list[int]]]:
    """Paths of up to six states that go on where they have been, by length and place."""
    found: dict[tuple[int, int], list[list[int]]] = {}
    waiting = [[start]]
    while waiting:
        path = waiting.pop()
        for state in graph[path[-1]]:
            for place, other in enumerate(path):
                if other == state:
                    found.setdefault((len(path), place), []).append(path)
            if len(path) < LONGEST:
                waiting.append([*path, state])
    return found


def word(path: list[int]) -> list[int]:
    return [(s <= 1) + 2 * (s == 2) for s in path]


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_linear_temporal_logic_of_some_path_and_of_all(kind: str, rng: np.random.Generator) -> None:
    """A short path that satisfies a formula is enough, and a witness is a path that does."""
    shown = 0
    for _ in range(rounds(45)):
        n = int(rng.integers(2, 5))
        choices = [
            [set(rng.integers(0, n, 2).tolist()) for _ in range(rng.integers(0, 3 if kind == "mdp" else 2))]
            for _ in range(n)
        ]
        graph = [set().union(*own) or {s} for s, own in enumerate(choices)]
        tree = random_tree(rng, int(rng.integers(2, 7)), 2, windows=True)
        text = tree_text(tree, LETTERS)
        model = hybrid.parse(text_of(kind, choices))
        some_do = hybrid.check(model, f"E [ {text} ]", witness=True)
        all_do_not = hybrid.check(model, f"A [ !{text} ]", witness=True)
        assert some_do.value is not all_do_not.value and some_do.kind == "exact"
        if any(
            holds(tree, np.array([word(path) for path in own]), place).any()
            for (_, place), own in lassos(graph, 0).items()
        ):
            assert some_do.value is True
        for found in (some_do.witness, all_do_not.witness):
            assert (found is not None) is some_do.value
            if found is None or found.loop is None:
                continue
            states = [int(state["s"]) for state in found.states]
            assert states[0] == 0
            assert all(b in graph[a] for a, b in zip(states, [*states[1:], states[found.loop]], strict=True))
            assert holds(tree, np.array([word(states)]), found.loop)[0]
            shown += 1
    assert shown


TWO_WAYS = """mdp module m s:[0..4];
  [] s=0 -> 0.5:(s'=1)+0.5:(s'=2); [] s=1 -> (s'=0); [] s=2 -> (s'=3); [] s=2 -> true;
  [] s=3 -> (s'=4); [] s=4 -> true;
endmodule"""


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("E [ G F s=1 ]", "11000"),
        ("A [ G F s=4 ]", "00011"),
        ("E [ F G s=1 ]", "00000"),
        ("A [ (G E [ F s=4 ]) => (F s=4) ]", "00011"),
        ("A [ F (s=4 | (X s=1)) ]", "00011"),
        ("E [ (G F s=1) & (G F s=0) & (F G s!=2) ]", "11000"),
        ("E [ F<=2 s=3 ]", "10110"),
        ("A [ F<=1 s=4 ]", "00011"),
        ("E [ F E [ X X s=1 ] ]", "11000"),
        ("P>0 [ F A [ (X s=4) & (X X s=4) ] ]", "00011"),
    ],
)
def test_cases_of_ctl_star_by_hand(formula: str, right: str) -> None:
    answer = hybrid.check(hybrid.parse(TWO_WAYS), f"filter(print, {formula})")
    assert answer.values.tolist() == [letter == "1" for letter in right]


def test_automata_of_files_and_continuous_chains() -> None:
    model = hybrid.parse(
        "ctmc module m s:[0..2]; [] s=0 -> 3:(s'=1) + 1:(s'=2); [] s=1 -> 2:(s'=0); endmodule"
    )
    assert hybrid.check(model, "E [ G F s=1 ]").value is True
    assert hybrid.check(model, "A [ (F G s=2) | (G F s=1) ]").value is True
    with pytest.raises(hybrid.HybridError, match="time"):
        hybrid.check(model, "E [ F<=3 s=1 ]")
