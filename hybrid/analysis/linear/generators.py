"""What uniformisation must know of a matrix: its product, a rate, and how much a step can stretch or round.

A generator Q, or rates R with exit rates e for ``Q = R - diag(e)``, is looked at once, row by row. With ``P =
I + Q / q`` the sum of the magnitudes of any row of P is at most `stretch`, which is 1 for a generator: P
makes no vector greater in the maximum norm, and its transpose none in the sum norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import array_module
from hybrid.base.arrays import Array
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit.operators import ExplicitOperator
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.bounded_solution import UNIT
from mtbdd.offset.row_entries import row_entries

_ABOVE = 1.02
"""The rate over the greatest exit rate, so that P has a diagonal and no period."""

_SHARED = 4.0
"""Units of products with blocks shared up to a scale, beside those of the entries themselves."""


@dataclass(frozen=True, eq=False)
class Uniformised:
    """A generator with what the errors of its steps follow from.

    Attributes
    ----------
    product : callable
        Takes an array of shape (n,) or (n, k) and returns the product with the matrix that was given, or its
        transpose.
    exit_rates : ndarray, shape (n,), float64, or None
        What is taken from the product; None where the matrix is the generator itself.
    rate : float
        q.
    stretch : float
        Bound on the norm of ``I + Q / q``, at least 1.
    size : float
        Bound on the norm of the matrix that was given.
    greatest : float
        Greatest exit rate taken from the product; 0 where there are none.
    entries : int
        Bound on the entries of a row of the product.
    units : float or None
        Bound on the rounding error of an element of a product, as a multiple of 2^-53 times the product of
        the magnitudes; None where nothing is known of the product.
    exit_units : float
        Relative error of the exit rates, in the same units.
    xp : module
        Array module of the vectors that the product takes; None if it takes any.
    """

    product: Callable[[Array], Array]
    exit_rates: Array | None
    rate: float
    stretch: float
    size: float
    greatest: float
    entries: int
    units: float | None
    exit_units: float
    xp: Any

    @property
    def step_error(self) -> float:
        """Bound on the norm of a step's rounding error over that of the vector it starts from."""
        size, greatest = self.size / self.rate, self.greatest / self.rate
        # lemma: both-signs
        own = ((self.units or 0.0) + 2.0) * size + (3.0 + self.exit_units) * greatest
        # lemma: both-signs
        return (own + 1.0 + size + greatest) * UNIT * (1.0 + 2.0**-20)

    def step(self, x: Array) -> Array:
        """Return ``x + Q x / rate``, in an array of its own."""
        y = self.product(x)
        if self.exit_rates is not None:
            y -= (self.exit_rates if x.ndim == 1 else self.exit_rates[:, None]) * x
        y /= self.rate
        y += x
        return y


@dataclass(frozen=True)
class _Rows:
    """A matrix row by row: diagonal, sums of magnitudes from above, entries, units; None if not known."""

    n: int
    product: Callable[[Array], Array]
    xp: Any
    sums: Any = None
    diagonal: Any = None
    negative: bool = False
    entries: int = 0
    units: float | None = None


def uniformised(operator: Any, exit_rates: Any, rate: float | None, transposed: bool) -> Uniformised:
    """Look at a generator or at rates.

    Parameters
    ----------
    operator, exit_rates, rate, transposed
        As for :func:`hybrid.analysis.linear.transient`.

    Raises
    ------
    OptionError
        If something needed is missing or does not fit.
    """
    rows = _rows(operator, transposed)
    given, computed = None, 0.0
    if isinstance(exit_rates, str):
        if exit_rates != "row sums":
            raise OptionError(f"exit_rates: expected 'row sums' or one number a row, got {exit_rates!r}")
        if rows.negative:
            raise OptionError("exit_rates: 'row sums' needs rates, and the operator has negative entries")
        given, computed = _product_with_ones(operator, rows), (rows.units or 0.0)
    elif exit_rates is not None:
        given = (rows.xp or array_module(exit_rates)).asarray(exit_rates, dtype=np.float64)
    elif rows.sums is not None and not rows.negative:
        raise OptionError(
            "operator: expected a generator, got no negative entry; for rates give exit_rates='row sums', or "
            "one number a row"
        )
    if given is not None and (given.shape != (rows.n,) or not bool(((given >= 0) & (given < np.inf)).all())):
        raise OptionError(
            f"exit_rates: expected {rows.n} finite numbers, none below 0, got shape {given.shape}"
        )
    greatest = 0.0 if given is None else _most(given)
    q = _rate(rate, greatest if given is not None else _exits(rows))
    size, stretch = greatest, 1.0
    if rows.sums is not None:
        size = _most(rows.sums)
        if not isinstance(exit_rates, str):
            stretch = _stretch(rows, given, q)
        else:
            # A row has |1 - e / q| + e / q, e being the true sum.
            # lemma: both-signs
            stretch = 2.0 * greatest * (1.0 + (computed + 8.0) * UNIT) / q - 1.0
    return Uniformised(
        rows.product, given, q, max(stretch, 1.0), size, greatest, rows.entries, rows.units,
        computed, rows.xp,
    )  # fmt: skip


def _most(array: Array) -> float:
    """Return the greatest element, 0 if there is none: CuPy's ``max`` takes no initial value."""
    return float(array.max()) if array.size else 0.0


def _exits(rows: _Rows) -> float | None:
    return None if rows.diagonal is None else _most(abs(rows.diagonal))


