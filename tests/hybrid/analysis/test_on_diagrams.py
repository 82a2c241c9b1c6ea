"""The symbolic engine, whose vectors are diagrams, against the reference backend and exact values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.analysis.on_diagrams import _counter
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from hybrid.solvers.diagram_iteration import _power, rounded_values
from hybrid.solvers.diagram_system import DiagramChoice, DiagramSystem
from mtbdd.diagrams.node_store import DOWN, UP, Diagram, NodeStore
from tests.attack.cases import draw_case
from tests.attack.symbolic import run_symbolic

CHAIN = """dtmc module m s:[0..7] init 0;
  [] s<6 -> 0.3:(s'=s+1) + 0.5:(s'=max(s-1,0)) + 0.2:(s'=7); [] s>=6 -> true;
endmodule rewards "r" s<6 : 1.5; [] true : 0.1; endrewards"""
TREE = """dtmc module m s:[0..15] init 1;
  [] s<8 -> 0.5:(s'=2*s) + 0.5:(s'=2*s+1); [] s>=8 -> true;
endmodule rewards "r" s<8 : 3; endrewards"""
QUEUE = """ctmc module q n:[0..5] init 0; [in] n<5 -> 2.5:(n'=n+1); [out] n>0 -> 3.7:(n'=n-1); endmodule
  rewards "r" true : n; [out] true : 2; endrewards"""
CHOICES = """mdp module m s:[0..5] init 0; d:bool init false;
  [a] s<4 -> 0.4:(s'=s+1) + 0.6:(s'=5); [b] s<4 -> 0.7:(s'=s+1)&(d'=!d) + 0.3:(s'=0); [c] s=2&d -> (s'=4);
  [] s>=4 -> true;
endmodule rewards "r" s<4 : 1; [b] true : 0.25; endrewards"""

QUESTIONS = [
    (CHAIN, "P=? [ F s=6 ]"),
    (CHAIN, "P=? [ s<5 U s=6 ]"),
    (CHAIN, "P=? [ G s<7 ]"),
    (CHAIN, "P=? [ !(F s=6) ]"),
    (CHAIN, "P=? [ X s=1 ]"),
    (CHAIN, "P=? [ F<=10 s=6 ]"),
    (CHAIN, "P=? [ s<5 U[3,9] s=5 ]"),
    (CHAIN, "P=? [ F>=3 s=6 ]"),
    (CHAIN, 'R{"r"}=? [ F s>=6 ]'),
    (CHAIN, 'R{"r"}=? [ F s=6 ]'),
    (CHAIN, 'R{"r"}=? [ C<=7 ]'),
    (CHAIN, "T=? [ F s>=6 ]"),
    (CHAIN, "filter(max, P=? [ F s=6 ], s<5)"),
    (CHAIN, "P>0.004 [ F s=6 ]"),
    (CHAIN, "P=? [ s=3 ]"),
    (QUEUE, "P=? [ n<4 U n=0 ]"),
    (QUEUE, 'R{"r"}=? [ F n=5 ]'),
    (QUEUE, "T=? [ F n=5 ]"),
    (CHOICES, "Pmax=? [ F s=4 ]"),
    (CHOICES, "Pmin=? [ F s=4 ]"),
    (CHOICES, "Pmax=? [ F<=5 s=4 ]"),
    (CHOICES, "Pmin=? [ F<=5 s=4 ]"),
    (CHOICES, 'R{"r"}min=? [ F s>=4 ]'),
    (CHOICES, 'R{"r"}max=? [ C<=4 ]'),
    (CHOICES, 'R{"r"}min=? [ C<=4 ]'),
]


@pytest.mark.parametrize(("text", "question"), QUESTIONS)
def test_bounds_meet_those_of_the_reference(text: str, question: str) -> None:
    model = hybrid.parse(text)
    wanted = hybrid.check(model, question, backend="reference")
    found = hybrid.check(model, question, engine="symbolic")
    if isinstance(wanted.value, bool):
        assert found.value == wanted.value
        return
    assert found.lower is not None and found.upper is not None
    assert found.lower <= wanted.upper and wanted.lower <= found.upper
    assert found.lower == found.upper or found.upper - found.lower <= 1e-8 * max(found.upper, 1)


# lemma: diagram-rounding
@pytest.mark.parametrize(
    "question", ["P=? [ X s=1 ]", "P=? [ F<=1 s=1 ]", "P=? [ F s=1 ]", 'R{"r"}=? [ C<=1 ]']
)
def test_decimals_lie_strictly_between_their_bounds(question: str) -> None:
    text = "dtmc module m s:[0..2]; [] s=0 -> 0.1:(s'=1) + 0.9:(s'=2); [] s>0 -> true; endmodule"
    model = hybrid.parse(f'{text} rewards "r" s=0 : 0.1; endrewards')
    found = hybrid.check(model, question, engine="symbolic")
    assert found.lower is not None and found.upper is not None
    assert Fraction(found.lower) < Fraction(1, 10) < Fraction(found.upper)


# lemma: diagram-series
def test_a_chain_without_circles_is_a_finite_series() -> None:
    answer = hybrid.check(hybrid.parse(TREE), 'R{"r"}=? [ F s>=8 ]', engine="symbolic")
    assert (answer.lower, answer.value, answer.upper) == (9.0, 9.0, 9.0)
    assert answer.statistics.iterations < 10


def line(probability: str, length: int) -> str:
    """Return a chain that goes on with some probability, and else ends; s counts the steps made."""
    return f"""dtmc module m s:[0..{length}] init 0; d:bool init false;
      [] s<{length}&!d -> {probability}:(s'=s+1) + 1-{probability}:(d'=true); [] s={length}|d -> true;
    endmodule"""


# lemma: diagram-series
@pytest.mark.parametrize("epsilon", [1e-8, 1e-15])
def test_a_series_that_was_rounded_is_bounded_from_above(epsilon: float) -> None:
    """Entries are exact, and powers of 1365/4096 are not from the fifth one on."""
    answer = hybrid.check(
        hybrid.parse(line("0.333251953125", 40)), "P=? [ F s=40 ]", engine="symbolic", epsilon=epsilon
    )
    assert answer.lower is not None and answer.upper is not None
    assert Fraction(answer.lower) < Fraction(1365, 4096) ** 40 < Fraction(answer.upper)
    assert answer.upper - answer.lower <= max(epsilon, 1e-13) * answer.upper
    assert (answer.statistics.iterations > 41) == (epsilon == 1e-15)  # then all terms are made twice


# lemma: diagram-series
def test_a_series_whose_terms_vanish_is_added_up_from_above() -> None:
    answer = hybrid.check(hybrid.parse(line("1e-200", 2)), "P=? [ F s=2 ]", engine="symbolic")
    assert answer.lower is not None and answer.upper is not None
    assert Fraction(answer.lower) < Fraction(1, 10**400) < Fraction(answer.upper)


# lemma: diagram-series
@pytest.mark.parametrize(
    ("columns", "additions"), [((0,), 0), ((0, 3), 1), ((0, 2, 3), 2), ((0, 1, 2, 3), 2)]
)
def test_additions_of_a_step_are_those_of_a_row_or_of_its_bits(
    columns: tuple[int, ...], additions: int
) -> None:
    store, matrix = NodeStore(6), 0
    for column in columns:
        entry = store.constant(0.25)
        for level, bit in ((1, column >> 1), (4, column & 1)):
            nodes = np.array([[6, 0, 0], [6, 1, 1], [level, 0, 1]], dtype=np.int32)
            entry = store.product(entry, store.insert(Diagram(6, nodes, np.array([1.0 - bit, float(bit)]))))
        matrix = store.sum(matrix, entry)
    system = DiagramSystem(store, [DiagramChoice((matrix, matrix))], True, 0, 4)
    assert system.most_additions() == additions


# lemma: diagram-layers
def test_a_large_chain_without_circles_is_solved_in_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.solvers.diagram_iteration._MANY_NODES", 0)
    answer = hybrid.check(hybrid.parse(TREE), 'R{"r"}=? [ F s>=8 ]', engine="symbolic")
    assert (answer.lower, answer.value, answer.upper) == (9.0, 9.0, 9.0)
    assert answer.statistics.iterations == answer.statistics.products == 3
    far = """dtmc module m s:[0..4]; [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2); [] s=1 -> (s'=2);
      [] s=2 -> 0.5:(s'=3) + 0.5:(s'=4); [] s>2 -> true; endmodule"""
    answer = hybrid.check(hybrid.parse(far), "P=? [ F s=3 ]", engine="symbolic")
    assert (answer.lower, answer.value, answer.upper) == (0.5, 0.5, 0.5)
    answer = hybrid.check(hybrid.parse(line("0.333251953125", 40)), "P=? [ F s=40 ]", engine="symbolic")
    assert answer.lower is not None and answer.upper is not None
    assert Fraction(answer.lower) < Fraction(1365, 4096) ** 40 < Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-13 * answer.upper
    assert answer.statistics.iterations == 40


# lemma: diagram-layers
@pytest.mark.parametrize("is_down", [False, True])
def test_layers_follow_a_counter(is_down: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two waits for a counter: states of the first one lead to those of the second with other values."""
    monkeypatch.setattr("hybrid.solvers.diagram_iteration._MANY_NODES", 0)
    end, step = ("0", "y-1") if is_down else ("63", "y+1")
    begin = [f"(y'={value if is_down else 63 - value})" for value in (40, 63, 20)]
    text = f"""dtmc module m y:[0..63]; s:[0..3];
      [] s=0 -> 0.5:(s'=1)&{begin[0]} + 0.5:(s'=1)&{begin[1]}; [] (s=1|s=3)&y!={end} -> (y'={step});
      [] s=1&y={end} -> 0.5:(s'=2) + 0.5:(s'=3)&{begin[2]}; [] s=3&y={end} -> (s'=2); [] s=2 -> true;
      endmodule rewards true : 1; endrewards"""
    model = hybrid.parse(text)
    levels, falls = _counter(model)
    assert levels == tuple(3 * bit for bit in range(6)) and falls != is_down
    answer = hybrid.check(model, "R=? [ F s=2 ]", engine="symbolic")
    assert (answer.lower, answer.value, answer.upper) == (64.0, 64.0, 64.0)
    assert answer.statistics.iterations == 21 + 64 + 1


# lemma: diagram-layers
def test_chains_with_circles_are_not_solved_in_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """State 2 leads to states of both kinds."""
    monkeypatch.setattr("hybrid.solvers.diagram_iteration._MANY_NODES", 0)
    circle = """dtmc module m s:[0..5]; [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2); [] s=1 -> 0.5:(s'=0) + 0.5:(s'=5);
      [] s=2 -> 0.25:(s'=1) + 0.75:(s'=3); [] s=3 -> 0.5:(s'=4) + 0.5:(s'=5); [] s>3 -> true; endmodule"""
    found = hybrid.check(hybrid.parse(circle), "P=? [ F s=5 ]", engine="symbolic")
    assert found.lower is not None and found.upper is not None
    wanted = hybrid.check(hybrid.parse(circle), "P=? [ F s=5 ]", exact=True)
    assert found.lower <= wanted.value <= found.upper < 1 and found.upper - found.lower < 1e-6


# lemma: diagram-rounding
@pytest.mark.parametrize("bound", ["<=100000", "[90000,100000]"])
def test_many_steps_of_few_states_are_powers(bound: str) -> None:
    row = "1e-5:(s'=1) + 1e-5:(s'=2) + 1-2e-5:true"
    model = hybrid.parse(f"dtmc module m s:[0..2]; [] s=0 -> {row}; [] s>0 -> true; endmodule")
    question = f"P=? [ F{bound} s=1 ]"
    wanted, found = hybrid.check(model, question), hybrid.check(model, question, engine="symbolic")
    assert found.lower is not None and found.upper is not None
    assert found.lower <= wanted.upper and wanted.lower <= found.upper
    assert found.lower < found.upper <= found.lower * (1 + 1e-9)
    assert found.statistics.products < 200


# lemma: diagram-rounding
@pytest.mark.parametrize("rounding", [DOWN, UP])
@pytest.mark.parametrize("start", [0.7, 1.9, 7.3, 23.1, 90.7])
def test_powers_round_every_operation(rounding: int, start: float) -> None:
    """Two steps of one equation, against the same operations on rational numbers."""
    store, column = NodeStore(3), np.array([[3, 0, 0], [3, 1, 1], [1, 1, 0], [0, 2, 0]], dtype=np.int32)
    row = np.array([[3, 0, 0], [3, 1, 1], [0, 1, 0]], dtype=np.int32)
    low, high = (store.insert(Diagram(3, column, np.array([0.0, v]))) for v in (0.3, 0.30000000000000004))
    x, b = (store.insert(Diagram(3, row, np.array([0.0, v]))) for v in (start, 0.1))
    system = DiagramSystem(store, [DiagramChoice((low, high), (b, b))], True, 0, 2)
    found = store.values(_power(system, x, 0, 2, rounding)[0]).max()
    near = rounded_up if rounding == UP else rounded_down
    a = 0.3 if rounding == DOWN else 0.30000000000000004

    def step(matrix: float, vector: float, more: float) -> float:
        return near(Fraction(near(Fraction(matrix) * Fraction(vector))) + Fraction(more))

    assert found == step(near(Fraction(a) ** 2), start, step(a, 0.1, 0.1))


# lemma: diagram-merging
def test_merged_values_stay_on_their_side() -> None:
    values = np.array([0.1, 1 / 3, 2.5, 1e-300])
    nodes = np.array([[2, i, i] for i in range(4)] + [[1, 0, 1], [1, 2, 3], [0, 4, 5]], dtype=np.int32)
    x = Diagram(2, nodes, values)
    store = NodeStore(2)
    found = [store.values(rounded_values(store, store.insert(x), rounding, 4)) for rounding in (DOWN, UP)]
    below, above = (np.sort(values) for values in found)
    ordered = np.sort(values)
    assert (below <= ordered).all()
    assert (above >= ordered).all()
    assert (above - below <= ordered / 7).all()
    assert 2.5 in below and 2.5 in above  # four digits hold it
    assert below[1] < 0.1 < above[1]


def test_many_values_are_merged_and_the_bounds_stay_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHAIN)
    exact = hybrid.check(model, "P=? [ F s=6 ]", exact=True)
    monkeypatch.setattr("hybrid.solvers.diagram_iteration._MANY_VALUES", 2)
    monkeypatch.setattr("hybrid.solvers.diagram_iteration._SPARE_BITS", -8)
    found = hybrid.check(model, "P=? [ F s=6 ]", engine="symbolic")
    assert found.lower <= exact.value <= found.upper
    assert found.upper - found.lower <= 1e-8 * found.upper


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (CHAIN, "S=? [ s=7 ]"),
        (CHAIN, "P=? [ (F s=6) & (G s<7) ]"),
        (CHAIN, 'R{"r"}=? [ I=3 ]'),
        (QUEUE, "P=? [ F<=2 n=5 ]"),
        (QUEUE, 'R{"r"}=? [ C<=2 ]'),
        (CHOICES, "multi(Pmax=? [ F s=4 ], P>=0.1 [ F s=5 ])"),
    ],
)
def test_what_is_not_answered_names_the_engine_that_does(text: str, question: str) -> None:
    answer = hybrid.check(hybrid.parse(text), question, engine="symbolic", throw=False)
    assert "symbolic: choose engine='hybrid'" in str(answer.error)


