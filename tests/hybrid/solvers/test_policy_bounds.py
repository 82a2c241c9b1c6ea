"""Policy iteration with IDR(s): exact values, when it is tried, what is left when it fails."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.matrix.gpu.idr import DeviceIDR, PolynomialIDR
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bellman import LowerIterationState, Outcome
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.choice_operator import BOUND_VECTORS, ChoiceOperator, FixedPolicy, Quotient
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.repeated import STEPS, RepeatedIDR, RepeatedSystem
from hybrid.matrix.space.vector_space import RecurrenceStatus
from hybrid.solvers import Criterion, Optimistic, Status
from hybrid.solvers.optimistic import accelerator_for
from hybrid.solvers.policy_bounds import MORE_VECTORS, PolicyBounds, PolicyIteration, WeightGuess
from tests.builders.choice_systems import Choices
from tests.builders.failing_recurrences import FAILURES
from tests.builders.linear_systems import exact_solution
from tests.builders.matrices import from_dense
from tests.builders.stopping import StopAfter
from tests.contracts.choice_operators import ONE_PASS, make_operator
from tests.exploring import each

Krylov = Literal["auto", "always", "never"]
OPERATORS = ("cpu", "reference", "written out")
ON_DEVICE = (ONE_PASS, "gpu, written out")
SIZE = 30

both = pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
EITHER = [
    pytest.param(krylov, maximise, id=f"{krylov}-{'max' if maximise else 'min'}")
    for krylov in ("auto", "always")
    for maximise in (True, False)
]


def walk(maximise: bool, size: int = SIZE, zeros: int = 0) -> Choices:
    """A walk to the last state with two choices everywhere, which lead, lose, and cost more or less.

    Some states besides lead nowhere.
    """
    rng, n = np.random.default_rng(5), size + zeros
    dense, gains = np.zeros((2, n, n)), np.zeros((2, n))
    for k in range(2):
        for s in range(size):
            drift, loss = rng.integers(-1, 2) / 64.0, rng.choice([1.0, 2.0, 8.0]) / 4096.0
            dense[k, s, max(s - 1, 0)] += 0.5 - drift - loss
            if s + 1 < size:
                dense[k, s, s + 1] = 0.5 + drift - loss
            else:
                gains[k, s] = 0.5
    if not maximise:
        gains[:, :size] += rng.integers(1, 5, (2, size)) / 64.0
    offers = [LayerChoices(k, None, from_dense(dense[k]), gains[k], None) for k in range(2)]
    return Choices(offers, dense, gains, maximise)


@functools.cache
def optimum(maximise: bool, size: int = SIZE, zeros: int = 0) -> tuple[Fraction, ...]:
    """The exact solution, by policy iteration in fractions."""
    case, states = walk(maximise, size, zeros), np.arange(size + zeros)
    choose, policy = max if maximise else min, np.ones(size + zeros, int)
    rows = [
        [[(j, Fraction(v)) for j, v in enumerate(case.dense[k, s].tolist()) if v] for s in states]
        for k in range(2)
    ]
    while True:
        x = exact_solution(case.dense[policy, states], np.ones(len(states)), case.gains[policy, states])
        worth = [
            [sum((v * x[j] for j, v in rows[k][s]), Fraction(case.gains[k, s])) for k in range(2)]
            for s in states
        ]
        better = np.array(
            [p if w[p] == choose(w) else w.index(choose(w)) for w, p in zip(worth, policy, strict=True)]
        )
        if (better == policy).all():
            return tuple(x)
        policy = better


def solved(
    operator: ChoiceOperator, krylov: Krylov, criterion: Criterion | None = None, progress: Any = None
) -> BoundedSolution:
    return Optimistic(criterion or Criterion(), krylov=krylov).bounds(operator, None, progress)


def operator_of(maximise: bool, name: str = "cpu", **options: int) -> ChoiceOperator:
    return make_operator(name, walk(maximise, **options), slack=64 * UNIT)


@functools.cache
def on_the_host(krylov: Krylov, maximise: bool, grouped: bool = False) -> BoundedSolution:
    """What is found on the host, the same for all that is compared with it."""
    groups = Quotient(np.array([3, 20, 25], np.int64), np.array([0], np.int64)) if grouped else None
    return solved(make_operator("cpu", walk(maximise), groups, 64 * UNIT), krylov)  # type: ignore[arg-type]


def holds(exact: tuple[Fraction, ...], found: BoundedSolution) -> None:
    for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert 0 <= Fraction(low) <= x <= (Fraction(high) if high < np.inf else x)


@both
def test_both_choices_are_taken(maximise: bool) -> None:
    case, x = walk(maximise), np.array([float(v) for v in optimum(maximise)])
    worth = case.dense @ x + case.gains
    best = worth.argmax(axis=0) if maximise else worth.argmin(axis=0)
    assert 0 < np.count_nonzero(best) < SIZE


@both
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("krylov", ["auto", "always"])
def test_slow_processes_take_few_products(krylov: Krylov, name: str, maximise: bool) -> None:
    plain = on_the_host("never", maximise)
    found = solved(operator_of(maximise, name), krylov)
    assert plain.status is found.status is Status.CONVERGED
    # Of few states whose equations are at hand these may be factorised first.
    assert found.more_vectors == MORE_VECTORS or (krylov == "auto" and name == "written out")
    assert plain.more_vectors == 0
    assert found.products < 0.5 * plain.products
    for own in (plain, found):
        holds(optimum(maximise), own)
        assert (own.upper - own.lower <= 1e-8 * own.upper).all()


@both
@pytest.mark.parametrize("grouped", [False, True], ids=["single states", "groups"])
@pytest.mark.parametrize("name", ON_DEVICE)
def test_devices_solve_for_policies(device: Device, name: str, grouped: bool, maximise: bool) -> None:
    groups = Quotient(np.array([3, 20, 25], np.int64), np.array([0], np.int64)) if grouped else None
    plain, host = (on_the_host(krylov, maximise, grouped) for krylov in ("never", "always"))
    found = solved(make_operator(name, walk(maximise), groups, 64 * UNIT), "always")  # type: ignore[arg-type]
    assert found.status is Status.CONVERGED and found.more_vectors == MORE_VECTORS
    assert found.products < 0.5 * plain.products
    # Looks are rarer there.
    assert found.products < host.products + 300
    if not grouped:
        holds(optimum(maximise), found)
    assert (plain.lower <= found.upper).all() and (found.lower <= plain.upper).all()
    assert (found.upper - found.lower <= 1e-8 * found.upper).all()


@pytest.mark.parametrize(
    ("epsilon", "absolute", "maximise"),
    each([1e-2, 1e-6, 1e-10, 1e-14], [(False, True), (True, True), (True, False), (False, False)]),
)
def test_bounds_are_as_close_as_asked(maximise: bool, epsilon: float, absolute: bool) -> None:
    found = solved(operator_of(maximise), "always", Criterion(epsilon, absolute))
    assert found.status is Status.CONVERGED
    holds(optimum(maximise), found)
    width = found.upper - found.lower
    assert (width <= max(epsilon, 1e-9) * (1.0 if absolute else found.upper)).all()


@both
def test_members_of_a_group_share_what_is_found(maximise: bool) -> None:
    plain, found = (on_the_host(krylov, maximise, True) for krylov in ("never", "always"))
    assert found.more_vectors == MORE_VECTORS
    assert len(set(found.lower[[3, 20, 25]].tolist())) == 1
    assert (plain.lower <= found.upper).all() and (found.lower <= plain.upper).all()
    assert (found.upper - found.lower <= 1e-8 * found.upper).all()


def test_quick_processes_are_left_to_value_iteration() -> None:
    plain, found = (solved(operator_of(True, size=8), krylov) for krylov in ("never", "auto"))
    assert found.more_vectors == 0
    assert found.products == plain.products
    assert found.upper.tolist() == plain.upper.tolist()


@pytest.mark.parametrize(
    ("fails", "krylov", "maximise"),
    each(FAILURES, EITHER),
)
def test_nothing_is_lost_where_it_fails(
    monkeypatch: pytest.MonkeyPatch, fails: Any, krylov: Krylov, maximise: bool
) -> None:
    plain = on_the_host("never", maximise)
    monkeypatch.setattr(IDR, "advance", fails)
    # Several steps for a product are tried, too, after products.
    monkeypatch.setattr(RepeatedIDR, "cycles", IDR.cycles // STEPS)
    found = solved(operator_of(maximise), krylov)
    assert found.more_vectors == MORE_VECTORS + RepeatedSystem.more_vectors
    assert found.status is Status.CONVERGED
    assert found.lower.tolist() == plain.lower.tolist()
    assert found.upper.tolist() == plain.upper.tolist()
    assert plain.products < found.products < (1.75 if krylov == "auto" else 5.0) * plain.products


def only_by_steps(monkeypatch: pytest.MonkeyPatch, plain: type, by_steps: type) -> list[type]:
    """Have products lead nowhere; return a list to which the kinds of recurrences that advance are added."""
    made: list[type] = []
    for kind, fails in ((by_steps, False), (plain, True)):

        def advance(self: Any, most: int, own: Any = kind.advance, fails: bool = fails) -> RecurrenceStatus:
            assert most >= 1
            if not made or made[-1] is not type(self):
                made.append(type(self))
            if fails and not isinstance(self, by_steps):
                return RecurrenceStatus(1, np.inf, ended=True, broken=True)
            standing: RecurrenceStatus = own(self, most)
            return standing

        monkeypatch.setattr(kind, "advance", advance)
    return made


@both
@pytest.mark.parametrize("krylov", ["auto", "always"])
def test_where_products_fail_several_steps_lead_on(
    monkeypatch: pytest.MonkeyPatch, krylov: Krylov, maximise: bool
) -> None:
    plain, made = on_the_host("never", maximise), only_by_steps(monkeypatch, IDR, RepeatedIDR)
    found = solved(operator_of(maximise), krylov)
    # What has failed is not tried again.
    assert made == [IDR, RepeatedIDR]
    assert found.status is Status.CONVERGED and found.products < plain.products
    assert found.more_vectors == MORE_VECTORS + RepeatedSystem.more_vectors
    holds(optimum(maximise), found)


@both
def test_so_they_do_on_a_device(device: Device, monkeypatch: pytest.MonkeyPatch, maximise: bool) -> None:
    made = only_by_steps(monkeypatch, DeviceIDR, PolynomialIDR)
    found = solved(make_operator(ONE_PASS, walk(maximise), None, 64 * UNIT), "always")
    assert made == [DeviceIDR, PolynomialIDR]
    assert found.status is Status.CONVERGED
    holds(optimum(maximise), found)


def test_without_room_for_them_products_alone_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = only_by_steps(monkeypatch, IDR, RepeatedIDR)
    monkeypatch.setattr(RepeatedSystem, "more_vectors", 1 << 40)
    found = solved(operator_of(True), "always")
    assert set(made) == {IDR}
    assert found.more_vectors == MORE_VECTORS and found.status is Status.CONVERGED


def test_who_is_told_to_end_tries_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[type] = set()
    own = IDR.restart

    def restart(self: IDR) -> float:
        seen.add(type(self))
        return own(self)

    monkeypatch.setattr(IDR, "restart", restart)
    monkeypatch.setattr("hybrid.solvers.krylov_bounds._LOOK", 1)
    for count in range(15, 400, 5):
        found = solved(operator_of(True), "always", progress=StopAfter(count))
        assert found.status in (Status.INTERRUPTED, Status.CONVERGED)
    assert seen == {IDR}


def test_equations_that_seem_solved_are_solved_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they seem where the iterate lies above what loose equations lead to."""
    operator, clock = operator_of(True), Clock(None)
    held = LowerIterationState(
        operator.zeros() + 0.1, np.empty(SIZE), None, np.empty(SIZE), 4, None, lambda: ({}, {})
    )
    course = PolicyIteration(operator, held, 1e6, clock, 0.0)
    goals: list[float] = []
    own = PolicyIteration._solved

    def loose(self: PolicyIteration, b: Any, start: Any, shape: Any, goal: float) -> Any:
        goals.append(goal)
        return np.array(start) if goal > 1e-6 else own(self, b, start, shape, goal)

    monkeypatch.setattr(PolicyIteration, "_solved", loose)
    found = course.approach(1e-4)
    assert found is not None and found <= 1e-4
    assert len(goals) < 8 and min(goals) <= 1e-6


