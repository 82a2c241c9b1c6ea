"""Systems of choices: of models, and random layers with what a step over them gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_kernels import ChoiceGains, Device, TileMatrix, mark_entries
from hybrid.analysis.choice_systems import choice_flow
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.gpu.build import code_gains
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.hybrid_choices import hybrid_choices
from hybrid.matrix.operators.layer_choices import LayerChoices, choice_slack, layer_choices_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem, Quotient
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.distributed import stack_layers
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states
from tests.builders.matrices import from_dense


def reaching(model: SymbolicModel, unknown: str, target: str, maximise: bool) -> ChoiceOperator:
    """Return the operator of reaching a target with every choice allowed, end components left as they are."""
    options = CheckOptions(backend="cpu")

    def where(text: str) -> object:
        return model.states(next(label.expression for label in model.source.labels if label.name == text))

    inside, one = (index_states(model.manager, where(name)) for name in (unknown, target))  # type: ignore[arg-type]
    allowed = [layer.enabled for layer in model.layers]
    offers = layer_choices_of(
        model, inside, allowed, lambda layer, rows: choice_flow(model, layer, rows, one, options), maximise
    )
    return hybrid_choices(
        offers,
        ChoiceProblem(inside.size, maximise, None, choice_slack(model)),
        options.matrix_backend(),
        options.level,
        options.representation,
    )


SIZE = 90


@dataclass
class Layers:
    """Dense matrices by layer, gains, and what a step should give."""

    dense: dict[int, np.ndarray]
    gains: dict[int, np.ndarray]
    factors: dict[int, np.ndarray]
    layers: int
    size: int = SIZE

    def matrices(self) -> dict[int, OffsetMTBDD]:
        return {layer: from_dense(m) for layer, m in self.dense.items()}

    def worth(self, x: np.ndarray, maximise: bool, plain: bool = False) -> np.ndarray:
        """What every layer's choice is worth, shape (layers, n); the worst infinity for none."""
        worst = -np.inf if maximise else np.inf
        found = np.full((self.layers, self.size), worst)
        for layer, gain in self.gains.items():
            signed = np.where(np.isinf(gain), worst, 0.0 if plain else gain)
            product = self.dense[layer] @ x if layer in self.dense else np.zeros(self.size)
            found[layer] = self.factors.get(layer, np.ones(self.size)) * product + signed
        return found

    def coded(self, device: Device, tiles: TileMatrix, maximise: bool) -> ChoiceGains:
        worst = -np.inf if maximise else np.inf
        gains = {layer: np.where(np.isinf(g), worst, g) for layer, g in self.gains.items()}
        marks = mark_entries(device, tiles)
        return code_gains(device, marks, gains, self.factors, self.layers, maximise)


def random_layers(rng: np.random.Generator, factors: bool = False, size: int = SIZE) -> Layers:
    """Layers 0, 2 and 3 of 5 with entries, 4 without; choices are missing, and some lead out for certain."""
    dense, gains, scale = {}, {}, {}
    for layer in (0, 2, 3):
        band = np.zeros((size, size))
        for shift in (-layer - 1, 0, 2 * layer + 1):
            rows = np.arange(max(0, -shift), min(size, size - shift))
            band[rows, rows + shift] = 0.25 * (1 + (rows // 16 + layer) % 3)
        # Whole blocks without the choice, and single rows.
        missing = (np.arange(size) // 8 + layer) % 4 == 0
        missing |= rng.random(size) < 0.1
        out = rng.random(size) < 0.1
        band[missing | out] = 0.0
        dense[layer] = band
        gains[layer] = np.where(missing, np.inf, rng.choice([0.0, 0.0, 0.5], size))
        if factors:
            scale[layer] = rng.choice([1.0, 0.75], size)
    gains[4] = np.where(rng.random(size) < 0.2, 0.125, np.inf)
    return Layers(dense, gains, scale, 5, size)


def laid_out(device: Device, case: Layers, level: int, options: LayoutOptions) -> TileMatrix:
    """Tiles of all layers at a level."""
    stacked = stack_layers(case.matrices(), case.layers)
    tiles = build_tile_matrix(
        device, TypedMatrix(stacked).plain, stacked.first_level + level, options, stacked
    )
    assert tiles is not None
    return tiles


def best_of(worth: np.ndarray, maximise: bool) -> np.ndarray:
    return worth.max(axis=0) if maximise else worth.min(axis=0)


@dataclass(frozen=True)
class Choices:
    """Offers of three layers, and the same as dense arrays.

    Attributes
    ----------
    offers : list of LayerChoices
    dense : ndarray, shape (3, n, n)
        Matrices by layer, factors in them.
    gains : ndarray, shape (3, n)
        The worst infinity where there is no choice.
    maximise : bool
    """

    offers: list[LayerChoices]
    dense: np.ndarray
    gains: np.ndarray
    maximise: bool

    @property
    def size(self) -> int:
        return self.gains.shape[1]

    def best(self, worth: np.ndarray, groups: Quotient | None = None) -> np.ndarray:
        """The best over the layers, the same for all members of a group."""
        best = best_of(worth, self.maximise)
        for own in () if groups is None else np.split(groups.members, groups.starts[1:]):
            best[own] = best[own].max() if self.maximise else best[own].min()
        return best


def random_choices(
    rng: np.random.Generator,
    maximise: bool,
    size: int = 60,
    partial: bool = True,
    few: bool = True,
    zeros: float = 0.0,
) -> Choices:
    """Draw offers of three layers, each step of which loses something.

    The first has a row for every state, some without a choice; the second has rows for some states only, if
    `partial`; the third has factors, and is the only one with a choice in the last sixth of the states.  A
    share `zeros` of the gains is zero.
    """
    worst, last = -np.inf if maximise else np.inf, size - size // 6
    density = 3.0 / size
    dense = np.where(rng.random((3, size, size)) < density, rng.choice([0.125, 0.25], (3, size, size)), 0.0)
    # By a power of two: products of entries and factors are exact.
    dense /= 2.0 ** np.ceil(np.log2(max(1.0, 1.25 * dense.sum(axis=2).max())))
    gains = rng.choice([0.5, 0.25], (3, size)) if few else rng.uniform(0.25, 0.5, (3, size))
    gains[rng.random((3, size)) < zeros] = 0.0
    place = np.sort(rng.permutation(last)[: size // 5])
    gains[0, last:], gains[0, 2] = worst, worst
    dense[0, np.isinf(gains[0])] = 0.0
    has = np.isin(np.arange(size), place)
    dense[1], gains[1] = np.where(has[:, None], dense[1], 0.0), np.where(has, gains[1], worst)
    factor = rng.choice([1.0, 0.9375, 0.96875], size)
    rows = place if partial else slice(None)
    offers = [
        LayerChoices(0, None, from_dense(dense[0]), gains[0], None),
        LayerChoices(1, place if partial else None, from_dense(dense[1][rows]), gains[1][rows], None),
        LayerChoices(2, None, from_dense(dense[2]), gains[2], factor),
    ]
    dense[2] *= factor[:, None]
    return Choices(offers, dense, gains, maximise)
