"""Values of all states as files: tables in CSV, arrays in an archive of NumPy, some states at a time."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import OptionError
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import own_numbers, states_in_parts, table_of_range, table_of_states, table_type

if TYPE_CHECKING:
    import zipfile

# Parts of files of state values: headers of arrays, and rows of text.

COLUMNS = ("value", "lower", "upper")
"""Columns of every state beside its variables."""


def value_type(found: StateValues | StateTruth) -> np.dtype[Any]:
    """Return the dtype of the columns."""
    return np.dtype(np.bool_ if isinstance(found, StateTruth) else np.float64)


def opened_array(archive: zipfile.ZipFile, name: str, kind: np.dtype[Any], size: int) -> IO[bytes]:
    """Return an array's member of an archive, open after its header, for its elements."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (size,)}
    file = archive.open(f"{name}.npy", "w", force_zip64=True)
    np.lib.format.write_array_header_2_0(file, header)
    return file


def head_line(model: SymbolicModel) -> str:
    """Return the names of a table's columns as its first line."""
    line = io.StringIO(newline="")
    csv.writer(line).writerow([*(v.name for v in model.encoding.shown), *COLUMNS])
    return line.getvalue()


def write_rows(lines: TextIO, table: NDArray[Any], columns: Sequence[NDArray[Any]]) -> None:
    """Write a row a state."""
    cells = [_cells(column) for column in (*(table[name] for name in table.dtype.names or ()), *columns)]
    csv.writer(lines).writerows(zip(*cells, strict=True))


def _cells(column: NDArray[Any]) -> list[Any]:
    """Return a column as what CSV holds: true and false, numbers with all digits, nothing for NaN."""
    if column.dtype == np.bool_:
        truths: list[str] = np.where(column, "true", "false").tolist()
        return truths
    if column.dtype.kind != "f" or bool(np.isfinite(column).all()):
        numbers: list[Any] = column.tolist()
        return numbers
    cells = column.astype(object)
    cells[np.isnan(column)] = ""
    cells[column == np.inf] = "Infinity"
    cells[column == -np.inf] = "-Infinity"
    spelt: list[Any] = cells.tolist()
    return spelt


# A file that several processes write to at once.

_PIECE = 1 << 24  # bytes that are read together


@contextlib.contextmanager
def collective_errors(communicator: Communicator) -> Iterator[None]:
    """Raise an error of the operating system in one process in all of them, with the message of the first.

    All processes come here at once, and ask each other nothing inside.
    """
    failure: OSError | None = None
    try:
        yield
    except OSError as error:
        failure = error
    told = None
    if failure is not None:
        where = "" if communicator.size == 1 else f" (process {communicator.rank} of {communicator.size})"
        told = f"{failure.errno or errno.EIO} {failure.strerror or failure}{where}"
    text = communicator.first_text(told)
    if text is not None:
        number, _, reason = text.partition(" ")
        raise OSError(int(number), reason) from failure


class SharedFile:
    """A file in a folder that all processes share, opened by each of them and emptied.

    The first process creates it. An error of one process is raised in all.
    """

    def __init__(self, communicator: Communicator, path: Path) -> None:
        self.communicator, self._path = communicator, path
        self._descriptor = -1
        try:
            with self.together():
                if communicator.rank == 0:
                    self._descriptor = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666
                    )
            with self.together():
                if communicator.rank:
                    self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SharedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; data are safe after `to_disk` alone."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def together(self) -> contextlib.AbstractContextManager[None]:
        """See `collective_errors`."""
        return collective_errors(self.communicator)

    def put(self, place: int, data: Any) -> None:
        """Write bytes at an offset, over those that are there."""
        left = memoryview(data).cast("B")
        while left.nbytes:
            done = os.pwrite(self._descriptor, left, place)
            left, place = left[done:], place + done

    def to_disk(self) -> None:
        """Wait until what this process has written is there for others to read."""
        os.fsync(self._descriptor)

    def pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield the bytes between two offsets, written by all processes, some at a time."""
        # Opened again: a network file system may cache old data of other processes.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while begin < end:
                piece = os.pread(descriptor, min(_PIECE, end - begin), begin)
                if not piece:
                    raise OSError(
                        errno.EIO, "the file is shorter than what was written: is it shared by all?"
                    )
                yield piece
                begin += len(piece)
        finally:
            os.close(descriptor)


def to_disk(path: Path) -> None:
    """Wait until a file is on the disk, so that no crash leaves an empty one in the place of the old."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Values of states that processes share, written by all of them at once into one file.

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
        self, communicator: Communicator, numbers: NDArray[np.int64], indices: NDArray[np.int64], total: int
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
    """Return arrays as bytes, which every communicator can send."""
    return [array.view(np.uint8) for array in arrays]


