"""A model as one of several processes has it: whole diagrams, and vectors of its own states."""

from __future__ import annotations

from collections.abc import Sequence

from mtbdd.offset.divided import DividedMTBDD, divide, divide_all
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.base.shares import Share
from mtbdd.offset.states import StateIndex


class PartModel(SymbolicModel):
    """See `SymbolicModel`; made of one that is whole.

    `index` has the own states, and so have all sets that are numbered; diagrams, counts and whole matrices
    (`n_states`, `layer_transitions`) are those of the model.

    Parameters
    ----------
    model : SymbolicModel
    share : Share
        Of its reachable states.
    """

    def __init__(self, model: SymbolicModel, share: Share) -> None:
        given = model.given
        super().__init__(
            model.source, model.encoding, model.translator, model.events, model.relations, model.initial,
            model.reachable, model.deadlocks, model.divisors, model.layers, model.warnings, given,
        )  # fmt: skip
        self._model = model
        self.manager = model.manager.sharing(share)
        self.build_seconds = model.build_seconds

    @property
    def whole(self) -> SymbolicModel:
        """The model that it is a part of."""
        return self._model

    @property
    def n_states(self) -> int:
        """Number of reachable states, those of other processes among them."""
        return self._model.n_states

    def layer_transitions(self, layer: int) -> OffsetMTBDD:
        """Return a layer's whole matrix, over the states of all processes."""
        return self._model.layer_transitions(layer)

    def numbered(
        self, entries: SymbolicMatrix, rows: StateIndex, columns: StateIndex, transposed: bool = False
    ) -> DividedMTBDD:
        """See `SymbolicModel.numbered`; of the rows that are own."""
        return divide(self.manager, entries, rows, columns, transposed)

    def numbered_together(
        self, entries: Sequence[SymbolicMatrix], rows: Sequence[StateIndex], columns: StateIndex
    ) -> list[OffsetMTBDD]:
        """See `SymbolicModel.numbered_together`; all receive the same elements of others."""
        return list(divide_all(self.manager, entries, rows, columns)) if entries else []
