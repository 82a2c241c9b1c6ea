"""Values of all states as files: tables in CSV, arrays in an archive of NumPy, some states at a time."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.file_pieces import COLUMNS, head_line, opened_array, value_type, write_rows
from hybrid.analysis.run.part_files import write_in_parts
from hybrid.analysis.run.shared_file import failing_together, to_disk
from hybrid.base.errors import OptionError
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_table import states_in_parts, table_type

SUFFIXES = (".csv", ".npz")
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
        _write_table(Path(path), model, found)
    else:
        _write_arrays(Path(path), model, found)


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
    name = communicator.first_text(f".{target.stem[:80]}.{secrets.token_hex(4)}{target.suffix}")
    assert name is not None
    temporary = target.with_name(name)
    try:
        write_state_values(temporary, model, found)
        with failing_together(communicator):
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


def _write_arrays(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write one array after the other."""
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


def _write_table(path: Path, model: SymbolicModel, found: StateValues | StateTruth) -> None:
    """Write a header and a row a state."""
    with path.open("w", newline="", encoding="utf-8") as lines:
        lines.write(head_line(model))
        states = states_in_parts(model.index, model.encoding.shown, model.numbering, _PART)
        for (_, table), columns in zip(states, _parts(model, found), strict=True):
            write_rows(lines, table, columns)
