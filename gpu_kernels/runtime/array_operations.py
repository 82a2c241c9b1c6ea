"""Operations on arrays that solutions and layouts make: CuPy compiles a kernel or two for each of them.

What is listed here is compiled ahead, by several processes at once (:mod:`gpu_kernels.runtime.warm_up`).  An
operation that is missing costs its compilation where it is met first, and nothing else; so does one that
nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

Array = Any
Operation = Callable[[Any, Any], object]
"""Called with the array module and with `samples` of some length."""

LENGTHS = (64, 1 << 19)
"""Short arrays are summed up by other kernels than long ones."""

LONG = (1 << 28) + 1
"""Elements of 8 bytes from which CuPy counts by 64 bits, in kernels of their own."""


def samples(xp: Any, length: int) -> SimpleNamespace:
    """Return arrays of some length, a multiple of 64, named by their kind.

    Parameters
    ----------
    xp : module
    length : int

    Returns
    -------
    SimpleNamespace
        `i` int64, `j` int32, `w` uint64, `v` uint32, `c` uint8, `b` bool and `f` float64, shape (length,);
        `pairs` int64, shape (length, 2); `rows` uint32 and `codes` uint8, shape (length // 32, 32); `s`
        float64, shape ().
    """
    i = xp.asarray(np.arange(length) % 32)
    return SimpleNamespace(
        i=i,
        j=xp.asarray(np.zeros(length, np.int32)),
        w=xp.asarray(np.arange(length, dtype=np.uint64)),
        v=xp.asarray(np.zeros(length, np.uint32)),
        c=xp.asarray(np.zeros(length, np.uint8)),
        b=xp.asarray(np.arange(length) % 2 == 0),
        f=xp.asarray(np.ones(length)),
        pairs=xp.asarray(np.zeros((length, 2), np.int64)),
        rows=xp.asarray(np.zeros((length // 32, 32), np.uint32)),
        codes=xp.asarray(np.zeros((length // 32, 32), np.uint8)),
        s=xp.asarray(np.ones(())),
    )


def _assign(target: Array, where: Any, values: Any) -> None:
    target[where] = values


LAYOUT: tuple[Operation, ...] = (
    lambda xp, a: xp.argsort(a.w, kind="stable"),
    lambda xp, a: xp.argsort(a.f, kind="stable"),
    lambda xp, a: xp.argsort(a.i, kind="stable"),
    lambda xp, a: xp.sort(a.i),
    lambda xp, a: a.w != a.w,
    lambda xp, a: a.f != a.f,
    lambda xp, a: xp.flatnonzero(a.j >= 0),
    lambda xp, a: xp.flatnonzero(a.b),
    lambda xp, a: xp.cumsum(a.b),
    lambda xp, a: xp.arange(5, dtype=xp.int64),
    lambda xp, a: xp.arange(5, dtype=xp.uint64),
    lambda xp, a: a.j[a.j],
    lambda xp, a: a.j[a.i],
    lambda xp, a: a.i[a.j],
    lambda xp, a: a.i[a.i],
    lambda xp, a: a.f[a.j],
    lambda xp, a: a.f[a.i],
    lambda xp, a: a.b[a.i],
    lambda xp, a: a.w[a.i],
    lambda xp, a: a.pairs[:, 0][a.j],
    lambda xp, a: a.pairs[a.j],
    lambda xp, a: a.rows[a.i % 2],
    lambda xp, a: a.codes[a.i % 2],
    lambda xp, a: a.f[a.b],
    lambda xp, a: a.i[a.b],
    lambda xp, a: a.w[a.b],
    lambda xp, a: _assign(a.i.copy(), a.i, a.i),
    lambda xp, a: _assign(a.c, a.i, a.c),
    lambda xp, a: _assign(a.i.copy(), slice(1, 5), a.i[:4]),
    lambda xp, a: xp.full(5, 3, xp.int64),
    lambda xp, a: xp.full(5, 3, xp.uint8),
    lambda xp, a: xp.concatenate((a.i[:1], a.i)),
    lambda xp, a: xp.concatenate((a.i, a.i[:1], a.i)),
    lambda xp, a: a.j.astype(xp.int32),
    lambda xp, a: _assign(a.w.copy(), slice(1, 5), a.w[:4]),
    lambda xp, a: _assign(a.b.copy(), a.i, True),
    lambda xp, a: xp.add.at(a.w.copy(), a.i, xp.ones((), xp.uint64)),
    lambda xp, a: xp.add.at(a.i.copy(), a.i, 1),
    lambda xp, a: xp.add.at(a.i.copy(), a.i, a.i),
    lambda xp, a: xp.stack((a.i, a.i), axis=1).ravel(),
    lambda xp, a: xp.ascontiguousarray(xp.stack(2 * (a.i.view(xp.int32).reshape(-1, 2)[:, 0],), axis=1)),
    lambda xp, a: a.i.astype(xp.int32),
    lambda xp, a: a.j.astype(xp.int64),
    lambda xp, a: a.b.astype(xp.int64),
    lambda xp, a: a.v.astype(xp.uint64),
    lambda xp, a: a.i.astype(xp.uint64),
    lambda xp, a: a.i + a.i,
    lambda xp, a: a.i - a.i,
    lambda xp, a: a.i % xp.maximum(a.i, 1),
    lambda xp, a: a.i + a.j,
    lambda xp, a: a.i + 1,
    lambda xp, a: a.i - 1,
    lambda xp, a: a.i * 2,
    lambda xp, a: a.i // 3,
    lambda xp, a: a.i % 3,
    lambda xp, a: -a.i,
    lambda xp, a: a.i >> 1,
    lambda xp, a: a.i << 16,
    lambda xp, a: a.j + 1,
    lambda xp, a: a.i == 3,
    lambda xp, a: a.i == a.i,
    lambda xp, a: a.i != a.i,
    lambda xp, a: a.j != a.j,
    lambda xp, a: a.i > a.i,
    lambda xp, a: a.i < a.i,
    lambda xp, a: a.i >= 0,
    lambda xp, a: a.v == a.v,
    lambda xp, a: a.b | a.b,
    lambda xp, a: xp.where(a.b, a.i, a.i),
    lambda xp, a: xp.where(a.b, a.j, a.j),
    lambda xp, a: xp.where(a.b, a.i, 0),
    lambda xp, a: a.w.reshape(-1, 32) ^ a.w[:32],
    lambda xp, a: a.w ^ a.w,
    lambda xp, a: a.w >> xp.uint64(30),
    lambda xp, a: a.w * xp.uint64(3),
    lambda xp, a: a.w + a.w,
    lambda xp, a: a.w - a.w,
)
"""Of layouts that are made on the device."""

CODING: tuple[Operation, ...] = (
    lambda xp, a: xp.unique(a.i),
    lambda xp, a: xp.searchsorted(a.i[:32], a.i),
    lambda xp, a: a.i.astype(xp.uint8),
    lambda xp, a: xp.ones(64, bool),
    lambda xp, a: xp.concatenate((a.i, a.i)),
)
"""Of vectors that are held by dictionary."""

NUMBERS: tuple[Operation, ...] = (
    lambda xp, a: a.s + a.s,
    lambda xp, a: 0.5 * a.s,
    lambda xp, a: 0 + a.s,
    lambda xp, a: a.s / a.s,
    lambda xp, a: a.s - 1.5,
    lambda xp, a: a.i.astype(xp.float64),
    lambda xp, a: a.c[:1].min().astype(xp.float64),
)
"""Of solutions, on a few numbers."""

VECTORS: tuple[Operation, ...] = (
    lambda xp, a: xp.isfinite(a.f),
    lambda xp, a: a.f == 0.0,
    lambda xp, a: a.f.fill(1.0),
    lambda xp, a: _assign(a.f, slice(None), a.f.copy()),
    lambda xp, a: xp.add(a.f, a.f, out=a.f),
    lambda xp, a: xp.subtract(a.f, a.f, out=a.f),
    lambda xp, a: xp.subtract(a.f, a.s, out=a.f),
    lambda xp, a: xp.add(a.f, a.s, out=a.f),
    lambda xp, a: xp.multiply(a.f, a.f, out=a.f),
    lambda xp, a: xp.multiply(a.f, 0.5, out=a.f),
    lambda xp, a: xp.divide(a.f, 0.9, out=a.f),
    lambda xp, a: xp.absolute(a.f, out=a.f),
    lambda xp, a: xp.divide(a.f, a.f, out=a.f),
    lambda xp, a: xp.divide(1.0, a.f, out=a.f),
    lambda xp, a: xp.subtract(a.f, 1.0, out=a.f),
    lambda xp, a: xp.maximum(a.f, 0.5, out=a.f),
    lambda xp, a: xp.minimum(a.f, 0.5, out=a.f),
    lambda xp, a: xp.maximum(a.f, a.f, out=a.f),
    lambda xp, a: _assign(a.f, a.f <= a.f, 0.5),
    lambda xp, a: a.f >= a.f,
)
"""Of solutions, on vectors; in place, so that long ones take no more room than their own."""

PARTS: tuple[Operation, ...] = (
    lambda xp, a: xp.unique(a.f[:64].view(xp.int64)),
    lambda xp, a: xp.searchsorted(xp.arange(32), a.f[:64].view(xp.int64)),
    lambda xp, a: _assign(xp.zeros(64), slice(None), a.f[:64]),
)
"""Of long vectors' parts, which are counted as the whole is."""

_TILES = {
    "CODE_BITS": 8,
    "INDEX_BITS": 32,
    "MEMBERS": 4,
    "MIN_BLOCKS": 8,
    "SCALED": 0,
    "TERM_BITS": 16,
    "THREADS": 128,
}
_ROWS = {"DIAGONAL_BITS": 64, "INDEX_BITS": 32, "MODE": 1, "RIGHT_BITS": 0}


def _tiles(
    mode: int, diagonal: int, right: int, unit: int, is_anchored: bool = False
) -> tuple[str, str, dict[str, int]]:
    special = {"MODE": mode, "DIAGONAL_BITS": diagonal, "RIGHT_BITS": right, "UNIT": unit}
    return "tiles.cu", "step_tiles", _TILES | special | ({"ANCHORED": 1} if is_anchored else {})


MODULES: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("idr.cu", "aim", {"ANCHORED": 0, "DIAGONAL_BITS": 0, "INDEX_BITS": 32}),
    _tiles(1, 64, 0, 4, is_anchored=True),
    _tiles(1, 64, 64, 4, is_anchored=True),
    _tiles(1, 64, 64, 4),
    _tiles(0, 0, 0, 4),
    _tiles(1, 64, 0, 2, is_anchored=True),
    _tiles(1, 64, 64, 2, is_anchored=True),
    _tiles(1, 64, 64, 2),
    _tiles(1, 64, 0, 2),
    _tiles(0, 0, 0, 2),
    _tiles(3, 64, 64, 2),
    ("vector.cu", "relax_rows", _ROWS),
    ("iteration.cu", "finish_iteration", _ROWS),
    ("blocks.cu", "copy_blocks", {"ELEMENT_BYTES": 8}),
)
"""Sources of our own with a kernel of theirs and the specialisations that most models need."""