def test_a_least_reward_with_free_circles_is_refused() -> None:
    text = "mdp module m s:[0..2]; [a] s=0 -> (s'=1); [b] s=1 -> (s'=0); [c] s=0 -> (s'=2); [] s=2 -> true;"
    model = hybrid.parse(f'{text} endmodule rewards "r" [c] true : 3; endrewards')
    answer = hybrid.check(model, 'R{"r"}min=? [ F s=2 ]', engine="symbolic", throw=False)
    assert "stay for nothing" in str(answer.error)


def test_rewards_below_zero_are_refused() -> None:
    model = hybrid.parse(CHAIN.replace("1.5", "-1.5"))
    for question in ('R{"r"}=? [ F s>=6 ]', 'R{"r"}=? [ F s>99 ]'):  # the latter is never reached
        answer = hybrid.check(model, question, engine="symbolic", throw=False)
        assert "below zero" in str(answer.error)


@pytest.mark.parametrize("asked", [{"scheduler": True}, {"checkpoint": "folder"}])
def test_what_keeps_arrays_is_refused(asked, tmp_path) -> None:
    if "checkpoint" in asked:
        asked = {"checkpoint": tmp_path}
    with pytest.raises(hybrid.HybridError, match="keeps arrays"):
        hybrid.check(hybrid.parse(CHOICES), "Pmax=? [ F s=4 ]", engine="symbolic", **asked)


