"""Probabilities of random formulas on random models: inside the bounds by definition, and against Storm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hybrid.properties.automata.choosing import automaton_of
from tests.builders.labelled import LABELS, LabelledModel, random_labelled
from tests.builders.models import build
from tests.logic.storm import storm_values
from tests.oracles.lasso_words import Tree, random_tree, tree_text, without_windows
from tests.oracles.ltl import chain_probabilities, greatest_probabilities
from tests.oracles.optima import checked

WIDTH = 1e-7
STORM_WIDTH = 1e-9


@dataclass(frozen=True)
class ValueCase:
    """What a random model and formula gave: its property, what differs, whether Storm answered."""

    text: str
    difference: str | None
    storm: str


def value_case(seed: int, number: int, kind: str, with_storm: bool, **options: object) -> list[ValueCase]:
    """Check a random formula on a random model, made from a seed and a number alone."""
    rng = np.random.default_rng([seed, number, len(kind)])
    labelled = random_labelled(rng, kind)
    # Every fourth formula has windows; those of a CTMC would be of time.
    windows = number % 4 == 3 and kind != "ctmc"
    tree = random_tree(rng, int(rng.integers(3, 7 if windows else 11)), 3, windows)
    model = build(labelled.text())
    return [
        _one(labelled, model, tree, operator, exact, with_storm, options)
        for operator, exact in expected_values(labelled, tree).items()
    ]


def expected_values(labelled: LabelledModel, tree: Tree) -> dict[str, list[Fraction]]:
    """The probability of a formula from every state by definition, by operator."""
    if labelled.kind != "mdp":
        return {"P=?": chain_probabilities(labelled.rows, labelled.letters, without_windows(tree))}
    automaton = automaton_of(tree_text(tree))
    letters = labelled.letters_for(automaton.propositions)
    return {
        "Pmax=?": greatest_probabilities(labelled.choices, letters, automaton, False),
        "Pmin=?": [1 - p for p in greatest_probabilities(labelled.choices, letters, automaton, True)],
    }


def _one(
    labelled: LabelledModel,
    model: object,
    tree: Tree,
    operator: str,
    exact: list[Fraction],
    with_storm: bool,
    options: dict[str, object],
) -> ValueCase:
    text = f"{operator} [ {tree_text(tree, LABELS)} ]"
    found = checked(model, text, **{"backend": "cpu", **options})
    difference = outside(text, labelled, exact, found.lower.tolist(), found.upper.tolist())
    storm = "not asked"
    if with_storm and labelled.kind != "ctmc":
        values = storm_values(labelled, operator, without_windows(tree))
        storm = "refused" if isinstance(values, str) else "agrees"
        if not isinstance(values, str):
            for state, (own, other) in enumerate(zip(exact, values, strict=True)):
                if abs(own - other) > STORM_WIDTH and difference is None:
                    storm = "differs"
                    difference = f"{text}: Storm has {float(other)} in state {state}, not {own}"
                    difference += "\n" + labelled.text()
    return ValueCase(text, difference, storm)


def outside(
    text: str, labelled: LabelledModel, exact: list[Fraction], lower: list[float], upper: list[float]
) -> str | None:
    """Where bounds miss an exact value, or are wide; None: nowhere."""
    for state, (low, value, high) in enumerate(zip(lower, exact, upper, strict=True)):
        if not Fraction(low) <= value <= Fraction(high) or high - low > WIDTH * max(float(value), 1e-290):
            return f"{text}: {value} in state {state}, bounds {low} and {high}\n{labelled.text()}"
    return None
