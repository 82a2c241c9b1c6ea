"""Example models by name and size, built; some are written by a generator."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hybrid
from examples import generate, generate_sort
from mtbdd.language import parse_constants

__all__ = ["EXAMPLES", "ROOT", "example", "example_file", "example_of"]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

_CONSTANTS = {"tandem": "c", "kanban": "t", "fms": "n", "cluster": "N", "relay": "H"}
_WRITTEN = {
    "coin": generate.coin,
    "polling": generate.polling,
    "herman": generate.herman,
    "quick_sort": generate_sort.quick_sort,
}


def example(name: str, size: int, **constants: Any) -> hybrid.SymbolicModel:
    """Build an example model of a size.

    Parameters
    ----------
    name : str
        Name of a file in examples/.
    size : int
        Its first constant, or what the generator takes.
    **constants
        The other constants.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, values = example_file(name, size, Path(folder), **constants)
        return hybrid.load(path, values)


def example_file(name: str, size: int, folder: Path, **constants: Any) -> tuple[Path, dict[str, Any]]:
    """Return the file of an example model of a size, and its constants.

    Parameters
    ----------
    name, size, **constants
        See :func:`example`.
    folder : Path
        Where the file is written if a generator makes it.
    """
    if name not in _WRITTEN:
        return EXAMPLES / f"{name}.prism", {_CONSTANTS.get(name, "N"): size, **constants}
    path = folder / f"{name}{size}.prism"
    path.write_text(_WRITTEN[name](size))
    return path, constants


def example_of(name: str, constants: str) -> hybrid.SymbolicModel:
    """Build an example model from constants as the command line has them, the size first."""
    values = parse_constants(constants)
    size = values.pop(next(iter(values)))
    return example(name, int(size), **values)
