"""Reachability probabilities as a linear system ([CB12] 2).

The states fall into S=0 and S=1, from which the target is reached with probability 0 and 1, and the rest,
S?. With P the transition probabilities among S? and b the probability of stepping from there into S=1, the
probabilities x of S? solve ``(I - P) x = b``. For a CTMC every row is divided by its exit rate: here that is
the diagonal, so that the matrix keeps its few distinct values and the diagram its sharing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import current_device
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.analysis.linear.system import LinearSystem
from hybrid.analysis.row_sums import flow_into, leaving_rates
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.arrays import to_host
from hybrid.base.option_types import BackendName, Engine, LevelOption, StorageName
from hybrid.matrix.explicit.extract import explicit_matrix
from hybrid.matrix.explicit.operators import ExplicitOperator
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.tree import Path, Probability
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states

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
