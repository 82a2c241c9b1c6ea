"""Texts that are written: files of blocks, tables as columns of bytes, and matrices as MatrixMarket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.models.interchange.explicit_model import ExplicitModel
from hybrid.models.interchange.streams import written

_PACKED = {".gz": "gzip", ".xz": "xz"}

_EFFORTS = {None: 0, "gzip": 6, "xz": 2}


def write_text(path: str | Path, blocks: Iterable[bytes]) -> None:
    """Write a text, compressed if the name ends with ``.gz`` or ``.xz``.

    `path`: an old file is replaced once the new one is whole, which gets its mode; a device or a pipe is
    written to. Raises OSError: the file cannot be written.
    """
    compression = _PACKED.get(Path(path).suffix)
    with written(path, compression, _EFFORTS[compression]) as sink:
        for block in blocks:
            sink.write(block)


Numbers = NDArray[np.int64]

Vector = NDArray[np.float64]

Bytes = NDArray[np.uint8]

ROWS = 1 << 17
"""Rows that are written together."""


def whole_numbers(values: Numbers) -> Bytes:
    """Return whole numbers as text, shape (n, width)."""
    below = values < 0
    left = np.abs(values).astype(np.uint64)
    width = len(str(int(left.max()))) if left.size else 1
    cells = np.zeros((values.size, width + 1), dtype=np.uint8)
    for k in range(width, 0, -1):
        if k < width:
            live = left > 0
            if not live.any():
                break
        rest = left // 10
        digit = (left - 10 * rest).astype(np.uint8) + 48
        cells[:, k] = digit if k == width else np.where(live, digit, 0)
        left = rest
    if below.any():
        # Zeros between sign and digits are dropped with the others.
        cells[below, 0] = ord("-")
        return cells
    return cells[:, 1:]


def decimals(values: Vector) -> Bytes:
    """Return doubles as the shortest text that reads as the same double, shape (n, width).

    Numbers without a fraction are written without a point, as PRISM and Storm do.
    """
    bits = values.view(np.int64)
    known = np.unique(bits)
    if known.size * 4 <= bits.size:
        return words(_texts(known.view(np.float64)))[np.searchsorted(known, bits)]
    return words(_texts(values))


def _texts(values: Vector) -> list[bytes]:
    """Return the text of every number."""
    return [text.removesuffix(".0").encode() for text in map(repr, values.tolist())]


def words(texts: Sequence[bytes]) -> Bytes:
    """Return texts as a matrix, shape (n, width)."""
    table = np.array(texts, dtype="S") if texts else np.zeros(0, dtype="S1")
    return table.view(np.uint8).reshape(len(texts), -1)


def text_of_rows(n: int, parts: Sequence[bytes | Bytes]) -> bytes:
    """Return rows of cells as text.

    `n`: number of rows. `parts` (sequence of bytes or ndarray of uint8, shape (n, width)): cells of every
    row, or what stands in all rows.
    """
    return matrix(n, parts).tobytes().translate(None, b"\0")


def matrix(n: int, parts: Sequence[bytes | Bytes]) -> Bytes:
    """Return rows of cells as one matrix, shape (n, sum of widths)."""
    columns = [
        np.broadcast_to(np.frombuffer(part, dtype=np.uint8), (n, len(part)))
        if isinstance(part, bytes)
        else part
        for part in parts
    ]
    return np.concatenate(columns, axis=1)


def where(mask: NDArray[np.bool_], text: bytes) -> Bytes:
    """Return a text in the rows of a mask, shape (n, len(text))."""
    return np.where(mask[:, None], np.frombuffer(text, dtype=np.uint8)[None, :], np.uint8(0))


_MOST_STARTS = 1000


def matrix_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the transition matrix as MatrixMarket, coordinate real general.

    Rows are choices: of a chain its states, of an MDP the choices of state 0, then those of state 1, and so
    on; a comment tells where the choices of each state begin, if there are few. Rows and columns count from
    1, entries come by row. Numbers read as the same doubles; of entries at one place the format leaves open
    what they mean, most readers add them up. Time: some microsecond an entry.
    """
    what = "rates" if model.type.value == "ctmc" else "probabilities"
    rows = "choices" if model.is_mdp else "states"
    lines = [
        f"%%MatrixMarket matrix coordinate real general\n% {what} of a {model.type.value}; rows are {rows}\n"
    ]
    if model.choice_starts is not None and model.n_states <= _MOST_STARTS:
        starts = (model.choice_starts[:-1] + 1).tolist()
        lines += [f"% state {state}: rows from {row}\n" for state, row in enumerate(starts, 1)]
    lines.append(f"{model.n_choices} {model.n_states} {model.n_entries}\n")
    yield "".join(lines).encode()
    for first in range(0, model.n_entries, ROWS):
        end = min(first + ROWS, model.n_entries)
        own = np.searchsorted(model.row_starts, np.arange(first, end), side="right")
        columns = model.columns[first:end] + 1
        yield text_of_rows(
            end - first,
            [
                whole_numbers(own),
                b" ",
                whole_numbers(columns),
                b" ",
                decimals(model.values[first:end]),
                b"\n",
            ],
        )
