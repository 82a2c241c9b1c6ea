"""Row partitions: consecutive parts of a matrix's rows, cut by rows, by entries or by bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels.csr import CsrArrays


@dataclass(frozen=True, eq=False)
class RowPartition:
    """Cuts of the rows of a matrix.

    Attributes
    ----------
    starts : ndarray, shape (parts + 1,), int64
        Part i has the rows ``starts[i] .. starts[i + 1]``; begins with 0 and ends with the number of rows.

    Raises
    ------
    ValueError
        If the starts do not begin with 0 or do not ascend.
    """

    starts: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check the starts; equal ones are empty parts."""
        starts = np.asarray(self.starts, dtype=np.int64)
        if starts.ndim != 1 or len(starts) < 2 or starts[0] != 0 or bool((np.diff(starts) < 0).any()):
            raise ValueError(f"starts: expected ascending row numbers that begin with 0, got {starts}")
        object.__setattr__(self, "starts", starts)

    @classmethod
    def by_rows(cls, n_rows: int, parts: int) -> RowPartition:
        """Cut into parts of equally many rows, give or take one ([BESW10] §II: n / g rows a device)."""
        _check_parts(parts)
        return cls(np.arange(parts + 1, dtype=np.int64) * n_rows // parts)

    @classmethod
    def by_entries(cls, row_starts: ArrayLike, parts: int) -> RowPartition:
        """Cut into parts of about equally many entries.

        Parameters
        ----------
        row_starts : array_like, shape (n_rows + 1,)
            Of the matrix.
        parts : int
        """
        _check_parts(parts)
        starts = np.asarray(row_starts)
        wanted = np.arange(1, parts, dtype=np.int64) * int(starts[-1]) // parts
        cuts = np.searchsorted(starts, wanted, "left")
        return cls(np.concatenate(([0], cuts, [len(starts) - 1])))

    @classmethod
    def by_bytes(cls, matrix: CsrArrays, budget: int) -> RowPartition:
        """Cut into as few parts as there are that take at most a number of bytes each.

        Raises
        ------
        ValueError
            If a single row is larger than the budget.
        """
        starts = np.asarray(matrix.row_starts, dtype=np.int64)
        entry = matrix.columns.dtype.itemsize + matrix.values.dtype.itemsize
        index = matrix.row_starts.dtype.itemsize
        # Bytes up to a row; each part has one row start more than rows.
        size = starts * entry + np.arange(len(starts), dtype=np.int64) * index
        cuts, n_rows = [0], len(starts) - 1
        while cuts[-1] < n_rows:
            end = int(np.searchsorted(size, size[cuts[-1]] + budget - index, "right")) - 1
            if end <= cuts[-1]:
                row = cuts[-1]
                needed = int(size[row + 1] - size[row]) + index
                raise ValueError(f"budget: row {row} alone takes {needed} bytes, expected at most {budget}")
            cuts.append(min(end, n_rows))
        return cls(np.array(cuts if len(cuts) > 1 else [0, 0], np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the first row and the row after the last of every part."""
        return iter([(int(a), int(b)) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)])

    @property
    def n_rows(self) -> int:
        """Number of rows of the matrix."""
        return int(self.starts[-1])

    def part_of(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Return the part that each row lies in."""
        found: Any = np.searchsorted(self.starts, np.asarray(rows), "right") - 1
        return np.asarray(found, np.int64)

    def split(self, matrix: CsrArrays) -> list[CsrArrays]:
        """Return the parts of a matrix; columns and values are views of it.

        Raises
        ------
        ValueError
            If the matrix has another number of rows.
        """
        if matrix.shape[0] != self.n_rows:
            raise ValueError(f"matrix: expected {self.n_rows} rows, got {matrix.shape[0]}")
        return [matrix.rows(begin, end) for begin, end in self]


def _check_parts(parts: int) -> None:
    if parts < 1:
        raise ValueError(f"parts: expected at least 1, got {parts}")
