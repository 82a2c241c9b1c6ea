"""Operators over the choices of models: their layers, groups on rings, threads, values on a device."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from gpu_kernels import ChoiceRows, Device
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.operators.array_choices import ArrayChoices
from hybrid.matrix.operators.explicit_choices import ExplicitChoices, write_choices
from hybrid.matrix.operators.hybrid_choices import hybrid_choices
from hybrid.matrix.operators.layer_choices import LayerChoices, choice_slack, layer_choices_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from mtbdd.build.model import SymbolicModel
from tests.builders.choice_systems import best_of
from tests.builders.matrices import to_dense
from tests.builders.mdp_texts import GRID, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.builders.models import build


def _offers(model: SymbolicModel, maximise: bool, many: bool, rng: np.random.Generator) -> list[LayerChoices]:
    gains = rng.random(model.n_states) if many else np.round(3 * rng.random(model.n_states))

    def gain(layer: int, rows: object) -> np.ndarray:
        inside = model.indicator(rows.states)  # type: ignore[attr-defined]
        return gains[inside] + layer

    allowed = [layer.enabled for layer in model.layers]
    return layer_choices_of(model, model.index, allowed, gain, maximise)


def _dense_step(
    model: SymbolicModel, layer_choices: list[LayerChoices], x: np.ndarray, maximise: bool
) -> np.ndarray:
    """Return what every layer's choice is worth, shape (layers, n)."""
    worst = -np.inf if maximise else np.inf
    worth = np.full((len(model.layers), model.n_states), worst)
    for offer in layer_choices:
        place = slice(None) if offer.place is None else offer.place
        product = (to_dense(model.layer_transitions(offer.layer)) @ x)[place]
        worth[offer.layer, place] = product + offer.gain
    return worth


def _systems(
    model: SymbolicModel, layer_choices: list[LayerChoices], maximise: bool, groups: Quotient | None
) -> list[ChoiceOperator]:
    slack, n = choice_slack(model), model.n_states
    return [
        hybrid_choices(
            layer_choices,
            ChoiceProblem(n, maximise, groups, slack),
            CheckOptions(backend="cpu").matrix_backend(),
        ),
        hybrid_choices(
            layer_choices,
            ChoiceProblem(n, maximise, groups, slack),
            CheckOptions(backend="reference").matrix_backend(),
            4,
        ),
        ArrayChoices(write_choices(layer_choices, n), ChoiceProblem(n, maximise, groups, slack)),
        ExplicitChoices(write_choices(layer_choices, n), ChoiceProblem(n, maximise, groups, slack)),
    ]


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("many", [True, False], ids=["gains", "codes"])
def test_steps_equal_dense_ones(maximise: bool, many: bool, rng: np.random.Generator) -> None:
    model = build(GRID, n=9)
    layer_choices = _offers(model, maximise, many, rng)
    assert any(o.place is not None for o in layer_choices)
    assert any(o.place is None for o in layer_choices)
    x, out = rng.random(model.n_states), np.empty(model.n_states)
    worth = _dense_step(model, layer_choices, x, maximise)
    for system in _systems(model, layer_choices, maximise, None):
        system.improve(x, out, 0.5)
        np.testing.assert_allclose(out, 0.5 * best_of(worth, maximise), rtol=1e-13)


