"""Symbolic files: what is written is read back, with the same answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import dd.autoref
import numpy as np
import pytest

import hybrid
from hybrid.models.interchange.from_dd import from_dd
from hybrid.models.interchange.symbolic import FunctionWriter, write_symbolic
from mtbdd.build.rewards import reward_rates, state_rewards
from mtbdd.language.errors import BuildError
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import build
from tests.builders.symbolic_files import CTMC, DTMC, MDP, round_trip
from tests.source_tree import ROOT

QUESTIONS = {
    CTMC: (
        'P=? [ F<=2 "full" ]',
        'R{"length"}=? [ S ]',
        'R{"left"}=? [ C<=3 ]',
        'S=? [ "idle" ]',
        "P=? [ F n=most ]",
    ),
    MDP: ('Pmax=? [ F "top" ]', 'Rmin{"steps"}=? [ F "top" ]', "Pmin=? [ F<=8 tired & x=1 ]"),
    DTMC: ('P=? [ F "end" ]', "P=? [ F low=6 ]", "R=? [ F x=9 | x=0 ]", 'P=? [ F "deadlock" ]'),
}


@pytest.mark.parametrize("text", [CTMC, MDP, DTMC], ids=["ctmc", "mdp", "dtmc"])
@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_a_model_comes_back(text: str, package: str, tmp_path: Path) -> None:
    model = build(text, package)
    again = round_trip(model, tmp_path, package)
    assert (again.type, again.n_states, again.n_choices) == (model.type, model.n_states, model.n_choices)
    assert len(again.layers) == len(model.layers)
    for number, (one, other) in enumerate(zip(model.layers, again.layers, strict=True)):
        assert model.layer_transitions(number).same_as(again.layer_transitions(number))
        assert one.matrix.units == other.matrix.units
        assert {part.action for part in one.parts} == {part.action for part in other.parts}
    numbers = np.arange(model.n_states)
    assert again.describe(numbers) == model.describe(numbers)
    assert again.source.constants == model.source.constants
    assert [v.name for v in again.source.variables] == [v.name for v in model.source.variables]
    for label in model.source.labels:
        assert np.array_equal(
            again.indicator(again.translator.labels[label.name]),
            model.indicator(model.states(label.expression)),
        )
    for sets in ("initial", "deadlocks", "reachable"):
        assert np.array_equal(again.indicator(getattr(again, sets)), model.indicator(getattr(model, sets)))
    for structure in range(len(model.source.rewards)):
        for layer in range(len(model.layers)):
            for rates in (reward_rates, state_rewards):
                args = (structure, model.index, layer) if rates is reward_rates else (structure, model.index)
                theirs = (structure, again.index, *args[2:])
                assert rates(again, *theirs) == pytest.approx(rates(model, *args), rel=1e-14, abs=0)


@pytest.mark.parametrize("text", [CTMC, MDP, DTMC], ids=["ctmc", "mdp", "dtmc"])
def test_answers_stay(text: str, tmp_path: Path) -> None:
    model = build(text)
    again = round_trip(model, tmp_path)
    for question in QUESTIONS[text]:
        one, other = hybrid.check(model, question), hybrid.check(again, question)
        assert other.value == pytest.approx(one.value, rel=1e-9, abs=1e-12), question
        assert other.lower is not None and other.lower <= one.value * (1 + 1e-9) + 1e-12
        assert other.upper is not None and other.upper >= one.value * (1 - 1e-9) - 1e-12


def test_written_twice_is_the_same_file(tmp_path: Path) -> None:
    model = build(MDP)
    write_symbolic(model, tmp_path / "a.dd")
    write_symbolic(round_trip(model, tmp_path), tmp_path / "b.dd")
    assert (tmp_path / "a.dd").read_bytes() == (tmp_path / "b.dd").read_bytes()


def test_a_numbering_is_kept(tmp_path: Path) -> None:
    model = round_trip(build(DTMC), tmp_path)
    assert model.given is not None and model.given.numbering is None
    numbering = np.random.default_rng(3).permutation(model.n_states)
    model.given = dataclasses.replace(model.given, numbering=numbering)
    again = round_trip(model, tmp_path)
    assert again.given is not None and again.given.numbering is not None
    assert np.array_equal(again.given.numbering, numbering)


def test_states_keep_the_numbers_of_the_text_in_other_orders(tmp_path: Path) -> None:
    model = hybrid.load(ROOT / "examples" / "coin.prism", {"K": 1}, order="reversed")
    again = round_trip(model, tmp_path)
    assert model.numbering is not None and again.numbering is not None
    assert np.array_equal(again.numbering, model.numbering)
    assert [v.name for v in again.encoding.shown] == [v.name for v in model.source.variables]
    twice = round_trip(again, tmp_path)
    assert twice.numbering is not None and np.array_equal(twice.numbering, model.numbering)


def test_a_model_without_bits(tmp_path: Path) -> None:
    again = round_trip(build("dtmc module m x : [4..4] init 4; [] true -> true; endmodule"), tmp_path)
    assert (again.n_states, again.n_transitions) == (1, 1)


def test_millions_of_states_take_kilobytes(tmp_path: Path) -> None:
    model = hybrid.load(ROOT / "examples" / "kanban.prism", constants={"t": 5})
    again = round_trip(model, tmp_path)
    assert again.n_states == model.n_states == 2_546_432
    assert again.n_transitions == model.n_transitions
    assert (tmp_path / "m.dd").stat().st_size < 100_000


def test_a_callers_diagrams_come_back(tmp_path: Path) -> None:
    bdd = dd.autoref.BDD()
    bdd.declare("a'", "a b", "free")
    x, y = bdd.var("a b"), bdd.var("a'")
    model = from_dd(
        bdd,
        rows=["a b"],
        columns=["a'"],
        parts=[(0.1, ~x & y), (0.9, ~x & ~y), (1.0, x & y)],
        initial=~x,
        labels={"done": x},
        rewards={"steps": [(1.5, ~x), (-0.25, x & y)]},
    )
    again = round_trip(model, tmp_path)
    assert again.describe(np.arange(2)) == [{"a b": False}, {"a b": True}]
    assert hybrid.check(again, 'R{"steps"}=? [ F "done" ]').value == pytest.approx(15.0)


def test_errors_that_could_not_be_read_again_are_not_written() -> None:
    matrix = build(DTMC).layers[0].matrix
    writer = FunctionWriter(matrix.manager)
    assert writer.function(dataclasses.replace(matrix, units=2.0**26)).units == 2.0**26
    with pytest.raises(BuildError, match="known to eight digits"):
        writer.function(dataclasses.replace(matrix, units=2.0**26 + 1))