def test_tries_are_told_what_guesses_want(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    own = PolicyBounds.budget

    def budget(self: PolicyBounds, held: LowerIterationState, difference: float) -> float:
        told.append(held.target)
        own(self, held, difference)
        return 0.0

    monkeypatch.setattr(PolicyBounds, "budget", budget)
    found = solved(operator_of(True), "auto", Criterion(1e-2))
    assert found.status is Status.CONVERGED
    assert told[0] == 1e-2 and min(told) < 1e-4
    assert told == sorted(told, reverse=True)


def test_a_try_that_no_pace_speaks_for_has_room_for_its_first_policies() -> None:
    bounds = PolicyBounds(operator_of(True), Criterion(), always=False)
    budgets = []
    for made in range(10, 12_000, 10):
        held = LowerIterationState(
            np.empty(0), np.empty(0), None, np.empty(0), made, None, lambda: ({}, {}), 1e-9
        )
        budgets.append((made, bounds.budget(held, 0.01)))
    due = [pair for pair in budgets if pair[1] > 0.0]
    assert due[0] == (500, 2000.0) and due[-1] == (11_990, 4 * 11_990.0)


def test_weights_take_no_longer_than_the_iteration_before_them() -> None:
    dense, gains, x = np.full((1, 1, 1), 1.0 - 2.0**-13), np.full((1, 1), 2.0**-13), np.ones(1)
    offers = [LayerChoices(0, None, from_dense(dense[0]), gains[0], None)]
    guess = WeightGuess(make_operator("cpu", Choices(offers, dense, gains, True)), Criterion(1e-8))
    # The last search goes on where those before it were given up.
    cases = (1e-9, 10, 1010, 1018), (1e-9, 500, 1500, 1508), (0, 10, 2500, 3600)
    for difference, made, least, most in cases:
        outcome = Outcome()
        outcome.iterations, outcome.difference = made, float(difference)
        found = guess.verified(x, np.empty(1), made, outcome, None)
        assert least <= outcome.iterations - made <= most
        # In vain; or for as long as it takes, where nothing changes any more.
        assert (guess._weights is not None) == (difference == 0)
        assert difference == 0 or found == difference / 16.0


# lemma: park
def test_weights_that_no_step_verifies_give_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, gains = np.full((1, 1, 1), 0.5), np.full((1, 1), 0.5)
    offers = [LayerChoices(0, None, from_dense(dense[0]), gains[0], None)]
    operator = make_operator("cpu", Choices(offers, dense, gains, True))
    for holds in (True, False):
        outcome, x, y = Outcome(), np.ones(1), np.empty(1)
        outcome.iterations, outcome.difference = 60, 1e-12
        monkeypatch.setattr(operator, "verifies", lambda *_, holds=holds: holds)
        found = WeightGuess(operator, Criterion(1e-6)).verified(x, y, 60, outcome, None)
        assert (found is None) is holds


@both
def test_wrong_guesses_pass_no_verification(monkeypatch: pytest.MonkeyPatch, maximise: bool) -> None:
    """Whatever a course claims to have found, bounds are verified."""
    approach = PolicyIteration.approach
    lies = []
    factors = (1.0 - 1e-6, 0.0, -1.0) if maximise else (1.0 + 1e-6, 1.0 - 1e-6, 2.0)
    for factor in factors:

        def lie(self: PolicyIteration, target: float, factor: float = factor) -> float | None:
            approach(self, target)
            lies.append(factor)
            self.z *= factor
            return 1e-15

        with monkeypatch.context() as patch:
            patch.setattr(PolicyIteration, "approach", lie)
            found = solved(operator_of(maximise), "always")
        assert found.status is Status.CONVERGED
        holds(optimum(maximise), found)
        assert (found.upper - found.lower <= 1e-8 * found.upper).all()
    assert set(lies) == set(factors)


def test_a_weight_of_one_policy_is_not_that_of_all() -> None:
    """For a maximum w has to go down whatever is chosen, and a choice of no value may lead furthest."""
    dense, gains = np.zeros((2, 3, 3)), np.zeros((2, 3))
    gains[0], gains[1, 2] = [0.5, 0.25, 0.125], 0.0625
    dense[1] = [[0.0, 0.96875, 0.0], [0.9375, 0.0, 0.03125], [0.5, 0.0, 0.25]]
    offers = [
        LayerChoices(0, None, None, gains[0], None),
        LayerChoices(1, None, from_dense(dense[1]), gains[1], None),
    ]
    operator = make_operator("cpu", Choices(offers, dense, gains, True), slack=64 * UNIT)
    found = solved(operator, "always", Criterion(1e-10))
    x = found.values
    step = (dense @ x + gains).max(axis=0)
    np.testing.assert_allclose(step, x, rtol=1e-9)
    assert found.status is Status.CONVERGED
    assert (found.upper - found.lower <= 1e-10 * found.upper).all()


@both
def test_states_of_no_value_stay_at_zero(maximise: bool) -> None:
    found = solved(operator_of(maximise, zeros=4), "always")
    assert found.more_vectors > 0 and found.status is Status.CONVERGED
    assert found.lower[SIZE:].tolist() == found.upper[SIZE:].tolist() == [0.0] * 4
    holds(optimum(maximise, zeros=4), found)


def test_it_is_not_tried_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = HostSpace.reserve

    def refuse(self: HostSpace, vectors: int, size: int) -> None:
        if vectors > BOUND_VECTORS:
            raise MemoryError
        reserve(self, vectors, size)

    monkeypatch.setattr(HostSpace, "reserve", refuse)
    plain, found = (solved(operator_of(True), krylov) for krylov in ("never", "auto"))
    assert found.more_vectors == 0
    assert (found.products, found.status) == (plain.products, Status.CONVERGED)


@both
def test_it_ends_where_it_is_told_to(maximise: bool) -> None:
    exact, met = optimum(maximise), set()
    for count in (20, 40, 60, 80, 100_000):
        found = solved(operator_of(maximise), "always", progress=StopAfter(count))
        met.add(found.status)
        holds(exact, found)
    assert met == {Status.INTERRUPTED, Status.CONVERGED}
    for limit in (15, 60, 100):
        found = solved(operator_of(maximise), "always", Criterion(max_iterations=limit))
        assert found.status is Status.MAX_ITERATIONS
        assert found.iterations <= limit + 30
        holds(exact, found)


def test_a_fixed_policy_has_nothing_to_choose() -> None:
    operator = operator_of(True)
    fixed = FixedPolicy(operator, np.zeros(SIZE, np.uint16), np.full(SIZE, 0.5))
    assert accelerator_for(fixed, Criterion(), True) is None


def test_the_matrix_of_a_fixed_policy_is_that_of_its_steps() -> None:
    operator = operator_of(True)
    fixed = FixedPolicy(operator, operator.choose(operator.zeros()), np.full(SIZE, 0.5))
    x, step, product = np.arange(SIZE) / SIZE, np.zeros(SIZE), np.zeros(SIZE)
    fixed.improve(x, step)
    fixed.multiply(x, product)
    np.testing.assert_allclose(product + 0.5, step, rtol=1e-14)


def test_w_goes_down_whatever_is_chosen() -> None:
    """The policy of z leaves at once in some states, and the other choice leads far."""
    n, own = 24, np.array([[0.0, 0.96875, 0.0], [0.9375, 0.0, 0.03125], [0.5, 0.0, 0.25]])
    dense, gains = np.zeros((2, n, n)), np.zeros((2, n))
    # Copies that differ, so that the recurrence sees more than three states.
    dense[1] = np.kron(np.diag(1.0 - np.arange(8) / 64.0), own)
    gains[0] = np.tile([0.5, 0.25, 0.125], 8)
    offers = [
        LayerChoices(0, None, None, gains[0], None),
        LayerChoices(1, None, from_dense(dense[1]), gains[1], None),
    ]
    operator = make_operator("cpu", Choices(offers, dense, gains, True), slack=64 * UNIT)
    held = LowerIterationState(0.75 * gains[0], np.empty(n), None, np.empty(n), 4, None, lambda: ({}, {}))
    course = PolicyIteration(operator, held, math.inf, Clock(None), 0.5)
    eta = course.approach(1e-9)
    assert eta is not None and eta <= 1e-9
    z, w = course.z.copy(), np.empty(n)
    loose = course.spread(z, w)
    assert loose is not None and 0.0 <= loose < 1.0
    assert ((dense @ w).max(axis=0) + (1.0 - loose) * z <= w * (1.0 + 1e-12)).all()


def ties(maximise: bool, copies: int = 8) -> Choices:
    """Pairs of states: one may leave at once, or go where one stays for long, and is worth the same."""
    n, stays = 2 * copies, 1.0 - 1.0 / (32.0 + 4.0 * np.arange(copies))
    worth = (1.0 + np.arange(copies)) / 64.0
    dense, gains = np.zeros((2, n, n)), np.zeros((2, n))
    first, second = np.arange(0, n, 2), np.arange(1, n, 2)
    gains[0, first], gains[1, first] = worth, 0.03125 * worth
    dense[1, first, second] = 0.96875
    dense[0, second, second] = dense[1, second, second] = stays
    gains[:, second] = (1.0 - stays) * worth
    offers = [LayerChoices(k, None, from_dense(dense[k]), gains[k], None) for k in range(2)]
    return Choices(offers, dense, gains, maximise)


@both
def test_choices_that_are_worth_the_same_are_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, maximise: bool
) -> None:
    case, spreads = ties(maximise), []
    own = PolicyIteration.spread_around

    def noted(self: PolicyIteration, *arguments: Any) -> float | None:
        spreads.append(own(self, *arguments))
        return spreads[-1]

    monkeypatch.setattr(PolicyIteration, "spread_around", noted)
    # At first the policy that leaves at once.
    choose = ChoiceOperator.choose
    monkeypatch.setattr(
        ChoiceOperator,
        "choose",
        lambda self, x: np.zeros(self.size, np.uint16) if not spreads and not maximise else choose(self, x),
    )
    found = solved(make_operator("cpu", case, slack=64 * UNIT), "always")
    assert found.status is Status.CONVERGED
    worth = np.repeat((1.0 + np.arange(8)) / 64.0, 2)
    assert (found.lower <= worth).all() and (worth <= found.upper).all()
    assert found.more_vectors == MORE_VECTORS
    assert bool(spreads) is not maximise and None not in spreads


