"""Steps state by state over choices: what a step does, which direction is taken, that bounds hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.cpu import choice_passes
from hybrid.matrix.operators.explicit_choices import ExplicitChoices, write_choices
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import (
    ChoiceOperator,
    ChoiceProblem,
    GaussSeidelSteps,
    Improvement,
    Quotient,
)
from hybrid.matrix.space.sweep_direction import last_trial
from hybrid.matrix.space.vector_space import Pair
from hybrid.solvers import Criterion, Optimistic, Status
from tests.builders.choice_systems import Choices, random_choices
from tests.builders.linear_systems import exact_solution
from tests.builders.matrices import from_dense
from tests.contracts.choice_operators import make_operator

SLACK = 64 * UNIT


def written_out(case: Choices, groups: Quotient | None = None) -> ExplicitChoices:
    return ExplicitChoices(
        write_choices(case.offers, case.size), ChoiceProblem(case.size, case.maximise, groups, SLACK)
    )


def by_hand(
    case: Choices, x: np.ndarray, order: list[range], factor: float, shape: np.ndarray | None, policy: Any
) -> np.ndarray:
    """States one after another within each part, those of other parts as they were."""
    out, worst = x.copy(), -np.inf if case.maximise else np.inf
    for part in order:
        seen = x.copy()
        for s in part:
            gains = case.gains[:, s] if shape is None else np.where(np.isinf(case.gains[:, s]), worst, 0.0)
            worth = case.dense[:, s] @ seen + gains
            if policy is not None:
                worth = worth[policy[s] : policy[s] + 1]
            best = worth.max() if case.maximise else worth.min()
            seen[s] = out[s] = factor * best + (0.0 if shape is None else shape[s])
    return out


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("what", ["gains", "shape", "policy"])
def test_a_step_takes_states_one_after_another(
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
    maximise: bool,
    descending: bool,
    parts: int,
    what: str,
) -> None:
    monkeypatch.setattr(choice_passes, "PART_ROWS", 20)
    monkeypatch.setattr(choice_passes, "MOST_PARTS", parts)
    case = random_choices(rng, maximise)
    system, n = written_out(case), case.size
    x, shape = rng.random(n), rng.random(n) if what == "shape" else None
    policy = system.choose(x) if what == "policy" else None
    out = np.full(n, np.nan)
    system.improve(x, out, 0.75, shape=shape, policy=policy, descending=descending)
    cuts = [n * k // parts for k in range(parts + 1)]
    ranges = [range(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    order = [own[::-1] if descending else own for own in ranges]
    np.testing.assert_allclose(out, by_hand(case, x, order, 0.75, shape, policy), rtol=1e-13)
    change = np.abs(out - x)
    np.testing.assert_allclose(system.changes, [change.max(), (change / out).max()], rtol=1e-11)


@pytest.mark.parametrize("descending", [None, True, False])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("done", [0, 3])
def test_several_steps_in_one_call_are_those_one_by_one(
    rng: np.random.Generator, descending: bool | None, count: int, done: int
) -> None:
    system = written_out(random_choices(rng, True))
    n, how = system.size, Improvement(0.75, rng.random(system.size), None, descending)
    pair = rng.random(n), rng.random(n)
    alone = pair[0].copy(), pair[1].copy()
    system.improve_repeatedly(pair, done, count, how)
    changes = system.changes.copy()
    for k in range(done, done + count):
        system.improve(alone[k % 2], alone[1 - k % 2], 0.75, shape=how.shape, descending=descending)
    np.testing.assert_array_equal(pair, alone)
    np.testing.assert_array_equal(changes, system.changes)


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
def test_values_that_rise_one_after_another_stay_below_what_they_are_rounded_from(maximise: bool) -> None:
    """A path: rounded to nearest, half of the values would lie above the numbers that they stand for."""
    size = 24
    rng = np.random.default_rng(7006)
    dense = np.diag(rng.uniform(0.5, 0.9, size - 1), 1)
    gains = rng.uniform(0.01, 0.1, size)
    case = Choices(
        [LayerChoices(0, None, from_dense(dense), gains, None)], dense[None], gains[None], maximise
    )
    steps = written_out(case).rising
    assert steps is not None
    pair = np.zeros(size), np.zeros(size)
    steps.sweep(pair, 0, 2 * size)
    exact = exact_solution(dense, np.ones(size), gains)
    assert all(Fraction(low) < x for low, x in zip(pair[0].tolist(), exact, strict=True))
    np.testing.assert_allclose(pair[0], np.array(exact, dtype=float), rtol=1e-11)


def test_numbers_that_are_none_are_told() -> None:
    case = random_choices(np.random.default_rng(3), True)
    system, out = written_out(case), np.empty(case.size)
    system.improve(np.full(case.size, np.inf), out, descending=True)
    assert np.isinf(system.changes).all()


def test_states_that_share_a_value_are_left_to_steps_of_all() -> None:
    groups = Quotient(np.array([1, 5], np.int64), np.array([0], np.int64))
    system = written_out(random_choices(np.random.default_rng(4), True), groups)
    assert not system.has_gauss_seidel
    assert system.rising is None and system.depth == 1


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_compressed_choices_have_steps_of_all_alone(name: str) -> None:
    system = make_operator(name, random_choices(np.random.default_rng(4), True))
    assert system.rising is None and system.depth == 1
    with pytest.raises(NotImplementedError):
        system.improve(np.zeros(system.size), np.zeros(system.size), descending=True)


def counter(size: int, upwards: bool) -> Choices:
    """A counter that runs to one end, and now and then starts anew."""
    dense, gains = np.zeros((1, size, size)), np.full((1, size), 0.5)
    for s in range(size):
        following = s + 1 if upwards else s - 1
        if 0 <= following < size:
            dense[0, s, following] = 0.9375
        dense[0, s, 0 if upwards else size - 1] += 0.03125
    offers = [LayerChoices(0, None, from_dense(dense[0]), gains[0], None)]
    return Choices(offers, dense, gains, True)


@pytest.mark.parametrize("upwards", [True, False])
def test_the_direction_is_that_in_which_values_come(upwards: bool) -> None:
    case = counter(200, upwards)
    system = written_out(case)
    found = Optimistic(Criterion(1e-10), krylov="never").bounds(system, None)
    assert system.rising is not None
    assert system.rising.direction.descending == upwards
    exact = np.linalg.solve(np.eye(200) - case.dense[0], case.gains[0])
    assert (found.lower <= exact * (1 + 1e-13)).all() and (exact * (1 - 1e-13) <= found.upper).all()
    plain = Optimistic(Criterion(1e-10), krylov="never").bounds(make_operator("cpu", case, slack=SLACK), None)
    assert found.status is plain.status is Status.CONVERGED
    assert 2 * found.products < plain.products


def ring(size: int, leaving: float) -> Choices:
    """Go on to the next state for 1, or leave for much, which costs more the later the state is."""
    following = np.roll(np.eye(size), 1, axis=1)
    dense, gains = np.stack([following, np.zeros((size, size))]), np.ones((2, size))
    gains[1] = leaving + np.arange(size)
    offers = [
        LayerChoices(0, None, from_dense(following), gains[0], None),
        LayerChoices(1, None, None, gains[1], None),
    ]
    return Choices(offers, dense, gains, False)


def test_values_begin_at_what_it_costs_to_leave() -> None:
    """From zeros they would rise by one a step."""
    system = written_out(ring(24, 5000.0))
    assert 4999.0 < system.constant_below() <= 5000.0
    found = Optimistic(Criterion(1e-10)).bounds(system, None)
    exact = [min(5000.0 + s, 5024.0 - s) for s in range(24)]
    assert found.status is Status.CONVERGED and found.products < 200
    assert (found.lower <= exact).all() and (found.upper >= exact).all()


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
def test_a_beginning_that_is_no_bound_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, maximise: bool
) -> None:
    system = written_out(random_choices(rng, maximise))
    known = Optimistic(Criterion(1e-10)).bounds(system, None)
    assert 0.0 < system.constant_below() <= known.upper.min()
    monkeypatch.setattr(ExplicitChoices, "constant_below", lambda self: float(known.upper.max()) * 1.5)
    ended = Optimistic(Criterion(1e-10, max_iterations=1)).bounds(system, None)
    assert (ended.lower <= known.upper).all()


def test_nothing_is_known_to_begin_with_where_steps_are_free() -> None:
    case = ring(8, 3.0)
    case.offers[0].gain[2] = 0.0
    assert written_out(case).constant_below() == 0.0


class Recorded:
    """An operator that notes directions; values rise by as much as it is told for each of them."""

    def __init__(self, down: float, up: float) -> None:
        self.space: Any = written_out(random_choices(np.random.default_rng(1), True)).space
        self.changes = np.zeros(2)
        self.rises = {True: down, False: up}
        self.directions: list[bool] = []

    def improve_repeatedly(self, pair: Pair, done: int, count: int, how: Improvement) -> None:
        assert how.descending is not None
        for k in range(done, done + count):
            self.directions.append(how.descending)
            pair[1 - k % 2][:] = pair[k % 2] + self.rises[how.descending]


@pytest.mark.parametrize(("down", "up"), [(2.0, 1.0), (1.0, 2.0)])
def test_a_trial_compares_as_many_steps_of_either(down: float, up: float) -> None:
    operator, pair = Recorded(down, up), (np.zeros(3), np.zeros(3))
    steps = GaussSeidelSteps(operator, 1.0)
    for k in range(130):
        steps.sweep(pair, k, 1)
    first, better = operator.directions[:16], down > up
    assert first == [True] * 4 + [False] * 8 + [True] * 4
    assert operator.directions[16:128] == [better] * 112
    # The next trial begins with the better one.
    assert operator.directions[128:] == [better] * 2


def test_trials_become_rarer() -> None:
    assert [last_trial(k) for k in (0, 16, 127, 128, 1023, 1024, 8191, 8192)] == [
        0, 0, 0, 128, 128, 1024, 1024, 8192,
    ]  # fmt: skip


def test_a_direction_that_is_known_is_not_tried_at_first() -> None:
    operator, pair = Recorded(1.0, 2.0), (np.zeros(3), np.zeros(3))
    GaussSeidelSteps(operator, 1.0, descending=False).sweep(pair, 0, 40)
    assert operator.directions == [False] * 40


@pytest.mark.parametrize("at", [0, 3, 7, 14, 40])
def test_what_is_told_is_where_it_goes_on(at: int) -> None:
    whole, broken = Recorded(1.0, 2.0), Recorded(1.0, 2.0)
    pair, other = (np.zeros(3), np.zeros(3)), (np.zeros(3), np.zeros(3))
    GaussSeidelSteps(whole, 1.0).sweep(pair, 0, 50)
    before, after = GaussSeidelSteps(broken, 1.0), GaussSeidelSteps(broken, 1.0)
    before.sweep(other, 0, at)
    after.take(before.told())
    after.sweep(other, at, 50 - at)
    assert broken.directions == whole.directions


def test_without_numbers_it_begins_like_any_other() -> None:
    steps = GaussSeidelSteps(Recorded(1.0, 2.0), 1.0)
    steps.take({"made": 3.0})
    assert steps.direction.descending


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
def test_values_rise_and_no_further_than_the_optimum(rng: np.random.Generator, maximise: bool) -> None:
    case = random_choices(rng, maximise, zeros=0.5)
    system: ChoiceOperator = written_out(case)
    found = Optimistic(Criterion(1e-12)).bounds(system, None)
    pair = system.zeros(), system.zeros()
    assert system.rising is not None
    before = pair[0].copy()
    for k in range(40):
        system.rising.sweep(pair, k, 1)
        now = pair[1 - k % 2]
        assert (now >= before * (1 - 1e-13)).all()
        assert (now <= found.upper).all()
        before = now.copy()


def test_a_step_beyond_doubles_leaves_the_bound_before_it() -> None:
    """The step that the guess of an ended iteration asks for is no part of the answer if it overflows."""
    offers = [LayerChoices(0, None, from_dense(np.array([[0.9375]])), np.array([1e308]), None)]
    system = ExplicitChoices(write_choices(offers, 1), ChoiceProblem(1, True, None, SLACK))
    found = Optimistic(Criterion(max_iterations=1)).bounds(system, None)
    assert found.status is Status.MAX_ITERATIONS
    assert 0.0 < found.lower[0] <= 1e308 and found.upper[0] == np.inf
