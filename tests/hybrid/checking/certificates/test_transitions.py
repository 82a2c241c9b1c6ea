"""The verifier's own expansion against an interpreter that goes state by state."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.certified_text import CertifiedText
from hybrid.checking.certificates.judge import earnings
from hybrid.checking.certificates.states import TextSemantics, exact_number
from hybrid.checking.certificates.transitions import Transitions
from mtbdd.language.syntax import ModelType
from tests.hybrid.checking.certificates.helpers import EXAMPLES
from tests.oracles.mdps import explore_mdp
from tests.oracles.models import explore

MODELS = [
    ("tandem", {"c": 3}),
    ("kanban", {"t": 1}),
    ("fms", {"n": 1}),
    ("cluster", {"N": 2}),
    ("polling", {}),
    ("brp", {"N": 4, "MAX": 2}),
    ("herman", {}),
    ("biased_die", {"N": 7, "first": 0}),
    ("quick_sort", {"limit": 9}),
    ("coin", {"K": 2}),
    ("jobs", {"N": 3}),
    ("relay", {"H": 3, "M": 2}),
]


def expansion(
    path: Path, constants: dict[str, Any], numbers: Any = None
) -> tuple[CertifiedText, Transitions]:
    subject = CertifiedText(path, constants)
    syntax = subject.syntax
    meaning = TextSemantics(
        {subject.file: subject.text},
        syntax.constants,
        syntax.formulas,
        syntax.labels,
        subject.given,
        [v.name for v in subject.model.variables],
    )
    if numbers is None:
        numbers = numbers_of(subject)
    return subject, subject.transitions(numbers, meaning)


def explored(subject: CertifiedText) -> Any:
    return explore_mdp(subject.model) if subject.model.type is ModelType.MDP else explore(subject.model)


def numbers_of(subject: CertifiedText) -> Any:
    """The reachable states' numbers, by the definition in docs/certificates.md."""
    found = explored(subject)
    graph = found.graph if subject.model.type is ModelType.MDP else found
    numbers = []
    for state in graph.states:
        number = 0
        for value, v in zip(state, subject.model.variables, strict=True):
            number = number * (v.high - v.low + 1) + value - v.low
        numbers.append(number)
    assert numbers == sorted(numbers)
    return np.array(numbers, np.int64)


def rows(t: Transitions) -> list[list[dict[int, Fraction]]]:
    """Every state's choices, scaled to add up to one unless they are rates."""
    found: list[list[dict[int, Fraction]]] = [[] for _ in range(t.states.size)]
    values = t.states.table.values
    for choice in range(t.state.size):
        row: dict[int, Fraction] = {}
        for k in range(int(t.begin[choice]), int(t.begin[choice + 1])):
            target = int(t.target[k])
            row[target] = row.get(target, Fraction(0)) + values[t.weight[k]]
        total = sum(row.values())
        assert total == values[t.total[choice]]
        if t.kind is not ModelType.CTMC:
            row = {s: w / total for s, w in row.items()}
        found[t.state[choice]].append(row)
    return found


@pytest.mark.parametrize(("name", "constants"), MODELS, ids=[name for name, _ in MODELS])
def test_transitions_and_rewards_are_those_of_the_interpreter(name: str, constants: dict[str, int]) -> None:
    subject, t = expansion(EXAMPLES / f"{name}.prism", constants)
    found, values = explored(subject), t.states.table.values
    if t.is_mdp:
        assert [sorted(sorted(row.items()) for row in own) for own in rows(t)] == [
            sorted(sorted((s, p / sum(row.values())) for s, p in row.items()) for _, row in own)
            for own in found.choices
        ]
    else:
        scaled = t.kind is not ModelType.CTMC
        assert [own[0] for own in rows(t)] == [
            {s: p / (sum(row.values()) if scaled else 1) for s, p in row.items()} for row in found.rates
        ]
    graph = found.graph if t.is_mdp else found
    assert set(t.initial.tolist()) == graph.initial
    assert set(np.flatnonzero(t.deadlocks).tolist()) == graph.deadlocks
    for structure, written in enumerate(subject.syntax.rewards):
        earned = earnings(t, written)
        if t.is_mdp:
            for choice, place in enumerate(earned.tolist()):
                state = int(t.state[choice])
                action = None if t.action[choice] < 0 else t.actions[t.action[choice]]
                expected = found.state_rewards(structure)[state]
                if state not in graph.deadlocks:
                    expected += found.choice_rewards(structure, action)[state]
                assert values[place] == expected * values[t.total[choice]]
        else:
            scale = [1 if t.kind is ModelType.CTMC else values[place] for place in t.total.tolist()]
            exact = found.rewards(structure)
            share = [sum(row.values()) if t.kind is ModelType.DTMC else 1 for row in found.rates]
            assert [values[p] for p in earned.tolist()] == [
                r * c / s for r, c, s in zip(exact, scale, share, strict=True)
            ]


