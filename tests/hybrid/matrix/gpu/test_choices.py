"""Fused layers on the device against dense matrices: levels, widths, rounds, gains, all steps."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import (
    NO_CHOICE,
    ChoiceGains,
    ChoiceStep,
    Device,
    Host,
    IterationState,
    Tuning,
    copied_to,
    finish_choices,
    finish_iteration,
    mark_entries,
    run_choices,
)
from hybrid.matrix.gpu.build import code_gains
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.levels.probe import build_choices
from mtbdd.offset.distributed import stack_layers
from tests.builders.choice_systems import SIZE, Layers, best_of, laid_out, random_layers
from tests.builders.matrices import from_dense
from tests.gpu_kernels.devices import to_numpy

ROUNDS = 7
"""Word of an item that holds its number of rounds."""


@pytest.mark.parametrize("maximise", [False, True])
def test_gains_coded_on_the_host_are_those_coded_on_the_device(
    device: Device, rng: np.random.Generator, maximise: bool
) -> None:
    case = random_layers(rng, factors=True)
    tiles = laid_out(device, case, 3, LayoutOptions(SMALL))
    worst = -np.inf if maximise else np.inf
    gains = {layer: np.where(np.isinf(g), worst, g) for layer, g in case.gains.items()}
    marks = to_numpy(mark_entries(device, tiles))
    made = case.coded(device, tiles, maximise)
    copied = copied_to(device, code_gains(Host(), marks, gains, case.factors, case.layers, maximise))
    for name in ("codes", "gains", "blank", "factors"):
        own, other = getattr(made, name), getattr(copied, name)
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(to_numpy(own), to_numpy(other), err_msg=name)
    assert (made.bits, made.uniform) == (copied.bits, copied.uniform)


SMALL = Tuning(threads=64, min_blocks=1, members=2)


@pytest.mark.parametrize("level", [0, 3, 8, 14])
def test_levels_agree_with_dense_matrices(device: Device, rng: np.random.Generator, level: int) -> None:
    case = random_layers(rng)
    tiles = laid_out(device, case, level, LayoutOptions(SMALL))
    x = rng.random(SIZE)
    out = device.xp.full(SIZE, np.nan)
    run_choices(device, tiles, case.coded(device, tiles, True), ChoiceStep(True), device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), best_of(case.worth(x, True), True), rtol=1e-14)


SHAPES = {
    "wide": LayoutOptions(Tuning(64, 1, 4), slices=1, wide=True),
    "one-member": LayoutOptions(Tuning(128, 1, 1), window_rows=16),
    "single-entries": LayoutOptions(SMALL, unit=1),
    "many-groups": LayoutOptions(SMALL, slices=1, turns=4, look_ups=4),
    # So few terms that a tile takes several rounds.
    "rounds": LayoutOptions(SMALL, terms=24),
}


@pytest.mark.parametrize(
    ("options", "maximise"),
    [
        pytest.param(options, maximise, id=f"{maximise}-{name}")
        for k, (name, options) in enumerate(SHAPES.items())
        for maximise in [k % 2 == 0]
    ],
)
def test_launch_shapes_agree_with_dense_matrices(
    device: Device, rng: np.random.Generator, options: LayoutOptions, maximise: bool
) -> None:
    case = random_layers(rng, factors=True)
    tiles = laid_out(device, case, 0 if options.terms == 24 else 6, options)
    if options.terms == 24:
        assert to_numpy(tiles.items)[:, ROUNDS].max() > 1
    x = rng.random(SIZE)
    out = device.xp.full(SIZE, np.nan)
    gains = case.coded(device, tiles, maximise)
    run_choices(device, tiles, gains, ChoiceStep(maximise), device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), best_of(case.worth(x, maximise), maximise), rtol=1e-14)


@pytest.mark.parametrize("terms", [24, 640])
def test_all_parts_of_a_step_agree_with_dense_matrices(
    device: Device, rng: np.random.Generator, terms: int
) -> None:
    case, xp, maximise = random_layers(rng), device.xp, terms == 24
    tiles = laid_out(device, case, 0, LayoutOptions(SMALL, terms=terms))
    assert (to_numpy(tiles.items)[:, ROUNDS].max() > 1) == (terms == 24)
    gains = case.coded(device, tiles, maximise)
    x, shape = rng.random(SIZE), rng.random(SIZE)
    chosen, out, state = xp.zeros(SIZE, np.uint16), xp.full(SIZE, np.nan), IterationState.create(device)
    step = ChoiceStep(maximise, 0.5, True, xp.asarray(shape), chosen=chosen, state=state)
    run_choices(device, tiles, gains, step, xp.asarray(x), out)
    finish_iteration(device, state, -1.0, False)
    worth = case.worth(x, maximise, plain=True)
    best = best_of(worth, maximise)
    expected = 0.5 * best + shape
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-14)
    change = np.abs(expected - x)
    finite = np.isfinite(best).all()
    wanted = [change.max(), (change / np.abs(expected)).max()] if finite else [np.inf, np.nan]
    np.testing.assert_allclose(to_numpy(state.differences)[:1], wanted[:1], rtol=1e-12)
    policy = to_numpy(chosen)
    some = np.isfinite(best)
    np.testing.assert_array_equal(policy == NO_CHOICE, ~some)
    attained = worth[policy[some], np.flatnonzero(some)]
    np.testing.assert_allclose(attained, best[some], rtol=1e-14)

    # The same policy again, and another one, which leaves some states without their choice.
    run_choices(device, tiles, gains, ChoiceStep(maximise, policy=chosen, plain=True), xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), best, rtol=1e-14)
    other = rng.choice([0, 1, 2, 3, 4, NO_CHOICE], SIZE).astype(np.uint16)
    run_choices(device, tiles, gains, ChoiceStep(maximise, policy=xp.asarray(other)), xp.asarray(x), out)
    worth = np.vstack((case.worth(x, maximise), np.full(SIZE, -np.inf if maximise else np.inf)))
    expected = worth[np.minimum(other, case.layers), np.arange(SIZE)]
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-14)


def test_gains_take_few_rows_where_they_do_not_matter(device: Device, rng: np.random.Generator) -> None:
    case = random_layers(rng)
    tiles = laid_out(device, case, 6, LayoutOptions(SMALL))
    marks = to_numpy(mark_entries(device, tiles))
    for layer in range(case.layers):
        entries = (case.dense[layer] != 0).any(axis=1) if layer in case.dense else np.zeros(SIZE, bool)
        np.testing.assert_array_equal((marks >> np.uint64(layer)) & np.uint64(1) != 0, entries)
    for layer, gain in case.gains.items():
        has = (marks >> np.uint64(layer)) & np.uint64(1) != 0
        gain[has], gain[~has] = 1.0, np.inf
    coded = case.coded(device, tiles, True)
    assert coded.bits == 0
    x = rng.random(SIZE)
    out = device.xp.empty(SIZE)
    run_choices(device, tiles, coded, ChoiceStep(True), device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), best_of(case.worth(x, True), True), rtol=1e-14)
    # As many different gains as states: wider codes.
    for gain in case.gains.values():
        gain[np.isfinite(gain)] += rng.random(int(np.isfinite(gain).sum()))
    coded = case.coded(device, tiles, True)
    wide = ChoiceGains(16, device.xp.asarray(coded.codes, dtype=np.uint16), coded.gains, coded.blank, None)
    for gains in (coded, wide):
        run_choices(device, tiles, gains, ChoiceStep(True), device.xp.asarray(x), out)
        np.testing.assert_allclose(to_numpy(out), best_of(case.worth(x, True), True), rtol=1e-14)
    case.gains[0][(case.dense[0] != 0).any(axis=1)] = np.inf
    with pytest.raises(ValueError, match="layer 0 has transitions"):
        case.coded(device, tiles, True)


@pytest.mark.parametrize("entries", [0, 1])
def test_one_state(device: Device, entries: int) -> None:
    dense = np.full((1, 1), 0.5) if entries else np.zeros((1, 1))
    case = Layers({0: dense}, {0: np.array([0.25])}, {}, 1, 1)
    built = build_choices(device, case.matrices(), 1)
    assert built is not None
    tiles = built[1]
    x, out = device.xp.ones(1), device.xp.zeros(1)
    run_choices(device, tiles, case.coded(device, tiles, False), ChoiceStep(False), x, out)
    assert to_numpy(out).tolist() == [0.25 + 0.5 * entries]


def test_a_level_above_which_layers_are_not_chosen_is_refused(rng: np.random.Generator) -> None:
    stacked = stack_layers(random_layers(rng).matrices(), 5)
    assert stacked.first_level == 6
    stacked.layer_of_nodes(6)
    with pytest.raises(ValueError, match="expected 6 or more"):
        stacked.layer_of_nodes(5)


def test_a_tile_with_too_many_terms_is_refused(device: Device, rng: np.random.Generator) -> None:
    dense = rng.random((SIZE, SIZE))
    stacked = stack_layers({0: from_dense(dense)}, 1)
    options = LayoutOptions(SMALL)
    assert build_tile_matrix(device, TypedMatrix(stacked).plain, 0, options, stacked) is None


def test_finishing_apart_is_the_same(device: Device, rng: np.random.Generator) -> None:
    xp, size = device.xp, 300
    x, best, shape = rng.random(size), rng.random(size), rng.random(size)
    state, out = IterationState.create(device), xp.array(best)
    step = ChoiceStep(True, 0.5, shape=xp.asarray(shape), state=state)
    finish_choices(device, step, xp.asarray(x), out, wide=True)
    finish_iteration(device, state, -1.0, False)
    expected = 0.5 * best + shape
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-15)
    change = np.abs(expected - x)
    np.testing.assert_allclose(to_numpy(state.differences), [change.max(), (change / expected).max()])


def test_operands_are_checked(device: Device, rng: np.random.Generator) -> None:
    case, xp = random_layers(rng), device.xp
    tiles = laid_out(device, case, 6, LayoutOptions(SMALL))
    gains, x = case.coded(device, tiles, True), xp.zeros(SIZE)
    with pytest.raises(ValueError, match="shares memory"):
        run_choices(device, tiles, gains, ChoiceStep(True), x, x)
    with pytest.raises(TypeError, match="policy: expected dtype uint16"):
        step = ChoiceStep(True, policy=xp.zeros(SIZE, np.int32))
        run_choices(device, tiles, gains, step, x, xp.zeros(SIZE))
    narrow = ChoiceGains(gains.bits, gains.codes, gains.gains[:, 1:], gains.blank, None)
    with pytest.raises(ValueError, match="with 11 columns"):
        run_choices(device, tiles, narrow, ChoiceStep(True), x, xp.zeros(SIZE))
