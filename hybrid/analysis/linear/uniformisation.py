"""The exponential of a generator times vectors, by uniformisation, for matrices of any library.

With ``P = I + Q / q``, ``exp(Q t) x`` is the mean of ``P^k x`` over a Poisson number k of steps, of mean q t
([Tealdi13] §2.3.2). The weights are those of :func:`hybrid.solvers.poisson.poisson_weights`. Everything is
done by the array module of the vectors, so that they stay on a device if they lie there.

**Error.** In the maximum norm (transposed: the sum norm) P stretches no vector by more than a factor s. For
a generator s is 1 up to rounding. A step computes ``P x`` with an error of at most ``step_error`` times the
norm of x. It stretches earlier errors by s at most. Weights left out, the tails of the distribution among
them, cost their sum times the greatest norm that vectors can have there. Steps are left out once a step
changes x by c at most. They cost c each, and the error of that step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import array_module
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.analysis.long_run import checked_times
from hybrid.base.arrays import Array, lies_on_device, on_host, to_host
from hybrid.base.errors import NotConvergedError, OptionError
from hybrid.matrix.explicit.operators import ExplicitOperator
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.solvers.poisson import poisson_weights
from mtbdd.offset.offset import row_entries

# Data that uniformisation needs of a matrix: its product, a rate, and how much a step can stretch or round.
#
# A generator Q, or rates R with exit rates e for ``Q = R - diag(e)``, is examined once, row by row. With
# ``P = I + Q / q`` the sum of the magnitudes of any row of P is at most `stretch`, which is 1 for a
# generator: P makes no vector greater in the maximum norm, and its transpose none in the sum norm.

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
        """Bound on the norm of a step's rounding error over that of the vector it starts from.

        Lemma: both-signs (docs/bounds.md).
        """
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
    """Read a generator or rates.

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
    """Read an operator of any kind."""
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
        positive = replace(symbolic.diagram, terminals=abs(symbolic.terminals))
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


_LOOK_EVERY = 16
"""Steps between two checks of the norm of the vectors and at how far they have settled."""

_MOST_STEPS = 2.0**40
_WIDER = 1.0 + 2.0**-20  # covers the roundings of the bounds themselves


@dataclass(frozen=True, eq=False)
class Transient:
    """The result of `transient`.

    Attributes
    ----------
    values : ndarray of float64
        Shape of x; of several times one each, along a first axis. Where x lay.
    error : float
        Bound on the error: of every element, and transposed of the sum of all elements' errors (of any
        column, if x has several). Of several times the greatest, here and below.
    kind : {"certified", "estimate"}
        Whether `error` bounds everything. An estimate leaves rounding errors out, and takes the operator at
        its word that it is a generator.
    truncation : float
        Part of `error` that is due to steps and weights left out.
    rounding : float or None
        Part of `error` that is due to rounding; None where nothing is known of the products.
    products : int
        Products made.
    rate : float
        Uniformisation rate.
    """

    values: Array
    error: float
    kind: Literal["certified", "estimate"]
    truncation: float
    rounding: float | None
    products: int
    rate: float