def test_filters_over_many_states_need_no_list_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHAIN)
    monkeypatch.setattr("hybrid.checking.formulas.FormulaChecker.MANY", 2)
    for operator in ("min", "max", "range"):
        question = f"filter({operator}, P=? [ F s=6 ], s<5 | s=6)"
        wanted, found = hybrid.check(model, question), hybrid.check(model, question, engine="symbolic")
        assert found.lower <= wanted.upper and wanted.lower <= found.upper
    assert hybrid.check(model, "filter(forall, P>0 [ F s=6 ], s<5)", engine="symbolic").value is True
    refused = hybrid.check(model, "filter(avg, P=? [ F s=6 ], s<5)", engine="symbolic", throw=False)
    assert "over more than 2 states" in str(refused.error)


def test_a_diagram_larger_than_an_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.solvers.diagram_system._SMALL_VECTOR", 8)
    answer = hybrid.check(hybrid.parse(CHAIN), "P=? [ F s=6 ]", engine="symbolic", throw=False)
    assert "takes less memory: choose engine='hybrid'" in str(answer.error)


def test_iterations_end_at_their_limit_with_what_they_have() -> None:
    answer = hybrid.check(
        hybrid.parse(CHAIN),
        "P=? [ F s=6 ]",
        engine="symbolic",
        max_iterations=3,
        method="optimistic",
        throw=False,
    )
    assert "iteration limit" in str(answer.error)
    assert 0 <= answer.lower <= Fraction(1, 100) and answer.upper == 1.0


