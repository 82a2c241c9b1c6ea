"""Methods over choices: what they return, how they end, and that nothing unsound passes for an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybrid.operators.hybrid_choices import hybrid_choices
from hybrid.operators.offers import choice_flow, choice_slack, offers_of
from hybrid.run.options import CheckOptions
from hybrid.solvers import Criterion, Interval, Optimistic, Status
from hybrid.solvers.choice_operator import ChoiceOperator
from hybrid.solvers.value_iteration import ValueIteration
from mtbdd.model import SymbolicModel
from mtbdd.states import index_states
from tests.hybrid.mdp.models import SLOW_WAY, WAITING_ROOM
from tests.model_checks import build


def _reaching(model: SymbolicModel, unknown: str, target: str, maximise: bool) -> ChoiceOperator:
    """Return the operator of reaching a target with every choice allowed, end components left as they are."""
    options = CheckOptions(backend="cpu")

    def where(text: str) -> object:
        return model.states(next(label.expression for label in model.source.labels if label.name == text))

    inside, one = (index_states(model.manager, where(name)) for name in (unknown, target))  # type: ignore[arg-type]
    allowed = [layer.enabled for layer in model.layers]
    offers = offers_of(
        model, inside, allowed, lambda layer, rows: choice_flow(model, layer, rows, one, options), maximise
    )
    return hybrid_choices(offers, inside.size, maximise, None, choice_slack(model), options)


@pytest.fixture
def slow() -> SymbolicModel:
    return build(SLOW_WAY + 'label "open" = x<2; label "won" = x=2;')


@pytest.mark.parametrize("method", [Optimistic(), Interval()])
@pytest.mark.parametrize(("maximise", "exact"), [(True, 0.6), (False, 0.25)])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-8, 1e-12, 1e-15])
@pytest.mark.parametrize("absolute", [True, False])
def test_bounds_hold_and_are_as_close_as_asked(
    slow: SymbolicModel, method: Interval, maximise: bool, exact: float, epsilon: float, absolute: bool
) -> None:
    system = _reaching(slow, "open", "won", maximise)
    found = replace(method, criterion=Criterion(epsilon, absolute)).bounds(system, 1.0)
    assert found.status is Status.CONVERGED
    assert (found.lower <= exact).all() and (exact <= found.upper).all()
    # Beyond a few hundred units of rounding double precision has no more to give.
    assert (found.upper - found.lower).max() <= max(epsilon, 1e-12)
    assert found.residual <= max(epsilon, 1e-12)
    estimate = ValueIteration(Criterion(epsilon, absolute)).solve(system)
    assert estimate.status is Status.CONVERGED
    np.testing.assert_allclose(estimate.values, exact, atol=10 * epsilon + 1e-12)


def test_an_end_component_left_in_is_no_answer() -> None:
    model = build(WAITING_ROOM + 'label "open" = x<2; label "won" = x=2;')
    system = _reaching(model, "open", "won", True)
    criterion = Criterion(1e-6, max_iterations=400)
    for method in (Optimistic(criterion), Interval(criterion)):
        assert method.bounds(system, 1.0).status is not Status.CONVERGED


@pytest.mark.parametrize("method", [Optimistic, Interval, ValueIteration])
def test_the_limit_ends_every_method(slow: SymbolicModel, method: type[Interval]) -> None:
    system = _reaching(slow, "open", "won", True)
    solver = method(Criterion(1e-12, max_iterations=5))
    found = solver.solve(system) if isinstance(solver, ValueIteration) else solver.bounds(system, 1.0)
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations >= 5
