"""When a Krylov method is worth a try: paces that contract, paces that only seem to, prices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import build_operator
from hybrid.checking.in_parts import in_parts
from hybrid.matrix.space.base import LinearOperator
from hybrid.solvers.forecast import (
    AVERAGE_STEPS,
    BICGSTAB_PRODUCT,
    CHAINS,
    IDR_PRODUCT,
    POLICIES,
    SUMMED_STEPS,
    Forecast,
    traffic_ratio,
)
from mtbdd.base.communicator import ALONE, communicator_of
from mtbdd.build.model import SymbolicModel
from tests.builders.linear_systems import Dense
from tests.builders.part_questions import dealt
from tests.source_tree import ROOT

LEAST = 100
"""Products that a method takes at least."""


def followed(
    difference: Callable[[float], float], looks: range, traffic_ratio: float = 1.0
) -> tuple[Forecast, list[int], list[float]]:
    """Return a forecast after some looks, the looks at which a try was worth it, and its budgets."""
    forecast, due, budgets = Forecast(1e-8, traffic_ratio), [], []
    for made in looks:
        budget = forecast.budget(forecast.left(made, difference(made)))
        if budget > 0.0:
            due.append(made)
            budgets.append(budget)
    return forecast, due, budgets


def test_the_forecast_follows_the_pace() -> None:
    forecast = Forecast(1e-8)
    left = [forecast.left(10 * k, 0.9**k) for k in range(6)]
    assert left[:3] == [0.0, 0.0, 0.0]
    # Ten products for each factor of 0.9.
    assert left[5] == pytest.approx(10 * (math.log(1e-8) / math.log(0.9) - 5))
    assert forecast.left(60, 1.0) == math.inf
    assert forecast.left(70, math.inf) == 0.0
    assert forecast.is_long(1e4) and not forecast.is_long(10.0)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("late", [0, 50])
@pytest.mark.parametrize("stride", [10, 20, 70])
def test_growth_by_a_power_is_no_contraction(power: float, late: int, stride: int) -> None:
    """Values like ``(k - late)^power`` have differences like ``power / (k - late)``; their forecasts grow."""

    def difference(made: float) -> float:
        return 1.0 - ((made - 1 - late) / (made - late)) ** power

    forecast, due, _ = followed(difference, range(late + stride, 9990, stride))
    assert forecast.left(9990, difference(9990)) > 9990
    assert due == []


@pytest.mark.parametrize("rate", [0.98, 0.999, 0.9999])
@pytest.mark.parametrize("stride", [10, 20])
def test_a_contraction_is_seen_in_a_small_part_of_its_steps(rate: float, stride: int) -> None:
    """Values that come nearer by a rate: first they grow like k, and that they do not is seen in time."""

    def difference(made: float) -> float:
        return rate**made * (1.0 - rate) / (1.0 - rate**made)

    whole = math.log(1e-8 / (1.0 - rate)) / math.log(rate)
    _, due, budgets = followed(difference, range(stride, int(whole), stride))
    assert due[0] <= max(0.25 / (1.0 - rate), 7 * stride)
    assert budgets[0] >= LEAST
    # It is seen as long as it is worth it.
    assert due == list(range(due[0], due[-1] + 1, stride))
    assert due[-1] > whole - LEAST - 2 * stride


def test_a_jump_is_no_contraction() -> None:
    """A front has passed some row, and the others stand where they stood."""
    flat = followed(lambda made: 0.9 if made < 1000 else 0.3, range(10, 5000, 10))
    assert flat[1] == []
    # That it does not come down at once changes nothing.
    slow = followed(lambda made: 0.9 - 0.6 / (1.0 + math.exp((1000 - made) / 10)), range(10, 5000, 10))
    assert slow[1] == []


def test_half_of_the_steps_have_to_be_known() -> None:
    _, due, _ = followed(lambda made: 0.99**made, range(500, 1500, 10))
    assert due[0] == 1150  # the last eighth has to tell so, of the last half


def test_guesses_in_vain_make_it_longer() -> None:
    """Changes of a step that are to become smaller than epsilon, which alone does not tell of the end."""
    plain, later = Forecast(1e-3), Forecast(1e-3)
    for made in range(10, 700, 10):
        left, more = plain.left(made, 0.99**made), later.left(made, 0.99**made, 1e-9)
        if made > 40:
            assert left == pytest.approx(max(np.log(1e-3) / np.log(0.99) - made, 0.0))
            assert more == pytest.approx(np.log(1e-9) / np.log(0.99) - made)
    assert plain.left(700, 0.99**700, 1e-2) == 0.0  # epsilon itself remains
    assert later.left(710, 0.99**710, 0.0) == np.inf


def test_what_an_earlier_run_has_made_is_not_waited_for_again() -> None:
    forecast = Forecast(1e-8, begun=500)
    due = [made for made in range(510, 1500, 10) if forecast.budget(forecast.left(made, 0.99**made)) > 0.0]
    assert due[0] < 600


def test_numbers_that_do_not_shrink_are_tried_late_and_with_little() -> None:
    _, due, budgets = followed(lambda made: 0.5, range(10, 30_000, 10))
    assert due[0] == 10_000
    assert budgets == [pytest.approx(0.125 * made) for made in due]
    # And before a lower limit ends it all.
    limited = Forecast(1e-8, 1.0, 5000)
    budgets = [(made, limited.budget(limited.left(made, 0.5))) for made in range(10, 5000, 10)]
    assert next(pair for pair in budgets if pair[1] > 0.0) == (500, 500)


def test_over_choices_the_guess_of_a_bound_counts_as_steps_and_a_try_takes_some_policies() -> None:
    """Steps until bounds are found, against those of a try, as for chains."""
    forecast = Forecast(1e-8, 2.0, rule=POLICIES)
    looks = [(made, forecast.left(made, 0.99**made)) for made in range(10, 1610, 10)]
    # 1,833 steps until values are found, and as many for the guess.
    assert forecast.contracts and forecast.is_long(looks[-1][1])
    assert POLICIES.finish(*looks[-1]) == pytest.approx(2 * 1833 - 1600, abs=2)
    assert forecast.budget(looks[-1][1]) == POLICIES.room
    quick = Forecast(1e-8, 2.0, rule=POLICIES)
    assert not any(quick.budget(quick.left(made, 0.98**made)) for made in range(10, 900, 10))
    slow = Forecast(1e-8, 2.0, rule=POLICIES)
    due = [(made, slow.budget(slow.left(made, 0.5))) for made in range(10, 2000, 10)]
    assert next(pair for pair in due if pair[1]) == (POLICIES.late, POLICIES.room)
    assert due[-1] == (1990, POLICIES.share * 1990)
    limited = Forecast(1e-8, 2.0, 1000, rule=POLICIES)
    due = [(made, limited.budget(limited.left(made, 0.5))) for made in range(10, 1000, 10)]
    assert next(pair for pair in due if pair[1]) == (100, POLICIES.room)


def test_a_short_rest_is_not_worth_it_whatever_the_pace() -> None:
    assert followed(lambda made: 0.8**made, range(10, 80, 10))[1] == []
    # What a try costs in steps counts: the price of its products, and those that it makes beforehand.
    assert CHAINS.least == LEAST
    assert Forecast(1e-8, 1.0).is_long(100.0) and not Forecast(1e-8, 1.01).is_long(100.0)
    assert Forecast(1e-8, 3.0).is_long(300.0) and not Forecast(1e-8, 3.0).is_long(299.0)
    assert Forecast(1e-8, 2.0).is_long(260.0, 30.0) and not Forecast(1e-8, 2.0).is_long(259.0, 30.0)
    cheap, dear = (followed(lambda made: 0.98**made, range(10, 900, 10), cost)[1] for cost in (1.0, 3.0))
    assert cheap[0] == dear[0] and cheap[-1] - dear[-1] == 2 * LEAST


class Told(Dense):
    """A matrix that tells its entries."""

    @property
    def nnz(self) -> int:
        return int(np.count_nonzero(self.matrix))


def test_full_rows_make_the_vectors_of_a_krylov_method_cheap() -> None:
    thin, full, usual = Told(np.eye(100)), Told(np.ones((100, 100))), Dense(np.eye(100))

    def idr(matrix: LinearOperator) -> float:
        return traffic_ratio(matrix, ALONE, IDR_PRODUCT, SUMMED_STEPS)

    assert idr(thin) == pytest.approx(25 / 9)
    assert idr(full) == pytest.approx(124 / 108)
    assert traffic_ratio(thin, ALONE, IDR_PRODUCT, AVERAGE_STEPS) > traffic_ratio(
        thin, ALONE, BICGSTAB_PRODUCT, AVERAGE_STEPS
    )
    # What is not told is taken to be usual.
    assert idr(full) < idr(usual) < idr(thin)
    assert idr(Told(np.zeros((0, 0)))) == idr(usual)


def test_parts_that_share_a_matrix_are_told_the_same_price(rng: np.random.Generator) -> None:
    """All of them have to decide alike, and as one process does, whatever their own rows hold."""
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    told: list[float] = []

    def own_price(own: SymbolicModel) -> float:
        matrix = build_operator(own.submatrix(own.index, own.index), CheckOptions(backend="cpu"))
        told.append(traffic_ratio(matrix, communicator_of(matrix), IDR_PRODUCT, SUMMED_STEPS))
        return told[-1]

    for parts in (1, 3, 7):
        in_parts(model, parts, own_price, dealt(model, parts, rng))
    mean = model.n_transitions / model.n_states
    assert len(told) == 11
    assert told == [pytest.approx((mean + IDR_PRODUCT) / (mean + SUMMED_STEPS))] * 11


@pytest.mark.parametrize("first", [1e300, 1e-300])
def test_differences_of_all_sizes_can_be_followed(first: float) -> None:
    """Found by the attack: doubles hold the reciprocals of not all doubles, nor the quotients of all."""
    forecast = Forecast(1e-8)
    sizes = [first, first, *(10.0 ** -(40 * k) for k in range(8)), 5e-324, 5e-324, 1e308]
    left = [forecast.left(10 * (k + 1), size) for k, size in enumerate(sizes)]
    assert left[-1] == math.inf
    assert not forecast.contracts