@pytest.mark.parametrize("number", range(2))
def test_attack_cases_agree(number: int) -> None:
    record = run_symbolic(draw_case(515, number))
    assert not record.findings


@pytest.fixture(scope="module")
def many() -> hybrid.Model:
    """32 walkers, of whom a scheduler moves one at a time: 2^64 states."""
    walker = "p1:[0..3]; [] p1<3 -> 0.5:(p1'=p1+1) + 0.5:(p1'=0); [] p1=3 -> true;"
    copies = "".join(f"module m{i}=m1[p1=p{i}] endmodule " for i in range(2, 33))
    there = " & ".join(f"p{i}=3" for i in range(1, 33))
    return hybrid.parse(f'mdp module m1 {walker} endmodule {copies} label "there" = {there};')


@pytest.mark.parametrize("engine", ["hybrid", "auto", "symbolic"])
@pytest.mark.parametrize(
    ("question", "value"),
    [
        ('P>=1 [ F "there" ]', False),
        ('P>0 [ !"there" U p1=3 ]', False),
        ('Pmax=? [ F "there" ]', 1.0),
        ('Pmin=? [ F "there" ]', 0.0),
        ('E [ F "there" ]', True),
        ('P>=1 [ F (P>0 [ F "there" ] & p1=3) ]', False),
        ('P>=1 [ F (!P>=1 [ F "there" ] & p1=0) ]', True),
        ('filter(exists, P>0 [ F "there" ] => p1=3)', True),
        ('filter(forall, P<1 [ F "there" ] <=> p1=3)', False),
    ],
)
def test_what_the_graph_decides_needs_no_numbers_of_states(many, engine, question, value) -> None:
    assert many.n_states == 2**64 and many.n_transitions > 2**66
    answer = hybrid.check(many, question, engine=engine)
    assert (answer.value, answer.lower, answer.upper) == (value, value, value)
    assert answer.engine == ("hybrid" if engine == "hybrid" else "symbolic")


