"""Values of states that processes share, written by all of them at once into one file."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.file_pieces import COLUMNS, head_line, opened_array, value_type, write_rows
from hybrid.analysis.run.shared_file import SharedFile
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.own_numbers import own_numbers
from mtbdd.build.state_table import table_of_range, table_of_states, table_type

_ROUND = 1 << 20  # states that all processes together write in one round, at most
_STRETCH = 1 << 18  # states that one process writes in one round, at most

Own = Callable[[NDArray[np.int64]], NDArray[Any]]
"""Returns the records of some of the own states, by their indices."""


def write_in_parts(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write the values of all states to one file, each process a part of it; see `write_state_values`.

    Parameters
    ----------
    path : Path
        The same file for all processes.
    model : SymbolicModel
        As this process has it.  All processes call it at once.
    found : StateValues or StateTruth
        Of the own states in index order.

    Raises
    ------
    OSError
        Some process cannot write it; in all processes alike.

    Notes
    -----
    If the values are the same, the file has the same bytes as if one process had written it.  Every round
    writes states of consecutive numbers, cut into one stretch a process.  A process sends the records of its
    own states to the processes whose stretches they are in, and writes its stretch to the file.  So every
    process writes contiguous pieces, however the states are divided.  The first process computes the
    checksums of arrays, for which it reads the file once.  Memory: two numbers for every own state, and a few
    copies of the records of a million states, all processes together.
    """
    communicator = model.communicator
    with SharedFile(communicator, path) as file:
        numbers, indices = own_numbers(model)
        stretches = _Stretches(communicator, numbers, indices, model.n_states)
        if path.suffix == ".csv":
            _write_table(file, stretches, model, found)
        else:
            _write_arrays(file, stretches, model, found)


# ------------------------------------------------------------------ who writes what