def _rate(asked: float | None, greatest: float | None) -> float:
    if asked is not None:
        if not 0.0 < asked < float("inf"):
            raise OptionError(f"rate: expected a positive number, got {asked}")
        return float(asked)
    if greatest is None:
        raise OptionError(
            "rate: of a generator that is known by its products alone give a rate no less than its greatest "
            "exit rate, or give rates and exit_rates"
        )
    if not greatest < float("inf"):
        raise OptionError("operator: its diagonal is not finite")
    return _ABOVE * greatest or 1.0


def _stretch(rows: _Rows, exits: Any, rate: float) -> float:
    """Return a bound on the sums of magnitudes of the rows of ``I + Q / rate``."""
    if exits is None:
        own = rows.diagonal
        # Magnitudes off the diagonal; the sums are bounds from above.
        # lemma: both-signs
        rest = rows.sums - abs(own) + 2.0 * UNIT * rows.sums
    else:
        own, rest = -exits, rows.sums
    found = abs(1.0 + own / rate) + rest / rate
    most = _most(found)
    if not most < float("inf"):
        raise OptionError("operator: its entries are not finite")
    # lemma: both-signs
    return most * (1.0 + 8.0 * UNIT) + (rows.units or 0.0) * UNIT * _most(abs(own)) / rate


def _rows(operator: Any, transposed: bool) -> _Rows:
    """Look at an operator of any kind."""
    shape = getattr(operator, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != shape[1]:
        raise OptionError(f"operator: expected a square matrix, got shape {shape}")
    if isinstance(operator, CsrArrays):
        operator = operator.to_scipy()
    if isinstance(operator, HybridMatrix):
        return _rows_of_hybrid(operator, transposed)
    if isinstance(operator, ExplicitOperator):
        own = operator.T if transposed else operator
        plain = _rows_of_sparse(operator.matrix.to_scipy(), transposed)
        return replace(plain, product=lambda x: own @ x, xp=operator.xp)
    if hasattr(operator, "tocsr"):
        return _rows_of_sparse(operator.tocsr(), transposed)
    if isinstance(operator, np.ndarray):
        from scipy.sparse import csr_matrix

        return _rows_of_sparse(csr_matrix(operator), transposed)
    names = ("rmatvec", "rmatmat") if transposed else ("matvec", "matmat")
    if not hasattr(operator, names[0]):
        raise OptionError(f"operator: expected a matrix or an object with {names[0]}, got {type(operator)}")

    def product(x: Array) -> Array:
        if x.ndim == 1:
            return getattr(operator, names[0])(x)
        if hasattr(operator, names[1]):
            return getattr(operator, names[1])(x)
        columns = [getattr(operator, names[0])(x[:, i]) for i in range(x.shape[1])]
        return array_module(x).stack(columns, axis=1)

    return _Rows(int(shape[0]), product, getattr(operator, "xp", None))


def _rows_of_hybrid(matrix: HybridMatrix, transposed: bool) -> _Rows:
    symbolic, own = matrix.symbolic, matrix.T if transposed else matrix
    negative = bool((symbolic.terminals < 0.0).any())
    magnitudes, diagonal = matrix, None
    if negative:
        positive = replace(symbolic, terminals=abs(symbolic.terminals))
        magnitudes = inject(positive, matrix.level, matrix.engine, representation=matrix.representation)
        diagonal = matrix.diagonal()
    # lemma: both-signs
    units = row_entries(symbolic) + symbolic.entry_units + _SHARED
    xp = matrix.product.device.xp if matrix.backend == "gpu" else None  # type: ignore[attr-defined]
    # Ones on the host, so that the sums are there; they are put where the vectors are.
    # lemma: both-signs
    sums = magnitudes.row_sums() * (1.0 + (units + 2.0) * UNIT)
    # lemma: both-signs
    own_units = row_entries(own.symbolic) + symbolic.entry_units + _SHARED
    put = np.asarray if xp is None else xp.asarray
    # lemma: both-signs
    return _Rows(
        matrix.shape[0], lambda x: own @ x, xp, put(sums), None if diagonal is None else put(diagonal),
        negative, row_entries(own.symbolic), max(units, own_units),
    )  # fmt: skip


def _rows_of_sparse(csr: Any, transposed: bool) -> _Rows:
    if csr.dtype.kind not in "fiub":
        raise OptionError(f"operator: expected real entries, got dtype {csr.dtype}")
    csr = csr.astype(np.float64)
    xp = array_module(csr.data)
    own = csr.T.tocsr() if transposed else csr
    rows, columns = xp.diff(csr.indptr), xp.bincount(csr.indices, minlength=csr.shape[1])
    entries = int(max(_most(rows), _most(columns)))
    # lemma: both-signs
    sums = (abs(csr) @ xp.ones(csr.shape[1])) * (1.0 + (entries + 2.0) * UNIT)
    negative = bool((csr.data < 0.0).any())
    return _Rows(
        int(csr.shape[0]), lambda x: own @ x, xp, sums, csr.diagonal(), negative, entries, float(entries)
    )


def _product_with_ones(operator: Any, rows: _Rows) -> Array:
    """Return the sums of the rows of rates, whichever way their products go."""
    xp = rows.xp or np
    if isinstance(operator, CsrArrays):
        operator = operator.to_scipy()
    ones = xp.ones(rows.n)
    product = operator.matvec(ones) if hasattr(operator, "matvec") else operator @ ones
    return xp.asarray(product, dtype=np.float64)
