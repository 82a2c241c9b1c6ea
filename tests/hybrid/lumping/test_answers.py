"""Answers from quotients against those of the models themselves."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from hybrid.checking.answer import Answer
from tests.builders.blown_up import blown_up
from tests.exploring import rounds
from tests.source_tree import ROOT

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


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_quotient_answers_as_its_model(rng: np.random.Generator, kind: str) -> None:
    smaller = 0
    for _ in range(rounds(4)):
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
        ("brp", {"N": 4, "MAX": 2}),
        ("coin", {"K": 2}),
        ("jobs", {"N": 3}),
        ("mutex", {"M": 3}),
        ("philosophers", {}),
    ],
)
def test_quotient_of_examples_answers_as_they_do(name: str, constants: dict[str, int]) -> None:
    model = hybrid.load(ROOT / "examples" / f"{name}.prism", constants)
    properties = ROOT / "examples" / f"{name}.props"
    plain, lumped = (hybrid.check_all(model, properties, bisimulation=k) for k in (False, True))
    assert all(answer.reduction is not None for answer in lumped)
    for found, known in zip(lumped, plain, strict=True):
        assert_same(found, known, name)
