"""The arrays in a NumPy archive, each checked before room is made for it."""

from __future__ import annotations

import ast
import re
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import InterchangeError
from hybrid.interchange.explicit_model import MOST_UNITS
from mtbdd.memory import require_memory

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Vector = NDArray[np.float64]

_BLOCK = 1 << 22
_LARGEST = np.finfo(np.float64).max

# No string is longer; with it, what a file of few bytes can ask for is bounded, too.
_LONGEST_STRING = 1 << 16

_LONGEST_HEADER = 10_000
_KIND = re.compile(r"[<>|=][biufcU][0-9]{1,6}")

# What `zipfile` and `zlib` raise for damaged archives.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    ValueError,
    UnicodeError,
)


class NpzArrays:
    """The arrays of an archive by name; a context that closes the file.

    Parameters
    ----------
    path : Path

    Raises
    ------
    InterchangeError
        No archive, or one with two entries of a name.
    OSError
        The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._source = str(path)
        self._file = path.open("rb")
        try:
            self._archive = zipfile.ZipFile(self._file)
        except _DAMAGE as error:
            self._file.close()
            raise InterchangeError(
                f"{self._source}: expected a NumPy archive (.npz), got another file ({error}); "
                "give one that `hybrid` or numpy.savez wrote"
            ) from None
        self._size = path.stat().st_size
        self._entries = {entry.filename: entry for entry in self._archive.infolist()}
        if len(self._entries) < len(self._archive.infolist()):
            self._file.close()
            raise InterchangeError(
                f"{self._source}: expected entries of different names, got two of one; write the file again"
            )
        # Offsets may come out below 0 where the directory lies about its own place.
        for entry in self._archive.infolist():
            if not 0 <= entry.header_offset < self._size:
                self._file.close()
                raise InterchangeError(
                    f"{self._source}: expected entries inside the file, got {entry.filename[:80]!r} at byte "
                    f"{entry.header_offset} of {self._size}; write the file again"
                )

    def __enter__(self) -> NpzArrays:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()
        self._file.close()

    def fault(self, name: str, expected: str, came: str) -> InterchangeError:
        """Return the error that an array is not what was expected."""
        return InterchangeError(
            f"{self._source}: {name}: expected {expected}, got {came}; write the file again"
        )

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return f"{name}.npy" in self._entries

    def _array(self, name: str, kinds: str, wanted: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """Return an array of one of the kinds of types and of the shape, where None stands for any length."""
        entry = self._entries.get(f"{name}.npy")
        if entry is None:
            raise self.fault(name, f"an array of {wanted}", "none")
        try:
            with self._archive.open(entry) as file:
                found, order, dtype = _header(file)
                if dtype.kind not in kinds or not 0 < dtype.itemsize <= 4 * _LONGEST_STRING:
                    raise self.fault(name, f"an array of {wanted}", f"one of {dtype}")
                if len(found) != len(shape) or any(
                    want is not None and want != got for want, got in zip(shape, found, strict=True)
                ):
                    shown = " x ".join("any" if want is None else str(want) for want in shape) or "()"
                    raise self.fault(name, f"the shape {shown}", " x ".join(map(str, found)) or "()")
                size = dtype.itemsize
                for length in found:
                    size *= length
                start = file.tell()
                if size != entry.file_size - start or size > 1040 * self._size + 1024:
                    raise self.fault(name, f"{size} bytes of data", f"{entry.file_size - start}")
                require_memory(size, f"{self._source}: {name}", "free memory, or take a smaller model")
                flat: NDArray[np.uint8] = np.empty(size, dtype=np.uint8)
                _fill(file, flat)
        except InterchangeError:
            raise
        except _DAMAGE as error:
            raise self.fault(name, "an array as numpy.save writes it", f"a fault ({error})") from None
        array = flat.view(dtype).reshape(found, order="F" if order else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def _first(self, name: str, wrong: Mask, expected: str, values: NDArray[Any]) -> None:
        """Complain about the first element that is wrong, if any."""
        if wrong.any():
            k = int(np.argmax(wrong))
            raise self.fault(f"{name}[{k}]", expected, str(values[k]))

    def text(self, name: str) -> str:
        """Return a string."""
        return str(self._array(name, "U", "a string", ()))

    def integer(self, name: str) -> int:
        """Return an integer."""
        return int(self._array(name, "iu", "an integer", ()))

    def strings(self, name: str, unnamed: bool = False) -> tuple[str, ...]:
        """Return strings, no two of them equal; none if there is no such array.

        The empty string may come repeatedly where it stands for no name.
        """
        if not self.has(name):
            return ()
        try:
            found = tuple(self._array(name, "U", "strings", (None,)).tolist())
        except (UnicodeError, ValueError):
            raise self.fault(name, "strings in Unicode", "others") from None
        named = [text for text in found if text or not unnamed]
        if len(set(named)) < len(named):
            raise self.fault(name, "different names", "one twice")
        return found

    def mask(self, name: str, length: int | None) -> Mask:
        """Return truth values."""
        found = self._array(name, "b", "bool", (length,))
        # A byte of a file may be neither 0 nor 1.
        truth: Mask = found.view(np.uint8) != 0
        return truth

    def doubles(self, name: str, length: int | None) -> Vector:
        """Return finite numbers."""
        found = self._floats(name, (length,))
        if found.size and not (-_LARGEST <= found.min() and found.max() <= _LARGEST):
            self._first(name, ~np.isfinite(found), "a finite number", found)
        return found

    def _floats(self, name: str, shape: tuple[int | None, ...]) -> Vector:
        found = self._array(name, "f", "doubles", shape)
        if found.dtype.itemsize > 8:
            raise self.fault(name, "doubles", str(found.dtype))
        return found.astype(np.float64, copy=False)

    def units(self, name: str, shape: tuple[int, ...], *, unknown: bool = False) -> list[float]:
        """Return relative errors, infinite ones if some may be unknown; a list also of a single one."""
        found = self._floats(name, shape).reshape(-1)
        wrong: Mask = ~((found >= 0) & (found <= MOST_UNITS))  # lemma: entry-units
        if unknown:
            wrong &= found != np.inf
        self._first(name, wrong, "a number that is not negative, at most 2^26 (errors of 7e-9)", found)
        numbers: list[float] = found.tolist()
        return numbers

    def numbers(self, name: str, length: int | None, low: int, high: int) -> Numbers:
        """Return integers from `low` to `high`."""
        found = self._array(name, "iu", "integers", (length,))
        if found.size and not (low <= found.min() and found.max() <= high):
            wrong: Mask = (found < low) | (found > high)
            self._first(name, wrong, f"an integer from {low} to {high}", found)
        return found.astype(np.int64, copy=False)

    def table(self, name: str, rows: int, columns: int) -> Numbers:
        """Return integers of 64 bits in rows."""
        found = self._array(name, "iu", "integers", (rows, columns))
        if found.dtype == np.uint64 and (found > np.uint64(2**63 - 1)).any():
            raise self.fault(name, "integers below 2^63", "others")
        return found.astype(np.int64, copy=False)

    def starts(self, name: str, count: int | None, last: int) -> Numbers:
        """Return numbers that begin with 0, do not fall and end with `last`."""
        found = self.numbers(name, None if count is None else count + 1, 0, last)
        if not found.size:
            raise self.fault(name, "at least one number", "none")
        for k, wanted in ((0, 0), (len(found) - 1, last)):
            if found[k] != wanted:
                raise self.fault(f"{name}[{k}]", str(wanted), str(found[k]))
        fallen = np.concatenate((np.zeros(1, dtype=np.bool_), found[1:] < found[:-1]))
        self._first(name, fallen, "a number not below the one before", found)
        return found


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, whether columns come first, and the type of an array."""
    start = file.read(8)
    if start[:6] != b"\x93NUMPY" or start[6:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("no header of a .npy file of version 1 or 2")
    length = int.from_bytes(file.read(2 if start[6] == 1 else 4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    try:
        found = ast.literal_eval(file.read(length).decode("latin-1").strip())
    except (SyntaxError, RecursionError, MemoryError, TypeError):
        # Python runs out of stack for too many brackets, or has no such literal.
        raise ValueError("a header that is no description of an array") from None
    if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("a header that is no description of an array")
    shape, kind = found["shape"], found["descr"]
    if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("a shape that is none")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ValueError(f"the type {str(kind)[:80]}")
    return shape, found["fortran_order"] is True, np.dtype(kind)


def _fill(file: Any, flat: NDArray[np.uint8]) -> None:
    """Fill an array from a file."""
    view = memoryview(flat)  # type: ignore[arg-type]
    done = 0
    while done < len(view):
        count = file.readinto(view[done : done + _BLOCK])
        if not count:
            raise EOFError("the data end early")
        done += count
