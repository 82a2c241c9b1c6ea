"""Linear systems ``A x = b`` for any matrix and any method, the project's or somebody else's.

The methods of :mod:`hybrid.solvers` solve ``diagonal * x = M x + b`` with A = diag(diagonal) - M ([CB12]
section 3). A sparse matrix is split so by its diagonal; of an operator only the diagonal must be known, for
``M x = diagonal * x - A x``. Methods that are handed in, such as SciPy's or CuPy's Krylov solvers, get A as a
linear operator. What they return is an answer only if its residual, recomputed, is small enough.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels import current_device
from gpu_kernels.runtime.coded import array_module, owners
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.systems import flow_into, leaving_rates
from hybrid.base.arrays import Array, to_host
from hybrid.base.check_options import OF_GENERAL_SYSTEMS
from hybrid.base.option_types import BackendName, Engine, LevelOption, StorageName
from hybrid.matrix.explicit.extract import explicit_matrix
from hybrid.matrix.explicit.operators import ExplicitOperator, FunctionOperator
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Path, Probability
from hybrid.solvers import BiCGStab, Criterion, Jacobi, Solution, Status
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states

Method = str | Callable[..., Any]


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The system ``diagonal * x = M x + b``, that is ``A x = b`` with A = diag(diagonal) - M.

    Attributes
    ----------
    matrix : HybridMatrix, ExplicitOperator or any other LinearOperator
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
    """Return the options for precision, limit and start that a method takes, by its signature."""
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


# From ``A x = b`` to the form of the iterative methods, for any representation of A.


def split_system(matrix: Any, b: ArrayLike, diagonal: Array | None = None) -> LinearSystem:
    """Split ``A x = b`` into the form of the iterative methods.

    Parameters
    ----------
    matrix : CsrArrays, SciPy or CuPy sparse matrix, HybridMatrix, LinearOperator or 2-dimensional ndarray
        A, square.
    b : array_like, shape (n,)
    diagonal : ndarray, shape (n,), float64, optional
        Of A; needed for an operator without a method for its own, and not used for a sparse matrix.

    Returns
    -------
    LinearSystem

    Raises
    ------
    ValueError
        If A is not square, or its diagonal has a zero or is not known.
    """
    if isinstance(matrix, np.ndarray):
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(matrix)
    if not isinstance(matrix, CsrArrays) and hasattr(matrix, "tocsr"):
        matrix = CsrArrays.from_scipy(matrix)
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"matrix: expected a square one, got {shape}")
    operator: ExplicitOperator | FunctionOperator
    if isinstance(matrix, CsrArrays):
        operator, own = _off_diagonal(matrix)
        xp = matrix.xp
    else:
        own = matrix.diagonal() if diagonal is None and hasattr(matrix, "diagonal") else diagonal
        if own is None:
            raise ValueError("diagonal: expected the diagonal of A beside an operator that cannot tell it")
        product = matrix.multiply if hasattr(matrix, "multiply") else matrix.matvec
        on_device = array_module(own) is not np or getattr(matrix, "backend", "cpu") == "gpu"
        device = current_device() if on_device else None
        xp = np if device is None else device.xp
        own = xp.asarray(own, dtype=float)
        operator = FunctionOperator(shape, lambda x: own * x - product(x), device)
    own = xp.asarray(own, dtype=float)
    right = xp.asarray(b, dtype=float)
    zeros = int((own == 0.0).sum())
    if zeros:
        raise ValueError(f"matrix: {zeros} diagonal elements are zero; the methods divide by the diagonal")
    return LinearSystem(operator, own, right)


def _off_diagonal(matrix: CsrArrays) -> tuple[ExplicitOperator, Array]:
    """Return minus the matrix without its diagonal, and the diagonal."""
    xp, n = matrix.xp, matrix.shape[0]
    row = owners(xp, matrix.row_starts.astype(np.int64), matrix.nnz) if n else xp.zeros(0, np.int64)
    on = matrix.columns == row
    diagonal = xp.zeros(n)
    diagonal[row[on]] = matrix.values[on]
    kept = ~on
    starts = xp.zeros(n + 1, matrix.row_starts.dtype)
    if n:
        starts[1:] = xp.cumsum(xp.bincount(row[kept], minlength=n))
    rest = CsrArrays(matrix.shape, starts, matrix.columns[kept], -matrix.values[kept])
    return ExplicitOperator(rest), diagonal


def solve(
    matrix: Any,
    b: ArrayLike,
    method: Method = "bicgstab",
    *,
    diagonal: Array | None = None,
    start: Array | None = None,
    criterion: Criterion | None = None,
    omega: float = 0.9,
    **options: Any,
) -> Solution:
    """Solve ``A x = b``; :func:`split_system` and :meth:`LinearSystem.solve` in one.

    Parameters
    ----------
    matrix : matrix or operator, shape (n, n)
        As for `split_system`.
    b : array_like, shape (n,)
    method : str or callable
        As for `LinearSystem.solve`, as are the other parameters.
    diagonal : array, shape (n,), optional
        Of a matrix that does not give it.
    start : array, shape (n,), optional
        The first iterate, zero by default.
    criterion : Criterion, optional
        When to stop.
    omega : float
        Relaxation, of the methods that have it.
    **options
        For a method that is a function.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError, TypeError
        As those do.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import gmres
    >>> from hybrid.analysis.linear import solve
    >>> a = np.array([[4.0, -1.0], [-2.0, 5.0]])
    >>> solve(a, [3.0, 3.0], "jacobi").values.round(6).tolist()
    [1.0, 1.0]
    >>> solve(a, [3.0, 3.0], gmres).values.round(6).tolist()
    [1.0, 1.0]
    """
    system = split_system(matrix, b, diagonal)
    return system.solve(method, start=start, criterion=criterion, omega=omega, **options)


# Reachability probabilities as a linear system ([CB12] §2).
#
# The states fall into S=0 and S=1, from which the target is reached with probability 0 and 1, and the rest,
# S?. With P the transition probabilities among S? and b the probability of stepping from there into S=1, the
# probabilities x of S? solve ``(I - P) x = b``. For a CTMC every row is divided by its exit rate: here that
# is the diagonal, so that the matrix keeps its few distinct values and the diagram its sharing.

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ReachabilitySystem:
    """The reduction of a reachability problem, its matrix still a diagram.

    Attributes
    ----------
    transitions : OffsetMTBDD
        Probabilities (DTMC) or rates (CTMC) among S?, shape (unknown, unknown), without diagonal.
    diagonal : ndarray, shape (unknown,), float64
        What leaves each state of S?: 1 minus its self-loop, or its rate.
    b : ndarray, shape (unknown,), float64
        Probability or rate of stepping from S? into S=1.
    certain, maybe : ndarray, shape (n_states,), bool
        Members of S=1 and of S?, over all states in index order.
    """

    transitions: OffsetMTBDD
    diagonal: Vector
    b: Vector
    certain: Mask
    maybe: Mask

    @property
    def size(self) -> int:
        """Number of states in S?."""
        return len(self.b)

    @cached_property
    def explicit(self) -> CsrArrays:
        """The transitions among S? as an explicit matrix on the host, made on first use."""
        return explicit_matrix(self.transitions)

    def system(
        self,
        engine: Engine = "hybrid",
        backend: BackendName = "cpu",
        level: LevelOption = "auto",
        storage: StorageName = "auto",
    ) -> LinearSystem:
        """Return the linear system of S? for an engine, its vectors where its matrix is multiplied.

        On a device they are CuPy's, so that CuPy's Krylov solvers run on the system there.

        Parameters
        ----------
        engine : {"hybrid", "explicit"}
            The matrix as a diagram above explicit blocks, or written out.
        backend : str
            As for :func:`hybrid.inject`. For the explicit engine "cpu", or "gpu" for a matrix and vectors on
            the device.
        level : str or int
            As for :func:`hybrid.inject`.
        storage : str
            Of the explicit engine on the gpu; see :class:`hybrid.matrix.explicit.ExplicitOperator`.

        Raises
        ------
        ValueError
            An engine, backend, level or storage that does not exist or cannot be used.
        """
        operator: HybridMatrix | ExplicitOperator
        if engine == "hybrid" and storage != "auto":
            raise ValueError(f"storage: expected auto with the engine hybrid, got {storage!r}; use explicit")
        if engine == "hybrid":
            operator = inject(self.transitions, level, backend)
        elif engine == "explicit":
            matrix = self.explicit if backend == "cpu" else explicit_matrix(self.transitions, backend)
            device = None if backend == "cpu" else current_device()
            operator = ExplicitOperator(matrix, device, storage)
        else:
            raise ValueError(f"engine: expected hybrid or explicit, got {engine!r}")
        xp = current_device().xp if operator.backend == "gpu" else np
        return LinearSystem(operator, xp.asarray(self.diagonal), xp.asarray(self.b))

    def as_scipy(self) -> tuple[Any, Vector]:
        """Return ``A = I - P`` as a SciPy CSR matrix, and b, every row divided by its diagonal.

        Raises
        ------
        MemoryError
            If the explicit matrix does not fit in memory.
        """
        from scipy.sparse import diags, identity

        scaled = diags(1.0 / self.diagonal) @ self.explicit.to_scipy()
        return (identity(self.size, format="csr") - scaled).tocsr(), self.b / self.diagonal

    def spread(self, x: Any) -> Vector:
        """Return the probabilities of all states, shape (n_states,), from those of S?.

        Raises
        ------
        ValueError
            If x has another size than S?.
        """
        own = to_host(x)
        if own.shape != (self.size,):
            raise ValueError(f"x: expected shape ({self.size},), one element a state of S?, got {own.shape}")
        values = self.certain.astype(np.float64)
        values[self.maybe] = own
        return values


def reachability_system(
    model: SymbolicModel, target: str | Node, safe: str | Node = "true"
) -> ReachabilitySystem:
    """Reduce ``safe U target`` to a linear system over the states where the graph does not decide.

    Parameters
    ----------
    model : SymbolicModel
        A DTMC or CTMC.
    target, safe : str or Node
        Sets of states, as expressions over variables and labels or as sets.

    Returns
    -------
    ReachabilitySystem
        Of size 0 where the graph decides everywhere.

    Raises
    ------
    mtbdd.language.LanguageError
        If an expression does not parse or speaks of things that the model does not have.
    ValueError
        If the model is an MDP.

    Notes
    -----
    S=0 and S=1 are found on diagrams (:mod:`mtbdd.graph.prob01`); nothing explicit is made but vectors.
    """
    if getattr(model, "is_mdp", False):
        raise ValueError("model: expected a dtmc or ctmc; an MDP has no single matrix")
    goal, through = _states(model, target), _states(model, safe)
    zero = prob0(model, through, goal)
    one = prob1(model, through, goal, zero)
    unknown = model.reachable & ~zero & ~one
    index = index_states(model.manager, unknown)
    options = CheckOptions(backend="cpu")
    return ReachabilitySystem(
        model.submatrix(index, index, diagonal=False),
        leaving_rates(model, index, options).rates,
        flow_into(model, index, index_states(model.manager, one), options),
        model.indicator(one),
        model.indicator(unknown),
    )


def _states(model: SymbolicModel, what: str | Node) -> Node:
    if not isinstance(what, str):
        return what & model.reachable
    formula = resolve_properties(parse_properties(f"P=? [ F ({what}) ]"), model.source).properties[0].formula
    if not isinstance(formula, Probability) or not isinstance(formula.path, Path):
        raise ValueError(f"expected an expression over the model's variables, got {what!r}")
    return model.states(formula.path.right)