OVERLAP = """dtmc
const double p = 1/3;
formula up = mod(s + 1, 3);
module a
  s : [0..2];
  [] s<2 -> p:(s'=up) + 1-p:(s'=0);
  [] s=1 -> 0.1:(s'=2) + 0.9:true;
endmodule
rewards [] s=1 : 6; s=1 : 1; endrewards
"""


def test_overlapping_commands_add_up_and_thirds_are_thirds(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(OVERLAP)
    subject, t = expansion(path, {}, np.arange(3))
    third, tenth = Fraction(1, 3), Fraction(1, 10)
    assert rows(t) == [
        [{1: third, 0: 1 - third}],
        [{2: (third + tenth) / 2, 0: (1 - third) / 2, 1: (1 - tenth) / 2}],
        [{2: Fraction(1)}],
    ]
    assert t.deadlocks.tolist() == [False, False, True]
    earned = earnings(t, subject.syntax.rewards[0])
    values = t.states.table.values
    assert [values[p] / values[w] for p, w in zip(earned, t.total, strict=True)] == [0, 7, 0]


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_loops_of_deadlocks_earn_no_transition_reward(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(
        f"{kind} module m x:[0..1]; [] x=0 -> (x'=1); endmodule rewards [] true : 3; x=1 : 5; endrewards"
    )
    subject, t = expansion(path, {}, np.arange(2))
    assert [t.states.table.values[p] for p in earnings(t, subject.syntax.rewards[0])] == [3, 5]


# lemma: listed-states
@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1, 2], "initial state"),
        ([0, 1], "does not list"),
        ([0, 2, 1], "ascending"),
        ([0, 1, 3], "ascending"),
        ([0, 0, 1], "ascending"),
        ([], "no states"),
    ],
)
def test_lists_that_are_not_closed_are_refused(numbers: list[int], message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(OVERLAP)
    with pytest.raises(CertificateError, match=message):
        expansion(path, {}, np.array(numbers, np.int64))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dtmc module a s:[0..1]; [] true -> 0.5:(s'=1-s); endmodule", "add up to 0.5"),
        ("dtmc module a s:[0..1]; [] true -> (s'=s+1); endmodule", "outside of a variable's range"),
        ("ctmc module a s:[0..1]; [] true -> s-1:(s'=0); endmodule", "negative"),
    ],
)
def test_models_at_fault_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(text)
    with pytest.raises(CertificateError, match=message):
        expansion(path, {}, np.arange(2))


# lemma: text
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ctmc module a s:[0..1]; [] s=0 -> log(2,3):(s'=1); endmodule", "no rational number"),
        ("ctmc module a s:[0..1]; [] s=0 -> pow(2,0.5):(s'=1); endmodule", "power"),
        ("ctmc module a s:[0..1]; [] s=0 -> 1/s:(s'=1); endmodule", "division by zero"),
        ("ctmc module a s:[0..1]; [] mod(1,s)=0 -> (s'=1); endmodule", "modulus"),
        ("ctmc module a s:[0..1]; endmodule system a endsystem", "system"),
        ("ctmc module a s:[0..1]; [] s=0 -> 1 + 1e-5001:(s'=1); endmodule", "too long"),
        ("ctmc module a s:[0..1]; [] s=0 -> 1 + 1e-0000001:(s'=1); endmodule", "too long"),
        ("ctmc module a s:[0..4611686018427387904]; endmodule", "2.60"),
        ("ctmc module a s:[0..1073741823]; t:[0..1073741823]; endmodule", "2.60"),
    ],
)
def test_what_has_no_exact_numbers_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(text)
    with pytest.raises(NotCertifiableError, match=message):
        expansion(path, {}, np.arange(2))