def transient(
    operator: Any,
    x: Array,
    t: float | Sequence[float] | NDArray[Any],
    *,
    exit_rates: Any = None,
    transposed: bool = False,
    epsilon: float = 1e-10,
    rate: float | None = None,
) -> Transient:
    """Return ``exp(Q t) x``, with a bound on the error.

    Parameters
    ----------
    operator : HybridMatrix, ExplicitOperator, sparse matrix, ndarray or linear operator
        The generator Q, shape (n, n); or rates R, none negative, if exit rates are given. Of SciPy, CuPy or
        the library; anything with ``matvec``, and ``rmatvec`` where transposed.
    x : array, shape (n,) or (n, k), real
        One vector or several, which share the products. CuPy's stay on the device.
    t : float or sequence of float
        Length of time, not negative; or several, each followed from the start.
    exit_rates : array, shape (n,), or "row sums", optional
        Makes the operator R with ``Q = R - diag(exit_rates)``. "row sums" are those of R, as of a CTMC
        without absorption.
    transposed : bool
        Return ``exp(Q' t) x`` with the transpose Q': with a distribution x over the states, that after the
        time t. Otherwise with values x of the states, their expected value after the time t from every state.
    epsilon : float
        Steps and weights may be left out that cost this much, relative to the norm of x.
    rate : float, optional
        Uniformisation rate; default a little more than the greatest exit rate. Needed for a generator that is
        known by its products alone.

    Returns
    -------
    Transient
        Certified where the library sees the entries: its own matrices, sparse and dense ones. An estimate for
        operators that are known by their products.

    Raises
    ------
    OptionError
        If the operands do not fit each other, or the operator is no generator: a matrix whose solutions grow
        by orders of magnitude.
    NotConvergedError
        If a value is no longer a finite double.

    Notes
    -----
    Time: about ``q t + 6 sqrt(q t)`` products, fewer once the vectors settle. Memory: four arrays as x.
    Synchronises: yes, every 16 steps.
    """
    times = checked_times(t, "t")
    if not 0.0 < epsilon < 1.0:
        raise OptionError(f"epsilon: expected a number between 0 and 1, got {epsilon}")
    chain = uniformised(operator, exit_rates, rate, transposed)
    vector, xp = _operand(x, chain, int(operator.shape[0]))
    if chain.exit_rates is not None:
        rates = chain.exit_rates
        chain = replace(chain, exit_rates=xp.asarray(to_host(rates) if xp is np else rates))
    stays = lies_on_device(x) or xp is np
    found = [_after(chain, vector, float(time), epsilon, transposed) for time in times.flat]
    if not times.ndim:
        return found[0] if stays else replace(found[0], values=to_host(found[0].values))
    values = xp.empty((len(found), *vector.shape))
    for row, one in zip(values, found, strict=True):
        row[...] = one.values
    certified = chain.units is not None
    # lemma: both-signs
    return Transient(
        values if stays else to_host(values),
        max((one.error for one in found), default=0.0),
        "certified" if certified else "estimate",
        max((one.truncation for one in found), default=0.0),
        max((one.rounding or 0.0 for one in found), default=0.0) if certified else None,
        sum(one.products for one in found),
        chain.rate,
    )


def _after(chain: Uniformised, x: Array, t: float, epsilon: float, transposed: bool) -> Transient:
    """Return what is found after one time, the values where the products are made."""
    xp = array_module(x)
    if not chain.rate * t <= _MOST_STEPS:
        raise OptionError(
            f"t: {chain.rate:g} times {t:g} makes more than 2^40 steps; choose a shorter time, or the "
            "long-run behaviour"
        )
    course = _UniformisationRun(chain, x, chain.rate * t, epsilon, transposed)
    course.run()
    certified = chain.units is not None
    values, truncation = course.result, course.truncation * _WIDER
    rounding = course.rounding(t) * _WIDER if certified else None
    # lemma: both-signs
    error = truncation + (rounding or 0.0)
    if not bool(xp.isfinite(values).all()) or not math.isfinite(error):
        raise NotConvergedError("values after a time", Status.DIVERGED, course.made, math.inf)
    return Transient(
        values, error, "certified" if certified else "estimate", truncation, rounding, course.made, chain.rate
    )


def _operand(x: Any, chain: Uniformised, n: int) -> tuple[Array, Any]:
    """Return x as float64 where the products are made, and the array module there."""
    there = lies_on_device(x)
    if chain.xp is np and there:
        raise OptionError("x: lies on the device and the operator on the host; move one of them")
    xp = chain.xp or (array_module(x) if there else np)
    array = x if there else on_host(x)
    vector = xp.array(array, dtype=np.float64, order="C") if _is_real(array) else None
    if vector is None or vector.ndim not in (1, 2) or vector.shape[0] != n:
        raise OptionError(
            f"x: expected real numbers, shape ({n},) or ({n}, k), got {array.dtype}, shape {array.shape}"
        )
    return vector, xp


def _is_real(array: Any) -> bool:
    return np.dtype(array.dtype).kind in "fiub"


