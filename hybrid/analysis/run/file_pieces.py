"""What files of values of states are made of: headers of arrays, and rows of text."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from typing import IO, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.build.model import SymbolicModel

COLUMNS = ("value", "lower", "upper")
"""What is told of every state, beside its variables."""


def value_type(found: StateValues | StateTruth) -> np.dtype[Any]:
    """Return the dtype of the columns."""
    return np.dtype(np.bool_ if isinstance(found, StateTruth) else np.float64)


def opened_array(archive: zipfile.ZipFile, name: str, kind: np.dtype[Any], size: int) -> IO[bytes]:
    """Return an array's place in an archive, its header written: what follows are its elements."""
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
