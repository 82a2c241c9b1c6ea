"""Choices written out: the kernel against its NumPy twin over shapes, lanes and every part of a step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_kernels import (
    NO_CHOICE,
    ChoiceRows,
    ChoiceStep,
    Device,
    IterationState,
    finish_iteration,
    run_choice_rows,
)
from tests.exploring import pairs
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice


def random_rows(
    rng: np.random.Generator, states: int, choices: int, transitions: int, empty: bool = False
) -> dict[str, np.ndarray]:
    """Up to so many choices a state, some states without any, and transitions a choice, some without any."""
    many = rng.integers(0, choices + 1, states) * (not empty)
    total = int(many.sum())
    degrees = rng.integers(0, transitions + 1, total)
    entries = int(degrees.sum())
    return {
        "choice_ptr": np.concatenate(([0], np.cumsum(many))),
        "offsets": np.concatenate(([0], np.cumsum(degrees))),
        "columns": rng.integers(0, max(states, 1), entries),
        "values": rng.random(entries),
        "gains": rng.choice([0.0, 0.25, 1.0], total),
        "layers": np.concatenate([np.arange(m) for m in many] or [np.zeros(0)]).astype(np.uint16),
    }


def on_host(arrays: dict[str, np.ndarray]) -> ChoiceRows:
    return ChoiceRows(**arrays).to_device(HostDevice())


def step_by_numpy(rows: ChoiceRows, step: ChoiceStep, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a step writes and the chosen layers, by NumPy; rows and operands on the host."""
    worst = -np.inf if step.maximise else np.inf
    owner = np.repeat(np.arange(len(rows.gains)), np.diff(rows.offsets))
    worth = np.bincount(owner, rows.values * x[rows.columns], minlength=len(rows.gains))
    if not step.plain:
        worth = worth + rows.gains
    state = np.repeat(np.arange(rows.size), np.diff(rows.choice_ptr))
    if step.policy is not None:
        worth = np.where(step.policy[state] == rows.layers, worth, worst)
    best = np.full(rows.size, worst)
    (np.maximum if step.maximise else np.minimum).at(best, state, worth)
    chosen = np.full(rows.size, NO_CHOICE, np.uint16)
    found = np.flatnonzero((worth == best[state]) & (worth != worst))[::-1]
    chosen[state[found]] = rows.layers[found]
    out = step.scale * best
    return out if step.shape is None else out + step.shape, chosen


@pytest.mark.parametrize(
    ("scanned", "maximise", "states", "choices", "transitions", "lanes"),
    pairs(
        [False, True],
        [True, False],
        [
            (1, 3, 2, (1, 1)),
            (257, 4, 3, (1, 1)),
            (255, 4, 3, (4, 1)),
            (70, 3, 20, (8, 4)),
            (33, 40, 5, (32, 1)),
            (9, 5, 90, (32, 32)),
            (40, 0, 0, (2, 2)),
        ],
    ),
)
def test_steps_match_numpy(
    device: Device,
    rng: np.random.Generator,
    states: int,
    choices: int,
    transitions: int,
    lanes: tuple[int, int],
    maximise: bool,
    scanned: bool,
) -> None:
    arrays, xp = random_rows(rng, states, choices, transitions), device.xp
    rows = replace(
        ChoiceRows(**arrays).to_device(device, wide=maximise), state_lanes=lanes[0], choice_lanes=lanes[1]
    )
    if scanned:
        rows = replace(rows.scanned(device), choice_lanes=lanes[1])
    x, shape = rng.random(states), rng.random(states)
    out, chosen, state = xp.full(states, np.nan), xp.zeros(states, np.uint16), IterationState.create(device)
    step = ChoiceStep(maximise, 0.75, False, xp.asarray(shape), chosen=chosen, state=state)
    run_choice_rows(device, rows, step, xp.asarray(x), out)
    finish_iteration(device, state, -1.0, False)
    twin = ChoiceStep(maximise, 0.75, shape=shape)
    expected, policy = step_by_numpy(on_host(arrays), twin, x)
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-13)
    np.testing.assert_allclose(to_numpy(state.differences)[0], np.abs(expected - x).max(), rtol=1e-12)
    np.testing.assert_array_equal(to_numpy(chosen), policy)