# ------------------------------------------------------------------ what is written


def _write_table(
    file: SharedFile, stretches: _Stretches, model: SymbolicModel, found: StateValues | StateTruth
) -> None:
    """Write a header and a row a state; before each round processes exchange the lengths of their rows."""
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
    import zipfile

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
    import zipfile

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


SUFFIXES = (".csv", ".npz")
_PART = 1 << 18  # states held as arrays of their own


def check_suffix(path: str | Path, option: str, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Refuse a file whose name has none of the suffixes."""
    if Path(path).suffix not in suffixes:
        raise OptionError(f"{option}: expected a file that ends with {' or '.join(suffixes)}, got {path}")


def write_state_values(path: str | Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write the values of all states, in the order of their numbers, to a file.

    Parameters
    ----------
    path : str or Path
        ``.csv``: a column a variable in the text's order, then `value`, `lower` and `upper`, empty where
        there are no bounds.  ``.npz``: the arrays `value`, `lower`, `upper`, float64 (of truth values
        bool), shape (n,), NaN where there are no bounds, and `states`, structured, a field a variable.
    found : StateValues or StateTruth
        Over all states in index order; of a part of a model over its own, see `write_in_parts`.

    Raises
    ------
    OptionError
        The name has another suffix.
    OSError
        The file cannot be written.

    Notes
    -----
    Memory: that of some 260,000 states, beside the values given.  Time: O(n * variables).
    """
    check_suffix(path, "path")
    if model.communicator.size > 1:
        write_in_parts(Path(path), model, found)
    elif Path(path).suffix == ".csv":
        _write_state_table(Path(path), model, found)
    else:
        _write_state_arrays(Path(path), model, found)


def publish_state_values(path: str | Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write the values of all states to a file that takes the place of an older one when it is whole.

    Parameters
    ----------
    path, model, found
        As for `write_state_values`; where processes share the states, all call it at once.

    Raises
    ------
    OptionError
        The name has another suffix.
    OSError
        The file cannot be written, and what is there stays; in all processes alike.
    """
    check_suffix(path, "values")
    communicator, target = model.communicator, Path(os.path.realpath(path))
    name = communicator.first_text(f".{target.stem[:80]}.{os.urandom(4).hex()}{target.suffix}")
    assert name is not None
    temporary = target.with_name(name)
    try:
        write_state_values(temporary, model, found)
        with collective_errors(communicator):
            if communicator.rank == 0:
                to_disk(temporary)
                temporary.replace(target)
    except BaseException:
        if communicator.rank == 0:
            temporary.unlink(missing_ok=True)
        raise


def _parts(model: SymbolicModel, found: StateValues | StateTruth) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield values and bounds of some states at a time."""
    for begin in range(0, model.n_states, _PART):
        numbers = slice(begin, min(begin + _PART, model.n_states))
        yield found.at(numbers if model.numbering is None else model.numbering[numbers]).columns()


def _write_state_arrays(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write one array after the other."""
    import zipfile

    kind = value_type(found)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for place, name in enumerate(COLUMNS):
            own = (part[place] for part in _parts(model, found))
            _write_array(archive, name, kind, model.n_states, own)
        variables = model.encoding.shown
        states = (table for _, table in states_in_parts(model.index, variables, model.numbering, _PART))
        _write_array(archive, "states", table_type(variables), model.n_states, states)


def _write_array(
    archive: zipfile.ZipFile, name: str, kind: np.dtype[Any], size: int, parts: Iterator[NDArray[Any]]
) -> None:
    """Write the header of an array, then its parts."""
    with opened_array(archive, name, kind, size) as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=kind).tobytes())


def _write_state_table(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write a header and a row a state."""
    with path.open("w", newline="", encoding="utf-8") as lines:
        lines.write(head_line(model))
        states = states_in_parts(model.index, model.encoding.shown, model.numbering, _PART)
        for (_, table), columns in zip(states, _parts(model, found), strict=True):
            write_rows(lines, table, columns)
