"""Where a chain is after a time and in the long run, beside dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from tests.builders.held_models import tandem
from tests.builders.mdp_texts import SLOW_WAY

ENDS = """
dtmc
module m
  x : [0..6];
  [] x = 0 -> 0.5 : (x' = 1) + 0.3 : (x' = 3) + 0.2 : (x' = 5);
  [] x = 1 -> 0.5 : (x' = 0) + 0.5 : (x' = 2);
  [] x = 2 -> (x' = 2);
  [] x = 3 -> 0.25 : (x' = 4) + 0.75 : (x' = 3);
  [] x = 4 -> (x' = 3);
  [] x = 5 -> (x' = 6);
  [] x = 6 -> (x' = 5);
endmodule
"""


def dense_step(model: hybrid.Model) -> np.ndarray:
    """Return the transition matrix of a small chain, of a CTMC uniformised with rate 100."""
    matrix = model.transitions.to_scipy().toarray()
    if model.type.value == "dtmc":
        return matrix
    return np.eye(len(matrix)) + (matrix - np.diag(matrix.sum(axis=1))) / 100.0


def test_transient_of_a_ctmc() -> None:
    from scipy.linalg import expm

    model = tandem("reversed")
    generator = 100.0 * (dense_step(model) - np.eye(model.n_states))
    for time in (0.0, 0.3, 5.0, 400.0):
        np.testing.assert_allclose(model.transient(time), expm(generator * time)[0], atol=1e-9)


def test_transient_of_a_dtmc() -> None:
    model = hybrid.parse(ENDS)
    for steps in (0, 1, 7, 40, 1001):
        expected = np.linalg.matrix_power(dense_step(model), steps)[0]
        np.testing.assert_allclose(model.transient(steps), expected, atol=1e-12)
    for time in (-1, 0.5, float("nan"), float("inf")):
        with pytest.raises(hybrid.HybridError, match="time: expected"):
            model.transient(time)


def test_transient_of_several_times() -> None:
    model, ends = tandem("reversed"), hybrid.parse(ENDS)
    times = [5.0, 0.0, 400.0, 0.3, 5.0]
    found = model.transient(times)
    assert found.shape == (5, model.n_states)
    np.testing.assert_allclose(found, [model.transient(t) for t in times], atol=1e-9)
    np.testing.assert_array_equal(model.transient([5.0]), [model.transient(5.0)])
    steps = np.array([1001, 1, 7, 0])
    np.testing.assert_allclose(ends.transient(steps), [ends.transient(k) for k in steps], atol=1e-12)
    np.testing.assert_array_equal(model.transient([0.0, 0.0]), [model.transient(0.0)] * 2)
    assert ends.transient([]).shape == model.transient([]).shape[:1] + (7,) == (0, 7)
    for given in ([1.0, -1.0], [[1.0]], ["1"], "1", [1.0, [2.0]], None):
        with pytest.raises(hybrid.HybridError, match="time: expected"):
            model.transient(given)  # type: ignore[arg-type]
    with pytest.raises(hybrid.HybridError, match="steps, whole"):
        ends.transient([1, 2.5])


def test_steady_state_of_several_components() -> None:
    found = hybrid.parse(ENDS).steady_state()
    # From 0: 2 with a third, 3 and 4 with 0.4 (four fifths of the time in 3), 5 and 6 in turn.
    expected = [0, 0, 0.25 / 0.75, 0.4 * 0.8, 0.4 * 0.2, 2 / 15, 2 / 15]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_steady_state_is_that_of_the_long_run_operator() -> None:
    model = tandem("reversed")
    found = model.steady_state()
    assert found.sum() == pytest.approx(1.0)
    answer = hybrid.check(model, 'S=? [ "full" ]', epsilon=1e-10)
    assert found[model.labels["full"]].sum() == pytest.approx(answer.value, rel=1e-7)


def test_distributions_of_several_initial_states() -> None:
    text = ENDS.replace("x : [0..6];", "x : [0..6];") + "init x = 2 | x = 5 endinit"
    model = hybrid.parse(text)
    np.testing.assert_allclose(model.state_table()["x"], [2, 5, 6])
    np.testing.assert_allclose(model.transient(3), [0.5, 0, 0.5])
    np.testing.assert_allclose(model.steady_state(), [0.5, 0.25, 0.25])


def test_distributions_of_an_mdp_need_a_scheduler() -> None:
    model = hybrid.parse(SLOW_WAY)
    for call in (lambda: model.transient(1), model.steady_state):
        with pytest.raises(hybrid.HybridError, match="with_scheduler"):
            call()
    with pytest.raises(ValueError, match="layer_transitions"):
        model.transitions  # noqa: B018
    assert model.layer_transitions(0).to_scipy().shape == (4, 4)
