"""Linear systems ``A x = b`` for any matrix and any method, the project's or somebody else's.

The methods of :mod:`hybrid.solvers` solve ``diagonal * x = M x + b`` with A = diag(diagonal) - M ([CB12]
section 3). A sparse matrix is split so by its diagonal; of an operator only the diagonal must be known, for
``M x = diagonal * x - A x``. Methods that are handed in, such as SciPy's or CuPy's Krylov solvers, get A as
a linear operator; what they return is an answer only if its residual, computed anew, is small enough.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.runtime.ragged import array_module
from hybrid.base.arrays import Array, to_host
from hybrid.base.methods import OF_GENERAL_SYSTEMS
from hybrid.solvers import BiCGStab, Criterion, Jacobi, Solution, Status

Method = str | Callable[..., Any]


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The system ``diagonal * x = M x + b``, that is ``A x = b`` with A = diag(diagonal) - M.

    Attributes
    ----------
    matrix : HybridMatrix, ExplicitOperator or any other MatrixOperator
        M, shape (n, n), without diagonal.
    diagonal : ndarray, shape (n,), float64
        Of A; no element is zero.
    b : ndarray, shape (n,), float64
        Right-hand side.
    """

    matrix: Any
    diagonal: Array
    b: Array

    def __post_init__(self) -> None:
        """Compare the shapes."""
        n = len(self.b)
        if tuple(self.matrix.shape) != (n, n) or self.diagonal.shape != (n,):
            raise ValueError(
                f"expected a square matrix, a diagonal and b of one size, got {tuple(self.matrix.shape)}, "
                f"{self.diagonal.shape} and {self.b.shape}"
            )

    @property
    def xp(self) -> Any:
        """Array module of the vectors."""
        return array_module(self.b)

    def apply(self, x: Array) -> Array:
        """Return ``A x``."""
        product = self.matrix.multiply(x)
        return self.diagonal * x - product

    def as_linear_operator(self) -> Any:
        """Return A as a LinearOperator of SciPy, or of CuPy where the vectors lie on the device.

        The transposed product is offered where M offers it (``rmatvec``), as Krylov methods such as bicg or
        qmr need.
        """
        return self._operator(self.apply)

    def _operator(self, product: Callable[[Array], Array]) -> Any:
        if self.xp is np:
            from scipy.sparse.linalg import LinearOperator
        else:
            from cupyx.scipy.sparse.linalg import LinearOperator
        options: dict[str, Any] = {}
        transposed = getattr(self.matrix, "rmatvec", None)
        if transposed is not None:
            options["rmatvec"] = lambda x: self.diagonal * x.ravel() - transposed(x.ravel())
        xp = self.xp
        return LinearOperator(
            tuple(self.matrix.shape),
            # Kernels take contiguous vectors, and solvers may hand in columns of their own.
            matvec=lambda x: product(xp.ascontiguousarray(x.ravel())),
            dtype=np.dtype(np.float64),
            **options,
        )

    def residual(self, x: Array) -> float:
        """Return ``max |b - A x|`` from a fresh product; 0 for an empty system."""
        return float(abs(self.b - self.apply(x)).max()) if len(self.b) else 0.0

    def solve(
        self,
        method: Method = "bicgstab",
        *,
        start: Array | None = None,
        criterion: Criterion | None = None,
        omega: float = 0.9,
        progress: Callable[[int, float], None] | None = None,
        **options: Any,
    ) -> Solution:
        """Solve the system.

        Parameters
        ----------
        method : {"jacobi", "jor", "bicgstab"} or callable
            A callable is called as ``method(A, b, **options)`` with A a LinearOperator, and returns x or
            (x, info), as SciPy's and CuPy's Krylov solvers do. Where it takes them it is also given the
            precision (``rtol`` or ``tol``, and ``atol=0``), ``maxiter`` and ``x0``.
        start : ndarray, shape (n,), float64, optional
            First iterate; default zero.
        criterion : Criterion, optional
            When iterations stop. For a callable and for BiCGStab epsilon bounds the norm of the residual,
            relative to that of the start at zero unless `absolute`.
        omega : float
            Relaxation of "jor".
        progress : callable, optional
            Called with (iteration, difference); not for a callable method.
        **options
            Passed on to a callable method.

        Returns
        -------
        Solution
            Values on the host; only ``Status.CONVERGED`` makes them an answer. The iterations of a callable
            are its products.

        Raises
        ------
        ValueError
            If the method is unknown.
        TypeError
            If options are given to a method that is not a callable.
        """
        rule = Criterion() if criterion is None else criterion
        if callable(method):
            return self._call(method, start, rule, options)
        if options:
            raise TypeError(f"options {sorted(options)}: only a callable method takes options")
        if method not in OF_GENERAL_SYSTEMS:
            offered = ", ".join(OF_GENERAL_SYSTEMS)
            raise ValueError(f"method: expected one of {offered} or a callable, got {method!r}")
        diagonal, b = to_host(self.diagonal), to_host(self.b)
        first = np.zeros(len(b)) if start is None else to_host(start)
        solver: Jacobi | BiCGStab
        if method == "bicgstab":
            solver = BiCGStab(rule)
        else:
            solver = Jacobi(rule, omega if method == "jor" else 1.0)
        return solver.solve(self.matrix, diagonal, b, first, progress)

    def _call(
        self, method: Callable[..., Any], start: Array | None, rule: Criterion, options: dict[str, Any]
    ) -> Solution:
        """Run somebody else's method and judge what it returns."""
        products, xp = 0, self.xp

        def counted(x: Array) -> Array:
            nonlocal products
            products += 1
            return self.apply(x)

        scale = 1.0 if rule.absolute else float(xp.linalg.norm(self.b)) or 1.0
        given = _known_options(method, rule, scale, start) | options
        begin = time.perf_counter()
        found = method(self._operator(counted), self.b, **given)
        seconds = time.perf_counter() - begin
        x, info = found if isinstance(found, tuple) else (found, 0)
        x = xp.asarray(x, dtype=float).reshape(-1)
        if x.shape != self.b.shape:
            raise ValueError(f"method: expected a solution of shape {self.b.shape}, got {x.shape}")
        with np.errstate(invalid="ignore", over="ignore"):
            difference = float(xp.linalg.norm(self.b - self.apply(x))) / scale
            residual = self.residual(x)
        return Solution(
            to_host(x), _judge(difference, rule, int(info)), products, seconds, difference, residual,
            products=products + 2,
        )  # fmt: skip


def _known_options(
    method: Callable[..., Any], rule: Criterion, scale: float, start: Array | None
) -> dict[str, Any]:
    """Return what a method can be told of the precision, the limit and the start, by its signature."""
    try:
        names = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return {}
    known: dict[str, Any] = {"rtol": rule.epsilon if not rule.absolute else 0.0}
    known["tol"] = known["rtol"]
    known["atol"] = rule.epsilon if rule.absolute else 0.0
    if rule.absolute and "atol" not in names and "tol" in names:
        known["tol"] = rule.epsilon
    known["maxiter"] = rule.max_iterations
    if start is not None:
        known["x0"] = start
    return {name: value for name, value in known.items() if name in names}


def _judge(difference: float, rule: Criterion, info: int) -> Status:
    """Return how a method ended by its residual, and by what it says only where that is not small."""
    if not np.isfinite(difference):
        return Status.DIVERGED
    # A recurrence may stop a little early: it stands for a residual that it does not compute.
    if difference < 2.0 * rule.epsilon:
        return Status.CONVERGED
    return Status.MAX_ITERATIONS if info > 0 else Status.BREAKDOWN
