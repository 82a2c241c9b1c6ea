"""Errors of steps, of weights and of what underflows: each term of a window's bounds by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hybrid.analysis.step_analysis import ErrorTerms, StepErrors
from hybrid.matrix.space.base import Criterion
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.host import HostSpace
from tests.builders.linear_systems import Dense

NONE = StepErrors(0.0, 0.0, 0.0)
LEAST = 5e-324


def bounds(errors: StepErrors, x: float, course: ErrorTerms, **more: float) -> tuple[Fraction, Fraction]:
    found = errors.bounds(np.array([x]), course, more.pop("greatest", 1.0), **more)
    return Fraction(float(found.lower[0])), Fraction(float(found.upper[0]))


def test_values_without_errors_are_off_by_what_their_bounds_are_rounded_by() -> None:
    low, high = bounds(NONE, 1.0, ErrorTerms())
    assert 1 - 4 * Fraction(UNIT) <= low <= 1 <= high <= 1 + 4 * Fraction(UNIT)


def test_additions_of_weighted_values_are_counted() -> None:
    """One and many halves of its unit: each is lost as it is added."""
    terms = 40
    values = [1.0] + [UNIT] * (terms - 1)
    total = 0.0
    for value in values:
        total += value
    exact = sum(map(Fraction, values))
    assert total == 1.0 < exact
    low, high = bounds(NONE, total, ErrorTerms(terms=terms))
    assert low <= exact <= high
    assert low <= 2 - exact, "below as well: other additions are rounded up"


@pytest.mark.parametrize("terms", [0, 5])
def test_errors_of_weights_are_relative(terms: int) -> None:
    relative = 2.0**-20
    low, high = bounds(NONE, 0.75, ErrorTerms(terms=terms), relative=relative)
    assert low <= Fraction(0.75) * (1 - Fraction(relative))
    assert high >= Fraction(0.75) * (1 + Fraction(relative))


@pytest.mark.parametrize("scale", [0.5, 1.0, 1024.0])
@pytest.mark.parametrize(("steps", "terms"), [(100, 0), (0, 100), (60, 40)])
def test_each_step_and_each_weighted_value_may_underflow(steps: int, terms: int, scale: float) -> None:
    """Weighted values add up to `scale` times what is lost in a step."""
    errors, lost = StepErrors(0.0, 0.0, 8 * LEAST), 100 * 8 * Fraction(LEAST) * max(1, int(scale))
    _, high = bounds(errors, 0.0, ErrorTerms(steps=steps, terms=terms), scale=scale)
    assert high >= lost
    low, _ = bounds(errors, float(lost), ErrorTerms(steps=steps, terms=terms), scale=scale)
    assert low == 0


def test_values_that_every_step_made_too_small_are_made_up_for() -> None:
    """Errors of errors count where steps lose many digits: the sum of what steps lose is not all of it."""
    slack, steps = 2.0**-20, 1000
    x = float((1 - Fraction(slack)) ** steps)
    _, high = bounds(StepErrors(slack, np.inf, 0.0), x, ErrorTerms(steps=steps))
    assert high >= 1


def test_the_sum_of_errors_is_rounded_up() -> None:
    """What underflows is lost beside what was left out, which is all that there is."""
    underflow, steps = 2.0**-60, 10
    _, high = bounds(StepErrors(0.0, 0.0, underflow), 0.0, ErrorTerms(steps=steps, left_out=1.0))
    assert high >= 1 + steps * Fraction(underflow)


def test_what_is_missing_and_what_was_left_out_is_added() -> None:
    low, high = bounds(NONE, 0.5, ErrorTerms(left_out=0.125), missing=0.25)
    assert low <= Fraction(3, 8) and high >= Fraction(7, 8)
    assert low > Fraction(1, 4), "what is missing has made values too small alone"


@pytest.mark.parametrize(
    "errors",
    [StepErrors(2.0**-30, np.inf, 0.0), StepErrors(np.inf, 2.0**-30, 0.0)],
    ids=["slack", "absolute"],
)
def test_roundings_of_steps_grow_with_their_number(errors: StepErrors) -> None:
    steps, greatest = 1024, 1.0
    low, high = bounds(errors, 0.5, ErrorTerms(steps=steps), greatest=greatest)
    wanted = Fraction(0.5) * ((1 + Fraction(2.0**-30)) ** steps - 1)
    if errors.slack == np.inf:
        wanted = steps * Fraction(2.0**-30)
    assert Fraction(0.5) - low >= wanted and high - Fraction(0.5) >= wanted
    assert high - low <= Fraction(21, 10) * wanted


def test_steps_left_out_make_no_lower_bound_worse_where_values_rise() -> None:
    errors = StepErrors(2.0**-30, 1.0, 0.0)
    made, all_made = ErrorTerms(steps=2000, left_out=0.25, made=10), ErrorTerms(steps=10)
    low, high = bounds(errors, 0.5, made)
    few, _ = bounds(errors, 0.5, all_made)
    assert low == few
    assert high >= Fraction(0.75)
    assert low <= Fraction(0.5) * (1 - 10 * Fraction(2.0**-30))
    relative = 2.0**-20
    low, _ = bounds(errors, 0.5, made, relative=relative)
    assert low <= Fraction(0.5) * (1 - Fraction(relative))
    underflow = StepErrors(0.0, 0.0, 2.0**-20)
    low, _ = bounds(underflow, 0.5, ErrorTerms(steps=100, made=0))
    assert low <= Fraction(0.5) - 100 * Fraction(2.0**-20)


# lemma: steps-left-out
@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
def test_steps_are_left_out_where_they_would_change_hardly_anything(absolute: bool) -> None:
    """A hundredth of epsilon of the greatest value, or of the least one that is positive."""
    errors, criterion = StepErrors(0.0, 0.0, 1e-300), Criterion(1e-4, absolute)
    x, space = np.array([4.0, 0.0, 0.25]), HostSpace(Dense(np.eye(3)))
    limit = 1e-6 * (4.0 if absolute else 0.25)
    for share, is_left_out in ((0.9, True), (1.1, False)):
        change = share * limit / 50
        found = errors.of_steps_left_out(space, x, change, 50, criterion)
        assert found == (50 * change if is_left_out else None)
    assert errors.of_steps_left_out(space, x, 0.0, 0, criterion) is None
    # Nothing is positive: nothing is known relative to it.
    found = errors.of_steps_left_out(space, np.zeros(3), 1e-200, 50, criterion)
    assert found is None
    # What changes by less than underflow costs is left out however little is there.
    assert errors.of_steps_left_out(space, x * 1e-320, 1e-301, 50, criterion) == 50 * 1e-301


def test_steps_are_left_out_that_are_below_the_rounding_of_those_made() -> None:
    errors, criterion = StepErrors(0.0, 2.0**-30, 1e-300), Criterion(1e-12, True)
    x, space = np.array([4.0]), HostSpace(Dense(np.eye(1)))
    limit = 2.0**-30 * 4.0  # a step
    assert errors.of_steps_left_out(space, x, 0.9 * limit, 50, criterion) == 50 * 0.9 * limit
    assert errors.of_steps_left_out(space, x, 1.1 * limit, 50, criterion) is None