def test_a_scan_goes_over_the_borders_of_tiles(device: Device) -> None:
    # Two choices of 5,000 transitions with an empty one between them and behind them: three tiles.
    xp = device.xp
    arrays = {
        "choice_ptr": np.array([0, 4]),
        "offsets": np.array([0, 5000, 5000, 10_000, 10_000]),
        "columns": np.zeros(10_000),
        "values": np.repeat([1.0, 3.0], 5000) / 8192,
        "gains": np.zeros(4),
        "layers": np.arange(4),
    }
    rows = ChoiceRows(**arrays).to_device(device).scanned(device)
    assert len(rows.plan.flags) == 2
    assert rows.nbytes == ChoiceRows(**arrays).to_device(device).nbytes + rows.plan.nbytes + 80_000
    out = xp.empty(1)
    for maximise, layer, expected in ((True, 2, 15_000 / 8192), (False, 1, 0.0)):
        chosen = xp.zeros(1, np.uint16)
        run_choice_rows(device, rows, ChoiceStep(maximise, chosen=chosen), xp.ones(1), out)
        assert (float(out[0]), int(chosen[0])) == (expected, layer)


def test_policies_and_steps_without_gains_match_numpy(device: Device, rng: np.random.Generator) -> None:
    states, xp = 130, device.xp
    arrays = random_rows(rng, states, 3, 4)
    rows, twin_rows = ChoiceRows(**arrays).to_device(device), on_host(arrays)
    x, policy = rng.random(states), rng.choice([0, 1, 2, NO_CHOICE], states).astype(np.uint16)
    out = xp.empty(states)
    for plain in (True, False):
        step = ChoiceStep(False, plain=plain, policy=xp.asarray(policy))
        run_choice_rows(device, rows, step, xp.asarray(x), out)
        expected, _ = step_by_numpy(twin_rows, ChoiceStep(False, plain=plain, policy=policy), x)
        np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-13)
        assert np.isinf(expected).any()


def test_the_numpy_twin_by_hand() -> None:
    # State 0 chooses between 1/2 to itself with gain 1, and certain state 1; state 1 has no choice.
    arrays = {
        "choice_ptr": np.array([0, 2, 2]),
        "offsets": np.array([0, 1, 2]),
        "columns": np.array([0, 1]),
        "values": np.array([0.5, 1.0]),
        "gains": np.array([1.0, 0.0]),
        "layers": np.array([3, 7], np.uint16),
    }
    x = np.array([4.0, 5.0])
    best, chosen = step_by_numpy(on_host(arrays), ChoiceStep(True), x)
    assert (best.tolist(), chosen.tolist()) == ([5.0, -np.inf], [7, NO_CHOICE])
    best, chosen = step_by_numpy(on_host(arrays), ChoiceStep(False), x)
    assert (best.tolist(), chosen.tolist()) == ([3.0, np.inf], [3, NO_CHOICE])


def test_no_state_and_launch_shapes() -> None:
    device = HostDevice()
    none = ChoiceRows(np.zeros(1), np.zeros(1), *[np.zeros(0)] * 4).to_device(device)
    run_choice_rows(device, none, ChoiceStep(True), np.zeros(0), np.zeros(0))
    assert device.launches == []
    long = ChoiceRows(
        np.array([0, 2]), np.array([0, 40, 80]), np.zeros(80), np.ones(80), np.zeros(2), np.zeros(2)
    ).to_device(device)
    assert (long.state_lanes, long.choice_lanes) == (16, 8)


def test_pointers_that_do_not_fit_are_refused() -> None:
    device = HostDevice()
    one = np.array([0, 1])
    with pytest.raises(ValueError, match="at their ends"):
        ChoiceRows(one, one, np.zeros(2), np.zeros(2), np.zeros(1), np.zeros(1)).to_device(device)
    with pytest.raises(ValueError, match="one a transition"):
        ChoiceRows(one, one, np.zeros(1), np.zeros(2), np.zeros(1), np.zeros(1)).to_device(device)
    fit = ChoiceRows(one, one, *[np.zeros(1)] * 4).to_device(device)
    with pytest.raises(ValueError, match="powers of two"):
        run_choice_rows(device, replace(fit, state_lanes=3), ChoiceStep(True), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="shares memory"):
        x = np.zeros(1)
        run_choice_rows(device, fit, ChoiceStep(True), x, x)


def test_a_sum_that_is_no_number_is_seen(device: Device) -> None:
    xp = device.xp
    two = np.array([0, 2])
    rows = ChoiceRows(
        two, np.array([0, 1, 1]), np.zeros(1), np.ones(1), np.zeros(2), np.array([0, 1])
    ).to_device(device)
    out, state = xp.zeros(1), IterationState.create(device)
    run_choice_rows(device, rows, ChoiceStep(True, state=state), xp.full(1, np.nan), out)
    finish_iteration(device, state, -1.0, False)
    assert np.isnan(to_numpy(out)).all()
    assert not np.isfinite(to_numpy(state.differences)[0])
