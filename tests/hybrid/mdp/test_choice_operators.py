"""Steps over choices, compressed, written out and on a device, against dense matrices; groups, policies."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.operators.explicit_choices import ExplicitChoices
from hybrid.operators.hybrid_choices import hybrid_choices
from hybrid.operators.offers import Offer, choice_slack, offers_of
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_operator import NO_CHOICE, ChoiceOperator, Quotient
from mtbdd.model import SymbolicModel
from tests.gpu_kernels.devices import device  # noqa: F401
from tests.helpers import to_dense
from tests.hybrid.mdp.models import ROOMS, SLOW_WAY, WAITING_ROOM
from tests.model_checks import build

# Three layers: most states have two choices, few a third; rewards take as many values as there are states.
GRID = """
mdp
const int n;
module m
  x : [0..n]; y : [0..n];
  [east] x<n -> 0.75 : (x'=x+1) + 0.25 : (y'=max(y-1,0));
  [north] y<n -> 0.5 : (y'=y+1) + 0.5 : (x'=max(x-1,0));
  [home] mod(x+y,7)=0 & x>0 -> 0.125 : (x'=0)&(y'=0) + 0.875 : (x'=x-1);
  [end] x=n & y=n -> true;
endmodule
rewards "many" true : x*1.37 + y*0.11 + x*y; endrewards
rewards "few" [home] true : 2; [east] true : 1; endrewards
"""


def _offers(model: SymbolicModel, maximise: bool, many: bool, rng: np.random.Generator) -> list[Offer]:
    gains = rng.random(model.n_states) if many else np.round(3 * rng.random(model.n_states))

    def gain(layer: int, rows: object) -> np.ndarray:
        inside = model.indicator(rows.states)  # type: ignore[attr-defined]
        return gains[inside] + layer

    allowed = [layer.enabled for layer in model.layers]
    return offers_of(model, model.index, allowed, gain, maximise)


def _dense_step(
    model: SymbolicModel, offers: list[Offer], x: np.ndarray, maximise: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return what every layer's choice is worth, with gains and without, shape (layers, n)."""
    worst = -np.inf if maximise else np.inf
    worth = np.full((len(model.layers), model.n_states), worst)
    plain = worth.copy()
    for offer in offers:
        place = slice(None) if offer.place is None else offer.place
        product = (to_dense(model.layer_transitions(offer.layer)) @ x)[place]
        worth[offer.layer, place] = product + offer.gain
        plain[offer.layer, place] = np.where(np.isfinite(offer.gain), product, offer.gain)
    return worth, plain


def _systems(
    model: SymbolicModel, offers: list[Offer], maximise: bool, groups: Quotient | None
) -> list[ChoiceOperator]:
    slack, n = choice_slack(model), model.n_states
    return [
        hybrid_choices(offers, n, maximise, groups, slack, CheckOptions(backend="cpu")),
        hybrid_choices(offers, n, maximise, groups, slack, CheckOptions(backend="reference", level=4)),
        ExplicitChoices(offers, n, maximise, groups, slack),
    ]


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("many", [True, False], ids=["gains", "codes"])
def test_steps_equal_dense_ones(maximise: bool, many: bool, rng: np.random.Generator) -> None:
    model = build(GRID, n=9)
    offers = _offers(model, maximise, many, rng)
    assert any(o.place is not None for o in offers)
    assert any(o.place is None for o in offers)
    x, shape = rng.random(model.n_states), rng.random(model.n_states)
    worth, plain = _dense_step(model, offers, x, maximise)
    best = worth.max(axis=0) if maximise else worth.min(axis=0)
    for system in _systems(model, offers, maximise, None):
        out = np.empty(model.n_states)
        system.improve(x, out, 0.5)
        np.testing.assert_allclose(out, 0.5 * best, rtol=1e-13)
        change = np.abs(0.5 * best - x)
        np.testing.assert_allclose(
            system.space.read(system.changes), [change.max(), (change / (0.5 * best)).max()], rtol=1e-11
        )
        system.improve(x, out, shape=shape)
        expected = (plain.max(axis=0) if maximise else plain.min(axis=0)) + shape
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        policy = system.choose(x)
        np.testing.assert_allclose(worth[policy, np.arange(model.n_states)], best, rtol=1e-13)
        other = worth.argmin(axis=0) if maximise else worth.argmax(axis=0)
        other = np.where(np.isfinite(worth.min(axis=0)), other, policy).astype(np.uint16)
        system.improve(x, out, policy=other)
        np.testing.assert_allclose(out, worth[other, np.arange(model.n_states)], rtol=1e-13)
        assert system.nbytes > 0
        assert system.operand_bytes > 0


@pytest.mark.parametrize("maximise", [True, False])
def test_members_of_a_group_share_the_best_value(maximise: bool, rng: np.random.Generator) -> None:
    model = build(GRID, n=5)
    n = model.n_states
    offers = _offers(model, maximise, True, rng)
    members = rng.permutation(n)[:9].astype(np.int64)
    groups = Quotient(members, np.array([0, 2, 5]))
    x = rng.random(n)
    worth, _ = _dense_step(model, offers, x, maximise)
    best = worth.max(axis=0) if maximise else worth.min(axis=0)
    expected = best.copy()
    for own in np.split(members, [2, 5]):
        expected[own] = best[own].max() if maximise else best[own].min()
    for system in _systems(model, offers, maximise, groups):
        out = np.empty(n)
        system.improve(x, out)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        policy = system.choose(x)
        for own in np.split(members, [2, 5]):
            chosen = own[policy[own] != NO_CHOICE]
            assert len(chosen) == 1
            np.testing.assert_allclose(worth[policy[chosen[0]], chosen[0]], expected[chosen[0]], rtol=1e-13)
        # A policy's own steps give all members the value of the one that has the choice.
        system.improve(x, out, policy=policy)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        rings_members, rings = system._rings()
        own_values = best[rings_members]
        for ring in rings:
            reduce = np.maximum if maximise else np.minimum
            own_values = reduce(own_values, own_values[ring])
        np.testing.assert_allclose(own_values, expected[members], rtol=1e-13)


def test_threads_and_engines_agree_on_many_states(rng: np.random.Generator) -> None:
    model = build(GRID, n=159)
    for maximise in (True, False):
        offers = _offers(model, maximise, False, rng)
        x = rng.random(model.n_states)
        first, *others = _systems(model, offers, maximise, None)[::2]
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
    monkeypatch.setattr("hybrid.operators.choice_rows.free_memory_bytes", lambda: 100)
    model = build(GRID, n=5)
    with pytest.raises(MemoryError, match="use --engine hybrid"):
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
def test_values_on_a_device(device: Device, prop: str, exact: float, method: str) -> None:  # noqa: F811
    answer = hybrid.check(build(SLOW_WAY), prop, backend="gpu", method=method, throw=False)
    assert answer.error is None
    assert answer.lower is not None and answer.upper is not None
    assert answer.lower <= exact <= answer.upper
    assert answer.upper - answer.lower < 1e-7
    assert answer.statistics.backend == "gpu"


def test_schedulers_and_groups_on_a_device(device: Device) -> None:  # noqa: F811
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
