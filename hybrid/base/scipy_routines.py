"""Routines of SciPy without the rest of it, and products with compressed sparse rows by one of them.

Most of what SciPy loads beside a routine takes longer than small answers do, so that the extension module
that has it is loaded alone. Where it is not found so, products are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_FEW = 1 << 12
"""Entries up to which loading takes longer than NumPy does over some products."""


@cache
def scipy_alone(*path: str) -> Any:
    """Return an extension module of SciPy, by its names below the package; None where it is not found."""
    *folders, name = path
    scipy = find_spec("scipy")
    for place in () if scipy is None else scipy.submodule_search_locations or ():
        for suffix in EXTENSION_SUFFIXES:
            file = Path(place, *folders, name + suffix)
            loader = ExtensionFileLoader(name, str(file))
            spec = spec_from_file_location(name, file, loader=loader) if file.is_file() else None
            if spec is not None:
                with suppress(ImportError):
                    found = module_from_spec(spec)
                    loader.exec_module(found)
                    return found
    return None


def csr_multiplier(
    starts: NDArray[np.integer], columns: NDArray[np.integer], values: Vector, n_columns: int
) -> Callable[[Vector], Vector]:
    """Return the product with a matrix as a function of vectors; entries of a row are added up in order.

    Parameters
    ----------
    starts : ndarray, shape (n_rows + 1,)
        Entries of row r are ``starts[r] .. starts[r + 1]``.
    columns, values : ndarray, shape (entries,)
    n_columns : int
        Elements of a vector.
    """
    n_rows = len(starts) - 1
    if len(values) > _FEW:
        with suppress(AttributeError):  # another SciPy may have it otherwise
            multiply = scipy_alone("sparse", "_sparsetools").csr_matvec
            index = np.int32 if max(len(values), n_columns) < 2**31 else np.int64
            parts = (starts.astype(index, copy=False), columns.astype(index, copy=False), values)
            return partial(_by_scipy, multiply, n_rows, n_columns, parts)
    return partial(_by_numpy, np.repeat(np.arange(n_rows), np.diff(starts)), columns, values, n_rows)


def _by_scipy(multiply: Any, n_rows: int, n_columns: int, parts: tuple[Any, ...], x: Vector) -> Vector:
    out = np.zeros(n_rows)
    multiply(n_rows, n_columns, *parts, np.ascontiguousarray(x, np.float64), out)
    return out


def _by_numpy(
    owner: NDArray[np.int64], columns: NDArray[np.integer], values: Vector, n_rows: int, x: Vector
) -> Vector:
    return np.asarray(np.bincount(owner, values * x[columns], n_rows), np.float64)