def test_values_of_more_states_than_numbers_are_diagrams(many) -> None:
    answer = hybrid.check(many, "Pmax=? [ F<=3 p7=3 ]", engine="auto")
    assert (answer.value, answer.lower, answer.upper) == (0.125, 0.125, 0.125)
    assert "more than 2^62 states" in answer.record()["engine_reason"]
    for question in (
        "Pmax=? [ F<=3 p7=3 ]",
        "Pmax=? [ X p1=1 ]",
        "filter(avg, p1)",
        "P>=1 [ F P>0.1 [ X p1=1 ] ]",
    ):
        with pytest.raises(hybrid.HybridError, match=r"2\^62 states.*engine='symbolic'"):
            hybrid.check(many, question, engine="hybrid")
    with pytest.raises(hybrid.HybridError, match=r"2\^62 states.* or ask for P and R with bounds"):
        hybrid.check(many, "P>=1 [ F Pmax=? [ X p1=1 ] > Pmax=? [ X p2=1 ] ]", engine="symbolic")


@pytest.mark.parametrize("text", [CHAIN, CHOICES])
@pytest.mark.parametrize("few", [0, 1 << 20])
def test_sets_are_found_on_diagrams_as_on_arrays(
    text: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.parse(text)
    # Bounds alone do not tell what is 0 or 1, and the graph tells it of formulas without steps.
    asked = [f"P{own} [ F s=4 ]" for own in (">0", ">=1", "<1", "<=0", ">0.7", "<0.004")]
    asked += ["P>=1 [ G s<5 ] | s=2", "P>0.7 [ F<=3 s=4 ]", "P<=0.487 [ X s=5 ] & s<2"]
    asked += ["!(P<0.26 [ F>=2 s=4 ]) => s=3", '(R{"r"}>=1.26 [ C<=2 ]) <=> s>4']
    asked += [
        "filter(exists, P>0 [ F P>0.7 [ F s=4 ] ], s=1)",
        "P>0 [ G (P<0.9 [ X s=5 ] | P>=1 [ F s=4 ]) ]",
    ]
    formulas = [
        p.formula for p in resolve_properties(parse_properties(";".join(asked)), model.source).properties
    ]
    known = [Checker(model, CheckOptions()).states(own) for own in formulas]
    monkeypatch.setattr("hybrid.checking.formulas.FormulaChecker.MANY", 0)
    monkeypatch.setattr("hybrid.analysis.on_diagrams._FEW", few)
    found = [Checker(model, CheckOptions(engine="symbolic")).states(own) for own in formulas]
    assert [own == other for own, other in zip(found, known, strict=True)] == [True] * len(asked)
    for text in asked[:2]:
        some, every = (
            hybrid.check(model, f"filter({q}, {text})", engine="symbolic") for q in ("exists", "forall")
        )
        states = known[asked.index(text)]
        assert some.value is (states != model.manager.false) and every.value is (states == model.reachable)


# lemma: comparison
def test_sets_that_bounds_do_not_tell_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value is 1/3, which no double is."""
    text = "dtmc module m s:[0..2]; [] s=0 -> 1/3:(s'=1) + 1/3:(s'=2) + 1/3:(s'=0); [] s>0 -> true; endmodule"
    monkeypatch.setattr("hybrid.checking.formulas.FormulaChecker.MANY", 0)
    model = hybrid.parse(text)
    for bound, value in (("0.4999", 1.0), ("0.5", None), ("0.5001", 0.0)):
        answer = hybrid.check(model, f"P=? [ F<=0 P>{bound} [ F s=1 ] ]", engine="symbolic", throw=False)
        assert answer.value == value and (value is not None or "unknown at this precision" in answer.error)
