"""Answers from quotients against those of the models themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.checking.answer import Answer
from hybrid.models.interchange.compressing import compressed
from tests.builders.blown_up import blown_up
from tests.builders.explicit_models import random_explicit_model
from tests.exploring import rounds
from tests.source_tree import ROOT

FORMS = pytest.mark.parametrize("listed", [1 << 62, 0], ids=["list", "diagrams"], indirect=True)


@pytest.fixture
def listed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """States of a chain up to which its quotient is made from a list."""
    monkeypatch.setattr("hybrid.models.lumping.checker.LISTED", request.param)
    return int(request.param)


PROBABILITIES = [
    'P=? [ F "goal" ]',
    'P=? [ !"bad" U "goal" ]',
    'P=? [ G !"bad" ]',
    'P=? [ X "goal" ]',
    "P=? [ F x<=2 ]",
    'P=? [ (G F "goal") & (F "bad") ]',
    'P=? [ F (P>=0.25 [ X "goal" ] & !"bad") ]',
    '"goal" | "bad"',
    'filter(range, P=? [ F "goal" ], !"bad")',
    'E [ G !"goal" ]',
    'A [ F "goal" ]',
]
REWARDS = ['R=? [ F "goal" ]', "R=? [ C ]"]
OF_CHAINS = ['S=? [ "goal" ]', "R=? [ S ]", 'P=? [ (F "goal") || (F "bad") ]']
OF_STEPS = ['P=? [ F<=3 "goal" ]', "R=? [ C<=4 ]", "R=? [ I=2 ]", 'P=? [ F[2,5] "goal" ]']
OF_TIME = ['P=? [ F<=1.5 "goal" ]', "R=? [ C<=0.7 ]", "R=? [ I=0.4 ]", 'P=? [ F[0.2,1.5] "goal" ]']


def asked(kind: str) -> list[str]:
    """Return the properties that a kind of model has."""
    both = [*PROBABILITIES, *REWARDS, *(OF_TIME if kind == "ctmc" else OF_STEPS)]
    if kind != "mdp":
        return [*both, *OF_CHAINS]
    return [p.replace("P=?", f"P{m}=?").replace("R=?", f"R{m}=?") for p in both for m in ("min", "max")]


def assert_same(found: Answer, known: Answer, text: str) -> None:
    """Bounds of both hold one number, and both say as much."""
    what = f"{found} {known}\n{text}"
    assert (found.error is None) == (known.error is None), what
    if known.error is not None:
        return
    assert found.kind is not None and (found.kind == "estimate") == (known.kind == "estimate"), what
    assert isinstance(found.value, bool) == isinstance(known.value, bool), what
    if isinstance(known.value, bool):
        assert found.value is known.value, what
        assert np.array_equal(found.values, known.values), what
        return
    low, high = found.lower_values, found.upper_values
    assert ((low <= known.upper_values) & (known.lower_values <= high)).all(), what
    assert np.allclose(found.values, known.values, rtol=1e-6, atol=1e-9), what


@FORMS
@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_quotient_answers_as_its_model(rng: np.random.Generator, kind: str, listed: int) -> None:
    smaller = 0
    for number in range(40):
        if number >= rounds(3) and smaller:
            break
        built = blown_up(rng, kind)
        model = hybrid.parse(built.text)
        text = "\n".join(f"{p};" for p in asked(kind))
        plain, lumped = hybrid.check_all(model, text), hybrid.check_all(model, text, bisimulation=True)
        for found, known in zip(lumped, plain, strict=True):
            assert_same(found, known, built.text)
            assert found.reduction is not None or found.error is not None
            smaller += found.reduction is not None and found.reduction.block_transitions is not None
    assert smaller


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("herman", {}),
        ("cluster", {"N": 2}),
        ("tandem", {"c": 3}),
        ("brp", {"N": 2, "MAX": 2}),
        ("coin", {"K": 1}),
        ("jobs", {"N": 2}),
        pytest.param("philosophers", {}, marks=pytest.mark.nightly),  # chains and processes are above
        pytest.param("mutex", {"M": 1}, marks=pytest.mark.nightly),  # as the philosophers: under fairness
    ],
)
@FORMS
def test_quotient_of_examples_answers_as_they_do(name: str, constants: dict[str, int], listed: int) -> None:
    model = hybrid.load(ROOT / "examples" / f"{name}.prism", constants)
    properties = ROOT / "examples" / f"{name}.props"
    plain, lumped = (hybrid.check_all(model, properties, bisimulation=k) for k in (False, True))
    assert all(answer.reduction is not None for answer in lumped)
    for found, known in zip(lumped, plain, strict=True):
        assert_same(found, known, name)


LOOPS = """ctmc
module m
  x : [0..2] init 0;
  [] x=0 -> 1:(x'=1) + 1:(x'=2);
  [] x=1 -> 3:(x'=0) + 1:(x'=2);
  [] x=2 -> 1:(x'=0);
endmodule
label "goal" = x=2;
"""


@FORMS
def test_steps_of_a_ctmc_count_moves_within_a_block_and_times_do_not(listed: int) -> None:
    model = hybrid.parse(LOOPS)
    text = 'P=? [ F<=2 "goal" ]; P=? [ X "goal" ]; T=? [ F "goal" ]; S=? [ "goal" ]; P=? [ X X "goal" ];'
    plain, lumped = (hybrid.check_all(model, text, bisimulation=k) for k in (False, True))
    for found, known in zip(lumped, plain, strict=True):
        assert_same(found, known, LOOPS)
    assert [answer.reduction.blocks for answer in lumped if answer.reduction] == [2, 3, 2, 2, 3]


def test_a_path_may_stay_within_a_block_for_ever() -> None:
    model = hybrid.parse(LOOPS)
    assert hybrid.check(model, 'E [ G !"goal" ]', bisimulation=True).value is True
    assert hybrid.check(model, 'P=? [ G !"goal" ]', bisimulation=True).value == 0


@FORMS
def test_rewards_of_moves_within_a_block_are_earned(listed: int) -> None:
    text = LOOPS + "rewards [] x=0 : 3; [] x=1 : 1.5; endrewards\n"
    model = hybrid.parse(text)
    asked = 'R=? [ C<=1 ]; R=? [ F "goal" ]; R=? [ S ]; R=? [ I=1 ];'
    plain, lumped = (hybrid.check_all(model, asked, bisimulation=k) for k in (False, True))
    for found, known in zip(lumped, plain, strict=True):
        assert_same(found, known, text)
    assert lumped[0].reduction is not None and lumped[0].reduction.blocks == 2


@FORMS
def test_an_absorbing_block_of_several_states_is_one_state(listed: int) -> None:
    model = hybrid.parse(
        "ctmc module m x:[0..2]; [] x=0 -> 2:(x'=1); [] x=1 -> 5:(x'=2); [] x=2 -> 7:(x'=1); endmodule "
        "rewards x>0 : 2; [] x>0 : 0; endrewards"
    )
    for prop in ("P=? [ F<=0.5 x>0 ]", "S=? [ x>0 ]", "R=? [ S ]", "R=? [ C<=1 ]"):
        found, known = (hybrid.check(model, prop, bisimulation=k) for k in (True, False))
        assert_same(found, known, prop)
        assert found.reduction is not None and found.reduction.blocks == 2


def test_automata_of_files_may_ask_for_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seen.hoa").write_text(
        'HOA: v1\nStates: 2\nStart: 0\nAP: 2 "goal" "first"\nacc-name: Buchi\nAcceptance: 1 Inf(0)\n'
        "--BODY--\nState: 0\n[0] 1\n[!0] 0\nState: 1 {0}\n[t] 1\n--END--\n",
        encoding="utf-8",
    )
    model = hybrid.parse(LOOPS)
    prop = 'P=? [ HOA: {"seen.hoa", "first" <- x=0} ]'
    found, known = (hybrid.check(model, prop, bisimulation=k) for k in (True, False))
    assert_same(found, known, prop)
    assert found.reduction is not None and found.reduction.blocks == 3


COUNTED = """mdp
module m
  x : [0..8] init 0;
  [a] x=0 -> 0.1:(x'=1) + 0.1:(x'=2) + 0.2:(x'=5) + 0.2:(x'=6) + 0.2:(x'=7) + 0.2:(x'=8);
  [b] x=0 -> 0.5:(x'=0) + 0.5:(x'=3);
  [] x=1 -> 0.3:(x'=3) + 0.7:(x'=4);
  [] x=2 | x>4 -> 0.1:(x'=3) + 0.7:(x'=4) + 0.2:(x'=3);
  [] x=3 | x=4 -> true;
endmodule
label "goal" = x=3;
rewards "steps" x!=3 & x!=4 : 1; endrewards
rewards "moves" [a] true : 2; [b] true : 1; endrewards
"""


@pytest.mark.parametrize(
    "prop",
    [
        'Pmax=? [ F{"steps"}<=3 "goal" ]',
        'Pmax=? [ F{"moves"}<=2 "goal" ]',
        'quantile(min B, Pmax>=0.8 [ F{"steps"}<=B "goal" ])',
        'multi(Pmax=? [ F "goal" ], R{"steps"}<=3 [ C ])',
        'multi(Pmax=? [ F "goal" ], R{"moves"}min=? [ C ])',
        'Pmax=? [ G F "goal" ]',
        "Tmin=? [ F x=3 | x=4 ]",
        'R{"steps",discount=0.9}max=? [ C ]',
        'filter(exists, Pmax=? [ F "goal" ] > 0.99, !"goal")',
        'Pmax>=1 [ F "goal" ]',
    ],
)
def test_questions_of_all_kinds_are_answered(prop: str) -> None:
    model = hybrid.parse(COUNTED)
    found, known = (hybrid.check(model, prop, bisimulation=k) for k in (True, False))
    assert found.reduction is not None and found.reduction.blocks <= 4
    assert found.kind == known.kind or {found.kind, known.kind} == {"exact", "certified"}
    if known.several is not None and known.value is None:
        assert found.several is not None
        mine, theirs = (np.array([p["lower"] for p in a.several.record()["points"]]) for a in (found, known))
        assert np.allclose(np.sort(mine, axis=0), np.sort(theirs, axis=0), atol=1e-3)
        return
    assert found.value == pytest.approx(known.value, rel=1e-6)


def test_values_of_blocks_are_those_of_their_states() -> None:
    model = hybrid.parse(COUNTED)
    found, known = (hybrid.check(model, 'Pmax=? [ F "goal" ]', bisimulation=k) for k in (True, False))
    assert found.reduction is not None and found.reduction.block_transitions is not None
    assert found.values.shape == (9,)
    assert np.allclose(found.values, known.values)
    truth = hybrid.check(model, 'Pmax>=0.25 [ X "goal" ]', bisimulation=True)
    assert truth.values.tolist() == [True, True, True, True, False, True, True, True, True]


@FORMS
@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_quotients_of_models_that_are_given_written_out(
    rng: np.random.Generator, kind: str, listed: int
) -> None:
    for _ in range(rounds(6)):
        model = hybrid.Model.of(compressed(random_explicit_model(rng, kind)))
        m = "max" if kind == "mdp" else ""
        text = f'P{m}=? [ F "goal" ]; P{m}=? [ "some" U "goal" ]; R{{"cost"}}{m}=? [ I=2 ]; '
        text += f"R{{2}}{m}=? [ C<=2 ];"
        plain, lumped = (hybrid.check_all(model, text, bisimulation=k) for k in (False, True))
        for found, known in zip(lumped, plain, strict=True):
            assert_same(found, known, text)


@FORMS
def test_quotient_of_a_matrix_without_variables_is_numbered_as_users_number_it(listed: int) -> None:
    n = 12
    matrix = np.zeros((n, n))
    matrix[0, 1:6] = matrix[0, 6:11] = 0.1
    for state in range(1, 11):
        matrix[state, 11], matrix[state, 0] = (0.25, 0.75) if state < 6 else (0.75, 0.25)
    matrix[11, 11] = 1.0
    labels = {"goal": np.arange(n) == 11}
    model = hybrid.from_scipy(
        matrix, labels=labels, rewards={"steps": np.where(np.arange(n) == 11, 0.0, 1.0)}
    )
    found, known = (hybrid.check(model, 'P=? [ F<=3 "goal" ]', bisimulation=k) for k in (True, False))
    assert found.reduction is not None
    assert (found.reduction.blocks, found.reduction.block_transitions) == (4, 7)
    assert np.allclose(found.values, known.values)
    assert hybrid.check(model, 'R{"steps"}=? [ F "goal" ]', bisimulation=True).value == pytest.approx(4.0)


def test_experiments_ask_quotients() -> None:
    jobs = ROOT / "examples/jobs.prism"
    asked = 'Rmin=? [ F "done" ]'
    plain, lumped = (hybrid.experiment(jobs, asked, {"N": [2, 3]}, bisimulation=k) for k in (False, True))
    assert [row["states"] for row in plain] == [row["states"] for row in lumped]
    assert [row["value"] for row in lumped] == pytest.approx([row["value"] for row in plain])


def test_notebooks_show_states_and_blocks() -> None:
    answer = hybrid.check(hybrid.parse(COUNTED), 'Pmax=? [ F "goal" ]', bisimulation=True)
    assert "9 states in 4 blocks" in answer._repr_html_()
