"""Fused layers of a part of the states: early tiles and late ones, columns of others, every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    Device,
    IterationState,
    TileMatrix,
    Tuning,
    finish_iteration,
    mark_entries,
    run_choices,
)
from hybrid.matrix.gpu.build import code_gains
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.levels import probe
from hybrid.matrix.levels.probe import build_choices
from mtbdd.base.communicator import Communicator
from mtbdd.offset.distributed import StackedLayers, stack_layers
from tests.builders.choice_systems import SIZE, Layers, best_of, random_layers
from tests.builders.divided_choices import divided_layers, received
from tests.builders.matrices import from_dense
from tests.gpu_kernels.devices import to_numpy

SPOILT = 1e6  # what is read before it has come makes a result that is wrong, and a number
CUTS = (0, 24, 63, SIZE)
SMALL = Tuning(threads=64, min_blocks=1, members=2)


class Numbered(Communicator):
    """A process that tells nothing."""

    def __init__(self, rank: int) -> None:
        self.rank, self.size = rank, len(CUTS) - 1


class Part:
    """What one process has of layers, on a device."""

    def __init__(
        self, device: Device, case: Layers, rank: int, level: int, options: LayoutOptions, maximise: bool
    ) -> None:
        self.rows = slice(CUTS[rank], CUTS[rank + 1])
        self.halo = np.concatenate(received(case.dense, CUTS, rank))
        self.device, self.case, self.maximise = device, case, maximise
        self.stacked = stacked_part(case, rank)
        types = TypedMatrix(self.stacked).plain
        tiles = build_tile_matrix(device, types, self.stacked.first_level + level, options, self.stacked)
        assert tiles is not None and tiles.early is not None
        self.tiles: TileMatrix = tiles
        self.gains = gains_of(device, case, tiles, self.rows, maximise)

    def step(self, step: ChoiceStep, x: np.ndarray, out: Any) -> None:
        """Make a step: what others have comes after the early tiles."""
        xp = self.device.xp
        own, others = xp.asarray(x[self.rows]), xp.full(len(self.halo), SPOILT)
        operands = self.device, self.tiles, self.gains, step, own, out, others
        run_choices(*operands, "early")
        others[...] = xp.asarray(x[self.halo])
        run_choices(*operands, "late")


def stacked_part(case: Layers, rank: int) -> StackedLayers:
    return stack_layers(divided_layers(case.dense, CUTS, Numbered(rank)), case.layers)


def gains_of(device: Device, case: Layers, tiles: TileMatrix, rows: slice, maximise: bool) -> ChoiceGains:
    worst = -np.inf if maximise else np.inf
    gains = {layer: np.where(np.isinf(g), worst, g)[rows] for layer, g in case.gains.items()}
    factors = {layer: f[rows] for layer, f in case.factors.items()}
    return code_gains(device, mark_entries(device, tiles), gains, factors, case.layers, maximise)


def parts(device: Device, case: Layers, maximise: bool, *layout: Any) -> Iterator[Part]:
    for rank in range(len(CUTS) - 1):
        yield Part(device, case, rank, *layout, maximise)


def dyadic(rng: np.random.Generator) -> np.ndarray:
    """Return numbers whose products with entries and gains add up without rounding."""
    return rng.integers(1, 64, SIZE) / 64.0


LAYOUTS = [
    (0, LayoutOptions(SMALL)),
    (6, LayoutOptions(SMALL, unit=1)),
    (10, LayoutOptions(Tuning(64, 1, 4), slices=1, wide=True)),
    (14, LayoutOptions(Tuning(128, 1, 1), window_rows=16, look_ups=4)),
]


@pytest.mark.parametrize(
    ("level", "options", "maximise"),
    [
        pytest.param(*layout, maximise, id=f"{layout[0]}-{maximise}")
        for k, layout in enumerate(LAYOUTS)
        for maximise in [k % 2 == 0]
    ],
)
def test_parts_have_the_bits_of_the_whole(
    device: Device, rng: np.random.Generator, level: int, options: LayoutOptions, maximise: bool
) -> None:
    case, x = random_layers(rng, factors=True), dyadic(rng)
    wanted = best_of(case.worth(x, maximise), maximise)
    early = late = 0
    for part in parts(device, case, maximise, level, options):
        out = device.xp.full(part.tiles.n_rows, np.nan)
        part.step(ChoiceStep(maximise), x, out)
        np.testing.assert_array_equal(to_numpy(out), wanted[part.rows])
        early += part.tiles.early
        late += len(part.tiles.items) - part.tiles.early
    assert late > 0
    assert (early > 0) == (level >= 10)


@pytest.mark.parametrize("terms", [24, 640])
def test_all_parts_of_a_step(device: Device, rng: np.random.Generator, terms: int) -> None:
    case, x, xp, maximise = random_layers(rng), dyadic(rng), device.xp, terms == 24
    shape = dyadic(rng)
    plain, worth = case.worth(x, maximise, plain=True), case.worth(x, maximise)
    best = best_of(plain, maximise)
    policy = rng.integers(0, case.layers, SIZE).astype(np.uint16)
    options = LayoutOptions(SMALL, terms=terms)
    for part in parts(device, case, maximise, 3, options):
        rows, size = part.rows, part.tiles.n_rows
        chosen, out = xp.zeros(size, np.uint16), xp.full(size, np.nan)
        state = IterationState.create(device)
        own_shape = xp.asarray(shape[rows])
        part.step(ChoiceStep(maximise, 0.5, True, own_shape, chosen=chosen, state=state), x, out)
        finish_iteration(device, state, -1.0, False)
        expected = 0.5 * best[rows] + shape[rows]
        np.testing.assert_array_equal(to_numpy(out), expected)
        np.testing.assert_array_equal(to_numpy(state.differences)[0], np.abs(expected - x[rows]).max())
        some, layers = np.isfinite(best[rows]), to_numpy(chosen)
        np.testing.assert_array_equal(plain[:, rows][layers[some], np.flatnonzero(some)], best[rows][some])
        part.step(ChoiceStep(maximise, policy=xp.asarray(policy[rows])), x, out)
        np.testing.assert_array_equal(to_numpy(out), worth[policy, np.arange(SIZE)][rows])


def test_levels_of_parts_are_timed_with_their_columns_of_others(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PROBE_ENTRIES", 0)
    case, x = random_layers(rng), dyadic(rng)
    wanted = best_of(case.worth(x, True), True)
    matrices = divided_layers(case.dense, CUTS, Numbered(1))
    built = build_choices(device, matrices, case.layers, "min-time", LayoutOptions(SMALL))
    assert built is not None
    tiles, rows = built[1], slice(*CUTS[1:3])
    halo = np.concatenate(received(case.dense, CUTS, 1))
    own, out = device.xp.asarray(x[rows]), device.xp.empty(tiles.n_rows)
    gains = gains_of(device, case, tiles, rows, True)
    run_choices(device, tiles, gains, ChoiceStep(True), own, out, device.xp.asarray(x[halo]))
    np.testing.assert_array_equal(to_numpy(out), wanted[rows])


def test_a_part_that_reads_nothing_of_others_is_early(device: Device) -> None:
    dense = {0: 0.5 * np.eye(SIZE), 1: 0.25 * np.eye(SIZE)}
    gains = {layer: np.zeros(SIZE) for layer in dense}
    part = Part(device, Layers(dense, gains, {}, 2), 1, 0, LayoutOptions(SMALL), True)
    assert len(part.halo) == 0
    assert part.tiles.early == len(part.tiles.items) > 0


def test_columns_of_others_are_asked_for(device: Device, rng: np.random.Generator) -> None:
    part = Part(device, random_layers(rng), 1, 6, LayoutOptions(SMALL), True)
    x, out = device.xp.zeros(part.tiles.n_rows), device.xp.empty(part.tiles.n_rows)
    operands = device, part.tiles, part.gains, ChoiceStep(True), x, out
    with pytest.raises(ValueError, match=f"elements of {len(part.halo)} columns behind the own ones"):
        run_choices(*operands)
    with pytest.raises(ValueError, match="others: expected shape"):
        run_choices(*operands, device.xp.zeros(len(part.halo) + 1))


def test_layers_that_are_not_square_in_the_own_states_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="expected square ones"):
        stack_layers({0: from_dense(rng.random((3, 5)), n_bits=3)}, 1)
