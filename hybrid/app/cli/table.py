"""A CSV file of constants and answers that grows as answers are found."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybrid.app.cli.output_file import OutputFile
from hybrid.checking.answer import json_listing
from hybrid.checking.listing import Listing

_POINTS = ("point", "objective")
_ASKED, _FOUND = ("name", "property"), ("value", "lower", "upper", "error")
_PART = 1 << 14  # listed states written together


class Table:
    """Rows of constants, name, property, value, bounds and error.

    The first rows take the place of an older file, which stays until then. Rows are written whole or not at
    all.

    Parameters
    ----------
    path : str
    names : sequence of str
        Of the constants.
    lists : bool
        Whether there is a column a variable, too, and after an answer a row for every state that its filter
        lists: constants, name and property again, the variables, value and bounds.

    points : bool
        Whether there are columns `point` and `objective`, too, and after an answer about several objectives a
        row for every point and objective; of a curve one more for each objective with the distance that is
        told, its `point` being "distance".

    Attributes
    ----------
    variables : sequence of str
        Of the model, to be set before the first rows are added where states are listed.

    Raises
    ------
    OptionError
        The file cannot be written.
    """

    def __init__(self, path: str, names: Sequence[str], lists: bool = False, points: bool = False) -> None:
        self._names, self._lists = names, lists
        self._places: Sequence[str] = _POINTS if points else ()
        self.variables: Sequence[str] = ()
        self._file = OutputFile(path, "--csv")
        self._rows: io.FileIO | None = None
        self._is_closed = False

    def add(self, constants: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
        """Write a row for every result, given as the records of answers.

        Raises
        ------
        OptionError
            They cannot be written, and the file is what it was before.
        """
        given = [constants.get(name, "") for name in self._names]
        blank = [""] * (len(self._variables) + len(self._places))
        rows = [[*given, *(r[c] for c in _ASKED), *blank, *(r[c] for c in _FOUND)] for r in results]
        with self._file.told():
            for result, row in zip(results, rows, strict=True):
                self._append([row])
                for part in self._listed(result, given):
                    self._append(part)
                if "multi" in result:
                    self._append(self._pointed(result, given))
            if not rows:
                self._append([])

    def close(self, complete: bool) -> bool:
        """End the table, once; a complete one without answers has the names of the columns.

        Returns
        -------
        bool
            Whether a file was written now, which is no device and no pipe.
        """
        if self._is_closed:
            return False
        self._is_closed = True
        try:
            if self._rows is None and complete:
                self.add({}, [])
        finally:
            if self._rows is not None:
                self._rows.close()
            self._file.discard()
        return self._rows is not None and self._file.temporary != self._file.target

    @property
    def _variables(self) -> Sequence[str]:
        return self.variables if self._lists else ()

    def _append(self, rows: list[list[Any]]) -> None:
        """Write rows, after the names of the columns if they are the first."""
        if self._rows is None:
            self._begin(rows)
        else:
            _write_whole(self._rows, rows)

    def _listed(self, result: Mapping[str, Any], given: Sequence[Any]) -> Iterator[list[list[Any]]]:
        """Yield the rows of the states that an answer lists, some at a time."""
        listing = result.get("listing")
        if not isinstance(listing, Listing):
            return
        asked = [result[column] for column in _ASKED]
        for begin in range(0, len(listing), _PART):
            yield [
                [
                    *given, *asked, *(str(r["state"][v]).lower() for v in self.variables),
                    *("" for _ in self._places), *(r[column] for column in ("value", "lower", "upper")), None,
                ]
                for r in json_listing(listing[begin : begin + _PART])
            ]  # fmt: skip

    def _pointed(self, result: Mapping[str, Any], given: Sequence[Any]) -> list[list[Any]]:
        """Return the rows of the points behind an answer about several objectives."""
        found = result["multi"]
        head = [*given, *(result[column] for column in _ASKED), *("" for _ in self._variables)]
        rows = []
        for number, point in enumerate(found["points"], start=1):
            for name, low, high in zip(found["objectives"], point["lower"], point["upper"], strict=True):
                rows.append([*head, number, name, 0.5 * (low + high), low, high, None])
        for name, distance in zip(found["objectives"], found.get("distances", ()), strict=False):
            rows.append([*head, "distance", name, None, 0.0, distance, None])
        return rows

    def _begin(self, rows: list[list[Any]]) -> None:
        """Write the names of the columns and the first rows."""
        file = self._file.temporary.open("ab", buffering=0)
        try:
            _write_whole(file, [[*self._names, *_ASKED, *self._variables, *self._places, *_FOUND], *rows])
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
