"""A CSV file of constants and answers that grows as answers are found."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.cli.output_file import OutputFile

_COLUMNS = ("name", "property", "value", "lower", "upper", "error")


class Table:
    """Rows of constants, name, property, value, bounds and error.

    The first rows take the place of an older file, which stays until then. Rows are written whole or not at
    all.

    Parameters
    ----------
    path : str
    names : sequence of str
        Of the constants.

    Raises
    ------
    OptionError
        The file cannot be written.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self._names = names
        self._file = OutputFile(path, "--csv")
        self._rows: io.FileIO | None = None

    def add(self, constants: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
        """Write a row for every result, given as the records of answers.

        Raises
        ------
        OptionError
            They cannot be written, and the file is what it was before.
        """
        given = [constants.get(name, "") for name in self._names]
        rows = [[*given, *(result[column] for column in _COLUMNS)] for result in results]
        with self._file.told():
            if self._rows is None:
                self._begin(rows)
            else:
                _write_whole(self._rows, rows)

    def close(self, complete: bool) -> None:
        """End the table; a complete one without answers has the names of the columns."""
        try:
            if self._rows is None and complete:
                self.add({}, [])
        finally:
            if self._rows is not None:
                self._rows.close()
            self._file.discard()

    def _begin(self, rows: list[list[Any]]) -> None:
        """Write the names of the columns and the first rows."""
        file = self._file.temporary.open("ab", buffering=0)
        try:
            _write_whole(file, [[*self._names, *_COLUMNS], *rows])
            self._file.publish()
        except BaseException:
            file.close()
            raise
        if self._file.temporary != self._file.target:
            file.close()
            file = self._file.target.open("ab", buffering=0)
        self._rows = file


def _write_whole(file: io.FileIO, rows: Sequence[Sequence[Any]]) -> None:
    """Append rows, or leave the file as it was."""
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    rest = memoryview(lines.getvalue().encode("utf-8", "backslashreplace"))
    end = os.fstat(file.fileno()).st_size
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except BaseException:
        # Devices and pipes cannot be cut.
        with contextlib.suppress(OSError):
            file.truncate(end)
        raise
