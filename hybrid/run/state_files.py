"""Values of all states as files: tables in CSV, arrays in an archive of NumPy, some states at a time."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import OptionError
from hybrid.run.state_values import StateTruth, StateValues
from mtbdd.model import SymbolicModel
from mtbdd.state_table import states_in_parts, table_type

SUFFIXES = (".csv", ".npz")
_COLUMNS = ("value", "lower", "upper")
_PART = 1 << 18  # states held as arrays of their own


def check_suffix(path: str | Path, option: str, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Refuse a file whose name does not say what it shall hold.

    Raises
    ------
    OptionError
        It ends with none of the suffixes, by default .csv and .npz.
    """
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
    model : SymbolicModel
    found : StateValues or StateTruth
        Over all states in index order.

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
    if Path(path).suffix == ".csv":
        _write_table(Path(path), model, found)
    else:
        _write_arrays(Path(path), model, found)


def _parts(model: SymbolicModel, found: StateValues | StateTruth) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield values and bounds of some states at a time."""
    for begin in range(0, model.n_states, _PART):
        numbers = slice(begin, min(begin + _PART, model.n_states))
        yield found.at(numbers if model.numbering is None else model.numbering[numbers]).columns()


def _write_arrays(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write one array after the other."""
    kind = np.dtype(np.bool_ if isinstance(found, StateTruth) else np.float64)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for place, name in enumerate(_COLUMNS):
            own = (part[place] for part in _parts(model, found))
            _write_array(archive, name, kind, model.n_states, own)
        variables = model.encoding.shown
        states = (table for _, table in states_in_parts(model.index, variables, model.numbering, _PART))
        _write_array(archive, "states", table_type(variables), model.n_states, states)


def _write_array(
    archive: zipfile.ZipFile, name: str, kind: np.dtype[Any], size: int, parts: Iterator[NDArray[Any]]
) -> None:
    """Write the header of an array, then its parts."""
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (size,)}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_2_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=kind).tobytes())


def _write_table(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write a header and a row a state."""
    names = [v.name for v in model.encoding.shown]
    with path.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow([*names, *_COLUMNS])
        states = states_in_parts(model.index, model.encoding.shown, model.numbering, _PART)
        for (_, table), columns in zip(states, _parts(model, found), strict=True):
            writer.writerows(zip(*(_cells(c) for c in (*(table[n] for n in names), *columns)), strict=True))


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
