"""Where steps that earn a reward lead from unknown states: among them, into the target, and elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.analysis.run.options import CheckOptions
from hybrid.base.halo import Halo
from hybrid.matrix.backends import Backend, choose_backend
from hybrid.matrix.explicit.operators import ExplicitOperator, write_out
from hybrid.matrix.operators.divided_matrix import DividedMatrix
from hybrid.matrix.operators.gained_choices import Multiplied
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import choice_totals
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.workspace import Array
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex, index_states

# lemma: rounding
_NEAR = 8.0 * UNIT  # rows that add up to 1 so closely are left as they are


@dataclass(frozen=True, eq=False)
class Flow:
    """Where the entries of one layer that earn one reward lead from the unknown states.

    Attributes
    ----------
    inner : Multiplied or None
        To unknown states; None if nowhere.
    target : ndarray, shape (n,), float64
        How likely, or at which rate, into the target.
    lost : ndarray, shape (n,), bool
        Whether to states that never reach the target.
    """

    inner: Multiplied | None
    target: Array
    lost: Array


class FlowMaker:
    """Makes the flows of one model, all on one backend.

    Parameters
    ----------
    model : SymbolicModel
    unknown : StateIndex
    target : Node
    options : CheckOptions
    """

    def __init__(
        self, model: SymbolicModel, unknown: StateIndex, target: Node, options: CheckOptions
    ) -> None:
        self._model, self._unknown, self._options = model, unknown, options
        self._target = index_states(model.manager, target)
        self._outside = index_states(model.manager, model.reachable & ~target & ~unknown.states)
        self.engine: Backend = options.matrix_backend()
        if self.engine.name == "gpu" and options.backend == "auto":
            reason = "the many small systems of a bound on a reward are solved on the host unless asked for"
            self.engine = choose_backend("cpu").because(reason)

    def flows(self, matrices: Sequence[SymbolicMatrix]) -> list[Flow]:
        """Return the flows of a matrix a layer."""
        own = [matrix.only(self._unknown.states) for matrix in matrices]
        inner = self._model.numbered_together(
            [self._between(m, self._unknown) for m in own], [self._unknown] * len(own), self._unknown
        )
        halo = next((self.engine.halo(m) for m in inner if isinstance(m, DividedMTBDD)), None)
        found = []
        for matrix, among in zip(own, inner, strict=True):
            held = Multiplied(self._operator(among, halo)) if _has_entries(among) else None
            target, outside = (self._sums(matrix, columns) for columns in (self._target, self._outside))
            found.append(Flow(held, target, outside > 0.0))
        return found

    def factors(self) -> list[Array | None]:
        """Return what rows of every layer are multiplied with to be probabilities; None is 1."""
        model, unknown = self._model, self._unknown
        if not model.is_mdp:
            totals = model.exit_rates(unknown)
            near = bool((np.abs(totals - 1.0) <= _NEAR).all())
            return [None if near else 1.0 / totals]
        found: list[Array | None] = []
        for number, layer in enumerate(model.layers):
            inside = layer.enabled & unknown.states
            sums = choice_totals(model, number, index_states(model.manager, inside))
            if sums is None:
                found.append(None)
                continue
            factor = np.ones(unknown.size)
            factor[model.indicator(inside, unknown)] = 1.0 / sums
            found.append(factor)
        return found

    def _sums(self, matrix: SymbolicMatrix, columns: StateIndex) -> Array:
        """Return the sum of every row over some columns; nothing is received for it."""
        if columns.total == 0:
            return np.zeros(self._unknown.size)
        part = self._model.numbered(self._between(matrix, columns), self._unknown, columns)
        return np.zeros(self._unknown.size) if part.n_entries == 0 else self._held(part).row_sums()

    def _between(self, matrix: SymbolicMatrix, columns: StateIndex) -> SymbolicMatrix:
        return matrix.only(self._model.manager.to_columns(columns.states))

    def _operator(
        self, matrix: OffsetMTBDD, halo: Halo | None
    ) -> HybridMatrix | DividedMatrix | ExplicitOperator:
        """Return a matrix as an operator, together with other processes where they share the states."""
        if not isinstance(matrix, DividedMTBDD):
            return self._held(matrix)
        held = self._held(matrix) if matrix.n_entries else None
        assert not isinstance(held, ExplicitOperator)
        return DividedMatrix(held, matrix, self.engine, halo)

    def _held(self, matrix: OffsetMTBDD) -> HybridMatrix | ExplicitOperator:
        """Return the own rows of a matrix on the engine and backend of all."""
        options = self._options
        if options.engine == "explicit":
            written = write_out(matrix, self.engine.name, options.storage)
            written.backend_reason = self.engine.reason
            return written
        return inject(matrix, options.level, self.engine, representation=options.representation).prepare()


def _has_entries(matrix: OffsetMTBDD) -> bool:
    """Whether a matrix has an entry, in the rows of any process."""
    return matrix.has_entries if isinstance(matrix, DividedMTBDD) else matrix.n_entries > 0