def test_steps_in_numpy_give_way_with_other_gains_too(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled steps follow, of the gains that are there then."""
    monkeypatch.setattr("hybrid.matrix.operators.array_choices._MOST", 1)
    model = build(GRID, n=9)
    first, second = (_offers(model, True, many, rng) for many in (True, False))
    problem, made = ChoiceProblem(model.n_states, True, None, choice_slack(model)), []

    def compiled(rows: ChoiceRows, own: ChoiceProblem) -> ExplicitChoices:
        made.append(rows)
        return ExplicitChoices(rows, own)

    own = ArrayChoices(write_choices(first, model.n_states), problem, later=compiled)
    other = own.with_rewards(second, problem)
    x, out = rng.random(model.n_states), np.empty(model.n_states)
    for system, layer_choices in ((own, first), (other, second)):
        worth = _dense_step(model, layer_choices, x, True)
        for _ in range(3):
            system.improve(x, out)
            np.testing.assert_allclose(out, best_of(worth, True), rtol=1e-13)
    assert [rows is system.rows for rows, system in zip(made, (own, other), strict=True)] == [True, True]


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("ranks", [0, 8], ids=["lists", "ranks"])
def test_the_best_choice_is_found_among_all(
    ranks: int, maximise: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.array_choices._RANKS", ranks)
    model = build(GRID, n=9)
    offers = _offers(model, maximise, True, rng)
    problem = ChoiceProblem(model.n_states, maximise, None, choice_slack(model))
    system, out = ArrayChoices(write_choices(offers, model.n_states), problem), np.empty(model.n_states)
    for _ in range(3):
        x = rng.random(model.n_states)
        system.improve(x, out)
        np.testing.assert_allclose(
            out, best_of(_dense_step(model, offers, x, maximise), maximise), rtol=1e-13
        )


def test_threads_and_engines_agree_on_many_states(rng: np.random.Generator) -> None:
    model = build(GRID, n=159)
    for maximise in (True, False):
        layer_choices = _offers(model, maximise, False, rng)
        x = rng.random(model.n_states)
        first, *others = _systems(model, layer_choices, maximise, None)
        expected, out = np.empty(model.n_states), np.empty(model.n_states)
        first.improve(x, expected)
        for system in others:
            system.improve(x, out)
            np.testing.assert_allclose(out, expected, rtol=1e-13)
            np.testing.assert_allclose(
                system.space.read(system.changes), first.space.read(first.changes), rtol=1e-11
            )


def test_a_system_without_transitions_inside_is_solved() -> None:
    model = build(
        "mdp module m x : [0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);"
        "[] x>0 -> true; endmodule"
    )
    for options in ({"engine": "explicit"}, {"backend": "cpu"}, {"backend": "reference"}):
        answer = hybrid.check(model, "Pmax=? [ F x=1 ]", **options)
        assert answer.lower <= 0.5 <= answer.upper
        answer = hybrid.check(model, "Pmin=? [ F x=1 ]", **options)
        assert answer.lower <= 0.25 <= answer.upper


def test_the_explicit_engine_says_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("hybrid.matrix.operators.explicit_choices.free_memory_bytes", lambda: 100)
    model = build(GRID, n=5)
    with pytest.raises(MemoryError, match="use engine='hybrid'"):
        hybrid.check(model, 'R{"few"}max=? [ C<=3 ]', engine="explicit")


@pytest.mark.parametrize(
    ("prop", "exact"),
    [
        ("Pmax=? [ F x=2 ]", 0.6),
        ("Pmin=? [ F x=2 ]", 0.25),
        ("Pmax=? [ F<=3 x=2 ]", 0.45),
        ('R{"tries"}max=? [ F x>=2 ]', 2.0),
        ('R{"tries"}min=? [ F x>=2 ]', 1.0),
    ],
)
@pytest.mark.parametrize("method", ["auto", "interval"])
def test_values_on_a_device(device: Device, prop: str, exact: float, method: str) -> None:
    answer = hybrid.check(build(SLOW_WAY), prop, backend="gpu", method=method, throw=False)
    assert answer.error is None
    assert answer.lower is not None and answer.upper is not None
    assert answer.lower <= exact <= answer.upper
    assert answer.upper - answer.lower < 1e-7
    assert answer.statistics.backend == "gpu"


def test_schedulers_and_groups_on_a_device(device: Device) -> None:
    model = build(WAITING_ROOM)
    answer = hybrid.check(model, "Rmin=? [ F x=3 ]", backend="gpu", scheduler=True)
    assert answer.lower is not None and answer.upper is not None
    assert answer.lower <= 5.0 <= answer.upper
    assert answer.statistics.backend == "gpu"
    assert answer.scheduler is not None
    names, numbers = answer.scheduler.actions()
    assert [names[n] for n in numbers[:2]] == ["walk", "out"]
    answer = hybrid.check(build(ROOMS), "Pmax=? [ G F x=3 ]", backend="gpu")
    assert answer.lower is not None and answer.upper is not None
    assert answer.lower <= 0.75 <= answer.upper