class _UniformisationRun:
    """Steps, their weighted sum, and what both have cost in accuracy."""

    def __init__(self, chain: Uniformised, x: Array, mean: float, epsilon: float, transposed: bool) -> None:
        self._chain, self._x, self._mean, self._sums = chain, x, mean, transposed
        self._poisson = poisson_weights(mean)
        self._xp = array_module(x)
        self.result = self._xp.zeros_like(x)
        self.made, self._terms = 0, 0
        # Norms as they are at most; of the exact vectors, the start's times a power of the stretch.
        self._start = self._norm = self._norm_of(x)
        self._limit = 0.25 * epsilon * self._start
        self._carried = self._added = self._mass = 0.0
        self.truncation = self._tails()

    def rounding(self, t: float) -> float:
        """Return the bound on what rounding has cost."""
        chain, poisson = self._chain, self._poisson
        # Rate times time is a double: a time that is off by one rounding.
        # lemma: both-signs
        later = (chain.size + chain.greatest) * t * UNIT * self._grown(poisson.right) * self._start
        # lemma: both-signs
        weights = poisson.slack + poisson.left_tail + poisson.right_tail + (2 * self._terms + 2) * UNIT
        return self._added + weights * self._mass + later + (self._terms + 1) * self._least()

    def run(self) -> None:
        """Make the steps."""
        weights, left, last = self._poisson.weights, self._poisson.left, self._poisson.right
        rest = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        # Sum of (j - k) w_j over the steps j from k on, at k = left.
        means = np.append(np.cumsum(rest[:0:-1])[::-1], 0.0)
        while True:
            k = self.made
            if k >= left:
                self._add(float(weights[k - left]))
                missing = float(rest[k - left + 1]) * (self._norm + self._carried) * self._grown(last)
                if k == last or missing <= self._limit:
                    self.truncation += missing
                    return
            before = self._x
            self._x = self._chain.step(before)
            self.made += 1
            self._carried = self._chain.stretch * self._carried + self._error_of_step()
            # lemma: both-signs
            self._norm = self._norm * (self._chain.stretch + self._chain.step_error) + self._least()
            if self.made % _LOOK_EVERY:
                continue
            self._norm = min(self._norm, self._norm_of(self._x))
            at = max(self.made - left, 0)
            behind = max(left - self.made, 0)
            if at >= len(weights):
                continue
            ahead = (float(means[at]) + behind * float(rest[at])) * self._grown(last)
            # lemma: both-signs
            change = self._norm_of(self._x - before) * (1.0 + 4.0 * UNIT)
            # The next change is that of the last two vectors, stretched, but for two steps' errors.
            if self._chain.stretch * change * ahead <= self._limit:
                self._add(float(rest[at]))
                self.truncation += self._chain.stretch * change * ahead
                self._added += 3.0 * self._error_of_step() * ahead
                self._added += float(rest[at]) * self._carried * (self._grown(last) - 1.0)
                return

    def _add(self, weight: float) -> None:
        self.result += weight * self._x
        self._terms += 1
        self._mass += weight * (self._norm + self._carried)
        self._added += weight * self._carried

    def _tails(self) -> float:
        """Return what leaving out the tails of the distribution costs."""
        poisson, stretch = self._poisson, self._chain.stretch
        ratio = stretch * self._mean / (poisson.right + 1)
        if ratio >= 1.0 or self._log_grown(poisson.right) > 20.0:
            raise OptionError(
                "operator: expected a generator, where the magnitudes of a row off the diagonal add up to no "
                f"more than the exit rate; here solutions may grow by a factor {stretch:.17g} a step"
            )
        # lemma: both-signs
        above = float(poisson.weights[-1]) * ratio / (1.0 - ratio) * _WIDER + 2.0**-960
        if poisson.right == 0:
            above = 0.0
        return (poisson.left_tail + above) * self._grown(poisson.right) * self._start

    def _error_of_step(self) -> float:
        # lemma: both-signs
        return self._chain.step_error * self._norm + self._least()

    def _least(self) -> float:
        """Return a bound on what underflow costs in a step."""
        n = int(self._x.shape[0]) if self._sums else 1
        # lemma: both-signs
        return (self._chain.entries + 8.0) * n * 2.0**-1074 * max(1.0, 1.0 / self._chain.rate)

    def _log_grown(self, steps: int) -> float:
        return steps * math.log(self._chain.stretch)

    def _grown(self, steps: int) -> float:
        """Return a bound on the norm of so many steps, or fewer."""
        return math.exp(self._log_grown(steps)) * _WIDER

    def _norm_of(self, x: Array) -> float:
        if x.size == 0:
            return 0.0
        magnitudes = self._xp.abs(x)
        if not self._sums:
            return float(magnitudes.max())
        # lemma: both-signs
        total: float = float(magnitudes.sum(axis=0).max()) * (1.0 + (int(x.shape[0]) + 1) * UNIT)
        return total