class _Stretches:
    """Records of states of consecutive numbers, received from the processes that own the states."""

    def __init__(
        self,
        communicator: Communicator,
        numbers: NDArray[np.int64],
        indices: NDArray[np.int64],
        total: int,
    ) -> None:
        self._communicator, self._numbers, self._indices = communicator, numbers, indices
        self._total = total

    def of(self, kind: np.dtype[Any], own: Own) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield this process's stretch of every round: its first number, and the records of its states."""
        communicator = self._communicator
        size = communicator.size
        length = min(-(-min(_ROUND, self._total) // size), _STRETCH)
        sent = np.dtype([("place", np.int32), ("told", kind)])
        for begin in range(0, self._total, length * size):
            starts = begin + length * np.arange(size + 1)
            ends = np.searchsorted(self._numbers, starts)
            mine = slice(int(ends[0]), int(ends[-1]))
            records = np.empty(mine.stop - mine.start, sent)
            records["told"] = own(self._indices[mine])
            records["place"] = (self._numbers[mine] - begin) % length
            outgoing = [records[a:b] for a, b in pairwise((ends - ends[0]).tolist())]
            counts = communicator.gather(np.diff(ends))[:, communicator.rank].astype(np.int64)
            incoming = [np.empty(int(count), sent) for count in counts]
            communicator.exchange(_as_bytes(outgoing), _as_bytes(incoming))
            incoming[communicator.rank] = outgoing[communicator.rank]
            first = min(int(starts[communicator.rank]), self._total)
            told = np.empty(min(length, self._total - first), kind)
            if sum(part.size for part in incoming) != told.size:
                raise RuntimeError("states are not owned by one process each")
            for part in incoming:
                told[part["place"]] = part["told"]
            yield first, told


def _as_bytes(arrays: list[NDArray[Any]]) -> list[NDArray[np.uint8]]:
    """Return arrays as what every communicator can send."""
    return [array.view(np.uint8) for array in arrays]


# ------------------------------------------------------------------ what is written


def _write_table(
    file: SharedFile, stretches: _Stretches, model: SymbolicModel, found: StateValues | StateTruth
) -> None:
    """Write a header and a row a state; before each round processes tell the lengths of their rows."""
    variables, cell = model.encoding.shown, value_type(found)
    kind = np.dtype([("state", table_type(variables)), *((name, cell) for name in COLUMNS)])

    def own(indices: NDArray[np.int64]) -> NDArray[Any]:
        told = np.empty(indices.size, kind)
        told["state"] = _states(model, indices)
        for name, column in zip(COLUMNS, found.at(indices).columns(), strict=True):
            told[name] = column
        return told

    head = head_line(model).encode()
    with file.together():
        if file.communicator.rank == 0:
            file.put(0, head)
    begin = len(head)
    for _, told in stretches.of(kind, own):
        lines = io.StringIO(newline="")
        write_rows(lines, told["state"], [told[name] for name in COLUMNS])
        text = lines.getvalue().encode()
        sizes = file.communicator.gather([len(text)])[:, 0].astype(np.int64)
        with file.together():
            file.put(begin + int(sizes[: file.communicator.rank].sum()), text)
        begin += int(sizes.sum())
    with file.together():
        file.to_disk()


def _write_arrays(
    file: SharedFile, stretches: _Stretches, model: SymbolicModel, found: StateValues | StateTruth
) -> None:
    """Write the elements of all arrays, then what lies between them."""
    variables = model.encoding.shown
    arrays = [(name, value_type(found)) for name in COLUMNS] + [("states", table_type(variables))]
    begins = _begins(arrays, model.n_states)

    def column(place: int) -> Own:
        return lambda indices: found.at(indices).columns()[place]

    takes: list[Own] = [column(place) for place in range(len(COLUMNS))]
    takes.append(lambda indices: _states(model, indices))
    for (_, kind), begin, own in zip(arrays, begins, takes, strict=True):
        for first, told in stretches.of(kind, own):
            with file.together():
                file.put(begin + first * kind.itemsize, told.tobytes())
    with file.together():
        file.to_disk()
    with file.together():
        if file.communicator.rank == 0:
            _frame(file, arrays, begins, model.n_states)
            file.to_disk()


def _states(model: SymbolicModel, indices: NDArray[np.int64]) -> NDArray[Any]:
    """Return the variables' values in some of the own states; those of consecutive ones are quick to read."""
    variables = model.encoding.shown
    if indices.size and bool((np.diff(indices) == 1).all()):
        return table_of_range(model.index, variables, int(indices[0]), int(indices[-1]) + 1)
    return table_of_states(model.index, variables, indices)


def _begins(arrays: Sequence[tuple[str, np.dtype[Any]]], size: int) -> list[int]:
    """Return the byte at which the elements of every array begin: the headers before have fixed lengths."""
    begins, end = [], 0
    for name, kind in arrays:
        head = io.BytesIO()
        with zipfile.ZipFile(head, "w") as archive, opened_array(archive, name, kind, size):
            begins.append(end + head.tell())
        end = begins[-1] + size * kind.itemsize
    return begins


def _frame(
    file: SharedFile, arrays: Sequence[tuple[str, np.dtype[Any]]], begins: Sequence[int], size: int
) -> None:
    """Write the headers of the archive around the elements, which are read again for their checksums."""
    frame = _Frame(file)
    with zipfile.ZipFile(frame, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for (name, kind), begin in zip(arrays, begins, strict=True):
            with opened_array(archive, name, kind, size) as member:
                if frame.tell() != begin:
                    raise RuntimeError(f"{name}: expected at byte {begin} of the archive, got {frame.tell()}")
                frame.is_there = True
                for piece in file.pieces(begin, begin + size * kind.itemsize):
                    member.write(piece)
                frame.is_there = False


class _Frame(io.RawIOBase):
    """A file for `zipfile` to write to; while `is_there`, it skips the bytes, which the file has already."""

    def __init__(self, file: SharedFile) -> None:
        self._file, self._place = file, 0
        self.is_there = False

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation("expected a place from the beginning")
        self._place = offset
        return offset

    def write(self, data: Any) -> int:
        length = memoryview(data).nbytes
        if not self.is_there:
            self._file.put(self._place, data)
        self._place += length
        return length
