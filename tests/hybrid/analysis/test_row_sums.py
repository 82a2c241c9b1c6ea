"""Rates at which states are left: exact sums without the diagonal, and what is said about their error."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.systems import build_operator, leaving_rates, moving_rates, solve_gain
from hybrid.matrix.operators.rounding import step_slack
from mtbdd.offset.offset import SCALED_UNITS, row_entries
from tests.builders.models import build
from tests.builders.random_chains import RandomChain

CPU = CheckOptions(backend="cpu", engine="hybrid")


def exact(chain: RandomChain) -> list[Fraction]:
    return [sum((w for t, w in row.items() if t != s), Fraction(0)) for s, row in enumerate(chain.rates)]


@pytest.mark.parametrize("continuous", [False, True])
@given(seed=st.integers(0, 2**32))
def test_rates_are_the_row_sums_without_the_diagonal(continuous: bool, seed: int) -> None:
    chain = RandomChain(np.random.default_rng(seed), continuous)
    model = build(chain.text)
    found = leaving_rates(model, model.index, CPU)
    bound = (model.entry_units + found.units + len(chain.rates) + 2) * 2.0**-53
    for rate, wanted in zip(found.rates, exact(chain), strict=True):
        assert abs(Fraction(float(rate)) - wanted) <= wanted * Fraction(bound)


def test_sums_of_shared_blocks_say_so() -> None:
    text = "ctmc\nmodule m\nx : [0..1];\n[] x=0 -> 3:(x'=1) + {}:(x'=0);\n[] x=1 -> 2:(x'=0);\nendmodule\n"
    few, many = (build(text.format(loop)) for loop in ("1", "1e9"))
    assert leaving_rates(few, few.index, CPU).units == 0.0
    found = leaving_rates(many, many.index, CPU)
    assert found.units == SCALED_UNITS
    assert found.rates.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
def test_a_bottom_component_has_its_rates_from_a_product(
    engine: str, examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(examples_folder / "kanban.prism", constants={"t": 1})
    options = CheckOptions(backend="cpu", engine=engine)
    wanted = leaving_rates(model, model.index, options).rates
    matrix = build_operator(model.submatrix(model.index, model.index, diagonal=False), options, beside=True)
    found = moving_rates(matrix, model.index)
    assert found.units == SCALED_UNITS
    np.testing.assert_allclose(found.rates, wanted, rtol=16 * 2.0**-53)
    # The method is told of their error.
    told = []
    method = options.average_reward()
    assert method is not None
    own = type(method).solve

    def solve(self, matrix, diagonal, rewards, slack, progress=None):  # type: ignore[no-untyped-def]
        told.append((slack, diagonal))
        return own(self, matrix, diagonal, rewards, slack, progress)

    monkeypatch.setattr(type(method), "solve", solve)
    solve_gain(
        model,
        model.index,
        lambda there: np.arange(float(there.size)),
        method,
        options,
        SolveStatistics(),
        "numbers",
    )
    least = step_slack(matrix, row_entries(model.transitions)) + SCALED_UNITS * 2.0**-53
    assert [slack >= least for slack, _ in told] == [True]
    np.testing.assert_array_equal(np.asarray(told[0][1]), found.rates)
