"""The GPU backend's product for a matrix and a level: memory checked, layout built on it or for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, PairMatrix, Place, TileMatrix, current_device, made_for
from hybrid.matrix.gpu.admission import check_memory
from hybrid.matrix.gpu.cost import layout_items, types_of_level, uses_pairs
from hybrid.matrix.gpu.pair_layout import build_pairs
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.row_types import RowTypes, TypedMatrix


def build_product(curve: TypedMatrix, k: int, options: LayoutOptions | None = None) -> GpuProduct:
    """Build the representation of a level on the current device: tiles, or pairs where rows are long.

    Parameters
    ----------
    curve : TypedMatrix
        The matrix with its row types.
    k : int
        Level.
    options : LayoutOptions, optional
        Choices of speed; if given, the level is held as tiles.

    Returns
    -------
    GpuProduct

    Raises
    ------
    MemoryError
        If the device has no room; the message says what is needed, what is free, and what to do.
    ValueError
        If the level has too many row types.
    """
    return GpuProduct(current_device(), build_layout(curve, k, options))


def build_layout(
    curve: TypedMatrix,
    k: int,
    options: LayoutOptions | None = None,
    own_columns: int | None = None,
    strip: NDArray[np.int64] | None = None,
) -> TileMatrix | PairMatrix:
    """Return the arrays of `build_product` alone.

    Parameters
    ----------
    curve, k, options
        As for `build_product`.
    own_columns, strip : optional
        See `hybrid.matrix.gpu.tile_layout.build_tile_matrix`; with strips the level is held as tiles.
    """
    device = current_device()
    types = types_of_level(curve, k)
    pairs = options is None and strip is None and uses_pairs(curve, k)
    layout = _build(device, types, k, options, pairs, own_columns, strip)
    if layout is None:
        # Sharing up to a scale would cost accuracy here.
        layout = _build(device, curve.plain, k, options, pairs, own_columns, strip)
    if layout is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return layout


def _build(
    device: Device,
    types: RowTypes,
    k: int,
    options: LayoutOptions | None,
    pairs: bool,
    own_columns: int | None,
    strip: NDArray[np.int64] | None,
) -> TileMatrix | PairMatrix | None:
    check_memory(device, types, k, pairs)

    def make(place: Place) -> TileMatrix | PairMatrix | None:
        if pairs:
            return build_pairs(place, types, k)
        return build_tile_matrix(place, types, k, options, own_columns=own_columns, strip=strip)

    return made_for(device, layout_items(types, k), make)
