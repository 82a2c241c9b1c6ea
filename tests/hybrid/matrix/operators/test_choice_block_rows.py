"""Choices of compressed layers in block rows: what is written, its order, bounds by component."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import hybrid
from hybrid.analysis import choice_systems
from hybrid.matrix.cpu import csr as csr_components
from hybrid.matrix.operators import choice_block_rows
from hybrid.matrix.operators.choice_block_rows import ChoiceBlockRows
from hybrid.matrix.operators.explicit_choices import ExplicitChoices, write_choices
from hybrid.matrix.operators.hybrid_choices import HybridChoices
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from hybrid.solvers import Criterion, Optimistic, Status, topological
from hybrid.solvers.block_rows import BlockRows, SingleBlockRow
from hybrid.solvers.topological import Topological
from mtbdd.offset.states import StateIndex
from tests.builders.choice_systems import Choices
from tests.builders.keeping import Keeper
from tests.builders.linear_systems import exact_solution
from tests.builders.matrices import from_dense
from tests.builders.stopping import StopAfter
from tests.contracts.choice_operators import make_operator

BITS = 6
SIZE = 1 << BITS
SLACK = 64 * UNIT

both = pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
either = pytest.mark.parametrize("form", ["cpu", "written out"])


@pytest.fixture(autouse=True)
def _small_block_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_block_rows, "_LEAST_GROUP", 1)
    monkeypatch.setattr(choice_block_rows, "_DEEPER", 1)
    monkeypatch.setattr(choice_block_rows, "_BLOCK_ROW_STATES", 12)
    monkeypatch.setattr(choice_block_rows, "_MOST_BLOCK_ROWS", SIZE)


def every_state() -> StateIndex:
    """All numbers of six bits."""
    zero = np.zeros(1, np.int32)
    counts = tuple(np.array([SIZE >> k], np.int64) for k in range(BITS + 1))
    return StateIndex(None, (zero,) * BITS, (zero,) * BITS, counts)  # type: ignore[arg-type]


def process(rng: np.random.Generator, maximise: bool, apart: bool = True) -> Choices:
    """Blocks of eight states, which lead to themselves and to later ones, in some order of blocks.

    Three layers: one for every state, one for some states only, one with factors.  Some choices stay where
    they are, with a probability near to 1 too; entries are dyadic.
    """
    worst = -np.inf if maximise else np.inf
    dense = np.zeros((3, SIZE, SIZE))
    gains = rng.integers(0, 4, (3, SIZE)) / 64.0 * rng.integers(0, 2, (3, SIZE))
    order = rng.permutation(SIZE // 8)
    for place, block in enumerate(order):
        later = order[place + 1 :] if apart else order
        for layer, i in np.ndindex(3, 8):
            s = 8 * block + i
            own = np.arange(8 * block, 8 * block + 8) if place % 3 else np.arange(s + 1, 8 * block + 8)
            others = (8 * later[:, None] + np.arange(8)).ravel()
            for chosen in (own, others):
                for j in rng.choice(chosen, 2) if chosen.size else ():
                    dense[layer, s, j] = rng.integers(1, 8) / 64
            dense[layer, s, s] = rng.choice([0.0, 0.0, 0.5, 2047 / 2048 - dense[layer, s].sum()])
            dense[layer, s, s] = max(dense[layer, s, s], 0.0)
    place = np.arange(16, 32)  # one prefix of two bits, as the matrix of these rows alone sees it
    has = np.isin(np.arange(SIZE), place)
    dense[1, ~has], gains[1, ~has] = 0.0, worst
    factor = rng.choice([1.0, 0.9375], SIZE)
    offers = [
        LayerChoices(0, None, from_dense(dense[0]), gains[0], None),
        LayerChoices(1, place, from_dense(dense[1][place]), gains[1][place], None),
        LayerChoices(2, None, from_dense(dense[2]), gains[2], factor),
    ]
    dense[2] *= factor[:, None]
    return Choices(offers, dense, gains, maximise)


def solution(case: Choices) -> list[Fraction]:
    """The exact solution, by policy iteration in fractions."""
    choose, states = max if case.maximise else min, np.arange(SIZE)
    worst = np.isinf(case.gains)
    x = np.zeros(SIZE)
    for _ in range(5000):  # near it, by value iteration
        worth = case.dense @ x + case.gains
        x = worth.max(axis=0) if case.maximise else worth.min(axis=0)
    policy = worth.argmax(axis=0) if case.maximise else worth.argmin(axis=0)
    while True:
        exact = exact_solution(case.dense[policy, states], np.ones(SIZE), case.gains[policy, states])
        better = policy.copy()
        for s in states.tolist():
            own = {}
            for k in np.flatnonzero(~worst[:, s]).tolist():
                row = case.dense[k, s]
                own[k] = Fraction(case.gains[k, s]) + sum(
                    Fraction(row[j]) * exact[j] for j in np.flatnonzero(row).tolist()
                )
            if own[int(policy[s])] != choose(own.values()):
                better[s] = choose(own, key=lambda k: own[k])
        if (better == policy).all():
            return exact
        policy = better


def block_rows_of(system: ChoiceOperator) -> BlockRows | None:
    if isinstance(system, ExplicitChoices):
        return SingleBlockRow(system.rows)
    assert isinstance(system, HybridChoices)
    system.level = 4  # prefixes of two bits
    return ChoiceBlockRows.where_they_pay(system, every_state())


def method_for(system: ChoiceOperator, criterion: Criterion | None = None) -> Topological:
    block_rows = block_rows_of(system)
    assert block_rows is not None
    return Topological(criterion or Criterion(), block_rows, Optimistic(criterion or Criterion()))


def solved(
    system: ChoiceOperator, criterion: Criterion | None = None, progress: Any = None
) -> BoundedSolution:
    found = method_for(system, criterion).bounds(system, None, progress)
    assert found.solved_by is None
    return found


def holds(exact: list[Fraction], found: BoundedSolution) -> None:
    for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert 0 <= Fraction(low) <= x <= (Fraction(high) if high < np.inf else x)


@both
def test_block_rows_are_the_states_in_an_order_of_solution(rng: np.random.Generator, maximise: bool) -> None:
    for _ in range(4):
        case = process(rng, maximise)
        block_rows = block_rows_of(make_operator("cpu", case))
        whole = write_choices(case.offers, SIZE)
        assert block_rows is not None and len(block_rows) > 2
        assert block_rows.entries == len(whole.columns)
        solved = np.zeros(SIZE, bool)
        for number in range(len(block_rows)):
            states, rows = block_rows.rows(number), block_rows.written(number)
            assert (np.diff(states) > 0).all() and not solved[states].any()
            solved[states] = True
            assert solved[rows.columns].all()
            for k, s in enumerate(states.tolist()):
                own, all_own = slice(*rows.choice_ptr[k : k + 2]), slice(*whole.choice_ptr[s : s + 2])
                np.testing.assert_array_equal(rows.layers[own], whole.layers[all_own])
                np.testing.assert_array_equal(rows.gains[own], whole.gains[all_own])
                for c, d in zip(range(own.start, own.stop), range(all_own.start, all_own.stop), strict=True):
                    mine, other = slice(*rows.offsets[c : c + 2]), slice(*whole.offsets[d : d + 2])
                    np.testing.assert_array_equal(rows.columns[mine], whole.columns[other])
                    np.testing.assert_array_equal(rows.values[mine], whole.values[other])
        assert solved.all()


def test_states_that_belong_together_are_one_block_row_if_that_is_small(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = process(rng, True, apart=False)
    while connected_components(case.dense.any(axis=0), connection="strong")[0] > 1:
        case = process(rng, True, apart=False)
    system = make_operator("cpu", case)
    block_rows = block_rows_of(system)
    assert block_rows is not None and len(block_rows) == 1
    monkeypatch.setattr(choice_block_rows, "_FEW_ENTRIES", 0)
    monkeypatch.setattr(choice_block_rows, "_MOST_ENTRIES", 1)
    assert block_rows_of(system) is None


# lemma: topological-choices
@both
@either
@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-9])
def test_bounds_enclose_the_exact_solution(
    rng: np.random.Generator, form: str, maximise: bool, epsilon: float, absolute: bool
) -> None:
    for _ in range(2):
        case = process(rng, maximise)
        system = make_operator(form, case, slack=SLACK)
        found = solved(system, Criterion(epsilon, absolute))
        assert found.status is Status.CONVERGED
        holds(solution(case), found)
        width = found.upper - found.lower
        assert (width <= epsilon * (1.0 if absolute else found.upper)).all()
        assert found.products > 0 and found.iterations > 0


@both
@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-8])
def test_errors_of_block_rows_stay_within_epsilon(
    epsilon: float, maximise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs in a row, each of which takes long to leave, and reaches the next one: a block row each."""
    monkeypatch.setattr(choice_block_rows, "_MOST_SHARE", 2 / SIZE)
    monkeypatch.setattr(choice_block_rows, "_BLOCK_ROW_STATES", 1)
    dense = np.kron(np.eye(SIZE // 2), [[0, 0.875], [0.875, 0]])
    dense += np.kron(np.eye(SIZE // 2, k=1), [[0, 0], [0.0625, 0]])
    gains = np.zeros(SIZE)
    gains[-1] = 0.0625
    offers = [LayerChoices(0, None, from_dense(dense), gains, None)]
    case = Choices(offers, dense[None], gains[None], maximise)
    system = make_operator("cpu", case, slack=SLACK)
    assert len(method_for(system).block_rows) == SIZE // 2
    found = solved(system, Criterion(epsilon))
    assert found.status is Status.CONVERGED
    holds(exact_solution(dense, np.ones(SIZE), gains), found)
    assert (found.upper - found.lower <= epsilon * found.upper).all()


@both
@either
def test_states_that_stay_are_solved_at_once(form: str, maximise: bool) -> None:
    """A chain of states whose choices stay with great probability, and nothing else to iterate."""
    dense, gains = np.zeros((2, SIZE, SIZE)), np.zeros((2, SIZE))
    for s in range(SIZE):
        for layer, stays in enumerate((0.75, 0.9921875)):
            dense[layer, s, s] = stays
            if s + 1 < SIZE:
                dense[layer, s, s + 1] = 0.96875 * (1.0 - stays)
            gains[layer, s] = (1.0 - stays) / (8 if layer else 16) * (s % 5 == 0)
    offers = [LayerChoices(k, None, from_dense(dense[k]), gains[k], None) for k in range(2)]
    case = Choices(offers, dense, gains, maximise)
    system = make_operator(form, case, slack=SLACK)
    found = solved(system)
    assert found.status is Status.CONVERGED and found.iterations == 1
    holds(solution(case), found)
    # Rounding alone keeps them apart.
    assert (found.upper - found.lower <= 2.0 * SIZE * 2**8 * SLACK * found.upper).all()


@both
@either
def test_members_of_a_group_share_a_value(
    rng: np.random.Generator, form: str, maximise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csr_components, "_MAX_SHARE", 1.0)  # groups may join all states
    for _ in range(3):
        members = rng.permutation(SIZE)[:9].astype(np.int64)
        groups = Quotient(members, np.array([0, 2, 5], np.int64), np.full(3, -1))
        case = process(rng, maximise)
        system = make_operator(form, case, groups, SLACK)
        found = solved(system, Criterion(1e-9))
        other = Optimistic(Criterion(1e-9)).bounds(make_operator("cpu", case, groups, SLACK), None)
        assert found.status is other.status is Status.CONVERGED
        assert (np.maximum(found.lower, other.lower) <= np.minimum(found.upper, other.upper)).all()
        for own in np.split(members, groups.starts[1:]):
            assert len(set(found.lower[own].tolist())) == len(set(found.upper[own].tolist())) == 1


@both
@either
def test_bounds_hold_wherever_it_is_ended(rng: np.random.Generator, form: str, maximise: bool) -> None:
    met = set()
    case = process(rng, maximise)
    exact = solution(case)
    for count in (1, 2, 3, 5, 8, 13, 25, 100_000):
        system = make_operator(form, case, slack=SLACK)
        found = solved(system, progress=StopAfter(count))
        met.add(found.status)
        holds(exact, found)
    assert met == {Status.INTERRUPTED, Status.CONVERGED}


@both
@either
def test_runs_go_on_where_they_were(rng: np.random.Generator, form: str, maximise: bool) -> None:
    """Block row by block row, and level by level where there is one block row."""
    system = make_operator(form, process(rng, maximise), slack=SLACK)
    method = method_for(system)
    first = Keeper()
    whole = method.bounds(system, None, first)
    if form == "cpu":
        assert len(first.states) == len(method.block_rows) + 1
    else:
        assert sum(kept.numbers["level"] > 0 for kept in first.states) > 1
    for kept in first.states:
        # What has been solved of the next block row counts for nothing.
        begun = int(kept.numbers["level"] > 0)
        for later in range(int(kept.numbers["strip"]) + begun, len(method.block_rows)):
            states = method.block_rows.rows(later)
            kept.vectors["lower"][states] = kept.vectors["upper"][states] = 0.5
        found = method.bounds(system, None, Keeper(kept))
        np.testing.assert_array_equal(found.lower, whole.lower)
        np.testing.assert_array_equal(found.upper, whole.upper)
        assert (found.iterations, found.products) == (whole.iterations, whole.products)


@both
def test_runs_with_other_block_rows_begin_anew(
    rng: np.random.Generator, maximise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another level, as measurements may choose it, makes other block rows."""
    case = process(rng, maximise)
    system = make_operator("cpu", case, slack=SLACK)
    first = Keeper()
    method_for(system).bounds(system, None, first)
    monkeypatch.setattr(choice_block_rows, "_BLOCK_ROW_STATES", 20)
    method, exact = method_for(system), solution(case)
    for kept in first.states:
        found = method.bounds(system, None, Keeper(kept))
        assert found.status is Status.CONVERGED
        holds(exact, found)


def test_too_many_components_in_a_row_are_left_to_others(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topological, "_DEEPEST", 0)
    system = make_operator("cpu", process(rng, True), slack=SLACK)
    method = method_for(system)
    assert method.bounds(system, None).solved_by == (method.otherwise.name, method.otherwise.vectors)


lefts: list[ChoiceOperator] = []


class Left(Optimistic):
    """Notes what is left to it."""

    def enclosed(self, operator: Any, *rest: Any) -> BoundedSolution:
        lefts.append(operator)
        return super().enclosed(operator, *rest)


@pytest.mark.parametrize("is_one", [True, False])
def test_states_that_belong_together_are_iterated_as_they_are_written_out(
    rng: np.random.Generator, is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_one:
        monkeypatch.setattr(topological, "_DEEPEST", 0)
    lefts.clear()
    case = process(rng, True, apart=not is_one)
    system = make_operator("cpu", case, slack=SLACK)
    block_rows = method_for(system).block_rows
    if is_one:
        rows = write_choices(case.offers, SIZE)
        block_rows, system.write = SingleBlockRow(rows), lambda: rows
    found = Topological(Criterion(1e-10), block_rows, Left(Criterion(1e-10))).bounds(system, None)
    (own,) = lefts
    assert isinstance(own, ExplicitChoices if is_one else HybridChoices)
    holds(solution(case), found)


@pytest.mark.parametrize(("fewest", "form"), [(0, ExplicitChoices), (1 << 12, HybridChoices)])
def test_states_too_few_for_components_are_written_out(
    fewest: int, form: type[ChoiceOperator], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ChoiceOperator] = []
    bracket = Optimistic.bracket

    def noted(self: Optimistic, operator: Any, *rest: Any) -> Any:
        seen.append(operator)
        return bracket(self, operator, *rest)

    monkeypatch.setattr(choice_systems, "_FEWEST_STATES", fewest)
    monkeypatch.setattr(Optimistic, "bracket", noted)
    model = hybrid.load(Path(__file__).parents[4] / "examples" / "coin.prism", constants={"K": 2})
    answer = hybrid.check(model, 'R{"steps"}max=? [ F "decided" ]', backend="cpu")
    assert seen and all(isinstance(operator, form) for operator in seen)
    assert answer.lower <= 75.0 <= answer.upper


@either
@both
def test_products_that_vanish_are_bounded_from_above(form: str, maximise: bool) -> None:
    dense, gains = 1e-300 * np.eye(SIZE, k=8), np.zeros(SIZE)
    gains[-8:] = 1.0
    offers = [LayerChoices(0, None, from_dense(dense), gains, None)]
    system = make_operator(form, Choices(offers, dense[None], gains[None], maximise), slack=SLACK)
    found = solved(system)
    assert (found.lower >= 0.0).all() and (found.upper > 0.0).all()


@both
@pytest.mark.parametrize("value", [0.75, 0.25])
def test_what_flows_into_solved_states_may_underflow(
    value: float, maximise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the least double is rounded to that double or to zero; what leads there is off by so much."""
    least, dense, gains = 5e-324, np.zeros((3, 3)), np.array([0.0, 0.0, value])
    dense[0, 1], dense[1, 0], dense[0, 2] = 0.5, 0.5, least
    offers = [LayerChoices(0, None, from_dense(dense), gains, None)]
    told: list[np.ndarray] = []  # what the choices of larger components are worth: above, and then below
    enclosed = Optimistic.enclosed

    def keep(method: Optimistic, operator: ExplicitChoices, *arguments: Any) -> BoundedSolution:
        told.append(operator.rows.gains.copy())
        return enclosed(method, operator, *arguments)

    monkeypatch.setattr(Optimistic, "enclosed", keep)
    solved(ExplicitChoices(write_choices(offers, 3), ChoiceProblem(3, maximise, None, SLACK)))
    assert len(told) == 2
    above, below = (Fraction(float(own[0])) for own in told)
    assert below <= Fraction(value) * Fraction(least) <= above


@either
def test_values_beyond_doubles_are_no_bounds(form: str) -> None:
    dense, gains = 0.96875 * np.eye(SIZE, k=8), np.full(SIZE, 1e308)
    offers = [LayerChoices(0, None, from_dense(dense), gains, None)]
    system = make_operator(form, Choices(offers, dense[None], gains[None], True), slack=SLACK)
    found = solved(system)
    assert found.status is Status.DIVERGED and np.isinf(found.upper).all()


@pytest.mark.parametrize("question", ['R{"power"}min=? [ F "over" ]', 'Pmax=? [ F "arrived" ]'])
def test_processes_are_solved_component_by_component_by_default(
    examples_folder: Path, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(examples_folder / "relay.prism", {"H": 8, "M": 8})
    assert hybrid.check(model, question, backend="cpu").statistics.method == "optimistic"
    monkeypatch.setattr(choice_systems, "_LEAST_STATES", 1)
    found = hybrid.check(model, question, backend="cpu")
    written = hybrid.check(model, question, engine="explicit", backend="cpu")
    once = hybrid.check(model, question, backend="cpu", method="optimistic")
    assert found.statistics.method == written.statistics.method == "topological"
    assert once.statistics.method == "optimistic"
    for other in (written, once):
        assert max(found.lower, other.lower) <= min(found.upper, other.upper)