def test_w_is_that_of_the_policy_that_is_best_a_little_below() -> None:
    case = ties(maximise=False)
    n, worth = case.dense.shape[1], np.repeat((1.0 + np.arange(8)) / 64.0, 2)
    operator = make_operator("cpu", case, slack=64 * UNIT)
    held = LowerIterationState(0.5 * worth, np.empty(n), None, np.empty(n), 4, None, lambda: ({}, {}))
    course = PolicyIteration(operator, held, math.inf, Clock(None), 0.5)
    course.z[...] = worth
    # That of leaving at once, which says too little of the other choice.
    w = np.where(np.arange(n) % 2 == 0, worth, 40.0 * worth)
    low = worth - 1e-6 * w
    assert ((case.dense @ low + case.gains).min(axis=0) < low - 1e-9).any()
    loose = course.spread_around(worth, w, 1e-6)
    assert loose is not None and 0.0 <= loose < 1.0
    low = worth - 1e-6 * w
    assert ((case.dense @ low + case.gains).min(axis=0) >= low).all()


def test_better_choices_spread_between_two_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line: to go on is better than to leave where the next state goes on; a policy tells one state."""
    n, policies = 40, 0
    dense, gains = np.zeros((2, n, n)), np.full((2, n), 0.5)
    dense[1], gains[1] = 0.5 * np.eye(n) + 0.5 * np.diag(np.ones(n - 1), 1), 0.0
    gains[1, -1] = 0.5
    matrices = None, from_dense(dense[1])
    offers = [LayerChoices(k, None, matrices[k], gains[k], None) for k in range(2)]
    case = Choices(offers, dense, gains, True)
    operator, x = make_operator("cpu", case, slack=64 * UNIT), np.full(n, 0.25)
    course = PolicyIteration(
        operator,
        LowerIterationState(x, np.empty(n), None, np.empty(n), 10, None, lambda: ({}, {})),
        1e6,
        Clock(None),
        0.5,
    )
    own = PolicyIteration._solved

    def counted(self: PolicyIteration, *arguments: Any) -> Any:
        nonlocal policies
        policies += 1
        return own(self, *arguments)

    monkeypatch.setattr(PolicyIteration, "_solved", counted)
    assert course.approach(1e-9) is not None
    np.testing.assert_allclose(course.z, 1.0, rtol=1e-8)
    assert policies <= n // 8


def test_a_process_in_which_they_do_takes_few_products(examples_folder: Path) -> None:
    """Where each policy lets the next state know, steps over all choices bring it further."""
    model = hybrid.load(examples_folder / "coin.prism", constants={"K": 6})
    question = 'Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]'
    found = hybrid.check(model, question, backend="cpu", method="optimistic").statistics
    assert found.method == "optimistic"
    assert found.products < 1200
