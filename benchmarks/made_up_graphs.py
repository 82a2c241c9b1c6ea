"""Made-up decision processes without probabilities, of any size: what decompositions are measured on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["CASES", "Lists"]

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]
"""offsets, targets and choice offsets, int32."""


def layers(width: int, rng: np.random.Generator, depth: int = 200, back: float = 0.0) -> Lists:
    """Make layers that lead to the next one, by up to three choices of two targets; the last one loops.

    A share ``back`` of the transitions leads a few layers back, which makes components of all sizes.
    """
    n = width * depth
    n_choices = rng.integers(1, 4, n)
    n_choices[-width:] = 1
    source = np.repeat(np.repeat(np.arange(n), n_choices), 2)
    layer = source // width
    step = np.where(rng.random(len(source)) < back, -rng.integers(0, 4, len(source)), 1)
    targets = np.clip(layer + step, 0, depth - 1) * width + rng.integers(0, width, len(source))
    targets = np.where(layer == depth - 1, source, targets)
    return _lists(n, n_choices, np.full(n_choices.sum(), 2), targets)


def tokens(side: int, rng: np.random.Generator) -> Lists:
    """Make a torus in three dimensions, a choice a direction, some with a coin: one component."""
    n = side**3
    x, y, z = np.unravel_index(np.arange(n), (side,) * 3)
    moves = [
        np.ravel_multi_index(((x + i) % side, (y + j) % side, (z + k) % side), (side,) * 3)
        for i, j, k in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0))
    ]
    order = rng.permutation(n)
    targets = np.stack([moves[0], moves[1], np.arange(n), moves[2], moves[3], np.arange(n), moves[4]], axis=1)
    renamed = np.empty((n, 7), np.int64)
    renamed[order] = order[targets]
    return _lists(n, np.full(n, 5), np.tile([1, 1, 2, 2, 1], n), renamed.ravel())


def walks(count: int, rng: np.random.Generator, length: int = 64) -> Lists:
    """Make random walks on short lines, with a choice to go to a later one: many small components."""
    n = count * length
    state = np.arange(n)
    line, at = state // length, state % length
    left = np.where(at > 0, state - 1, state)
    right = np.where(at < length - 1, state + 1, state)
    later = np.minimum(line + rng.integers(1, 10, n), count - 1) * length + rng.integers(0, length, n)
    return _lists(n, np.full(n, 2), np.tile([2, 1], n), np.stack([left, right, later], axis=1).ravel())


def _lists(n: int, n_choices: np.ndarray, lengths: np.ndarray, targets: np.ndarray) -> Lists:
    choice_offsets = np.concatenate([[0], np.cumsum(lengths)])
    offsets = choice_offsets[np.concatenate([[0], np.cumsum(n_choices)])]
    assert len(offsets) == n + 1 and offsets[-1] == len(targets)
    return offsets.astype(np.int32), targets.astype(np.int32), choice_offsets.astype(np.int32)


CASES: dict[str, Callable[[int, np.random.Generator], Lists]] = {
    "layers": layers,
    "layers_back": lambda width, rng: layers(width, rng, back=0.2),
    "deep_layers": lambda width, rng: layers(width, rng, depth=20_000),
    "tokens": tokens,
    "walks": walks,
}
"""By name: from a size and a generator of random numbers."""