# Numbers of the language by what they are, one that doubles would miss among them wherever there is one.
EXPRESSIONS = [
    ("pow(0.1, 3)", Fraction(1, 1000)),
    ("pow(2, 3) + pow(2.0, -1)", Fraction(17, 2)),
    ("pow(2.0, 1000) / pow(2.0, 999)", Fraction(2)),
    ("min(1/3, 0.3, 2)", Fraction(3, 10)),
    ("max(1/3, 0.3)", Fraction(1, 3)),
    ("floor(2.9) + ceil(2.1) * 10", Fraction(32)),
    ("round(2.5) + round(2.4) * 10 + round(0.49999999999999999999) * 100", Fraction(23)),
    ("mod(7, 4)", Fraction(3)),
    ("x=0 ? 1/3 : 1/7", Fraction(1, 3)),
    ("0.1 + 0.2", Fraction(3, 10)),
    ("2 - -1 * 0.1", Fraction(21, 10)),
    ("(0.1 + 0.2 = 0.3 ? 1 : 5)", Fraction(1)),
    ("(0.1 + 0.2 > 0.3 ? 5 : 1) + (0.1 + 0.2 <= 0.3 ? 10 : 50)", Fraction(11)),
    ("(0.1 + 0.7 < 0.8 ? 5 : 1) + (0.1 + 0.7 >= 0.8 ? 10 : 50) + (0.1 != 1/10 ? 500 : 100)", Fraction(111)),
    ("(x=0 & !(x=1) | x=1 ? 1 : 5) + (x=1 => x=0 ? 10 : 50) + (x=0 <=> x<1 ? 100 : 500)", Fraction(111)),
    ("third + 2 * tenth", Fraction(8, 15)),
    ("1 + 1e-5000 - 1.0", Fraction(1, 10**5000)),
]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
def test_expressions_are_rational_numbers(expression: str, value: Fraction, tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(
        "ctmc const double tenth = 0.1; formula third = 1/3;"
        f"module a x:[0..1]; [] x=0 -> {expression}:(x'=1); endmodule rewards x=0 : {expression}; endrewards"
    )
    subject, t = expansion(path, {}, np.arange(2))
    assert rows(t)[0] == [{1: value}]
    assert [t.states.table.values[p] for p in earnings(t, subject.syntax.rewards[0])] == [value, 0]


def test_numbers_that_are_too_long_are_refused() -> None:
    assert exact_number(0.3, "0." + "3" * 3998) == Fraction(int("3" * 3998), 10**3998)
    assert exact_number(0.1) == Fraction(1, 10)
    assert exact_number(1e-100, "1e-00100") == Fraction(1, 10**100)
    for text in ("0." + "3" * 3999, "1e-5001", "1e5001", "1e0000001"):
        with pytest.raises(NotCertifiableError, match="too long"):
            exact_number(0.5, text)


def test_powers_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text("ctmc module a x:[0..1]; [] x=0 -> 1 + pow(0.5, 8193):(x'=1); endmodule")
    with pytest.raises(NotCertifiableError, match="a power of more than 16384 bits"):
        expansion(path, {}, np.arange(2))


def test_decimals_are_the_rational_numbers_written(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(
        "ctmc const double r; module a s:[0..1];\n[] s=0 -> 0.10000000000000000000001:(s'=1);\n"
        "[] s=1 -> 1e-320:(s'=0) + r:(s'=1); endmodule"
    )
    _, t = expansion(path, {"r": 0.1}, np.arange(2))
    assert rows(t)[0] == [{1: Fraction("0.10000000000000000000001")}]
    assert rows(t)[1] == [{0: Fraction("1e-320"), 1: Fraction(1, 10)}]
