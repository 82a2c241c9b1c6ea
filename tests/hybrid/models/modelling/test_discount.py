"""Discounted totals are the sums of r_k d^k, within their bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import ModellingError
from tests.builders.built_in_python import coin


def _inventory(kind: str = "mdp") -> hybrid.ModelBuilder:
    """A stock of up to four; orders of up to four arrive at once, then up to two are sold."""
    m = hybrid.ModelBuilder(kind)
    stock = m.variable("stock", 0, 4, initial=2)
    for order in range(5 if kind == "mdp" else 1):
        m.command(
            stock + order <= 4,
            updates=[
                (p, {stock: np.maximum(stock + order - sold, 0)}) for sold, p in enumerate((0.25, 0.5, 0.25))
            ],
            action=f"order{order}",
        )
        m.reward("cost", value=3.0 * (order > 0) + order, action=f"order{order}")
    m.reward("cost", value=0.5 * stock + 4.0 * (stock == 0))
    return m


def _rows(order: int) -> np.ndarray:
    matrix = np.zeros((5, 5))
    for stock in range(5 - order):
        for sold, p in enumerate((0.25, 0.5, 0.25)):
            matrix[stock, max(stock + order - sold, 0)] += p
    return matrix


def _best(discount: float) -> np.ndarray:
    """The least discounted cost of every stock, over all policies, by linear systems."""
    stock = np.arange(5)
    own = 0.5 * stock + 4.0 * (stock == 0)
    best = np.full(5, np.inf)
    for policy in itertools.product(*(range(5 - s) for s in range(5))):
        matrix = np.array([_rows(order)[s] for s, order in enumerate(policy)])
        cost = own + [3.0 * (order > 0) + order for order in policy]
        best = np.minimum(best, np.linalg.solve(np.eye(5) - discount * matrix, cost))
    return best


@pytest.mark.parametrize("discount", [0.3, 0.5, 0.9])
def test_the_least_cost_is_that_of_the_best_policy(discount: float) -> None:
    model = _inventory().build(discount=discount)
    assert model.n_states == 6
    wanted = _best(discount)
    answer = hybrid.check(model, 'R{"cost"}min=? [ F ended ]')
    assert answer.lower <= wanted[2] * (1 + 1e-12)
    assert wanted[2] * (1 - 1e-12) <= answer.upper
    assert answer.value == pytest.approx(wanted[2], rel=1e-6)
    assert model.describe(np.array([5])) == [{"ended": True, "stock": 0}]


def test_a_chain_s_first_reward_counts_fully() -> None:
    model = _inventory("dtmc").build(discount=0.9)
    own = 0.5 * np.arange(5) + 4.0 * (np.arange(5) == 0)
    wanted = np.linalg.solve(np.eye(5) - 0.9 * _rows(0), own)
    assert hybrid.check(model, 'R{"cost"}=? [ F ended ]').value == pytest.approx(wanted[2], rel=1e-6)
    window = own[2] + 0.9 * (_rows(0) @ own)[2]
    assert hybrid.check(model, 'R{"cost"}=? [ C<=2 ]').value == pytest.approx(window, rel=1e-12)


def test_deadlocks_earn_for_ever_and_the_end_nothing() -> None:
    m = hybrid.ModelBuilder("mdp")
    m.boolean("stuck", initial=True)
    m.reward("gain", value=3.0)
    model = m.build(discount=0.75)
    assert hybrid.check(model, 'R{"gain"}max=? [ F ended ]').value == pytest.approx(12.0, rel=1e-6)
    assert list(model.rewards["gain"]) == [3.0, 0.0]


def test_discounts_that_are_none() -> None:
    for discount in (0.0, 1.0, -1, float("nan"), "much"):
        with pytest.raises(ModellingError, match="discount: expected a number between 0 and 1"):
            _inventory().build(discount=discount)  # type: ignore[arg-type]
    chain = hybrid.ModelBuilder("ctmc")
    chain.boolean("up")
    with pytest.raises(ModellingError, match="got a ctmc"):
        chain.build(discount=0.5)
    taken = _inventory()
    taken.boolean("ended")
    with pytest.raises(ModellingError, match="rename the one that is declared"):
        taken.build(discount=0.5)
    assert taken.build().n_states == 5


def test_choices_keep_their_actions() -> None:
    plain, ends = coin(1).build(), coin(1).build(discount=0.9)
    assert any(len(layer.parts) > 1 for layer in plain.layers)
    for one, two in zip(plain.layers, ends.layers, strict=True):
        kept = [(p.action, plain.indicator(p.states).sum()) for p in one.parts]
        found = [(p.action, ends.indicator(p.states).sum()) for p in two.parts]
        assert found[: len(kept)] == kept
        assert found[len(kept) :] == ([(None, 1)] if two is ends.layers[0] else [])
